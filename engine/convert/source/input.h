// SPDX-License-Identifier: Apache-2.0
// A checkpoint's file, read in places. What the page cache holds is taken from there; long
// stretches that it does not hold are read past it (O_DIRECT): nobody reads them twice, and on the
// way through the cache they cost more than encoding them and push out what other programs keep
// there.
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

    // As File::readAt; from any thread.
    Status readAt(int64_t offset, std::span<std::byte> out) const;

private:
    InputFile(File file, File direct, int64_t size)
        : m_file(std::move(file)), m_direct(std::move(direct)), m_size(size) {}
    bool cached(int64_t offset, size_t bytes) const;  // all of it; also when that is not known
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
