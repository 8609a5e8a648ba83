// SPDX-License-Identifier: Apache-2.0
// The interpreter: scopes, limits, and the interface for filters, tests and methods.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/jinja/ast.h"
#include "engine/jinja/value.h"

namespace colibri::jinja {

// Limits far beyond the needs of legitimate templates.
struct Limits {
    int64_t steps = 20'000'000;  // evaluated nodes, and one for each 16 bytes created
    size_t output = 16 << 20;    // bytes of rendered text
    size_t value = 16 << 20;     // bytes of one string, or items of one list
    size_t stack = 1 << 20;      // bytes of the interpreter's stack
    Integer range = 100'000;     // the limit of the reference's sandbox
};

// Arguments of a call, a filter or a test.
struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    bool namesAreData = false;  // the names come from a dict that holds data: f(**dict)

    bool hasData() const;
    const Value* find(std::string_view name) const;
    // Assigns the arguments to parameters, by position or name. RenderError: too many, an unknown
    // name, a duplicate, or one of the first `required` is missing.
    std::vector<std::optional<Value>> bind(std::string_view function,
                                           std::initializer_list<const char*> parameters,
                                           size_t required = 0) const;
};

// The variables of one block. Names are views into the syntax tree.
struct Scope {
    std::shared_ptr<Scope> parent;
    std::vector<std::pair<std::string_view, Value>> variables;

    Value* find(std::string_view name);
    void set(std::string_view name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

struct MacroObject {
    std::string name;
    const MacroBody* body = nullptr;
    ScopePtr scope;  // the scope of its definition
};

// The variable `loop`, which also iterates over the items of a for statement.
struct LoopObject {
    Runtime* runtime = nullptr;
    const Statement* statement = nullptr;
    ScopePtr outer;             // scope of the statement, used by the filter and by recursive calls
    std::vector<Value> source;  // items before filtering
    size_t nextSource = 0;
    bool sized = true;      // the source has a length without iterating over it
    bool filtered = false;  // the remaining items have passed the filter
    int64_t index = -1;     // index of the current item
    int depth0 = 0;
    std::optional<Value> previous, current, after;
    std::optional<size_t> knownLength;
    std::optional<std::vector<Value>> lastChanged;

    bool advance();  // moves to the next item; false at the end
    void peek();     // determines `after`
    size_t length();
    Value attribute(const std::string& name, bool& found);

private:
    std::optional<Value> pull();
};

// Sets a member and restores it at the end of the block.
template <typename T>
class Swapped {
public:
    Swapped(T& member, T value)
        : m_member(member), m_before(std::exchange(member, std::move(value))) {}
    Swapped(const Swapped&) = delete;
    ~Swapped() { m_member = std::move(m_before); }

private:
    T& m_member;
    T m_before;
};

// Whether the operation that runs on this thread has data among its inputs.
bool dataInHand();

class Runtime {
public:
    Runtime(const Template& source, const Limits& limits, const std::optional<std::tm>& now);
    ~Runtime();

    // RenderError ends the rendering; where() returns its position.
    TracedText render(ScopePtr root);
    Position where() const { return m_at; }

    // Counts work. RenderError if the limit is exceeded. spend() calls this.
    void charge(int64_t steps);
    void chargeBytes(size_t bytes);
    void checkStack() const;

    Value evaluate(const Expr& expr);
    Value call(const Value& callee, const Arguments& arguments);
    Value attribute(const Value& object, const std::string& name);  // object.name
    Value item(const Value& object, const Value& key);              // object[key]
    Value applyFilter(const std::string& name, const Value& input, const Arguments& arguments);
    bool applyTest(const std::string& name, const Value& input, const Arguments& arguments);
    bool autoescape() const { return m_autoescape; }
    // The text of a value for output, escaped if autoescape is on.
    TracedText textFor(const Value& value);
    Value text(TracedText text, bool safe = false);   // a string whose size is charged
    Value text(std::string text, bool safe = false);  // of unknown origin, see Value::string
    // Runs an operation and records whether its inputs hold data.
    template <typename Run>
    Value operate(bool data, Run run) {
        const Swapped guard(m_dataInHand, data);
        return run();
    }
    bool dataInHand() const { return m_dataInHand; }
    Value list(std::vector<Value> items);
    std::tm now() const;
    Value makeNamespace(DictObject attributes);
    Value callLoop(LoopObject& loop, const Value& items);

private:
    friend struct LoopObject;
    enum class Flow { Next, Break, Continue };

    Flow run(const std::vector<StatementPtr>& body);
    Flow run(const Statement& statement);
    Flow runFor(const Statement& statement, std::vector<Value> items, bool sized, int depth0);
    Flow runIf(const Statement& statement);
    void runWith(const Statement& statement);
    void runSetBlock(const Statement& statement);
    void runFilterBlock(const Statement& statement);
    void runCallBlock(const Statement& statement);
    void runScoped(const std::vector<StatementPtr>& body, ScopePtr scope);
    void emit(const TracedText& text);
    TracedText capture(const std::vector<StatementPtr>& body, ScopePtr scope, Flow* flow = nullptr);
    void assign(const Expr& target, const Value& value);
    Value makeMacro(const MacroBody& body, std::string name);
    Value callMacro(const MacroObject& macro, const Arguments& arguments);
    std::vector<const Value*> bindMacro(const MacroObject& macro, const Arguments& given,
                                        Scope& scope);
    Arguments arguments(const CallArguments& call);
    Value filterWith(const Expr& filter, const Value& input);

    Value evaluateDisplay(const Expr& expr);
    Value evaluateChoice(const Expr& expr);
    Value evaluateBinary(const Expr& expr);
    Value evaluateCompare(const Expr& expr);
    Value evaluateSlice(const Expr& expr, const Value& object);
    Value evaluateConcat(const Expr& expr);
    Value evaluateCall(const Expr& expr);
    Value lookUp(std::string_view name);

    const Template& m_template;
    Limits m_limits;
    std::optional<std::tm> m_now;
    int64_t m_steps = 0;
    const char* m_stackTop = nullptr;
    Position m_at;
    ScopePtr m_scope, m_root;
    TracedText* m_out = nullptr;
    size_t m_emitted = 0;
    bool m_autoescape = false, m_dataInHand = false;
    // Objects that a template can link into a cycle: a namespace that holds itself, a macro in the
    // scope of its definition. They are cleared at the end.
    std::vector<std::shared_ptr<Namespace>> m_namespaces;
    std::vector<ScopePtr> m_captured;
};

// Lookup in the tables, each in its own file. Null: no such name.
using FilterFunction = Value (*)(Runtime&, const Value& input, const Arguments&);
using TestFunction = bool (*)(Runtime&, const Value& input, const Arguments&);
struct TestRow {
    std::string_view name;
    TestFunction test;
    size_t arguments = 0;  // number of required positional arguments
};
FilterFunction findFilter(std::string_view name);
const TestRow* findTest(std::string_view name);
std::optional<Value> findGlobal(std::string_view name);

// Operators with Python's semantics.
Value binaryOperator(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);
Value sliceOf(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
              const Value& step);

// The bound method of a string, list, tuple or dict; empty if there is none.
std::optional<Value> findMethod(const Value& object, std::string_view name);
bool hasUnsafeMethod(const Value& object, std::string_view name);

// The format of Python's json.dumps.
struct JsonStyle {
    bool asciiOnly = false, sortKeys = false;
    std::optional<std::string> indent;
    std::string itemSeparator = ", ", keySeparator = ": ";
};
TracedText dumpJson(Runtime& runtime, const Value& value, const JsonStyle& style);

// "%s %d" % values, and "{} {}".format(...).
TracedText percentFormat(Runtime& runtime, const TracedText& format, const Value& values,
                         bool escape);
TracedText braceFormat(Runtime& runtime, const TracedText& format, const Arguments& arguments);
std::string escapeHtml(std::string_view text);
TracedText escapeHtml(const TracedText& text);  // all data if any of it is

}  // namespace colibri::jinja
