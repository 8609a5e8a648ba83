// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace colibri::ui {
namespace {

// A small generator with the same numbers on every machine.
class Random {
public:
    explicit Random(uint32_t seed) : m_state(seed) {}
    double uniform() {
        m_state += 0x6D2B79F5u;
        uint32_t t = (m_state ^ (m_state >> 15)) * (1u | m_state);
        t = (t + ((t ^ (t >> 7)) * (61u | t))) ^ t;
        return double(t ^ (t >> 14)) / 4294967296.0;
    }
    double normal() {
        double u = 0;
        for (int i = 0; i < 6; ++i) u += uniform();
        return (u - 3) * 1.414;
    }

private:
    uint32_t m_state;
};

struct TurnSpan {
    double from, to;
};
constexpr TurnSpan kTurns[] = {{3, 24}, {31, 62.3}, {68, 90}};

Marker knobMarker(double t, const char* label, KnobId knob, int64_t from, int64_t to, double change,
                  double low, double high) {
    Marker m;
    m.t = t;
    m.label = label;
    m.kind = Marker::Kind::Knob;
    m.knob = knob;
    m.from = m.undoTo = from;
    m.to = to;
    m.effect = Marker::Effect::Known;
    m.change = change;
    m.low = low;
    m.high = high;
    return m;
}

}  // namespace

FakeSource::FakeSource(bool loaded)
    : m_loaded(loaded), m_startNs(monotonicNs() - 90'000'000'000ull) {
    m_facts.name = "Wren-14B-A1.3B";
    m_facts.weights = "q4_0";
    m_facts.folder = "wren-14b-a1.3b-q4_0";
    m_facts.device = "AVX2";
    m_facts.contextLength = 8192;
    m_facts.experts = 64;
    m_facts.moeLayers = 24;
    m_facts.topK = 4;
    m_facts.expertBytes = 4752 * 1024;
    for (int l = 0; l < 24; ++l) m_facts.layerIndex.push_back(l);
    for (int i = 0; i < kKnobCount; ++i) {
        const int64_t value = knobLimits(KnobId(i)).defaultValue;
        m_knobs[size_t(i)] = {value, value, ""};
    }
    m_knobs[size_t(KnobId::ExpertCacheSize)] = {12, 12, ""};
    m_knobs[size_t(KnobId::PrefetchThreads)] = {4, 2,
                                                "the process may use 10 cores, 8 of them compute"};
    buildStory();
    buildExperts();
    rebuild();
}

void FakeSource::buildStory() {
    Random r(20417);
    double a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, spike = 0;
    const auto put = [this](SeriesId id, double t, double y) {
        m_story.series[size_t(id)].t.push_back(t);
        m_story.series[size_t(id)].y.push_back(y);
    };
    for (int i = 0; i <= 900; ++i) {
        const double t = i / 10.0;
        const TurnSpan* turn = nullptr;
        for (const TurnSpan& span : kTurns)
            if (t >= span.from && t <= span.to) turn = &span;
        a1 = .9 * a1 + .0042 * r.normal();
        a2 = .93 * a2 + .0024 * r.normal();
        a3 = .88 * a3 + .075 * r.normal();
        a4 = .8 * a4 + .22 * r.normal();
        a5 = .9 * a5 + .13 * r.normal();
        a6 = .85 * a6 + .5 * r.normal();
        const double warm = t < 31 ? 1 - std::exp(-(t - 3) / 4.2) : 1;
        const double step = t < 44 ? 0 : 1 - std::exp(-(t - 44) / 3.2);
        const double dip = turn && turn->from > 3 ? std::exp(-(t - turn->from) / 1.6) : 0;
        const double h = (.608 + .111 * step) * warm - .05 * dip + a1;
        const double p = (.086 + .035 * step) * warm - .02 * dip + a2;
        if (r.uniform() < .012) spike = 1;
        spike *= .86;
        const double miss = 1 - h, mm = std::min(miss, .45) + .3 * std::max(0.0, miss - .45);
        const double l50 = 2.2 + 8.1 * (mm - .281) + a3 * .35;
        const double l99 = 6.3 + 29.7 * (mm - .281) + a4 * .6 + 2.4 * spike;
        const double i50 = 27.32 + 44.5 * (mm - .281) + a5 * .55;
        double i99 = (t > 44 ? 36.2 : 37.1) + 93 * (mm - .281) + a6 * (t > 47 ? .34 : .55) +
                     (t > 47 ? .7 : 2.2) * spike + (t > 60 ? .8 : 2.5) * dip;
        if (t > 58.3 && t < 61.2) i99 += 4.6 * std::exp(-std::pow((t - 58.9) / .8, 2) * .5);
        const bool on = turn && t - turn->from > .45;
        const auto value = [on](double v) { return on ? v : std::nan(""); };
        put(SeriesId::HitRate, t, value(std::clamp(h, 0.0, 1.0) * 100));
        put(SeriesId::PrefetchHitRate, t, value(std::clamp(p, 0.0, 1.0) * 100));
        put(SeriesId::ExpertLoadP50, t, value(l50));
        put(SeriesId::ExpertLoadP99, t, value(l99));
        put(SeriesId::ItlP50, t, value(i50));
        put(SeriesId::ItlP99, t, value(i99));
        put(SeriesId::TokensPerSecond, t, value(1000 / i50));
        put(SeriesId::ReadRate, t,
            value(std::min(6.72 + a5 * .1, 96 * miss * 4.866e-3 * 1000 / i50)));
        put(SeriesId::StallShare, t, value(29 + a3));
        put(SeriesId::QueueDepth, t, t > 60 && t < 63 ? 2 : t > 66 && t < 68.5 ? 1 : 0);
        put(SeriesId::MeanBatch, t, value(1));
        const double ahead = 96 * std::clamp(p, 0.0, 1.0) * 1000 / i50;
        put(SeriesId::PrefetchUseful, t, value(ahead));
        put(SeriesId::PrefetchLate, t, value(ahead * .21));
        put(SeriesId::PrefetchWasted, t, value(ahead * .34));
        put(SeriesId::PrefetchIssued, t, value(ahead * 1.57));
        put(SeriesId::MemoryGiB, t,
            1.56 + .86 * (t < 3 ? t / 3 : 1) + .44 * (t > 44 ? std::min(1.0, (t - 44) / 2.4) : 0));
    }
    for (const SeriesId id : {SeriesId::SmUtilisation, SeriesId::GpuDram, SeriesId::GpuBusy})
        m_story.series[size_t(id)].unavailable = "no NVIDIA driver";
    int n = 0;
    for (const TurnSpan& span : kTurns) {
        Marker m;
        m.label = "turn " + std::to_string(++n);
        m.request = uint64_t(n);
        m.kind = Marker::Kind::TurnStart;
        m.t = span.from;
        m_story.markers.push_back(m);
        m.kind = Marker::Kind::TurnEnd;
        m.t = span.to;
        if (n < 3) m_story.markers.push_back(m);
    }
    m_story.markers.push_back(
        knobMarker(16, "threads 1 -> 4", KnobId::PrefetchThreads, 1, 4, .005, -.02, .03));
    m_story.markers.push_back(
        knobMarker(44, "cache 8 -> 12", KnobId::ExpertCacheSize, 8, 12, .18, .15, .21));
    std::sort(m_story.markers.begin(), m_story.markers.end(),
              [](const Marker& a, const Marker& b) { return a.t < b.t; });
    m_story.figures = {36.4, 27.5, 36.2, 36.4, 71.3, 12.5, 2.25, 6.35, 4.9e9, 29, 0.004, 366};
    m_story.readNowBytesPerS = m_story.figures.readBytesPerS;
    m_story.store.lookups = 101952;
    m_story.store.hits = 72700;
    m_story.store.slotCount = 288;
    m_story.store.slotsUsed = 288;
    m_story.sessionFile = "sessions/session 0412.colibri";
    m_story.sessionBytes = int64_t(18.4 * 1048576);
    m_story.eventsRecorded = 812345;
}

void FakeSource::buildExperts() {
    Random q(77);
    constexpr int kLayers = 24, kExperts = 64;
    for (int l = 0; l < kLayers; ++l) {
        std::array<int, kExperts> order;
        std::iota(order.begin(), order.end(), 0);
        for (int e = kExperts - 1; e > 0; --e)
            std::swap(order[size_t(e)], order[size_t(q.uniform() * (e + 1))]);
        const double skew = .72 + .34 * q.uniform() + (l < 3 ? .25 : 0);
        std::array<double, kExperts> weight{};
        for (int e = 0; e < kExperts; ++e)
            weight[size_t(order[size_t(e)])] = std::pow(e + 1.5, -skew) * (.75 + .5 * q.uniform());
        const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
        std::vector<std::pair<double, int>> rank;
        std::array<int, kExperts> byWeight;
        std::iota(byWeight.begin(), byWeight.end(), 0);
        std::sort(byWeight.begin(), byWeight.end(),
                  [&](int a, int b) { return weight[size_t(a)] > weight[size_t(b)]; });
        for (int i = 0; i < kExperts; ++i)
            rank.emplace_back(i + 7 * q.uniform(), byWeight[size_t(i)]);
        std::sort(rank.begin(), rank.end());
        std::vector<Residency> row(kExperts, Residency::OnDisk);
        for (int i = 0; i < 12; ++i) row[size_t(rank[size_t(i)].second)] = Residency::Resident;
        for (int e = 0; e < kExperts; ++e) {
            m_story.residency.push_back(row[size_t(e)]);
            const double share = weight[size_t(e)] / sum * 100;
            m_story.heat.push_back(
                float(std::clamp(std::log(share / .25) / std::log(11 / .25), 0.0, 1.0)));
        }
    }
    for (const auto& [l, e] : {std::pair(6, 41), {7, 5}, {7, 33}})
        m_story.residency[size_t(l * kExperts + e)] = Residency::Reading;
}

void FakeSource::rebuild() {
    auto snapshot = std::make_shared<Snapshot>(m_story);
    for (SeriesData& data : snapshot->series) {
        const auto end = std::upper_bound(data.t.begin(), data.t.end(), m_now);
        const size_t n = size_t(end - data.t.begin());
        data.t.resize(std::min(data.t.size(), n));
        data.y.resize(std::min(data.y.size(), n));
    }
    std::erase_if(snapshot->markers, [this](const Marker& m) { return m.t > m_now; });
    snapshot->now = snapshot->figuresAt = snapshot->lastActivity = m_now;
    for (const TurnSpan& turn : kTurns) {
        snapshot->turns += m_now >= turn.from;
        snapshot->running += m_now >= turn.from && m_now <= turn.to;
    }
    snapshot->generation = uint64_t(m_now * 1000);
    m_snapshot = snapshot;
    fillKnobs();
}

void FakeSource::publishKnobs() {
    editable();
    fillKnobs();
}

void FakeSource::fillKnobs() {
    m_snapshot->knobs = m_knobs;
    m_snapshot->knobsAt = sessionTime(monotonicNs());
}

std::shared_ptr<Snapshot> FakeSource::editable() {
    m_snapshot = std::make_shared<Snapshot>(*m_snapshot);
    m_snapshot->generation++;
    fillKnobs();
    m_snapshot->now += 1;  // so that everything paced by time is drawn
    m_snapshot->figuresAt = m_snapshot->lastActivity = m_snapshot->now;
    return m_snapshot;
}

void FakeSource::setLoaded(bool on) {
    m_loaded = on;
    emit stateChanged();
}

void FakeSource::setDense() {
    m_facts.moeLayers = m_facts.experts = m_facts.topK = 0;
    m_facts.layerIndex.clear();
}

void FakeSource::setNow(double now) {
    m_now = now;
    rebuild();
}

double FakeSource::sessionTime(uint64_t ns) const {
    return ns < m_startNs ? 0 : double(ns - m_startNs) / 1e9;
}

MemoryNow FakeSource::memory() const {
    return {int64_t(2.86 * (1 << 30)), int64_t(4.81 * (1ll << 30))};
}

KnobLimits FakeSource::knobLimits(KnobId id) const {
    switch (id) {
        case KnobId::ExpertCacheSize:
            return {1, 64, 30};
        case KnobId::PrefetchThreads:
            return {0, 8, 1};
        case KnobId::ComputeThreads:
            return {1, 16, 8};
        case KnobId::ContextLength:
            return {512, 32768, 8192};
        default:
            break;
    }
    const KnobRow& row = knobRow(id);
    return {row.min, row.max, row.defaultValue};
}

KnobState FakeSource::knobState(KnobId id) const {
    return m_knobs[size_t(id)];
}

void FakeSource::setKnob(KnobId id, int64_t value, bool final) {
    finalKnobCalls += final;
    knobCalls.emplace_back(id, value);
    m_knobs[size_t(id)] = {value, value, ""};
}

std::string FakeSource::knobProblem(KnobId id, int64_t value) const {
    const bool table =
        (id == KnobId::RouterMode && value == int64_t(RouterMode::Table)) ||
        (id == KnobId::PrefetchSource && value == int64_t(PrefetchSource::RouterTable));
    if (table && !routerTable) return "no router table in this model";
    if (numaNodes == 1 && (id == KnobId::NumaNode || (id == KnobId::NumaMode && value > 0)))
        return "this machine has one NUMA node";
    return {};
}

void FakeSource::limitEffective(KnobId id, int64_t value, const std::string& reason) {
    m_knobs[size_t(id)].effective = value;
    m_knobs[size_t(id)].reason = reason;
}

Histogram FakeSource::pooled(Pooled what, double t0, double t1) const {
    Histogram h;
    const bool itl = what == Pooled::Itl;
    const SeriesData& p50 =
        m_snapshot->series[size_t(itl ? SeriesId::ItlP50 : SeriesId::ExpertLoadP50)];
    const SeriesData& p99 =
        m_snapshot->series[size_t(itl ? SeriesId::ItlP99 : SeriesId::ExpertLoadP99)];
    for (size_t i = 0; i < p50.t.size(); ++i) {
        if (p50.t[i] < t0 || p50.t[i] > t1 || !std::isfinite(p50.y[i])) continue;
        h.add(uint64_t(p50.y[i] * 1e6), 98);
        h.add(uint64_t(p99.y[i] * 1e6), 2);
    }
    return h;
}

std::shared_ptr<ChatRun> FakeSource::startChat(ChatRequest request) {
    lastRequest = std::move(request);
    lastRun = std::make_shared<ChatRun>();
    lastRun->request = 7;
    m_fed[lastRun.get()] = {};
    active = 1;
    return lastRun;
}

Result<std::string> FakeSource::renderChat(const nlohmann::ordered_json& messages,
                                           const ChatOptions& options) const {
    if (options.chatTemplate)
        return options.chatTemplate->render(
            {{"messages", messages}, {"add_generation_prompt", true}});
    std::string text;
    for (const auto& message : messages)
        text += "<|" + message["role"].get<std::string>() + "|>" +
                message["content"].get<std::string>() + "\n";
    return text;
}

void FakeSource::cancelChat(const std::shared_ptr<ChatRun>& run) {
    ++cancels;
    run->cancel();
}

void FakeSource::feed(ChatRun& run, const QStringList& tokens, double gapMs) {
    run.setPrompt(148, 148);
    Fed& fed = m_fed[&run];
    for (const QString& text : tokens) {
        GeneratedToken token{};
        token.request = 7;
        token.index = uint32_t(fed.ids.size());
        token.id = int32_t(100 + token.index);
        token.text = text.toStdString();
        token.timeNs = monotonicNs();
        token.gapNs = token.index ? uint64_t(gapMs * 1e6) : 0;
        token.lookups = 96;
        token.hits = 70;
        token.worstLayer = 14;
        token.worstExpert = 37;
        token.worstWaitNs = gapMs > 40 ? 12'600'000 : 0;
        run.addToken(token);
        fed.ids.push_back(token.id);
        fed.text += token.text;
    }
}

void FakeSource::finish(ChatRun& run, StopReason stop) {
    RequestResult result;
    result.request = 7;
    result.stop = stop;
    result.tokens = m_fed[&run].ids;
    result.text = m_fed[&run].text;
    result.promptTokens = 148;
    result.cachedTokens = 119;
    result.ttftMs = 402;
    result.promptTokS = 148;
    result.decodeTokS = 34.2;
    result.experts.lookups = 1000;
    result.experts.hits = 675;
    result.experts.bytesRead = 149ull << 30;
    active = 0;
    run.finish(std::move(result));
}

}  // namespace colibri::ui
