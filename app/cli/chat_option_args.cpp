// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/sampling_args.h"
#include "engine/text/template_args.h"

namespace colibri::cli {

void ChatOptionArgs::addTo(CLI::App& verb, const char* only) {
    CLI::Option* options[] = {
        verb.add_option("--template-arg", templateArgs,
                        "Variable of the chat template, e.g. enable_thinking=false; the value is "
                        "JSON; repeatable")
            ->type_name("NAME=JSON"),
        verb.add_option("--reasoning-effort", reasoningEffort,
                        "Reasoning effort, if the template supports it: low, medium, high"),
        verb.add_flag("--special-in-messages", specialInMessages,
                      "Treat control tokens in messages as tokens instead of plain text")};
    for (CLI::Option* option : options) {
        if (only) option->needs(only);
    }
}

Result<ChatOptions> ChatOptionArgs::options() const {
    ChatOptions out;
    out.specialInMessages = specialInMessages;
    if (!reasoningEffort.empty()) out.templateArgs["reasoning_effort"] = reasoningEffort;
    for (const std::string& arg : templateArgs) COLIBRI_TRY(addTemplateArg(arg, out.templateArgs));
    COLIBRI_TRY(checkTemplateArgs(out.templateArgs));
    return out;
}

}  // namespace colibri::cli
