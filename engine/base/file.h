// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, positional reads, atomic replacement. Every error names the path, the byte
// offset if relevant, and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/status.h"

namespace colibri {

// Status of a failed system call: NoSpace for a full disk or quota, BadInput for a missing file,
// else IoError. `what`: "cannot open", "cannot read", ...
Status systemError(std::string_view what, const std::filesystem::path& path, int error);

// The whole file as bytes; BadInput if larger than `limit`.
Result<std::string> readTextFile(const std::filesystem::path& path, int64_t limit = 256 << 20);

// Writes a temporary sibling and renames it: the file has either the old or the new content.
Status writeFileAtomically(const std::filesystem::path& path, std::string_view content);

// A file descriptor with one owner.
class File {
public:
    File() = default;
    File(File&& other) noexcept { *this = std::move(other); }
    File& operator=(File&& other) noexcept;
    ~File();

    enum class Mode { Read, ReadDirect, Create };  // Create: new file, truncated, read and write
    // ReadDirect falls back to a buffered descriptor if the file system refuses O_DIRECT;
    // see direct().
    static Result<File> open(const std::filesystem::path& path, Mode mode);

    int fd() const { return m_fd; }
    bool direct() const { return m_direct; }
    const std::filesystem::path& path() const { return m_path; }
    Result<int64_t> size() const;
    // Fills `out` from `offset`, repeating short reads; the end of the file is an error with its
    // byte.
    Status readAt(int64_t offset, std::span<std::byte> out) const;
    Status writeAt(int64_t offset, std::span<const std::byte> data) const;
    Status sync() const;

private:
    int m_fd = -1;
    bool m_direct = false;
    std::filesystem::path m_path;
};

}  // namespace colibri
