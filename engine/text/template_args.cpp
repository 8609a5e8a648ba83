// SPDX-License-Identifier: Apache-2.0
#include "engine/text/template_args.h"

#include "engine/unicode/unicode.h"

namespace colibri {

Status addTemplateArg(std::string_view assignment, nlohmann::ordered_json& args) {
    const std::string valid = text::toValidUtf8(assignment);
    const std::string_view whole = valid;
    const size_t equals = whole.find('=');
    const std::string name(text::trimWhiteSpace(whole.substr(0, equals), true, true));
    if (name.empty() || equals == std::string_view::npos) {
        return Status(Code::InvalidArgument,
                      "the template argument \"" + valid + "\" is not NAME=JSON",
                      "For example enable_thinking=false");
    }
    const std::string value(text::trimWhiteSpace(whole.substr(equals + 1), true, true));
    auto json = nlohmann::ordered_json::parse(value, nullptr, false);
    if (json.is_discarded()) {
        return Status(Code::InvalidArgument,
                      "the template argument \"" + name + "\": " + value + " is not JSON",
                      "Put strings in quotes: " + name + "=\"text\"");
    }
    args[name] = std::move(json);
    return {};
}

}  // namespace colibri
