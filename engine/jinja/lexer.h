// SPDX-License-Identifier: Apache-2.0
// Splits source text into tokens and applies the white space rules of trim_blocks and
// lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/jinja/ast.h"

namespace colibri::jinja {

enum class TokenType : uint8_t {
    Data,
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End,
};

struct Token {
    TokenType type = TokenType::End;
    Position at;
    std::string text;  // data, name or operator; a string after resolving its escapes
    Value value;       // of a number

    bool isName(std::string_view name) const { return type == TokenType::Name && text == name; }
    bool isOperator(std::string_view name) const {
        return type == TokenType::Operator && text == name;
    }
};

struct SyntaxError : std::runtime_error {
    SyntaxError(Position position, const std::string& message)
        : std::runtime_error(message), at(position) {}
    Position at;
};

// The tokens up to the first error. If there is an error, the end token holds it in `error`. As in
// the reference, it is reported only when the parser reaches it.
struct TokenList {
    std::vector<Token> tokens;
    bool failed = false;
    Position errorAt;
    std::string error;
};

TokenList tokenize(std::string_view source);
std::string describe(const Token& token);  // for messages

}  // namespace colibri::jinja
