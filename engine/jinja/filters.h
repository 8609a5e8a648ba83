// SPDX-License-Identifier: Apache-2.0
// The filters, in two tables.
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

// A whole number given to a filter; RenderError for another type. Brought within 64 bits.
int64_t wholeArgument(const std::optional<Value>& value, int64_t fallback);
inline bool flagArgument(const std::optional<Value>& value) {
    return value && truthy(*value);
}

}  // namespace colibri::jinja
