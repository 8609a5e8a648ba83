// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

int depthOf(const Value& value) {
    switch (value.type()) {
        case Type::List:
        case Type::Tuple:
            return value.as<ListObject>().depth;
        case Type::Dict:
            return value.as<DictObject>().depth;
        case Type::View:
            return value.as<ViewObject>().dict->depth;
        default:
            return 0;
    }
}

int deeper(int depth, const Value& inner) {
    depth = std::max(depth, depthOf(inner) + 1);
    if (depth > kDeepestValue) throw RenderError("lists or dicts are nested too deep");
    return depth;
}

void checkDepth(int depth) {
    if (depth > kDeepestValue) throw RenderError("maximum recursion depth exceeded");
}

std::shared_ptr<ListObject> listObject(std::vector<Value> items) {
    auto list = std::make_shared<ListObject>();
    for (const Value& item : items) {
        list->depth = deeper(list->depth, item);
        list->data |= hasData(item);
    }
    list->items = std::move(items);
    return list;
}

}  // namespace

Integer RangeObject::count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

void Value::release() noexcept {
    struct Waiting {
        std::vector<std::shared_ptr<const void>> objects;
        bool draining = false;
    };
    thread_local Waiting waiting;
    if (m_object.use_count() > 1) return;  // another owner frees it
    try {
        waiting.objects.push_back(std::move(m_object));
    } catch (const std::bad_alloc&) {
        return;  // freed directly
    }
    if (waiting.draining) return;
    waiting.draining = true;
    while (!waiting.objects.empty()) {
        // The values of the object arrive here again and are queued.
        const std::shared_ptr<const void> object = std::move(waiting.objects.back());
        waiting.objects.pop_back();
    }
    waiting.draining = false;
}

Value Value::undefined(std::string message) {
    return object(Type::Undefined,
                  std::make_shared<UndefinedObject>(UndefinedObject{std::move(message)}));
}

Value Value::string(TracedText text, bool safe) {
    auto object = std::make_shared<StringObject>();
    object->ascii = text::isAscii(text.text);
    static_cast<TracedText&>(*object) = std::move(text);
    object->safe = safe;
    return Value::object(Type::String, std::move(object));
}

Value Value::string(std::string text, bool safe) {
    return string(TracedText(std::move(text), dataInHand()), safe);
}

Value Value::list(std::vector<Value> items) {
    return object(Type::List, listObject(std::move(items)));
}

Value Value::tuple(std::vector<Value> items, bool group) {
    auto list = listObject(std::move(items));
    list->group = group;
    return object(Type::Tuple, std::move(list));
}

Value Value::dict(DictObject dict) {
    return object(Type::Dict, std::make_shared<DictObject>(std::move(dict)));
}

Value Value::range(RangeObject range) {
    return object(Type::Range, std::make_shared<RangeObject>(range));
}

Value Value::view(std::shared_ptr<const DictObject> dict, ViewKind kind) {
    return object(Type::View, std::make_shared<ViewObject>(ViewObject{std::move(dict), kind}));
}

Value Value::generator(std::vector<Value> items) {
    auto generator = std::make_shared<Generator>();
    for (const Value& item : items) {
        (void)deeper(0, item);
        generator->data |= hasData(item);
    }
    generator->items = std::move(items);
    return object(Type::Generator, std::move(generator));
}

Value Value::function(std::string name, std::function<Value(Runtime&, const Arguments&)> call) {
    return object(Type::Function, std::make_shared<FunctionObject>(
                                      FunctionObject{std::move(name), std::move(call)}));
}

size_t DictObject::entryOf(const Value& key, size_t hash) const {
    const auto [from, to] = m_index.equal_range(hash);
    for (auto it = from; it != to; ++it) {
        if (equal(entries[it->second].first, key)) return it->second;
    }
    return entries.size();
}

void DictObject::set(const Value& key, Value value) {
    const size_t hash = hashOf(key);
    depth = deeper(depth, value);
    data |= hasData(key) || hasData(value);
    const size_t at = entryOf(key, hash);
    if (at < entries.size()) {
        entries[at].second = std::move(value);
        return;
    }
    m_index.emplace(hash, uint32_t(entries.size()));
    entries.emplace_back(key, std::move(value));
}

const Value* DictObject::find(const Value& key) const {
    const size_t at = entryOf(key, hashOf(key));
    return at < entries.size() ? &entries[at].second : nullptr;
}

const Value* DictObject::find(std::string_view key) const {
    spend(key.size() / 16);
    const auto [from, to] = m_index.equal_range(std::hash<std::string_view>()(key));
    for (auto it = from; it != to; ++it) {
        spend(1);
        const Value& candidate = entries[it->second].first;
        if (candidate.is(Type::String) && candidate.text() == key)
            return &entries[it->second].second;
    }
    return nullptr;
}

bool hasData(const Value& value) {
    switch (value.type()) {
        case Type::String:
            return value.as<StringObject>().hasData();
        case Type::List:
        case Type::Tuple:
            return value.as<ListObject>().data;
        case Type::Dict:
            return value.as<DictObject>().data;
        case Type::View:
            return value.as<ViewObject>().dict->data;
        case Type::Generator:
            return value.state<Generator>().data;
        case Type::Namespace:
            return value.state<Namespace>().attributes.data;
        default:
            return false;  // does not hold other values; its text is its own
    }
}

bool truthy(const Value& value) {
    switch (value.type()) {
        case Type::Undefined:
        case Type::None:
            return false;
        case Type::Bool:
        case Type::Int:
            return value.asInteger() != 0;
        case Type::Float:
            return value.asDouble() != 0;
        case Type::String:
            return !value.text().empty();
        case Type::List:
        case Type::Tuple:
            return !value.items().empty();
        case Type::Dict:
            return !value.as<DictObject>().entries.empty();
        case Type::View:
            return !value.as<ViewObject>().dict->entries.empty();
        case Type::Range:
            return value.as<RangeObject>().count() != 0;
        case Type::Loop:
            return lengthOf(value) != 0;
        default:
            return true;
    }
}

bool equal(const Value& a, const Value& b, int depth) {
    checkDepth(depth);
    spend(1);
    if (a.isNumber() && b.isNumber()) {
        if (a.isInteger() && b.isInteger()) return a.asInteger() == b.asInteger();
        return a.asDouble() == b.asDouble();
    }
    if (a.type() != b.type()) return false;
    switch (a.type()) {
        case Type::Undefined:
        case Type::None:
            return true;
        case Type::String:
            if (a.text().size() != b.text().size()) return false;
            spend(a.text().size() / 16);
            return a.text() == b.text();
        case Type::List:
        case Type::Tuple: {
            const auto& x = a.items();
            const auto& y = b.items();
            if (x.size() != y.size()) return false;
            for (size_t i = 0; i < x.size(); ++i) {
                if (!equal(x[i], y[i], depth + 1)) return false;
            }
            return true;
        }
        case Type::Dict: {
            const DictObject& x = a.as<DictObject>();
            const DictObject& y = b.as<DictObject>();
            if (x.entries.size() != y.entries.size()) return false;
            for (const auto& [key, value] : x.entries) {
                const Value* other = y.find(key);
                if (!other || !equal(value, *other, depth + 1)) return false;
            }
            return true;
        }
        case Type::Range: {
            const RangeObject& x = a.as<RangeObject>();
            const RangeObject& y = b.as<RangeObject>();
            if (x.count() != y.count()) return false;
            return x.count() == 0 || (x.start == y.start && (x.count() == 1 || x.step == y.step));
        }
        default:
            return a.identity() == b.identity();
    }
}

int compare(const Value& a, const Value& b, std::string_view op, int depth) {
    checkDepth(depth);
    spend(1);
    if (a.isInteger() && b.isInteger()) {
        return a.asInteger() < b.asInteger() ? -1 : a.asInteger() > b.asInteger();
    }
    if (a.isNumber() && b.isNumber()) {
        return a.asDouble() < b.asDouble() ? -1 : a.asDouble() > b.asDouble();
    }
    // The byte order of UTF-8 is the order of code points.
    if (a.is(Type::String) && b.is(Type::String)) {
        spend(std::min(a.text().size(), b.text().size()) / 16);
        return a.text().compare(b.text());
    }
    if (a.type() == b.type() && (a.is(Type::List) || a.is(Type::Tuple))) {
        const auto& x = a.items();
        const auto& y = b.items();
        for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
            if (!equal(x[i], y[i], depth + 1)) return compare(x[i], y[i], op, depth + 1);
        }
        return x.size() < y.size() ? -1 : x.size() > y.size();
    }
    if (a.is(Type::Undefined)) undefinedError(a);
    if (b.is(Type::Undefined)) undefinedError(b);
    typeError("'" + std::string(op) + "' not supported between instances of '" + typeName(a) +
              "' and '" + typeName(b) + "'");
}

size_t hashOf(const Value& value, int depth) {
    checkDepth(depth);
    spend(1);
    switch (value.type()) {
        case Type::Undefined:
            return 1;
        case Type::None:
            return 2;
        case Type::Bool:
        case Type::Int:
        case Type::Float:
            return std::hash<double>()(value.asDouble());
        case Type::String:
            spend(value.text().size() / 16);
            return std::hash<std::string_view>()(value.text());
        case Type::Tuple: {
            size_t hash = 3;
            for (const Value& item : value.items()) hash = hash * 1000003 + hashOf(item, depth + 1);
            return hash;
        }
        case Type::List:
        case Type::Dict:
        case Type::View:
            typeError("unhashable type: '" + typeName(value) + "'");
        default:
            return std::hash<const void*>()(value.identity());
    }
}

size_t lengthOf(const Value& value) {
    switch (value.type()) {
        case Type::Undefined:
            return 0;
        case Type::String:
            return codePointCount(value.as<StringObject>());
        case Type::List:
        case Type::Tuple:
            return value.items().size();
        case Type::Dict:
            return value.as<DictObject>().entries.size();
        case Type::View:
            return value.as<ViewObject>().dict->entries.size();
        case Type::Range:
            return size_t(value.as<RangeObject>().count());
        case Type::Loop:
            return value.state<LoopObject>().length();
        default:
            typeError("object of type '" + typeName(value) + "' has no len()");
    }
}

bool isIterable(const Value& value) {
    switch (value.type()) {
        case Type::Undefined:
        case Type::String:
        case Type::List:
        case Type::Tuple:
        case Type::Dict:
        case Type::View:
        case Type::Range:
        case Type::Generator:
        case Type::Loop:
            return true;
        default:
            return false;
    }
}

std::vector<Value> itemsOf(const Value& value) {
    std::vector<Value> out;
    switch (value.type()) {
        case Type::Undefined:
            return out;
        case Type::String:
            spend(value.text().size());
            return charactersOf(value.as<StringObject>());
        case Type::List:
        case Type::Tuple:
            spend(value.items().size());
            return value.items();
        case Type::Dict:
            spend(value.as<DictObject>().entries.size() / 4);
            for (const auto& [key, item] : value.as<DictObject>().entries) out.push_back(key);
            return out;
        case Type::View:
            spend(value.as<ViewObject>().dict->entries.size() * 2);
            for (const auto& [key, item] : value.as<ViewObject>().dict->entries) {
                const ViewKind kind = value.as<ViewObject>().kind;
                out.push_back(kind == ViewKind::Keys     ? key
                              : kind == ViewKind::Values ? item
                                                         : Value::tuple({key, item}));
            }
            return out;
        case Type::Range: {
            const RangeObject& range = value.as<RangeObject>();
            spend(size_t(range.count()) / 4);
            for (Integer i = 0; i < range.count(); ++i)
                out.push_back(Value::integer(range.start + i * range.step));
            return out;
        }
        case Type::Generator: {
            Generator& generator = value.state<Generator>();
            spend((generator.items.size() - generator.next) / 4);
            out.assign(generator.items.begin() + generator.next, generator.items.end());
            generator.next = generator.items.size();
            return out;
        }
        default:
            typeError("'" + typeName(value) + "' object is not iterable");
    }
}

bool contains(const Value& container, const Value& item) {
    if (container.is(Type::String)) {
        if (!item.is(Type::String)) {
            if (item.is(Type::Undefined)) undefinedError(item);
            typeError("'in <string>' requires string as left operand, not " + typeName(item));
        }
        return findText(container.text(), item.text()) != std::string::npos;
    }
    if (container.is(Type::Dict)) return container.as<DictObject>().find(item) != nullptr;
    if (container.is(Type::Range) && item.isInteger()) {
        const RangeObject& range = container.as<RangeObject>();
        const Integer from = item.asInteger() - range.start;
        return from % range.step == 0 && from / range.step >= 0 &&
               from / range.step < range.count();
    }
    if (container.is(Type::List) || container.is(Type::Tuple)) {
        const auto& items = container.items();
        return std::any_of(items.begin(), items.end(),
                           [&](const Value& other) { return equal(other, item); });
    }
    if (!isIterable(container))
        typeError("argument of type '" + typeName(container) + "' is not iterable");
    const std::vector<Value> items = itemsOf(container);
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& other) { return equal(other, item); });
}

std::string typeName(const Value& value) {
    constexpr const char* names[] = {"Undefined", "NoneType",
                                     "bool",      "int",
                                     "float",     "str",
                                     "list",      "tuple",
                                     "dict",      "range",
                                     "generator", "dict_keys",
                                     "Namespace", "builtin_function_or_method",
                                     "Macro",     "LoopContext",
                                     "Cycler"};
    if (value.is(Type::View) && value.as<ViewObject>().kind == ViewKind::Values)
        return "dict_values";
    if (value.is(Type::View) && value.as<ViewObject>().kind == ViewKind::Items) return "dict_items";
    return names[size_t(value.type())];
}

std::string describe(const Value& value) {
    return value.is(Type::None) ? "None" : typeName(value) + " object";
}

std::string str(const Value& value) {
    return tracedStr(value).text;
}

TracedText tracedStr(const Value& value) {
    if (value.is(Type::String)) {
        spend(value.text().size() / 16);
        return value.as<StringObject>();
    }
    return value.is(Type::Undefined) ? TracedText() : tracedRepr(value);
}

namespace {

// Writes into one text, without recursion limits on the depth of the value.
class ReprWriter {
public:
    void write(const Value& value, int depth) {
        checkDepth(depth);
        spend(1);
        switch (value.type()) {
            case Type::List:
                put("[");
                items(value.items(), depth);
                return put("]");
            case Type::Tuple:
                put("(");
                items(value.items(), depth);
                return put(value.items().size() == 1 ? ",)" : ")");
            case Type::Dict:
                return dict(value.as<DictObject>(), depth);
            case Type::View:
                put(typeName(value) + "([");
                items(itemsOf(value), depth);
                return put("])");
            case Type::Namespace:
                put("<Namespace ");
                dict(value.state<Namespace>().attributes, depth + 1);
                return put(">");
            default:
                return put(single(value), hasData(value));
        }
    }

    TracedText take() { return std::move(m_out); }

private:
    void put(std::string_view piece, bool isData = false) {
        m_out.append(piece, isData);
        spendOnText(piece.size(), m_out.text.size());
    }

    void items(const std::vector<Value>& list, int depth) {
        for (size_t i = 0; i < list.size(); ++i) {
            if (i > 0) put(", ");
            write(list[i], depth + 1);
        }
    }

    void dict(const DictObject& dict, int depth) {
        put("{");
        bool first = true;
        for (const auto& [key, item] : dict.entries) {
            if (!std::exchange(first, false)) put(", ");
            write(key, depth + 1);
            put(": ");
            write(item, depth + 1);
        }
        put("}");
    }

    // The text of a value that holds no other values.
    static std::string single(const Value& value) {
        switch (value.type()) {
            case Type::Undefined:
                return "Undefined";
            case Type::None:
                return "None";
            case Type::Bool:
                return value.asInteger() ? "True" : "False";
            case Type::Int:
                return formatInteger(value.asInteger());
            case Type::Float:
                return formatDouble(value.asDouble());
            case Type::String:
                return value.as<StringObject>().safe ? "Markup(" + reprText(value.text()) + ")"
                                                     : reprText(value.text());
            case Type::Range: {
                const RangeObject& range = value.as<RangeObject>();
                return "range(" + formatInteger(range.start) + ", " + formatInteger(range.stop) +
                       (range.step == 1 ? "" : ", " + formatInteger(range.step)) + ")";
            }
            case Type::Macro:
                return "<Macro " + reprText(value.state<MacroObject>().name) + ">";
            case Type::Loop: {
                LoopObject& loop = value.state<LoopObject>();
                return "<LoopContext " + std::to_string(loop.index + 1) + "/" +
                       std::to_string(loop.length()) + ">";
            }
            case Type::Function:
                return "<built-in function " + value.as<FunctionObject>().name + ">";
            default:
                return "<" + typeName(value) + " object>";
        }
    }

    TracedText m_out;
};

}  // namespace

std::string repr(const Value& value) {
    return tracedRepr(value).text;
}

TracedText tracedRepr(const Value& value) {
    ReprWriter writer;
    writer.write(value, 0);
    return writer.take();
}

std::string formatInteger(Integer value) {
    if (value == 0) return "0";
    const bool negative = value < 0;
    unsigned __int128 rest =
        negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
    std::string digits;
    for (; rest > 0; rest /= 10) digits += char('0' + int(rest % 10));
    if (negative) digits += '-';
    std::reverse(digits.begin(), digits.end());
    return digits;
}

void typeError(const std::string& message) {
    throw RenderError(message);
}

void undefinedError(const Value& value) {
    const UndefinedObject* info = value.undefinedInfo();
    throw RenderError(info ? info->message : "a value is undefined");
}

}  // namespace colibri::jinja
