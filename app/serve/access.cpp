// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "engine/unicode/unicode.h"

namespace colibri::serve {

namespace {

constexpr size_t kNameBytes = 100;  // limit for quoting a name from a client

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    }
    return out;
}

bool isPort(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Removes the port from a Host header: "localhost:8080", "[::1]:8080". Anything else after the name
// counts as part of the name.
std::string_view withoutPort(std::string_view host) {
    const size_t bracket = host.find(']');
    const size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
    return colon == host.npos || !isPort(host.substr(colon + 1)) ? host : host.substr(0, colon);
}

// "http://HOST:PORT" -> "HOST:PORT"; empty for any other form.
std::string_view hostOfOrigin(std::string_view origin) {
    const size_t scheme = origin.find("://");
    return scheme == origin.npos ? std::string_view() : origin.substr(scheme + 3);
}

// The form in which browsers write an origin: lower case, without the default port of its scheme.
std::string plainOrigin(std::string_view given) {
    std::string origin = lower(given);
    if (origin.ends_with('/')) origin.pop_back();
    for (const auto& [scheme, port] : {std::pair{"http://", ":80"}, {"https://", ":443"}}) {
        if (origin.starts_with(scheme) && origin.ends_with(port)) {
            origin.resize(origin.size() - std::string_view(port).size());
        }
    }
    return origin;
}

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

bool consistsOf(std::string_view text, std::string_view more) {
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return kLetters.find(c) != kLetters.npos || kDigits.find(c) != kDigits.npos ||
               more.find(c) != more.npos;
    });
}

// Whether a text in lower case is a host name or address: "chat.example.org", "192.168.1.5",
// "[fe80::1]".
bool isName(std::string_view text) {
    if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
        return text.find(':') != text.npos && consistsOf(text.substr(1, text.size() - 2), ":.%");
    }
    return !text.empty() && text.front() != '.' && text.find("..") == text.npos &&
           consistsOf(text, ".-_");
}

std::string quotedName(std::string_view name) {
    return "\"" + text::toValidUtf8(name.substr(0, kNameBytes)) + "\"";
}

// The whole value of a header. The library's own function stops at a NUL, which a client can send
// as %00.
std::string headerOf(const httplib::Request& request, const char* name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string() : found->second;
}

// The time does not depend on where the keys differ.
bool sameKey(const std::string& expected, const std::string& given) {
    size_t difference = expected.size() ^ given.size();
    for (size_t i = 0; i < given.size(); ++i) {
        difference |= size_t(uint8_t(given[i]) ^ uint8_t(expected[i % expected.size()]));
    }
    return difference == 0;
}

}  // namespace

bool isLoopback(std::string_view host) {
    if (host == "localhost" || host == "::1" || host == "[::1]") return true;
    // Names such as "127.0.0.1.example.org" begin like an address, so the whole text is parsed.
    in_addr address{};
    return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
           ntohl(address.s_addr) >> 24 == 127 && host.find('\0') == host.npos;
}

namespace {

// What is wrong with an origin; "" if it is the origin of a web page in the form that browsers
// send.
std::string problemOfOrigin(const std::string& given) {
    // Schemes of web pages, of browser extensions and of programs that embed web pages.
    constexpr std::string_view kSchemes[] = {
        "http", "https", "chrome-extension", "moz-extension", "safari-web-extension",
        "app",  "tauri", "capacitor",        "ionic",         "vscode-webview"};
    const std::string origin =
        lower(given.ends_with('/') ? given.substr(0, given.size() - 1) : given);
    const size_t colon = origin.find("://");
    if (colon == origin.npos) return "it does not begin with http:// or https://";
    const std::string scheme = origin.substr(0, colon);
    if (std::find(std::begin(kSchemes), std::end(kSchemes), scheme) == std::end(kSchemes)) {
        return "no web page has the scheme " + quotedName(scheme);
    }
    const std::string_view host = hostOfOrigin(origin);
    if (host.find('/') != host.npos) return "it has a path";
    const std::string_view name = host.substr(0, host.find(':', host.find(']') + 1));
    if (name.size() < host.size()) {
        const std::string port(host.substr(name.size() + 1));
        if (!isPort(port) || port.size() > 5 || std::stoi(port) < 1 || std::stoi(port) > 65535) {
            return "the port " + quotedName(port) + " is not 1..65535";
        }
    }
    return isName(name) ? "" : quotedName(name) + " is not the name of a host";
}

}  // namespace

Status Access::check(const AccessOptions& options) {
    for (const std::string& given : options.corsOrigins) {
        // Browsers send "null" for local files and for sandboxed frames of any site.
        if (given == "*" || given == "null") {
            if (!options.apiKey.empty()) continue;
            return Status(
                Code::InvalidArgument,
                "the origin " + quotedName(given) + " would let any web page use this server",
                "Set an API key as well, or give the origin of the pages");
        }
        if (const std::string problem = problemOfOrigin(given); !problem.empty()) {
            return Status(Code::InvalidArgument,
                          quotedName(given) + " is not the origin of a web page: " + problem,
                          "Write it as http://HOST:PORT, without a path");
        }
    }
    for (const std::string& host : options.allowedHosts) {
        if (host == "*") {
            return Status(Code::InvalidArgument, "the allowed host \"*\" is not a name",
                          "Name each host, or give an API key: with one every name is admitted");
        }
        if (!isName(lower(host))) {
            return Status(Code::InvalidArgument, quotedName(host) + " is not the name of a host",
                          "Write the name alone, without a scheme, port or path");
        }
    }
    return {};
}

Access::Access(AccessOptions options) : m_options(std::move(options)) {
    for (std::string& origin : m_options.corsOrigins) origin = plainOrigin(origin);
    for (std::string& host : m_options.allowedHosts) host = lower(host);
}

bool Access::admitsHost(std::string_view given) const {
    const std::string host = lower(withoutPort(given));
    const std::vector<std::string>& allowed = m_options.allowedHosts;
    return isLoopback(host) || std::find(allowed.begin(), allowed.end(), host) != allowed.end();
}

bool Access::admitsOrigin(std::string_view given) const {
    const std::string origin = lower(given);
    const std::string_view host = hostOfOrigin(origin);
    if (!host.empty() && admitsHost(host)) return true;
    return std::any_of(
        m_options.corsOrigins.begin(), m_options.corsOrigins.end(),
        [&](const std::string& admitted) { return admitted == "*" || admitted == origin; });
}

std::optional<Access::Refusal> Access::refuseNames(const httplib::Request& request) const {
    const std::string host = headerOf(request, "Host");
    if (request.get_header_value_count("Host") > 1) {
        return Refusal{400, "the request has more than one Host header"};
    }
    // HTTP/1.0 has no Host header; every browser sends one.
    const bool noHost = !request.has_header("Host") && request.version == "HTTP/1.0";
    if (m_options.apiKey.empty() && !noHost && !admitsHost(host)) {
        return Refusal{403, "this server does not accept the host name " +
                                quotedName(withoutPort(host)) +
                                ". Start it with --allowed-host NAME to admit the name, or with "
                                "--api-key KEY to admit every name"};
    }
    const std::string origin = headerOf(request, "Origin");
    const bool keyDecides = !m_options.apiKey.empty() && !isPreflight(request);
    if (!keyDecides && !origin.empty() && !admitsOrigin(origin)) {
        return Refusal{403, "pages of the origin " + quotedName(origin) +
                                " may not use this server. Start it with --cors-origin ORIGIN to "
                                "admit them"};
    }
    return {};
}

std::optional<Access::Refusal> Access::refuse(const httplib::Request& request) const {
    if (std::optional<Refusal> refusal = refuseNames(request)) return refusal;
    // A CORS preflight never has a key.
    if (m_options.apiKey.empty() || request.path == "/health" || isPreflight(request)) return {};
    const std::string given = request.get_header_value("Authorization");
    constexpr std::string_view kScheme = "bearer ";  // compared without regard to case
    if (lower(given.substr(0, kScheme.size())) == kScheme &&
        sameKey(m_options.apiKey, given.substr(kScheme.size()))) {
        return {};
    }
    return Refusal{401, "the API key is missing or wrong. Send \"Authorization: Bearer KEY\""};
}

bool Access::isPreflight(const httplib::Request& request) {
    return request.method == "OPTIONS" && request.has_header("Origin") &&
           request.has_header("Access-Control-Request-Method");
}

void Access::answerPreflight(const httplib::Request& request, httplib::Response& response) {
    response.status = 204;
    response.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    // Client libraries send various headers. All are allowed, since none has a meaning here.
    const std::string requested = request.get_header_value("Access-Control-Request-Headers");
    response.set_header("Access-Control-Allow-Headers",
                        requested.empty() ? "Authorization, Content-Type" : requested);
    response.set_header("Access-Control-Max-Age", "7200");
    if (request.get_header_value("Access-Control-Request-Private-Network") == "true") {
        response.set_header("Access-Control-Allow-Private-Network", "true");
    }
}

void Access::addHeaders(const httplib::Request& request, httplib::Response& response) const {
    response.set_header("Vary", "Origin");  // also without an Origin: caches must distinguish them
    const std::string origin = headerOf(request, "Origin");
    if (origin.empty() || !admitsOrigin(origin)) return;
    response.set_header("Access-Control-Allow-Origin", origin);
    response.set_header("Access-Control-Expose-Headers", "Allow, Retry-After, WWW-Authenticate");
}

}  // namespace colibri::serve
