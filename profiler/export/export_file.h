// SPDX-License-Identifier: Apache-2.0
// The file of an export: written in blocks to a temporary file beside its target. Only publish()
// gives it its name; without it the destructor deletes the temporary file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/base/file.h"
#include "engine/base/status.h"

namespace colibri {

// Not thread-safe.
class ExportFile {
public:
    // Errors: InvalidArgument if the target exists; those of systemError().
    static Result<ExportFile> create(const std::filesystem::path& target);
    ExportFile(ExportFile&& other) noexcept;
    ExportFile& operator=(ExportFile&&) = delete;
    ~ExportFile();

    Status append(std::string_view bytes) {
        m_block += bytes;
        return m_block.size() < kBlockBytes ? Status() : flush();
    }
    int64_t bytes() const { return m_written + int64_t(m_block.size()); }
    // Writes the rest, waits for the disk and gives the file its name, which must still be unused.
    Status publish();

private:
    static constexpr size_t kBlockBytes = 1 << 20;

    ExportFile(std::filesystem::path target, std::filesystem::path temporary, File file);
    Status flush();

    std::filesystem::path m_target;
    std::filesystem::path m_temporary;  // empty: nothing to delete
    File m_file;
    std::string m_block;
    int64_t m_written = 0;
};

}  // namespace colibri
