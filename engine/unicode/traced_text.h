// SPDX-License-Identifier: Apache-2.0
// A text with its data bytes marked: those from a user or a client, as opposed to those from a chat
// template. Only the latter may become control tokens (Tokenizer::encode).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace colibri {

struct ByteRange {
    size_t begin, end;

    bool operator==(const ByteRange&) const = default;
};

struct TracedText {
    std::string text;
    std::vector<ByteRange> data;  // in order; not empty and not adjacent

    TracedText() = default;
    explicit TracedText(std::string whole, bool isData = false) : text(std::move(whole)) {
        if (isData && !text.empty()) data.push_back({0, text.size()});
    }

    bool hasData() const { return !data.empty(); }
    // Whether one of the bytes begin .. end is data.
    bool hasData(size_t begin, size_t end) const;

    void append(std::string_view more, bool isData = false);
    void append(const TracedText& more) { append(more, 0, more.text.size()); }
    void append(const TracedText& from, size_t begin, size_t end);  // REQUIRES: begin <= end
    TracedText slice(size_t begin, size_t end) const;

private:
    void addData(size_t begin, size_t end);
};

}  // namespace colibri
