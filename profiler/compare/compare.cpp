// SPDX-License-Identifier: Apache-2.0
#include "profiler/compare/compare.h"

#include <cmath>
#include <map>

namespace colibri {
namespace {

constexpr double kQuantiles[] = {0.5, 0.9, 0.99, 0.999};

// The values of a session by token or request, in the order in which requests arrived.
struct Values {
    std::vector<double> gapMs;          // of tokens with a gap
    std::vector<double> lookups, hits;  // of the same tokens
    std::vector<int64_t> tokens;        // all, ids
    std::vector<double> ttftMs;         // of requests
    std::vector<std::string> prompts;   // bytes of each request's prompt
    std::map<std::string, std::string> knobs;
};

Status readTokens(const SessionDb& db, Values& out, const CancelFlag* cancel) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        db,
        "SELECT token, gap_ns, lookups, hits FROM tokens JOIN requests ON requests.id = request "
        "ORDER BY requests.arrived, requests.id, idx"));
    while (rows.next()) {
        if (out.tokens.size() % 4096 == 0 && cancel && cancel->load())
            return {Code::Cancelled, "the comparison was cancelled"};
        out.tokens.push_back(rows.integer(0));
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

Result<double> bytesRead(const SessionDb& db) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT coalesce(sum(bytes), 0) FROM loads WHERE failed = 0"));
    const double bytes = rows.next() ? rows.real(0) : 0;
    COLIBRI_TRY(rows.status());
    return bytes;
}

Result<Values> readValues(const SessionDb& db, const CancelFlag* cancel) {
    Values out;
    COLIBRI_TRY(readTokens(db, out, cancel));
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

// Two totals without a distribution.
Difference plain(double before, double after) {
    Difference out;
    out.before = before;
    out.after = after;
    out.relative = before != 0 ? after / before - 1 : std::nan("");
    out.low = out.high = std::nan("");
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
    out.figures.push_back({"ttft_ms", compare(x->ttftMs, y->ttftMs, quantileFigure(0.5))});
    // Tokens have nearly the same number of lookups, so the mean number of hits stands for the
    // rate.
    Difference hits = compare(x->hits, y->hits, meanOf);
    hits.before = shareOf(x->hits, x->lookups);
    hits.after = shareOf(y->hits, y->lookups);
    out.figures.push_back({"hit_rate", hits});
    const auto bytesBefore = bytesRead(before), bytesAfter = bytesRead(after);
    if (!bytesBefore) return bytesBefore.status();
    if (!bytesAfter) return bytesAfter.status();
    out.figures.push_back({"bytes", plain(*bytesBefore, *bytesAfter)});
    for (const double gap : x->gapMs) out.itlBefore.add(uint64_t(gap * 1e6));
    for (const double gap : y->gapMs) out.itlAfter.add(uint64_t(gap * 1e6));
    for (const double q : kQuantiles)
        out.quantiles.emplace_back(q, (out.itlAfter.quantile(q) - out.itlBefore.quantile(q)) / 1e6);
    return out;
}

}  // namespace colibri
