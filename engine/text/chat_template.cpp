// SPDX-License-Identifier: Apache-2.0
#include "engine/text/chat_template.h"

#include <algorithm>
#include <span>

#include "engine/base/locale.h"
#include "engine/jinja/machine.h"
#include "engine/jinja/parser.h"
#include "engine/unicode/unicode.h"

namespace colibri {

using namespace jinja;
using nlohmann::ordered_json;

struct ChatTemplate::Impl {
    Template tree;
    std::string name;
};

namespace {

std::string withPosition(const std::string& name, Position at, const std::string& what) {
    return name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + what;
}

// A string that belongs to the template, or data.
Value stringOf(const std::string& text, bool isData) {
    return Value::string(TracedText(text::toValidUtf8(text), isData));
}

Value fromJson(const ordered_json& json, int depth, bool isData = true) {
    if (depth > kDeepestValue) throw RenderError("the input is nested too deeply");
    switch (json.type()) {
        case ordered_json::value_t::boolean:
            return Value::boolean(json.get<bool>());
        case ordered_json::value_t::number_integer:
            return Value::integer(json.get<int64_t>());
        case ordered_json::value_t::number_unsigned:
            return Value::integer(json.get<uint64_t>());
        case ordered_json::value_t::number_float:
            return Value::real(json.get<double>());
        case ordered_json::value_t::string:
            return stringOf(json.get_ref<const std::string&>(), isData);
        case ordered_json::value_t::array: {
            std::vector<Value> items;
            for (const auto& item : json) items.push_back(fromJson(item, depth + 1, isData));
            return Value::list(std::move(items));
        }
        case ordered_json::value_t::object: {
            DictObject dict;
            for (const auto& [key, item] : json.items()) {
                dict.set(stringOf(key, isData), fromJson(item, depth + 1, isData));
            }
            return Value::dict(std::move(dict));
        }
        default:
            return Value::none();
    }
}

bool isIn(std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// A template may build a control token from a usual role: "<|" + role + "|>". Other roles are data.
Value roleFromJson(const ordered_json& role) {
    constexpr std::string_view usual[] = {"system", "developer", "user", "assistant",
                                          "tool",   "function",  "model"};
    const bool isUsual = role.is_string() && isIn(usual, role.get_ref<const std::string&>());
    return fromJson(role, 1, !isUsual);
}

// A message in the form that the reference passes to templates: without null entries, and with its
// reasoning under each name that templates use.
Value messageFromJson(const ordered_json& message) {
    if (!message.is_object()) return fromJson(message, 1);
    constexpr const char* names[] = {"reasoning_content", "thinking", "reasoning"};
    const ordered_json* reasoning = nullptr;
    for (const char* name : names) {
        if (!reasoning && message.contains(name) && !message[name].is_null())
            reasoning = &message[name];
    }
    DictObject dict;
    if (reasoning) dict.set(Value::string("thinking"), fromJson(*reasoning, 1));
    for (const auto& [key, item] : message.items()) {
        if (item.is_null()) continue;
        dict.set(stringOf(key, true), key == "role" ? roleFromJson(item) : fromJson(item, 1));
    }
    if (reasoning) dict.set(Value::string("reasoning_content"), fromJson(*reasoning, 1));
    return Value::dict(std::move(dict));
}

// The variables of a template. Names are views into `context`, which must outlive the scope.
ScopePtr rootScope(const ordered_json& context) {
    const auto root = std::make_shared<Scope>();
    root->set("tools", Value::none());
    root->set("documents", Value::none());
    root->set("add_generation_prompt", Value::boolean(false));
    for (auto it = context.begin(); it != context.end(); ++it) {
        if (it.key() != "messages" || !it->is_array()) {
            root->set(it.key(), fromJson(*it, 0, !isIn(kTemplateTokens, it.key())));
            continue;
        }
        if (it->empty()) throw RenderError("the conversation has no messages");
        std::vector<Value> messages;
        for (const auto& message : *it) messages.push_back(messageFromJson(message));
        root->set("messages", Value::list(std::move(messages)));
    }
    return root;
}

}  // namespace

Status checkTemplateArgs(const ordered_json& args) {
    if (args.is_null()) return {};
    if (!args.is_object()) {
        return Status(Code::InvalidArgument, "the template arguments are not a JSON object",
                      "Give names and values: {\"enable_thinking\": false}");
    }
    constexpr std::string_view ofChat[] = {"messages", "add_generation_prompt"};
    for (const auto& [name, value] : args.items()) {
        if (!isIn(ofChat, name) && !isIn(kTemplateTokens, name)) continue;
        return Status(Code::InvalidArgument,
                      "the template argument \"" + name + "\" is set by the chat itself",
                      "Omit it");
    }
    return {};
}

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view source,
                                                          const std::string& name) {
    auto impl = std::make_unique<Impl>();
    impl->name = name;
    const NeutralLocale neutral;  // templates need the "C" number format
    try {
        impl->tree = parseTemplate(text::toValidUtf8(source));
    } catch (const SyntaxError& error) {
        return Status(Code::BadInput, withPosition(name, error.at, error.what()));
    } catch (const std::bad_alloc&) {
        return Status(Code::OutOfMemory, name + ": no memory for this template");
    }
    std::unique_ptr<ChatTemplate> out(new ChatTemplate);
    out->m_impl = std::move(impl);
    return {std::move(out)};
}

Result<std::string> ChatTemplate::render(const ordered_json& context,
                                         const RenderOptions& options) const {
    Result<TracedText> traced = renderTraced(context, options);
    if (!traced) return traced.status();
    return std::move(traced->text);
}

Result<TracedText> ChatTemplate::renderTraced(const ordered_json& context,
                                              const RenderOptions& options) const {
    if (!context.is_object()) {
        return Status(Code::BadInput,
                      m_impl->name + ": the input is not a JSON object with \"messages\"");
    }
    const NeutralLocale neutral;
    Runtime runtime(m_impl->tree, Limits(), options.now);
    try {
        return runtime.render(rootScope(context));
    } catch (const RenderError& error) {
        return Status(Code::BadInput, withPosition(m_impl->name, runtime.where(), error.what()));
    } catch (const std::bad_alloc&) {
        return Status(Code::OutOfMemory, m_impl->name + ": no memory to render this template");
    }
}

}  // namespace colibri
