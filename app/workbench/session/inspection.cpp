// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/inspection.h"

#include <system_error>

#include "app/workbench/session/session_folder.h"
#include "engine/base/file.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace colibri::ui {
namespace {

namespace fs = std::filesystem;

Status cancelled() {
    return Status(Code::Cancelled, "Opening was cancelled");
}

void checkText(Inspection& result) {
    const fs::path& dir = result.container.dir;
    if (!result.container.hasTokenizer) {
        result.tokenizerProblem = "no tokenizer";
    } else if (const auto tokenizer = Tokenizer::load(dir); !tokenizer) {
        result.tokenizerProblem = QString::fromStdString(tokenizer.status().message());
    }
    if (!result.container.hasTemplate) {
        result.templateProblem = "no chat template";
        return;
    }
    const fs::path file = dir / "chat_template.jinja";
    const auto text = readTextFile(file, 4 << 20);
    if (!text) {
        result.templateProblem = QString::fromStdString(text.status().message());
    } else if (const auto parsed = ChatTemplate::parse(*text, file.filename().string()); !parsed) {
        result.templateProblem = QString::fromStdString(parsed.status().message());
    }
}

int countFiles(const fs::path& dir) {
    std::error_code error;
    int count = 0;
    for (fs::recursive_directory_iterator it(dir, error), end; !error && it != end;
         it.increment(error)) {
        if (it->is_regular_file(error)) ++count;
    }
    return count;
}

}  // namespace

Result<Inspection> inspectPath(const fs::path& given, const CancelFlag* cancel) {
    Inspection result;
    result.path = given;
    std::error_code error;
    if (!fs::exists(given, error)) {
        return Status(Code::BadInput, given.string() + ": there is no such file or folder",
                      "It may have been moved or deleted; choose it where it is now");
    }
    if (given.extension() == "." + kSessionSuffix.toStdString()) {
        auto summary = readSessionSummary(given);
        if (!summary) return summary.status();
        result.kind = Inspection::Kind::Session;
        result.session = std::move(*summary);
        return result;
    }
    // A model.json chosen in a file dialog, or dropped, means its folder.
    if (given.filename() == "model.json") result.path = given.parent_path();
    const auto kind = sourceKindOf(result.path);
    if (!kind) {
        return Status(Code::BadInput, result.path.string() + ": this is no model",
                      "Open a Colibri container (a folder with model.json), a folder with "
                      "config.json and safetensors, or a .gguf file");
    }
    if (*kind == SourceKind::Container) {
        auto info = openContainer(result.path);
        if (!info) return info.status();
        result.container = std::move(*info);
        if (cancel && cancel->load()) return cancelled();
        checkText(result);
        result.calibration = keptCalibration(result.container);
        if (!result.calibration) result.calibration = newestCalibration();
        result.files = countFiles(result.path);
        return result;
    }
    auto source = inspectSource(result.path);
    if (!source) return source.status();
    if (cancel && cancel->load()) return cancelled();
    auto planned = plannedContainer(result.path, std::nullopt);
    if (!planned) return planned.status();
    result.kind = Inspection::Kind::Checkpoint;
    result.source = std::move(*source);
    result.container = std::move(*planned);
    result.calibration = newestCalibration();
    result.files = int(result.source.files);
    return result;
}

}  // namespace colibri::ui
