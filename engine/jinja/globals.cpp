// SPDX-License-Identifier: Apache-2.0
// Global functions of templates.
#include <array>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

Value raiseException(Runtime&, const Arguments& arguments) {
    throw RenderError(str(*arguments.bind("raise_exception", {"message"}, 1)[0]));
}

Value strftimeNow(Runtime& runtime, const Arguments& arguments) {
    const Value format = *arguments.bind("strftime_now", {"format"}, 1)[0];
    if (!format.is(Type::String))
        typeError("strftime() argument 1 must be str, not " + typeName(format));
    // The extra character distinguishes an empty result from an error. C has no microseconds (%f),
    // so they are always 000000.
    const std::string wanted =
        replaceAll(format.as<StringObject>(), "%f", TracedText("000000"), -1).text + "x";
    const std::tm now = runtime.now();
    std::array<char, 16384> buffer;
    const size_t size = std::strftime(buffer.data(), buffer.size(), wanted.c_str(), &now);
    if (size == 0) throw RenderError("strftime_now: the result is too long");
    return runtime.text(text::toValidUtf8(std::string_view(buffer.data(), size - 1)));
}

Integer integerOf(const Value& value) {
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.isInteger())
        typeError("'" + typeName(value) + "' object cannot be interpreted as an integer");
    const Integer limit = Integer(1) << 100;
    if (value.asInteger() > limit || value.asInteger() < -limit)
        throw RenderError("the integer is too large");
    return value.asInteger();
}

Value makeRange(Runtime&, const Arguments& arguments) {
    const auto given = arguments.bind("range", {"start", "stop", "step"}, 1);
    RangeObject range;
    if (given[1]) {
        range.start = integerOf(*given[0]);
        range.stop = integerOf(*given[1]);
    } else {
        range.stop = integerOf(*given[0]);
    }
    if (given[2]) range.step = integerOf(*given[2]);
    if (range.step == 0) throw RenderError("range() arg 3 must not be zero");
    if (range.count() > Limits().range) {
        throw RenderError(
            "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    }
    return Value::range(range);
}

// Implements dict(...): a mapping or pairs, and keywords.
DictObject dictOf(const Arguments& arguments) {
    DictObject dict;
    if (arguments.positional.size() > 1) {
        typeError("dict expected at most 1 argument, got " +
                  std::to_string(arguments.positional.size()));
    }
    if (!arguments.positional.empty()) {
        const Value& from = arguments.positional[0];
        if (from.is(Type::Dict)) {
            spend(from.as<DictObject>().entries.size() * 4);
            dict = from.as<DictObject>();
        } else {
            for (const Value& pair : itemsOf(from)) {
                const std::vector<Value> parts = itemsOf(pair);
                if (parts.size() != 2)
                    throw RenderError("dictionary update sequence element has not the length 2");
                dict.set(parts[0], parts[1]);
            }
        }
    }
    for (const auto& [name, value] : arguments.named)
        dict.set(Value::string(TracedText(name, arguments.namesAreData)), value);
    return dict;
}

Value makeDict(Runtime& runtime, const Arguments& arguments) {
    DictObject dict = dictOf(arguments);
    runtime.chargeBytes(dict.entries.size() * 32);
    return Value::dict(std::move(dict));
}

Value makeNamespace(Runtime& runtime, const Arguments& arguments) {
    DictObject attributes = dictOf(arguments);
    for (const auto& [key, value] : attributes.entries) {
        if (!key.is(Type::String) || !key.text().starts_with('_')) continue;
        throw RenderError(
            "Chat templates cannot store underscore-prefixed attributes on a namespace, but got " +
            repr(key) + ". Please rename the attribute.");
    }
    return runtime.makeNamespace(std::move(attributes));
}

Value makeCycler(Runtime& runtime, const Arguments& arguments) {
    if (arguments.positional.empty()) throw RenderError("at least one item has to be provided");
    runtime.charge(10);
    return Value::object(Type::Cycler, std::make_shared<Cycler>(Cycler{arguments.positional}));
}

Value makeJoiner(Runtime&, const Arguments& arguments) {
    const auto given = arguments.bind("joiner", {"sep"});
    const Value separator = given[0] ? *given[0] : Value::string(", ");
    const auto used = std::make_shared<bool>(false);
    return Value::function("joiner", [separator, used](Runtime&, const Arguments&) {
        return std::exchange(*used, true) ? separator : Value::string("");
    });
}

}  // namespace

std::optional<Value> findGlobal(std::string_view name) {
    struct Row {
        std::string_view name;
        Value (*call)(Runtime&, const Arguments&);
    };
    constexpr Row rows[] = {{"raise_exception", raiseException},
                            {"strftime_now", strftimeNow},
                            {"range", makeRange},
                            {"dict", makeDict},
                            {"namespace", makeNamespace},
                            {"cycler", makeCycler},
                            {"joiner", makeJoiner}};
    for (const Row& row : rows) {
        if (row.name == name) return Value::function(std::string(name), row.call);
    }
    return std::nullopt;
}

}  // namespace colibri::jinja
