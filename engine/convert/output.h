// SPDX-License-Identifier: Apache-2.0
// A file being written from front to back: hashed as it goes, continued after an interruption.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "engine/base/status.h"
#include "engine/model/hasher.h"

namespace colibri {

// Where tests stand in for the disk. Empty functions: the real one.
struct DiskHooks {
    std::function<int64_t(const std::filesystem::path& folder)> freeBytes;
    // Before each write; an errno refuses it, 0 lets it pass.
    std::function<int(const std::filesystem::path& file, int64_t offset)> beforeWrite;
};

// Bytes an ordinary user may still write below `folder`; negative when unknown.
int64_t freeBytes(const std::filesystem::path& folder, const DiskHooks& hooks);

class OutputFile {
public:
    // Keeps the first `keep` bytes of an existing file (0: starts anew) and appends from there.
    static Result<OutputFile> open(const std::filesystem::path& path, int64_t keep,
                                   const DiskHooks* hooks);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    int64_t position() const { return m_position; }
    Status append(std::span<const std::byte> data);
    Status padTo(int64_t position);      // zeros; part of the hash in progress
    Status sync();

    void beginHash() { m_hasher.reset(); }
    uint64_t hash() const { return m_hasher.digest(); }

private:
    OutputFile(int fd, std::filesystem::path path, const DiskHooks* hooks)
        : m_fd(fd), m_path(std::move(path)), m_hooks(hooks) {}

    int m_fd;
    std::filesystem::path m_path;
    const DiskHooks* m_hooks;
    int64_t m_position = 0, m_pushed = 0;
    Hasher m_hasher;
};

// fsync of a folder, so that names in it survive a power cut.
Status syncFolder(const std::filesystem::path& folder);

// Everything written to the folder's file system so far.
Status syncFileSystem(const std::filesystem::path& folder);

}  // namespace colibri
