// SPDX-License-Identifier: Apache-2.0
#include "engine/unicode/traced_text.h"

#include <algorithm>

namespace colibri {
namespace {

// The first range that ends after `offset`.
auto firstAfter(const std::vector<ByteRange>& ranges, size_t offset) {
    return std::upper_bound(ranges.begin(), ranges.end(), offset,
                            [](size_t at, const ByteRange& range) { return at < range.end; });
}

}  // namespace

bool TracedText::hasData(size_t begin, size_t end) const {
    const auto found = firstAfter(data, begin);
    return found != data.end() && found->begin < end;
}

void TracedText::addData(size_t begin, size_t end) {
    if (begin == end) return;
    if (!data.empty() && data.back().end == begin) {
        data.back().end = end;
    } else {
        data.push_back({begin, end});
    }
}

void TracedText::append(std::string_view more, bool isData) {
    if (isData) addData(text.size(), text.size() + more.size());
    text += more;
}

void TracedText::append(const TracedText& from, size_t begin, size_t end) {
    const size_t at = text.size();
    for (auto range = firstAfter(from.data, begin); range != from.data.end() && range->begin < end;
         ++range) {
        addData(at + std::max(range->begin, begin) - begin, at + std::min(range->end, end) - begin);
    }
    text.append(from.text, begin, end - begin);
}

TracedText TracedText::slice(size_t begin, size_t end) const {
    TracedText out;
    out.append(*this, begin, end);
    return out;
}

}  // namespace colibri
