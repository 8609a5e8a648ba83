// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace colibri::jinja {

struct CaseMapping {
    char32_t code;
    char32_t to[3];  // ends at the first 0
};

struct CodeRange {
    char32_t first, last;
};

std::span<const CaseMapping> upperMappings();
std::span<const CaseMapping> titleMappings();
std::span<const CaseMapping> lowerMappings();
std::span<const CaseMapping> foldMappings();
std::span<const CodeRange> digitRanges();
std::span<const CodeRange> numericRanges();
std::span<const CodeRange> otherLowerRanges();
std::span<const CodeRange> otherUpperRanges();

}  // namespace colibri::jinja
