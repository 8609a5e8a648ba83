// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {

Value Runtime::lookUp(std::string_view name) {
    for (Scope* scope = m_scope.get(); scope; scope = scope->parent.get()) {
        if (const Value* value = scope->find(name)) return *value;
    }
    if (std::optional<Value> value = findGlobal(name)) return std::move(*value);
    return Value::undefined(reprText(name) + " is undefined");
}

Value Runtime::evaluate(const Expr& expr) {
    charge(1);
    checkStack();
    m_at = expr.at;
    const auto operand = [&](size_t i) { return evaluate(*expr.operands[i]); };
    switch (expr.kind) {
        case ExprKind::Constant:
            return expr.value;
        case ExprKind::Name:
        case ExprKind::NamespaceItem:
            return lookUp(expr.name);
        case ExprKind::Tuple:
        case ExprKind::List:
        case ExprKind::Dict:
            return evaluateDisplay(expr);
        case ExprKind::Conditional:
        case ExprKind::Or:
        case ExprKind::And:
        case ExprKind::Not:
            return evaluateChoice(expr);
        case ExprKind::Negative:
        case ExprKind::Positive: {
            const Value value = operand(0);
            m_at = expr.at;
            return expr.kind == ExprKind::Negative ? negative(value) : positive(value);
        }
        case ExprKind::Binary:
            return evaluateBinary(expr);
        case ExprKind::Concat:
            return evaluateConcat(expr);
        case ExprKind::Compare:
            return evaluateCompare(expr);
        case ExprKind::Attribute: {
            const Value object = operand(0);
            m_at = expr.at;
            return attribute(object, expr.name);
        }
        case ExprKind::Item: {
            const Value object = operand(0);
            if (expr.operands[1]->kind == ExprKind::Slice)
                return evaluateSlice(*expr.operands[1], object);
            const Value key = operand(1);
            m_at = expr.at;
            return item(object, key);
        }
        case ExprKind::Slice:
            throw RenderError("a slice is only allowed as an index");
        case ExprKind::Call:
            return evaluateCall(expr);
        case ExprKind::Filter:
            return filterWith(expr, Value());
        case ExprKind::Test: {
            const Value input = operand(0);
            const Arguments given = arguments(expr.arguments);
            m_at = expr.at;
            return Value::boolean(applyTest(expr.name, input, given));
        }
    }
    return Value();
}

// [a, b], (a, b), {a: b}
Value Runtime::evaluateDisplay(const Expr& expr) {
    if (expr.kind == ExprKind::Dict) {
        DictObject dict;
        for (size_t i = 0; i + 1 < expr.operands.size(); i += 2) {
            const Value key = evaluate(*expr.operands[i]);
            dict.set(key, evaluate(*expr.operands[i + 1]));
        }
        return Value::dict(std::move(dict));
    }
    std::vector<Value> items;
    for (const auto& operand : expr.operands) items.push_back(evaluate(*operand));
    return expr.kind == ExprKind::List ? Value::list(std::move(items))
                                       : Value::tuple(std::move(items));
}

// Operators that do not evaluate all operands: a if b else c, or, and; also not.
Value Runtime::evaluateChoice(const Expr& expr) {
    const auto operand = [&](size_t i) { return evaluate(*expr.operands[i]); };
    if (expr.kind == ExprKind::Conditional) {
        if (truthy(operand(0))) return operand(1);
        if (expr.operands[2]) return operand(2);
        return Value::undefined("the inline if-expression on line " + std::to_string(expr.at.line) +
                                " evaluated to false and no else section was defined.");
    }
    Value left = operand(0);
    if (expr.kind == ExprKind::Not) return Value::boolean(!truthy(left));
    return truthy(left) == (expr.kind == ExprKind::Or) ? left : operand(1);
}

Value Runtime::evaluateBinary(const Expr& expr) {
    const Value left = evaluate(*expr.operands[0]);
    const Value right = evaluate(*expr.operands[1]);
    m_at = expr.at;
    return binaryOperator(*this, expr.binary, left, right);
}

Value Runtime::evaluateConcat(const Expr& expr) {
    TracedText out;
    bool safe = false;
    std::vector<Value> parts;
    for (const ExprPtr& operand : expr.operands) {
        parts.push_back(evaluate(*operand));
        safe |=
            m_autoescape && parts.back().is(Type::String) && parts.back().as<StringObject>().safe;
    }
    m_at = expr.at;
    // With escaping on, one safe part makes the result safe, and the other parts are escaped.
    for (const Value& part : parts) {
        out.append(safe ? textFor(part) : tracedStr(part));
        if (out.text.size() > m_limits.value) chargeBytes(out.text.size());
    }
    return text(std::move(out), safe);
}

Value Runtime::evaluateCompare(const Expr& expr) {
    Value left = evaluate(*expr.operands[0]);
    for (size_t i = 0; i < expr.compares.size(); ++i) {
        Value right = evaluate(*expr.operands[i + 1]);
        m_at = expr.at;
        charge(4);
        bool result = false;
        switch (expr.compares[i]) {
            case CompareOperator::Equal:
                result = equal(left, right);
                break;
            case CompareOperator::NotEqual:
                result = !equal(left, right);
                break;
            case CompareOperator::Less:
                result = compare(left, right, "<") < 0;
                break;
            case CompareOperator::LessEqual:
                result = compare(left, right, "<=") <= 0;
                break;
            case CompareOperator::Greater:
                result = compare(left, right, ">") > 0;
                break;
            case CompareOperator::GreaterEqual:
                result = compare(left, right, ">=") >= 0;
                break;
            case CompareOperator::In:
            case CompareOperator::NotIn:
                charge(right.is(Type::List) || right.is(Type::Tuple) ? int64_t(right.items().size())
                                                                     : 1);
                result = contains(right, left) == (expr.compares[i] == CompareOperator::In);
                break;
        }
        if (!result) return Value::boolean(false);
        left = std::move(right);
    }
    return Value::boolean(true);
}

Value Runtime::evaluateSlice(const Expr& expr, const Value& object) {
    Value bounds[3] = {Value::none(), Value::none(), Value::none()};
    for (int i = 0; i < 3; ++i) {
        if (expr.operands[size_t(i)]) bounds[i] = evaluate(*expr.operands[size_t(i)]);
    }
    m_at = expr.at;
    return sliceOf(*this, object, bounds[0], bounds[1], bounds[2]);
}

Arguments Runtime::arguments(const CallArguments& call) {
    Arguments out;
    for (const ExprPtr& expr : call.positional) out.positional.push_back(evaluate(*expr));
    for (const auto& [name, expr] : call.named) out.named.emplace_back(name, evaluate(*expr));
    if (call.star) {
        for (Value& item : itemsOf(evaluate(*call.star))) out.positional.push_back(std::move(item));
    }
    if (call.doubleStar) {
        const Value dict = evaluate(*call.doubleStar);
        if (!dict.is(Type::Dict))
            typeError("argument after ** must be a mapping, not " + typeName(dict));
        out.namesAreData = hasData(dict);
        for (const auto& [key, value] : dict.as<DictObject>().entries) {
            if (!key.is(Type::String)) typeError("keywords must be strings");
            if (out.find(key.text()))
                typeError("got multiple values for keyword argument " + reprText(key.text()));
            out.named.emplace_back(key.text(), value);
        }
    }
    return out;
}

Value Runtime::evaluateCall(const Expr& expr) {
    const Value callee = evaluate(*expr.operands[0]);
    const Arguments given = arguments(expr.arguments);
    m_at = expr.at;
    return call(callee, given);
}

Value Runtime::call(const Value& callee, const Arguments& given) {
    charge(2);
    switch (callee.type()) {
        case Type::Undefined:
            undefinedError(callee);
        case Type::Function:
            return operate(given.hasData(),
                           [&] { return callee.as<FunctionObject>().call(*this, given); });
        case Type::Macro:
            return callMacro(callee.state<MacroObject>(), given);
        case Type::Loop:
            return callLoop(callee.state<LoopObject>(), *given.bind("loop", {"iterable"}, 1)[0]);
        default:
            typeError("'" + typeName(callee) + "' object is not callable");
    }
}

// Applies the filter `expr` to its operand, or to `input` if it has none (filter blocks).
Value Runtime::filterWith(const Expr& expr, const Value& input) {
    Value value = input;
    if (!expr.operands.empty() && expr.operands[0]) {
        const Expr& before = *expr.operands[0];
        value = before.kind == ExprKind::Filter ? filterWith(before, input) : evaluate(before);
    }
    const Arguments given = arguments(expr.arguments);
    m_at = expr.at;
    return applyFilter(expr.name, value, given);
}

Value Runtime::applyFilter(const std::string& name, const Value& input, const Arguments& given) {
    charge(2);
    const FilterFunction filter = findFilter(name);
    if (!filter) throw RenderError("No filter named " + reprText(name) + " found.");
    return operate(hasData(input) || given.hasData(), [&] { return filter(*this, input, given); });
}

bool Runtime::applyTest(const std::string& name, const Value& input, const Arguments& given) {
    charge(1);
    const TestRow* row = findTest(name);
    if (!row) throw RenderError("No test named " + reprText(name) + " found.");
    if (given.positional.size() != row->arguments || !given.named.empty()) {
        typeError("the test " + name + " takes " + std::to_string(row->arguments) + " arguments");
    }
    return row->test(*this, input, given);
}

}  // namespace colibri::jinja
