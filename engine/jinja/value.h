// SPDX-License-Identifier: Apache-2.0
// Values of the template language, with Python's semantics. As in the reference's sandbox,
// containers are immutable; only namespaces, loops, generators and cyclers have state. A value
// belongs to one render call and one thread.
//
// Strings record which of their bytes are data (TracedText). These operations trace each byte: +
// and ~, output and captured blocks, repetition, join, slices, items and iteration, strip and trim,
// the split and partition methods, removeprefix and removesuffix, replace, indent, padding, first
// and last. Formatting, str, repr and tojson trace each value: if a value contains data, its whole
// text is data. All other operations (changes of case, wordwrap, ...) need no code for this: if one
// of their inputs holds data, the strings that they create are data as a whole. Numbers, booleans
// and none are never data, nor is the text that they print as.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/unicode/traced_text.h"

namespace colibri::jinja {

// Holds all 64-bit integers of JSON files. Overflow is an error.
using Integer = __int128;

// Ends the rendering. It never leaves this library: ChatTemplate converts it to a Status.
struct RenderError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Type : uint8_t {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    String,
    List,
    Tuple,
    Dict,
    Range,
    Generator,
    View,
    Namespace,
    Function,
    Macro,
    Loop,
    Cycler,
};

class Value;
class Runtime;
struct Arguments;
struct DictObject;
struct Namespace;
struct Generator;
struct MacroObject;
struct LoopObject;
struct Cycler;

struct StringObject : TracedText {  // valid UTF-8
    bool safe = false;              // markup that needs no HTML escaping
    bool ascii = false;
};

struct ListObject {
    std::vector<Value> items;
    int depth = 1;       // nesting depth of containers, including this one
    bool group = false;  // created by groupby: .grouper and .list are its two items
    bool data = false;   // an item holds data
};

struct RangeObject {
    Integer start = 0, stop = 0, step = 1;
    Integer count() const;
};

struct UndefinedObject {
    std::string message;  // of the error that using the value causes
};

struct FunctionObject {
    std::string name;
    std::function<Value(Runtime&, const Arguments&)> call;
};

enum class ViewKind : uint8_t { Keys, Values, Items };
struct ViewObject {
    std::shared_ptr<const DictObject> dict;
    ViewKind kind;
};

class Value {
public:
    Value() = default;  // undefined
    Value(const Value&) = default;
    Value(Value&&) noexcept = default;
    Value& operator=(const Value&) = default;
    Value& operator=(Value&&) noexcept = default;
    ~Value() {
        if (m_object && mayHoldValues()) release();
    }
    static Value none() { return Value(Type::None); }
    static Value undefined(std::string message);
    static Value string(TracedText text, bool safe = false);
    // A string of unknown origin: all data if the running operation has data among its inputs.
    static Value string(std::string text, bool safe = false);
    static Value list(std::vector<Value> items);
    static Value tuple(std::vector<Value> items, bool group = false);
    static Value dict(DictObject dict);
    static Value range(RangeObject range);
    static Value view(std::shared_ptr<const DictObject> dict, ViewKind kind);
    static Value generator(std::vector<Value> items);
    static Value function(std::string name, std::function<Value(Runtime&, const Arguments&)> call);
    static Value boolean(bool value) {
        Value v(Type::Bool);
        v.m_int = value;
        return v;
    }
    static Value integer(Integer value) {
        Value v(Type::Int);
        v.m_int = value;
        return v;
    }
    static Value real(double value) {
        Value v(Type::Float);
        v.m_float = value;
        return v;
    }
    template <typename Object>
    static Value object(Type type, std::shared_ptr<Object> object) {
        Value v(type);
        v.m_object = std::move(object);
        return v;
    }

    Type type() const { return m_type; }
    bool is(Type type) const { return m_type == type; }
    bool isInteger() const { return m_type == Type::Int || m_type == Type::Bool; }
    bool isNumber() const { return isInteger() || m_type == Type::Float; }

    // REQUIRES: the value has the type.
    Integer asInteger() const { return m_int; }  // Int, Bool
    double asDouble() const { return m_type == Type::Float ? m_float : double(m_int); }
    const std::string& text() const { return as<StringObject>().text; }
    const std::vector<Value>& items() const { return as<ListObject>().items; }  // List, Tuple
    std::shared_ptr<const DictObject> dictPointer() const {
        return std::static_pointer_cast<const DictObject>(m_object);
    }
    const UndefinedObject* undefinedInfo() const {
        return static_cast<const UndefinedObject*>(m_object.get());
    }
    // The object of the type: StringObject, ListObject (List, Tuple), DictObject, RangeObject,
    // ViewObject or FunctionObject.
    template <typename Object>
    const Object& as() const {
        return *static_cast<const Object*>(m_object.get());
    }
    // Generator, Namespace, MacroObject, LoopObject or Cycler. Objects with state are shared on
    // purpose: two names for one namespace see one namespace.
    template <typename Object>
    Object& state() const {
        return *const_cast<Object*>(static_cast<const Object*>(m_object.get()));
    }
    const void* identity() const { return m_object.get(); }

private:
    // Frees nested values without recursion, so that the depth does not matter.
    void release() noexcept;
    bool mayHoldValues() const {
        return m_type != Type::String && m_type != Type::Undefined && m_type != Type::Range;
    }

    explicit Value(Type type) : m_type(type) {}
    Type m_type = Type::Undefined;
    Integer m_int = 0;
    double m_float = 0;
    std::shared_ptr<const void> m_object;
};

// Keeps the insertion order. Keys compare as in Python: 1, 1.0 and true are one key.
struct DictObject {
    std::vector<std::pair<Value, Value>> entries;
    int depth = 1;
    bool data = false;  // a key or a value holds data

    void set(const Value& key, Value value);  // RenderError: the key is not hashable
    const Value* find(const Value& key) const;
    const Value* find(std::string_view key) const;

private:
    size_t entryOf(const Value& key, size_t hash) const;
    std::unordered_multimap<size_t, uint32_t> m_index;  // hash -> entry
};

struct Generator {
    std::vector<Value> items;
    size_t next = 0;
    bool data = false;  // an item holds data
};

struct Namespace {
    DictObject attributes;
};

struct Cycler {
    std::vector<Value> items;
    size_t position = 0;
};

constexpr int kDeepestValue = 300;

// Counts work of the rendering that runs on this thread; does nothing outside of a rendering.
// RenderError if the limit is exceeded. Functions that walk over a value or a text call this
// themselves, so operators, filters and methods cannot forget it.
void spend(size_t steps);
// Counts a piece that was appended to a text of now `whole` bytes. RenderError if it is too large.
void spendOnText(size_t piece, size_t whole);

// Whether a string, or a string within a container, holds data.
bool hasData(const Value& value);

bool truthy(const Value& value);
bool equal(const Value& a, const Value& b, int depth = 0);
// Returns < 0, 0 or > 0. RenderError "'<' not supported ...", with `op`, if the types have no
// order.
int compare(const Value& a, const Value& b, std::string_view op, int depth = 0);
size_t hashOf(const Value& value, int depth = 0);

std::string typeName(const Value& value);  // as in Python: "str", "NoneType", ...
std::string describe(const Value& value);  // "str object", for messages
std::string str(const Value& value);       // as {{ value }} prints it
std::string repr(const Value& value);
TracedText tracedStr(const Value& value);
TracedText tracedRepr(const Value& value);
std::string reprText(std::string_view text);
std::string formatInteger(Integer value);
std::string formatDouble(double value);  // shortest form that reads back, as in Python

size_t lengthOf(const Value& value);  // RenderError: the value has no length
bool isIterable(const Value& value);
// All items. Consumes a generator. RenderError: not iterable.
std::vector<Value> itemsOf(const Value& value);
bool contains(const Value& container, const Value& item);

[[noreturn]] void typeError(const std::string& message);
// Throws the error for the use of an undefined value.
[[noreturn]] void undefinedError(const Value& value);

}  // namespace colibri::jinja
