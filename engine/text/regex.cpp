// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/regex.h"

#include <pcre2.h>

#include <algorithm>

#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

template <auto Free>
struct Deleter {
    template <typename T>
    void operator()(T* object) const {
        Free(object);
    }
};
using Code8 = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;

constexpr uint32_t kBaseSteps = 1 << 20;
constexpr uint32_t kStepsPerByte = 64;
constexpr uint32_t kHeapKiB = 256 << 10;

// Working memory of one thread. Only the bounds of the whole match are kept.
struct Scratch {
    MatchData data{pcre2_match_data_create(1, nullptr)};
    MatchContext context{pcre2_match_context_create(nullptr)};
};

Scratch& scratch() {
    thread_local Scratch scratch;
    return scratch;
}

}  // namespace

struct Regex::Impl {
    Code8 code;
};

Regex::Regex(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

bool isScriptName(std::string_view name) {
    for (char c : name) {
        if (!isalpha(static_cast<unsigned char>(c)) && c != '_') return false;
    }
    const std::string pattern = "\\p{sc:" + std::string(name) + "}";
    int error = 0;
    PCRE2_SIZE offset = 0;
    return Code8(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr)) != nullptr;
}

Result<Regex> Regex::compile(std::string_view pattern) {
    const std::string shown = "pattern \"" + std::string(pattern.substr(0, 200)) + "\"";
    Result<std::string> translated = translateRegex(pattern);
    if (!translated) return translated.status().in(shown);
    CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) return Status(Code::OutOfMemory, shown + ": no memory to compile it");
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    // In Ruby's syntax, ^ and $ always match at line boundaries.
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    auto impl = std::make_unique<Impl>();
    impl->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()),
                                   translated->size(), options, &error, &offset, context.get()));
    if (!impl->code) {
        unsigned char message[256];
        pcre2_get_error_message(error, message, sizeof message);
        return Status(Code::BadInput, shown + ": " + reinterpret_cast<const char*>(message) +
                                          " (byte " + std::to_string(offset) + " of \"" +
                                          translated->substr(0, 400) + "\")");
    }
    // Without executable memory the call fails, and the slower interpreter is used.
    (void)pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE);
    return Regex(std::move(impl));
}

std::vector<Span> Regex::spans(std::string_view text) const {
    std::vector<Span> out;
    Scratch& work = scratch();
    if (text.empty()) return {{0, 0, false}};
    if (!work.data || !work.context) return {{0, text.size(), false}};
    const size_t steps = kBaseSteps + kStepsPerByte * std::min<size_t>(text.size(), 1 << 25);
    pcre2_set_match_limit(work.context.get(), static_cast<uint32_t>(steps));
    pcre2_set_heap_limit(work.context.get(), kHeapKiB);
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(work.data.get());
    size_t covered = 0, from = 0, lastEnd = std::string_view::npos;
    while (from <= text.size()) {
        int found = pcre2_match(m_impl->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                work.data.get(), work.context.get());
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
            found =
                pcre2_match(m_impl->code.get(), subject, text.size(), from,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work.data.get(), work.context.get());
        }
        if (found < 0) break;
        const size_t begin = ends[0], end = ends[1];
        if (begin > end) break;  // \K within a look-ahead can cause this
        if (begin == end && end == lastEnd) {
            from += from < text.size() ? nextUtf8(text, from).bytes : 1;
            continue;
        }
        from = lastEnd = end;
        if (begin < covered) continue;  // \K or a look-behind: a byte must not be matched twice
        if (covered != begin) out.push_back({covered, begin, false});
        out.push_back({begin, end, true});
        covered = end;
    }
    if (covered != text.size()) out.push_back({covered, text.size(), false});
    return out;
}

}  // namespace colibri::text
