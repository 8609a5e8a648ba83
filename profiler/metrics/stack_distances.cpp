// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/stack_distances.h"

#include <algorithm>

namespace colibri {

StackDistances::StackDistances(size_t keys)
    : m_lastUse(keys), m_tree(4 * keys + 64), m_now(keys), m_coldest(keys) {}

uint32_t StackDistances::use(size_t key) {
    if (m_now + 1 == m_tree.size()) renumber();
    const uint32_t distance = this->distance(key);
    if (distance != kNever) {
        mark(m_lastUse[key], -1);
    } else {
        ++m_marks;
    }
    m_lastUse[key] = ++m_now;
    mark(m_now, 1);
    return distance;
}

uint32_t StackDistances::distance(size_t key) const {
    const size_t last = m_lastUse[key];
    return last ? m_marks - markedUpTo(last) : kNever;
}

void StackDistances::addColdest(size_t key) {
    if (m_lastUse[key]) return;
    if (m_coldest == 0) renumber();
    m_lastUse[key] = m_coldest--;
    mark(m_lastUse[key], 1);
    ++m_marks;
}

void StackDistances::mark(size_t time, int by) {
    for (; time < m_tree.size(); time += time & -time) m_tree[time] += by;
}

uint32_t StackDistances::markedUpTo(size_t time) const {
    int sum = 0;
    for (; time; time -= time & -time) sum += m_tree[time];
    return uint32_t(sum);
}

// No times are left: renumbers the last uses in the same order, above the number of keys.
void StackDistances::renumber() {
    std::vector<size_t> used;
    for (size_t key = 0; key < m_lastUse.size(); ++key)
        if (m_lastUse[key]) used.push_back(key);
    std::sort(used.begin(), used.end(),
              [&](size_t a, size_t b) { return m_lastUse[a] < m_lastUse[b]; });
    std::fill(m_tree.begin(), m_tree.end(), 0);
    m_now = m_coldest = m_lastUse.size();
    for (const size_t key : used) {
        m_lastUse[key] = ++m_now;
        mark(m_now, 1);
    }
}

}  // namespace colibri
