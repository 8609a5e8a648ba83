// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/parameters.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace colibri::serve {

namespace {

using Plain = nlohmann::json;

enum class Use { Read, NoEffect, OnlyNeutral };
enum class At { Both, Chat, Completion };

struct Parameter {
    Use use;
    std::vector<Plain> neutral = {};  // OnlyNeutral: the values that do not change the reply
    At at = At::Both;
};

constexpr Use kRead = Use::Read, kNoEffect = Use::NoEffect, kOnly = Use::OnlyNeutral;

// Every parameter that clients are known to send.
const std::map<std::string_view, Parameter> kParameters = {
    // Read by openai.cpp.
    {"model", {kRead}},
    {"messages", {kRead, {}, At::Chat}},
    {"prompt", {kRead, {}, At::Completion}},
    {"chat_template_kwargs", {kRead, {}, At::Chat}},
    {"reasoning_effort", {kRead, {}, At::Chat}},
    {"stream", {kRead}},
    {"stream_options", {kRead}},
    {"return_progress", {kRead}},
    {"max_tokens", {kRead}},
    {"max_completion_tokens", {kRead}},
    {"n_predict", {kRead}},
    {"temperature", {kRead}},
    {"top_p", {kRead}},
    {"top_k", {kRead}},
    {"min_p", {kRead}},
    {"repetition_penalty", {kRead}},
    {"repeat_penalty", {kRead}},
    {"presence_penalty", {kRead}},
    {"frequency_penalty", {kRead}},
    {"logit_bias", {kRead}},
    {"seed", {kRead}},
    {"stop", {kRead}},
    {"ignore_eos", {kRead}},
    {"logprobs", {kRead}},
    {"top_logprobs", {kRead}},
    // Identification of users, storage, billing and priority.
    {"user", {kNoEffect}},
    {"metadata", {kNoEffect}},
    {"store", {kNoEffect}},
    {"service_tier", {kNoEffect}},
    {"safety_identifier", {kNoEffect}},
    {"prompt_cache_key", {kNoEffect}},
    {"prompt_cache_retention", {kNoEffect}},
    {"prediction", {kNoEffect}},
    {"parallel_tool_calls", {kNoEffect}},  // there are no tools
    {"priority", {kNoEffect}},
    {"request_id", {kNoEffect}},
    {"cache_salt", {kNoEffect}},
    {"cache_prompt", {kNoEffect}},
    {"id_slot", {kNoEffect}},
    {"n_keep", {kNoEffect}},  // no reply shifts the context
    {"n_discard", {kNoEffect}},
    {"keep_alive", {kNoEffect}},
    // Settings of options that are rejected below. They have no effect on their own.
    {"dynatemp_exponent", {kNoEffect}},
    {"xtc_threshold", {kNoEffect}},
    {"mirostat_tau", {kNoEffect}},
    {"mirostat_eta", {kNoEffect}},
    {"dry_base", {kNoEffect}},
    {"dry_allowed_length", {kNoEffect}},
    {"dry_penalty_last_n", {kNoEffect}},
    {"dry_sequence_breakers", {kNoEffect}},
    {"guided_decoding_backend", {kNoEffect}},
    {"guided_whitespace_pattern", {kNoEffect}},
    // Parameters of the OpenAI API.
    {"n", {kOnly, {1}}},
    {"best_of", {kOnly, {1}}},
    {"echo", {kOnly, {false}}},
    {"suffix", {kOnly, {""}, At::Completion}},
    {"tools", {kOnly, {Plain::array()}, At::Chat}},
    {"tool_choice", {kOnly, {"none", "auto"}, At::Chat}},
    {"functions", {kOnly, {Plain::array()}, At::Chat}},
    {"function_call", {kOnly, {"none", "auto"}, At::Chat}},
    {"response_format", {kOnly, {Plain{{"type", "text"}}}}},
    {"modalities", {kOnly, {Plain::array({"text"})}, At::Chat}},
    {"audio", {kOnly, {}, At::Chat}},
    {"verbosity", {kOnly, {"medium"}, At::Chat}},
    {"web_search_options", {kOnly, {}, At::Chat}},
    // Parameters of vLLM.
    {"use_beam_search", {kOnly, {false}}},
    {"length_penalty", {kOnly, {1}}},
    {"min_tokens", {kOnly, {0}}},
    {"stop_token_ids", {kOnly, {Plain::array()}}},
    {"include_stop_str_in_output", {kOnly, {false}}},
    {"skip_special_tokens", {kOnly, {true}}},
    {"spaces_between_special_tokens", {kOnly, {true}}},
    {"add_generation_prompt", {kOnly, {true}, At::Chat}},
    {"continue_final_message", {kOnly, {false}, At::Chat}},
    {"add_special_tokens", {kOnly, {}}},
    {"chat_template", {kOnly, {""}, At::Chat}},
    {"documents", {kOnly, {Plain::array()}, At::Chat}},
    {"include_reasoning", {kOnly, {true}, At::Chat}},
    {"thinking_token_budget", {kOnly, {}, At::Chat}},
    {"truncate_prompt_tokens", {kOnly, {}}},
    {"prompt_logprobs", {kOnly, {}}},
    {"allowed_token_ids", {kOnly, {}}},
    {"bad_words", {kOnly, {Plain::array()}}},
    {"return_tokens_as_token_ids", {kOnly, {false}}},
    {"return_token_ids", {kOnly, {false}}},
    {"guided_json", {kOnly, {}}},
    {"guided_regex", {kOnly, {""}}},
    {"guided_choice", {kOnly, {Plain::array()}}},
    {"guided_grammar", {kOnly, {""}}},
    {"structured_outputs", {kOnly, {}}},
    {"repetition_detection", {kOnly, {}}},
    {"logits_processors", {kOnly, {Plain::array()}}},
    {"mm_processor_kwargs", {kOnly, {Plain::object()}}},
    {"kv_transfer_params", {kOnly, {Plain::object()}}},
    // Parameters of llama.cpp.
    {"repeat_last_n", {kOnly, {-1}}},  // the penalty applies to the whole text
    {"dynatemp_range", {kOnly, {0}}},
    {"typical_p", {kOnly, {1}}},
    {"typ_p", {kOnly, {1}}},
    {"tfs_z", {kOnly, {1}}},
    {"top_n_sigma", {kOnly, {-1, 0}}},
    {"xtc_probability", {kOnly, {0}}},
    {"dry_multiplier", {kOnly, {0}}},
    {"mirostat", {kOnly, {0}}},
    {"min_keep", {kOnly, {0}}},
    {"n_probs", {kOnly, {0}}},
    {"post_sampling_probs", {kOnly, {false}}},
    {"n_indent", {kOnly, {0}}},
    {"samplers", {kOnly, {}}},
    {"grammar", {kOnly, {""}}},
    {"json_schema", {kOnly, {}}},
    {"lora", {kOnly, {Plain::array()}}},
    {"t_max_predict_ms", {kOnly, {0, -1}}},
    {"t_max_prompt_ms", {kOnly, {0, -1}}},
    {"timings_per_token", {kOnly, {false}}},
    {"return_tokens", {kOnly, {false}}},
    {"reasoning_format", {kOnly, {"auto", "deepseek"}, At::Chat}},
    {"thinking_forced_open", {kOnly, {false}, At::Chat}},
    {"parse_tool_calls", {kNoEffect, {}, At::Chat}},
};

bool isAt(At at, Endpoint endpoint) {
    return at == At::Both || (at == At::Chat) == (endpoint == Endpoint::Chat);
}

ApiError unsupported(const std::string& name, const Plain& value, const Parameter& parameter) {
    std::string hint = "Omit it";
    for (const Plain& other : parameter.neutral) hint += " or use " + other.dump();
    const std::string shown =
        value.dump(-1, ' ', false, Plain::error_handler_t::replace).substr(0, 60);
    return {400, name + ": " + shown + " is not supported. " + hint, "unsupported_parameter", name};
}

}  // namespace

std::optional<ApiError> refusedParameter(const Plain& body, Endpoint endpoint) {
    for (const auto& [name, value] : body.items()) {
        if (value.is_null()) continue;
        const auto known = kParameters.find(name);
        if (known == kParameters.end() || !isAt(known->second.at, endpoint)) {
            const std::string shown = name.substr(0, 60);
            return ApiError{400, shown + " is not a parameter of this endpoint. Omit it",
                            "unknown_parameter", shown};
        }
        const Parameter& p = known->second;
        const auto& neutral = p.neutral;
        if (p.use == Use::OnlyNeutral &&
            std::find(neutral.begin(), neutral.end(), value) == neutral.end()) {
            return unsupported(name, value, p);
        }
    }
    return {};
}

}  // namespace colibri::serve
