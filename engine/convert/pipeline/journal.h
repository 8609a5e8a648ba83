// SPDX-License-Identifier: Apache-2.0
// What an interrupted conversion has finished: a text file in the partial folder, one line per
// finished unit, each with its own check sum; a torn last line is as good as absent. The first
// line is the key (source and options): another key means another conversion.
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
    // Opens or creates it and locks it; Busy when another process converts to the same target.
    static Result<Journal> open(const std::filesystem::path& folder);
    Journal(Journal&& other) noexcept;
    Journal& operator=(Journal&&) = delete;
    ~Journal();

    static bool existsIn(const std::filesystem::path& folder);

    // Everything in a folder but its journal.
    static Status removeOthers(const std::filesystem::path& folder);

    const std::string& key() const { return m_key; }
    // Forgets everything and begins again under a key.
    Status restart(const std::string& key);

    // Unit -> hashes: ("dense", index of the tensor), ("layer", model layer).
    const std::vector<uint64_t>* find(const std::string& kind, int64_t index) const;
    // The data must be synced before it is recorded here.
    Status record(const std::string& kind, int64_t index, const std::vector<uint64_t>& hashes);
    Status sync();
    // All is done and the folder has its final name. The lock stays until destruction.
    void removeFrom(const std::filesystem::path& folder);

private:
    Journal(int fd, std::filesystem::path path) : m_fd(fd), m_path(std::move(path)) {}
    Status append(const std::string& line);
    void parse(const std::string& text);

    int m_fd;
    std::filesystem::path m_path;
    std::string m_key;
    int64_t m_end = 0;                   // after the last whole line
    std::map<std::pair<std::string, int64_t>, std::vector<uint64_t>> m_units;
};

}  // namespace colibri
