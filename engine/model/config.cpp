// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config.h"

#include <algorithm>

namespace colibri {

int64_t ModelConfig::moeLayerCount() const {
    return std::count(moeLayer.begin(), moeLayer.end(), true);
}

int64_t ModelConfig::moeIndex(int64_t layer) const {
    if (layer < 0 || layer >= int64_t(moeLayer.size()) || !moeLayer[size_t(layer)]) return -1;
    return std::count(moeLayer.begin(), moeLayer.begin() + layer, true);
}

bool ModelConfig::hasWindow(int64_t layer) const {
    return slidingWindow > 0 && (windowLayer.empty() || windowLayer[size_t(layer)]);
}

}  // namespace colibri
