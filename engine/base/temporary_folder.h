// SPDX-License-Identifier: Apache-2.0
// A folder for temporary files.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace colibri {

// An empty folder in the system's folder for temporary files. The destructor deletes it and what it
// contains.
class TemporaryFolder {
public:
    // `name`: the beginning of its name. Errors: IoError or NoSpace with the path.
    static Result<TemporaryFolder> make(const std::string& name);
    TemporaryFolder() = default;  // no folder
    TemporaryFolder(TemporaryFolder&& other) noexcept : m_path(std::exchange(other.m_path, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
        std::swap(m_path, other.m_path);
        return *this;
    }
    ~TemporaryFolder();

    const std::filesystem::path& path() const { return m_path; }

private:
    std::filesystem::path m_path;
};

}  // namespace colibri
