// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of the expert store when all experts are resident: nanoseconds of processor time for
// request, wait and release of one expert, on one thread.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "engine/store/store_factory.h"

using namespace colibri;

namespace {

constexpr int64_t kLayers = 48, kExperts = 128, kTopK = 8, kRecord = 4096;
constexpr int kTokens = 400, kRounds = 15;

class InstantReader final : public Reader {
public:
    int64_t readAt(int64_t, int64_t, std::span<std::byte> out, IoMode) override {
        return int64_t(out.size());
    }
};

std::unique_ptr<ExpertStore> openStore(CachePolicyKind policy, Telemetry* telemetry) {
    StoreShape shape;
    shape.experts = kExperts;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
        shape.layers.push_back(layer);
        shape.recordBytes.push_back(kRecord);
        shape.files.push_back("none");
    }
    StoreOptions options;
    options.cacheSize = kExperts;
    options.policy = policy;
    StoreParts parts;
    parts.queue = makeReadQueue(std::make_unique<InstantReader>());
    auto store = StoreFactory::open(std::move(shape), options, telemetry, std::move(parts));
    return store ? std::move(*store) : nullptr;
}

// Nothing waits here, so the thread's CPU time is the cost, even on a busy machine.
uint64_t cpuNs() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// One token: every layer requests its experts and uses them in order.
void token(ExpertStore& store, const std::vector<std::vector<uint16_t>>& layers,
           std::vector<Ticket>& tickets) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
        store.request(layer, layers[size_t(layer)], tickets);
        for (const Ticket& ticket : tickets) {
            const Result<Pin> pin = store.wait(ticket);
            if (!pin.ok()) std::abort();
        }
    }
}

double nsPerLookup(CachePolicyKind policy) {
    Telemetry telemetry;
    const auto store = openStore(policy, &telemetry);
    if (!store) return 0;
    std::mt19937 random(7);
    std::vector<std::vector<std::vector<uint16_t>>> tokens(kTokens);
    for (auto& layers : tokens) {
        layers.resize(kLayers);
        for (auto& experts : layers)
            while (experts.size() < kTopK) {
                const auto e = uint16_t(random() % kExperts);
                if (std::find(experts.begin(), experts.end(), e) == experts.end())
                    experts.push_back(e);
            }
    }
    std::vector<uint16_t> all(kExperts);
    for (size_t e = 0; e < all.size(); ++e) all[e] = uint16_t(e);
    std::vector<Ticket> tickets;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
        store->request(layer, all, tickets);
        for (const Ticket& ticket : tickets) (void)store->wait(ticket);
    }
    double best = 1e30;  // best of several rounds, because other programs may run
    for (int round = 0; round < kRounds; ++round) {
        const uint64_t start = cpuNs();
        for (const auto& layers : tokens) token(*store, layers, tickets);
        best = std::min(best, double(cpuNs() - start) / (kTokens * kLayers * kTopK));
    }
    const StoreStats stats = store->stats();
    if (stats.lookups - stats.hits != kLayers * kExperts) std::abort();  // all were resident
    return best;
}

}  // namespace

int main() {
    std::printf("request, wait and release of a resident expert, %d layers of %d, top-%d\n",
                int(kLayers), int(kExperts), int(kTopK));
    for (const auto& [name, policy] :
         {std::pair{"lru", CachePolicyKind::Lru}, std::pair{"slru", CachePolicyKind::Slru},
          std::pair{"lfru", CachePolicyKind::Lfru}})
        std::printf("%-5s %6.1f ns per lookup\n", name, nsPerLookup(policy));
    return 0;
}
