// SPDX-License-Identifier: Apache-2.0
// A file that is written sequentially: hashed while it is written, and continued after an
// interruption. Writes bypass the page cache if the file system allows it (O_DIRECT): a model may
// be larger than memory, it is not read back soon, and copying it to the cache costs more than
// packing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "engine/base/hasher.h"
#include "engine/base/status.h"

namespace colibri {

// Hooks by which tests simulate the disk. Empty functions: the real disk.
struct DiskHooks {
    std::function<int64_t(const std::filesystem::path& folder)> freeBytes;
    // Called before each write; an errno makes it fail, 0 allows it.
    std::function<int(const std::filesystem::path& file, int64_t offset)> beforeWrite;
};

// Bytes that an ordinary user may still write to `folder`; negative if unknown.
int64_t freeBytes(const std::filesystem::path& folder, const DiskHooks& hooks);

class OutputFile {
public:
    // Keeps the first `keep` bytes of an existing file (0: starts from scratch) and appends to
    // them.
    static Result<OutputFile> open(const std::filesystem::path& path, int64_t keep,
                                   const DiskHooks* hooks);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();  // what was not flushed is lost

    int64_t position() const { return m_position; }
    // Collects data in blocks of a few MiB and writes one while the next is filled: an error may
    // come from an earlier call.
    Status append(std::span<const std::byte> data);
    Status padTo(int64_t position);  // with zeros, which are part of the current hash
    Status flush();                  // writes all data to the file
    Status sync();                   // flush, then to the disk

    void beginHash() { m_hasher.reset(); }
    uint64_t hash() const { return m_hasher.digest(); }

private:
    struct Free {
        void operator()(std::byte* block) const;
    };
    using Block = std::unique_ptr<std::byte[], Free>;
    static Block newBlock();
    struct Target;  // the open file, shared with the write in flight

    OutputFile(std::shared_ptr<Target> target, const DiskHooks* hooks);
    Status resume(int64_t keep);
    Status finishWrite();  // of the write in flight

    std::shared_ptr<Target> m_target;
    const DiskHooks* m_hooks;
    int64_t m_position = 0;
    int64_t m_start = 0, m_fill = 0;  // of m_block: its offset in the file, bytes in it
    Block m_block, m_written;
    std::future<Status> m_writing;  // of m_written
    Hasher m_hasher;
};

// fsync of a folder, so that its names survive a power failure.
Status syncFolder(const std::filesystem::path& folder);

// Syncs everything written to the folder's file system.
Status syncFileSystem(const std::filesystem::path& folder);

}  // namespace colibri
