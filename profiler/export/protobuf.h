// SPDX-License-Identifier: Apache-2.0
// Encodes one protobuf message into a buffer that is reused. A nested message is encoded in a
// buffer of its own and added as bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace colibri {

class ProtoMessage {
public:
    void clear() { m_bytes.clear(); }
    bool empty() const { return m_bytes.empty(); }
    std::string_view bytes() const { return m_bytes; }

    void integer(uint32_t field, uint64_t value) {
        put(uint64_t(field) << 3);
        put(value);
    }
    void fixed64(uint32_t field, uint64_t value) {
        put(uint64_t(field) << 3 | 1);
        char raw[8];
        for (int i = 0; i < 8; ++i) raw[i] = char(value >> (8 * i));
        m_bytes.append(raw, sizeof raw);
    }
    void real(uint32_t field, double value) { fixed64(field, std::bit_cast<uint64_t>(value)); }
    void text(uint32_t field, std::string_view value) {
        put(uint64_t(field) << 3 | 2);
        put(value.size());
        m_bytes += value;
    }
    void message(uint32_t field, const ProtoMessage& value) { text(field, value.bytes()); }

private:
    void put(uint64_t value) {  // a varint
        char raw[10];
        size_t length = 0;
        for (; value >= 0x80; value >>= 7) raw[length++] = char(value | 0x80);
        raw[length++] = char(value);
        m_bytes.append(raw, length);
    }

    std::string m_bytes;
};

}  // namespace colibri
