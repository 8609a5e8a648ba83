// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/machine.h"

#include <algorithm>

#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

thread_local Runtime* t_running = nullptr;

ScopePtr innerScope(ScopePtr parent) {
    auto scope = std::make_shared<Scope>();
    scope->parent = std::move(parent);
    return scope;
}

}  // namespace

void spend(size_t steps) {
    if (t_running) t_running->charge(int64_t(steps));
}

bool dataInHand() {
    return t_running && t_running->dataInHand();
}

void spendOnText(size_t piece, size_t whole) {
    if (whole > Limits().value)
        throw RenderError("a text of " + std::to_string(whole) + " bytes is too large");
    spend(piece / 16);
}

Value* Scope::find(std::string_view name) {
    spend(variables.size() / 16);
    for (auto& [key, value] : variables) {
        if (key == name) return &value;
    }
    return nullptr;
}

void Scope::set(std::string_view name, Value value) {
    if (Value* known = find(name)) {
        *known = std::move(value);
    } else {
        variables.emplace_back(name, std::move(value));
    }
}

bool Arguments::hasData() const {
    const auto holds = [](const Value& value) { return jinja::hasData(value); };
    return namesAreData || std::any_of(positional.begin(), positional.end(), holds) ||
           std::any_of(named.begin(), named.end(),
                       [&](const auto& entry) { return holds(entry.second); });
}

const Value* Arguments::find(std::string_view name) const {
    spend(named.size() / 4);
    for (const auto& [key, value] : named) {
        if (key == name) return &value;
    }
    return nullptr;
}

std::vector<std::optional<Value>> Arguments::bind(std::string_view function,
                                                  std::initializer_list<const char*> parameters,
                                                  size_t required) const {
    spend(named.size());
    std::vector<std::optional<Value>> out(parameters.size());
    if (positional.size() > parameters.size()) {
        typeError(std::string(function) + "() takes at most " + std::to_string(parameters.size()) +
                  " arguments (" + std::to_string(positional.size()) + " given)");
    }
    for (size_t i = 0; i < positional.size(); ++i) out[i] = positional[i];
    for (const auto& [name, value] : named) {
        const auto parameter =
            std::find(parameters.begin(), parameters.end(), std::string_view(name));
        if (parameter == parameters.end()) {
            typeError(std::string(function) + "() got an unexpected keyword argument '" + name +
                      "'");
        }
        auto& slot = out[size_t(parameter - parameters.begin())];
        if (slot)
            typeError(std::string(function) + "() got multiple values for argument '" + name + "'");
        slot = value;
    }
    for (size_t i = 0; i < required; ++i) {
        if (!out[i]) {
            typeError(std::string(function) + "() missing a required argument: '" +
                      parameters.begin()[i] + "'");
        }
    }
    return out;
}

Runtime::Runtime(const Template& source, const Limits& limits, const std::optional<std::tm>& now)
    : m_template(source), m_limits(limits), m_now(now) {}

Runtime::~Runtime() {
    for (const auto& space : m_namespaces) {
        const DictObject freed = std::move(space->attributes);
        space->attributes = {};
    }
    for (const ScopePtr& scope : m_captured) {
        const auto freed = std::move(scope->variables);
        scope->variables.clear();
    }
}

void Runtime::charge(int64_t steps) {
    m_steps += steps;
    if (m_steps > m_limits.steps)
        throw RenderError("the template does too much work; it may never end");
}

void Runtime::chargeBytes(size_t bytes) {
    if (bytes > m_limits.value)
        throw RenderError("a text of " + std::to_string(bytes) + " bytes is too large");
    charge(int64_t(bytes / 16) + 1);
}

void Runtime::checkStack() const {
    const char* here = static_cast<const char*>(__builtin_frame_address(0));
    if (size_t(m_stackTop > here ? m_stackTop - here : here - m_stackTop) > m_limits.stack) {
        throw RenderError("maximum recursion depth exceeded");
    }
}

Value Runtime::text(TracedText text, bool safe) {
    chargeBytes(text.text.size());
    charge(int64_t(text.data.size()));
    return Value::string(std::move(text), safe);
}

Value Runtime::text(std::string text, bool safe) {
    return this->text(TracedText(std::move(text), m_dataInHand), safe);
}

Value Runtime::list(std::vector<Value> items) {
    chargeBytes(items.size() * 16);
    return Value::list(std::move(items));
}

std::tm Runtime::now() const {
    if (m_now) return *m_now;
    const std::time_t seconds = std::time(nullptr);
    std::tm local{};
    localtime_r(&seconds, &local);
    return local;
}

Value Runtime::makeNamespace(DictObject attributes) {
    charge(50);
    auto space = std::make_shared<Namespace>(Namespace{std::move(attributes)});
    m_namespaces.push_back(space);
    return Value::object(Type::Namespace, std::move(space));
}

TracedText Runtime::textFor(const Value& value) {
    TracedText text = tracedStr(value);
    if (m_autoescape && !(value.is(Type::String) && value.as<StringObject>().safe))
        text = escapeHtml(text);
    return text;
}

TracedText Runtime::render(ScopePtr root) {
    m_stackTop = static_cast<const char*>(__builtin_frame_address(0));
    const Swapped running(t_running, this);
    m_root = m_scope = std::move(root);
    m_captured.push_back(m_root);
    TracedText out;
    m_out = &out;
    (void)run(m_template.body);
    return out;
}

void Runtime::emit(const TracedText& text) {
    m_emitted += text.text.size();
    if (m_emitted > m_limits.output) throw RenderError("the rendered text is too long");
    charge(int64_t(text.text.size() / 16 + text.data.size()));
    m_out->append(text);
}

TracedText Runtime::capture(const Body& body, ScopePtr scope, Flow* flow) {
    TracedText out;
    const Swapped outGuard(m_out, &out);
    const Swapped scopeGuard(m_scope, std::move(scope));
    const Flow ended = run(body);
    if (flow) *flow = ended;
    return out;
}

void Runtime::runScoped(const Body& body, ScopePtr scope) {
    const Swapped guard(m_scope, std::move(scope));
    (void)run(body);
}

Runtime::Flow Runtime::run(const Body& body) {
    checkStack();
    for (const StatementPtr& statement : body) {
        const Flow flow = run(*statement);
        if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
}

Runtime::Flow Runtime::run(const Statement& statement) {
    charge(1);
    m_at = statement.at;
    switch (statement.kind) {
        case StatementKind::Text:
            emit(TracedText(statement.text));
            break;
        case StatementKind::Print:
            for (const ExprPtr& expr : statement.exprs) emit(textFor(evaluate(*expr)));
            break;
        case StatementKind::If:
            return runIf(statement);
        case StatementKind::For: {
            const Value items = evaluate(*statement.exprs[0]);
            m_at = statement.at;
            const bool sized = !items.is(Type::Generator);
            return runFor(statement, itemsOf(items), sized, 0);
        }
        case StatementKind::Set: {
            const Value value = evaluate(*statement.exprs[0]);
            m_at = statement.at;
            assign(*statement.target, value);
            break;
        }
        case StatementKind::SetBlock:
            runSetBlock(statement);
            break;
        case StatementKind::With:
            runWith(statement);
            break;
        case StatementKind::Macro:
            m_scope->set(statement.text, makeMacro(statement.macro, statement.text));
            break;
        case StatementKind::CallBlock:
            runCallBlock(statement);
            break;
        case StatementKind::FilterBlock:
            runFilterBlock(statement);
            break;
        case StatementKind::Block:
            runScoped(statement.bodies[0], innerScope(statement.scoped ? m_scope : m_root));
            break;
        case StatementKind::Autoescape: {
            const Swapped guard(m_autoescape, truthy(evaluate(*statement.exprs[0])));
            runScoped(statement.bodies[0], innerScope(m_scope));
            break;
        }
        case StatementKind::Generation:
            runScoped(statement.bodies[0], innerScope(m_scope));
            break;
        case StatementKind::Break:
            return Flow::Break;
        case StatementKind::Continue:
            return Flow::Continue;
        case StatementKind::OtherTemplate:
            throw RenderError("there are no other templates to include or import");
    }
    return Flow::Next;
}

Runtime::Flow Runtime::runIf(const Statement& statement) {
    for (size_t i = 0; i < statement.exprs.size(); ++i) {
        if (truthy(evaluate(*statement.exprs[i]))) return run(statement.bodies[i]);
    }
    return statement.hasElse ? run(statement.bodies.back()) : Flow::Next;
}

Runtime::Flow Runtime::runFor(const Statement& statement, std::vector<Value> items, bool sized,
                              int depth0) {
    charge(int64_t(items.size()));
    const auto loop = std::make_shared<LoopObject>();
    loop->runtime = this;
    loop->statement = &statement;
    loop->outer = m_scope;
    loop->source = std::move(items);
    loop->sized = sized && !statement.exprs[1];
    loop->depth0 = depth0;
    const Value loopValue = Value::object(Type::Loop, loop);
    bool anyFinished = false;  // `else` runs unless the body of some item was completed
    while (loop->advance()) {
        charge(1);
        const Swapped guard(m_scope, innerScope(loop->outer));
        m_at = statement.at;
        assign(*statement.target, *loop->current);
        m_scope->set("loop", loopValue);
        const Flow flow = run(statement.bodies[0]);
        if (flow == Flow::Break) break;
        if (flow == Flow::Next) anyFinished = true;
    }
    if (statement.hasElse && !anyFinished) {
        const Swapped guard(m_scope, innerScope(loop->outer));
        return run(statement.bodies[1]);
    }
    return Flow::Next;
}

Value Runtime::callLoop(LoopObject& loop, const Value& items) {
    if (!loop.statement->recursive) {
        typeError("The loop must have the 'recursive' marker to be called recursively.");
    }
    checkStack();
    TracedText out;
    const Swapped outGuard(m_out, &out);
    const Swapped scopeGuard(m_scope, loop.outer);
    (void)runFor(*loop.statement, itemsOf(items), !items.is(Type::Generator), loop.depth0 + 1);
    return text(std::move(out), m_autoescape);
}

std::optional<Value> LoopObject::pull() {
    while (nextSource < source.size()) {
        const Value& item = source[nextSource++];
        if (filtered || !statement->exprs[1]) return item;
        const Swapped guard(runtime->m_scope, innerScope(outer));
        runtime->assign(*statement->target, item);
        if (truthy(runtime->evaluate(*statement->exprs[1]))) return item;
    }
    return std::nullopt;
}

bool LoopObject::advance() {
    peek();
    if (!after) return false;
    previous = std::move(current);
    current = std::move(after);
    after.reset();
    ++index;
    return true;
}

void LoopObject::peek() {
    if (!after) after = pull();
}

// A sequence without a known length is counted by iterating over it.
size_t LoopObject::length() {
    if (!knownLength && sized) knownLength = source.size();
    if (!knownLength) {
        std::vector<Value> rest;
        while (std::optional<Value> item = pull()) rest.push_back(std::move(*item));
        knownLength = rest.size() + size_t(index + 1) + (after ? 1 : 0);
        source = std::move(rest);
        nextSource = 0;
        filtered = true;
    }
    return *knownLength;
}

void Runtime::runWith(const Statement& statement) {
    const ScopePtr inner = innerScope(m_scope);
    for (size_t i = 0; i < statement.targets.size(); ++i) {
        const Value value = evaluate(*statement.exprs[i]);
        const Swapped guard(m_scope, inner);
        assign(*statement.targets[i], value);
    }
    runScoped(statement.bodies[0], inner);
}

void Runtime::runSetBlock(const Statement& statement) {
    Value value = text(capture(statement.bodies[0], innerScope(m_scope)), m_autoescape);
    if (statement.exprs[0]) value = filterWith(*statement.exprs[0], value);
    m_at = statement.at;
    assign(*statement.target, value);
}

void Runtime::runFilterBlock(const Statement& statement) {
    const Value body = text(capture(statement.bodies[0], innerScope(m_scope)), m_autoescape);
    emit(textFor(filterWith(*statement.exprs[0], body)));
}

void Runtime::runCallBlock(const Statement& statement) {
    const Expr& expr = *statement.exprs[0];
    const Value callee = evaluate(*expr.operands[0]);
    Arguments given = arguments(expr.arguments);
    given.named.emplace_back("caller", makeMacro(statement.macro, "caller"));
    m_at = expr.at;
    emit(textFor(call(callee, given)));
}

void Runtime::assign(const Expr& target, const Value& value) {
    if (target.kind == ExprKind::Name) {
        m_scope->set(target.name, value);
        return;
    }
    if (target.kind == ExprKind::NamespaceItem) {
        const Value space = lookUp(target.name);
        if (!space.is(Type::Namespace))
            throw RenderError("cannot assign attribute on non-namespace object");
        if (target.attribute.starts_with('_')) {
            throw RenderError(
                "Chat templates cannot store underscore-prefixed attributes on a namespace, but "
                "got '" +
                target.attribute + "'. Please rename the attribute.");
        }
        space.state<Namespace>().attributes.set(Value::string(target.attribute), value);
        return;
    }
    const std::vector<Value> items = itemsOf(value);
    const size_t wanted = target.operands.size();
    if (items.size() > wanted)
        throw RenderError("too many values to unpack (expected " + std::to_string(wanted) + ")");
    if (items.size() < wanted) {
        throw RenderError("not enough values to unpack (expected " + std::to_string(wanted) +
                          ", got " + std::to_string(items.size()) + ")");
    }
    for (size_t i = 0; i < wanted; ++i) assign(*target.operands[i], items[i]);
}

Value Runtime::makeMacro(const MacroBody& body, std::string name) {
    auto macro = std::make_shared<MacroObject>(MacroObject{std::move(name), &body, m_scope});
    charge(50);
    m_captured.push_back(m_scope);  // a cycle: the scope will hold the macro, which holds the scope
    return Value::object(Type::Macro, std::move(macro));
}

// Sets the macro's special variables in `scope`. Returns the value of each parameter; null if the
// call does not set it.
std::vector<const Value*> Runtime::bindMacro(const MacroObject& macro, const Arguments& given,
                                             Scope& scope) {
    const MacroBody& body = *macro.body;
    const size_t count = body.parameters.size();
    spend((count + 1) * given.named.size());
    std::vector<bool> used(given.named.size());
    const auto takeNamed = [&](std::string_view name) -> const Value* {
        for (size_t i = 0; i < given.named.size(); ++i) {
            if (given.named[i].first != name || used[i]) continue;
            used[i] = true;
            return &given.named[i].second;
        }
        return nullptr;
    };
    std::vector<const Value*> values(count, nullptr);
    for (size_t i = 0; i < count; ++i) {
        const bool byPosition = i < given.positional.size();
        values[i] = byPosition ? &given.positional[i] : takeNamed(body.parameters[i]);
    }
    const auto& names = body.parameters;
    if (body.usesCaller && std::find(names.begin(), names.end(), "caller") == names.end()) {
        const Value* caller = takeNamed("caller");
        scope.set("caller", caller ? *caller : Value::undefined("No caller defined"));
    }
    DictObject rest;
    for (size_t i = 0; i < given.named.size(); ++i) {
        if (used[i]) continue;
        if (!body.usesKwargs) {
            typeError("macro " + reprText(macro.name) + " takes no keyword argument " +
                      reprText(given.named[i].first));
        }
        rest.set(Value::string(TracedText(given.named[i].first, given.namesAreData)),
                 given.named[i].second);
    }
    if (body.usesKwargs) scope.set("kwargs", Value::dict(std::move(rest)));
    if (given.positional.size() > count && !body.usesVarargs) {
        typeError("macro " + reprText(macro.name) + " takes not more than " +
                  std::to_string(count) + " argument(s)");
    }
    if (body.usesVarargs) {
        const auto from = given.positional.begin() + std::min(count, given.positional.size());
        scope.set("varargs", Value::tuple(std::vector<Value>(from, given.positional.end())));
    }
    return values;
}

Value Runtime::callMacro(const MacroObject& macro, const Arguments& given) {
    checkStack();
    charge(10);
    const MacroBody& body = *macro.body;
    const size_t count = body.parameters.size(), firstDefault = count - body.defaults.size();
    const ScopePtr scope = innerScope(macro.scope);
    const std::vector<const Value*> values = bindMacro(macro, given, *scope);
    const Swapped guard(m_scope, scope);
    for (size_t i = 0; i < count; ++i) {
        const std::string& name = body.parameters[i];
        if (values[i]) {
            scope->set(name, *values[i]);
        } else if (i >= firstDefault) {
            scope->set(name, evaluate(*body.defaults[i - firstDefault]));
        } else {
            scope->set(name, Value::undefined("parameter " + reprText(name) + " was not provided"));
        }
    }
    return text(capture(body.body, scope), m_autoescape);
}

}  // namespace colibri::jinja
