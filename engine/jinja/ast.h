// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template. It is immutable after parsing, and all renderings share it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/jinja/value.h"

namespace colibri::jinja {

struct Position {
    int line = 0, column = 0;  // from 1; 0: unknown
};

enum class BinaryOperator : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
enum class CompareOperator : uint8_t {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
    std::vector<ExprPtr> positional;
    std::vector<std::pair<std::string, ExprPtr>> named;
    ExprPtr star, doubleStar;  // *list, **dict
};

enum class ExprKind : uint8_t {
    Constant,       // value
    Name,           // name
    NamespaceItem,  // name.attribute, as a target of set
    Tuple,
    List,         // operands
    Dict,         // operands: key, value, key, value ...
    Conditional,  // operands: test, then, else (null: undefined)
    Or,
    And,  // operands: two
    Not,
    Negative,
    Positive,   // operands: one
    Binary,     // binary, operands: two
    Concat,     // operands
    Compare,    // operands: n + 1; compares: n
    Attribute,  // operands[0].name
    Item,       // operands[0][operands[1]]
    Slice,      // operands: start, stop, step, each may be null; only within Item
    Call,       // operands[0](arguments)
    Filter,     // operands[0] (null in a filter block) | name(arguments)
    Test,       // operands[0] is name(arguments)
};

struct Expr {
    ExprKind kind;
    Position at;
    int depth = 1;
    std::string name, attribute;
    Value value;
    BinaryOperator binary = BinaryOperator::Add;
    std::vector<CompareOperator> compares;
    std::vector<ExprPtr> operands;
    CallArguments arguments;
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

// The common part of macro and call blocks.
struct MacroBody {
    std::vector<std::string> parameters;
    std::vector<ExprPtr> defaults;  // defaults of the last parameters
    Body body;
    bool usesCaller = false, usesVarargs = false, usesKwargs = false;
};

enum class StatementKind : uint8_t {
    Text,         // text
    Print,        // exprs
    If,           // exprs: tests; bodies: one for each test, and one for else if there is one
    For,          // target, exprs: items, filter or null; bodies: body, else; recursive
    Set,          // target, exprs: value
    SetBlock,     // target, exprs: filter or null; bodies: body
    With,         // targets, exprs; bodies: body
    Macro,        // text: its name; macro
    CallBlock,    // exprs: the call; macro
    FilterBlock,  // exprs: filter; bodies: body
    Block,        // text: its name; bodies: body; scoped
    Autoescape,   // exprs: on or off; bodies: body
    Generation,   // bodies: body
    Break,
    Continue,
    OtherTemplate,  // include, import, from, extends: an error when executed
};

struct Statement {
    StatementKind kind;
    Position at;
    std::string text;
    ExprPtr target;
    std::vector<ExprPtr> targets, exprs;
    std::vector<Body> bodies;
    MacroBody macro;
    bool recursive = false, scoped = false, hasElse = false;
};

struct Template {
    Body body;
};

}  // namespace colibri::jinja
