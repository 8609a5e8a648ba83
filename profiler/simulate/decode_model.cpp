// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/decode_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace colibri {
namespace {

constexpr int64_t kFewestLayers = 8;  // with one number of misses, to use their mean
constexpr size_t kResamples = 1000;
constexpr size_t kFewestSteps = 8;         // for a median
constexpr double kMostSlowness = 0.5;      // of the time without misses
constexpr size_t kFewestDecodeBlocks = 4;  // for an interval
const double kUnknown = std::nan("");

// Makes means by increasing misses non-decreasing: pools neighbours that are out of order (isotonic
// regression, pool adjacent violators).
struct Pool {
    double misses, wait, count;
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

void MissCost::add(int64_t misses, uint64_t waitNs, uint64_t computeNs) {
    const auto at = size_t(std::max<int64_t>(0, misses));
    if (m_sums.size() <= at) m_sums.resize(at + 1);
    ++m_layers;
    ++m_sums[at].count;
    m_sums[at].waitNs += double(waitNs);
    m_sums[at].computeNs += double(computeNs);
}

void MissCost::finish(double readNs) {
    findComputation();
    findWaits();
    double cost = 0;
    for (size_t m = 1; m < m_sums.size(); ++m) {
        const auto layers = double(m_sums[m].count);
        m_missLayers += layers;
        m_misses += layers * double(m);
        cost += m_sums[m].waitNs + layers * computeNs(1, int64_t(m));
    }
    m_meanNs = m_misses > 0 ? cost / m_misses : readNs;
    if (m_waits.size() == 1) m_slopeNs = m_meanNs;
}

// A line through the computation of layers with misses, above that of layers without, by least
// squares. A miss makes no computation faster: negative values are chance.
void MissCost::findComputation() {
    if (m_sums.empty() || m_sums[0].count < kFewestLayers) return;
    const double without = m_sums[0].computeNs / double(m_sums[0].count);
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t m = 1; m < m_sums.size(); ++m) {
        const auto count = double(m_sums[m].count);
        const double more = m_sums[m].computeNs - count * without;
        n += count;
        x += count * double(m);
        y += more;
        xx += count * double(m * m);
        xy += double(m) * more;
    }
    if (n == 0) return;
    const double spread = xx - x * x / n;
    m_missNs = spread > 0 ? std::max(0.0, (xy - x * y / n) / spread) : 0;
    m_layerNs = (y - m_missNs * x) / n;
    if (m_layerNs < 0) {
        m_layerNs = 0;
        m_missNs = std::max(0.0, y / x);
    }
}

void MissCost::findWaits() {
    std::vector<Pool> points;
    int64_t most = 0;
    for (size_t m = 1; m < m_sums.size(); ++m) most = std::max(most, m_sums[m].count);
    for (size_t m = 1; m < m_sums.size(); ++m) {
        const auto count = double(m_sums[m].count);
        if (count == 0 || m_sums[m].count < std::min(kFewestLayers, most)) continue;
        points.push_back({double(m), m_sums[m].waitNs / count, count});
    }
    const std::vector<Pool> pools = inOrder(points);
    double x = 0, y = 0;
    for (const Pool& pool : pools) {
        m_slopeNs = (pool.wait - y) / (pool.misses - x);
        for (auto m = double(m_waits.size()); m <= pool.misses; ++m)
            m_waits.push_back(y + m_slopeNs * (m - x));
        x = pool.misses;
        y = pool.wait;
    }
    if (pools.size() > 1)  // beyond the last: the mean slope, without the first miss
        m_slopeNs =
            (pools.back().wait - pools.front().wait) / (pools.back().misses - pools.front().misses);
}

void MissCost::addPerLayer(double ns) {
    m_layerNs += ns;
    if (m_misses > 0) m_meanNs += ns * m_missLayers / m_misses;
}

double MissCost::costNs(int64_t misses) const {
    if (misses <= 0) return 0;
    const auto last = int64_t(m_waits.size()) - 1;
    const double wait = misses <= last ? m_waits[size_t(misses)]
                                       : m_waits.back() + double(misses - last) * m_slopeNs;
    return wait + computeNs(1, misses);
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
    for (StepTimes& step : m_steps)
        step.otherNs -= double(step.tokens) * m_cost.computeNs(step.missLayers, step.misses);
    findSlowness();
    makeBlocks();
    draw();
}

// Everything is slower after a wait, since caches and clocks have cooled down: the slope of the
// remaining time over the layers with misses, by least squares through the medians of the steps
// with equally many such layers. Medians, as other programs slow single steps down by much. A
// negative slope is chance.
void DecodeModel::findSlowness() {
    std::map<int64_t, std::vector<double>> rest;  // ns per token, by layers with misses
    for (const StepTimes& step : m_steps)
        if (step.tokens > 0) rest[step.missLayers].push_back(step.otherNs / double(step.tokens));
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (auto& [layers, times] : rest) {
        if (times.size() < kFewestSteps) continue;
        const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        const auto weight = double(times.size());
        n += weight;
        x += weight * double(layers);
        y += weight * *middle;
        xx += weight * double(layers * layers);
        xy += weight * double(layers) * *middle;
    }
    if (n == 0 || xx - x * x / n <= 0) return;
    const double slope =
        std::min((xy - x * y / n) / (xx - x * x / n), kMostSlowness * y / std::max(n, x));
    if (slope <= 0) return;
    m_cost.addPerLayer(slope);
    for (StepTimes& step : m_steps)
        step.otherNs -= double(step.tokens) * slope * double(step.missLayers);
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
    if (m_blocks.size() < kFewestDecodeBlocks) return;
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
