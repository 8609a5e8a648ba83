// SPDX-License-Identifier: GPL-3.0-or-later
// Who may use the server, and which web pages may read its replies (CORS).
//
// Without an API key the server accepts clients that address it by a name of this machine or by an
// allowed name, and pages that come from such a name or have an admitted origin. No other web page
// can reach it through the user's browser, not even one whose name resolves to this machine (DNS
// rebinding). With an API key, the key decides, and the same pages may read replies.
#pragma once

#include <httplib.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace colibri::serve {

struct AccessOptions {
    std::string apiKey;                     // required for an address that is not loopback
    std::vector<std::string> corsOrigins;   // "https://chat.example.org"; "*": every page
    std::vector<std::string> allowedHosts;  // names without a port: "pc.lan"
};

// Whether a host can be reached from this machine only: an address 127.x.x.x, "localhost", "::1",
// "[::1]".
bool isLoopback(std::string_view host);

class Access {
public:
    // Errors: InvalidArgument (an invalid origin or name, or "*" without a key).
    static Status check(const AccessOptions& options);
    explicit Access(AccessOptions options);  // REQUIRES: checked

    struct Refusal {
        int status;
        std::string message;
    };
    // Nothing: the request or the preflight is allowed.
    std::optional<Refusal> refuse(const httplib::Request& request) const;

    // Detects a CORS preflight request, and writes the response that allows it.
    static bool isPreflight(const httplib::Request& request);
    static void answerPreflight(const httplib::Request& request, httplib::Response& response);
    // Adds the headers that let an admitted page read the response.
    void addHeaders(const httplib::Request& request, httplib::Response& response) const;

private:
    std::optional<Refusal> refuseNames(const httplib::Request& request) const;
    bool admitsHost(std::string_view host) const;
    bool admitsOrigin(std::string_view origin) const;

    AccessOptions m_options;  // in lower case, origins without a default port
};

}  // namespace colibri::serve
