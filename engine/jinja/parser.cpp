// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/parser.h"

#include "engine/jinja/expression_parser.h"

namespace colibri::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
public:
    explicit Parser(TokenList list) : ExpressionParser(std::move(list)) {}

    Template run() {
        Template out;
        out.body = statements({});
        failOnUnknownNames();
        return out;
    }

private:
    // Parses statements up to a tag with one of these names, and stops at the name; {}: up to the
    // end.
    Body statements(Ends ends) {
        Body body;
        const auto guard = nest();
        while (current().type != TokenType::End || listFailed()) {
            const Token& token = current();
            if (token.type == TokenType::Data) {
                body.push_back(make(StatementKind::Text, token.at));
                body.back()->text = take().text;
            } else if (token.type == TokenType::VariableBegin) {
                take();
                auto print = make(StatementKind::Print, current().at);
                print->exprs.push_back(tuple());
                expect(TokenType::VariableEnd);
                body.push_back(std::move(print));
            } else {
                take();
                for (std::string_view end : ends) {
                    if (current().isName(end)) return body;
                }
                body.push_back(statement(ends));
                expect(TokenType::BlockEnd);
            }
        }
        if (ends.size() > 0) failAtEnd(ends);
        return body;
    }

    [[noreturn]] void failAtEnd(Ends ends) {
        fail("Unexpected end of template. Jinja was looking for the following tags: " +
             quoted(ends) + ". The innermost block that needs to be closed is '" + m_open.back() +
             "'.");
    }

    static std::string quoted(Ends names) {
        std::string out;
        for (std::string_view name : names)
            out += (out.empty() ? "'" : " or '") + std::string(name) + "'";
        return out;
    }

    // Parses a statement's body from the end of its own tag up to one of `ends`, without that name.
    Body body(Ends ends) {
        if (current().isOperator(":")) take();
        expect(TokenType::BlockEnd);
        return statements(ends);
    }

    Body bodyAndEnd(std::string_view end) {
        Body out = body({end});
        take();
        return out;
    }

    StatementPtr make(StatementKind kind, Position at) {
        auto statement = std::make_unique<Statement>();
        statement->kind = kind;
        statement->at = at;
        return statement;
    }

    StatementPtr statement(Ends ends) {
        const Token token = current();
        if (token.type != TokenType::Name) fail("tag name expected");
        struct Row {
            std::string_view name;
            StatementPtr (Parser::*parse)(Position);
        };
        static constexpr Row rows[] = {{"for", &Parser::forStatement},
                                       {"if", &Parser::ifStatement},
                                       {"set", &Parser::setStatement},
                                       {"macro", &Parser::macroStatement},
                                       {"call", &Parser::callStatement},
                                       {"filter", &Parser::filterStatement},
                                       {"with", &Parser::withStatement},
                                       {"block", &Parser::blockStatement},
                                       {"autoescape", &Parser::autoescapeStatement},
                                       {"generation", &Parser::generationStatement},
                                       {"break", &Parser::breakStatement},
                                       {"continue", &Parser::continueStatement},
                                       {"print", &Parser::printStatement},
                                       {"include", &Parser::otherTemplate},
                                       {"import", &Parser::otherTemplate},
                                       {"from", &Parser::otherTemplate},
                                       {"extends", &Parser::otherTemplate}};
        for (const Row& row : rows) {
            if (row.name != token.text) continue;
            m_open.emplace_back(token.text);
            take();
            StatementPtr out = (this->*row.parse)(token.at);
            m_open.pop_back();
            return out;
        }
        std::string message = "Encountered unknown tag '" + token.text + "'.";
        if (ends.size() > 0)
            message += " Jinja was looking for the following tags: " + quoted(ends) + ".";
        if (!m_open.empty())
            message += " The innermost block that needs to be closed is '" + m_open.back() + "'.";
        fail(message, token.at);
    }

    // Parses the body of a macro or call block, in which break and continue do not apply to outer
    // loops.
    template <typename Parse>
    void insideFunction(Parse parse) {
        const int loops = std::exchange(m_loops, 0);
        parse();
        m_loops = loops;
    }

    StatementPtr forStatement(Position at) {
        auto out = make(StatementKind::For, at);
        out->target = assignTarget({"in"}, false);
        if (!current().isName("in")) expectName("in");
        take();
        out->exprs.push_back(tuple(false, {"recursive"}));
        out->exprs.push_back(takeName("if") ? hard([&] { return expression(); }) : nullptr);
        out->recursive = takeName("recursive");
        ++m_loops;
        hard([&] { out->bodies.push_back(body({"endfor", "else"})); });
        --m_loops;
        out->hasElse = take().text == "else";
        if (out->hasElse) hard([&] { out->bodies.push_back(bodyAndEnd("endfor")); });
        return out;
    }

    StatementPtr ifStatement(Position at) {
        auto out = make(StatementKind::If, at);
        // As in the reference, names within the statement are checked only when they are executed.
        const bool outer = std::exchange(m_soft, true);
        for (;;) {
            out->exprs.push_back(tuple(false));
            out->bodies.push_back(body({"elif", "else", "endif"}));
            const std::string end = take().text;
            if (end == "elif") continue;
            out->hasElse = end == "else";
            if (out->hasElse) out->bodies.push_back(bodyAndEnd("endif"));
            break;
        }
        m_soft = outer;
        return out;
    }

    StatementPtr setStatement(Position at) {
        auto out = make(StatementKind::Set, at);
        out->target = assignTarget({}, true);
        if (takeOperator("=")) {
            out->exprs.push_back(tuple());
            return out;
        }
        out->kind = StatementKind::SetBlock;
        out->exprs.push_back(filterChain(nullptr, false));
        hard([&] { out->bodies.push_back(bodyAndEnd("endset")); });
        return out;
    }

    void signature(MacroBody& macro) {
        expectOperator("(");
        while (!current().isOperator(")")) {
            if (!macro.parameters.empty()) expectOperator(",");
            macro.parameters.push_back(expect(TokenType::Name).text);
            if (takeOperator("=")) {
                macro.defaults.push_back(hard([&] { return expression(); }));
            } else if (!macro.defaults.empty()) {
                fail("non-default argument follows default argument");
            }
        }
        expectOperator(")");
    }

    void macroBody(MacroBody& macro, std::string_view end) {
        MacroNames names;
        m_macros.push_back(&names);
        insideFunction([&] { hard([&] { macro.body = bodyAndEnd(end); }); });
        m_macros.pop_back();
        macro.usesCaller = names.caller;
        macro.usesVarargs = names.varargs;
        macro.usesKwargs = names.kwargs;
    }

    StatementPtr macroStatement(Position at) {
        auto out = make(StatementKind::Macro, at);
        out->text = expect(TokenType::Name).text;
        signature(out->macro);
        macroBody(out->macro, "endmacro");
        return out;
    }

    StatementPtr callStatement(Position at) {
        auto out = make(StatementKind::CallBlock, at);
        if (current().isOperator("(")) signature(out->macro);
        out->exprs.push_back(expression());
        if (out->exprs[0]->kind != ExprKind::Call) fail("expected call", at);
        macroBody(out->macro, "endcall");
        return out;
    }

    StatementPtr filterStatement(Position at) {
        auto out = make(StatementKind::FilterBlock, at);
        out->exprs.push_back(filterChain(nullptr, true));
        hard([&] { out->bodies.push_back(bodyAndEnd("endfilter")); });
        return out;
    }

    StatementPtr withStatement(Position at) {
        auto out = make(StatementKind::With, at);
        while (current().type != TokenType::BlockEnd) {
            if (!out->targets.empty()) expectOperator(",");
            out->targets.push_back(assignTarget({}, false));
            expectOperator("=");
            out->exprs.push_back(expression());
        }
        hard([&] { out->bodies.push_back(bodyAndEnd("endwith")); });
        return out;
    }

    StatementPtr blockStatement(Position at) {
        auto out = make(StatementKind::Block, at);
        out->text = expect(TokenType::Name).text;
        out->scoped = takeName("scoped");
        (void)takeName("required");
        insideFunction([&] { hard([&] { out->bodies.push_back(bodyAndEnd("endblock")); }); });
        (void)takeName(out->text);
        return out;
    }

    StatementPtr autoescapeStatement(Position at) {
        auto out = make(StatementKind::Autoescape, at);
        out->exprs.push_back(expression());
        hard([&] { out->bodies.push_back(bodyAndEnd("endautoescape")); });
        return out;
    }

    StatementPtr generationStatement(Position at) {
        auto out = make(StatementKind::Generation, at);
        insideFunction([&] { hard([&] { out->bodies.push_back(bodyAndEnd("endgeneration")); }); });
        return out;
    }

    StatementPtr leaveLoop(StatementKind kind, const char* name, Position at) {
        if (m_loops == 0) fail("'" + std::string(name) + "' outside loop", at);
        return make(kind, at);
    }
    StatementPtr breakStatement(Position at) {
        return leaveLoop(StatementKind::Break, "break", at);
    }
    StatementPtr continueStatement(Position at) {
        return leaveLoop(StatementKind::Continue, "continue", at);
    }

    StatementPtr printStatement(Position at) {
        auto out = make(StatementKind::Print, at);
        while (current().type != TokenType::BlockEnd) {
            if (!out->exprs.empty()) expectOperator(",");
            out->exprs.push_back(expression());
        }
        return out;
    }

    // There are no templates to include or import. Executing the statement is an error.
    StatementPtr otherTemplate(Position at) {
        auto out = make(StatementKind::OtherTemplate, at);
        out->exprs.push_back(expression());
        while (current().type != TokenType::BlockEnd && current().type != TokenType::End) take();
        return out;
    }

    std::vector<std::string> m_open;  // open block tags
    int m_loops = 0;
};

}  // namespace

Template parseTemplate(std::string_view source) {
    return Parser(tokenize(source)).run();
}

}  // namespace colibri::jinja
