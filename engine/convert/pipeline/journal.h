// SPDX-License-Identifier: Apache-2.0
// The finished units of an interrupted conversion: a text file in the partial folder, one line per
// unit, each with its own checksum; an incomplete last line is ignored. The first line is the key
// (source and options): another key means another conversion.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

class Journal {
public:
    // Opens or creates it and locks it; Busy if another process converts to the same target.
    static Result<Journal> open(const std::filesystem::path& folder);
    Journal(Journal&& other) noexcept;
    Journal& operator=(Journal&&) = delete;
    ~Journal();

    static bool existsIn(const std::filesystem::path& folder);

    // Removes everything in a folder except its journal.
    static Status removeOthers(const std::filesystem::path& folder);

    const std::string& key() const { return m_key; }
    // Discards everything and starts again with a key.
    Status restart(const std::string& key);

    // Unit -> hashes: ("dense", index of the tensor), ("layer", model layer).
    const std::vector<uint64_t>* find(const std::string& kind, int64_t index) const;
    // The data must be synced before it is recorded.
    Status record(const std::string& kind, int64_t index, const std::vector<uint64_t>& hashes);
    Status sync();
    // The conversion is finished and the folder has its final name. The lock is held until
    // destruction.
    void removeFrom(const std::filesystem::path& folder);

private:
    Journal(int fd, std::filesystem::path path) : m_fd(fd), m_path(std::move(path)) {}
    Status append(const std::string& line);
    void parse(const std::string& text);

    int m_fd;
    std::filesystem::path m_path;
    std::string m_key;
    int64_t m_end = 0;  // after the last complete line
    std::map<std::pair<std::string, int64_t>, std::vector<uint64_t>> m_units;
};

}  // namespace colibri
