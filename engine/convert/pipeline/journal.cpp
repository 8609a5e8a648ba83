// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/hasher.h"
#include "engine/base/json_fields.h"

namespace colibri {

namespace {

constexpr const char* kName = "convert.journal";
constexpr int64_t kLimit = 64 << 20;

std::string checkSum(std::string_view line) {
    return hexHash(XXH3_64bits(line.data(), line.size()));
}

}  // namespace

bool Journal::existsIn(const std::filesystem::path& folder) {
    std::error_code error;
    return std::filesystem::exists(folder / kName, error);
}

Status Journal::removeOthers(const std::filesystem::path& folder) {
    std::error_code error;
    std::vector<std::filesystem::path> others;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
        if (it->path().filename() != kName) others.push_back(it->path());
    }
    for (const std::filesystem::path& path : others) {
        if (!error) std::filesystem::remove_all(path, error);
    }
    return error ? systemError("cannot empty", folder, error.value()) : Status();
}

Result<Journal> Journal::open(const std::filesystem::path& folder) {
    std::filesystem::path path = folder / kName;
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return systemError("cannot create", path, errno);
    Journal journal(fd, path);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return Status(Code::Busy,
                      folder.string() + ": another conversion is writing to this folder",
                      "Wait for it to end, or choose another target");
    }
    Result<std::string> text = readTextFile(path, kLimit);
    if (!text) return text.status();
    journal.parse(*text);
    return journal;
}

Journal::Journal(Journal&& other) noexcept
    : m_fd(std::exchange(other.m_fd, -1)),
      m_path(std::move(other.m_path)),
      m_key(std::move(other.m_key)),
      m_end(other.m_end),
      m_units(std::move(other.m_units)) {}

Journal::~Journal() {
    if (m_fd >= 0) ::close(m_fd);  // also releases the lock
}

// Stops at the first incomplete or changed line, because later lines may have been written out of
// order.
void Journal::parse(const std::string& text) {
    size_t at = 0;
    while (at < text.size()) {
        size_t end = text.find('\n', at);
        if (end == std::string::npos || end - at < 18) return;
        std::string line = text.substr(at, end - at - 17);
        if (text[end - 17] != ' ' || text.substr(end - 16, 16) != checkSum(line)) return;
        std::istringstream words(line);
        std::string kind;
        words >> kind;
        if (kind == "key") {
            words >> m_key;
        } else {
            int64_t index = -1;
            words >> index;
            std::vector<uint64_t> hashes;
            for (std::string hex; words >> hex;) hashes.push_back(parseHexHash(hex).value_or(0));
            m_units[{kind, index}] = std::move(hashes);
        }
        at = end + 1;
        m_end = int64_t(at);
    }
}

Status Journal::append(const std::string& line) {
    std::string text = line + " " + checkSum(line) + "\n";
    size_t done = 0;
    while (done < text.size()) {
        ssize_t n = ::pwrite(m_fd, text.data() + done, text.size() - done, m_end + int64_t(done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return systemError("cannot write", m_path, n < 0 ? errno : ENOSPC);
        done += size_t(n);
    }
    m_end += int64_t(text.size());
    return {};
}

Status Journal::restart(const std::string& key) {
    if (::ftruncate(m_fd, 0) != 0) return systemError("cannot write", m_path, errno);
    m_end = 0;
    m_units.clear();
    m_key = key;
    return append("key " + key);
}

const std::vector<uint64_t>* Journal::find(const std::string& kind, int64_t index) const {
    auto it = m_units.find({kind, index});
    return it == m_units.end() ? nullptr : &it->second;
}

Status Journal::record(const std::string& kind, int64_t index,
                       const std::vector<uint64_t>& hashes) {
    std::string line = kind + " " + std::to_string(index);
    for (uint64_t hash : hashes) line += " " + hexHash(hash);
    COLIBRI_TRY(append(line));
    m_units[{kind, index}] = hashes;
    return {};
}

Status Journal::sync() {
    if (::fdatasync(m_fd) != 0) return systemError("cannot write", m_path, errno);
    return {};
}

void Journal::removeFrom(const std::filesystem::path& folder) {
    ::unlink((folder / kName).c_str());
}

}  // namespace colibri
