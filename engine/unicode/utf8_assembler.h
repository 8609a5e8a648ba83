// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace colibri {

// Collects token bytes and returns only complete UTF-8 sequences; invalid bytes become U+FFFD. One
// object for each reply; not thread-safe.
class Utf8Assembler {
public:
    std::string push(std::string_view bytes);  // the text that is complete now
    std::string finish();                      // the rest; an incomplete tail becomes U+FFFD

private:
    std::string m_pending;
};

}  // namespace colibri
