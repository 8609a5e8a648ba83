// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/openai.h"

#include <cmath>
#include <limits>
#include <random>

#include "engine/model/json_fields.h"

namespace colibri::serve {

namespace {

using Plain = nlohmann::json;

constexpr size_t kMaxStops = 16;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

// Fields whose other values would change the reply in a way this server has not.
struct Refused {
    const char* key;
    std::vector<Plain> harmless;
};
const std::vector<Refused>& refused() {
    static const std::vector<Refused> rows = {
        {"n", {1}},
        {"best_of", {1}},
        {"echo", {false}},
        {"suffix", {""}},
        {"logit_bias", {Plain::object()}},
        {"presence_penalty", {0, 0.0}},
        {"frequency_penalty", {0, 0.0}},
        {"tools", {Plain::array()}},
        {"tool_choice", {"none", "auto"}},
        {"functions", {Plain::array()}},
        {"response_format", {Plain{{"type", "text"}}}},
        {"modalities", {Plain::array({"text"})}},
        {"audio", {}},
    };
    return rows;
}

Status checkRefused(const Fields& fields) {
    for (const Refused& row : refused()) {
        const Plain* value = fields.find(row.key);
        if (!value) continue;
        if (std::find(row.harmless.begin(), row.harmless.end(), *value) != row.harmless.end()) {
            continue;
        }
        std::string hint = "Leave it out";
        for (const Plain& other : row.harmless) hint += " or use " + other.dump();
        return Status(
            Code::Unsupported,
            std::string(row.key) + ": " + value->dump().substr(0, 60) + " is not supported", hint);
    }
    return {};
}

void readStops(Fields& fields, Request& request) {
    const Plain* stop = fields.find("stop");
    if (!stop) return;
    const std::vector<Plain> list =
        stop->is_array() ? stop->get<std::vector<Plain>>() : std::vector<Plain>{*stop};
    if (list.size() > kMaxStops) {
        return fields.fail("stop: at most " + std::to_string(kMaxStops) + " strings");
    }
    for (const Plain& s : list) {
        if (!s.is_string() || s.get_ref<const std::string&>().empty()) {
            return fields.fail("stop: " + s.dump().substr(0, 60) + " is not a string of text");
        }
        request.stops.push_back(s.get<std::string>());
    }
}

void readSampling(Fields& fields, const ModelConfig& model, Sampling& s) {
    s.temperature =
        float(fields.number("temperature", 0, 100, model.temperature >= 0 ? model.temperature : 1));
    s.topP = float(fields.number("top_p", 0, 1, model.topP > 0 ? model.topP : 1));
    s.topK = int(fields.integer("top_k", -1, kMaxInt, std::max(0, model.topKSampling)));
    s.topK = std::max(s.topK, 0);  // -1 means off to some clients
    s.minP = float(fields.number("min_p", 0, 1, 0));
    s.repetitionPenalty = float(fields.number("repetition_penalty", 0, 100, 1));
    if (fields.has("seed")) {
        s.seed = uint64_t(fields.integer("seed", std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max()));
    } else {
        std::random_device random;
        s.seed = uint64_t(random()) << 32 | random();
    }
}

// A chat says logprobs: true, and how many likely ones apart; a completion says only the latter.
void readLogprobs(Fields& fields, ApiRequest& out) {
    if (!out.chat && fields.has("logprobs")) {
        out.request.logprobs = int(fields.integer("logprobs", 0, kMaxLogprobs));
    }
    if (out.chat && fields.flag("logprobs", false)) out.request.logprobs = 0;
    const int64_t top = fields.integer("top_logprobs", 0, kMaxLogprobs, 0);
    if (top == 0) return;
    if (!out.chat) return fields.fail("top_logprobs: a completion says \"logprobs\": N");
    if (!out.request.logprobs) fields.fail("top_logprobs: only with \"logprobs\": true");
    out.request.logprobs = int(top);
}

// All that chats and completions have in common, but the prompt.
void readCommon(Fields& fields, const ModelConfig& model, int defaultMaxTokens, ApiRequest& out) {
    out.model = fields.text("model", "");
    out.stream = fields.flag("stream", false);
    if (const Plain* options = fields.find("stream_options")) {
        if (!options->is_object()) fields.fail("stream_options: not an object");
        const auto usage = options->find("include_usage");
        out.includeUsage = options->is_object() && usage != options->end() && usage->is_boolean() &&
                           usage->get<bool>();
        if (!out.stream) fields.fail("stream_options: only with \"stream\": true");
    }
    readSampling(fields, model, out.request.sampling);
    readStops(fields, out.request);
    out.request.ignoreEos = fields.flag("ignore_eos", false);
    readLogprobs(fields, out);
    const char* key = fields.has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
    out.request.maxTokens = int(fields.integer(key, 1, kMaxInt, defaultMaxTokens));
}

// A message's content as the templates know it: one string.
Result<std::string> contentText(const Plain& message, const std::string& where) {
    const auto content = message.find("content");
    if (content == message.end() || content->is_null()) {
        if (message.value("role", "") == "assistant") return std::string();
        return Status(Code::BadInput, where + ".content is missing");
    }
    if (content->is_string()) return content->get<std::string>();
    if (!content->is_array()) {
        return Status(Code::BadInput, where + ".content is neither a string nor a list of parts");
    }
    std::string text;
    for (size_t i = 0; i < content->size(); ++i) {
        const Plain& part = (*content)[i];
        const bool isText = part.is_object() && part.contains("type") && part["type"] == "text" &&
                            part.contains("text") && part["text"].is_string();
        if (!isText) {
            return Status(Code::Unsupported,
                          where + ".content[" + std::to_string(i) + "] is not a part of text",
                          "This model reads text only: {\"type\": \"text\", \"text\": ...}");
        }
        text += (i ? "\n" : "") + part["text"].get<std::string>();
    }
    return text;
}

Result<Json> chatMessages(const Plain& list) {
    Json messages = Json::array();
    for (size_t i = 0; i < list.size(); ++i) {
        const Plain& message = list[i];
        const std::string where = "messages[" + std::to_string(i) + "]";
        if (!message.is_object()) return Status(Code::BadInput, where + " is not an object");
        const auto given = message.find("role");
        std::string role = given != message.end() && given->is_string() ? given->get<std::string>()
                                                                        : std::string();
        if (role == "developer") role = "system";
        if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
            return Status(Code::BadInput,
                          where + ".role is not one of system, user, assistant, tool");
        }
        Result<std::string> content = contentText(message, where);
        if (!content.ok()) return content.status();
        Json copy = {{"role", role}, {"content", std::move(*content)}};
        // name, tool_calls, tool_call_id. As to a plain list: looking for each key among the
        // others would take the square of their number.
        std::vector<std::pair<const std::string, Json>>& fields = copy.get_ref<Json::object_t&>();
        for (const auto& [key, value] : message.items()) {
            if (key != "role" && key != "content") fields.emplace_back(key, value);
        }
        messages.push_back(std::move(copy));
    }
    return messages;
}

Result<std::vector<int32_t>> completionPrompt(const Engine& engine, const Plain* prompt) {
    if (!prompt) return Status(Code::BadInput, "\"prompt\" is missing");
    const bool oneOfList = prompt->is_array() && prompt->size() == 1 && !(*prompt)[0].is_number();
    const Plain& given = oneOfList ? (*prompt)[0] : *prompt;
    if (given.is_string()) {
        if (!engine.tokenizer()) {
            return Status(Code::Unsupported, "this model has no tokenizer",
                          "Give the prompt as token ids");
        }
        return engine.tokenizer()->encode(given.get<std::string>(), {.special = true, .bos = true});
    }
    if (!given.is_array()) {
        return Status(Code::BadInput, "prompt: neither a string nor a list of token ids");
    }
    std::vector<int32_t> ids;
    for (const Plain& id : given) {
        const std::optional<int64_t> number = wholeNumber(id);
        if (!number || *number < 0 || *number > kMaxInt) {
            return Status(Code::Unsupported,
                          "prompt: " + id.dump().substr(0, 60) + " is not a token id",
                          "One prompt for each request: a string or a list of token ids");
        }
        ids.push_back(int32_t(*number));
    }
    return ids;
}

Result<Plain> parseBody(std::string_view body) {
    constexpr const char* kHint = "Send one JSON object";
    Result<Plain> parsed = parseJson(body, "body");
    if (!parsed.ok()) return Status(Code::BadInput, parsed.status().message(), kHint);
    if (!parsed->is_object()) return Status(Code::BadInput, "body: no JSON object", kHint);
    return parsed;
}

}  // namespace

std::string modelId(const Engine& engine) {
    const std::string& name = engine.config().name;
    return name.empty() ? engine.info().dir.filename().string() : name;
}

Result<ApiRequest> parseChatRequest(const Engine& engine, std::string_view body,
                                    int defaultMaxTokens) {
    Result<Plain> parsed = parseBody(body);
    if (!parsed.ok()) return parsed.status();
    Fields fields(*parsed, "body");
    COLIBRI_TRY(checkRefused(fields));
    ApiRequest out;
    out.chat = true;
    readCommon(fields, engine.config(), defaultMaxTokens, out);
    const Plain* list = fields.array("messages");
    COLIBRI_TRY(fields.status());
    if (list->empty()) return Status(Code::BadInput, "body: \"messages\" is empty");
    Result<Json> messages = chatMessages(*list);
    if (!messages.ok()) return messages.status();
    Result<std::vector<int32_t>> prompt = engine.encodeChat(*messages);
    if (!prompt.ok()) return prompt.status();
    if (const Tokenizer* tokenizer = engine.tokenizer()) {
        out.inReasoning = endsInReasoning(*tokenizer, *prompt);
        out.request.specialText = marksAreSpecial(*tokenizer);
    }
    out.request.prompt = std::move(*prompt);
    return out;
}

Result<ApiRequest> parseCompletionRequest(const Engine& engine, std::string_view body,
                                          int defaultMaxTokens) {
    Result<Plain> parsed = parseBody(body);
    if (!parsed.ok()) return parsed.status();
    Fields fields(*parsed, "body");
    COLIBRI_TRY(checkRefused(fields));
    ApiRequest out;
    readCommon(fields, engine.config(), defaultMaxTokens, out);
    COLIBRI_TRY(fields.status());
    Result<std::vector<int32_t>> prompt = completionPrompt(engine, fields.find("prompt"));
    if (!prompt.ok()) return prompt.status();
    out.request.prompt = std::move(*prompt);
    return out;
}

}  // namespace colibri::serve
