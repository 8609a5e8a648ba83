// SPDX-License-Identifier: Apache-2.0
// A container on its way: written into a sibling folder "NAME.partial", which gets its final name
// when everything is on disk.
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

// A partial folder of ours, or a new one; what another key has left in it is removed. Never
// touches a folder that something else made. Errors: InvalidArgument, Busy, IoError.
Result<Journal> enterPartial(const std::filesystem::path& partial, const std::string& key);

// What an interrupted conversion into `target` has left on the disk: its bytes, 0 when there is
// nothing; and its removal. Errors: Busy while another process writes it, IoError.
int64_t partialBytes(const std::filesystem::path& target);
Status discardPartial(const std::filesystem::path& target);

// NoSpace when `bytes` in so many files do not fit; both numbers are told.
Status checkSpace(const std::filesystem::path& folder, int64_t bytes, int64_t files,
                  const DiskHooks& hooks);

Status writeSmallFile(const std::filesystem::path& path, const std::string& content,
                      const DiskHooks& hooks);

// From here on the container is there or it is not. REQUIRES: every file is written and synced.
Status putInPlace(const std::filesystem::path& partial, const std::filesystem::path& target,
                  Journal& journal);

}  // namespace colibri
