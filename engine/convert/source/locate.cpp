// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/locate.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/printable.h"
#include "engine/base/readable.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kHubPrefix = "models--";
constexpr const char* kSnapshots = "snapshots";
constexpr size_t kShownNames = 20;

bool isHubFolder(const fs::path& path) {
    std::error_code error;
    return fs::is_directory(path / kSnapshots, error) &&
           (fs::is_directory(path / "refs", error) || fs::is_directory(path / "blobs", error));
}

std::vector<fs::path> entriesOf(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        out.push_back(it->path());
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::string listed(const std::vector<fs::path>& paths) {
    std::string out;
    for (size_t i = 0; i < paths.size() && i < kShownNames; ++i) {
        out += "\n  " + printable(paths[i].filename().string());
    }
    return paths.size() > kShownNames ? out + "\n  ..." : out;
}

// The snapshot of a cache folder: that of refs/main, else the newest.
Result<Located> snapshotOf(const fs::path& folder) {
    std::error_code error;
    const fs::path snapshots = folder / kSnapshots;
    Result<std::string> commit = readTextFile(folder / "refs" / "main", 4096);
    if (commit) {
        while (!commit->empty() && uint8_t(commit->back()) <= ' ') commit->pop_back();
        const bool plain = !commit->empty() && commit->find('/') == std::string::npos &&
                           commit->find("..") == std::string::npos;
        if (plain && fs::is_directory(snapshots / *commit, error)) {
            return Located{snapshots / *commit, {}};
        }
    }
    fs::path newest;
    size_t count = 0;
    for (const fs::path& entry : entriesOf(snapshots)) {
        if (!fs::is_directory(entry, error)) continue;
        ++count;
        if (newest.empty() ||
            fs::last_write_time(entry, error) > fs::last_write_time(newest, error)) {
            newest = entry;
        }
    }
    if (newest.empty()) {
        COLIBRI_TRY(checkReadable(snapshots));
        COLIBRI_TRY(unfinishedDownload(folder));
        return Status(
            Code::BadInput,
            printable(folder.string()) + ": a folder of the Hugging Face cache without a snapshot",
            "Download the model again");
    }
    Located out{newest, {}};
    if (count > 1) {
        out.notes.push_back("refs/main does not name an existing snapshot: the newest of " +
                            std::to_string(count) + " is used, " + newest.filename().string());
    }
    return out;
}

// "name-00001-of-00003" -> "name", which is equal for all parts of a model.
std::string withoutPart(const std::string& stem) {
    const size_t of = stem.rfind("-of-");
    const size_t dash = of == std::string::npos || of == 0 ? of : stem.rfind('-', of - 1);
    return dash == std::string::npos ? stem : stem.substr(0, dash);
}

// The only GGUF model of a folder; empty: there is none. A projector (mmproj) does not count.
Result<fs::path> ggufIn(const fs::path& folder) {
    std::map<std::string, fs::path> models;
    for (const fs::path& entry : entriesOf(folder)) {
        const std::string stem = entry.stem().string();
        if (entry.extension() != ".gguf" || stem.find("mmproj") != std::string::npos) continue;
        models.emplace(withoutPart(stem), entry);
    }
    if (models.empty()) return fs::path();
    if (models.size() == 1) return models.begin()->second;
    std::vector<fs::path> names;
    for (const auto& [name, path] : models) names.push_back(path);
    return Status(Code::BadInput,
                  printable(folder.string()) + ": " + std::to_string(models.size()) +
                      " GGUF models are in this folder" + listed(names),
                  "Give the path of one of them");
}

}  // namespace

fs::path hubFolder(const fs::path& path) {
    std::error_code error;
    fs::path at = fs::absolute(path, error).lexically_normal();
    if (!at.has_filename()) at = at.parent_path();
    for (; at.has_relative_path(); at = at.parent_path()) {
        if (at.filename().string().starts_with(kHubPrefix) && isHubFolder(at)) return at;
    }
    return {};
}

std::string hubName(const fs::path& path) {
    const fs::path folder = hubFolder(path);
    if (folder.empty()) return {};
    std::string name = folder.filename().string().substr(kHubPrefix.size());
    for (size_t at = 0; (at = name.find("--", at)) != std::string::npos; ++at) {
        name.replace(at, 2, "/");
    }
    return name;
}

Status unfinishedDownload(const fs::path& path) {
    std::error_code error;
    const fs::path hub = hubFolder(path);
    const fs::path local = fs::is_directory(path, error) ? path : path.parent_path();
    std::vector<fs::path> files;
    const auto look = [&](const fs::path& folder, bool links) {
        for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
             it.increment(error)) {
            const fs::path& file = it->path();
            const bool dangling = links && it->is_symlink(error) && !fs::exists(file, error);
            if (dangling || file.extension() == ".incomplete") files.push_back(file);
            error.clear();
        }
    };
    if (!hub.empty()) {
        look(hub / "blobs", false);
        look(hub / kSnapshots, true);
    } else {
        look(local / ".cache" / "huggingface" / "download", false);
    }
    if (files.empty()) return {};
    std::sort(files.begin(), files.end());
    const std::string name = hubName(path);
    return Status(Code::BadInput,
                  printable((hub.empty() ? local : hub).string()) +
                      ": the download is incomplete; still missing" + listed(files),
                  "Finish the download" +
                      (name.empty() ? std::string() : ": hf download " + printable(name)));
}

Result<Located> locateSource(const fs::path& path) {
    std::error_code error;
    Located out{path, {}};
    if (!fs::is_directory(path, error)) return out;
    if (isHubFolder(path)) {
        Result<Located> snapshot = snapshotOf(path);
        if (!snapshot) return snapshot.status();
        out = std::move(*snapshot);
    }
    for (const char* file : {"config.json", "adapter_config.json", "model.json"}) {
        if (fs::exists(fs::symlink_status(out.path / file, error))) return out;
    }
    Result<fs::path> gguf = ggufIn(out.path);
    if (!gguf) return gguf.status();
    if (!gguf->empty()) out.path = *gguf;
    std::vector<fs::path> models;
    for (const fs::path& entry : entriesOf(out.path)) {
        if (entry.filename().string().starts_with(kHubPrefix)) models.push_back(entry);
    }
    if (models.size() == 1) return locateSource(models.front());
    if (!models.empty()) {
        return Status(Code::BadInput,
                      printable(path.string()) + ": a Hugging Face cache with several models" +
                          listed(models),
                      "Give the path of one of them");
    }
    return out;
}

}  // namespace colibri
