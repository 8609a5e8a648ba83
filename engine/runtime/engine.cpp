// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/engine.h"

#include <algorithm>
#include <cstring>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/runtime/engine_impl.h"

namespace colibri {

namespace {

constexpr size_t kRingEvents = 1 << 15;  // a chunk of prompt rows writes one per row and layer
constexpr size_t kLogitRows = 64;        // rows per forward of the logits command

}  // namespace

Engine::Engine() : m_impl(std::make_unique<Impl>()) {}
Engine::~Engine() = default;

// --- loading ---------------------------------------------------------------------------------

Status Engine::Impl::loadText() {
    if (info.hasTokenizer) {
        Result<std::unique_ptr<Tokenizer>> loaded = Tokenizer::load(info.dir);
        if (loaded.ok()) {
            tokenizer = std::move(*loaded);
        } else if (loaded.status().code() == Code::Unsupported) {
            textReason = loaded.status().message();  // token ids still work
        } else {
            return loaded.status();
        }
    }
    if (info.hasTemplate) {
        const std::filesystem::path path = info.dir / "chat_template.jinja";
        Result<std::string> source = readTextFile(path, 4 << 20);
        if (!source.ok()) return source.status();
        Result<std::unique_ptr<ChatTemplate>> parsed =
            ChatTemplate::parse(*source, path.filename().string());
        if (parsed.ok()) {
            chatTemplate = std::move(*parsed);
        } else if (parsed.status().code() == Code::Unsupported) {
            textReason = parsed.status().message();
        } else {
            return parsed.status();
        }
    }
    return {};
}

Status Engine::Impl::openRouterTable(const EngineOptions& options) {
    std::filesystem::path path = options.routerTable;
    std::error_code ignored;
    if (path.empty()) {
        path = info.dir / kRouterTableFile;
        if (!std::filesystem::exists(path, ignored)) return {};
    }
    Result<std::unique_ptr<TableWatch>> opened =
        TableWatch::open(path, info.config, options.reloadRouterTable);
    if (!opened.ok()) return opened.status();
    tableWatch = std::move(*opened);
    table = tableWatch->table();
    return {};
}

Status Engine::Impl::openStore() {
    StoreOptions o;
    o.cacheSize = knobs->effective(KnobId::ExpertCacheSize);
    o.policy = CachePolicyKind(knobs->effective(KnobId::CachePolicy));
    o.prefetchSource = PrefetchSource(knobs->effective(KnobId::PrefetchSource));
    o.prefetchDepth = knobs->effective(KnobId::PrefetchDepth);
    o.prefetchThreads = knobs->effective(KnobId::PrefetchThreads);
    o.ioMode = IoMode(knobs->effective(KnobId::IoMode));
    o.ioDepth = knobs->effective(KnobId::IoDepth);
    o.linkLimit = knobs->effective(KnobId::LinkLimit);
    o.prepareMemory = true;
    Result<std::unique_ptr<ExpertStore>> opened = ExpertStore::open(info, o, &telemetry);
    if (!opened.ok()) return opened.status();
    store = std::move(*opened);
    return {};
}

void Engine::Impl::note(const std::string& text) {
    if (text.empty()) return;
    Event event{};
    event.type = EventType::Note;
    event.note = {};
    std::strncpy(event.note.text, text.c_str(), sizeof event.note.text - 1);
    ring->write(event);
}

void Engine::Impl::startThreads() {
    contextLength = knobs->effective(KnobId::ContextLength);
    pool = std::make_unique<ThreadPool>(int(knobs->effective(KnobId::ComputeThreads)));
    const ModelConfig& c = info.config;
    const KvShape kv{c.numLayers,
                     c.cachedHeads(),
                     c.cachedKeyDim(),
                     KvType(knobs->effective(KnobId::KvDtype)),
                     c.mla.kvRank > 0 ? c.cachedValueDim() : 0,
                     contextLength};
    ring = telemetry.addRing("scheduler", kRingEvents);
    forward = std::make_unique<Forward>(info, weights, *store, *pool, *kernels, kv, ring);
    // Before the scheduler's thread exists this thread may apply knobs itself: the store and the
    // pool say what is really in force.
    for (const KnobRow& row : knobTable()) {
        const KnobState state = knobs->state(row.id);
        knobs->setState(row.id, row.live ? applyKnob(row.id, state) : state);
    }
    note(startWork->note());
    note(store->warning());
    scheduler = std::make_unique<Scheduler>(
        Scheduler::Setup{&info, tokenizer.get(), store.get(), forward.get(), ring, contextLength,
                         [this] { applyKnobs(); }, [this] { writePrefetchChange(); }, kernels});
    scheduler->runAlone([this] {
        for (const KnobId id : {KnobId::PrefillChunk, KnobId::BatchTimeout, KnobId::MaxBatch}) {
            applyBatching(id, knobs->state(id));
        }
    });
    if (tableWatch) {
        tableWatch->start([this] {
            tableReplaced.store(true);
            scheduler->wake();
        });
    }
}

Result<std::unique_ptr<Engine>> Engine::load(const EngineOptions& options,
                                             const ProgressFn& progress, const CancelFlag* cancel) {
    const auto stage = [&](const char* name) {
        if (progress) progress({name, 0, 0, "bytes"});
        return cancel && cancel->load() ? Status(Code::Cancelled, "loading was cancelled")
                                        : Status();
    };
    if (options.isa) {
        const std::vector<Isa>& have = availableIsas();
        if (std::find(have.begin(), have.end(), *options.isa) == have.end()) {
            return Status(Code::Unsupported,
                          "this processor has no " + std::string(isaName(*options.isa)),
                          "Omit the instruction set to use the best one");
        }
    }
    COLIBRI_TRY(stage("Model description"));
    Result<ContainerInfo> info = openContainer(options.model);
    if (!info.ok()) return info.status();
    std::unique_ptr<Engine> engine(new Engine());
    Impl& m = *engine->m_impl;
    m.info = std::move(*info);
    m.kernels = options.isa ? &kernelsFor(*options.isa) : &bestKernels();
    m.knobs = std::make_unique<EngineKnobs>(m.info);
    m.knobs->start(options.knobs);
    COLIBRI_TRY(stage("Tokenizer"));
    COLIBRI_TRY(m.loadText());
    COLIBRI_TRY(m.openRouterTable(options));
    COLIBRI_TRY(stage("Dense weights"));
    Result<std::unique_ptr<DenseWeights>> dense = DenseWeights::load(m.info, progress, cancel);
    if (!dense.ok()) return dense.status();
    m.dense = std::move(*dense);
    COLIBRI_TRY(m.weights.bind(m.info, *m.dense));
    COLIBRI_TRY(stage("Expert store"));
    COLIBRI_TRY(m.openStore());
    COLIBRI_TRY(stage("Disk and memory rates"));
    m.startWork =
        std::make_unique<StartWork>(m.info, *m.store, options.warmStart, options.calibrate, cancel);
    COLIBRI_TRY(stage("Threads"));
    m.startThreads();
    return engine;
}

// --- knobs -----------------------------------------------------------------------------------

KnobLimits Engine::knobLimits(KnobId id) const {
    return m_impl->knobs->limits(id);
}

std::string Engine::knobProblem(KnobId id, int64_t value) const {
    return m_impl->problem(id, value);
}

void Engine::setKnob(KnobId id, int64_t value) {
    m_impl->knobs->request(id, value);
    m_impl->scheduler->wake();
}

KnobState Engine::applyKnob(KnobId id, int64_t value) {
    const uint64_t number = m_impl->knobs->request(id, value);
    m_impl->scheduler->wake();
    m_impl->knobs->awaitApplied(id, number);
    return knobState(id);
}

KnobState Engine::setPrefetchThreadCore(int thread, int core) {
    KnobState state = m_impl->store->setPrefetchThreadCore(thread, core);
    m_impl->coresChanged = true;
    m_impl->scheduler->wake();
    return state;
}

// --- requests --------------------------------------------------------------------------------

Result<std::vector<int32_t>> Engine::encodeChat(const nlohmann::ordered_json& messages,
                                                const ChatOptions& options) const {
    const Impl& m = *m_impl;
    if (!m.tokenizer) {
        return Status(Code::Unsupported, "this model has no tokenizer", "Give token ids instead");
    }
    const ChatTemplate* chat =
        options.chatTemplate ? options.chatTemplate.get() : m.chatTemplate.get();
    if (!chat) {
        return Status(Code::Unsupported, "this model has no chat template",
                      "Use plain generation instead");
    }
    nlohmann::ordered_json context;
    context["messages"] = messages;
    context["add_generation_prompt"] = true;
    const auto text = [&](int32_t id) {
        return id >= 0 ? m.tokenizer->idToToken(id) : std::string();
    };
    context["bos_token"] = text(m.info.config.bosId);
    context["eos_token"] =
        m.info.config.eosIds.empty() ? std::string() : text(m.info.config.eosIds.front());
    COLIBRI_TRY(checkTemplateArgs(options.templateArgs));
    for (const auto& [name, value] : options.templateArgs.items()) context[name] = value;
    Result<TracedText> prompt = chat->renderTraced(context, {});
    if (!prompt.ok()) return prompt.status();
    return options.specialInMessages ? m.tokenizer->encode(prompt->text)
                                     : m.tokenizer->encode(*prompt);
}

Result<uint64_t> Engine::submit(Request request, RequestCallbacks callbacks) {
    return m_impl->scheduler->submit(std::move(request), std::move(callbacks));
}

void Engine::cancel(uint64_t request) {
    m_impl->scheduler->cancel(request);
}
int Engine::activeRequests() const {
    return m_impl->scheduler->activeRequests();
}
BatchStats Engine::batchStats() const {
    return m_impl->scheduler->stats();
}

Result<Engine::LogitsResult> Engine::logits(const std::vector<int32_t>& tokens) {
    Result<LogitsResult> result = LogitsResult{};
    m_impl->scheduler->runAlone([&] { result = m_impl->logits(tokens); });
    return result;
}

Result<Engine::LogitsResult> Engine::Impl::logits(const std::vector<int32_t>& tokens) {
    const int64_t vocab = info.config.vocabSize;
    if (tokens.empty()) return Status(Code::InvalidArgument, "no tokens given");
    for (const int32_t id : tokens) {
        if (id < 0 || id >= vocab) {
            return Status(Code::InvalidArgument,
                          "token " + std::to_string(id) + " is not in the vocabulary",
                          "Valid ids are 0.." + std::to_string(vocab - 1));
        }
    }
    if (int64_t(tokens.size()) > contextLength) {
        return Status(Code::InvalidArgument,
                      formatCount(int64_t(tokens.size())) + " tokens; the context holds " +
                          formatCount(contextLength),
                      "Load the model with a larger context length");
    }
    KvCache memory(forward->kvShape(), kvBlocksFor(contextLength));
    KvSequence sequence;
    if (!memory.grow(sequence, int64_t(tokens.size()))) {
        return Status(Code::OutOfMemory, "no memory for the KV cache");
    }
    LogitsResult result;
    RoutingCapture capture;
    for (size_t from = 0; from < tokens.size(); from += kLogitRows) {
        std::vector<BatchRow> rows(std::min(kLogitRows, tokens.size() - from));
        for (size_t i = 0; i < rows.size(); ++i) {
            rows[i].sequence = &sequence;
            rows[i].token = tokens[from + i];
            rows[i].position = int64_t(from + i);
            rows[i].wantLogits = rows[i].prefill = true;
        }
        forward->run(rows, nullptr, &capture);
        for (const BatchRow& row : rows) {
            if (!row.status.ok()) return row.status;
            result.logits.emplace_back(row.logits, row.logits + vocab);
        }
    }
    for (int64_t i = 0; i < weights.moeLayers(); ++i) {
        RoutingCapture::Layer& layer = capture.layers[size_t(i)];
        result.routing.push_back(
            {weights.layerOfMoe(i), std::move(layer.experts), std::move(layer.weights)});
    }
    return result;
}

// --- the rest --------------------------------------------------------------------------------

const ContainerInfo& Engine::info() const {
    return m_impl->info;
}
const Tokenizer* Engine::tokenizer() const {
    return m_impl->tokenizer.get();
}
const ChatTemplate* Engine::chatTemplate() const {
    return m_impl->chatTemplate.get();
}

const std::string& Engine::textReason() const {
    return m_impl->textReason;
}
Isa Engine::isa() const {
    return m_impl->kernels->isa;
}
int64_t Engine::contextLength() const {
    return m_impl->contextLength;
}
int64_t Engine::bytesPerToken() const {
    return m_impl->weights.bytesPerToken();
}
const ExpertStore& Engine::store() const {
    return *m_impl->store;
}
Calibration Engine::calibration() const {
    return m_impl->startWork->calibration();
}
RouterStats Engine::routerStats() const {
    RouterStats s;
    if (!m_impl->tableWatch) return s;
    s.table = true;
    s.compared = m_impl->forward->moe().compared();
    s.agreed = m_impl->forward->moe().agreed();
    s.reloads = m_impl->tableWatch->reloads();
    s.notice = m_impl->tableWatch->notice();
    return s;
}
Telemetry& Engine::telemetry() {
    return m_impl->telemetry;
}

EngineMemory Engine::memory() const {
    const Impl& m = *m_impl;
    EngineMemory memory;
    memory.parts.dense = m.dense->bytes() + m.weights.routerBytes();
    memory.parts.expertCache = m.store->stats().slotBytes;
    memory.parts.kvCache = m.scheduler->kvBytes();
    memory.parts.buffers = m.scratchBytes.load(std::memory_order_relaxed);
    memory.parts.recording = int64_t(kRingEvents * sizeof(Event));
    memory.processRss = processRss();
    return memory;
}

EnginePause::EnginePause(Engine& engine) : m_engine(engine) {
    m_engine.m_impl->scheduler->pause();
}

EnginePause::~EnginePause() {
    m_engine.m_impl->scheduler->resume();
}

}  // namespace colibri
