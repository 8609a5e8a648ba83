// SPDX-License-Identifier: Apache-2.0
// The target of a conversion: written to a sibling folder "NAME.partial", which is renamed when
// everything is on disk.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/pipeline/journal.h"
#include "engine/convert/pipeline/output.h"

namespace colibri {

// The target as a plain path ("dir/" is "dir"). Errors: InvalidArgument (it exists, or its parent
// does not).
Result<std::filesystem::path> checkTarget(const std::filesystem::path& target);
std::filesystem::path partialFolderOf(const std::filesystem::path& target);

// Opens the partial folder of an earlier conversion, or creates it; removes the files of another
// key. Never touches a folder that another program created. Errors: InvalidArgument, Busy, IoError.
Result<Journal> enterPartial(const std::filesystem::path& partial, const std::string& key);

// The bytes that an interrupted conversion to `target` left on the disk (0 if none), and their
// removal. Errors: Busy while another process writes them, IoError.
int64_t partialBytes(const std::filesystem::path& target);
Status discardPartial(const std::filesystem::path& target);

// NoSpace if `bytes` in this many files do not fit; the message gives needed and free bytes.
Status checkSpace(const std::filesystem::path& folder, int64_t bytes, int64_t files,
                  const DiskHooks& hooks);

Status writeSmallFile(const std::filesystem::path& path, const std::string& content,
                      const DiskHooks& hooks);

// Atomically gives the container its final name. REQUIRES: every file is written and synced.
Status moveToTarget(const std::filesystem::path& partial, const std::filesystem::path& target,
                    Journal& journal);

}  // namespace colibri
