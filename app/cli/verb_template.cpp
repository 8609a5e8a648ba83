// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>

#include "app/cli/cli.h"
#include "engine/base/file.h"
#include "engine/model/container.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace colibri::cli {

namespace {

namespace fs = std::filesystem;

struct TemplateArgs {
    std::string path, messages;
    bool noGenerationPrompt = false, json = false;
};

Result<Json> readContext(const TemplateArgs& args) {
    Result<std::string> text = readTextFile(args.messages);
    if (!text.ok()) return text.status();
    Json context = Json::parse(*text, nullptr, false);
    if (context.is_discarded()) {
        return Status(Code::BadInput, args.messages + ": not JSON");
    }
    if (context.is_array()) context = Json{{"messages", std::move(context)}};
    if (!context.is_object() || !context.contains("messages")) {
        return Status(Code::BadInput, args.messages + ": no \"messages\"",
                      "Write {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}]}");
    }
    if (args.noGenerationPrompt) {
        context["add_generation_prompt"] = false;
    } else if (!context.contains("add_generation_prompt")) {
        context["add_generation_prompt"] = true;
    }
    return context;
}

// Adds the special tokens of a model folder's model if the file does not name them.
void addSpecialTokens(const fs::path& folder, Json& context) {
    Result<ContainerInfo> info = openContainer(folder);
    if (!info.ok()) return;
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::load(folder);
    if (!tokenizer.ok()) return;
    const ModelConfig& c = info->config;
    if (!context.contains("bos_token") && c.bosId >= 0) {
        context["bos_token"] = (*tokenizer)->idToToken(c.bosId);
    }
    if (!context.contains("eos_token") && !c.eosIds.empty()) {
        context["eos_token"] = (*tokenizer)->idToToken(c.eosIds.front());
    }
}

int run(const TemplateArgs& args) {
    Result<Json> context = readContext(args);
    if (!context.ok()) return fail(context.status());
    fs::path path(args.path);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
        addSpecialTokens(path, *context);
        path /= "chat_template.jinja";
    }
    Result<std::string> source = readTextFile(path, 4 << 20);
    if (!source.ok()) return fail(source.status());
    Result<std::unique_ptr<ChatTemplate>> parsed =
        ChatTemplate::parse(*source, path.filename().string());
    if (!parsed.ok()) return fail(parsed.status());
    Result<std::string> text = (*parsed)->render(*context);
    if (!text.ok()) return fail(text.status());
    if (args.json) return outJson({{"text", *text}});
    return outText(*text) ? kOk : kFailed;
}

}  // namespace

void addTemplate(Verbs& verbs) {
    auto args = std::make_shared<TemplateArgs>();
    CLI::App* verb = verbs.add("template", "Render a chat template to standard output",
                               [args] { return run(*args); });
    verb->add_option("PATH", args->path, "Model folder or .jinja file")->required();
    verb->add_option("--messages", args->messages,
                     "JSON file with messages, tools and other inputs")
        ->type_name("FILE")
        ->required();
    verb->add_flag("--no-generation-prompt", args->noGenerationPrompt,
                   "Do not add the start of the assistant's turn");
    verb->add_flag("--json", args->json, "One JSON object instead of the raw text");
}

}  // namespace colibri::cli
