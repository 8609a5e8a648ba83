// SPDX-License-Identifier: Apache-2.0
#include "engine/text/known_templates.h"

#include <algorithm>

namespace colibri {

namespace {

constexpr std::string_view kChatMl =
    R"({% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
)";

constexpr std::string_view kLlama3 =
    R"({{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>

{{ message.content | trim }}<|eot_id|>{% endfor %}
{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}
)";

// Without a system role: the system prompt goes before the first question.
constexpr std::string_view kMistral =
    R"({{ bos_token }}{% set ns = namespace(system='') %}
{% for message in messages %}
{% if message.role == 'system' %}{% set ns.system = message.content + '\n\n' %}
{% elif message.role == 'user' %}[INST] {{ ns.system }}{{ message.content }} [/INST]{% set ns.system = '' %}
{% else %} {{ message.content }}{{ eos_token }}{% endif %}
{% endfor %}
)";

constexpr std::string_view kAlpaca =
    R"({% for message in messages %}
{% if message.role == 'system' %}{{ message.content }}

{% elif message.role == 'user' %}### Instruction:
{{ message.content }}

{% else %}### Response:
{{ message.content }}

{% endif %}
{% endfor %}
{% if add_generation_prompt %}### Response:
{% endif %}
)";

constexpr std::string_view kPlain =
    R"({% for message in messages %}
{% if message.role == 'system' %}{{ message.content }}

{% elif message.role == 'user' %}User: {{ message.content }}

{% else %}Assistant: {{ message.content }}

{% endif %}
{% endfor %}
{% if add_generation_prompt %}Assistant:{% endif %}
)";

constexpr KnownTemplate kKnown[] = {{"ChatML", kChatMl},
                                    {"Llama 3", kLlama3},
                                    {"Mistral", kMistral},
                                    {"Alpaca", kAlpaca},
                                    {"User and Assistant", kPlain}};

}  // namespace

std::span<const KnownTemplate> knownTemplates() {
    return kKnown;
}

std::string replyEnd(const ChatTemplate& chat, const std::string& bos, const std::string& eos) {
    constexpr std::string_view kReply = "zyxreplyxyz", kNext = "zyxnextxyz";
    const nlohmann::ordered_json context = {{"messages",
                                             {{{"role", "user"}, {"content", "question"}},
                                              {{"role", "assistant"}, {"content", kReply}},
                                              {{"role", "user"}, {"content", kNext}}}},
                                            {"add_generation_prompt", false},
                                            {"bos_token", bos},
                                            {"eos_token", eos}};
    const Result<std::string> prompt = chat.render(context);
    if (!prompt) return {};
    const size_t reply = prompt->rfind(kReply), next = prompt->rfind(kNext);
    if (reply == std::string::npos || next == std::string::npos || next < reply) return {};
    const size_t from = reply + kReply.size();
    const std::string between = prompt->substr(from, next - from);
    const size_t text = between.find_first_not_of(" \t\r\n");
    if (text == std::string::npos) return {};
    const size_t line = between.find('\n', text);
    std::string end = between.substr(text, line == std::string::npos ? line : line - text);
    if (const size_t mark = end.find('>'); end.front() == '<' && mark != std::string::npos) {
        return end.substr(0, mark + 1);
    }
    end.erase(end.find_last_not_of(" \t\r") + 1);
    // A word that may occur in a reply ends it only at the beginning of a line.
    return between.find('\n') < text ? "\n" + end : end;
}

}  // namespace colibri
