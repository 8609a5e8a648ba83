// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/target.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/model/layout.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

// The additional space of a file: the unused part of its last block. Also of the folder and the
// journal.
constexpr int64_t kFileBlockBytes = 4096;

}  // namespace

Result<fs::path> checkTarget(const fs::path& given) {
    fs::path target = given.lexically_normal();
    if (!target.has_filename()) target = target.parent_path();  // "dir/"
    std::error_code error;
    if (target.filename().empty()) {
        return Status(Code::InvalidArgument, "The target needs a folder name");
    }
    if (fs::exists(fs::symlink_status(target, error))) {
        return Status(Code::InvalidArgument, target.string() + " already exists",
                      "Choose another target, or remove it");
    }
    fs::path parent = target.parent_path();
    if (!parent.empty() && !fs::is_directory(parent, error)) {
        return Status(Code::InvalidArgument, parent.string() + ": no such folder",
                      "Create it first");
    }
    return target;
}

fs::path partialFolderOf(const fs::path& target) {
    fs::path partial = target;
    partial += ".partial";
    return partial;
}

int64_t partialBytes(const fs::path& target) {
    const fs::path partial = partialFolderOf(target);
    std::error_code error, ignored;
    int64_t bytes = 0;
    if (!Journal::existsIn(partial)) return 0;
    for (fs::recursive_directory_iterator it(partial, error), end; !error && it != end;
         it.increment(error)) {
        if (it->is_regular_file(ignored)) bytes += int64_t(it->file_size(ignored));
    }
    return bytes;
}

Status discardPartial(const fs::path& target) {
    const fs::path partial = partialFolderOf(target);
    if (!Journal::existsIn(partial)) return {};
    Result<Journal> journal = Journal::open(partial);  // Busy while another process writes to it
    if (!journal) return journal.status();
    std::error_code error;
    fs::remove_all(partial, error);
    return error ? systemError("cannot remove", partial, error.value()) : Status();
}

Result<Journal> enterPartial(const fs::path& partial, const std::string& key) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(partial, error)) && !Journal::existsIn(partial) &&
        !(fs::is_directory(partial, error) && fs::is_empty(partial, error))) {
        return Status(Code::InvalidArgument,
                      partial.string() + " exists and is not an interrupted conversion",
                      "Move it away, or choose another target");
    }
    fs::create_directories(partial, error);
    if (error) return systemError("cannot create", partial, error.value());
    Result<Journal> journal = Journal::open(partial);
    if (!journal) return journal.status();
    if (journal->key() != key) {
        // With another source or other options the existing files are useless.
        COLIBRI_TRY(Journal::removeOthers(partial));
        COLIBRI_TRY(journal->restart(key));
    }
    return journal;
}

Status checkSpace(const fs::path& folder, int64_t bytes, int64_t files, const DiskHooks& hooks) {
    const int64_t needed = bytes + files * kFileBlockBytes, free = freeBytes(folder, hooks);
    if (free < 0 || needed <= free) return {};
    return Status(Code::NoSpace,
                  printable(folder.string()) + ": the model needs " + formatGiB(double(needed)) +
                      " but only " + formatGiB(double(free)) + " are free",
                  "Free some space, or choose another folder or a smaller weight type");
}

Status writeSmallFile(const fs::path& path, const std::string& content, const DiskHooks& hooks) {
    Result<OutputFile> out = OutputFile::open(path, 0, &hooks);
    if (!out) return out.status();
    COLIBRI_TRY(out->append(std::as_bytes(std::span(content))));
    return out->sync();
}

Status moveToTarget(const fs::path& partial, const fs::path& target, Journal& journal) {
    std::error_code error;
    if (fs::exists(partial / "experts", error)) COLIBRI_TRY(syncFolder(partial / "experts"));
    const fs::path parent = target.parent_path().empty() ? fs::path(".") : target.parent_path();
    if (fs::exists(target, error)) {
        return Status(Code::InvalidArgument, target.string() + " was created in the meantime",
                      "The finished model is in " + partial.string() +
                          ": move the other folder away and run the same command again");
    }
    COLIBRI_TRY(syncFolder(partial));
    if (::rename(partial.c_str(), target.c_str()) != 0) {
        return systemError("cannot create", target, errno);
    }
    journal.removeFrom(target);
    return syncFolder(parent);
}

}  // namespace colibri
