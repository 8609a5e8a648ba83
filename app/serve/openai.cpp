// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/openai.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "engine/base/json_fields.h"

namespace colibri::serve {

namespace {

using Plain = nlohmann::json;

constexpr size_t kMaxStops = 16;
constexpr double kMaxBias = 100;  // limit for the bias of a logit
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

void readStops(Fields& fields, Request& request) {
    const Plain* stop = fields.find("stop");
    if (!stop) return;
    const std::vector<Plain> list =
        stop->is_array() ? stop->get<std::vector<Plain>>() : std::vector<Plain>{*stop};
    if (list.size() > kMaxStops) {
        return fields.failAt("stop", "at most " + std::to_string(kMaxStops) + " strings");
    }
    for (const Plain& s : list) {
        if (!s.is_string() || s.get_ref<const std::string&>().empty()) {
            return fields.failAt("stop", "" + s.dump().substr(0, 60) + " is not a string of text");
        }
        request.stops.push_back(s.get<std::string>());
    }
}

// {"TOKEN ID": bias}
void readLogitBias(Fields& fields, Sampling& s) {
    const Plain* given = fields.find("logit_bias");
    if (!given) return;
    if (!given->is_object()) return fields.failAt("logit_bias", "not an object of token ids");
    for (const auto& [key, value] : given->items()) {
        int32_t id = 0;
        const auto error = std::from_chars(key.data(), key.data() + key.size(), id).ec;
        const double bias = value.is_number() ? value.get<double>() : std::nan("");
        // Each id has one spelling: "012" would be a second entry for token 12.
        if (error != std::errc() || id < 0 || key != std::to_string(id)) {
            return fields.failAt("logit_bias", "\"" + key.substr(0, 60) + "\" is not a token id");
        }
        if (!(std::fabs(bias) <= kMaxBias)) {
            return fields.failAt("logit_bias", "token " + key + ": not a number from -100 to 100");
        }
        s.logitBias.emplace_back(id, float(bias));
    }
}

uint64_t readSeed(Fields& fields) {
    const int64_t seed = fields.integer("seed", std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int64_t>::max(), -1);
    if (seed != -1) return uint64_t(seed);
    std::random_device random;
    return uint64_t(random()) << 32 | random();
}

void readSampling(Fields& fields, const ModelConfig& model, Sampling& s) {
    s.temperature =
        float(fields.number("temperature", 0, 100, model.temperature >= 0 ? model.temperature : 1));
    s.topP = float(fields.number("top_p", 0, 1, model.topP > 0 ? model.topP : 1));
    s.topK = int(fields.integer("top_k", -1, kMaxInt, std::max(0, model.topKSampling)));
    s.topK = std::max(s.topK, 0);  // some clients send -1 for off
    s.minP = float(fields.number("min_p", 0, 1, 0));
    const char* key = fields.has("repetition_penalty") ? "repetition_penalty" : "repeat_penalty";
    s.repetitionPenalty = float(fields.number(key, 0, 100, 1));
    s.presencePenalty = float(fields.number("presence_penalty", -kMaxBias, kMaxBias, 0));
    s.frequencyPenalty = float(fields.number("frequency_penalty", -kMaxBias, kMaxBias, 0));
    readLogitBias(fields, s);
    s.seed = readSeed(fields);
}

// -1: as many tokens as the context can hold.
void readMaxTokens(Fields& fields, int64_t contextLength, int defaultMaxTokens, Request& request) {
    const char* key = fields.has("max_completion_tokens") ? "max_completion_tokens"
                      : fields.has("max_tokens")          ? "max_tokens"
                                                          : "n_predict";
    const int64_t given = fields.integer(key, -1, kMaxInt, defaultMaxTokens);
    if (given == 0)
        fields.failAt(key, "0 is not valid; give a number of tokens, or -1 for no limit");
    request.maxTokens = int(given == -1 ? std::min(contextLength, kMaxInt) : given);
}

void readStream(Fields& fields, ApiRequest& out) {
    out.stream = fields.flag("stream", false);
    out.progress = fields.flag("return_progress", false) && out.stream;
    const Plain* given = fields.find("stream_options");
    if (!given) return;
    if (!given->is_object()) return fields.failAt("stream_options", "not an object");
    Fields options(*given, "stream_options");
    out.includeUsage = options.flag("include_usage", false);
    for (const auto& [key, value] : given->items()) {
        // Padding that hides the length of chunks from eavesdroppers. It is not part of the reply.
        if (key == "include_usage" || key == "include_obfuscation" || value.is_null()) continue;
        if (value != false)
            options.fail(key.substr(0, 60) + " is not supported", Code::Unsupported);
    }
    const std::string& wrong = options.status().message();  // starts with the field's name
    if (!wrong.empty()) fields.failAt("stream_options", wrong.substr(wrong.find(": ") + 2));
}

// A chat has logprobs: true and a separate number of alternatives; a completion has the number
// only.
void readLogprobs(Fields& fields, ApiRequest& out) {
    if (!out.chat && fields.has("logprobs")) {
        out.request.logprobs = int(fields.integer("logprobs", 0, kMaxLogprobs));
    }
    if (out.chat && fields.flag("logprobs", false)) out.request.logprobs = 0;
    const int64_t top = fields.integer("top_logprobs", 0, kMaxLogprobs, 0);
    if (top == 0) return;
    if (!out.chat) return fields.failAt("top_logprobs", "use \"logprobs\": N in a completion");
    if (!out.request.logprobs) fields.failAt("top_logprobs", "only with \"logprobs\": true");
    out.request.logprobs = int(top);
}

// Reads the fields that chats and completions share, except for the prompt.
void readCommon(Fields& fields, const Engine& engine, int defaultMaxTokens, ApiRequest& out) {
    out.model = fields.text("model", "");
    readStream(fields, out);
    readSampling(fields, engine.info().config, out.request.sampling);
    readStops(fields, out.request);
    out.request.ignoreEos = fields.flag("ignore_eos", false);
    readLogprobs(fields, out);
    readMaxTokens(fields, engine.contextLength(), defaultMaxTokens, out.request);
}

// A message's content in the form that templates expect: one string.
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
                          where + ".content[" + std::to_string(i) + "] is not a text part",
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
        // name, tool_calls, tool_call_id. The fields are appended as to a plain list: an insertion
        // that checks for the key would take time proportional to the square of their number.
        std::vector<std::pair<const std::string, Json>>& fields = copy.get_ref<Json::object_t&>();
        for (const auto& [key, value] : message.items()) {
            if (key != "role" && key != "content") fields.emplace_back(key, value);
        }
        messages.push_back(std::move(copy));
    }
    return messages;
}

constexpr size_t kMostTemplateArgs = 256;  // each name is compared with all others

// Sets variables of the template: reasoning_effort, then chat_template_kwargs, which override it.
void readTemplateArgs(Fields& fields, Json& args) {
    const auto set = [&](const std::string& name, const Plain& value) {
        if (args.is_null()) args = Json::object();
        args[name] = Json(value);
    };
    if (fields.has("reasoning_effort")) set("reasoning_effort", fields.text("reasoning_effort"));
    const Plain* given = fields.find("chat_template_kwargs");
    if (!given) return;
    if (!given->is_object()) return fields.failAt("chat_template_kwargs", "not an object");
    if (given->size() > kMostTemplateArgs) {
        return fields.failAt("chat_template_kwargs",
                             "more than " + std::to_string(kMostTemplateArgs) + " names");
    }
    for (const auto& [name, value] : given->items()) set(name, value);
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

}  // namespace

Result<Plain> parseBody(std::string_view body) {
    constexpr const char* kHint = "Send one JSON object";
    Result<Plain> parsed = parseStrictJson(body, "body");
    if (!parsed.ok()) return Status(Code::BadInput, parsed.status().message(), kHint);
    if (!parsed->is_object()) return Status(Code::BadInput, "body: not a JSON object", kHint);
    return parsed;
}

std::string modelId(const Engine& engine) {
    const std::string& name = engine.info().config.name;
    return name.empty() ? engine.info().dir.filename().string() : name;
}

Result<ApiRequest> parseChatRequest(const Engine& engine, const nlohmann::json& body,
                                    int defaultMaxTokens, ChatOptions chat, std::string& wrong) {
    Fields fields(body, "body");
    ApiRequest out;
    out.chat = true;
    readCommon(fields, engine, defaultMaxTokens, out);
    readTemplateArgs(fields, chat.templateArgs);
    const Plain* list = fields.array("messages");
    wrong = fields.failedKey();
    COLIBRI_TRY(fields.status());
    wrong = "messages";
    if (list->empty()) return Status(Code::BadInput, "body: \"messages\" is empty");
    Result<Json> messages = chatMessages(*list);
    if (!messages.ok()) return messages.status();
    Result<std::vector<int32_t>> prompt = engine.encodeChat(*messages, chat);
    if (!prompt.ok()) return prompt.status();
    if (const Tokenizer* tokenizer = engine.tokenizer()) {
        out.inReasoning = endsInReasoning(*tokenizer, *prompt);
        out.request.specialText = marksAreSpecial(*tokenizer);
    }
    out.request.prompt = std::move(*prompt);
    return out;
}

Result<ApiRequest> parseCompletionRequest(const Engine& engine, const nlohmann::json& body,
                                          int defaultMaxTokens, std::string& wrong) {
    Fields fields(body, "body");
    ApiRequest out;
    readCommon(fields, engine, defaultMaxTokens, out);
    wrong = fields.failedKey();
    COLIBRI_TRY(fields.status());
    wrong = "prompt";
    Result<std::vector<int32_t>> prompt = completionPrompt(engine, fields.find("prompt"));
    if (!prompt.ok()) return prompt.status();
    out.request.prompt = std::move(*prompt);
    return out;
}

}  // namespace colibri::serve
