// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/base/machine.h"
#include "profiler/gpu/gpu_source.h"
#include "profiler/machine/machine_profile.h"
#include "profiler/metrics/effect.h"
#include "profiler/metrics/metrics.h"
#include "profiler/session/session_writer.h"

namespace colibri {
namespace {

// After kQuietSeconds without activity, snapshots and samples are taken less often.
constexpr double kIdleSeconds = 0.25, kQuietSeconds = 2;
constexpr double kCommitSeconds = 0.4;  // a killed process loses at most this and one drain
constexpr double kSampleSeconds = 0.1;  // series points in the session file
constexpr double kKnobSeconds = 0.25;   // knob states

}  // namespace

// Locks, in order: work (one drain at a time, and the writer; may wait for the disk), data (metrics
// and pending notes; never held over I/O, so the window may take it), published (the pointer to the
// newest snapshot).
struct Recorder::Impl {
    RecorderSource source;
    RecorderOptions options;
    uint64_t startNs = monotonicNs();
    std::unique_ptr<GpuSource> gpu = GpuSource::probe({.pmSampling = options.pmSampling});

    const Status pmRefusal =
        options.pmSampling ? gpu->ladder()[size_t(GpuRungId::PmSampling)].refusal : Status();

    std::mutex work;
    std::unique_ptr<SessionWriter> writer;  // null: not recording
    Status fileStatus;
    std::vector<Event> events;
    std::vector<GpuSpan> gpuSpans;
    uint64_t recorded = 0, generation = 0;
    size_t threads = 0;  // in the file
    double lastCommit = 0, lastSample = 0;
    std::array<KnobState, kKnobCount> knobs;
    double knobsAt = 0;
    uint64_t cpuNs = 0;  // CPU time of the recorder's thread

    mutable std::mutex data;
    Metrics metrics;
    std::vector<std::pair<double, std::string>> notes;  // not yet in the session file

    // The newest step of each running drag; only the end of a drag is written. Guarded by work.
    std::array<std::optional<Event>, kKnobCount> dragged;

    mutable std::mutex published;
    std::shared_ptr<const Snapshot> newest = std::make_shared<Snapshot>();

    std::condition_variable wake;
    std::mutex wakeMutex;
    bool stopping = false;
    std::thread thread;

    Impl(RecorderSource s, RecorderOptions o)
        : source(std::move(s)),
          options(std::move(o)),
          metrics(int64_t(source.moeLayers.size()), source.experts, source.moeLayers) {}

    double seconds(uint64_t ns) const { return (double(ns) - double(startNs)) / 1e9; }

    void readKnobs(double now) {
        for (const KnobRow& row : knobTable()) knobs[size_t(row.id)] = source.knobState(row.id);
        knobsAt = now;
    }

    // Writes the initial states as events of the start. No other thread runs yet.
    Status writeKnobs() {
        readKnobs(0);
        for (const KnobRow& row : knobTable()) {
            const KnobState& state = knobs[size_t(row.id)];
            Event event{};
            event.type = EventType::KnobChanged;
            event.timeNs = startNs;
            event.knob.knob = uint8_t(row.id);
            event.knob.requested = state.requested;
            event.knob.effective = state.effective;
            state.reason.copy(event.knob.reason, sizeof event.knob.reason - 1);
            metrics.add(event, 0);
            if (writer) COLIBRI_TRY(writer->write(event, 0));
        }
        auto first = std::make_shared<Snapshot>();
        first->knobs = knobs;
        newest = std::move(first);
        return {};
    }

    // REQUIRES: work is held.
    GpuPoint readGpu() {
        gpuSpans.clear();
        if (source.takeGpuSpans) source.takeGpuSpans(gpuSpans);
        const GpuReading reading = gpu->read();
        return {.sm = reading.smUtilisation * 100,
                .dram = reading.dramThroughput * 100,
                .busy = reading.busy * 100,
                .noCounters = gpu->smReason(),
                .noGpu = gpu->busyReason()};
    }

    // REQUIRES: work is held.
    void drain(bool last = false) {
        source.telemetry->drain(events);
        auto snapshot = std::make_shared<Snapshot>();
        const double now = seconds(monotonicNs());
        const GpuPoint gpuNow = readGpu();
        std::vector<std::pair<double, std::string>> newNotes;
        std::vector<Marker> decided;
        std::array<bool, kKnobCount> held{};
        {
            std::lock_guard lock(data);
            for (const Event& event : events) metrics.add(event, seconds(event.timeNs));
            metrics.tick(now, double(processRss()), gpuNow);
            metrics.fill(*snapshot);
            newNotes.swap(notes);
            if (last) metrics.finish();
            decided = metrics.takeDecided();
            for (size_t i = 0; i < held.size(); ++i) held[i] = metrics.held(KnobId(i));
        }
        recorded += events.size();
        snapshot->generation = ++generation;
        snapshot->store = source.stats();
        source.residency(snapshot->residency);
        if (now - knobsAt >= kKnobSeconds || last) readKnobs(now);
        snapshot->knobs = knobs;
        snapshot->knobsAt = knobsAt;
        snapshot->gpuClocksLocked = gpu->clocksLocked();
        snapshot->gpuSource = gpu->provenance();
        snapshot->eventsDropped = source.telemetry->dropped();
        snapshot->eventsRecorded = recorded;
        snapshot->figures.recordingCost =
            now > 0 ? double(cpuNs) / 1e9 / now / std::max(1, logicalCpus()) : NAN;
        if (writer) {
            if (Status status = record(*snapshot, newNotes, decided, held, now, last);
                !status.ok()) {
                fileStatus = status;
                writer.reset();
            }
        }
        if (writer) {
            snapshot->sessionFile = options.sessionFile.string();
            snapshot->sessionBytes = writer->fileBytes();
        }
        snapshot->sessionError = fileStatus.text();
        std::lock_guard lock(published);
        newest = std::move(snapshot);
    }

    // The threads that write events, as far as the file does not have them.
    Status recordThreads() {
        const std::vector<std::string> names = source.telemetry->threadNames();
        for (; threads < names.size(); ++threads)
            COLIBRI_TRY(writer->thread(int64_t(threads), names[threads]));
        return {};
    }

    // REQUIRES: work is held and writer is set.
    Status record(const Snapshot& snapshot,
                  const std::vector<std::pair<double, std::string>>& newNotes,
                  const std::vector<Marker>& decided, const std::array<bool, kKnobCount>& held,
                  double now, bool last) {
        COLIBRI_TRY(recordThreads());
        for (const Event& event : events) {
            const bool knob = event.type == EventType::KnobChanged && event.knob.knob < kKnobCount;
            if (knob && held[event.knob.knob]) {
                dragged[event.knob.knob] = event;
                continue;
            }
            if (knob) dragged[event.knob.knob].reset();
            COLIBRI_TRY(writer->write(event, seconds(event.timeNs)));
        }
        for (size_t i = 0; i < dragged.size(); ++i) {
            if (!dragged[i] || (held[i] && !last)) continue;
            COLIBRI_TRY(writer->write(*dragged[i], seconds(dragged[i]->timeNs)));
            dragged[i].reset();
        }
        for (const GpuSpan& span : gpuSpans)
            COLIBRI_TRY(writer->gpuSpan(span, seconds(span.startNs)));
        for (const auto& [t, text] : newNotes) COLIBRI_TRY(writer->mark(t, "note", text));
        for (const Marker& m : decided)
            COLIBRI_TRY(writer->mark(m.t, "effect", m.label + ": " + effectText(m)));
        if (now - lastSample >= kSampleSeconds) {
            lastSample = now;
            COLIBRI_TRY(writer->sample(snapshot, now));
        }
        if (now - lastCommit >= kCommitSeconds) {
            lastCommit = now;
            COLIBRI_TRY(writer->commit());
        }
        return {};
    }

    // An allocation failure loses the drained events. The next drain may succeed.
    template <typename Body>
    void guarded(const Body& body) {
        try {
            body();
        } catch (const std::bad_alloc&) {
            fileStatus = {Code::OutOfMemory, "out of memory"};
        }
    }

    void run() {
        pthread_setname_np(pthread_self(), "recorder");
        std::unique_lock lock(wakeMutex);
        const std::chrono::duration<double> busy(1 / options.rate);
        const auto idle = std::max(busy, std::chrono::duration<double>(kIdleSeconds));
        double quietFor = 0;
        while (!wake.wait_for(lock, quietFor < kQuietSeconds ? busy : idle,
                              [this] { return stopping; })) {
            lock.unlock();
            {
                std::lock_guard guard(work);
                guarded([this] { drain(); });
                cpuNs = threadTimes().cpuNs;
                quietFor = events.empty() ? quietFor + busy.count() : 0;
            }
            lock.lock();
        }
    }
};

namespace {

// The measured rates of the machine. One that is unknown has no entry.
void addRates(std::vector<std::pair<std::string, std::string>>& meta, const Calibration& rates) {
    const auto add = [&](const char* key, double value) {
        if (value > 0) meta.emplace_back(key, std::to_string(int64_t(value)));
    };
    add("disk_bytes_per_s", rates.diskBytesPerSecond);
    add("memory_bytes_per_s", rates.memoryBytesPerSecond);
    add("rates_measured_at", double(rates.measuredAt));
}

// What `colibri diagnose --measure` measured on this machine: the rate of the kernels for the
// experts' weights, and the memory of other NUMA nodes.
void addProfile(std::vector<std::pair<std::string, std::string>>& meta, const ContainerInfo& info) {
    const std::optional<MachineProfile> profile = keptProfile();
    if (!profile) return;
    if (const double share = profile->remoteMemoryShare(); share > 0)
        meta.emplace_back("remote_memory_share", std::to_string(share));
    if (info.expertLayers.empty()) return;
    const auto* const kernel = profile->kernel(info.expertLayers.front().types.w1);
    if (kernel != nullptr && kernel->weightBytesPerSecond > 0)
        meta.emplace_back("kernel_bytes_per_s",
                          std::to_string(int64_t(kernel->weightBytesPerSecond)));
}

}  // namespace

RecorderSource recorderSource(Engine& engine) {
    RecorderSource source;
    source.telemetry = &engine.telemetry();
    source.stats = [&engine] { return engine.store().stats(); };
    source.residency = [&engine](std::vector<Residency>& out) { engine.store().residency(out); };
    source.knobState = [&engine](KnobId id) { return engine.knobState(id); };
    const ModelConfig& config = engine.info().config;
    for (int64_t layer = 0; layer < config.numLayers; ++layer) {
        if (config.moeLayer[size_t(layer)]) source.moeLayers.push_back(layer);
    }
    source.experts = config.numExperts;
    source.meta = {{"model", config.name},
                   {"model_dir", engine.info().dir.string()},
                   {"model_fingerprint", engine.info().fingerprint},
                   {"family", config.family},
                   {"layers", std::to_string(config.numLayers)},
                   {"experts", std::to_string(config.numExperts)},
                   {"top_k", std::to_string(config.topK)},
                   {"expert_bytes", std::to_string(engine.info().expertRecordBytes())},
                   {"machine", machineFingerprint()},
                   {"processor", processorName()},
                   {"cores", std::to_string(physicalCores())},
                   {"memory_bytes", std::to_string(memoryTotal())},
                   {"numa_nodes", std::to_string(numaNodes())},
                   {"isa", std::string(isaName(engine.isa()))},
                   {"version", COLIBRI_VERSION},
                   {"context_length", std::to_string(engine.contextLength())},
                   {"bytes_per_token", std::to_string(engine.bytesPerToken())},
                   {"read_path", engine.store().readPath()}};
    addRates(source.meta, engine.calibration());
    addProfile(source.meta, engine.info());
    return source;
}

Recorder::Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::start(RecorderSource source,
                                                  const RecorderOptions& options) {
    auto recorder = std::unique_ptr<Recorder>(new Recorder);
    recorder->m_impl = std::make_unique<Impl>(std::move(source), options);
    Impl& impl = *recorder->m_impl;
    // Times of a session with locked clocks are not those of other sessions.
    if (impl.gpu->available()) impl.source.meta.emplace_back("gpu", impl.gpu->name());
    if (impl.gpu->clocksLocked()) impl.source.meta.emplace_back("gpu_clocks_locked", "yes");
    if (!options.sessionFile.empty()) {
        auto writer =
            SessionWriter::create(options.sessionFile, impl.source.meta, options.mostSessionBytes);
        if (!writer) return writer.status();
        impl.writer = std::move(*writer);
    }
    COLIBRI_TRY(impl.writeKnobs());
    impl.thread = std::thread([&impl] { impl.run(); });
    return recorder;
}

Result<std::unique_ptr<Recorder>> Recorder::start(Engine& engine, const RecorderOptions& options) {
    return start(recorderSource(engine), options);
}

Recorder::~Recorder() {
    if (m_impl) (void)finish();
}

Status Recorder::finish() {
    if (!m_impl->thread.joinable()) return m_impl->fileStatus;
    {
        std::lock_guard lock(m_impl->wakeMutex);
        m_impl->stopping = true;
    }
    m_impl->wake.notify_all();
    m_impl->thread.join();
    std::lock_guard lock(m_impl->work);
    m_impl->guarded([this] {
        m_impl->drain(true);
        if (!m_impl->writer) return;
        m_impl->fileStatus = m_impl->writer->finish();
        m_impl->writer.reset();
    });
    return m_impl->fileStatus;
}

std::shared_ptr<const Snapshot> Recorder::snapshot() const {
    std::lock_guard lock(m_impl->published);
    return m_impl->newest;
}

void Recorder::hold(KnobId knob) {
    std::lock_guard lock(m_impl->data);
    m_impl->metrics.hold(knob);
}

void Recorder::release(KnobId knob, int64_t requested) {
    std::lock_guard lock(m_impl->data);
    m_impl->metrics.release(knob, requested);
}

void Recorder::note(const std::string& text) {
    const double now = m_impl->seconds(monotonicNs());
    std::lock_guard lock(m_impl->data);
    m_impl->metrics.note(now, text);
    m_impl->notes.emplace_back(now, text);
}

Histogram Recorder::itlBetween(double t0, double t1) const {
    std::lock_guard lock(m_impl->data);
    return m_impl->metrics.itlBetween(t0, t1);
}

Histogram Recorder::expertLoadBetween(double t0, double t1) const {
    std::lock_guard lock(m_impl->data);
    return m_impl->metrics.expertLoadBetween(t0, t1);
}

Status Recorder::flush() {
    std::lock_guard lock(m_impl->work);
    m_impl->lastSample = m_impl->lastCommit = -1e9;
    m_impl->drain();
    return m_impl->fileStatus;
}

Status Recorder::pmSampling() const {
    return m_impl->pmRefusal;
}

double Recorder::sessionTime(uint64_t monotonicNs) const {
    return m_impl->seconds(monotonicNs);
}

}  // namespace colibri
