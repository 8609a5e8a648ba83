// SPDX-License-Identifier: Apache-2.0
#include "profiler/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace colibri {
namespace {

constexpr size_t kCompareCancelEvery = 4096;  // rows
constexpr size_t kFewRequests = 32;           // too few to draw blocks of them
constexpr double kQuantiles[] = {0.5, 0.9, 0.99, 0.999};

// The values of a session by token or request, in the order in which requests arrived.
struct Values {
    std::vector<double> gapMs;          // of tokens with a gap
    std::vector<double> lookups, hits;  // of the same tokens
    std::vector<int64_t> tokens;        // all, ids
    std::vector<double> times;          // of all tokens, s
    std::vector<double> bytes;          // of all tokens: read since the previous one of any request
    double allBytes = 0;                // also after the last token
    std::vector<double> ttftMs;         // of requests
    std::vector<std::string> prompts;   // bytes of each request's prompt
    std::map<std::string, std::string> knobs;
};

Status cancelled() {
    return {Code::Cancelled, "the comparison was cancelled"};
}

Status readTokens(const SessionDb& db, Values& out, const CancelFlag* cancel) {
    SessionRows rows;
    COLIBRI_TRY(
        rows.prepare(db,
                     "SELECT token, gap_ns, lookups, hits, t FROM tokens JOIN requests "
                     "ON requests.id = request ORDER BY requests.arrived, requests.id, idx"));
    while (rows.next()) {
        if (out.tokens.size() % kCompareCancelEvery == 0 && cancel && cancel->load())
            return cancelled();
        out.tokens.push_back(rows.integer(0));
        out.times.push_back(rows.real(4));
        if (rows.integer(1) <= 0) continue;
        out.gapMs.push_back(double(rows.integer(1)) / 1e6);
        out.lookups.push_back(double(rows.integer(2)));
        out.hits.push_back(double(rows.integer(3)));
    }
    return rows.status();
}

Status readRequests(const SessionDb& db, Values& out) {
    SessionRows rows;
    COLIBRI_TRY(
        rows.prepare(db,
                     "SELECT (first_token - arrived) * 1e3, prompt_tokens, id FROM requests "
                     "WHERE first_token IS NOT NULL ORDER BY arrived, id"));
    std::map<int64_t, size_t> number;
    while (rows.next()) {
        out.ttftMs.push_back(rows.real(0));
        number[rows.integer(2)] = out.prompts.size();
        out.prompts.push_back(std::to_string(rows.integer(1)) + " tokens ");
    }
    COLIBRI_TRY(rows.status());
    if (!db.has("prompts", "tokens")) return {};
    COLIBRI_TRY(rows.prepare(db, "SELECT request, tokens FROM prompts ORDER BY request, first"));
    while (rows.next()) {
        const auto it = number.find(rows.integer(0));
        if (it == number.end()) continue;
        const std::span<const uint8_t> bytes = rows.blob(1);
        out.prompts[it->second].append(bytes.begin(), bytes.end());
    }
    return rows.status();
}

Status readKnobs(const SessionDb& db, Values& out) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT name, effective FROM knobs WHERE t <= 0"));
    while (rows.next()) out.knobs[std::string(rows.text(0))] = rows.text(1);
    return rows.status();
}

// Each token bears what was read after the token before it, in the order of time.
Status readBytes(const SessionDb& db, Values& out, const CancelFlag* cancel) {
    std::vector<size_t> byTime(out.times.size());
    std::iota(byTime.begin(), byTime.end(), size_t(0));
    std::stable_sort(byTime.begin(), byTime.end(),
                     [&](size_t a, size_t b) { return out.times[a] < out.times[b]; });
    out.bytes.assign(out.times.size(), 0);
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, bytes FROM loads WHERE failed = 0 ORDER BY t"));
    size_t next = 0;
    for (int64_t count = 0; rows.next(); ++count) {
        if (count % kCompareCancelEvery == 0 && cancel && cancel->load()) return cancelled();
        while (next < byTime.size() && out.times[byTime[next]] < rows.real(0)) ++next;
        if (next < byTime.size()) out.bytes[byTime[next]] += rows.real(1);
        out.allBytes += rows.real(1);
    }
    return rows.status();
}

Result<Values> readValues(const SessionDb& db, const CancelFlag* cancel) {
    Values out;
    COLIBRI_TRY(readTokens(db, out, cancel));
    COLIBRI_TRY(readBytes(db, out, cancel));
    COLIBRI_TRY(readRequests(db, out));
    COLIBRI_TRY(readKnobs(db, out));
    return out;
}

std::vector<std::string> reasonsAgainst(const SessionDb& a, const SessionDb& b, const Values& x,
                                        const Values& y) {
    std::vector<std::string> out;
    if (a.meta("model_fingerprint") != b.meta("model_fingerprint"))
        out.push_back("the models differ: " + a.meta("model") + " and " + b.meta("model"));
    if (x.prompts.size() != y.prompts.size()) {
        out.push_back("the numbers of requests differ: " + std::to_string(x.prompts.size()) +
                      " and " + std::to_string(y.prompts.size()));
    } else if (x.prompts != y.prompts) {
        out.push_back("the prompts differ");
    }
    return out;
}

std::vector<SessionComparison::KnobDifference> knobDifferences(const Values& x, const Values& y) {
    std::vector<SessionComparison::KnobDifference> out;
    const auto value = [](const Values& values, const std::string& name) {
        const auto it = values.knobs.find(name);
        return it == values.knobs.end() ? std::string("n/a") : it->second;
    };
    std::map<std::string, std::string> names = x.knobs;
    names.insert(y.knobs.begin(), y.knobs.end());
    for (const auto& [name, unused] : names)
        if (value(x, name) != value(y, name)) out.push_back({name, value(x, name), value(y, name)});
    return out;
}

// The difference of a rate that is the reciprocal of a mean.
Difference reciprocal(Difference d, double scale) {
    Difference out;
    out.before = scale / d.before;
    out.after = scale / d.after;
    out.relative = 1 / (1 + d.relative) - 1;
    out.low = 1 / (1 + d.high) - 1;
    out.high = 1 / (1 + d.low) - 1;
    out.significant = d.significant;
    return out;
}

double shareOf(const std::vector<double>& part, const std::vector<double>& whole) {
    double a = 0, b = 0;
    for (const double value : part) a += value;
    for (const double value : whole) b += value;
    return b > 0 ? a / b : std::nan("");
}

}  // namespace

Result<SessionComparison> compareSessions(const SessionDb& before, const SessionDb& after,
                                          const CancelFlag* cancel) {
    auto x = readValues(before, cancel);
    if (!x) return x.status();
    auto y = readValues(after, cancel);
    if (!y) return y.status();
    SessionComparison out;
    out.whyNot = reasonsAgainst(before, after, *x, *y);
    out.matched =
        out.whyNot.empty() && x->tokens == y->tokens && x->gapMs.size() == y->gapMs.size();
    out.knobs = knobDifferences(*x, *y);
    const auto compare = [&](std::span<const double> a, std::span<const double> b,
                             const Figure& figure) {
        return out.matched ? pairedDifference(a, b, figure) : unpairedDifference(a, b, figure);
    };
    out.figures.push_back({"decode_tok_s", reciprocal(compare(x->gapMs, y->gapMs, meanOf), 1e3)});
    out.figures.push_back({"itl_p50_ms", compare(x->gapMs, y->gapMs, quantileFigure(0.5))});
    out.figures.push_back({"itl_p99_ms", compare(x->gapMs, y->gapMs, quantileFigure(0.99))});
    out.figures.push_back({"ttft_ms", std::min(x->ttftMs.size(), y->ttftMs.size()) < kFewRequests
                                          ? ratioDifference(x->ttftMs, y->ttftMs, out.matched)
                                          : compare(x->ttftMs, y->ttftMs, quantileFigure(0.5))});
    // Tokens have nearly the same number of lookups, so the mean number of hits stands for the
    // rate.
    Difference hits = compare(x->hits, y->hits, meanOf);
    hits.before = shareOf(x->hits, x->lookups);
    hits.after = shareOf(y->hits, y->lookups);
    out.figures.push_back({"hit_rate", hits});
    Difference bytes = compare(x->bytes, y->bytes, meanOf);
    bytes.before = x->allBytes;
    bytes.after = y->allBytes;
    out.figures.push_back({"bytes", bytes});
    for (const double gap : x->gapMs) out.itlBefore.add(uint64_t(gap * 1e6));
    for (const double gap : y->gapMs) out.itlAfter.add(uint64_t(gap * 1e6));
    for (const double q : kQuantiles)
        out.quantiles.emplace_back(q, (out.itlAfter.quantile(q) - out.itlBefore.quantile(q)) / 1e6);
    return out;
}

}  // namespace colibri
