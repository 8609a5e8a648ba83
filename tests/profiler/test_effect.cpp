// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the measured effect of a knob change is correct, on a simulated engine whose long-run
// rate is known for every setting.
#include <QTest>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <vector>

#include "profiler/metrics/effect.h"
#include "profiler/metrics/metrics.h"
#include "tests/profiler/event_maker.h"

using namespace colibri;

namespace {

constexpr int kLayers = 4, kExperts = 32, kTopK = 4;

struct Setting {
    int cacheSize = 16;    // experts per layer
    double missMs = 4;     // per expert read
    double computeMs = 3;  // per step
};

// Text whose topic changes every few dozen tokens. Each topic prefers other experts, and some
// topics use few experts.
class Text {
public:
    explicit Text(unsigned seed) : m_random(seed) { nextTopic(); }
    // The experts of a layer for the next token.
    std::vector<uint16_t> experts() {
        std::vector<uint16_t> out;
        while (out.size() < kTopK) {
            const double u = std::uniform_real_distribution(0.0, 1.0)(m_random);
            const auto e = uint16_t(m_order[size_t(std::pow(u, m_skew) * kExperts)]);
            if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
        }
        return out;
    }
    void nextToken() {
        if (std::uniform_real_distribution(0.0, 1.0)(m_random) < 1.0 / 50) nextTopic();
    }

private:
    void nextTopic() {
        m_order.resize(kExperts);
        for (int e = 0; e < kExperts; ++e) m_order[size_t(e)] = e;
        std::shuffle(m_order.begin(), m_order.end(), m_random);
        m_skew = std::uniform_real_distribution(1.2, 2.2)(m_random);
    }
    std::mt19937 m_random;
    std::vector<int> m_order;
    double m_skew = 1;
};

// Decodes one request: an LRU cache over all layers; a gap is compute time, misses and noise.
class FakeEngine {
public:
    FakeEngine(Setting setting, unsigned seed)
        : m_setting(setting), m_text(seed), m_random(~seed) {}
    void set(Setting setting) {
        m_setting = setting;
        evict();
    }
    // Computes one token and passes its events to `metrics` unless that is null. Returns the gap in
    // ms.
    double step(Metrics* metrics = nullptr) {
        int misses = 0;
        if (metrics) metrics->add(stepEvent(1), m_t);
        for (int layer = 0; layer < kLayers; ++layer) {
            Event event{};
            event.type = EventType::LayerStep;
            event.layerStep.layer = uint16_t(layer);
            event.layerStep.count = kTopK;
            event.layerStep.firstBits = (1 << kTopK) - 1;
            const std::vector<uint16_t> experts = m_text.experts();
            for (int i = 0; i < kTopK; ++i) {
                event.layerStep.experts[i] = experts[size_t(i)];
                const bool hit = use(layer * kExperts + experts[size_t(i)]);
                if (hit) event.layerStep.hitBits |= uint16_t(1 << i);
                misses += !hit;
            }
            if (metrics) metrics->add(event, m_t);
        }
        m_text.nextToken();
        // Noise that lasts for several tokens (other programs), and single late reads.
        std::normal_distribution<double> normal;
        m_load = 0.9 * m_load + 0.1 * normal(m_random);
        double ms = m_setting.computeMs * (1 + 0.05 * m_load) + m_setting.missMs * misses +
                    0.1 * std::abs(normal(m_random)) * m_setting.missMs;
        m_t += ms / 1000;
        if (metrics) metrics->add(tokenEvent(uint64_t(ms * 1e6)), m_t);
        return ms;
    }
    double now() const { return m_t; }

private:
    bool use(int key) {
        const auto found = m_at.find(key);
        const bool hit = found != m_at.end();
        if (hit) m_order.erase(found->second);
        m_order.push_front(key);
        m_at[key] = m_order.begin();
        evict();
        return hit;
    }
    void evict() {
        while (m_order.size() > size_t(m_setting.cacheSize * kLayers)) {
            m_at.erase(m_order.back());
            m_order.pop_back();
        }
    }
    Setting m_setting;
    Text m_text;
    std::mt19937 m_random;
    double m_load = 0, m_t = 0;
    std::list<int> m_order;
    std::map<int, std::list<int>::iterator> m_at;
};

// Milliseconds per token, over texts that no trial uses.
double longRun(const Setting& setting) {
    double sum = 0;
    int count = 0;
    for (unsigned text = 0; text < 8; ++text) {
        FakeEngine engine(setting, 7'000'000 + text);
        for (int i = 0; i < 200; ++i) engine.step();
        for (int i = 0; i < 4000; ++i, ++count) sum += engine.step();
    }
    return sum / count;
}

struct Change {
    KnobId knob;
    int64_t from, to;
    Setting before, after;
};

// Makes `change` after `tokens` tokens and returns the marker when its measurement has ended.
Marker measured(const Change& change, unsigned seed, int tokens) {
    std::vector<int64_t> layers(kLayers);
    for (int i = 0; i < kLayers; ++i) layers[size_t(i)] = i;
    Metrics metrics(kLayers, kExperts, layers);
    FakeEngine engine(change.before, seed);
    metrics.add(knobEvent(KnobId::ExpertCacheSize, change.before.cacheSize), 0);
    if (change.knob != KnobId::ExpertCacheSize) metrics.add(knobEvent(change.knob, change.from), 0);
    for (int i = 0; i < tokens; ++i) engine.step(&metrics);
    metrics.add(knobEvent(change.knob, change.to), engine.now());
    engine.set(change.after);
    std::vector<Marker> decided;
    for (int i = 0; i < 1200 && decided.empty(); ++i) {
        engine.step(&metrics);
        decided = metrics.takeDecided();
    }
    return decided.empty() ? Marker{} : decided[0];
}

std::vector<Change> changes() {
    const auto cache = [](int from, int to) {
        return Change{KnobId::ExpertCacheSize, from, to, {.cacheSize = from}, {.cacheSize = to}};
    };
    const auto link = [](int size, int64_t from, int64_t to) {
        return Change{KnobId::LinkLimit,
                      from,
                      to,
                      {.cacheSize = size, .missMs = 100.0 / double(from)},
                      {.cacheSize = size, .missMs = 100.0 / double(to)}};
    };
    const auto threads = [](int size, int64_t from, int64_t to) {
        return Change{KnobId::ComputeThreads,
                      from,
                      to,
                      {.cacheSize = size, .computeMs = 12.0 / double(from)},
                      {.cacheSize = size, .computeMs = 12.0 / double(to)}};
    };
    return {cache(8, 16),      cache(16, 8),      cache(12, 14),     cache(6, 24),
            cache(24, 28),     cache(10, 9),      link(8, 25, 30),   link(16, 25, 100),
            link(24, 100, 50), threads(24, 2, 4), threads(16, 4, 3), threads(30, 1, 2)};
}

}  // namespace

class TestEffect : public QObject {
    Q_OBJECT
private slots:
    // The interval is the product's promise: it contains the long-run change in 90 to 97 of 100
    // cases.
    void theIntervalHoldsTheLongRunChange() {
        int trials = 0, held = 0, known = 0;
        double widths = 0;
        for (const Change& change : changes()) {
            const double truth = longRun(change.before) / longRun(change.after) - 1;
            int heldHere = 0;
            for (unsigned seed = 0; seed < 40; ++seed, ++trials) {
                const Marker marker = measured(change, 100 + seed, 60 + int(seed) * 9);
                if (marker.effect != Marker::Effect::Known) continue;
                ++known;
                widths += (marker.high - marker.low) / (1 + marker.change);
                heldHere += marker.low <= truth && truth <= marker.high;
            }
            held += heldHere;
            qInfo("%s %lld to %lld: %+.1f %%, held %d of 40", knobRow(change.knob).name,
                  (long long)change.from, (long long)change.to, 100 * truth, heldHere);
        }
        qInfo("held %.1f %% of %d, mean width %.1f %%", 100.0 * held / known, known,
              100 * widths / known);
        QVERIFY(known >= trials * 95 / 100);
        QVERIFY(held >= known * 90 / 100);
        QVERIFY(held <= known * 97 / 100);
        QVERIFY(widths / known < 0.12);  // the intervals are narrow enough to be useful
    }
    void aChangeWithoutEffectIsCalledOne() {
        int known = 0, none = 0;
        for (const int size : {8, 16, 24, 31}) {
            const Setting setting{.cacheSize = size};
            const Change change{KnobId::IoDepth, 8, 16, setting, setting};
            for (unsigned seed = 0; seed < 60; ++seed) {
                const Marker marker = measured(change, 5000 + seed, 60 + int(seed) * 7);
                if (marker.effect != Marker::Effect::Known) continue;
                ++known;
                none += marker.low <= 0 && marker.high >= 0;
            }
        }
        qInfo("%d of %d", none, known);
        QVERIFY(known >= 228);
        QVERIFY(none >= known * 95 / 100);
    }
};

QTEST_GUILESS_MAIN(TestEffect)
#include "test_effect.moc"
