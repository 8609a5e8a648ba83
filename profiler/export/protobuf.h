// SPDX-License-Identifier: Apache-2.0
// Encodes one protobuf message into a buffer that is reused. A nested message is encoded in a
// buffer of its own and added as bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace colibri {

class ProtoMessage {
public:
    void clear() { m_size = 0; }
    bool empty() const { return m_size == 0; }
    std::string_view bytes() const { return {m_data.data(), m_size}; }

    void integer(uint32_t field, uint64_t value) {
        char* at = room(2 * kVarint);
        at = put(at, uint64_t(field) << 3);
        m_size = size_t(put(at, value) - m_data.data());
    }
    void fixed64(uint32_t field, uint64_t value) {
        char* at = put(room(kVarint + 8), uint64_t(field) << 3 | 1);
        for (int i = 0; i < 8; ++i) at[i] = char(value >> (8 * i));
        m_size = size_t(at + 8 - m_data.data());
    }
    void real(uint32_t field, double value) { fixed64(field, std::bit_cast<uint64_t>(value)); }
    void text(uint32_t field, std::string_view value) {
        head(field, value.size());
        raw(value);
    }
    void message(uint32_t field, const ProtoMessage& value) { text(field, value.bytes()); }
    // The head of a nested message of `size` bytes, which the caller adds.
    void head(uint32_t field, size_t size) {
        char* at = put(room(2 * kVarint), uint64_t(field) << 3 | 2);
        m_size = size_t(put(at, size) - m_data.data());
    }
    void raw(std::string_view encoded) {
        if (encoded.empty()) return;
        std::memcpy(room(encoded.size()), encoded.data(), encoded.size());
        m_size += encoded.size();
    }

private:
    static constexpr size_t kVarint = 10;  // bytes, at most

    char* room(size_t more) {
        if (m_size + more > m_data.size()) m_data.resize(2 * (m_size + more));
        return m_data.data() + m_size;
    }
    static char* put(char* at, uint64_t value) {
        for (; value >= 0x80; value >>= 7) *at++ = char(value | 0x80);
        *at++ = char(value);
        return at;
    }

    std::vector<char> m_data;  // at least m_size bytes
    size_t m_size = 0;
};

}  // namespace colibri
