// SPDX-License-Identifier: Apache-2.0
// Methods of Python's str, list, tuple and dict that do not modify their object.
#include <algorithm>
#include <span>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

using Method = Value (*)(Runtime&, const Value& self, const Arguments&);
struct Row {
    std::string_view name;
    Method method;
};

using Bound = std::vector<std::optional<Value>>;

const std::string& textOf(const Value& value, const char* what) {
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.is(Type::String))
        typeError(std::string(what) + " must be str, not " + typeName(value));
    return value.text();
}

int64_t numberOf(const std::optional<Value>& value, int64_t fallback) {
    if (!value || value->is(Type::None)) return fallback;
    if (value->is(Type::Undefined)) undefinedError(*value);
    if (!value->isInteger())
        typeError("'" + typeName(*value) + "' object cannot be interpreted as an integer");
    return int64_t(std::clamp(value->asInteger(), Integer(INT64_MIN), Integer(INT64_MAX)));
}

// The result of a change to a string: safe if the original is.
template <typename Text>
Value like(Runtime& runtime, const Value& self, Text text) {
    return runtime.text(std::move(text), self.as<StringObject>().safe);
}

// A substring of a string.
Value part(Runtime& runtime, const Value& self, std::string_view view) {
    return like(runtime, self, partOf(self.as<StringObject>(), view));
}

template <std::string (*change)(std::string_view)>
Value changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
    (void)arguments.bind("str", {});
    runtime.chargeBytes(self.text().size() * 4);
    return like(runtime, self, change(self.text()));
}

template <Side side>
Value stripped(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("strip", {"chars"});
    if (!given[0] || given[0]->is(Type::None)) return part(runtime, self, strip(self.text(), side));
    return part(runtime, self, strip(self.text(), side, textOf(*given[0], "strip arg")));
}

template <bool fromRight>
Value splitText(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("split", {"sep", "maxsplit"});
    const int64_t most = numberOf(given[1], -1);
    std::vector<std::string_view> parts;
    runtime.chargeBytes(self.text().size());
    if (!given[0] || given[0]->is(Type::None)) {
        parts = splitWords(self.text(), most, fromRight);
    } else {
        const std::string& separator = textOf(*given[0], "separator");
        if (separator.empty()) throw RenderError("empty separator");
        parts = splitBy(self.text(), separator, most, fromRight);
    }
    std::vector<Value> out;
    for (const std::string_view view : parts)
        out.push_back(
            Value::string(partOf(self.as<StringObject>(), view), self.as<StringObject>().safe));
    return runtime.list(std::move(out));
}

Value splitIntoLines(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("splitlines", {"keepends"});
    std::vector<Value> out;
    for (const std::string_view line : splitLines(self.text(), given[0] && truthy(*given[0]))) {
        out.push_back(
            Value::string(partOf(self.as<StringObject>(), line), self.as<StringObject>().safe));
    }
    return runtime.list(std::move(out));
}

// The byte range of code points [start, end), with Python's rules for negative numbers; empty if
// start is past the end.
struct ByteRange {
    size_t begin, end;
};
std::optional<ByteRange> rangeOf(const std::string& text, const std::optional<Value>& start,
                                 const std::optional<Value>& end) {
    if (!start && !end) return ByteRange{0, text.size()};
    spend(text.size() / 4);
    const int64_t count = int64_t(codePointCount(std::string_view(text)));
    const auto index = [&](int64_t at) { return at < 0 ? std::max<int64_t>(0, at + count) : at; };
    const int64_t from = index(std::max<int64_t>(numberOf(start, 0), -count));
    const int64_t to = std::min(count, index(std::max<int64_t>(numberOf(end, count), -count - 1)));
    if (from > count || from > to) return std::nullopt;
    const auto bytes = [&](int64_t codes) {
        size_t at = 0;
        for (; codes > 0; --codes) at += text::nextUtf8(text, at).bytes;
        return at;
    };
    return ByteRange{bytes(from), bytes(to)};
}

template <bool atEnd>
Value startsOrEnds(Runtime&, const Value& self, const Arguments& arguments) {
    const Bound given =
        arguments.bind(atEnd ? "endswith" : "startswith", {"prefix", "start", "end"}, 1);
    const auto range = rangeOf(self.text(), given[1], given[2]);
    std::vector<Value> wanted{*given[0]};
    if (given[0]->is(Type::Tuple)) wanted = given[0]->items();
    for (const Value& one : wanted) {
        const std::string& text =
            textOf(one, atEnd ? "endswith first arg" : "startswith first arg");
        if (!range) continue;
        const std::string_view part =
            std::string_view(self.text()).substr(range->begin, range->end - range->begin);
        spend(1 + std::min(text.size(), part.size()) / 16);
        if (atEnd ? part.ends_with(text) : part.starts_with(text)) return Value::boolean(true);
    }
    return Value::boolean(false);
}

template <bool fromRight, bool mustFind>
Value indexInText(Runtime&, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("find", {"sub", "start", "end"}, 1);
    const std::string& wanted = textOf(*given[0], "argument 1");
    if (const auto range = rangeOf(self.text(), given[1], given[2])) {
        const std::string_view part =
            std::string_view(self.text()).substr(range->begin, range->end - range->begin);
        const size_t at = fromRight ? findLastText(part, wanted) : findText(part, wanted);
        if (at != std::string_view::npos) {
            return Value::integer(Integer(
                codePointCount(std::string_view(self.text()).substr(0, range->begin + at))));
        }
    }
    if (mustFind) throw RenderError("substring not found");
    return Value::integer(-1);
}

Value countText(Runtime&, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("count", {"sub", "start", "end"}, 1);
    const std::string& wanted = textOf(*given[0], "argument 1");
    const auto range = rangeOf(self.text(), given[1], given[2]);
    if (!range) return Value::integer(0);
    const std::string_view part =
        std::string_view(self.text()).substr(range->begin, range->end - range->begin);
    if (wanted.empty()) return Value::integer(Integer(codePointCount(part)) + 1);
    Integer count = 0;
    for (size_t at = findText(part, wanted); at != std::string_view::npos;
         at = findText(part, wanted, at + wanted.size()))
        ++count;
    return Value::integer(count);
}

Value replaceText(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("replace", {"old", "new", "count"}, 2);
    const std::string& from = textOf(*given[0], "replace() argument 1");
    (void)textOf(*given[1], "replace() argument 2");
    TracedText to = given[1]->as<StringObject>();
    const bool safe = self.as<StringObject>().safe;
    if (safe && !given[1]->as<StringObject>().safe) to = escapeHtml(to);
    const size_t most = from.empty() ? self.text().size() + 1 : self.text().size() / from.size();
    runtime.chargeBytes(self.text().size() +
                        std::min<size_t>(most, 1 << 24) *
                            (to.text.size() > from.size() ? to.text.size() - from.size() : 0) / 8);
    return like(runtime, self,
                replaceAll(self.as<StringObject>(), from, to, numberOf(given[2], -1)));
}

Value joinItems(Runtime& runtime, const Value& self, const Arguments& arguments) {
    TracedText out;
    size_t index = 0;
    const bool safe = self.as<StringObject>().safe;
    for (const Value& item : itemsOf(*arguments.bind("join", {"iterable"}, 1)[0])) {
        if (!item.is(Type::String)) {
            typeError("sequence item " + std::to_string(index) + ": expected str instance, " +
                      typeName(item) + " found");
        }
        const TracedText& piece = item.as<StringObject>();
        if (index++ > 0) out.append(self.as<StringObject>());
        out.append(safe && !item.as<StringObject>().safe ? escapeHtml(piece) : piece);
        spend(self.as<StringObject>().data.size());
        spendOnText(self.text().size() + item.text().size(), out.text.size());
    }
    return like(runtime, self, std::move(out));
}

TracedText padded(Runtime& runtime, const TracedText& text, int64_t width, const TracedText& fill,
                  int leftShare) {
    const int64_t missing = width - int64_t(codePointCount(std::string_view(text.text)));
    if (missing <= 0) return text;
    runtime.chargeBytes(size_t(std::min<int64_t>(missing, 1 << 28)) * fill.text.size());
    // As in Python, the odd fill character goes to the left only if the width is odd.
    const int64_t left = leftShare == 0   ? 0
                         : leftShare == 2 ? missing
                                          : missing / 2 + (missing & width & 1);
    TracedText out;
    for (int64_t i = 0; i < left; ++i) out.append(fill);
    out.append(text);
    for (int64_t i = left; i < missing; ++i) out.append(fill);
    return out;
}

template <int leftShare>
Value pad(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("pad", {"width", "fillchar"}, 1);
    if (given[1] && codePointCount(std::string_view(textOf(*given[1], "The fill character"))) != 1)
        typeError("The fill character must be exactly one character long");
    const TracedText fill = given[1] ? TracedText(given[1]->as<StringObject>()) : TracedText(" ");
    return like(runtime, self,
                padded(runtime, self.as<StringObject>(), numberOf(given[0], 0), fill, leftShare));
}

Value zeroFill(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const int64_t width = numberOf(arguments.bind("zfill", {"width"}, 1)[0], 0);
    const bool sign = self.text().starts_with('-') || self.text().starts_with('+');
    const TracedText& text = self.as<StringObject>();
    TracedText out = text.slice(0, sign);
    out.append(
        padded(runtime, text.slice(sign, text.text.size()), width - sign, TracedText("0"), 2));
    return like(runtime, self, std::move(out));
}

template <bool fromRight>
Value partition(Runtime&, const Value& self, const Arguments& arguments) {
    const Value separator = *arguments.bind("partition", {"sep"}, 1)[0];
    const std::string& wanted = textOf(separator, "separator");
    if (wanted.empty()) throw RenderError("empty separator");
    const std::string& text = self.text();
    const size_t at = fromRight ? findLastText(text, wanted) : findText(text, wanted);
    const Value empty = Value::string(TracedText());
    if (at == std::string::npos) {
        return fromRight ? Value::tuple({empty, empty, self}) : Value::tuple({self, empty, empty});
    }
    const TracedText& whole = self.as<StringObject>();
    return Value::tuple({Value::string(whole.slice(0, at)), separator,
                         Value::string(whole.slice(at + wanted.size(), text.size()))});
}

template <bool suffix>
Value removeEnd(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const Value end = *arguments.bind("removeprefix", {"prefix"}, 1)[0];
    const std::string& wanted = textOf(end, "argument");
    const std::string& text = self.text();
    if (suffix ? !text.ends_with(wanted) : !text.starts_with(wanted)) return self;
    std::string_view rest = text;
    suffix ? rest.remove_suffix(wanted.size()) : rest.remove_prefix(wanted.size());
    return part(runtime, self, rest);
}

template <bool (*wanted)(char32_t)>
Value allAre(Runtime&, const Value& self, const Arguments&) {
    const std::u32string codes = toCodePoints(self.text());
    spend(codes.size() / 2);
    return Value::boolean(!codes.empty() && std::all_of(codes.begin(), codes.end(), wanted));
}

bool isAlphaOrNumber(char32_t code) {
    return isAlpha(code) || isNumericCode(code) || isDigit(code);
}
bool isAscii(char32_t code) {
    return code < 0x80;
}

template <bool wantUpper>
Value isCase(Runtime& runtime, const Value& self, const Arguments&) {
    return Value::boolean(
        findTest(wantUpper ? "upper" : "lower")->test(runtime, self, Arguments()));
}

Value isTitleCase(Runtime&, const Value& self, const Arguments&) {
    bool any = false, inWord = false;
    spend(self.text().size() / 2);
    for (char32_t code : toCodePoints(self.text())) {
        const bool upper = isUpper(code) || isTitle(code), lower = isLower(code);
        if ((upper && inWord) || (lower && !inWord)) return Value::boolean(false);
        inWord = upper || lower;
        any |= inWord;
    }
    return Value::boolean(any);
}

Value expandTabs(Runtime& runtime, const Value& self, const Arguments& arguments) {
    const int64_t size =
        std::clamp<int64_t>(numberOf(arguments.bind("expandtabs", {"tabsize"})[0], 8), 0, 1000);
    std::string out;
    int64_t column = 0;
    for (char32_t code : toCodePoints(self.text())) {
        if (code == '\t') {
            const int64_t spaces = size > 0 ? size - column % size : 0;
            out.append(size_t(spaces), ' ');
            column += spaces;
            spendOnText(size_t(spaces) + 16, out.size());
        } else {
            text::appendUtf8(out, code);
            column = code == '\n' || code == '\r' ? 0 : column + 1;
        }
    }
    return like(runtime, self, std::move(out));
}

const Row kStringMethods[] = {
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"title", changed<title>},
    {"capitalize", changed<capitalize>},
    {"swapcase", changed<swapCase>},
    {"casefold", changed<caseFold>},
    {"strip", stripped<Side::Both>},
    {"lstrip", stripped<Side::Left>},
    {"rstrip", stripped<Side::Right>},
    {"split", splitText<false>},
    {"rsplit", splitText<true>},
    {"splitlines", splitIntoLines},
    {"startswith", startsOrEnds<false>},
    {"endswith", startsOrEnds<true>},
    {"find", indexInText<false, false>},
    {"rfind", indexInText<true, false>},
    {"index", indexInText<false, true>},
    {"rindex", indexInText<true, true>},
    {"count", countText},
    {"replace", replaceText},
    {"join", joinItems},
    {"expandtabs", expandTabs},
    {"ljust", pad<0>},
    {"center", pad<1>},
    {"rjust", pad<2>},
    {"zfill", zeroFill},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"removeprefix", removeEnd<false>},
    {"removesuffix", removeEnd<true>},
    {"isdigit", allAre<isDigit>},
    {"isdecimal", allAre<isDecimal>},
    {"isnumeric", allAre<isNumericCode>},
    {"isalpha", allAre<isAlpha>},
    {"isalnum", allAre<isAlphaOrNumber>},
    {"isspace", allAre<isSpace>},
    {"isupper", isCase<true>},
    {"islower", isCase<false>},
    {"istitle", isTitleCase},
    {"isascii",
     [](Runtime& r, const Value& s, const Arguments& a) {
         return s.text().empty() ? Value::boolean(true) : allAre<isAscii>(r, s, a);
     }},
    {"isprintable",
     [](Runtime& r, const Value& s, const Arguments& a) {
         return s.text().empty() ? Value::boolean(true) : allAre<isPrintable>(r, s, a);
     }},
    {"isidentifier", [](Runtime&, const Value& s,
                        const Arguments&) { return Value::boolean(isIdentifier(s.text())); }},
    {"format",
     [](Runtime& r, const Value& s, const Arguments& a) {
         return like(r, s, braceFormat(r, s.as<StringObject>(), a));
     }},
};

Value countItems(Runtime&, const Value& self, const Arguments& arguments) {
    const Value wanted = *arguments.bind("count", {"value"}, 1)[0];
    Integer count = 0;
    for (const Value& item : self.items()) count += equal(item, wanted);
    return Value::integer(count);
}

Value indexOfItem(Runtime&, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("index", {"value", "start", "stop"}, 1);
    const int64_t count = int64_t(self.items().size());
    const auto index = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
    };
    for (int64_t i = index(numberOf(given[1], 0)); i < index(numberOf(given[2], count)); ++i) {
        if (equal(self.items()[size_t(i)], *given[0])) return Value::integer(i);
    }
    throw RenderError(repr(*given[0]) + " is not in " + typeName(self));
}

constexpr Row kSequenceMethods[] = {{"count", countItems}, {"index", indexOfItem}};
constexpr Row kListOnly[] = {
    {"copy", [](Runtime& r, const Value& s, const Arguments&) { return r.list(s.items()); }}};

Value getItem(Runtime&, const Value& self, const Arguments& arguments) {
    const Bound given = arguments.bind("get", {"key", "default"}, 1);
    const Value* found = self.as<DictObject>().find(*given[0]);
    return found ? *found : given[1] ? *given[1] : Value::none();
}

template <ViewKind kind>
Value viewOf(Runtime&, const Value& self, const Arguments& arguments) {
    (void)arguments.bind("items", {});
    return Value::view(self.dictPointer(), kind);
}

constexpr Row kDictMethods[] = {
    {"get", getItem},
    {"keys", viewOf<ViewKind::Keys>},
    {"values", viewOf<ViewKind::Values>},
    {"items", viewOf<ViewKind::Items>},
    {"copy", [](Runtime&, const Value& s, const Arguments&) { return s; }}};

std::optional<Value> bound(std::span<const Row> rows, const Value& object, std::string_view name) {
    for (const Row& row : rows) {
        if (row.name != name) continue;
        return Value::function(
            std::string(name),
            [object, method = row.method](Runtime& runtime, const Arguments& arguments) {
                return runtime.operate(hasData(object) || arguments.hasData(),
                                       [&] { return method(runtime, object, arguments); });
            });
    }
    return std::nullopt;
}

}  // namespace

std::optional<Value> findMethod(const Value& object, std::string_view name) {
    switch (object.type()) {
        case Type::String:
            return bound(kStringMethods, object, name);
        case Type::Dict:
            return bound(kDictMethods, object, name);
        case Type::List:
            if (auto method = bound(kListOnly, object, name)) return method;
            return bound(kSequenceMethods, object, name);
        case Type::Tuple:
            return bound(kSequenceMethods, object, name);
        default:
            return std::nullopt;
    }
}

bool hasUnsafeMethod(const Value& object, std::string_view name) {
    constexpr std::string_view list[] = {"append", "clear", "pop",    "reverse",
                                         "insert", "sort",  "extend", "remove"};
    constexpr std::string_view dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
    if (object.is(Type::List))
        return std::find(std::begin(list), std::end(list), name) != std::end(list);
    return object.is(Type::Dict) &&
           std::find(std::begin(dict), std::end(dict), name) != std::end(dict);
}

}  // namespace colibri::jinja
