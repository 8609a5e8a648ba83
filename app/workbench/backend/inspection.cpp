// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/inspection.h"

#include <unistd.h>

#include <system_error>
#include <vector>

#include "app/workbench/backend/session_folder.h"
#include "app/workbench/platform/text.h"
#include "engine/base/machine.h"
#include "engine/convert/source/locate.h"

namespace colibri::ui {
namespace {

namespace fs = std::filesystem;

Status cancelled() {
    return Status(Code::Cancelled, "Opening was cancelled");
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

// Folders to search for conversions of a checkpoint.
std::vector<fs::path> targetFolders(const fs::path& checkpoint) {
    const fs::path ours = cacheDirectory() / "models";
    // Nothing is written to the cache of other programs.
    if (!hubFolder(checkpoint).empty()) return {ours, ours};
    return {fs::absolute(checkpoint).lexically_normal().parent_path(), ours};
}

std::string targetStem(const fs::path& checkpoint) {
    if (const std::string name = hubName(checkpoint); !name.empty()) {
        return name.substr(name.rfind('/') + 1) + "-";
    }
    const fs::path path = fs::absolute(checkpoint).lexically_normal();
    std::error_code error;
    return (fs::is_directory(path, error) ? path.filename() : path.stem()).string() + "-";
}

// The newest conversion of a checkpoint with this fingerprint; empty: none.
fs::path earlierConversion(const fs::path& checkpoint, const std::string& fingerprint) {
    const std::string stem = targetStem(checkpoint);
    fs::path best;
    fs::file_time_type newest;
    for (const fs::path& folder : targetFolders(checkpoint)) {
        std::error_code error;
        for (fs::directory_iterator it(folder, error), end; !error && it != end;
             it.increment(error)) {
            if (!it->path().filename().string().starts_with(stem)) continue;
            const fs::path model = it->path() / "model.json";
            if (!fs::is_regular_file(model, error)) continue;
            const auto time = fs::last_write_time(model, error);
            if (!best.empty() && time <= newest) continue;
            const auto info = openContainer(it->path());
            if (!info || info->fingerprint != fingerprint) continue;
            best = it->path();
            newest = time;
        }
    }
    return best;
}

Result<Inspection> inspectContainer(const fs::path& path, const CancelFlag* cancel) {
    Inspection result;
    result.path = path;
    auto info = openContainer(path);
    if (!info) return info.status();
    result.container = std::move(*info);
    if (cancel && cancel->load()) return cancelled();
    const TextProblems problems = textProblems(result.container);
    result.tokenizerProblem = str(problems.tokenizer);
    result.templateProblem = str(problems.chatTemplate);
    result.calibration = keptCalibration(result.container);
    if (!result.calibration) result.calibration = newestCalibration();
    result.files = countFiles(path);
    return result;
}

}  // namespace

fs::path conversionTarget(const fs::path& checkpoint, DType type) {
    const std::string name = targetStem(checkpoint) + std::string(dtypeName(type));
    const std::vector<fs::path> folders = targetFolders(checkpoint);
    if (access(folders[0].c_str(), W_OK) == 0) return folders[0] / name;
    std::error_code ignored;  // the conversion reports the error
    fs::create_directories(folders[1], ignored);
    return folders[1] / name;
}

Result<Inspection> inspectPath(const fs::path& given, const CancelFlag* cancel) {
    Inspection result;
    result.path = given;
    std::error_code error;
    if (!fs::exists(given, error)) {
        return Status(Code::BadInput, given.string() + ": no such file or folder",
                      "It may have been moved or deleted; choose its new path");
    }
    if (given.extension() == "." + kSessionSuffix.toStdString()) {
        auto session = openSessionFile(given);
        if (!session) return session.status();
        result.kind = Inspection::Kind::Session;
        result.session = std::move(*session);
        return result;
    }
    // A model.json or config.json stands for its folder.
    if (given.filename() == "model.json" || given.filename() == "config.json")
        result.path = given.parent_path();
    const auto kind = sourceKindOf(result.path);
    if (!kind) return notASource(result.path);
    if (*kind == SourceKind::Container) return inspectContainer(result.path, cancel);
    auto source = inspectSource(result.path);
    if (!source) return source.status();
    if (cancel && cancel->load()) return cancelled();
    if (const fs::path done = earlierConversion(result.path, source->fingerprint); !done.empty()) {
        if (auto container = inspectContainer(done, cancel)) {
            container->convertedFrom = result.path;
            return container;
        }
    }
    result.kind = Inspection::Kind::Checkpoint;
    result.tokenizerProblem = str(source->tokenizerProblem);
    result.templateProblem = str(source->templateProblem);
    result.container = std::move(source->planned);
    result.source = std::move(*source);
    result.calibration = newestCalibration();
    result.files = int(result.source.files);
    return result;
}

Result<SessionTotals> readTotals(const fs::path& path) {
    auto summary = readSessionSummary(path);
    if (!summary) return summary.status();
    auto details = readSessionDetails(path);
    if (!details) return details.status();
    return SessionTotals{std::move(*summary), std::move(*details)};
}

}  // namespace colibri::ui
