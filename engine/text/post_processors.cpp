// SPDX-License-Identifier: Apache-2.0
#include "engine/text/post_processors.h"

#include "engine/text/step_chain.h"
#include "engine/text/token_model.h"

namespace colibri::text {
namespace {

Status appendId(const JsonNode& where, const nlohmann::json& value, std::vector<int32_t>& ids) {
    if (!value.is_number_integer() || value < 0 || value > kHighestId) {
        return where.bad("an id between 0 and " + std::to_string(kHighestId) + " is expected here");
    }
    ids.push_back(value.get<int32_t>());
    return {};
}

Status appendSpecial(const JsonNode& node, const JsonNode& item, std::vector<int32_t>& ids) {
    const Result<std::string> name = item.text("id");
    if (!name) return name.status();
    const JsonNode special = node.at("special_tokens").at(name->c_str());
    const Result<std::vector<JsonNode>> values = special.array("ids");
    if (!values) return values.status();
    for (const JsonNode& value : *values) COLIBRI_TRY(appendId(value, value.json(), ids));
    return {};
}

Result<IdFrame> readTemplate(const JsonNode& node, int) {
    const Result<std::vector<JsonNode>> items = node.array("single");
    if (!items) return items.status();
    IdFrame frame;
    bool seenText = false;
    for (const JsonNode& item : *items) {
        if (item.has("Sequence")) {
            if (seenText) return node.at("single").unsupported("with the text twice");
            seenText = true;
        } else if (item.has("SpecialToken")) {
            COLIBRI_TRY(appendSpecial(node, item.at("SpecialToken"),
                                      seenText ? frame.after : frame.before));
        } else {
            return item.bad("a Sequence or a SpecialToken is expected here");
        }
    }
    if (!seenText) return node.at("single").bad("the text itself is missing");
    return frame;
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}: cls, the text, sep.
Result<IdFrame> readClsSep(const JsonNode& node, int) {
    IdFrame frame;
    struct End {
        const char* key;
        std::vector<int32_t>* ids;
    };
    for (const End& end : {End{"cls", &frame.before}, End{"sep", &frame.after}}) {
        const JsonNode pair = node.at(end.key);
        if (!pair.json().is_array() || pair.json().size() != 2)
            return pair.bad("a token and its id are expected here");
        COLIBRI_TRY(appendId(pair, pair.json()[1], *end.ids));
    }
    return frame;
}

Result<IdFrame> readNothing(const JsonNode&, int) {
    return IdFrame();
}

Result<IdFrame> readChain(const JsonNode& node, int depth) {
    const Result<std::vector<JsonNode>> parts = node.array("processors");
    if (!parts) return parts.status();
    IdFrame frame;
    for (const JsonNode& part : *parts) {  // each adds its ids around those of the previous one
        const Result<IdFrame> outer = readPostProcessor(part, depth + 1);
        if (!outer) return outer.status();
        frame.before.insert(frame.before.begin(), outer->before.begin(), outer->before.end());
        frame.after.insert(frame.after.end(), outer->after.begin(), outer->after.end());
    }
    return frame;
}

constexpr StepKind<IdFrame> kPostProcessorKinds[] = {
    {"ByteLevel", readNothing},  // changes offsets only
    {"TemplateProcessing", readTemplate}, {"RobertaProcessing", readClsSep},
    {"BertProcessing", readClsSep},       {"Sequence", readChain},
};

}  // namespace

Result<IdFrame> readPostProcessor(const JsonNode& node, int depth) {
    return makeStep<IdFrame>(node, depth, kPostProcessorKinds);
}

}  // namespace colibri::text
