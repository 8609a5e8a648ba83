// SPDX-License-Identifier: Apache-2.0
// The NUMA node on which each slot should be, and the slots that still have to be moved there. New
// slots are bound when they are created; a thread of the store moves the others, one at a time.
//
// The address of its memory identifies a slot. Not thread-safe: the store calls it under its lock,
// except for the answers() to questions, which call the kernel and need no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/knobs/knobs.h"
#include "engine/store/numa.h"

namespace colibri {

class SlotMover {
public:
    SlotMover(Numa& numa, int64_t slotBytes) : m_numa(numa), m_slotBytes(size_t(slotBytes)) {}

    // Sets where slots should be from now on. True: existing slots have to be moved.
    bool setPlace(NumaMode mode, int64_t node);
    NumaPlace place() const { return m_place; }
    // Counts the changes of place(): shows whether work begun earlier is still valid.
    uint32_t serial() const { return m_serial; }
    void fail(std::string reason) { m_reason = std::move(reason); }

    void addNew(std::byte* slot);     // its pages are not allocated yet. Throws std::bad_alloc
    void addPlaced(std::byte* slot);  // it is at place() already. Throws std::bad_alloc
    void remove(std::byte* slot);

    int64_t misplaced() const { return m_misplaced; }  // slots still to be moved
    bool isMisplaced(std::byte* slot) const { return m_placed.at(slot) != m_serial; }
    // A move to the place() of `serial` has ended: `slot` counts as moved.
    void endMove(std::byte* slot, uint32_t serial);

    // The state of the knobs. What the kernel reports for a sample of the slots takes precedence
    // over the requested node; a slot freed in the meantime does not count.
    struct Question {
        KnobState state;
        std::string reason;
        std::vector<std::byte*> sample;  // slots to query; empty: state is the answer
    };
    Question modeQuestion() const;
    Question nodeQuestion() const;
    static KnobState answerMode(const Numa& numa, const Question& question);  // without the lock
    static KnobState answerNode(const Numa& numa, const Question& question);

private:
    std::string progressText() const;  // "12 of 64 slots moved"
    std::vector<std::byte*> takeSample() const;

    Numa& m_numa;
    const size_t m_slotBytes;
    NumaPlace m_requested, m_place;  // requested, and effective for new slots
    std::string m_reason;            // why they differ
    uint32_t m_serial = 0;
    std::unordered_map<std::byte*, uint32_t> m_placed;  // slot -> serial of its last move
    int64_t m_misplaced = 0;
};

}  // namespace colibri
