// SPDX-License-Identifier: Apache-2.0
// A checkpoint's file, read at given offsets. Data in the page cache is taken from there. Long
// ranges outside it are read with O_DIRECT: they are read only once, and reading them through the
// cache costs more than encoding them and evicts the data of other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "engine/base/file.h"
#include "engine/base/status.h"

namespace colibri {

class InputFile {
public:
    static Result<InputFile> open(const std::filesystem::path& path);

    // Like File::readAt; any thread.
    Status readAt(int64_t offset, std::span<std::byte> out) const;

private:
    InputFile(File file, File direct, int64_t size)
        : m_file(std::move(file)), m_direct(std::move(direct)), m_size(size) {}
    bool cached(int64_t offset, size_t bytes) const;  // all of it; true if unknown
    size_t readDirect(int64_t offset, std::span<std::byte> out) const;

    struct Unmap {
        size_t bytes;
        void operator()(std::byte* start) const;
    };

    File m_file, m_direct;
    int64_t m_size;  // when it was opened
    std::unique_ptr<std::byte[], Unmap> m_map;
};

}  // namespace colibri
