// SPDX-License-Identifier: Apache-2.0
// Streaming xxh3-64 and xxh3-128: the hash of every stored tensor, record and fingerprint.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/json_fields.h"

namespace colibri {

class Hasher {
public:
    Hasher() : m_state(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(m_state.get()); }

    void reset() { XXH3_64bits_reset(m_state.get()); }
    void update(const void* data, size_t bytes) { XXH3_64bits_update(m_state.get(), data, bytes); }
    uint64_t digest() const { return XXH3_64bits_digest(m_state.get()); }

private:
    std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> m_state;
};

// 32 hex digits of the xxh3-128 of a text, whole or in pieces.
class Fingerprinter {
public:
    Fingerprinter() : m_state(XXH3_createState(), &XXH3_freeState) {
        XXH3_128bits_reset(m_state.get());
    }

    void update(std::string_view text) {
        XXH3_128bits_update(m_state.get(), text.data(), text.size());
    }
    std::string hex() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(m_state.get());
        return hexHash(hash.high64) + hexHash(hash.low64);
    }

private:
    std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> m_state;
};
inline std::string fingerprintOf(std::string_view text) {
    Fingerprinter all;
    all.update(text);
    return all.hex();
}

}  // namespace colibri
