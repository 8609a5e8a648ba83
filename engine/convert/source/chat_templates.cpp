// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/chat_templates.h"

#include <algorithm>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/json_fields.h"
#include "engine/base/printable.h"
#include "engine/convert/source/foreign.h"
#include "engine/convert/source/source_texts.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr const char* kDefault = "default";

class Templates {
public:
    void add(const std::string& name, const std::string& text, const std::string& from) {
        const auto same = [&](const NamedTemplate& t) { return t.name == name; };
        if (std::none_of(m_all.begin(), m_all.end(), same)) m_all.push_back({name, text, from});
    }
    // Adds a text, a list of {"name", "template"}, or an object of texts by name.
    void addJson(const Json& json, const std::string& from) {
        if (json.is_string()) add(kDefault, json.get<std::string>(), from);
        if (json.is_array()) {
            for (const Json& t : json) {
                if (!t.is_object() || !t.value("template", Json()).is_string()) continue;
                const Json name = t.value("name", Json(kDefault));
                add(name.is_string() ? name.get<std::string>() : kDefault,
                    t["template"].get<std::string>(), from);
            }
        }
        if (json.is_object()) {
            for (const auto& [name, text] : json.items()) {
                if (text.is_string()) add(name, text.get<std::string>(), from);
            }
        }
    }
    bool empty() const { return m_all.empty(); }
    std::vector<NamedTemplate> take() { return std::move(m_all); }

private:
    std::vector<NamedTemplate> m_all;
};

bool contains(const std::string& name, std::string_view part) {
    return name.find(part) != std::string::npos;
}

// The index of the default template: "default", else one for chats, else one without a special
// purpose.
size_t defaultOf(const std::vector<NamedTemplate>& all) {
    const auto rank = [](const std::string& name) {
        if (name == kDefault) return 0;
        if (contains(name, "chat") || contains(name, "instruct")) return 1;
        return contains(name, "tool") || contains(name, "rag") ? 3 : 2;
    };
    const auto best = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return rank(a.name) < rank(b.name);
    });
    return size_t(best - all.begin());
}

std::string quoted(const std::string& name) {
    return "\"" + printable(name) + "\"";
}

std::string namesOf(const std::vector<NamedTemplate>& all, size_t without) {
    std::string out;
    for (size_t i = 0; i < all.size(); ++i) {
        if (i != without) out += (out.empty() ? "" : ", ") + quoted(all[i].name);
    }
    return out;
}

}  // namespace

bool isTemplateFileName(const std::string& name) {
    constexpr size_t kLongest = 100;
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), fits);
}

Result<std::vector<NamedTemplate>> hfTemplates(const fs::path& folder,
                                               const Json& tokenizerConfig) {
    Templates out;
    std::vector<std::pair<std::string, fs::path>> files;
    if (isThere(folder / "chat_template.jinja")) {
        files.emplace_back(kDefault, folder / "chat_template.jinja");
    }
    std::error_code error;
    const fs::path more = folder / kMoreTemplates;
    for (fs::directory_iterator it(more, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == ".jinja") files.emplace_back(it->path().stem(), it->path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& [name, path] : files) {
        Result<std::string> text = readSourceText(path);
        if (!text) return text.status();
        out.add(name, *text, path.lexically_relative(folder).string());
    }
    if (out.empty() && tokenizerConfig.is_object()) {
        out.addJson(tokenizerConfig.value("chat_template", Json()), "tokenizer_config.json");
    }
    const fs::path own = folder / "chat_template.json";
    if (out.empty() && isThere(own)) {
        Result<Json> json = readSourceJson(own);
        if (!json) return json.status();
        const bool wrapped = json->is_object() && json->contains("chat_template");
        out.addJson(wrapped ? (*json)["chat_template"] : *json, own.filename().string());
    }
    return out.take();
}

Result<std::optional<std::string>> chooseTemplate(const std::vector<NamedTemplate>& all,
                                                  const std::string& choice,
                                                  std::vector<std::string>& notes) {
    if (!choice.empty()) {
        for (const NamedTemplate& t : all) {
            if (t.name != choice) continue;
            notes.push_back("Chat template: " + quoted(t.name) + " of " + printable(t.from) +
                            ", as requested");
            return std::optional(t.text);
        }
        std::error_code error;
        if (!fs::is_regular_file(choice, error)) {
            return Status(Code::InvalidArgument,
                          "\"" + choice + "\" is neither a chat template of this model nor a file",
                          all.empty() ? "The model has none; give a file"
                                      : "It has " + namesOf(all, all.size()));
        }
        Result<std::string> text = readSourceText(choice);
        if (!text) return text.status();
        notes.push_back("Chat template: " + choice + ", as requested");
        return std::optional(std::move(*text));
    }
    if (all.empty()) return std::optional<std::string>();
    const size_t i = defaultOf(all);
    const NamedTemplate& t = all[i];
    if (all.size() > 1) {
        notes.push_back("Chat template: " + quoted(t.name) + " of " + printable(t.from) +
                        "; there are also " + namesOf(all, i) +
                        " (choose another with convert --chat-template NAME)");
    } else if (t.name != kDefault) {
        notes.push_back("Chat template: " + quoted(t.name) + " of " + printable(t.from) +
                        ", the only one");
    }
    return std::optional(t.text);
}

}  // namespace colibri
