// SPDX-License-Identifier: Apache-2.0
// A file being written from front to back: hashed as it goes, continued after an interruption.
// It goes to the disk past the page cache where the file system allows (O_DIRECT): a model may be
// larger than memory, nobody reads it back at once, and copying it there costs more than packing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "engine/base/status.h"
#include "engine/base/hasher.h"

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
    ~OutputFile();  // what was not flushed is lost

    int64_t position() const { return m_position; }
    // Collected in blocks of a few MiB, one of which is written while the next fills: an error may
    // be that of an earlier call.
    Status append(std::span<const std::byte> data);
    Status padTo(int64_t position);  // zeros; part of the hash in progress
    Status flush();                  // all of it is in the file
    Status sync();                   // and on the disk

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
    Status settle();  // of the write in flight

    std::shared_ptr<Target> m_target;
    const DiskHooks* m_hooks;
    int64_t m_position = 0;
    int64_t m_start = 0, m_fill = 0;  // of m_block: its place in the file, bytes in it
    Block m_block, m_written;
    std::future<Status> m_writing;  // of m_written
    Hasher m_hasher;
};

// fsync of a folder, so that names in it survive a power cut.
Status syncFolder(const std::filesystem::path& folder);

// Everything written to the folder's file system so far.
Status syncFileSystem(const std::filesystem::path& folder);

}  // namespace colibri
