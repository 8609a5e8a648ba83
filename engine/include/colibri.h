/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of Colibri: load a converted Mixture-of-Experts model, score token sequences, and
 * change its knobs while it runs.
 *
 *     colibri_config_t config = {.model_path = "qwen3-30b-q4"};
 *     colibri_context_t *ctx = colibri_init(config);
 *     if (!ctx) puts(colibri_last_error());
 *     colibri_dispatch(ctx, ids, n, logits, sizeof(float) * n * vocab);
 *     colibri_free(ctx);
 *
 * Every function checks its arguments and returns a status; none terminates the process.
 * colibri_last_error() returns the message of the calling thread's last failure. Any number of
 * threads may use a context at once, but colibri_free must be the last call on it.
 */
#ifndef COLIBRI_H
#define COLIBRI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum colibri_status {
    COLIBRI_SUCCESS = 0,
    COLIBRI_ERROR_INVALID_ARGUMENT = 1, /* NULL, an id or a value out of range */
    COLIBRI_ERROR_BAD_INPUT = 2,        /* a missing, damaged or inconsistent file */
    COLIBRI_ERROR_UNSUPPORTED = 3,      /* not supported by this build or machine */
    COLIBRI_ERROR_IO = 4,
    COLIBRI_ERROR_NO_SPACE = 5,
    COLIBRI_ERROR_OUT_OF_MEMORY = 6,
    COLIBRI_ERROR_CANCELLED = 7, /* the context was freed during the call */
    COLIBRI_ERROR_BUSY = 8,      /* too many dispatches are waiting: try again later */
    COLIBRI_ERROR_INTERNAL = 9,
    COLIBRI_ERROR_BUFFER_TOO_SMALL = 10
} colibri_status_t;

typedef enum colibri_device {
    COLIBRI_DEVICE_DEFAULT = 0, /* the best device of this build and machine */
    COLIBRI_DEVICE_CPU = 1,
    COLIBRI_DEVICE_GPU = 2
} colibri_device_t;

typedef enum colibri_dtype {
    COLIBRI_DTYPE_DEFAULT = 0, /* the type of the model */
    COLIBRI_DTYPE_F32 = 1,
    COLIBRI_DTYPE_F16 = 2,
    COLIBRI_DTYPE_BF16 = 3,
    COLIBRI_DTYPE_Q8_0 = 4,
    COLIBRI_DTYPE_Q4_0 = 5,
    COLIBRI_DTYPE_Q4_1 = 6,
    COLIBRI_DTYPE_Q5_0 = 7,
    COLIBRI_DTYPE_Q5_1 = 8,
    COLIBRI_DTYPE_Q4_K = 9,
    COLIBRI_DTYPE_Q5_K = 10,
    COLIBRI_DTYPE_Q6_K = 11,
    COLIBRI_DTYPE_MXFP4 = 12
} colibri_dtype_t;

/* Zero selects the default of every field except model_path. num_experts, top_k and weight_dtype
 * are compared with the model if set: a difference is an error whose message names both values. */
typedef struct colibri_config {
    const char* model_path;   /* folder written by `colibri convert`, in either layout */
    const char* router_table; /* file; NULL: the model's own router_table.bin, if any */
    int32_t num_experts;      /* per MoE layer */
    int32_t top_k;            /* experts per token */
    colibri_device_t device;
    int32_t gpu_id;               /* with COLIBRI_DEVICE_GPU */
    int32_t expert_cache_size;    /* experts per MoE layer; 0: as memory allows */
    colibri_dtype_t weight_dtype; /* of the experts; the type with the most bytes if several */
    bool reload_on_change;        /* reload the router table when its file is replaced */
    int32_t context_length;       /* tokens of the longest sequence; 0: as memory allows */
    int32_t compute_threads;      /* 0: one per physical core */
    const char* config_file; /* knobs, as exported by the workbench; the fields above override it */
} colibri_config_t;

typedef struct colibri_context colibri_context_t;

/* Loads the model and starts the engine's threads. Returns NULL on failure; see
 * colibri_last_error(). */
colibri_context_t* colibri_init(colibri_config_t config);

/* Cancels every running dispatch (COLIBRI_ERROR_CANCELLED), then stops the engine. ctx may be
 * NULL. */
void colibri_free(colibri_context_t* ctx);

/* The loaded model. */
typedef struct colibri_model_info {
    int32_t vocab_size;
    int32_t hidden_size;
    int32_t num_layers;
    int32_t num_moe_layers;
    int32_t num_experts; /* per MoE layer */
    int32_t top_k;
    colibri_dtype_t weight_dtype; /* of the experts; the type with the most bytes if several */
    int64_t context_length;       /* maximum tokens of one dispatch */
} colibri_model_info_t;
colibri_status_t colibri_get_model_info(const colibri_context_t* ctx, colibri_model_info_t* info);

/* Scores the sequence ids[0..n) from an empty context: row i of `out` holds the logits of the token
 * that follows ids[0..i], so `out` is [n, vocab_size] floats, row-major. Blocks until all rows are
 * computed. `out_bytes` is the size of the buffer: if it is too small, nothing is written. The
 * function never writes past the end. After a failure the content of `out` is unspecified.
 *
 * Dispatches of several threads are batched together: a single dispatch waits up to the batch
 * timeout (10 ms by default) for others. The result is bit-identical to that of a dispatch that
 * runs alone. */
colibri_status_t colibri_dispatch(colibri_context_t* ctx, const int32_t* ids, size_t n, float* out,
                                  size_t out_bytes);

/* Knobs are applied between two steps while dispatches run; each call blocks until its value is
 * effective. The message of COLIBRI_ERROR_INVALID_ARGUMENT gives the range, that of
 * COLIBRI_ERROR_UNSUPPORTED the reason why the value could not be used. */
colibri_status_t colibri_set_cache_size(colibri_context_t* ctx, int experts_per_layer);
colibri_status_t colibri_set_batch_timeout(colibri_context_t* ctx, int milliseconds);
colibri_status_t colibri_set_prefetch_threads(colibri_context_t* ctx, int threads);
/* Threads are numbered from 0; core -1 removes the binding. */
colibri_status_t colibri_bind_prefetch_thread(colibri_context_t* ctx, int thread, int core);
/* Binds the experts to one node, and the compute threads too if the node has enough cores; -1
   removes the binding. Experts already in memory are moved in the background. */
colibri_status_t colibri_bind_to_numa_node(colibri_context_t* ctx, int node);
/* The effective node, or -1 if there is no binding. */
int colibri_get_bound_numa_node(const colibri_context_t* ctx);
/* Sets a knob by its name, as in a config file: ("cache_policy", "slru"), ("link_limit", "25"). */
colibri_status_t colibri_set_knob(colibri_context_t* ctx, const char* name, const char* value);

/* Counters since colibri_init, and the current state. */
typedef struct colibri_stats {
    uint64_t dispatches;       /* completed successfully */
    uint64_t batches;          /* forward passes */
    uint64_t batch_rows;       /* sum of their tokens */
    uint64_t batch_dispatches; /* sum of their sequences; divided by batches: the mean batch */
    uint64_t expert_lookups;
    uint64_t expert_hits;
    uint64_t expert_loads; /* reads, prefetches included */
    uint64_t evictions;
    uint64_t bytes_loaded;
    uint64_t prefetch_issued, prefetch_useful, prefetch_late, prefetch_wasted;
    uint64_t failed_reads;
    uint64_t stall_ns;         /* time compute waited for experts */
    uint64_t router_compared;  /* choices of the gate compared with a router table */
    uint64_t router_agreed;    /* those on which the table agreed */
    uint64_t router_reloads;   /* of the table, with reload_on_change */
    bool router_table_changed; /* the file was replaced; the loaded table stays in use */
    int64_t expert_cache_size; /* experts per MoE layer */
    int64_t expert_cache_bytes;
    int64_t memory_bytes; /* resident, of the whole process */
} colibri_stats_t;
colibri_status_t colibri_get_stats(const colibri_context_t* ctx, colibri_stats_t* stats);

/* The name of a status, e.g. "COLIBRI_ERROR_BUSY"; never NULL. */
const char* colibri_status_string(colibri_status_t status);

/* The message of the calling thread's last failed call: what went wrong and what to do about it; ""
 * if none has failed. Valid until the thread's next failed call. */
const char* colibri_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
