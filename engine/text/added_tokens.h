// SPDX-License-Identifier: Apache-2.0
// Added tokens such as <|im_end|>, which are searched in the text before tokenization.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/status.h"
#include "engine/text/pre_tokenizers.h"
#include "engine/unicode/traced_text.h"

namespace colibri::text {

class Normalizer;

struct AddedToken {
    std::string content;
    std::string written;  // what it decodes to: the content, normalized if it is searched in
                          // normalized text
    int32_t id = 0;
    bool special = false, normalized = false, singleWord = false, leftStrip = false,
         rightStrip = false;
    bool control = false;  // never recognised in data: special, or written as <|name|>
};

// Finds strings in a text in one pass (Aho-Corasick). Chooses the leftmost match, the longest of
// those, and continues after it. Immutable after build().
class StringFinder {
public:
    struct Hit {
        size_t begin, end;
        size_t which;  // index of the string
    };
    // Of equal strings the first one counts. Empty strings are never found.
    void build(const std::vector<std::string>& strings);
    // Hits that `admits` rejects are ignored as if their string were not searched for.
    std::vector<Hit> find(std::string_view text,
                          const std::function<bool(const Hit&)>& admits) const;

private:
    struct State {
        int32_t fail = 0;
        int32_t suffixHit = -1;  // nearest state along the fail links that ends a string
        int32_t string = -1;
        int32_t depth = 0;
    };
    int32_t step(int32_t state, unsigned char byte) const;  // -1: no such edge

    std::vector<State> m_states;
    std::unordered_map<uint64_t, int32_t> m_edges;  // state << 8 | byte
    std::vector<size_t> m_lengths;
};

// Immutable after build(); any thread.
class AddedTokens {
public:
    // `normalizer` may be null; otherwise it must outlive this.
    void build(std::vector<AddedToken> tokens, const Normalizer* normalizer);

    const AddedToken* byId(int32_t id) const;
    const AddedToken* byContent(std::string_view content) const;
    const std::vector<AddedToken>& all() const { return m_tokens; }

    // Splits the text at added tokens and normalizes the rest. Special tokens stay text unless
    // `special`; control tokens stay text if one of their bytes is data. REQUIRES: valid UTF-8.
    std::vector<Piece> cut(const TracedText& text, bool special) const;

private:
    struct Group {
        StringFinder finder;
        std::vector<size_t> tokens;  // index in m_tokens of each string of the finder
    };
    struct Cut {
        size_t begin, end;
        int32_t id;  // of an added token; -1: text
    };
    std::vector<Cut> cutsBy(const Group& group, const TracedText& text, bool special) const;
    TracedText normalized(TracedText text) const;

    std::vector<AddedToken> m_tokens;
    std::unordered_map<int32_t, size_t> m_byId;
    std::unordered_map<std::string, size_t> m_byContent;
    Group m_raw, m_normalized;  // searched in the raw text, and after the normalizer
    const Normalizer* m_normalizer = nullptr;
};

}  // namespace colibri::text
