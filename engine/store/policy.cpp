// SPDX-License-Identifier: Apache-2.0
#include "engine/store/policy.h"

#include <algorithm>

namespace colibri {

CachePolicy::CachePolicy(int64_t keys, int lists)
    : m_lists(size_t(lists)), m_where(size_t(keys), kNowhere), m_links(size_t(keys)) {}

std::vector<uint32_t> CachePolicy::order() const {
    std::vector<uint32_t> keys;
    keys.reserve(size_t(m_size));
    coldest(m_size, [&](uint32_t key) {
        keys.push_back(key);
        return false;
    });
    return keys;
}

void CachePolicy::pushHot(int index, uint32_t key) {
    List& list = m_lists[size_t(index)];
    m_links[key] = {list.hot, kEnd};
    (list.hot == kEnd ? list.cold : m_links[list.hot].hotter) = key;
    list.hot = key;
    m_where[key] = uint8_t(index);
    ++list.size;
    ++m_size;
}

void CachePolicy::pushCold(int index, uint32_t key) {
    List& list = m_lists[size_t(index)];
    m_links[key] = {kEnd, list.cold};
    (list.cold == kEnd ? list.hot : m_links[list.cold].colder) = key;
    list.cold = key;
    m_where[key] = uint8_t(index);
    ++list.size;
    ++m_size;
}

void CachePolicy::unlink(uint32_t key) {
    if (m_where[key] == kNowhere) return;
    List& list = m_lists[m_where[key]];
    const Link link = m_links[key];
    (link.colder == kEnd ? list.cold : m_links[link.colder].hotter) = link.hotter;
    (link.hotter == kEnd ? list.hot : m_links[link.hotter].colder) = link.colder;
    m_where[key] = kNowhere;
    --list.size;
    --m_size;
}

uint32_t CachePolicy::demote(int from, int to) {
    const uint32_t key = m_lists[size_t(from)].cold;
    unlink(key);
    pushHot(to, key);
    return key;
}

namespace {

class LruPolicy final : public CachePolicy {
public:
    explicit LruPolicy(int64_t keys) : CachePolicy(keys, 1) {}

    void insert(uint32_t key) override { pushHot(0, key); }
    void touch(uint32_t key) override {
        unlink(key);
        pushHot(0, key);
    }
    void setSlots(int64_t) override {}
    void adopt(std::span<const uint32_t> coldToHot) override {
        for (uint32_t key : coldToHot) pushHot(0, key);
    }
};

class SlruPolicy final : public CachePolicy {
public:
    SlruPolicy(int64_t keys, int64_t slotCount) : CachePolicy(keys, 2) {
        SlruPolicy::setSlots(slotCount);
    }

    void insert(uint32_t key) override { pushHot(kProbation, key); }
    void touch(uint32_t key) override {
        unlink(key);
        pushHot(kProtected, key);
        shrinkProtected();
    }
    void setSlots(int64_t slotCount) override {
        m_protectedSlots = slotCount / 2;
        shrinkProtected();
    }
    void adopt(std::span<const uint32_t> coldToHot) override {
        const int64_t cold = std::max<int64_t>(0, int64_t(coldToHot.size()) - m_protectedSlots);
        for (int64_t i = 0; i < int64_t(coldToHot.size()); ++i)
            pushHot(i < cold ? kProbation : kProtected, coldToHot[size_t(i)]);
    }

private:
    static constexpr int kProbation = 0, kProtected = 1;

    void shrinkProtected() {
        while (m_lists[kProtected].size > m_protectedSlots) demote(kProtected, kProbation);
    }

    int64_t m_protectedSlots = 0;
};

class LfruPolicy final : public CachePolicy {
public:
    LfruPolicy(int64_t keys, int64_t slotCount)
        : CachePolicy(keys, kRecent + 1), m_uses(size_t(keys), 0) {
        LfruPolicy::setSlots(slotCount);
    }

    void insert(uint32_t key) override {
        countUse(key);
        pushHot(kRecent, key);
        shrinkRecent();
    }
    void touch(uint32_t key) override {
        unlink(key);
        insert(key);
    }
    void setSlots(int64_t slotCount) override {
        m_recentSlots = slotCount / 2;
        shrinkRecent();
    }
    void adopt(std::span<const uint32_t> coldToHot) override {
        const int64_t cold = std::max<int64_t>(0, int64_t(coldToHot.size()) - m_recentSlots);
        for (int64_t i = 0; i < int64_t(coldToHot.size()); ++i)
            pushHot(i < cold ? 0 : kRecent, coldToHot[size_t(i)]);
    }

private:
    // Lists 0..15 hold the records used that often; list 16 the recently used ones.
    static constexpr uint8_t kMaxUses = 15;
    static constexpr int kRecent = kMaxUses + 1;
    static constexpr int64_t kHalvingLookups = 8;  // per key

    void countUse(uint32_t key) {
        if (m_uses[key] < kMaxUses) ++m_uses[key];
        if (++m_lookups < kHalvingLookups * int64_t(m_uses.size())) return;
        m_lookups = 0;
        halveUses();
    }
    void shrinkRecent() {
        while (m_lists[kRecent].size > m_recentSlots)
            demote(kRecent, m_uses[m_lists[kRecent].cold]);
    }
    // Ages out records that were popular long ago: lists 2i and 2i+1 become list i.
    void halveUses() {
        for (uint8_t& uses : m_uses) uses /= 2;
        for (int from = 1; from <= kMaxUses; ++from)
            while (m_lists[size_t(from)].size > 0) demote(from, from / 2);
    }

    std::vector<uint8_t> m_uses;  // (keys), of evicted ones too
    int64_t m_lookups = 0;
    int64_t m_recentSlots = 0;
};

}  // namespace

std::unique_ptr<CachePolicy> makePolicy(CachePolicyKind kind, int64_t keys, int64_t slotCount) {
    switch (kind) {
        case CachePolicyKind::Slru:
            return std::make_unique<SlruPolicy>(keys, slotCount);
        case CachePolicyKind::Lfru:
            return std::make_unique<LfruPolicy>(keys, slotCount);
        case CachePolicyKind::Lru:
            break;
    }
    return std::make_unique<LruPolicy>(keys);
}

}  // namespace colibri
