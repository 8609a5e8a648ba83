// SPDX-License-Identifier: Apache-2.0
// What runs a template: its scopes, its limits, and what filters, tests and methods may ask of it.
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

// Bounds that no honest template comes near.
struct Limits {
    int64_t steps = 20'000'000;  // evaluated nodes, and one for each 16 bytes that are made
    size_t output = 16 << 20;    // bytes rendered
    size_t value = 16 << 20;     // bytes of one string, or items of one list
    size_t stack = 1 << 20;      // bytes of the machine's stack
    Integer range = 100'000;     // the reference's sandbox has the same
};

// Arguments of a call, a filter or a test.
struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    bool namesAreData = false;  // they come from a dict that holds data: f(**dict)

    bool hasData() const;
    const Value* find(std::string_view name) const;
    // One place for each parameter, by position or name. RenderError: too many, unknown or twice;
    // the first `required` have to be there.
    std::vector<std::optional<Value>> bind(std::string_view function,
                                           std::initializer_list<const char*> parameters,
                                           size_t required = 0) const;
};

// Variables of one stretch of the template. Names are views into the syntax tree.
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
    ScopePtr scope;  // where it was defined
};

// The variable `loop`, and the source of a for statement's items.
struct LoopObject {
    Runtime* runtime = nullptr;
    const Statement* statement = nullptr;
    ScopePtr outer;             // of the statement; the filter and a recursion need it
    std::vector<Value> source;  // items, not yet filtered
    size_t nextSource = 0;
    bool sized = true;      // the source had a length before it was walked
    bool filtered = false;  // what is left of the source has passed the filter
    int64_t index = -1;     // of the current item
    int depth0 = 0;
    std::optional<Value> previous, current, after;
    std::optional<size_t> knownLength;
    std::optional<std::vector<Value>> lastChanged;

    bool advance();  // to the next item; false at the end
    void peek();     // looks for `after`
    size_t length();
    Value attribute(const std::string& name, bool& found);

private:
    std::optional<Value> pull();
};

// Setting and restoring a member for the time of a block.
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

// Whether the operation under way on this thread has data among its inputs.
bool dataInHand();

class Runtime {
public:
    Runtime(const Template& source, const Limits& limits, const std::optional<std::tm>& now);
    ~Runtime();

    // RenderError ends it; where() tells the place.
    TracedText render(ScopePtr root);
    Position where() const { return m_at; }

    // Counts work; RenderError when there is too much. spend() comes here as well.
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
    // The value's text as the escaping in force asks for it, for output.
    TracedText textFor(const Value& value);
    Value text(TracedText text, bool safe = false);   // a string that is counted
    Value text(std::string text, bool safe = false);  // of unknown origin, see Value::string
    // Runs an operation on inputs that hold data, or none that do.
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
    // Cleared at the end: what a template can tie into a ring (a namespace that holds itself, a
    // macro in the scope that it was defined in).
    std::vector<std::shared_ptr<Namespace>> m_namespaces;
    std::vector<ScopePtr> m_captured;
};

// Tables, each in its own file. Null: no such name.
using FilterFunction = Value (*)(Runtime&, const Value& input, const Arguments&);
using TestFunction = bool (*)(Runtime&, const Value& input, const Arguments&);
struct TestRow {
    std::string_view name;
    TestFunction test;
    size_t arguments = 0;  // how many it needs, by position
};
FilterFunction findFilter(std::string_view name);
const TestRow* findTest(std::string_view name);
std::optional<Value> findGlobal(std::string_view name);

// Operators, with Python's meaning.
Value binaryOperator(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);
Value sliceOf(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
              const Value& step);

// A method of a string, list, tuple or dict, bound to it; nothing where there is none.
std::optional<Value> findMethod(const Value& object, std::string_view name);
bool hasUnsafeMethod(const Value& object, std::string_view name);

// JSON as Python's json.dumps writes it.
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
TracedText escapeHtml(const TracedText& text);  // data as a whole if any of it is

}  // namespace colibri::jinja
