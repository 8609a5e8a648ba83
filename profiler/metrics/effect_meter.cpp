// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/effect_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace colibri {
namespace {

constexpr size_t kSteps = 2 * EffectMeter::kMost + EffectMeter::kMostSettling;
constexpr int kEvaluateEvery = 16;
constexpr int kFewestSettling = 8;      // steps right after a change that are never used
constexpr size_t kSettlingWindow = 16;  // steps
// A window is settled if at most this share of its misses, or of its lookups, is due to the earlier
// cache contents.
constexpr double kInheritedOfMisses = 0.05, kInheritedOfLookups = 0.002;
// A measurement is final if the half width of its interval is below either limit: absolute, or
// relative to the change.
constexpr double kNarrow = 0.02, kNarrowShare = 0.1;

double missesAt(const std::vector<uint32_t>& distances, int64_t slots) {
    return double(std::count_if(distances.begin(), distances.end(),
                                [&](uint32_t distance) { return distance >= slots; }));
}

std::pair<int, int> most(const std::map<int, int>& counts, const std::map<int, int>& without = {}) {
    std::pair<int, int> best{};
    for (const auto& [requests, steps] : counts) {
        if (!without.contains(requests) && steps > best.second) best = {requests, steps};
    }
    return best;
}

}  // namespace

EffectMeter::EffectMeter(int64_t moeLayers, int64_t experts)
    : m_experts(experts),
      m_slots(moeLayers * experts),
      m_distances(size_t(moeLayers * experts)),
      m_lastPeriod(size_t(moeLayers * experts), -1) {}

void EffectMeter::setCacheSlots(int64_t slots) {
    m_slots = slots;
}

void EffectMeter::addStep(int requests) {
    m_step = Step{.period = m_period, .counts = false, .requests = requests};
    m_counts = {};
    m_recorded = false;
}

void EffectMeter::addLookups(int64_t moeLayer, const LayerStepEvent& step) {
    if (!m_step || m_recorded) addStep(m_step ? m_step->requests : 1);
    for (int i = 0; i < std::min<int>(step.count, kEventExperts); ++i) {
        if (!(step.firstBits >> i & 1) || step.experts[i] >= m_experts) continue;
        const size_t key = size_t(moeLayer * m_experts + step.experts[i]);
        // The distance of a first use is at least the number of keys used so far.
        const uint32_t known = m_distances.distinct();
        const uint32_t distance = m_distances.use(key);
        const bool missed = !(step.hitBits >> i & 1);
        // A settled cache would hold it, but its last use was before this period.
        const bool inherited = missed && m_lastPeriod[key] < m_period &&
                               (distance == StackDistances::kNever ? known : distance) < m_slots;
        m_lastPeriod[key] = m_period;
        m_step->distances.push_back(distance);
        m_counts[0] += 1;
        m_counts[1] += missed;
        m_counts[2] += inherited;
    }
}

void EffectMeter::addToken(double gapNs) {
    if (!m_step || (m_recorded && m_step->requests <= 1)) addStep(m_step ? m_step->requests : 1);
    if (m_recorded) {  // another token of this step
        Step& step = m_steps.back();
        step.gapNs += (gapNs - step.gapNs) / ++step.tokens;
        return;
    }
    settle();
    m_step->period = m_period;
    m_step->counts = m_settling.done;
    m_step->gapNs = gapNs;
    m_step->tokens = 1;
    m_steps.push_back(*m_step);
    if (m_steps.size() > kSteps) m_steps.pop_front();
    m_recorded = true;
    if (m_measuring && m_settling.done) evaluate(m_step->requests);
}

void EffectMeter::settle() {
    Settling& s = m_settling;
    if (s.done) return;
    s.recent.push_back(m_counts);
    if (s.recent.size() > kSettlingWindow) s.recent.pop_front();
    if (++s.steps <= kFewestSettling) return;
    std::array<int, 3> sum{};
    for (const auto& counts : s.recent)
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
    s.done = sum[2] <= std::max(kInheritedOfMisses * sum[1], kInheritedOfLookups * sum[0]) ||
             s.steps > kMostSettling;
    if (m_measuring) m_progress.settling = !s.done;
}

void EffectMeter::newPeriod() {
    ++m_period;
    m_settling = {};
    m_dropped = 0;
    m_step.reset();
}

std::string EffectMeter::begin() {
    const std::map<int, int> before = countsByRequests(m_period);
    m_beforePeriod = m_period;
    m_beforeSlots = m_slots;
    const int total = int(std::count_if(m_steps.begin(), m_steps.end(),
                                        [&](const Step& step) { return step.period == m_period; }));
    newPeriod();
    m_progress = {.settling = true};
    m_measuring = most(before).second >= kMinimum;
    if (m_measuring) return "";
    int settled = 0;
    for (const auto& [requests, steps] : before) settled += steps;
    const std::string needed = std::to_string(kMinimum) + " are needed";
    if (total < kMinimum) return std::to_string(total) + " tokens before it, " + needed;
    if (settled < kMinimum)
        return "only " + std::to_string(settled) + " settled tokens before it, " + needed;
    return "number of requests changed: " + std::to_string(kMinimum) +
           " tokens at the same number are needed before it";
}

void EffectMeter::restart() {
    newPeriod();
    m_progress = {.settling = true};
}

std::map<int, int> EffectMeter::countsByRequests(int period) const {
    std::map<int, int> counts;
    for (const Step& step : m_steps)
        if (step.period == period && step.counts) ++counts[step.requests];
    return counts;
}

// The newest kMost settled steps of a period with this number of requests.
DecodeSteps EffectMeter::stepsOf(int period, int requests, int64_t slots) const {
    DecodeSteps out;
    for (auto step = m_steps.rbegin(); step != m_steps.rend(); ++step) {
        if (step->period != period || !step->counts || step->requests != requests) continue;
        out.gapNs.push_back(step->gapNs);
        out.misses.push_back(missesAt(step->distances, slots));
        if (out.gapNs.size() == size_t(kMost)) break;
    }
    std::reverse(out.gapNs.begin(), out.gapNs.end());
    std::reverse(out.misses.begin(), out.misses.end());
    return out;
}

// Called after a step with this number of requests was added to the side after.
void EffectMeter::evaluate(int requests) {
    std::map<int, int> before = countsByRequests(m_beforePeriod);
    std::erase_if(before, [](const auto& entry) { return entry.second < kMinimum; });
    const std::map<int, int> after = countsByRequests(m_period);
    int elsewhere = 0;
    m_progress.steps = 0;
    for (const auto& [number, count] : after) {
        if (before.contains(number)) {
            m_progress.steps = std::max(m_progress.steps, count);
        } else {
            elsewhere += count;
        }
    }
    if (!before.contains(requests)) {
        if (elsewhere < kMostElsewhere) return;
        if (!m_progress.estimate) m_progress.failure = endedEarly({});
        m_progress.final = true;
        return;
    }
    const int steps = after.at(requests);
    if (steps < m_progress.steps || steps < kNeeded || steps % kEvaluateEvery) return;
    const DecodeSteps sideAfter = stepsOf(m_period, requests, m_slots);
    const bool settling = !m_progress.estimate && m_dropped < kMostSettling && drifts(sideAfter);
    m_progress.settling = settling;
    if (settling) {
        dropOldest(requests);
    } else {
        estimate(requests, sideAfter);
    }
}

// Moves the oldest steps of the side after into settling.
void EffectMeter::dropOldest(int requests) {
    int left = kEvaluateEvery;
    for (Step& step : m_steps) {
        if (step.period != m_period || !step.counts || step.requests != requests) continue;
        step.counts = false;
        ++m_dropped;
        if (--left == 0) return;
    }
}

void EffectMeter::estimate(int requests, const DecodeSteps& sideAfter) {
    PooledMisses pool;
    for (const Step& step : m_steps) {
        if (step.requests != requests) continue;
        pool.before.push_back(missesAt(step.distances, m_beforeSlots));
        pool.after.push_back(missesAt(step.distances, m_slots));
    }
    const DecodeSteps sideBefore = stepsOf(m_beforePeriod, requests, m_beforeSlots);
    const EffectEstimate e = estimateEffect(sideBefore, sideAfter, pool);
    m_progress.estimate = e;
    m_progress.before = int(sideBefore.gapNs.size());
    m_progress.after = int(sideAfter.gapNs.size());
    m_progress.requests = requests;
    const double reach = (e.high - e.low) / 2;
    // A short text can look more uniform than the text after it: its misses and blocks do not show
    // later variation. A narrow interval is therefore not final before kFewest steps.
    const bool narrow =
        reach < std::max(kNarrow, kNarrowShare * std::abs(e.change)) && m_progress.after >= kFewest;
    m_progress.final = narrow || m_progress.after >= kMost;
}

std::string EffectMeter::endedEarly(const std::string& why) const {
    const std::map<int, int> before = countsByRequests(m_beforePeriod);
    const std::map<int, int> after = countsByRequests(m_period);
    const auto elsewhere = most(after, before);
    if (m_progress.settling && elsewhere.second == 0) return why + " while the cache was settling";
    if (elsewhere.second <= m_progress.steps)
        return why + " after " + std::to_string(m_progress.steps) + " of " +
               std::to_string(kNeeded) + " tokens";
    return "number of requests changed (" + std::to_string(most(before).first) + " before, " +
           std::to_string(elsewhere.first) + " after)";
}

}  // namespace colibri
