// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engine/jinja/lexer.h"

namespace colibri::jinja {

// Parses a template. Throws SyntaxError.
Template parseTemplate(std::string_view source);

}  // namespace colibri::jinja
