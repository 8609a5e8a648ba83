// SPDX-License-Identifier: Apache-2.0
// object.name looks for methods before items; object[key] looks for items before methods.
#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

Value missing(const Value& object, const Value& key) {
    if (!key.is(Type::String))
        return Value::undefined(describe(object) + " has no element " + repr(key));
    return Value::undefined(reprText(describe(object)) + " has no attribute " +
                            reprText(key.text()));
}

Value hidden(const Value& object, const std::string& name) {
    return Value::undefined("access to attribute " + reprText(name) + " of " +
                            reprText(typeName(object)) + " object is unsafe.");
}

std::optional<Value> macroAttribute(const MacroObject& macro, const std::string& name) {
    if (name == "name") return Value::string(macro.name);
    if (name == "arguments") {
        std::vector<Value> names;
        for (const std::string& parameter : macro.body->parameters)
            names.push_back(Value::string(parameter));
        return Value::tuple(std::move(names));
    }
    if (name == "caller") return Value::boolean(macro.body->usesCaller);
    if (name == "catch_kwargs") return Value::boolean(macro.body->usesKwargs);
    if (name == "catch_varargs") return Value::boolean(macro.body->usesVarargs);
    return std::nullopt;
}

std::optional<Value> cyclerAttribute(const Value& cycler, const std::string& name) {
    if (name == "current") return cycler.state<Cycler>().items[cycler.state<Cycler>().position];
    if (name == "next") {
        return Value::function("next", [cycler](Runtime&, const Arguments&) {
            Cycler& state = cycler.state<Cycler>();
            Value out = state.items[state.position];
            state.position = (state.position + 1) % state.items.size();
            return out;
        });
    }
    if (name == "reset") {
        return Value::function("reset", [cycler](Runtime&, const Arguments&) {
            cycler.state<Cycler>().position = 0;
            return Value::none();
        });
    }
    return std::nullopt;
}

// The attribute in Python's sense: a method, or a field of a runtime object such as `loop`.
std::optional<Value> ownAttribute(const Value& object, const std::string& name) {
    switch (object.type()) {
        case Type::Namespace:
            if (const Value* found = object.state<Namespace>().attributes.find(name)) return *found;
            return std::nullopt;
        case Type::Loop: {
            bool found = false;
            Value value = object.state<LoopObject>().attribute(name, found);
            if (name == "cycle" || name == "changed") {
                return Value::function(name, [object, name](Runtime&, const Arguments& arguments) {
                    LoopObject& loop = object.state<LoopObject>();
                    if (name == "cycle") {
                        if (arguments.positional.empty()) typeError("no items for cycling given");
                        return arguments
                            .positional[size_t(loop.index) % arguments.positional.size()];
                    }
                    const auto& now = arguments.positional;
                    bool same = loop.lastChanged && loop.lastChanged->size() == now.size();
                    for (size_t i = 0; same && i < now.size(); ++i)
                        same = equal((*loop.lastChanged)[i], now[i]);
                    loop.lastChanged = now;
                    return Value::boolean(!same);
                });
            }
            return found ? std::optional<Value>(std::move(value)) : std::nullopt;
        }
        case Type::Macro:
            return macroAttribute(object.state<MacroObject>(), name);
        case Type::Cycler:
            return cyclerAttribute(object, name);
        case Type::Tuple:
            if (object.as<ListObject>().group && name == "grouper") return object.items()[0];
            if (object.as<ListObject>().group && name == "list") return object.items()[1];
            break;
        default:
            break;
    }
    return findMethod(object, name);
}

// Whether Python objects of this type have an attribute of this name that the sandbox hides.
bool isHidden(const Value& object, std::string_view name) {
    return (name.starts_with("__") && name.ends_with("__") && name.size() > 4) ||
           hasUnsafeMethod(object, name);
}

// object[key] without the fallback to attributes.
std::optional<Value> ownItem(const Value& object, const Value& key) {
    if (object.is(Type::Dict)) {
        if (key.is(Type::List) || key.is(Type::Dict)) return std::nullopt;
        const Value* found = object.as<DictObject>().find(key);
        return found ? std::optional<Value>(*found) : std::nullopt;
    }
    if (!key.isInteger()) return std::nullopt;
    Integer at = key.asInteger();
    if (object.is(Type::List) || object.is(Type::Tuple)) {
        const auto& items = object.items();
        if (at < 0) at += Integer(items.size());
        if (at < 0 || at >= Integer(items.size())) return std::nullopt;
        return items[size_t(at)];
    }
    if (object.is(Type::Range)) {
        const RangeObject& range = object.as<RangeObject>();
        if (at < 0) at += range.count();
        if (at < 0 || at >= range.count()) return std::nullopt;
        return Value::integer(range.start + at * range.step);
    }
    if (object.is(Type::String)) {
        const StringObject& string = object.as<StringObject>();
        const Integer count = Integer(codePointCount(string));
        if (at < 0) at += count;
        if (at < 0 || at >= count) return std::nullopt;
        const size_t begin = byteOffset(string, size_t(at));
        const size_t bytes = text::nextUtf8(string.text, begin).bytes;
        return Value::string(string.slice(begin, begin + bytes), string.safe);
    }
    return std::nullopt;
}

}  // namespace

Value LoopObject::attribute(const std::string& name, bool& found) {
    found = true;
    const auto number = [](int64_t value) { return Value::integer(value); };
    if (name == "index") return number(index + 1);
    if (name == "index0") return number(index);
    if (name == "first") return Value::boolean(index == 0);
    if (name == "depth") return number(depth0 + 1);
    if (name == "depth0") return number(depth0);
    if (name == "length") return number(int64_t(length()));
    if (name == "revindex") return number(int64_t(length()) - index);
    if (name == "revindex0") return number(int64_t(length()) - index - 1);
    if (name == "previtem")
        return index > 0 && previous ? *previous : Value::undefined("there is no previous item");
    if (name == "last" || name == "nextitem") {
        peek();
        if (name == "last") return Value::boolean(!after);
        return after ? *after : Value::undefined("there is no next item");
    }
    found = false;
    return Value();
}

Value Runtime::attribute(const Value& object, const std::string& name) {
    charge(1);
    if (object.is(Type::Undefined)) undefinedError(object);
    if (std::optional<Value> own = ownAttribute(object, name)) return std::move(*own);
    if (isHidden(object, name)) return hidden(object, name);
    const Value key = Value::string(name);
    if (std::optional<Value> value = ownItem(object, key)) return std::move(*value);
    return missing(object, key);
}

Value Runtime::item(const Value& object, const Value& key) {
    charge(1);
    if (object.is(Type::Undefined)) undefinedError(object);
    if (object.is(Type::String) && !object.as<StringObject>().ascii)
        chargeBytes(object.text().size());
    if (std::optional<Value> value = ownItem(object, key)) return std::move(*value);
    if (key.is(Type::String)) {
        if (std::optional<Value> own = ownAttribute(object, key.text())) return std::move(*own);
        if (isHidden(object, key.text())) return hidden(object, key.text());
    }
    return missing(object, key);
}

}  // namespace colibri::jinja
