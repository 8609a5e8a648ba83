// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "profiler/simulate/simulator.h"

namespace colibri::cli {

namespace {

struct SimulateArgs {
    std::string session;
    SimulateOptions options;
    bool json = false;
};

Json curveJson(const std::vector<CurvePoint>& points) {
    Json out = Json::array();
    for (const CurvePoint& point : points) {
        Json rate = nullptr;
        if (std::isfinite(point.decode.value))
            rate = {{"value", jsonNumber(point.decode.value)},
                    {"low", jsonNumber(point.decode.low)},
                    {"high", jsonNumber(point.decode.high)}};
        out.push_back({{"cache_size", point.cacheSize},
                       {"hit_rate", jsonNumber(point.hitRate)},
                       {"decode_tok_s", std::move(rate)}});
    }
    return out;
}

// The recorded source is null if its predictions are not modelled or prefetching was off.
Json prefetchJson(const Simulation& s) {
    Json previous = Json::array();
    std::vector<CurvePoint> points;
    for (const PrefetchPoint& p : s.prefetch.previousToken) points.push_back(p.point);
    previous = curveJson(points);
    for (size_t i = 0; i < points.size(); ++i) {
        previous[i]["prefetched_share"] = jsonNumber(s.prefetch.previousToken[i].prefetchedShare);
        previous[i]["reads_per_token"] = jsonNumber(s.prefetch.previousToken[i].readsPerToken);
    }
    Json recorded = nullptr;
    if (!s.prefetch.recordedSource.empty())
        recorded = {{"source", s.recorded.prefetchSource},
                    {"avoided_misses_share", s.prefetch.avoidedShare},
                    {"curve", curveJson(s.prefetch.recordedSource)}};
    return {{"policy", s.prefetch.policy},
            {"previous_token", std::move(previous)},
            {"recorded_source", std::move(recorded)}};
}

Json simulationJson(const Simulation& s) {
    const RecordedSetting& r = s.recorded;
    return {{"model", s.model},
            {"lookups", s.lookups},
            {"moe_layers", s.moeLayers},
            {"experts", s.experts},
            {"top_k", s.topK},
            {"recorded",
             {{"cache_size", r.cacheSize > 0 ? Json(r.cacheSize) : Json(nullptr)},
              {"policy", r.policy},
              {"prefetch_source", r.prefetchSource},
              {"changes", r.changes},
              {"preloaded", r.preloaded},
              {"hit_rate", jsonNumber(r.hitRate)},
              {"prefetched_share", jsonNumber(r.prefetchedShare)},
              {"decode_tok_s", jsonNumber(r.decodeTokS)}}},
            {"curves",
             {{"lru", curveJson(s.lru)},
              {"slru", curveJson(s.slru)},
              {"lfru", curveJson(s.lfru)},
              {"belady", curveJson(s.belady)}}},
            {"prefetch", prefetchJson(s)},
            {"sampling_rate", s.samplingRate},
            {"sampling_error", s.samplingError},
            {"no_decode_tok_s", s.noDecodeRate},
            {"notes", s.notes}};
}

std::string padded(const std::string& text, size_t width) {
    // Counts characters, not bytes.
    size_t length = 0;
    for (const char c : text) length += (uint8_t(c) & 0xc0) != 0x80;
    return std::string(width > length ? width - length : 0, ' ') + text;
}

std::string rateText(const DecodeRate& rate) {
    if (!std::isfinite(rate.value)) return "n/a";
    const std::string value = formatSig(rate.value);
    if (!std::isfinite(rate.low)) return value;
    return value + " (" + formatSig(rate.low) + ".." + formatSig(rate.high) + ")";
}

const CurvePoint* pointOf(const std::vector<CurvePoint>& points, int64_t cacheSize) {
    for (const CurvePoint& point : points)
        if (point.cacheSize == cacheSize) return &point;
    return nullptr;
}

// The curve of the recorded policy, whose rates the table shows.
const std::vector<CurvePoint>& recordedCurve(const Simulation& s) {
    return s.recorded.policy == "slru" ? s.slru : s.recorded.policy == "lfru" ? s.lfru : s.lru;
}

std::string headText(const Simulation& s) {
    const RecordedSetting& r = s.recorded;
    std::string text = s.model + ": " + formatCount(s.moeLayers) + " MoE layers of " +
                       formatCount(s.experts) + " experts, " + formatCount(s.topK) +
                       " per token; " + formatCount(int64_t(s.lookups)) + " lookups\n";
    text += "recorded: cache size " + (r.cacheSize > 0 ? formatCount(r.cacheSize) : "unknown") +
            ", " + r.policy + ", prefetch " + r.prefetchSource + "; measured: hit rate " +
            formatPercent(r.hitRate);
    if (r.prefetchedShare > 0) text += " (" + formatPercent(r.prefetchedShare) + " by prefetch)";
    return text + ", decode " + formatSig(r.decodeTokS) + " tok/s\n";
}

// A table of a screen: sizes at least a sixth apart, the recorded one and the largest.
bool shown(const Simulation& s, int64_t cacheSize, int64_t& last) {
    const bool far = 6 * cacheSize >= 7 * last;
    if (!far && cacheSize != s.recorded.cacheSize && cacheSize != s.experts) return false;
    last = cacheSize;
    return true;
}

std::string tableText(const Simulation& s) {
    const std::vector<std::pair<const char*, const std::vector<CurvePoint>*>> columns = {
        {"lru", &s.lru}, {"slru", &s.slru}, {"lfru", &s.lfru}, {"optimum", &s.belady}};
    const std::vector<CurvePoint>& rates = recordedCurve(s);
    std::string text = "\n  cache size";
    for (const auto& [name, points] : columns) text += padded(name, 10);
    text += padded("tok/s, " + (s.recorded.policy.empty() ? "lru" : s.recorded.policy) + " (95 %)",
                   26) +
            "\n";
    int64_t last = 0;
    for (const CurvePoint& row : s.belady) {
        if (!shown(s, row.cacheSize, last)) continue;
        const bool recorded = row.cacheSize == s.recorded.cacheSize;
        text += (recorded ? "*" : " ") + padded(formatCount(row.cacheSize), 11);
        for (const auto& [name, points] : columns) {
            const CurvePoint* point = pointOf(*points, row.cacheSize);
            text += padded(point ? formatPercent(point->hitRate) : "n/a", 10);
        }
        const CurvePoint* point = pointOf(rates, row.cacheSize);
        text += padded(point ? rateText(point->decode) : "n/a", 26) + "\n";
    }
    return text;
}

// What prefetching would add at the recorded size.
std::string prefetchText(const Simulation& s) {
    std::string text;
    for (const PrefetchPoint& p : s.prefetch.previousToken) {
        if (p.point.cacheSize != s.recorded.cacheSize) continue;
        text += "With prefetching by previous_token, cache size " + formatCount(p.point.cacheSize) +
                ": hit rate " + formatPercent(p.point.hitRate) + " (" +
                formatPercent(p.prefetchedShare) + " by prefetch).\n";
    }
    if (s.prefetch.recordedSource.empty()) return text;
    const CurvePoint* const p = pointOf(s.prefetch.recordedSource, s.recorded.cacheSize);
    text += "The predictions of " + s.recorded.prefetchSource +
            " are not recorded; its prefetches avoided " + formatPercent(s.prefetch.avoidedShare) +
            " of the misses of the session";
    if (p != nullptr) text += ", which gives a hit rate of " + formatPercent(p->hitRate);
    return text + ".\n";
}

std::string footText(const Simulation& s) {
    std::string text =
        "\n* the recorded cache size. optimum: Belady's MIN, which knows the "
        "future: no policy without prefetching hits more often.\n";
    if (s.samplingRate < 1)
        text += "slru, lfru and optimum come from a sample of " + formatPercent(s.samplingRate) +
                " of the experts: within " + formatFixed(100 * s.samplingError, 1) +
                " percentage points at the worst size. --max-lookups raises the limit.\n";
    text += prefetchText(s);
    if (!s.noDecodeRate.empty()) text += "No tok/s: " + s.noDecodeRate + ".\n";
    for (const std::string& note : s.notes) text += note + ".\n";
    return text;
}

int runSimulate(const SimulateArgs& args) {
    ProgressLine progress;
    const Result<Simulation> s =
        simulateSession(args.session, args.options, progress.function(), &interrupted());
    progress.finish();
    if (!s.ok()) return fail(s.status());
    if (args.json) return outJson(simulationJson(*s));
    return outText(headText(*s) + tableText(*s) + footText(*s)) ? kOk : kFailed;
}

}  // namespace

void addSimulate(Verbs& verbs) {
    auto args = std::make_shared<SimulateArgs>();
    CLI::App* verb = verbs.add("simulate",
                               "Replay a recorded session in expert caches of all sizes: hit rates "
                               "by policy, and the decode speed to expect",
                               [args] { return runSimulate(*args); });
    verb->add_option("SESSION", args->session, "Session file, written with --session")->required();
    verb->add_flag("--json", args->json, "One JSON object on standard output");
    verb->add_option("--max-lookups", args->options.mostLookups,
                     "Simulate a sample of the experts if the session has more lookups; one needs "
                     "about 24 bytes of memory")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
}

}  // namespace colibri::cli
