// SPDX-License-Identifier: Apache-2.0
#include "engine/store/slot_mover.h"

#include <algorithm>
#include <array>

#include "engine/base/format.h"

namespace colibri {

namespace {

constexpr size_t kNumaModes = 3;
constexpr size_t kSampledSlots = 256;  // number of slots per query of the kernel

}  // namespace

bool SlotMover::setPlace(NumaMode mode, int64_t node) {
    const int nodes = m_numa.nodes();
    m_requested = {mode, int(std::clamp<int64_t>(node, 0, INT16_MAX))};
    m_reason = mode == NumaMode::Off ? std::string() : m_numa.refusal();
    if (m_reason.empty() && mode == NumaMode::Bind && m_requested.node >= nodes) {
        m_reason = numaNodesText(nodes);
    }
    const NumaPlace wanted = m_reason.empty() ? m_requested : NumaPlace{};
    if (wanted == m_place) return false;
    m_place = wanted;
    ++m_serial;
    m_misplaced = int64_t(m_placed.size());
    return true;
}

void SlotMover::addNew(std::byte* slot) {
    addPlaced(slot);
    if (m_place.mode == NumaMode::Off) return;
    const auto placed = m_numa.place({slot, m_slotBytes}, m_place);
    if (!placed.ok()) m_reason = placed.status().message();
}

void SlotMover::addPlaced(std::byte* slot) {
    m_placed[slot] = m_serial;
}

void SlotMover::remove(std::byte* slot) {
    const auto found = m_placed.find(slot);
    if (found->second != m_serial) --m_misplaced;
    m_placed.erase(found);
}

void SlotMover::endMove(std::byte* slot, uint32_t serial) {
    m_placed[slot] = serial;
    if (serial == m_serial) --m_misplaced;
}

std::string SlotMover::progressText() const {
    const auto all = int64_t(m_placed.size());
    return formatCount(all - m_misplaced) + " of " + formatCount(all) + " slots moved";
}

// Evenly over all slots.
std::vector<std::byte*> SlotMover::takeSample() const {
    std::vector<std::byte*> slots;
    const size_t step = std::max<size_t>(1, m_placed.size() / kSampledSlots);
    size_t i = 0;
    for (const auto& [memory, serial] : m_placed)
        if (i++ % step == 0) slots.push_back(memory);
    return slots;
}

SlotMover::Question SlotMover::modeQuestion() const {
    Question question;
    question.state = {int64_t(m_requested.mode), int64_t(m_place.mode), m_reason};
    if (m_misplaced > 0) {
        question.state.reason = progressText();
    } else {
        question.sample = takeSample();
    }
    return question;
}

KnobState SlotMover::answerMode(const Numa& numa, const Question& question) {
    KnobState state = question.state;
    std::array<int, kNumaModes> counts{};
    for (const std::byte* slot : question.sample)
        if (const auto place = numa.placeOf(slot)) ++counts[size_t(place->mode)];
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most > 0) state.effective = most - counts.begin();
    return state;
}

SlotMover::Question SlotMover::nodeQuestion() const {
    Question question;
    question.state = {m_requested.node, m_requested.node, {}};
    question.reason = m_reason;
    const int nodes = m_numa.nodes();
    if (m_place.mode == NumaMode::Bind && m_misplaced > 0) {
        question.state.reason = progressText();
        return question;
    }
    if (m_requested.node >= nodes) {
        question.state.effective = nodes - 1;
        question.state.reason = numaNodesText(nodes);
    }
    if (m_place.mode == NumaMode::Bind) question.sample = takeSample();
    return question;
}

// The node that actually has most of the slots.
KnobState SlotMover::answerNode(const Numa& numa, const Question& question) {
    KnobState state = question.state;
    const int nodes = numa.nodes();
    std::vector<int> counts(size_t(nodes), 0);
    int known = 0;
    for (const int node : numa.nodesOf(question.sample)) {
        if (node < 0 || node >= nodes) continue;
        ++counts[size_t(node)];
        ++known;
    }
    if (known == 0) return state;
    const auto most = std::max_element(counts.begin(), counts.end());
    state.effective = most - counts.begin();
    if (*most < known) {
        state.reason = formatCount(*most) + " of " + formatCount(known) +
                       " sampled slots are on node " + std::to_string(state.effective);
    } else if (state.effective != state.requested) {
        state.reason =
            question.reason.empty() ? "the kernel did not move the memory" : question.reason;
    }
    return state;
}

}  // namespace colibri
