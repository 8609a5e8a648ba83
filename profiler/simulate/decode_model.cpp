// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/decode_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace colibri {
namespace {

constexpr int64_t kFewestWaits = 8;  // of one number of misses, to use their mean
constexpr size_t kResamples = 1000;
constexpr size_t kFewestBlocks = 4;  // for an interval
constexpr size_t kFewestSteps = 32;  // for the overhead of misses
constexpr double kSignificant = 3;   // standard errors of a slope
const double kUnknown = std::nan("");

// Makes means by increasing misses non-decreasing: pools neighbours that are out of order (isotonic
// regression, pool adjacent violators).
struct Pool {
    double misses, wait, count;
    size_t members;
};

std::vector<Pool> inOrder(const std::vector<Pool>& points) {
    std::vector<Pool> pools;
    for (Pool next : points) {
        while (!pools.empty() && pools.back().wait >= next.wait) {
            const Pool& last = pools.back();
            const double count = last.count + next.count;
            next.wait = (last.wait * last.count + next.wait * next.count) / count;
            next.misses = (last.misses * last.count + next.misses * next.count) / count;
            next.count = count;
            pools.pop_back();
        }
        pools.push_back(next);
    }
    return pools;
}

}  // namespace

// ---- what a miss costs ----

void MissCost::add(int64_t misses, uint64_t waitNs) {
    if (misses <= 0) return;
    const auto at = size_t(misses);
    if (m_counts.size() <= at) {
        m_counts.resize(at + 1);
        m_sums.resize(at + 1);
    }
    ++m_counts[at];
    m_sums[at] += double(waitNs);
}

void MissCost::finish(double readNs) {
    double misses = 0, wait = 0;
    std::vector<Pool> points;
    const int64_t most = m_counts.empty() ? 0 : *std::max_element(m_counts.begin(), m_counts.end());
    for (size_t m = 1; m < m_counts.size(); ++m) {
        misses += double(m) * double(m_counts[m]);
        wait += m_sums[m];
        if (m_counts[m] == 0 || m_counts[m] < std::min(kFewestWaits, most)) continue;
        points.push_back({double(m), m_sums[m] / double(m_counts[m]), double(m_counts[m]), 1});
    }
    m_meanNs = misses > 0 ? wait / misses : readNs;
    const std::vector<Pool> pools = inOrder(points);
    m_waits = {0};
    double x = 0, y = 0;
    for (const Pool& pool : pools) {
        m_slopeNs = (pool.wait - y) / (pool.misses - x);
        for (auto m = double(m_waits.size()); m <= pool.misses; ++m)
            m_waits.push_back(y + m_slopeNs * (m - x));
        x = pool.misses;
        y = pool.wait;
    }
    if (pools.empty()) {
        m_slopeNs = m_meanNs;
    } else if (pools.size() > 1) {  // beyond the last: the mean slope, without the first miss
        m_slopeNs =
            (pools.back().wait - pools.front().wait) / (pools.back().misses - pools.front().misses);
    }
}

double MissCost::costNs(int64_t misses) const {
    const auto last = int64_t(m_waits.size()) - 1;
    const double wait = misses <= last ? m_waits[size_t(misses)]
                                       : m_waits.back() + double(misses - last) * m_slopeNs;
    return wait + double(misses) * m_overheadNs;
}

double MissCost::meanNs() const {
    return m_meanNs + m_overheadNs;
}

// ---- rates ----

DecodeModel::DecodeModel(std::vector<StepTimes> steps, MissCost cost)
    : m_steps(std::move(steps)), m_cost(std::move(cost)) {
    double tokens = 0;
    for (const StepTimes& step : m_steps) tokens += double(step.tokens);
    if (tokens == 0) {
        m_reason = "the session has no gap between two tokens of a request";
    } else if (m_cost.meanNs() <= 0) {
        m_reason = "no expert was read in the session, so the cost of a miss is unknown";
    }
    findOverhead();
    makeBlocks();
    draw();
}

// The slope of the time without waits over the misses of the step, by least squares, from steps
// with the most frequent number of rows. Negative slopes are chance.
void DecodeModel::findOverhead() {
    std::map<int64_t, size_t> byRows;
    for (const StepTimes& step : m_steps)
        if (step.tokens > 0) ++byRows[step.rows];
    const auto usual =
        std::max_element(byRows.begin(), byRows.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (usual == byRows.end() || usual->second < kFewestSteps) return;
    const auto n = double(usual->second);
    const auto each = [&](const auto& take) {
        for (const StepTimes& step : m_steps)
            if (step.tokens > 0 && step.rows == usual->first)
                take(double(step.misses), step.otherNs / double(step.tokens));
    };
    double x = 0, y = 0, xx = 0, xy = 0, residuals = 0;
    each([&](double misses, double ns) {
        x += misses / n;
        y += ns / n;
    });
    each([&](double misses, double ns) {
        xx += (misses - x) * (misses - x);
        xy += (misses - x) * (ns - y);
    });
    if (xx <= 0 || xy <= 0) return;
    const double slope = xy / xx;
    each([&](double misses, double ns) {
        const double off = ns - y - slope * (misses - x);
        residuals += off * off;
    });
    if (slope < kSignificant * std::sqrt(residuals / (n - 2) / xx)) return;
    m_cost.addOverhead(slope);
    for (StepTimes& step : m_steps)
        step.otherNs =
            std::max(0.0, step.otherNs - double(step.tokens) * slope * double(step.misses));
}

void DecodeModel::makeBlocks() {
    double all = 0, seen = 0;
    for (const StepTimes& step : m_steps) all += double(step.tokens);
    const double length = std::max(1.0, std::floor(std::sqrt(all)));
    const auto count = size_t(std::max(1.0, std::floor(all / length)));
    m_blocks.resize(count);
    m_blockOf.reserve(m_steps.size());
    for (const StepTimes& step : m_steps) {
        const size_t block = std::min(count - 1, size_t(seen / length));
        m_blockOf.push_back(uint32_t(block));
        m_blocks[block].tokens += double(step.tokens);
        m_blocks[block].otherNs += step.otherNs;
        seen += double(step.tokens);
    }
}

void DecodeModel::draw() {
    if (m_blocks.size() < kFewestBlocks) return;
    std::mt19937_64 random(1);  // the same draws for all curves, and in each run
    m_draws.assign(kResamples * m_blocks.size(), 0);
    for (size_t i = 0; i < kResamples; ++i)
        for (size_t b = 0; b < m_blocks.size(); ++b)
            ++m_draws[i * m_blocks.size() + random() % m_blocks.size()];
}

double DecodeModel::costOf(int64_t misses, double rate) const {
    return rate < 1 ? double(misses) * m_cost.meanNs() / rate : m_cost.costNs(misses);
}

void DecodeModel::addCost(uint32_t step, int64_t misses, double rate,
                          std::span<double> costNs) const {
    if (misses > 0 && m_steps[step].tokens > 0)
        costNs[m_blockOf[step]] += double(m_steps[step].tokens) * costOf(misses, rate);
}

DecodeRate DecodeModel::rate(std::span<const double> costNs) const {
    if (!m_reason.empty()) return {kUnknown, kUnknown, kUnknown};
    double tokens = 0, ns = 0;
    for (size_t b = 0; b < m_blocks.size(); ++b) {
        tokens += m_blocks[b].tokens;
        ns += m_blocks[b].otherNs + costNs[b];
    }
    DecodeRate out{1e9 * tokens / ns, kUnknown, kUnknown};
    if (m_draws.empty()) return out;
    std::vector<double> rates(kResamples);
    for (size_t i = 0; i < kResamples; ++i) {
        tokens = ns = 0;
        for (size_t b = 0; b < m_blocks.size(); ++b) {
            const double drawn = m_draws[i * m_blocks.size() + b];
            tokens += drawn * m_blocks[b].tokens;
            ns += drawn * (m_blocks[b].otherNs + costNs[b]);
        }
        rates[i] = 1e9 * tokens / ns;
    }
    std::sort(rates.begin(), rates.end());
    out.low = rates[size_t(0.025 * kResamples)];
    out.high = rates[size_t(0.975 * kResamples) - 1];
    return out;
}

DecodeRate rateOrUnknown(const DecodeModel* model, std::span<const double> costNs) {
    return model ? model->rate(costNs) : DecodeRate{kUnknown, kUnknown, kUnknown};
}

}  // namespace colibri
