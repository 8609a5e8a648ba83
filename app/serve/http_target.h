// SPDX-License-Identifier: GPL-3.0-or-later
// The target of a load test on an OpenAI-compatible server: streamed chats, one connection each.
#pragma once

#include <optional>

#include "profiler/loadtest/load_run.h"

namespace colibri::serve {

struct HttpTargetOptions {
    std::string apiKey;
    int maxTokens = 128;
    bool ignoreEos = false;  // servers that support it continue to the token limit
};

class HttpTarget final : public LoadTarget {
public:
    // "http://HOST:PORT", with or without "/v1". Errors: InvalidArgument (not such an address),
    // IoError (no response), BadInput (no list of models), Cancelled.
    static Result<std::unique_ptr<HttpTarget>> connect(std::string url, HttpTargetOptions options,
                                                       const CancelFlag* cancel = nullptr);

    const std::string& model() const { return m_model; }
    // The context length that the server reports; empty: none.
    std::optional<int64_t> contextLength() const { return m_contextLength; }

    LoadReply send(const LoadPrompt& prompt, const CancelFlag& cancel) override;

private:
    std::string m_address, m_model;
    std::optional<int64_t> m_contextLength;
    HttpTargetOptions m_options;
};

}  // namespace colibri::serve
