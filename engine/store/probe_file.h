// SPDX-License-Identifier: Apache-2.0
// A large file on the disk of a folder, to measure reads from that disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

class ProbeFile {
public:
    // The largest file in the folder (two levels); if none is large enough, a temporary one of 128
    // MiB, which the destructor deletes. Errors: BadInput (not a folder), those of writing.
    static Result<ProbeFile> in(const std::filesystem::path& folder);
    ProbeFile(ProbeFile&& other) noexcept
        : m_path(std::move(other.m_path)), m_temporary(std::exchange(other.m_temporary, false)) {}
    ProbeFile& operator=(ProbeFile&&) = delete;
    ~ProbeFile();

    // The file as the experts of one layer, in records of so many bytes (a multiple of 4096).
    Result<ContainerInfo> inRecords(int64_t recordBytes) const;

private:
    ProbeFile(std::filesystem::path path, bool temporary)
        : m_path(std::move(path)), m_temporary(temporary) {}
    std::filesystem::path m_path;
    bool m_temporary;
};

}  // namespace colibri
