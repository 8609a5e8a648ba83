// SPDX-License-Identifier: Apache-2.0
// The tables of filters.
#pragma once

#include <span>

#include "engine/jinja/machine.h"

namespace colibri::jinja {

struct FilterRow {
    std::string_view name;
    FilterFunction filter;
};

std::span<const FilterRow> textFilters();
std::span<const FilterRow> listFilters();

// The integer argument of a filter, clamped to 64 bits. RenderError for another type.
int64_t wholeArgument(const std::optional<Value>& value, int64_t fallback);
inline bool flagArgument(const std::optional<Value>& value) {
    return value && truthy(*value);
}

}  // namespace colibri::jinja
