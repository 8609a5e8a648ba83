// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"
#include "engine/base/file.h"
#include "engine/text/tokenizer.h"

namespace colibri::cli {

namespace {

struct EncodeArgs {
    std::string path, text, file;
    bool noSpecial = false, bos = false, json = false;
    CLI::Option *textOption = nullptr, *fileOption = nullptr;
};

int encode(const EncodeArgs& args) {
    std::string text = args.text;
    if (args.fileOption->count()) {
        Result<std::string> read = readInput(args.file);
        if (!read.ok()) return fail(read.status());
        text = std::move(*read);
    }
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::load(args.path);
    if (!tokenizer.ok()) return fail(tokenizer.status());
    return outJson(
        {{"ids", (*tokenizer)->encode(text, {.special = !args.noSpecial, .bos = args.bos})}});
}

struct DecodeArgs {
    std::string path, ids;
    bool skipSpecial = false, json = false;
};

int decode(const DecodeArgs& args) {
    Result<std::vector<int32_t>> ids = parseIds(args.ids);
    if (!ids.ok()) return fail(ids.status());
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::load(args.path);
    if (!tokenizer.ok()) return fail(tokenizer.status());
    for (const int32_t id : *ids) {
        if (id >= 0 && id < (*tokenizer)->vocabSize()) continue;
        return fail({Code::InvalidArgument,
                     "token " + std::to_string(id) + " is not in the vocabulary",
                     "Valid ids are 0.." + std::to_string((*tokenizer)->vocabSize() - 1)});
    }
    const std::string text = (*tokenizer)->decode(*ids, args.skipSpecial);
    if (args.json) return outJson({{"text", text}});
    return outText(text) ? kOk : kFailed;
}

}  // namespace

void addTokenize(Verbs& verbs) {
    auto args = std::make_shared<EncodeArgs>();
    CLI::App* verb = verbs.add("tokenize", "Convert text to token ids, as JSON",
                               [args] { return encode(*args); });
    verb->add_option("PATH", args->path, "Model folder or tokenizer.json")->required();
    args->textOption = verb->add_option("--text", args->text, "The text");
    args->fileOption =
        verb->add_option("--file", args->file, "Read the text from a file; - is standard input")
            ->type_name("FILE");
    args->textOption->excludes(args->fileOption);
    verb->add_flag("--no-special", args->noSpecial,
                   "Treat special tokens in the text as plain text");
    verb->add_flag("--bos", args->bos, "Add a beginning-of-sequence token, if the model has one");
    verb->add_flag("--json", args->json, "Accepted for consistency: the output is always JSON");
    verb->parse_complete_callback([args] {
        if (args->textOption->count() + args->fileOption->count() == 0) {
            throw CLI::RequiredError("--text or --file");
        }
    });
}

void addDetokenize(Verbs& verbs) {
    auto args = std::make_shared<DecodeArgs>();
    CLI::App* verb =
        verbs.add("detokenize", "Convert token ids to raw bytes", [args] { return decode(*args); });
    verb->add_option("PATH", args->path, "Model folder or tokenizer.json")->required();
    verb->add_option("--ids", args->ids, "Token ids")->type_name("1,2,3")->required();
    verb->add_flag("--skip-special", args->skipSpecial, "Omit special tokens");
    verb->add_flag("--json", args->json, "One JSON object instead of the raw bytes");
}

}  // namespace colibri::cli
