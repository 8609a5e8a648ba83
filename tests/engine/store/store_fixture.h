// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a store for tests: a reader whose bytes identify layer and expert, and which can hold,
// fail and shorten reads; a clock that tests move; memory that runs out.
#pragma once

#include <QtTest>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "engine/store/store_factory.h"

namespace colibri::test {

constexpr int64_t kRecord = 8192;

// The 8 bytes at `offset` of a MoE layer's file.
inline uint64_t wordAt(int64_t layer, int64_t offset) {
    return uint64_t(layer + 1) << 48 ^ uint64_t(offset / 8) * 0x9E3779B97F4A7C15u;
}

inline bool recordIs(const std::byte* record, int64_t layer, int64_t expert,
                     int64_t bytes = kRecord) {
    for (int64_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, record + i, 8);
        if (word != wordAt(layer, expert * bytes + i)) return false;
    }
    return true;
}

class FakeReader final : public Reader {
public:
    FakeReader(int64_t experts, int64_t recordBytes = kRecord)
        : m_experts(experts), m_record(recordBytes) {}

    int64_t readAt(int64_t layer, int64_t offset, std::span<std::byte> out, IoMode) override {
        const int64_t key = layer * m_experts + offset / m_record;
        std::unique_lock lock(m_mutex);
        if (offset % m_record == 0) m_started.push_back(key);
        m_cv.notify_all();
        m_cv.wait(lock, [&] { return !m_held || m_let.count(key) > 0; });
        if (auto it = m_failures.find(key); it != m_failures.end() && it->second > 0) {
            --it->second;
            return -EIO;
        }
        int64_t n = int64_t(out.size());
        if (m_most > 0) n = std::min(n, m_most);
        if (m_end >= 0) n = std::clamp<int64_t>(m_end - offset, 0, n);
        lock.unlock();
        // All counts are multiples of 8, so there are no partial words.
        for (int64_t i = 0; i + 8 <= n; i += 8) {
            const uint64_t word = wordAt(layer, offset + i);
            std::memcpy(out.data() + i, &word, 8);
        }
        return n;
    }

    void hold() {
        set([&] { m_held = true; });
    }
    void letGo() {
        set([&] {
            m_held = false;
            m_let.clear();
        });
    }
    void let(int64_t key) {
        set([&] { m_let.insert(key); });
    }
    void failNext(int64_t key, int times) {
        set([&] { m_failures[key] = times; });
    }
    void shortReads(int64_t most) {
        set([&] { m_most = most; });
    }
    void endAt(int64_t byte) {
        set([&] { m_end = byte; });
    }
    void waitStarted(size_t reads) {
        std::unique_lock lock(m_mutex);
        m_cv.wait(lock, [&] { return m_started.size() >= reads; });
    }
    std::vector<int64_t> started() {
        std::lock_guard lock(m_mutex);
        return m_started;
    }

private:
    template <typename F>
    void set(F change) {
        std::lock_guard lock(m_mutex);
        change();
        m_cv.notify_all();
    }
    const int64_t m_experts, m_record;
    std::mutex m_mutex;
    std::condition_variable m_cv;
    bool m_held = false;
    std::set<int64_t> m_let;
    std::map<int64_t, int> m_failures;
    int64_t m_most = 0, m_end = -1;
    std::vector<int64_t> m_started;
};

// Time stands still until a thread waits for a moment, and then becomes that moment. If frozen,
// only advance() moves it.
class ManualClock final : public StoreClock {
public:
    uint64_t now() override { return m_now.load(); }
    void waitUntil(Condition& condition, Mutex& mutex, uint64_t t) override {
        if (m_frozen) {  // advance() moves the time, so check again soon
            condition.waitFor(mutex, std::chrono::milliseconds(1));
            return;
        }
        uint64_t before = m_now.load();
        while (before < t && !m_now.compare_exchange_weak(before, t)) {
        }
    }
    void advance(uint64_t ns) { m_now += ns; }
    void freeze() { m_frozen = true; }

private:
    std::atomic<uint64_t> m_now{1'000'000};
    std::atomic<bool> m_frozen{false};
};

// Memory for `slots` slots, then none.
class LimitedMemory final : public SlotMemory {
public:
    std::byte* allocate(int64_t bytes) override {
        if (m_slots.fetch_sub(1) <= 0) {
            ++m_slots;
            return nullptr;
        }
        return SlotMemory::allocate(bytes);
    }
    void free(std::byte* memory, int64_t bytes) override {
        ++m_slots;
        SlotMemory::free(memory, bytes);
    }
    int64_t freeBytes() override { return m_freeBytes; }
    bool populate(std::byte* memory, int64_t bytes, const std::function<bool()>& goOn) override {
        ++m_populating;
        while (m_hold && goOn()) std::this_thread::yield();
        if (m_onPopulate) m_onPopulate();
        const bool done = SlotMemory::populate(memory, bytes, goOn);
        m_populated += done;
        return done;
    }

    std::atomic<int64_t> m_slots{1 << 30};
    std::atomic<int64_t> m_populating{0}, m_populated{0};  // started, completed
    std::atomic<bool> m_hold{false};                       // populating blocks
    std::function<void()> m_onPopulate;                    // set before the store is created
    std::atomic<int64_t> m_freeBytes{0};
};

// A folder with real expert files, and the part of a container that the store uses.
class ExpertFolder {
public:
    ExpertFolder(int64_t layers, int64_t experts, int64_t recordBytes)
        : m_dir(QDir::current().filePath("store-XXXXXX")) {
        info.dir = m_dir.path().toStdString();
        info.config.numExperts = experts;
        info.config.numLayers = layers;
        std::filesystem::create_directories(info.dir / "experts");
        for (int64_t i = 0; i < layers; ++i) {
            ExpertLayer layer;
            layer.layer = i;
            layer.file = "experts/layer_" + std::to_string(i) + ".bin";
            layer.recordBytes = recordBytes;
            std::vector<uint64_t> words(size_t(experts * recordBytes / 8));
            for (size_t w = 0; w < words.size(); ++w) words[w] = wordAt(i, int64_t(w) * 8);
            std::ofstream out(info.dir / layer.file, std::ios::binary);
            out.write(reinterpret_cast<const char*>(words.data()),
                      std::streamsize(words.size() * 8));
            info.expertLayers.push_back(layer);
            info.config.moeLayer.push_back(true);
        }
    }
    ContainerInfo info;

private:
    QTemporaryDir m_dir;  // beside the test, on a disk with direct reads
};

struct Rig {
    std::unique_ptr<ExpertFolder> folder;  // for io_uring
    std::unique_ptr<ExpertStore> store;
    FakeReader* reader = nullptr;  // ... otherwise
    ManualClock* clock = nullptr;  // if requested
    LimitedMemory* memory = nullptr;
    int64_t layers = 0, experts = 0;
};

struct RigOptions {
    int64_t layers = 4, experts = 8, cacheSize = 8;
    CachePolicyKind policy = CachePolicyKind::Lru;
    PrefetchSource source = PrefetchSource::Off;
    int64_t depth = 1, prefetchThreads = 0, linkLimit = 0, recordBytes = kRecord;
    int ioDepth = 4, topK = 0;
    bool prepareMemory = false, holdMemory = false;
    uint64_t populateNs = 0;  // time of the manual clock for each slot
    bool manualClock = false;
    bool uring = false;                           // real files; there is no store without io_uring
    std::function<std::unique_ptr<Numa>()> numa;  // creates one; empty: this machine's
    Telemetry* telemetry = nullptr;
};

inline Rig makeRig(const RigOptions& o) {
    Rig rig;
    rig.layers = o.layers;
    rig.experts = o.experts;
    StoreShape shape;
    shape.experts = o.experts;
    shape.topK = o.topK;
    for (int64_t i = 0; i < o.layers; ++i) {
        shape.layers.push_back(i + 1);  // as if layer 0 were dense
        shape.recordBytes.push_back(o.recordBytes);
        shape.files.push_back("experts/layer_" + std::to_string(i + 1) + ".bin");
    }
    StoreParts parts;
    auto memory = std::make_unique<LimitedMemory>();
    rig.memory = memory.get();
    if (o.uring) {
        rig.folder = std::make_unique<ExpertFolder>(o.layers, o.experts, o.recordBytes);
        auto files = FileReader::open(rig.folder->info);
        auto ring = Ring::open();
        if (!files || !ring) return rig;
        parts.queue = std::make_unique<UringQueue>(std::move(*files), std::move(*ring));
    } else {
        auto reader = std::make_unique<FakeReader>(o.experts, o.recordBytes);
        rig.reader = reader.get();
        parts.queue = makeReadQueue(std::move(reader));
    }
    memory->m_hold = o.holdMemory;
    parts.memory = std::move(memory);
    if (o.numa) parts.numa = o.numa();
    if (o.manualClock) {
        auto clock = std::make_unique<ManualClock>();
        rig.clock = clock.get();
        rig.memory->m_onPopulate = [at = rig.clock, ns = o.populateNs] { at->advance(ns); };
        parts.clock = std::move(clock);
    }
    StoreOptions options;
    options.cacheSize = o.cacheSize;
    options.policy = o.policy;
    options.prefetchSource = o.source;
    options.prefetchDepth = o.depth;
    options.prefetchThreads = o.prefetchThreads;
    options.ioDepth = o.ioDepth;
    options.linkLimit = o.linkLimit;
    options.prepareMemory = o.prepareMemory;
    auto store = StoreFactory::open(std::move(shape), options, o.telemetry, std::move(parts));
    if (store) rig.store = std::move(*store);
    return rig;
}

// Processes a layer like the engine: requests its experts, then waits for and releases each in
// order. Returns the number of hits; -1 if a record was wrong or a wait failed.
inline int useLayer(Rig& rig, int64_t layer, const std::vector<uint16_t>& experts) {
    std::vector<Ticket> tickets;
    rig.store->request(layer, experts, tickets);
    int hits = 0;
    bool good = true;
    for (const Ticket& ticket : tickets) {
        auto pin = rig.store->wait(ticket);
        good = good && pin.ok() && recordIs(pin->record(), layer, ticket.expert);
        hits += ticket.hit;
    }
    return good ? hits : -1;
}

}  // namespace colibri::test
