// SPDX-License-Identifier: Apache-2.0
#include "engine/store/link.h"

#include <algorithm>

namespace colibri {

namespace {
constexpr uint64_t kUnitsPerByte = 1'000'000'000;
}

void LinkLimiter::advance(uint64_t now) {
    if (now <= m_now) return;
    Units budget = Units(now - m_now) * Units(m_rate);
    m_now = now;
    for (Entry& entry : m_entries) {
        const Units carried = std::min(budget, entry.left);
        entry.left -= carried;
        budget -= carried;
        if (budget == 0) break;
    }
}

void LinkLimiter::setRate(int64_t bytesPerSecond, uint64_t now) {
    advance(now);
    m_rate = std::max<int64_t>(0, bytesPerSecond);
    if (m_rate == 0)
        for (Entry& entry : m_entries) entry.left = 0;
}

void LinkLimiter::insert(const Entry& entry) {
    auto at = m_entries.end();
    if (entry.demand)
        at = std::find_if(m_entries.begin(), m_entries.end(),
                          [](const Entry& e) { return !e.demand; });
    m_entries.insert(at, entry);
}

LinkLimiter::Transfer LinkLimiter::begin(int64_t bytes, bool demand, uint64_t now) {
    advance(now);
    const Units left = m_rate == 0 ? Units(0) : Units(bytes) * kUnitsPerByte;
    insert({m_nextId, demand, left});
    return m_nextId++;
}

void LinkLimiter::promote(Transfer transfer, uint64_t now) {
    advance(now);
    for (auto it = m_entries.begin(); it != m_entries.end(); ++it) {
        if (it->id != transfer || it->demand) continue;
        Entry entry = *it;
        entry.demand = true;
        m_entries.erase(it);
        insert(entry);
        return;
    }
}

uint64_t LinkLimiter::finishAt(Transfer transfer, uint64_t now) {
    advance(now);
    Units ahead = 0;
    for (const Entry& entry : m_entries) {
        ahead += entry.left;
        if (entry.id != transfer) continue;
        if (entry.left == 0) return now;
        return m_now + uint64_t((ahead + Units(m_rate) - 1) / Units(m_rate));
    }
    return now;
}

void LinkLimiter::end(Transfer transfer, uint64_t now) {
    advance(now);
    std::erase_if(m_entries, [&](const Entry& entry) { return entry.id == transfer; });
}

bool LinkLimiter::idle(uint64_t now) {
    advance(now);
    return std::all_of(m_entries.begin(), m_entries.end(),
                       [](const Entry& entry) { return entry.left == 0; });
}

}  // namespace colibri
