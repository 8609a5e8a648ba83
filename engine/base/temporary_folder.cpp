// SPDX-License-Identifier: Apache-2.0
#include "engine/base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>

#include "engine/base/file.h"

namespace colibri {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make(const std::string& name) {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / (name + "-XXXXXX")).string();
    if (error)
        return Status(Code::IoError, "there is no folder for temporary files",
                      "Check the variable TMPDIR");
    if (!mkdtemp(path.data())) return systemError("cannot create", path, errno);
    TemporaryFolder folder;
    folder.m_path = path;
    return folder;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!m_path.empty()) fs::remove_all(m_path, ignored);
}

}  // namespace colibri
