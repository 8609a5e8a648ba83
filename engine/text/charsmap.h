// SPDX-License-Identifier: Apache-2.0
// SentencePiece's compiled normalization: a tree over bytes with replacements at its leaves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/normalizers.h"

namespace colibri::text {

// The map, little endian: 4 bytes with the size of the tree in bytes; the tree, a double array of
// 32-bit units; the replacements, texts that end with a zero byte. A unit holds its byte (bits
// 0-7 and 31), whether a text ends here (bit 8), and the distance to its children (bits 10-30,
// times 256 if bit 9 is set); the unit of an end holds the offset of the replacement.
class Charsmap : public Normalizer {
public:
    // Errors: BadInput for a truncated map, or one with invalid UTF-8.
    static Result<std::unique_ptr<Normalizer>> make(const JsonNode& node);

    // Replaces a grapheme of fewer than six bytes if it begins with a text of the map, else its
    // code points one by one, like the reference implementation.
    void apply(std::string& text) const override;
    double growth() const override { return m_growth; }

private:
    // Appends the replacement of the shortest text of the map that is a prefix of `part`.
    bool replace(std::string_view part, std::string& out) const;

    std::vector<uint32_t> m_units;
    std::string m_replacements;
    double m_growth = 1;
};

}  // namespace colibri::text
