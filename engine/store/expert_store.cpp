// SPDX-License-Identifier: Apache-2.0
#include "engine/store/expert_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <system_error>
#include <type_traits>

#include "engine/base/format.h"
#include "engine/store/store_core.h"

namespace colibri {

// ---- StoreCore: start, end, small settings ----

StoreCore::StoreCore(StoreShape shape, const StoreOptions& options, Telemetry* telemetry,
                     StoreParts parts)
    : m_shape(std::move(shape)),
      m_parts(std::move(parts)),
      m_telemetry(telemetry),
      m_entries(size_t(moeLayers() * experts())),
      m_residency(new std::atomic<uint8_t>[m_entries.size()]()),
      m_policyKind(options.policy),
      m_prepares(options.prepareMemory),
      m_epochs(size_t(moeLayers())),
      m_hints(size_t(moeLayers())),
      m_hintNs(size_t(moeLayers())),
      m_source(options.prefetchSource),
      m_depth(std::clamp<int64_t>(options.prefetchDepth, 0, 4)),
      m_prefetchThreads(std::clamp<int64_t>(options.prefetchThreads, 0, kMaxPrefetchThreads)),
      m_ioDepth(std::clamp<int64_t>(options.ioDepth, 1, kMaxDepth)),
      m_ioMode(options.ioMode),
      m_workers(kMaxPrefetchThreads) {
    for (int64_t bytes : m_shape.recordBytes) m_slotBytes = std::max(m_slotBytes, bytes);
    m_requestedSize = options.cacheSize;
    const int64_t size = std::clamp<int64_t>(options.cacheSize, 1, std::max<int64_t>(1, experts()));
    if (size != options.cacheSize)
        m_sizeReason = "the range is 1 to " + formatCount(experts()) + " experts per layer";
    m_capacity = size * moeLayers();
    m_policy = makePolicy(m_policyKind, int64_t(m_entries.size()), m_capacity);
    m_lookups.resize(m_entries.size());
    for (std::vector<uint32_t>* keys : {&m_pending, &m_needSlot, &m_demand, &m_landed})
        keys->reserve(m_entries.size());
    m_ready.reserve(m_entries.size());
    for (std::vector<uint32_t>& hints : m_hints) hints.reserve(size_t(experts()));
    endPause();
    sched_getaffinity(0, sizeof m_allowedCores, &m_allowedCores);
    m_link.setRate(std::max<int64_t>(0, options.linkLimit) * 1'000'000, m_parts.clock->now());
}

Status StoreCore::start() {
    const int64_t free = m_parts.memory->freeBytes();
    if (free > 0 && m_capacity * m_slotBytes > free)
        return {Code::OutOfMemory,
                "The expert cache needs " + formatGiB(double(m_capacity * m_slotBytes)) + ", " +
                    formatGiB(double(free)) + " are free",
                "Choose a smaller cache size"};
    if (m_entries.empty()) return {};
    if (m_telemetry != nullptr) m_ring = m_telemetry->addRing("expert-store");
    const auto done = [this](uint32_t key, const ReadOutcome& outcome) { landed(key, outcome); };
    COLIBRI_TRY(m_parts.queue->start(m_shape, *m_parts.clock, m_ioDepth, done));
    try {
        m_linkThread = std::thread([this] { linkLoop(); });
    } catch (const std::system_error& error) {
        return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
    }
    std::lock_guard start(m_startMutex);
    COLIBRI_TRY(openLanes(m_ioDepth));
    if (m_prepares) COLIBRI_TRY(startMemoryThread());
    return startWorkers(m_prefetchThreads);
}

StoreCore::~StoreCore() {
    {
        Lock lock(m_mutex);
        m_stopping = true;
        flushOutcome(m_parts.clock->now(), true);
        m_prefetchCv.notify_all();
        m_linkCv.notify_all();
        m_moverCv.notify_all();
        m_memoryCv.notify_all();
        m_doneCv.notify_all();
    }
    for (Worker& worker : m_workers)
        if (worker.thread.joinable()) worker.thread.join();
    if (m_linkThread.joinable()) m_linkThread.join();
    if (m_memoryThread.joinable()) m_memoryThread.join();
    if (m_moverThread.joinable()) m_moverThread.join();
    if (m_warmThread.joinable()) m_warmThread.join();
    m_parts.queue->stop();
    for (Entry& e : m_entries)
        if (e.memory != nullptr) m_parts.memory->free(e.memory, m_slotBytes);
    for (std::byte* memory : m_ready) m_parts.memory->free(memory, m_slotBytes);
    for (std::byte* memory : m_freed) m_parts.memory->free(memory, m_slotBytes);
}

KnobState StoreCore::setPolicy(CachePolicyKind policy) {
    Lock lock(m_mutex);
    if (policy != m_policyKind) {
        auto next = makePolicy(policy, int64_t(m_entries.size()), m_capacity);
        next->adopt(m_policy->order());
        m_policy = std::move(next);
        m_policyKind = policy;
    }
    return {int64_t(policy), int64_t(policy), {}};
}

std::string StoreCore::ioModeProblem(IoMode mode) const {
    return mode == IoMode::Direct && !m_parts.directWorks
               ? "the file system does not offer direct reads"
               : "";
}

KnobState StoreCore::setIoMode(IoMode mode) {
    KnobState state{int64_t(mode), int64_t(mode), ioModeProblem(mode)};
    if (!state.reason.empty()) state.effective = int64_t(IoMode::Buffered);
    Lock lock(m_mutex);
    m_ioMode = IoMode(state.effective);
    return state;
}

KnobState StoreCore::setIoDepth(int64_t reads) {
    std::lock_guard start(m_startMutex);
    KnobState state{reads, std::clamp<int64_t>(reads, 1, kMaxDepth), {}};
    if (state.effective != reads)
        state.reason = "the range is 1 to " + std::to_string(kMaxDepth) + " reads";
    if (m_entries.empty()) return state;
    const Status status = openLanes(state.effective);
    Lock lock(m_mutex);
    if (!status.ok()) {
        state.effective = m_ioDepth;
        state.reason = status.message();
    }
    m_ioDepth = state.effective;
    startReads();
    return state;
}

std::string StoreCore::warning() {
    Lock lock(m_mutex);
    const int64_t token = moeLayers() * m_shape.topK;
    if (m_capacity >= token) return {};
    return formatCount(m_capacity) + " expert slots hold less than the " + formatCount(token) +
           " experts that one token uses (" + formatCount(moeLayers()) + " layers of " +
           formatCount(m_shape.topK) + "): with lru nearly every look-up misses. " +
           "Choose a cache size of at least " + formatCount(m_shape.topK);
}

std::string StoreCore::readPath() {
    Lock lock(m_mutex);
    const bool direct = m_ioMode == IoMode::Direct;
    const std::string problem = ioModeProblem(IoMode::Direct);
    const std::string why = direct || problem.empty() ? "" : ": " + problem;
    return m_parts.queue->text() + ", " + (direct ? "direct" : "buffered") + why;
}

KnobState StoreCore::setLinkLimit(int64_t megabytesPerSecond) {
    KnobState state{megabytesPerSecond, std::clamp<int64_t>(megabytesPerSecond, 0, 100'000), {}};
    if (state.effective != megabytesPerSecond) state.reason = "the range is 0 to 100,000 MB/s";
    Lock lock(m_mutex);
    m_link.setRate(state.effective * 1'000'000, m_parts.clock->now());
    m_linkCv.notify_all();
    wakePrefetch();
    return state;
}

StoreStats StoreCore::stats() {
    Lock lock(m_mutex);
    flushOutcome(m_parts.clock->now(), false);
    StoreStats stats = m_stats;
    for (const PrefetchCounts& counts : stats.bySource) {
        stats.prefetchIssued += counts.issued;
        stats.prefetchUseful += counts.useful;
        stats.prefetchLate += counts.late;
        stats.prefetchWasted += counts.wasted;
    }
    stats.slotCount = m_capacity;
    stats.slotsUsed = m_used;
    stats.slotsReady = int64_t(m_ready.size());
    stats.slotsToPrepare = m_prepares && !m_memoryFull ? slotsToPrepare() : 0;
    stats.slotBytes = (m_used + stats.slotsReady + m_preparing) * m_slotBytes;
    return stats;
}

void StoreCore::residency(std::vector<Residency>& out) const {
    out.resize(m_entries.size());
    for (size_t i = 0; i < out.size(); ++i)
        out[i] = Residency(m_residency[i].load(std::memory_order_relaxed));
}

std::vector<uint32_t> StoreCore::order() {
    Lock lock(m_mutex);
    return m_policy->order();
}

// ---- ExpertStore ----

Pin::Pin(Pin&& other) noexcept
    : m_store(std::exchange(other.m_store, nullptr)),
      m_record(std::exchange(other.m_record, nullptr)),
      m_key(other.m_key) {}

Pin& Pin::operator=(Pin&& other) noexcept {
    if (this == &other) return *this;
    release();
    m_store = std::exchange(other.m_store, nullptr);
    m_record = std::exchange(other.m_record, nullptr);
    m_key = other.m_key;
    return *this;
}

void Pin::release() {
    if (m_store != nullptr) m_store->m_core->unpin(m_key);
    m_store = nullptr;
    m_record = nullptr;
}

ExpertStore::ExpertStore(std::unique_ptr<StoreCore> core) : m_core(std::move(core)) {}
ExpertStore::~ExpertStore() = default;

Result<std::unique_ptr<ExpertStore>> ExpertStore::open(const ContainerInfo& info,
                                                       const StoreOptions& options,
                                                       Telemetry* telemetry) {
    auto reader = FileReader::open(info);
    if (!reader) return reader.status();
    StoreParts parts;
    parts.directWorks = (*reader)->directWorks();
    parts.queue = makeReadQueue(std::move(*reader));
    return StoreFactory::open(StoreFactory::shapeOf(info), options, telemetry, std::move(parts));
}

StoreShape StoreFactory::shapeOf(const ContainerInfo& info) {
    StoreShape shape;
    shape.experts = info.config.numExperts;
    shape.topK = info.config.topK;
    for (const ExpertLayer& layer : info.expertLayers) {
        shape.layers.push_back(layer.layer);
        shape.recordBytes.push_back(layer.recordBytes);
        shape.files.push_back(layer.file);
    }
    return shape;
}

Result<std::unique_ptr<ExpertStore>> StoreFactory::open(StoreShape shape,
                                                        const StoreOptions& options,
                                                        Telemetry* telemetry, StoreParts parts) {
    for (size_t i = 0; i < shape.recordBytes.size(); ++i)
        if (shape.recordBytes[i] <= 0 || shape.recordBytes[i] % kRecordAlign != 0)
            return Status(Code::BadInput, shape.files[i] + ": expert records of " +
                                              formatCount(shape.recordBytes[i]) +
                                              " bytes; a multiple of " + formatCount(kRecordAlign) +
                                              " is needed");
    if (parts.memory == nullptr) parts.memory = std::make_unique<SlotMemory>();
    if (parts.numa == nullptr) parts.numa = Numa::system();
    if (parts.clock == nullptr) parts.clock = std::make_unique<Clock>();
    StoreOptions effective = options;
    if (!parts.directWorks) effective.ioMode = IoMode::Buffered;
    auto core =
        std::make_unique<StoreCore>(std::move(shape), effective, telemetry, std::move(parts));
    COLIBRI_TRY(core->start());
    return std::unique_ptr<ExpertStore>(new ExpertStore(std::move(core)));
}

void StoreFactory::settle(ExpertStore& store) {
    store.m_core->settle();
}
std::vector<uint32_t> StoreFactory::order(const ExpertStore& store) {
    return store.m_core->order();
}

void ExpertStore::request(int64_t moeLayer, std::span<const uint16_t> experts,
                          std::vector<Ticket>& out) {
    m_core->request(moeLayer, experts, out);
}
bool ExpertStore::ready(const Ticket& ticket) const {
    return m_core->ready(ticket);
}

Result<Pin> ExpertStore::wait(const Ticket& ticket, const std::atomic<bool>* abort) {
    Pin pin;
    auto record = m_core->wait(ticket, pin.m_key, abort);
    if (!record) return record.status();
    pin.m_store = this;
    pin.m_record = *record;
    return pin;
}

void ExpertStore::wakeWaiters() {
    m_core->wakeWaiters();
}

void ExpertStore::drop(const Ticket& ticket) {
    m_core->drop(ticket);
}
void ExpertStore::hint(int64_t moeLayer, std::span<const uint16_t> experts) {
    m_core->hint(moeLayer, experts);
}
KnobState ExpertStore::setCacheSize(int64_t n) {
    return m_core->setCacheSize(n);
}
KnobState ExpertStore::cacheSizeState() const {
    return m_core->cacheSizeState();
}
KnobState ExpertStore::setPolicy(CachePolicyKind policy) {
    return m_core->setPolicy(policy);
}
KnobState ExpertStore::setPrefetchThreads(int64_t n) {
    return m_core->setPrefetchThreads(n);
}
KnobState ExpertStore::setPrefetch(PrefetchSource source, int64_t depth) {
    return m_core->setPrefetch(source, depth);
}
KnobState ExpertStore::setIoMode(IoMode mode) {
    return m_core->setIoMode(mode);
}

std::string ExpertStore::ioModeProblem(IoMode mode) const {
    return m_core->ioModeProblem(mode);
}
KnobState ExpertStore::setIoDepth(int64_t reads) {
    return m_core->setIoDepth(reads);
}
KnobState ExpertStore::setLinkLimit(int64_t rate) {
    return m_core->setLinkLimit(rate);
}
StoreStats ExpertStore::stats() const {
    return m_core->stats();
}
KnobState ExpertStore::prefetchState() const {
    return m_core->prefetchState();
}
std::string ExpertStore::warning() const {
    return m_core->warning();
}
Status ExpertStore::warm(std::vector<uint32_t> keys) {
    return m_core->warm(std::move(keys));
}
std::vector<uint32_t> ExpertStore::lookupCounts() const {
    return m_core->lookupCounts();
}
void ExpertStore::setNuma(NumaMode mode, int64_t node) {
    m_core->setNuma(mode, node);
}
KnobState ExpertStore::numaModeState() const {
    return m_core->numaModeState();
}

std::string ExpertStore::numaModeProblem(NumaMode mode) const {
    return m_core->numaModeProblem(mode);
}
KnobState ExpertStore::numaNodeState() const {
    return m_core->numaNodeState();
}
KnobState ExpertStore::setPrefetchThreadCore(int64_t thread, int64_t core) {
    return m_core->setPrefetchThreadCore(thread, core);
}
KnobState ExpertStore::prefetchThreadCore(int64_t thread) const {
    return m_core->prefetchThreadCore(thread);
}
std::vector<int> ExpertStore::boundCores() const {
    return m_core->boundCores();
}
std::string ExpertStore::readPath() const {
    return m_core->readPath();
}
void ExpertStore::residency(std::vector<Residency>& out) const {
    m_core->residency(out);
}
int64_t ExpertStore::experts() const {
    return m_core->experts();
}
int64_t ExpertStore::moeLayers() const {
    return m_core->moeLayers();
}

namespace {

// Counter by counter, whatever they are called: none can be forgotten.
template <typename Operation>
StoreCounters combined(const StoreCounters& a, const StoreCounters& b, Operation operation) {
    static_assert(std::has_unique_object_representations_v<StoreCounters> &&
                  sizeof(StoreCounters) % sizeof(uint64_t) == 0);
    using Words = std::array<uint64_t, sizeof(StoreCounters) / sizeof(uint64_t)>;
    Words words = std::bit_cast<Words>(a);
    const Words others = std::bit_cast<Words>(b);
    for (size_t i = 0; i < words.size(); ++i) words[i] = operation(words[i], others[i]);
    return std::bit_cast<StoreCounters>(words);
}

}  // namespace

StoreStats difference(const StoreStats& after, const StoreStats& before) {
    StoreStats out = after;
    static_cast<StoreCounters&>(out) = combined(after, before, std::minus());
    return out;
}

StoreCounters& operator+=(StoreCounters& to, const StoreCounters& more) {
    return to = combined(to, more, std::plus());
}

}  // namespace colibri
