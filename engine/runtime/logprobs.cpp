// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace colibri {

std::vector<Logprob> logprobsOf(std::span<const float> logits, int32_t token, int count) {
    std::vector<int32_t> ids;  // of finite logits
    ids.reserve(logits.size());
    float best = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < logits.size(); ++i) {
        if (!std::isfinite(logits[i])) continue;
        ids.push_back(int32_t(i));
        best = std::max(best, logits[i]);
    }
    double sum = 0;
    for (const int32_t id : ids) sum += std::exp(double(logits[size_t(id)]) - double(best));
    const double share = std::log(sum);  // of all ids, against the best one
    const auto logprob = [&](int32_t id) {
        const float x = logits[size_t(id)];
        return Logprob{id, std::isfinite(x) ? float(double(x) - double(best) - share)
                                            : -std::numeric_limits<float>::infinity()};
    };
    const auto likely = ids.begin() + std::ptrdiff_t(std::min(ids.size(), size_t(count)));
    std::partial_sort(ids.begin(), likely, ids.end(), [&](int32_t a, int32_t b) {
        const float x = logits[size_t(a)], y = logits[size_t(b)];
        return x != y ? x > y : a < b;
    });
    std::vector<Logprob> out = {logprob(token)};
    for (auto id = ids.begin(); id != likely; ++id) out.push_back(logprob(*id));
    return out;
}

}  // namespace colibri
