// SPDX-License-Identifier: GPL-3.0-or-later
// A load on a server that speaks the OpenAI API: streamed chats, one connection each.
#pragma once

#include "profiler/load/load_run.h"

namespace colibri::serve {

struct HttpTargetOptions {
    std::string apiKey;
    int maxTokens = 128;
    bool ignoreEos = false;  // servers that know it go on to the last token
};

class HttpTarget final : public LoadTarget {
public:
    // "http://HOST:PORT", with or without "/v1". Errors: InvalidArgument (not such an address),
    // IoError (nobody answers), BadInput (no list of models).
    static Result<std::unique_ptr<HttpTarget>> connect(std::string url, HttpTargetOptions options);

    LoadReply ask(const LoadPrompt& prompt, const CancelFlag& cancel) override;

private:
    std::string m_address, m_model;
    HttpTargetOptions m_options;
};

}  // namespace colibri::serve
