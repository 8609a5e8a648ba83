// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a session of known content, for tests of exports: requests one after the other; each token
// passes all layers; at every second token each layer misses an expert and waits for its read.
#pragma once

#include <QTest>

#include <cmath>
#include <filesystem>
#include <memory>

#include "profiler/session/session_writer.h"
#include "tests/profiler/event_maker.h"

namespace colibri {

struct MadeSession {
    int requests = 3, tokens = 20, layers = 4;
    bool numbered = true;  // rows name their steps and threads, as in schema 2

    static constexpr double kTokenSeconds = 0.020, kLayerSeconds = 0.002;
    static constexpr uint32_t kRouterNs = 100'000, kWaitNs = 500'000, kComputeNs = 1'000'000;
    static constexpr uint32_t kReadBytes = 4096;

    int allTokens() const { return requests * tokens; }
    int misses() const { return requests * ((tokens + 1) / 2) * layers; }
    int steps() const { return allTokens() * layers; }
    int prefetches() const { return allTokens(); }  // one for each token
    int samples() const { return allTokens(); }     // of each of the two series
    double seconds() const { return allTokens() * kTokenSeconds; }
    int evictions() const { return misses(); }
    // As `TraceWriter` makes them: requests with three phases; tokens; steps; layer steps of two or
    // three parts; reads with queue and read.
    int64_t slices() const {
        return requests * 4 + allTokens() * 2 + steps() * 3 + misses() +
               int64_t(misses() + prefetches() + 1) * 3;
    }
    int64_t gapNs(int index) const { return index == 0 ? 0 : 10'000'000 + index * 1000; }

    void write(const std::filesystem::path& path) const {
        auto made = SessionWriter::create(path, {{"model", "tiny <&> | model"},
                                                 {"layers", std::to_string(layers)},
                                                 {"experts", "8"},
                                                 {"top_k", "2"}});
        QVERIFY2(made.ok(), made.status().text().c_str());
        SessionWriter& writer = **made;
        QVERIFY(writer.thread(5, "expert-io").ok());
        QVERIFY(writer.write(knobEvent(KnobId::ExpertCacheSize, 8), 0).ok());
        for (int r = 0; r < requests; ++r) writeRequest(writer, r);
        QVERIFY(writer.finish().ok());
    }

private:
    static void put(SessionWriter& writer, const Event& event, double t) {
        QVERIFY(writer.write(event, t).ok());
    }

    void writeRequest(SessionWriter& writer, int r) const {
        const uint64_t id = uint64_t(r + 1);
        const double begin = r * tokens * kTokenSeconds;
        Event request = requestEvent(EventType::RequestArrived, id);
        request.request.promptTokens = 7;
        put(writer, request, begin);
        request.type = EventType::RequestAdmitted;
        put(writer, request, begin + 0.001);
        for (int i = 0; i < tokens; ++i) {
            if (r == 0 && i == 5) writeChange(writer, begin + 0.1);
            writeToken(writer, id, i, begin + i * kTokenSeconds + 0.002);
        }
        request.type = EventType::RequestDone;
        request.request.generated = uint32_t(tokens);
        put(writer, request, begin + tokens * kTokenSeconds);
    }

    static void writeChange(SessionWriter& writer, double t) {
        put(writer, knobEvent(KnobId::ExpertCacheSize, 4), t);
        QVERIFY(writer.mark(t + 0.0005, "note", "half the \"cache\"").ok());
        put(writer, readEvent(0, 7, ReadReason::Demand, 1000, 0, true), t + 0.001);
    }

    static Event readEvent(int layer, int expert, ReadReason reason, uint64_t needNs, uint32_t step,
                           bool failed = false) {
        Event event{};
        event.type = EventType::ExpertRead;
        event.thread = 5;
        event.expertRead = {.layer = uint16_t(layer),
                            .expert = uint16_t(expert),
                            .reason = reason,
                            .failed = failed,
                            .bytes = kReadBytes,
                            .step = step,
                            .queueNs = 20'000,
                            .readNs = 300'000,
                            .needNs = needNs};
        return event;
    }

    // The steps of all layers, then the token.
    void writeToken(SessionWriter& writer, uint64_t id, int index, double begin) const {
        const bool miss = index % 2 == 0;
        const uint32_t number = uint32_t(id - 1) * uint32_t(tokens) + uint32_t(index) + 1;
        const uint32_t named = numbered ? number : 0;
        for (int layer = 0; layer < layers; ++layer) {
            const double end = begin + (layer + 1) * kLayerSeconds;
            const int expert = (index + layer) % 8;
            if (miss) {
                put(writer, readEvent(layer, expert, ReadReason::Demand, kWaitNs, named),
                    end - kComputeNs * 1e-9 - 0.00005);
                Event eviction{};
                eviction.type = EventType::Eviction;
                eviction.eviction = {uint16_t(layer), uint16_t((expert + 4) % 8), 1000, 3};
                put(writer, eviction, end - kComputeNs * 1e-9 - 0.0004);
            }
            Event step{};
            step.type = EventType::LayerStep;
            LayerStepEvent& s = step.layerStep;
            s.request = id;
            s.layer = uint16_t(layer);
            s.count = 2;
            s.firstRow = 1;
            s.rows = 1;
            s.step = named;
            s.firstBits = 0b11;
            s.hitBits = miss ? 0b10 : 0b11;
            s.routerNs = kRouterNs;
            s.waitNs = miss ? kWaitNs : 0;
            s.computeNs = kComputeNs;
            s.experts[0] = uint16_t(expert);
            s.experts[1] = uint16_t((expert + 1) % 8);
            put(writer, step, end);
        }
        const double end = begin + (layers + 1) * kLayerSeconds;
        put(writer, readEvent(0, 7, ReadReason::Prefetch, 0, 0), end);
        if (index == 0) put(writer, requestEvent(EventType::RequestFirstToken, id), end);
        Event token = tokenEvent(uint64_t(gapNs(index)));
        token.token.request = id;
        token.token.index = uint32_t(index);
        token.token.stepNs = 8'000'000;
        token.token.stallNs = miss ? uint64_t(layers) * kWaitNs : 0;
        token.token.lookups = uint32_t(layers) * 2;
        token.token.hits = uint32_t(layers) * (miss ? 1 : 2);
        put(writer, token, end);
        Event step{};
        step.type = EventType::Step;
        step.step.step = number;
        step.step.rows = step.step.requests = 1;
        step.step.totalNs = 9'000'000;
        put(writer, step, end);
        Snapshot snapshot;
        snapshot.series[size_t(SeriesId::ItlP99)].y = {10.0 + index};
        snapshot.series[size_t(SeriesId::MemoryGiB)].y = {1.5};
        snapshot.series[size_t(SeriesId::HitRate)].y = {std::nan("")};
        QVERIFY(writer.sample(snapshot, end).ok());
    }
};

}  // namespace colibri
