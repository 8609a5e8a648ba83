// SPDX-License-Identifier: Apache-2.0
// The C functions: checks of what C callers hand in, statuses and their texts. No exception
// crosses this line.
#include "engine/include/colibri.h"

#include <new>

#include "engine/api/context.h"
#include "engine/api/host_memory.h"
#include "engine/base/printable.h"

using namespace colibri;

namespace {

thread_local std::string lastError;

colibri_status_t fail(colibri_status_t status, const std::string& text) {
    lastError = printableLines(text);
    return status;
}

colibri_status_t statusOf(Code code) {
    switch (code) {
        case Code::Ok:
            return COLIBRI_SUCCESS;
        case Code::InvalidArgument:
            return COLIBRI_ERROR_INVALID_ARGUMENT;
        case Code::BadInput:
            return COLIBRI_ERROR_BAD_INPUT;
        case Code::Unsupported:
            return COLIBRI_ERROR_UNSUPPORTED;
        case Code::IoError:
            return COLIBRI_ERROR_IO;
        case Code::NoSpace:
            return COLIBRI_ERROR_NO_SPACE;
        case Code::OutOfMemory:
            return COLIBRI_ERROR_OUT_OF_MEMORY;
        case Code::Cancelled:
            return COLIBRI_ERROR_CANCELLED;
        case Code::Busy:
            return COLIBRI_ERROR_BUSY;
        case Code::Internal:
            break;
    }
    return COLIBRI_ERROR_INTERNAL;
}

colibri_status_t answer(const Status& status) {
    return status.ok() ? COLIBRI_SUCCESS : fail(statusOf(status.code()), status.text());
}

colibri_status_t isNull(const char* what) {
    return fail(COLIBRI_ERROR_INVALID_ARGUMENT, std::string(what) + " is NULL");
}

// Runs body() -> colibri_status_t; what it throws becomes a status.
template <typename Body>
colibri_status_t guarded(const Body& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        try {
            return fail(COLIBRI_ERROR_OUT_OF_MEMORY, "out of memory");
        } catch (...) {
            return COLIBRI_ERROR_OUT_OF_MEMORY;
        }
    } catch (const std::exception& error) {
        return fail(COLIBRI_ERROR_INTERNAL, error.what());
    } catch (...) {
        return fail(COLIBRI_ERROR_INTERNAL, "an unknown exception");
    }
}

colibri_status_t setKnob(colibri_context_t* ctx, const char* name, const char* value) {
    return guarded([&] {
        if (!ctx) return isNull("ctx");
        if (!name) return isNull("name");
        if (!value) return isNull("value");
        return answer(ctx->setKnob(name, value));
    });
}

colibri_status_t setKnob(colibri_context_t* ctx, const char* name, int value) {
    return guarded([&] { return setKnob(ctx, name, std::to_string(value).c_str()); });
}

// The C numbers follow those of DType, one higher.
static_assert(COLIBRI_DTYPE_F32 == int(DType::F32) + 1);
static_assert(COLIBRI_DTYPE_MXFP4 == int(DType::MXFP4) + 1 && COLIBRI_DTYPE_MXFP4 == kDTypeCount);

colibri_status_t notHostMemory(const char* what, size_t bytes) {
    return fail(COLIBRI_ERROR_UNSUPPORTED,
                std::string(what) + " (" + std::to_string(bytes) +
                    " bytes) is not memory of this process; if it is a device pointer: this build "
                    "has no CUDA device. Pass host memory");
}

colibri_status_t dispatch(colibri_context_t& ctx, const int32_t* ids, size_t n, float* out,
                          size_t outBytes) {
    const Engine& engine = ctx.engine();
    if (n == 0) return fail(COLIBRI_ERROR_INVALID_ARGUMENT, "n is 0: no token to score");
    if (n > size_t(engine.contextLength())) {
        return fail(COLIBRI_ERROR_INVALID_ARGUMENT,
                    std::to_string(n) + " tokens, the context holds " +
                        std::to_string(engine.contextLength()) +
                        ". Give colibri_init a larger context_length");
    }
    const size_t idBytes = n * sizeof(int32_t);
    const size_t need = n * size_t(engine.info().config.vocabSize) * sizeof(float);
    if (outBytes < need) {
        return fail(COLIBRI_ERROR_BUFFER_TOO_SMALL,
                    "out holds " + std::to_string(outBytes) + " bytes, the logits of " +
                        std::to_string(n) + " tokens need " + std::to_string(need) + " (" +
                        std::to_string(engine.info().config.vocabSize) + " floats each)");
    }
    if (!hostReadable(ids, idBytes)) return notHostMemory("ids", idBytes);
    if (!hostWritable(out, need)) return notHostMemory("out", need);
    return answer(ctx.dispatch({ids, n}, out));
}

}  // namespace

colibri_context_t* colibri_init(colibri_config_t config) {
    colibri_context_t* context = nullptr;
    (void)guarded([&] {
        Result<std::unique_ptr<colibri_context>> opened = colibri_context::open(config);
        if (opened.ok()) context = opened->release();
        return answer(opened.status());
    });
    return context;
}

void colibri_free(colibri_context_t* ctx) {
    if (!ctx) return;
    (void)guarded([&] {
        ctx->close();
        delete ctx;
        return COLIBRI_SUCCESS;
    });
}

colibri_status_t colibri_get_model_info(const colibri_context_t* ctx, colibri_model_info_t* info) {
    return guarded([&] {
        if (!ctx) return isNull("ctx");
        if (!info) return isNull("info");
        const Engine& engine = ctx->engine();
        const ModelConfig& c = engine.info().config;
        *info = {};
        info->vocab_size = int32_t(c.vocabSize);
        info->hidden_size = int32_t(c.hiddenSize);
        info->num_layers = int32_t(c.numLayers);
        info->num_moe_layers = int32_t(c.moeLayerCount());
        info->num_experts = int32_t(c.numExperts);
        info->top_k = int32_t(c.topK);
        info->weight_dtype = colibri_dtype_t(int(engine.info().expertType) + 1);
        info->context_length = engine.contextLength();
        return COLIBRI_SUCCESS;
    });
}

colibri_status_t colibri_dispatch(colibri_context_t* ctx, const int32_t* ids, size_t n, float* out,
                                  size_t out_bytes) {
    return guarded([&] {
        if (!ctx) return isNull("ctx");
        if (!ids) return isNull("ids");
        if (!out) return isNull("out");
        return dispatch(*ctx, ids, n, out, out_bytes);
    });
}

colibri_status_t colibri_set_cache_size(colibri_context_t* ctx, int experts_per_layer) {
    return setKnob(ctx, "expert_cache_size", experts_per_layer);
}

colibri_status_t colibri_set_batch_timeout(colibri_context_t* ctx, int milliseconds) {
    return setKnob(ctx, "batch_timeout_ms", milliseconds);
}

colibri_status_t colibri_set_prefetch_threads(colibri_context_t* ctx, int threads) {
    return setKnob(ctx, "prefetch_threads", threads);
}

colibri_status_t colibri_bind_prefetch_thread(colibri_context_t* ctx, int thread, int core) {
    return guarded([&] {
        if (!ctx) return isNull("ctx");
        return answer(ctx->bindPrefetchThread(thread, core));
    });
}

colibri_status_t colibri_bind_to_numa_node(colibri_context_t* ctx, int node) {
    if (node < 0) return setKnob(ctx, "numa_mode", "off");
    const colibri_status_t status = setKnob(ctx, "numa_node", node);
    return status == COLIBRI_SUCCESS ? setKnob(ctx, "numa_mode", "bind") : status;
}

int colibri_get_bound_numa_node(const colibri_context_t* ctx) {
    int node = -1;
    (void)guarded([&] {
        if (!ctx) return isNull("ctx");
        const std::optional<KnobState> mode = ctx->knob("numa_mode"), at = ctx->knob("numa_node");
        if (mode && at && knobValueText(*findKnob("numa_mode"), mode->effective) == "bind") {
            node = int(at->effective);
        }
        return COLIBRI_SUCCESS;
    });
    return node;
}

colibri_status_t colibri_set_knob(colibri_context_t* ctx, const char* name, const char* value) {
    return setKnob(ctx, name, value);
}

colibri_status_t colibri_get_stats(const colibri_context_t* ctx, colibri_stats_t* stats) {
    return guarded([&] {
        if (!ctx) return isNull("ctx");
        if (!stats) return isNull("stats");
        const Engine& engine = ctx->engine();
        const StoreStats s = engine.store().stats();
        const BatchStats b = engine.batchStats();
        *stats = {};
        stats->dispatches = ctx->dispatches();
        stats->batches = b.steps;
        stats->batch_rows = b.rows;
        stats->batch_dispatches = b.requests;
        stats->expert_lookups = s.lookups;
        stats->expert_hits = s.hits;
        stats->expert_loads = s.demandReads + s.prefetchReads;
        stats->evictions = s.evictions;
        stats->bytes_loaded = s.bytesRead;
        stats->prefetch_issued = s.prefetchIssued;
        stats->prefetch_useful = s.prefetchUseful;
        stats->prefetch_late = s.prefetchLate;
        stats->prefetch_wasted = s.prefetchWasted;
        stats->failed_reads = s.failedReads;
        stats->stall_ns = s.stallNs;
        const RouterStats r = engine.routerStats();
        stats->router_compared = r.compared;
        stats->router_agreed = r.agreed;
        stats->router_reloads = r.reloads;
        stats->router_table_changed = !r.notice.empty();
        stats->expert_cache_size = engine.knobState(KnobId::ExpertCacheSize).effective;
        stats->expert_cache_bytes = s.slotBytes;
        stats->memory_bytes = engine.memory().processRss;
        return COLIBRI_SUCCESS;
    });
}

const char* colibri_status_string(colibri_status_t status) {
    switch (status) {
        case COLIBRI_SUCCESS:
            return "COLIBRI_SUCCESS";
        case COLIBRI_ERROR_INVALID_ARGUMENT:
            return "COLIBRI_ERROR_INVALID_ARGUMENT";
        case COLIBRI_ERROR_BAD_INPUT:
            return "COLIBRI_ERROR_BAD_INPUT";
        case COLIBRI_ERROR_UNSUPPORTED:
            return "COLIBRI_ERROR_UNSUPPORTED";
        case COLIBRI_ERROR_IO:
            return "COLIBRI_ERROR_IO";
        case COLIBRI_ERROR_NO_SPACE:
            return "COLIBRI_ERROR_NO_SPACE";
        case COLIBRI_ERROR_OUT_OF_MEMORY:
            return "COLIBRI_ERROR_OUT_OF_MEMORY";
        case COLIBRI_ERROR_CANCELLED:
            return "COLIBRI_ERROR_CANCELLED";
        case COLIBRI_ERROR_BUSY:
            return "COLIBRI_ERROR_BUSY";
        case COLIBRI_ERROR_INTERNAL:
            return "COLIBRI_ERROR_INTERNAL";
        case COLIBRI_ERROR_BUFFER_TOO_SMALL:
            return "COLIBRI_ERROR_BUFFER_TOO_SMALL";
    }
    return "unknown colibri_status_t";
}

const char* colibri_last_error(void) {
    return lastError.c_str();
}
