// SPDX-License-Identifier: Apache-2.0
// The tests: value is NAME(...).
#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

Integer remainder(Runtime& runtime, const Value& value, const Value& by) {
    const Value rest = binaryOperator(runtime, BinaryOperator::Modulo, value, by);
    if (rest.is(Type::Float)) return rest.asDouble() == 0 ? 0 : rest.asDouble() == 1 ? 1 : 2;
    return rest.isInteger() ? rest.asInteger() : 2;
}

bool cased(const Value& value, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
    bool any = false;
    const std::u32string codes = toCodePoints(str(value));
    spend(codes.size());
    for (char32_t code : codes) {
        if (other(code) || isTitle(code)) return false;
        any |= wanted(code);
    }
    return any;
}

using Args = const Arguments&;

constexpr TestRow kTests[] = {
    {"defined", [](Runtime&, const Value& v, Args) { return !v.is(Type::Undefined); }},
    {"undefined", [](Runtime&, const Value& v, Args) { return v.is(Type::Undefined); }},
    {"none", [](Runtime&, const Value& v, Args) { return v.is(Type::None); }},
    {"boolean", [](Runtime&, const Value& v, Args) { return v.is(Type::Bool); }},
    {"true", [](Runtime&, const Value& v, Args) { return v.is(Type::Bool) && v.asInteger() != 0; }},
    {"false",
     [](Runtime&, const Value& v, Args) { return v.is(Type::Bool) && v.asInteger() == 0; }},
    {"integer", [](Runtime&, const Value& v, Args) { return v.is(Type::Int); }},
    {"float", [](Runtime&, const Value& v, Args) { return v.is(Type::Float); }},
    {"number", [](Runtime&, const Value& v, Args) { return v.isNumber(); }},
    {"string", [](Runtime&, const Value& v, Args) { return v.is(Type::String); }},
    {"mapping", [](Runtime&, const Value& v, Args) { return v.is(Type::Dict); }},
    {"iterable", [](Runtime&, const Value& v, Args) { return isIterable(v); }},
    {"sequence",
     [](Runtime&, const Value& v, Args) {
         return v.is(Type::Undefined) || v.is(Type::String) || v.is(Type::List) ||
                v.is(Type::Tuple) || v.is(Type::Dict) || v.is(Type::Range);
     }},
    {"callable",
     [](Runtime&, const Value& v, Args) {
         return v.is(Type::Function) || v.is(Type::Macro) || v.is(Type::Loop) ||
                v.is(Type::Undefined);
     }},
    {"escaped", [](Runtime&, const Value& v,
                   Args) { return v.is(Type::String) && v.as<StringObject>().safe; }},
    {"lower", [](Runtime&, const Value& v, Args) { return cased(v, isLower, isUpper); }},
    {"upper", [](Runtime&, const Value& v, Args) { return cased(v, isUpper, isLower); }},
    {"filter", [](Runtime&, const Value& v,
                  Args) { return v.is(Type::String) && findFilter(v.text()) != nullptr; }},
    {"test", [](Runtime&, const Value& v,
                Args) { return v.is(Type::String) && findTest(v.text()) != nullptr; }},
    {"odd",
     [](Runtime& r, const Value& v, Args) { return remainder(r, v, Value::integer(2)) == 1; }},
    {"even",
     [](Runtime& r, const Value& v, Args) { return remainder(r, v, Value::integer(2)) == 0; }},
    {"divisibleby",
     [](Runtime& r, const Value& v, Args a) { return remainder(r, v, a.positional[0]) == 0; }, 1},
    {"sameas",
     [](Runtime&, const Value& v, Args a) {
         const Value& other = a.positional[0];
         if (v.type() != other.type()) return false;
         const bool plain =
             v.is(Type::None) || v.is(Type::Bool) || v.is(Type::Int) || v.is(Type::String);
         return plain ? equal(v, other) : v.identity() == other.identity();
     },
     1},
    {"eq", [](Runtime&, const Value& v, Args a) { return equal(v, a.positional[0]); }, 1},
    {"ne", [](Runtime&, const Value& v, Args a) { return !equal(v, a.positional[0]); }, 1},
    {"lt", [](Runtime&, const Value& v, Args a) { return compare(v, a.positional[0], "<") < 0; },
     1},
    {"le", [](Runtime&, const Value& v, Args a) { return compare(v, a.positional[0], "<=") <= 0; },
     1},
    {"gt", [](Runtime&, const Value& v, Args a) { return compare(v, a.positional[0], ">") > 0; },
     1},
    {"ge", [](Runtime&, const Value& v, Args a) { return compare(v, a.positional[0], ">=") >= 0; },
     1},
    {"in", [](Runtime&, const Value& v, Args a) { return contains(a.positional[0], v); }, 1},
};

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"==", "eq"}, {"equalto", "eq"}, {"!=", "ne"},          {"<", "lt"}, {"lessthan", "lt"},
    {"<=", "le"}, {">", "gt"},       {"greaterthan", "gt"}, {">=", "ge"}};

}  // namespace

const TestRow* findTest(std::string_view name) {
    for (const auto& [alias, of] : kAliases) {
        if (alias == name) name = of;
    }
    for (const TestRow& row : kTests) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

}  // namespace colibri::jinja
