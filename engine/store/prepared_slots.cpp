// SPDX-License-Identifier: Apache-2.0
#include "engine/store/prepared_slots.h"

#include <algorithm>
#include <utility>

#include "engine/base/format.h"

namespace colibri {

namespace {

// While tokens are computed, the thread rests this many times as long as it works.
constexpr uint64_t kRests = 3;
constexpr double kNotedSeconds = 0.1;  // a shorter phase gets no note
// Smaller slots share one huge page: touching one costs little.
constexpr int64_t kLargeSlot = 2 << 20;
// Touching memory must pay off within this many steps.
constexpr int64_t kPayback = 64;

// The mean of the last few values.
void blend(int64_t& mean, int64_t value) {
    mean = mean == 0 ? value : mean + (value - mean) / 8;
}

}  // namespace

PreparedSlots::PreparedSlots(bool enabled, int64_t slotBytes, size_t most)
    : m_enabled(enabled), m_slotBytes(slotBytes) {
    m_ready.reserve(most);
}

std::byte* PreparedSlots::take() {
    if (m_ready.empty()) return nullptr;
    std::byte* const slot = m_ready.back();
    m_ready.pop_back();
    return slot;
}

void PreparedSlots::beginWork(uint64_t now) {
    if (m_phaseFromNs == 0) m_phaseFromNs = now;
    m_workFromNs = now;
    m_preparing = 1;
}

void PreparedSlots::endWork(uint64_t now) {
    m_preparing = 0;
    m_restUntilNs = now + kRests * (now - m_workFromNs);
}

void PreparedSlots::add(std::byte* slot, uint64_t tookNs) {
    m_ready.push_back(slot);
    ++m_phaseSlots;
    blend(m_touchNs, int64_t(tookNs));
}

std::string PreparedSlots::endPhase(uint64_t now) {
    if (m_phaseFromNs == 0) return {};
    const double seconds = double(now - std::exchange(m_phaseFromNs, 0)) * 1e-9;
    const int64_t slots = std::exchange(m_phaseSlots, 0);
    if (slots == 0 || seconds < kNotedSeconds) return {};
    return "memory for " + formatCount(slots) + " experts (" +
           formatGiB(double(slots * m_slotBytes)) + ") prepared in " + formatFixed(seconds, 1) +
           " s";
}

void PreparedSlots::addRead(uint64_t tookNs) {
    blend(m_readNs, int64_t(tookNs));
}

bool PreparedSlots::evictionPays(int64_t age) const {
    if (!m_enabled || m_full || m_slotBytes < kLargeSlot) return false;
    if (m_readNs == 0 || m_touchNs <= m_readNs) return false;
    return age * m_touchNs > kPayback * m_readNs;
}

}  // namespace colibri
