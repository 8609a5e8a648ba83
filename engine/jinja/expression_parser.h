// SPDX-License-Identifier: Apache-2.0
// The parser of expressions, the base of the template parser. Throws SyntaxError.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/jinja/lexer.h"

namespace colibri::jinja {

class ExpressionParser {
protected:
    explicit ExpressionParser(TokenList list) : m_list(std::move(list)) {}

    const Token& current();
    const Token& following();
    Token take();
    bool listFailed() const { return m_list.failed; }
    bool takeName(std::string_view name);
    bool takeOperator(std::string_view op);
    Token expect(TokenType type);
    void expectName(std::string_view name);
    void expectOperator(std::string_view op);
    [[noreturn]] void fail(const std::string& message);
    [[noreturn]] void fail(const std::string& message, Position at);

    // Counts one level of nesting during its lifetime. Throws SyntaxError if the limit is reached.
    struct Nesting {
        int& level;
        explicit Nesting(int& counter) : level(counter) { ++level; }
        Nesting(const Nesting&) = delete;
        ~Nesting() { --level; }
    };
    Nesting nest();

    // Parses a full expression, possibly a tuple without parentheses. It ends at the end of a tag,
    // ")" or one of `ends`.
    ExprPtr tuple(bool conditional = true, std::initializer_list<std::string_view> ends = {},
                  bool parenthesized = false);
    ExprPtr expression();
    // Parses an assignment target: names, and name.attribute for a namespace.
    ExprPtr assignTarget(std::initializer_list<std::string_view> ends, bool withNamespace);
    // Parses |name(...)|name(...). `inlineStart`: the first filter has no "|" before it. Returns
    // null if there is no filter.
    ExprPtr filterChain(ExprPtr input, bool inlineStart);

    // Reports unknown filters and tests as syntax errors. Those within an if are errors only when
    // they are executed.
    void failOnUnknownNames();
    template <typename Parse>
    auto hard(Parse parse) {
        struct Restore {
            bool& soft;
            bool before;
            ~Restore() { soft = before; }
        } restore{m_soft, m_soft};
        m_soft = false;
        return parse();
    }

    // Special names that the macros being parsed refer to.
    struct MacroNames {
        bool caller = false, varargs = false, kwargs = false;
    };
    std::vector<MacroNames*> m_macros;
    bool m_soft = false;

private:
    struct UnknownName {
        Position at;
        std::string message;
    };

    ExprPtr make(ExprKind kind, Position at);
    ExprPtr make(ExprKind kind, Position at, std::vector<ExprPtr> operands);
    void adopt(Expr& parent, ExprPtr child);
    ExprPtr conditional();
    ExprPtr orExpression();
    ExprPtr andExpression();
    ExprPtr notExpression();
    ExprPtr comparison();
    ExprPtr sum();
    ExprPtr concatenation();
    ExprPtr product();
    ExprPtr power();
    ExprPtr unary(bool withFilter);
    ExprPtr primary(bool withNamespace = false);
    ExprPtr name(bool withNamespace);
    ExprPtr listDisplay();
    ExprPtr dictDisplay();
    ExprPtr postfix(ExprPtr expr);
    ExprPtr filtersAndTests(ExprPtr expr);
    ExprPtr subscript(ExprPtr expr);
    ExprPtr subscribed();
    ExprPtr call(ExprPtr callee);
    ExprPtr test(ExprPtr input);
    ExprPtr binaryChain(ExprPtr (ExpressionParser::*next)(),
                        std::initializer_list<std::string_view> operators);
    void callArguments(Expr& expr);
    std::string dottedName();
    void noteUnknown(const char* kind, const std::string& name, Position at, bool known);
    bool endsTuple(std::initializer_list<std::string_view> ends);

    TokenList m_list;
    size_t m_at = 0;
    int m_level = 0;
    std::vector<UnknownName> m_unknown;
};

}  // namespace colibri::jinja
