// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/export_file.h"

#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "engine/base/printable.h"

namespace colibri {
namespace {

Status targetExists(const std::filesystem::path& target) {
    return {Code::InvalidArgument, printable(target.string()) + " exists",
            "Choose another name; exports never overwrite a file"};
}

}  // namespace

ExportFile::ExportFile(std::filesystem::path target, std::filesystem::path temporary, File file)
    : m_target(std::move(target)), m_temporary(std::move(temporary)), m_file(std::move(file)) {
    m_block.reserve(kBlockBytes + (1 << 16));
}

ExportFile::ExportFile(ExportFile&& other) noexcept
    : m_target(std::move(other.m_target)),
      m_temporary(std::exchange(other.m_temporary, {})),
      m_file(std::move(other.m_file)),
      m_block(std::move(other.m_block)),
      m_written(other.m_written) {}

ExportFile::~ExportFile() {
    if (!m_temporary.empty()) ::unlink(m_temporary.c_str());
}

Result<ExportFile> ExportFile::create(const std::filesystem::path& target) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(target, error))) {
        return targetExists(target);
    }
    const std::filesystem::path temporary = target.string() + ".new-" + std::to_string(::getpid());
    auto file = File::open(temporary, File::Mode::Create);
    if (!file) return file.status();
    return ExportFile(target, temporary, std::move(*file));
}

Status ExportFile::flush() {
    COLIBRI_TRY(m_file.writeAt(m_written, std::as_bytes(std::span(m_block))));
    m_written += int64_t(m_block.size());
    m_block.clear();
    return {};
}

Status ExportFile::publish() {
    COLIBRI_TRY(flush());
    COLIBRI_TRY(m_file.sync());
    // A link fails if the name is taken, where a rename would replace the other file.
    if (::link(m_temporary.c_str(), m_target.c_str()) == 0) return {};
    if (errno == EEXIST) return targetExists(m_target);
    // Some file systems have no hard links.
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(m_target, error))) {
        return targetExists(m_target);
    }
    if (::rename(m_temporary.c_str(), m_target.c_str()) != 0) {
        return systemError("cannot create", m_target, errno);
    }
    m_temporary.clear();
    return {};
}

}  // namespace colibri
