// SPDX-License-Identifier: Apache-2.0
// SentencePiece's compiled normalization: a tree over bytes that leads to replacements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/normalizers.h"

namespace colibri::text {

// The map, little endian: 4 bytes with the size of the tree in bytes; the tree, a double array of
// 32-bit units; the replacements, texts that end with a zero byte. A unit holds its byte (bits
// 0-7 and 31), whether a text ends here (bit 8), and how far its children are (bits 10-30, times
// 256 where bit 9 is set); the unit of an end holds where the replacement begins.
class Charsmap : public Normalizer {
public:
    // Errors: BadInput for a map that is cut short or holds what is no UTF-8.
    static Result<std::unique_ptr<Normalizer>> make(const JsonNode& node);

    // Characters as a reader sees them are replaced if they are of fewer than six bytes and begin
    // with a text of the map, else their code points one by one: the reference's way.
    void apply(std::string& text) const override;
    double growth() const override { return m_growth; }

private:
    // Adds the replacement of the shortest text of the map with which `part` begins.
    bool replace(std::string_view part, std::string& out) const;

    std::vector<uint32_t> m_units;
    std::string m_replacements;
    double m_growth = 1;
};

}  // namespace colibri::text
