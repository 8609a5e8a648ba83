/* SPDX-License-Identifier: Apache-2.0
 *
 * Colibri for C and C++ programs: load a converted Mixture-of-Experts model, score token
 * sequences, turn its knobs while it runs.
 *
 *     colibri_config_t config = {.model_path = "qwen3-30b-q4"};
 *     colibri_context_t *ctx = colibri_init(config);
 *     if (!ctx) puts(colibri_last_error());
 *     colibri_dispatch(ctx, ids, n, logits, sizeof(float) * n * vocab);
 *     colibri_free(ctx);
 *
 * Every function checks what it is given and answers with a status; none ends the process. The
 * text of the calling thread's last failure is colibri_last_error(). A context may be used from
 * any number of threads at once; only colibri_free must be the last call on it.
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
    COLIBRI_ERROR_UNSUPPORTED = 3,      /* known, but not done by this build or machine */
    COLIBRI_ERROR_IO = 4,
    COLIBRI_ERROR_NO_SPACE = 5,
    COLIBRI_ERROR_OUT_OF_MEMORY = 6,
    COLIBRI_ERROR_CANCELLED = 7, /* the context was freed meanwhile */
    COLIBRI_ERROR_BUSY = 8,      /* too many dispatches wait: try again later */
    COLIBRI_ERROR_INTERNAL = 9,
    COLIBRI_ERROR_BUFFER_TOO_SMALL = 10
} colibri_status_t;

typedef enum colibri_device {
    COLIBRI_DEVICE_DEFAULT = 0, /* the best that this build and machine have */
    COLIBRI_DEVICE_CPU = 1,
    COLIBRI_DEVICE_GPU = 2
} colibri_device_t;

typedef enum colibri_dtype {
    COLIBRI_DTYPE_DEFAULT = 0, /* whatever the model has */
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

/* Zero is the default of every field but model_path. What is said here about the model
 * (num_experts, top_k, weight_dtype) is compared with the model: a difference is an error that
 * names both. */
typedef struct colibri_config {
    const char* model_path;   /* folder written by `colibri convert`, of either layout */
    const char* router_table; /* file; NULL: the model's own router_table.bin, if any */
    int32_t num_experts;      /* per MoE layer */
    int32_t top_k;            /* experts per token */
    colibri_device_t device;
    int32_t gpu_id;               /* with COLIBRI_DEVICE_GPU */
    int32_t expert_cache_size;    /* experts per MoE layer; 0: as memory allows */
    colibri_dtype_t weight_dtype; /* of the experts; of several types, that with the most bytes */
    bool reload_on_change;        /* read the router table again when its file is replaced */
    int32_t context_length;       /* tokens of the longest sequence; 0: as memory allows */
    int32_t compute_threads;      /* 0: one per physical core */
    const char* config_file;      /* knobs, as exported by the workbench; fields above go first */
} colibri_config_t;

typedef struct colibri_context colibri_context_t;

/* Loads the model and starts the engine's threads. NULL: see colibri_last_error(). */
colibri_context_t* colibri_init(colibri_config_t config);

/* Ends every dispatch that still runs (COLIBRI_ERROR_CANCELLED), then the engine. NULL is fine. */
void colibri_free(colibri_context_t* ctx);

/* What was loaded. */
typedef struct colibri_model_info {
    int32_t vocab_size;
    int32_t hidden_size;
    int32_t num_layers;
    int32_t num_moe_layers;
    int32_t num_experts; /* per MoE layer */
    int32_t top_k;
    colibri_dtype_t weight_dtype; /* of the experts; of several types, that with the most bytes */
    int64_t context_length;       /* most tokens of one dispatch */
} colibri_model_info_t;
colibri_status_t colibri_get_model_info(const colibri_context_t* ctx, colibri_model_info_t* info);

/* Scores the sequence ids[0..n) from an empty context: row i of `out` is the logits of the token
 * that follows ids[0..i], so `out` is [n, vocab_size] floats, row-major. Waits until all of it is
 * there. `out_bytes` is the size of the buffer: when it is too small nothing is written, and
 * nothing is ever written behind it. After a failure the content of `out` is unspecified.
 *
 * Dispatches of several threads are computed in common batches: one that is alone waits for others
 * for the batch timeout (10 ms unless set). The result is the same to the last bit as that of a
 * dispatch alone. */
colibri_status_t colibri_dispatch(colibri_context_t* ctx, const int32_t* ids, size_t n, float* out,
                                  size_t out_bytes);

/* Knobs, applied between two steps while dispatches run; each waits until its value is in force.
 * COLIBRI_ERROR_INVALID_ARGUMENT names the range, COLIBRI_ERROR_UNSUPPORTED the reason why the
 * value could not be used. */
colibri_status_t colibri_set_cache_size(colibri_context_t* ctx, int experts_per_layer);
colibri_status_t colibri_set_batch_timeout(colibri_context_t* ctx, int milliseconds);
colibri_status_t colibri_set_prefetch_threads(colibri_context_t* ctx, int threads);
/* Threads count from 0; core -1: no longer bound. */
colibri_status_t colibri_bind_prefetch_thread(colibri_context_t* ctx, int thread, int core);
/* Experts on one node, and the compute threads when it has cores for all; -1: no longer bound.
   Experts in memory are moved in the background. */
colibri_status_t colibri_bind_to_numa_node(colibri_context_t* ctx, int node);
/* The node in force, -1 when there is none. */
int colibri_get_bound_numa_node(const colibri_context_t* ctx);
/* Any knob by its name, as in a config file: ("cache_policy", "slru"), ("link_limit", "25"). */
colibri_status_t colibri_set_knob(colibri_context_t* ctx, const char* name, const char* value);

/* Counts since colibri_init; what is in force now. */
typedef struct colibri_stats {
    uint64_t dispatches;       /* ended with success */
    uint64_t batches;          /* forward passes */
    uint64_t batch_rows;       /* tokens in them, summed */
    uint64_t batch_dispatches; /* sequences in them, summed: / batches is the mean batch */
    uint64_t expert_lookups;
    uint64_t expert_hits;
    uint64_t expert_loads; /* reads, prefetches included */
    uint64_t evictions;
    uint64_t bytes_loaded;
    uint64_t prefetch_issued, prefetch_useful, prefetch_late, prefetch_wasted;
    uint64_t failed_reads;
    uint64_t stall_ns;         /* compute waited for experts */
    uint64_t router_compared;  /* choices of the gate that were compared with a router table */
    uint64_t router_agreed;    /* those that the table names too */
    uint64_t router_reloads;   /* of the table, with reload_on_change */
    bool router_table_changed; /* its file is another one now; the loaded table is in use */
    int64_t expert_cache_size; /* experts per MoE layer */
    int64_t expert_cache_bytes;
    int64_t memory_bytes; /* resident, of the whole process */
} colibri_stats_t;
colibri_status_t colibri_get_stats(const colibri_context_t* ctx, colibri_stats_t* stats);

/* "COLIBRI_ERROR_BUSY"; never NULL. */
const char* colibri_status_string(colibri_status_t status);

/* What went wrong in the calling thread's last call that failed, and what to do about it; "" when
 * none has. Valid until the thread's next call that fails. */
const char* colibri_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
