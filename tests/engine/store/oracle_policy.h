// SPDX-License-Identifier: GPL-3.0-or-later
// A plain implementation of the replacement policies (vectors, coldest first) to compare the
// store's with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/knobs/knobs.h"

namespace colibri::test {

class OraclePolicy {
public:
    OraclePolicy(CachePolicyKind kind, int64_t keys, int64_t slotCount)
        : m_kind(kind), m_parts(kind == CachePolicyKind::Lfru ? 17 : 2), m_uses(size_t(keys)) {
        setSlots(slotCount);
    }

    void insert(uint32_t key) {
        switch (m_kind) {
            case CachePolicyKind::Lru:
                hot().push_back(key);
                break;
            case CachePolicyKind::Slru:
                m_parts.front().push_back(key);
                break;
            case CachePolicyKind::Lfru:
                countUse(key);
                hot().push_back(key);
                balance();
        }
    }
    void insertCold(uint32_t key) {
        const size_t part = m_kind == CachePolicyKind::Lru ? m_parts.size() - 1 : 0;
        m_parts[part].insert(m_parts[part].begin(), key);
    }
    void touch(uint32_t key) {
        remove(key);
        if (m_kind == CachePolicyKind::Slru) {
            hot().push_back(key);
            balance();
        } else {
            insert(key);
        }
    }
    void remove(uint32_t key) {
        for (auto& part : m_parts) std::erase(part, key);
    }
    void setSlots(int64_t slotCount) {
        m_half = slotCount / 2;
        balance();
    }
    void adopt(const std::vector<uint32_t>& coldToHot) {
        const int64_t cold = std::max<int64_t>(0, int64_t(coldToHot.size()) - m_half);
        for (int64_t i = 0; i < int64_t(coldToHot.size()); ++i) {
            const bool low = m_kind != CachePolicyKind::Lru && i < cold;
            (low ? m_parts.front() : hot()).push_back(coldToHot[size_t(i)]);
        }
    }
    std::vector<uint32_t> order() const {
        std::vector<uint32_t> all;
        for (const auto& part : m_parts) all.insert(all.end(), part.begin(), part.end());
        return all;
    }

private:
    std::vector<uint32_t>& hot() { return m_parts.back(); }
    void countUse(uint32_t key) {
        m_uses[key] = std::min(15, m_uses[key] + 1);
        if (++m_lookups < 8 * int64_t(m_uses.size())) return;
        m_lookups = 0;
        for (int& uses : m_uses) uses /= 2;
        for (size_t from = 1; from < 16; ++from) {
            auto& to = m_parts[from / 2];
            to.insert(to.end(), m_parts[from].begin(), m_parts[from].end());
            m_parts[from].clear();
        }
    }
    void balance() {
        if (m_kind == CachePolicyKind::Lru) return;
        while (int64_t(hot().size()) > m_half) {
            const uint32_t key = hot().front();
            hot().erase(hot().begin());
            const size_t to = m_kind == CachePolicyKind::Slru ? 0 : size_t(m_uses[key]);
            m_parts[to].push_back(key);
        }
    }

    CachePolicyKind m_kind;
    std::vector<std::vector<uint32_t>> m_parts;  // the last part is the hot one
    std::vector<int> m_uses;
    int64_t m_half = 0, m_lookups = 0;
};

}  // namespace colibri::test
