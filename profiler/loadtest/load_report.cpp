// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>

#include "profiler/loadtest/load_run.h"

namespace colibri {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json milliseconds(const Histogram& h) {
    return {{"p50", number(h.quantile(0.5) * 1e-6)},  {"p90", number(h.quantile(0.9) * 1e-6)},
            {"p99", number(h.quantile(0.99) * 1e-6)}, {"mean", number(h.mean() * 1e-6)},
            {"max", number(h.max() * 1e-6)},          {"n", h.count()}};
}

std::string field(double value) {
    if (!std::isfinite(value)) return {};
    std::array<char, 400> text;
    const char* end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 6)
            .ptr;
    return std::string(text.data(), size_t(end - text.data()));
}

template <typename T>
std::string field(const std::optional<T>& count) {
    return count ? std::to_string(*count) : std::string();
}

template <typename T>
Json number(const std::optional<T>& count) {
    return count ? Json(*count) : Json(nullptr);
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

}  // namespace

double LoadReport::requestsPerSecond() const {
    return durationS > 0 ? double(completed) / durationS : std::nan("");
}

double LoadReport::tokensPerSecond() const {
    return durationS > 0 && tokens ? double(*tokens) / durationS : std::nan("");
}

double LoadReport::tokensPerPiece() const {
    return pieces > 0 && tokens ? double(*tokens) / double(pieces) : std::nan("");
}

std::string loadCsv(const LoadReport& report) {
    std::string csv = "index,arrival_s,sent_s,first_token_s,end_s,prompt_tokens,tokens,error\n";
    for (const LoadSample& s : report.samples) {
        csv += std::to_string(s.index) + "," + field(s.arrivalS) + "," + field(s.sentS) + "," +
               field(s.firstS) + "," + field(s.endS) + "," + field(s.promptTokens) + "," +
               field(s.tokens) + "," + (s.error.empty() ? "" : quoted(s.error)) + "\n";
    }
    return csv;
}

Json loadJson(const LoadReport& r) {
    Json errors = Json::object();
    for (const auto& [kind, count] : r.errors) errors[kind] = count;
    return {{"requests", {{"sent", r.samples.size()}, {"completed", r.completed}}},
            {"errors", std::move(errors)},
            {"duration_s", r.durationS},
            {"tokens", {{"prompt", number(r.promptTokens)}, {"generated", number(r.tokens)}}},
            {"pieces", {{"count", r.pieces}, {"tokens_each", number(r.tokensPerPiece())}}},
            {"throughput",
             {{"req_s", number(r.requestsPerSecond())}, {"tok_s", number(r.tokensPerSecond())}}},
            {"ttft_ms", milliseconds(r.ttft)},
            {"itl_ms", milliseconds(r.itl)},
            {"e2e_ms", milliseconds(r.endToEnd)}};
}

}  // namespace colibri
