// SPDX-License-Identifier: Apache-2.0
#include "engine/api/context.h"

#include <cstring>

#include "engine/convert/loadable_model.h"
#include "engine/knobs/knob_config.h"
#include "engine/runtime/run_request.h"

using namespace colibri;

namespace {

// The C numbers are one higher (colibri.cpp checks that).
std::optional<DType> dtypeOf(colibri_dtype_t type) {
    const int i = int(type) - 1;
    return i >= 0 && i < kDTypeCount ? std::optional(DType(i)) : std::nullopt;
}

// What the caller believes about the model against what it is.
Status compare(const colibri_config_t& config, const ContainerInfo& info) {
    const auto differs = [&](const char* field, const std::string& asked,
                             const std::string& model) {
        return Status(
            Code::InvalidArgument,
            std::string(field) + " is " + asked + ", but " + info.dir.string() + " has " + model,
            "Set it to 0 to use the model's value");
    };
    const ModelConfig& c = info.config;
    if (config.num_experts != 0 && config.num_experts != c.numExperts) {
        return differs("num_experts", std::to_string(config.num_experts),
                       std::to_string(c.numExperts));
    }
    if (config.top_k != 0 && config.top_k != c.topK) {
        return differs("top_k", std::to_string(config.top_k), std::to_string(c.topK));
    }
    if (config.weight_dtype == COLIBRI_DTYPE_DEFAULT) return {};
    const std::optional<DType> type = dtypeOf(config.weight_dtype);
    if (!type) {
        return Status(
            Code::InvalidArgument,
            "weight_dtype " + std::to_string(int(config.weight_dtype)) + " is not a type");
    }
    if (*type != info.expertType) {
        return differs("weight_dtype", std::string(dtypeName(*type)),
                       info.expertTypeNames() + " experts");
    }
    return {};
}

Status checkDevice(const colibri_config_t& config) {
    switch (config.device) {
        case COLIBRI_DEVICE_DEFAULT:
        case COLIBRI_DEVICE_CPU:
            return {};
        case COLIBRI_DEVICE_GPU:
            return Status(Code::Unsupported,
                          "GPU " + std::to_string(config.gpu_id) +
                              " cannot be used: this build has no CUDA device",
                          "Use COLIBRI_DEVICE_CPU");
    }
    return Status(Code::InvalidArgument,
                  "device " + std::to_string(int(config.device)) + " is not a device");
}

Result<KnobValues> knobsOf(const colibri_config_t& config, const ContainerInfo& info) {
    KnobValues values;
    if (config.config_file) {
        const Result<KnobValues> fromFile = knobsFromFile(config.config_file);
        if (!fromFile.ok()) return fromFile.status();
        values = *fromFile;
    }
    const std::pair<KnobId, int32_t> fields[] = {
        {KnobId::ExpertCacheSize, config.expert_cache_size},
        {KnobId::ContextLength, config.context_length},
        {KnobId::ComputeThreads, config.compute_threads}};
    for (const auto& [id, value] : fields) {
        if (value == 0) continue;
        Result<int64_t> checked =
            parseKnobValue(knobRow(id), std::to_string(value), knobLimitsFor(id, info));
        if (!checked.ok()) return checked.status();
        values[size_t(id)] = *checked;
    }
    return values;
}

}  // namespace

Result<std::unique_ptr<colibri_context>> colibri_context::open(const colibri_config_t& config) {
    if (!config.model_path || !*config.model_path) {
        return Status(Code::InvalidArgument, "model_path is missing",
                      "Give the folder that `colibri convert` wrote");
    }
    COLIBRI_TRY(checkDevice(config));
    Result<std::filesystem::path> model = loadableModel(config.model_path, {}, nullptr);
    if (!model.ok()) return model.status();
    Result<ContainerInfo> info = openContainer(*model);
    if (!info.ok()) return info.status();
    COLIBRI_TRY(compare(config, *info));
    Result<KnobValues> knobs = knobsOf(config, *info);
    if (!knobs.ok()) return knobs.status();
    EngineOptions options;
    options.model = *model;
    options.knobs = *knobs;
    if (config.router_table) options.routerTable = config.router_table;
    options.reloadRouterTable = config.reload_on_change;
    Result<std::unique_ptr<Engine>> engine = Engine::load(options, {}, nullptr);
    if (!engine.ok()) return engine.status();
    auto context = std::make_unique<colibri_context>();
    context->m_engine = std::move(*engine);
    return context;
}

void colibri_context::close() {
    std::unique_lock lock(m_mutex);
    m_closing = true;
    m_idle.wait(lock, [this] { return m_running == 0; });
}

Status colibri_context::dispatch(std::span<const int32_t> ids, float* out) {
    const auto vocab = size_t(m_engine->info().config.vocabSize);
    Request request;
    request.prompt.assign(ids.begin(), ids.end());
    request.maxTokens = 0;
    RequestObserver observer;
    observer.onLogits = [out, vocab](uint32_t position, std::span<const float> logits) {
        std::memcpy(out + position * vocab, logits.data(), logits.size_bytes());
    };
    {
        std::lock_guard lock(m_mutex);
        if (m_closing) return Status(Code::Cancelled, "the context is being freed");
        ++m_running;
    }
    const Result<RequestResult> result =
        runRequest(*m_engine, std::move(request), std::move(observer), &m_closing);
    {
        std::lock_guard lock(m_mutex);
        if (--m_running == 0) m_idle.notify_all();
    }
    if (!result.ok()) return result.status();
    COLIBRI_TRY(result->status);
    if (result->stop == StopReason::Cancelled) {
        return Status(Code::Cancelled, "the context was freed");
    }
    m_dispatches.fetch_add(1, std::memory_order_relaxed);
    return {};
}

Status colibri_context::setKnob(std::string_view name, const std::string& value) {
    const KnobRow* row = findKnob(name);
    if (!row) {
        return Status(Code::Unsupported, "this build has no knob \"" + std::string(name) + "\"");
    }
    if (!row->live) {
        return Status(Code::Unsupported,
                      std::string(row->name) + " takes effect when a model is loaded",
                      "Give it to colibri_init");
    }
    Result<int64_t> parsed = parseKnobValue(*row, value, m_engine->knobLimits(row->id));
    if (!parsed.ok()) return parsed.status();
    const KnobState state = m_engine->applyKnob(row->id, *parsed);
    // A cache that shrinks is on its way: slots in use by a running step follow.
    if (state.effective == *parsed ||
        (row->id == KnobId::ExpertCacheSize && state.effective > *parsed)) {
        return {};
    }
    return Status(Code::Unsupported,
                  std::string(row->name) + ": requested " + knobValueText(*row, *parsed) +
                      ", effective " + knobValueText(*row, state.effective) + ": " + state.reason);
}

Status colibri_context::bindPrefetchThread(int thread, int core) {
    const KnobState state = m_engine->setPrefetchThreadCore(thread, core);
    if (state.effective == core) return {};
    return Status(Code::Unsupported, "prefetch thread " + std::to_string(thread) + ", core " +
                                         std::to_string(core) + ": " + state.reason);
}

std::optional<KnobState> colibri_context::knob(std::string_view name) const {
    const KnobRow* row = findKnob(name);
    if (!row) return std::nullopt;
    return m_engine->knobState(row->id);
}
