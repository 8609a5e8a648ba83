// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/expression_parser.h"

#include <algorithm>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

constexpr int kDeepestSyntax = 200;  // brackets within brackets, blocks within blocks
constexpr int kDeepestTree = 1000;   // also limits chains such as a + b + c ...

constexpr std::pair<std::string_view, BinaryOperator> kBinary[] = {
    {"+", BinaryOperator::Add},          {"-", BinaryOperator::Subtract},
    {"*", BinaryOperator::Multiply},     {"/", BinaryOperator::Divide},
    {"//", BinaryOperator::FloorDivide}, {"%", BinaryOperator::Modulo},
    {"**", BinaryOperator::Power}};

constexpr std::pair<std::string_view, CompareOperator> kCompare[] = {
    {"==", CompareOperator::Equal},  {"!=", CompareOperator::NotEqual},
    {"<", CompareOperator::Less},    {"<=", CompareOperator::LessEqual},
    {">", CompareOperator::Greater}, {">=", CompareOperator::GreaterEqual}};

}  // namespace

const Token& ExpressionParser::current() {
    const Token& token = m_list.tokens[m_at];
    if (token.type == TokenType::End && m_list.failed)
        throw SyntaxError(m_list.errorAt, m_list.error);
    return token;
}

const Token& ExpressionParser::following() {
    return m_list.tokens[std::min(m_at + 1, m_list.tokens.size() - 1)];
}

Token ExpressionParser::take() {
    Token token = current();
    if (m_at + 1 < m_list.tokens.size()) ++m_at;
    return token;
}

bool ExpressionParser::takeName(std::string_view name) {
    if (!current().isName(name)) return false;
    take();
    return true;
}

bool ExpressionParser::takeOperator(std::string_view op) {
    if (!current().isOperator(op)) return false;
    take();
    return true;
}

Token ExpressionParser::expect(TokenType type) {
    if (current().type == type) return take();
    Token wanted;
    wanted.type = type;
    if (type == TokenType::Name) wanted.text = "name";
    if (current().type == TokenType::End) {
        fail("unexpected end of template, expected '" + describe(wanted) + "'.");
    }
    fail("expected token '" + describe(wanted) + "', got '" + describe(current()) + "'");
}

void ExpressionParser::expectName(std::string_view name) {
    if (!takeName(name))
        fail("expected token '" + std::string(name) + "', got '" + describe(current()) + "'");
}

void ExpressionParser::expectOperator(std::string_view op) {
    if (!takeOperator(op))
        fail("expected token '" + std::string(op) + "', got '" + describe(current()) + "'");
}

void ExpressionParser::fail(const std::string& message) {
    fail(message, current().at);
}
void ExpressionParser::fail(const std::string& message, Position at) {
    throw SyntaxError(at, message);
}

ExpressionParser::Nesting ExpressionParser::nest() {
    if (m_level >= kDeepestSyntax) fail("nested too deep");
    return Nesting(m_level);
}

ExprPtr ExpressionParser::make(ExprKind kind, Position at) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->at = at;
    return expr;
}

// Recursive functions walk and free the tree, so its depth is limited here.
void ExpressionParser::adopt(Expr& parent, ExprPtr child) {
    if (child) parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kDeepestTree)
        fail("the expression is too long or nested too deep", parent.at);
    parent.operands.push_back(std::move(child));
}

ExprPtr ExpressionParser::make(ExprKind kind, Position at, std::vector<ExprPtr> operands) {
    ExprPtr expr = make(kind, at);
    for (ExprPtr& operand : operands) adopt(*expr, std::move(operand));
    return expr;
}

namespace {

template <typename... Exprs>
std::vector<ExprPtr> operandsOf(Exprs... exprs) {
    std::vector<ExprPtr> out;
    (out.push_back(std::move(exprs)), ...);
    return out;
}

}  // namespace

bool ExpressionParser::endsTuple(std::initializer_list<std::string_view> ends) {
    const Token& token = current();
    if (token.type == TokenType::VariableEnd || token.type == TokenType::BlockEnd ||
        token.isOperator(")"))
        return true;
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return token.isName(end); });
}

ExprPtr ExpressionParser::tuple(bool conditionals, std::initializer_list<std::string_view> ends,
                                bool parenthesized) {
    const Position at = current().at;
    std::vector<ExprPtr> items;
    bool isTuple = false;
    for (;;) {
        if (!items.empty()) expectOperator(",");
        if (endsTuple(ends)) break;
        items.push_back(conditionals ? expression() : orExpression());
        if (!current().isOperator(",")) break;
        isTuple = true;
    }
    if (!isTuple) {
        if (!items.empty()) return std::move(items[0]);
        if (!parenthesized) fail("Expected an expression, got '" + describe(current()) + "'");
    }
    return make(ExprKind::Tuple, at, std::move(items));
}

ExprPtr ExpressionParser::expression() {
    const auto guard = nest();
    return conditional();
}

ExprPtr ExpressionParser::conditional() {
    const Position at = current().at;
    const size_t unknown = m_unknown.size();
    ExprPtr expr = orExpression();
    while (current().isName("if")) {
        // As in the reference, names in all three parts are checked only when they are evaluated.
        m_unknown.resize(std::min(unknown, m_unknown.size()));
        take();
        const bool outer = std::exchange(m_soft, true);
        ExprPtr test = orExpression();
        ExprPtr otherwise = takeName("else") ? expression() : nullptr;
        m_soft = outer;
        expr = make(ExprKind::Conditional, at,
                    operandsOf(std::move(test), std::move(expr), std::move(otherwise)));
    }
    return expr;
}

ExprPtr ExpressionParser::orExpression() {
    ExprPtr left = andExpression();
    while (current().isName("or")) {
        const Position at = take().at;
        left = make(ExprKind::Or, at, operandsOf(std::move(left), andExpression()));
    }
    return left;
}

ExprPtr ExpressionParser::andExpression() {
    ExprPtr left = notExpression();
    while (current().isName("and")) {
        const Position at = take().at;
        left = make(ExprKind::And, at, operandsOf(std::move(left), notExpression()));
    }
    return left;
}

ExprPtr ExpressionParser::notExpression() {
    if (!current().isName("not")) return comparison();
    const auto guard = nest();
    const Position at = take().at;
    return make(ExprKind::Not, at, operandsOf(notExpression()));
}

ExprPtr ExpressionParser::comparison() {
    const Position at = current().at;
    ExprPtr first = sum();
    ExprPtr compare;
    for (;;) {
        std::optional<CompareOperator> op;
        for (const auto& [text, value] : kCompare) {
            if (current().isOperator(text)) op = value;
        }
        if (current().isName("in")) op = CompareOperator::In;
        if (current().isName("not") && following().isName("in")) {
            take();
            op = CompareOperator::NotIn;
        }
        if (!op) break;
        take();
        if (!compare) compare = make(ExprKind::Compare, at, operandsOf(std::move(first)));
        compare->compares.push_back(*op);
        adopt(*compare, sum());
    }
    return compare ? std::move(compare) : std::move(first);
}

ExprPtr ExpressionParser::binaryChain(ExprPtr (ExpressionParser::*next)(),
                                      std::initializer_list<std::string_view> operators) {
    ExprPtr left = (this->*next)();
    for (;;) {
        const auto found =
            std::find_if(operators.begin(), operators.end(),
                         [&](std::string_view op) { return current().isOperator(op); });
        if (found == operators.end()) return left;
        const Position at = take().at;
        ExprPtr binary = make(ExprKind::Binary, at, operandsOf(std::move(left), (this->*next)()));
        for (const auto& [text, value] : kBinary) {
            if (text == *found) binary->binary = value;
        }
        left = std::move(binary);
    }
}

ExprPtr ExpressionParser::sum() {
    return binaryChain(&ExpressionParser::concatenation, {"+", "-"});
}
ExprPtr ExpressionParser::product() {
    return binaryChain(&ExpressionParser::power, {"*", "/", "//", "%"});
}

ExprPtr ExpressionParser::concatenation() {
    const Position at = current().at;
    ExprPtr first = product();
    if (!current().isOperator("~")) return first;
    ExprPtr all = make(ExprKind::Concat, at, operandsOf(std::move(first)));
    while (takeOperator("~")) adopt(*all, product());
    return all;
}

ExprPtr ExpressionParser::power() {
    ExprPtr left = unary(true);
    while (current().isOperator("**")) {
        const Position at = take().at;
        left = make(ExprKind::Binary, at, operandsOf(std::move(left), unary(true)));
        left->binary = BinaryOperator::Power;
    }
    return left;
}

ExprPtr ExpressionParser::unary(bool withFilter) {
    const Position at = current().at;
    ExprPtr expr;
    if (current().isOperator("-") || current().isOperator("+")) {
        const auto guard = nest();
        const ExprKind kind = take().text == "-" ? ExprKind::Negative : ExprKind::Positive;
        expr = make(kind, at, operandsOf(unary(false)));
    } else {
        expr = primary();
    }
    expr = postfix(std::move(expr));
    return withFilter ? filtersAndTests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::name(bool withNamespace) {
    const Token token = take();
    const std::string& text = token.text;
    if (text == "true" || text == "false" || text == "True" || text == "False") {
        ExprPtr expr = make(ExprKind::Constant, token.at);
        expr->value = Value::boolean(text == "true" || text == "True");
        return expr;
    }
    if (text == "none" || text == "None") {
        ExprPtr expr = make(ExprKind::Constant, token.at);
        expr->value = Value::none();
        return expr;
    }
    ExprPtr expr = make(ExprKind::Name, token.at);
    expr->name = text;
    if (withNamespace && takeOperator(".")) {
        expr->kind = ExprKind::NamespaceItem;
        expr->attribute = expect(TokenType::Name).text;
    }
    for (MacroNames* names : m_macros) {
        names->caller |= text == "caller";
        names->varargs |= text == "varargs";
        names->kwargs |= text == "kwargs";
    }
    return expr;
}

ExprPtr ExpressionParser::primary(bool withNamespace) {
    const Token token = current();
    switch (token.type) {
        case TokenType::Name:
            return name(withNamespace);
        case TokenType::String: {
            std::string text;
            while (current().type == TokenType::String) text += take().text;
            ExprPtr expr = make(ExprKind::Constant, token.at);
            expr->value = Value::string(std::move(text));
            return expr;
        }
        case TokenType::Integer:
        case TokenType::Float: {
            take();
            ExprPtr expr = make(ExprKind::Constant, token.at);
            expr->value = token.value;
            return expr;
        }
        default:
            break;
    }
    if (token.isOperator("(")) {
        const auto guard = nest();
        take();
        ExprPtr inner = tuple(true, {}, true);
        expectOperator(")");
        return inner;
    }
    if (token.isOperator("[")) return listDisplay();
    if (token.isOperator("{")) return dictDisplay();
    fail("unexpected '" + describe(token) + "'");
}

ExprPtr ExpressionParser::listDisplay() {
    ExprPtr list = make(ExprKind::List, take().at);
    while (!current().isOperator("]")) {
        if (!list->operands.empty()) expectOperator(",");
        if (current().isOperator("]")) break;
        adopt(*list, expression());
    }
    expectOperator("]");
    return list;
}

ExprPtr ExpressionParser::dictDisplay() {
    ExprPtr dict = make(ExprKind::Dict, take().at);
    while (!current().isOperator("}")) {
        if (!dict->operands.empty()) expectOperator(",");
        if (current().isOperator("}")) break;
        adopt(*dict, expression());
        expectOperator(":");
        adopt(*dict, expression());
    }
    expectOperator("}");
    return dict;
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
    for (;;) {
        if (current().isOperator(".") || current().isOperator("[")) {
            expr = subscript(std::move(expr));
        } else if (current().isOperator("(")) {
            expr = call(std::move(expr));
        } else {
            return expr;
        }
    }
}

ExprPtr ExpressionParser::filtersAndTests(ExprPtr expr) {
    for (;;) {
        if (current().isOperator("|")) {
            expr = filterChain(std::move(expr), false);
        } else if (current().isName("is")) {
            expr = test(std::move(expr));
        } else if (current().isOperator("(")) {
            expr = call(std::move(expr));
        } else {
            return expr;
        }
    }
}

ExprPtr ExpressionParser::subscript(ExprPtr expr) {
    const Token token = take();
    if (token.text == ".") {
        const Token attribute = take();
        if (attribute.type == TokenType::Name) {
            ExprPtr out = make(ExprKind::Attribute, token.at, operandsOf(std::move(expr)));
            out->name = attribute.text;
            return out;
        }
        if (attribute.type != TokenType::Integer) fail("expected name or number", attribute.at);
        ExprPtr index = make(ExprKind::Constant, attribute.at);
        index->value = attribute.value;
        return make(ExprKind::Item, token.at, operandsOf(std::move(expr), std::move(index)));
    }
    std::vector<ExprPtr> keys;
    while (!current().isOperator("]")) {
        if (!keys.empty()) expectOperator(",");
        keys.push_back(subscribed());
    }
    expectOperator("]");
    ExprPtr key =
        keys.size() == 1 ? std::move(keys[0]) : make(ExprKind::Tuple, token.at, std::move(keys));
    return make(ExprKind::Item, token.at, operandsOf(std::move(expr), std::move(key)));
}

ExprPtr ExpressionParser::subscribed() {
    const Position at = current().at;
    ExprPtr parts[3];
    if (!current().isOperator(":")) {
        parts[0] = expression();
        if (!current().isOperator(":")) return std::move(parts[0]);
    }
    take();
    for (int i = 1; i < 3; ++i) {
        const bool empty =
            current().isOperator(":") || current().isOperator("]") || current().isOperator(",");
        if (!empty) parts[i] = expression();
        if (i == 1 && !takeOperator(":")) break;
    }
    return make(ExprKind::Slice, at,
                operandsOf(std::move(parts[0]), std::move(parts[1]), std::move(parts[2])));
}

void ExpressionParser::callArguments(Expr& expr) {
    const Position at = take().at;
    CallArguments& out = expr.arguments;
    const auto check = [&](bool fine) {
        if (!fine) fail("invalid syntax for function call expression", at);
    };
    const auto argument = [&] {
        ExprPtr value = expression();
        expr.depth = std::max(expr.depth, value->depth + 1);
        if (expr.depth > kDeepestTree) fail("the expression is too long or nested too deep", at);
        return value;
    };
    for (bool first = true; !current().isOperator(")"); first = false) {
        if (!first) {
            expectOperator(",");
            if (current().isOperator(")")) break;
        }
        if (takeOperator("*")) {
            check(!out.star && !out.doubleStar);
            out.star = argument();
        } else if (takeOperator("**")) {
            check(!out.doubleStar);
            out.doubleStar = argument();
        } else if (current().type == TokenType::Name && following().isOperator("=")) {
            check(!out.doubleStar);
            std::string name = take().text;
            take();
            out.named.emplace_back(std::move(name), argument());
        } else {
            check(!out.star && !out.doubleStar && out.named.empty());
            out.positional.push_back(argument());
        }
    }
    expectOperator(")");
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
    ExprPtr expr = make(ExprKind::Call, current().at, operandsOf(std::move(callee)));
    callArguments(*expr);
    return expr;
}

std::string ExpressionParser::dottedName() {
    std::string name = expect(TokenType::Name).text;
    while (takeOperator(".")) name += "." + expect(TokenType::Name).text;
    return name;
}

void ExpressionParser::noteUnknown(const char* kind, const std::string& name, Position at,
                                   bool known) {
    if (!known && !m_soft)
        m_unknown.push_back({at, "No " + std::string(kind) + " named " + reprText(name) + "."});
}

void ExpressionParser::failOnUnknownNames() {
    if (!m_unknown.empty()) fail(m_unknown[0].message, m_unknown[0].at);
}

ExprPtr ExpressionParser::filterChain(ExprPtr input, bool inlineStart) {
    while (inlineStart || takeOperator("|")) {
        inlineStart = false;
        const Position at = current().at;
        std::string name = dottedName();
        noteUnknown("filter", name, at, findFilter(name) != nullptr);
        ExprPtr filter = make(ExprKind::Filter, at, operandsOf(std::move(input)));
        filter->name = std::move(name);
        if (current().isOperator("(")) callArguments(*filter);
        input = std::move(filter);
    }
    return input;
}

ExprPtr ExpressionParser::test(ExprPtr input) {
    const Position at = take().at;
    const bool negated = takeName("not");
    const Position nameAt = current().at;
    std::string name = dottedName();
    noteUnknown("test", name, nameAt, findTest(name) != nullptr);
    ExprPtr out = make(ExprKind::Test, at, operandsOf(std::move(input)));
    out->name = std::move(name);
    const Token& token = current();
    const bool literal = token.type == TokenType::Name || token.type == TokenType::String ||
                         token.type == TokenType::Integer || token.type == TokenType::Float ||
                         token.isOperator("[") || token.isOperator("{");
    if (token.isOperator("(")) {
        callArguments(*out);
    } else if (literal && !token.isName("else") && !token.isName("or") && !token.isName("and")) {
        if (token.isName("is")) fail("You cannot chain multiple tests with is");
        out->arguments.positional.push_back(postfix(primary()));
        out->depth = std::max(out->depth, out->arguments.positional[0]->depth + 1);
    }
    return negated ? make(ExprKind::Not, at, operandsOf(std::move(out))) : std::move(out);
}

namespace {

void checkTarget(const Expr& target, int depth = 0) {
    constexpr const char* names[] = {"const", "name", "nsref", "tuple", "list", "dict"};
    if (target.kind == ExprKind::Tuple || target.kind == ExprKind::List) {
        for (const ExprPtr& item : target.operands) checkTarget(*item, depth + 1);
    }
    const bool fine = target.kind == ExprKind::Name || target.kind == ExprKind::NamespaceItem ||
                      target.kind == ExprKind::Tuple;
    if (fine) return;
    const size_t index = size_t(target.kind);
    throw SyntaxError(target.at, "can't assign to '" +
                                     std::string(index < 6 ? names[index] : "expression") + "'");
}

}  // namespace

ExprPtr ExpressionParser::assignTarget(std::initializer_list<std::string_view> ends,
                                       bool withNamespace) {
    const Position at = current().at;
    std::vector<ExprPtr> items;
    bool isTuple = false;
    for (;;) {
        if (!items.empty()) expectOperator(",");
        if (endsTuple(ends)) break;
        items.push_back(primary(withNamespace));
        if (!current().isOperator(",")) break;
        isTuple = true;
    }
    if (items.empty()) fail("Expected an expression, got '" + describe(current()) + "'");
    ExprPtr target = isTuple ? make(ExprKind::Tuple, at, std::move(items)) : std::move(items[0]);
    checkTarget(*target);
    return target;
}

}  // namespace colibri::jinja
