// SPDX-License-Identifier: Apache-2.0
// Filters over lists and dicts.
#include <algorithm>

#include "engine/jinja/filters.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

// Splits "a.b.0" into a path of keys. An integer is a key by itself.
std::vector<Value> pathOf(const Value& attribute) {
    if (!attribute.is(Type::String)) return {attribute};
    std::vector<Value> path;
    for (const std::string_view view : splitBy(attribute.text(), ".", -1, false)) {
        const std::string part(view);
        const bool number = !part.empty() && part.size() < 18 &&
                            part.find_first_not_of("0123456789") == std::string::npos;
        path.push_back(number ? Value::integer(std::stoll(part)) : Value::string(part));
    }
    return path;
}

Value follow(Runtime& runtime, Value value, const std::vector<Value>& path, const Value& fallback) {
    for (const Value& key : path) {
        value = runtime.item(value, key);
        if (value.is(Type::Undefined) && !fallback.is(Type::None)) value = fallback;
    }
    return value;
}

Value ignoreCase(const Value& value) {
    return value.is(Type::String) ? Value::string(lower(value.text())) : value;
}

// Computes sort keys: the items themselves or their attributes, in lower case unless
// `caseSensitive`. With `several`, the key is a list, and the attribute may be several names:
// "a,b".
class KeyOf {
public:
    KeyOf(const std::optional<Value>& attribute, bool caseSensitive, bool several = false)
        : m_caseSensitive(caseSensitive), m_several(several) {
        if (!attribute || attribute->is(Type::None)) {
            m_paths.emplace_back();
        } else if (several && attribute->is(Type::String)) {
            for (const std::string_view one : splitBy(attribute->text(), ",", -1, false))
                m_paths.push_back(pathOf(Value::string(std::string(one))));
        } else {
            m_paths.push_back(pathOf(*attribute));
        }
    }

    Value operator()(Runtime& runtime, const Value& item,
                     const Value& fallback = Value::none()) const {
        std::vector<Value> keys;
        for (const auto& path : m_paths) {
            const Value key = follow(runtime, item, path, fallback);
            keys.push_back(m_caseSensitive ? key : ignoreCase(key));
        }
        return m_several ? Value::list(std::move(keys)) : keys[0];
    }

private:
    std::vector<std::vector<Value>> m_paths;
    bool m_caseSensitive, m_several;
};

struct Keyed {
    Value key, item;
};

std::vector<Keyed> keyed(Runtime& runtime, const Value& value, const KeyOf& keyOf,
                         const Value& fallback = Value::none()) {
    std::vector<Keyed> out;
    for (Value& item : itemsOf(value)) {
        Value key = keyOf(runtime, item, fallback);
        out.push_back({std::move(key), std::move(item)});
    }
    runtime.charge(int64_t(out.size()) * 4);
    return out;
}

void sortKeyed(std::vector<Keyed>& items, bool reverse) {
    // The sort is stable, also in reverse order.
    std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
        return reverse ? compare(b.key, a.key, "<") < 0 : compare(a.key, b.key, "<") < 0;
    });
}

Value listOf(Runtime& runtime, std::vector<Keyed> items) {
    std::vector<Value> out;
    for (Keyed& one : items) out.push_back(std::move(one.item));
    return runtime.list(std::move(out));
}

Value sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("sort", {"reverse", "case_sensitive", "attribute"});
    auto items = keyed(runtime, value, KeyOf(given[2], flagArgument(given[1]), true));
    sortKeyed(items, flagArgument(given[0]));
    return listOf(runtime, std::move(items));
}

Value dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("dictsort", {"case_sensitive", "by", "reverse"});
    const std::string by = given[1] ? str(*given[1]) : "key";
    if (by != "key" && by != "value")
        throw RenderError("You can only sort by either \"key\" or \"value\"");
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.is(Type::Dict))
        throw RenderError(reprText(typeName(value) + " object") + " has no attribute 'items'");
    std::vector<Keyed> items;
    runtime.charge(int64_t(value.as<DictObject>().entries.size()) * 4);
    for (const auto& [key, item] : value.as<DictObject>().entries) {
        const Value& sortBy = by == "key" ? key : item;
        items.push_back(
            {flagArgument(given[0]) ? sortBy : ignoreCase(sortBy), Value::tuple({key, item})});
    }
    sortKeyed(items, flagArgument(given[2]));
    return listOf(runtime, std::move(items));
}

Value unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("unique", {"case_sensitive", "attribute"});
    DictObject seen;
    std::vector<Value> out;
    for (Keyed& one : keyed(runtime, value, KeyOf(given[1], flagArgument(given[0])))) {
        if (seen.find(one.key)) continue;
        seen.set(one.key, Value::none());
        out.push_back(std::move(one.item));
    }
    return Value::generator(std::move(out));
}

template <bool wantMost>
Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind(wantMost ? "max" : "min", {"case_sensitive", "attribute"});
    const auto items = keyed(runtime, value, KeyOf(given[1], flagArgument(given[0])));
    if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
    const Keyed* best = &items[0];
    for (const Keyed& one : items) {
        if (wantMost ? compare(one.key, best->key, ">") > 0 : compare(one.key, best->key, "<") < 0)
            best = &one;
    }
    return best->item;
}

Value sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("sum", {"attribute", "start"});
    Value total = given[1] ? *given[1] : Value::integer(0);
    if (total.is(Type::String)) typeError("sum() can't sum strings [use ''.join(seq) instead]");
    const std::vector<Value> path =
        given[0] && !given[0]->is(Type::None) ? pathOf(*given[0]) : std::vector<Value>();
    for (const Value& item : itemsOf(value)) {
        const Value part = follow(runtime, item, path, Value::none());
        runtime.charge(1);
        total = binaryOperator(runtime, BinaryOperator::Add, total, part);
    }
    return total;
}

Value groupby(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("groupby", {"attribute", "default", "case_sensitive"}, 1);
    const bool caseSensitive = flagArgument(given[2]);
    const Value fallback = given[1] ? *given[1] : Value::none();
    auto items = keyed(runtime, value, KeyOf(given[0], caseSensitive), fallback);
    sortKeyed(items, false);
    const std::vector<Value> path = pathOf(*given[0]);
    std::vector<Value> groups;
    for (size_t begin = 0, end; begin < items.size(); begin = end) {
        std::vector<Value> members;
        for (end = begin; end < items.size() && equal(items[end].key, items[begin].key); ++end)
            members.push_back(items[end].item);
        // As in the reference, the first member determines the spelling of the group's name.
        const Value name =
            caseSensitive ? items[begin].key : follow(runtime, members[0], path, fallback);
        groups.push_back(Value::tuple({name, Value::list(std::move(members))}, true));
    }
    return runtime.list(std::move(groups));
}

Value join(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("join", {"d", "attribute"});
    std::vector<Value> items = itemsOf(value);
    if (given[1] && !given[1]->is(Type::None)) {
        const std::vector<Value> path = pathOf(*given[1]);
        for (Value& item : items) item = follow(runtime, item, path, Value::none());
    }
    bool safe = false;  // with escaping on, one safe item makes the result safe
    for (const Value& item : items)
        safe |= runtime.autoescape() && item.is(Type::String) && item.as<StringObject>().safe;
    const auto textOf = [&](const Value& item) {
        return safe ? runtime.textFor(item) : tracedStr(item);
    };
    const TracedText between = given[0] ? textOf(*given[0]) : TracedText();
    TracedText out;
    for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out.append(between);
        out.append(textOf(items[i]));
        spend(between.data.size());
        spendOnText(between.text.size() + 16, out.text.size());
    }
    return runtime.text(std::move(out), safe);
}

Value length(Runtime&, const Value& value, const Arguments&) {
    return Value::integer(Integer(lengthOf(value)));
}

Value toList(Runtime& runtime, const Value& value, const Arguments&) {
    return runtime.list(itemsOf(value));
}

Value itemsFilter(Runtime&, const Value& value, const Arguments&) {
    if (value.is(Type::Undefined)) return Value::generator({});
    if (!value.is(Type::Dict)) typeError("Can only get item pairs from a mapping.");
    return Value::generator(itemsOf(Value::view(value.dictPointer(), ViewKind::Items)));
}

Value first(Runtime&, const Value& value, const Arguments&) {
    if (value.is(Type::Generator)) {
        Generator& generator = value.state<Generator>();
        if (generator.next < generator.items.size()) return generator.items[generator.next++];
    } else if (value.is(Type::List) || value.is(Type::Tuple)) {
        if (!value.items().empty()) return value.items()[0];
    } else if (value.is(Type::String)) {
        const std::string& text = value.text();
        if (!text.empty())
            return Value::string(value.as<StringObject>().slice(0, text::nextUtf8(text, 0).bytes));
    } else if (std::vector<Value> items = itemsOf(value); !items.empty()) {
        return items[0];
    }
    return Value::undefined("No first item, sequence was empty.");
}

Value last(Runtime&, const Value& value, const Arguments&) {
    if (value.is(Type::Generator)) typeError("'generator' object is not reversible");
    if (value.is(Type::String) && !value.text().empty()) {
        const std::string& text = value.text();
        const size_t begin = text::previousUtf8(text, text.size());
        return Value::string(value.as<StringObject>().slice(begin, text.size()));
    }
    const std::vector<Value> items = itemsOf(value);
    return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Runtime& runtime, const Value& value, const Arguments&) {
    if (value.is(Type::String)) {
        return sliceOf(runtime, value, Value::none(), Value::none(), Value::integer(-1));
    }
    std::vector<Value> items = itemsOf(value);
    std::reverse(items.begin(), items.end());
    return value.is(Type::Generator) ? runtime.list(std::move(items))
                                     : Value::generator(std::move(items));
}

Value batch(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("batch", {"linecount", "fill_with"}, 1);
    const int64_t count = wholeArgument(given[0], 0);
    std::vector<Value> out, row;
    for (Value& item : itemsOf(value)) {
        if (int64_t(row.size()) == count) out.push_back(Value::list(std::exchange(row, {})));
        runtime.charge(1);
        row.push_back(std::move(item));
    }
    if (!row.empty()) {
        const bool fill = given[1] && !given[1]->is(Type::None);
        while (fill && int64_t(row.size()) < std::min<int64_t>(count, 100'000))
            row.push_back(*given[1]);
        out.push_back(Value::list(std::move(row)));
    }
    return Value::generator(std::move(out));
}

Value slice(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("slice", {"slices", "fill_with"}, 1);
    const int64_t slices = wholeArgument(given[0], 0);
    const std::vector<Value> items = itemsOf(value);
    if (slices == 0) throw RenderError("integer division or modulo by zero");
    if (slices > 100'000) throw RenderError("too many slices");
    const int64_t each = int64_t(items.size()) / std::max<int64_t>(slices, 1),
                  extra = int64_t(items.size()) % std::max<int64_t>(slices, 1);
    std::vector<Value> out;
    auto at = items.begin();
    for (int64_t i = 0; i < slices; ++i) {
        const auto end = at + each + (i < extra ? 1 : 0);
        std::vector<Value> column(at, end);
        if (given[1] && !given[1]->is(Type::None) && i >= extra) column.push_back(*given[1]);
        out.push_back(runtime.list(std::move(column)));
        at = end;
    }
    return Value::generator(std::move(out));
}

Value attr(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const std::string name = str(*arguments.bind("attr", {"name"}, 1)[0]);
    // Items are not attributes here: only the methods of a dict count.
    if (value.is(Type::Dict) && !findMethod(value, name) && !hasUnsafeMethod(value, name)) {
        return Value::undefined("'dict object' has no attribute " + reprText(name));
    }
    return runtime.attribute(value, name);
}

Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
    if (!truthy(value)) return Value::generator({});
    std::vector<Value> out = itemsOf(value);
    if (arguments.positional.empty() && arguments.find("attribute")) {
        for (const auto& [name, unused] : arguments.named) {
            if (name != "attribute" && name != "default")
                throw RenderError("Unexpected keyword argument " + reprText(name));
        }
        const Value* fallback = arguments.find("default");
        const std::vector<Value> path = pathOf(*arguments.find("attribute"));
        for (Value& item : out)
            item = follow(runtime, item, path, fallback ? *fallback : Value::none());
        return Value::generator(std::move(out));
    }
    if (arguments.positional.empty()) throw RenderError("map requires a filter argument");
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    const std::string name = str(arguments.positional[0]);
    for (Value& item : out) item = runtime.applyFilter(name, item, rest);
    return Value::generator(std::move(out));
}

template <bool keep, bool byAttribute>
Value select(Runtime& runtime, const Value& value, const Arguments& arguments) {
    if (!truthy(value)) return Value::generator({});
    Arguments rest = arguments;
    const auto takeFirst = [&] {
        const Value taken = rest.positional[0];
        rest.positional.erase(rest.positional.begin());
        return taken;
    };
    std::vector<Value> path;
    if (byAttribute) {
        if (rest.positional.empty()) throw RenderError("Missing parameter for attribute name");
        path = pathOf(takeFirst());
    }
    const std::string test = rest.positional.empty() ? "" : str(takeFirst());
    std::vector<Value> out;
    for (Value& item : itemsOf(value)) {
        runtime.charge(1);
        const Value subject = byAttribute ? follow(runtime, item, path, Value::none()) : item;
        const bool passes = test.empty() ? truthy(subject) : runtime.applyTest(test, subject, rest);
        if (passes == keep) out.push_back(std::move(item));
    }
    return Value::generator(std::move(out));
}

constexpr FilterRow kListFilters[] = {
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"sum", sum},
    {"groupby", groupby},
    {"join", join},
    {"length", length},
    {"count", length},
    {"list", toList},
    {"items", itemsFilter},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"batch", batch},
    {"slice", slice},
    {"attr", attr},
    {"map", map},
    {"select", select<true, false>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<false, true>},
};

}  // namespace

std::span<const FilterRow> listFilters() {
    return kListFilters;
}

}  // namespace colibri::jinja
