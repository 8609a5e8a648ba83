// SPDX-License-Identifier: Apache-2.0
// The router table of a loaded model and its file. The table is held in memory, so a change of the
// file has no effect by itself. A thread checks the file once a second; if the file was replaced,
// the thread loads the new table in place of the old one (reload), or only reports the change.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "engine/base/mutex.h"
#include "engine/model/router_table.h"

namespace colibri {

class TableWatch {
public:
    // Reads the table. Errors: those of RouterTable::load.
    static Result<std::unique_ptr<TableWatch>> open(const std::filesystem::path& path,
                                                    const ModelConfig& config, bool reload);
    ~TableWatch();

    // Starts watching the file; `replaced` is called on the watch's thread when table() returns
    // another table.
    void start(std::function<void()> replaced);

    // Any thread.
    std::shared_ptr<const RouterTable> table() const;
    uint64_t reloads() const;
    std::string notice() const;  // a message about the file; "" if none

private:
    struct Stamp {  // of the file; all zero: it cannot be read
        dev_t device = 0;
        ino_t inode = 0;
        int64_t bytes = 0, seconds = 0, nanoseconds = 0;
        bool operator==(const Stamp&) const = default;
    };

    TableWatch(std::filesystem::path path, const ModelConfig& config, bool reload)
        : m_path(std::move(path)), m_config(config), m_reload(reload) {}
    Stamp stampNow() const;
    void loop();
    void look();

    const std::filesystem::path m_path;
    const ModelConfig m_config;
    const bool m_reload;
    std::function<void()> m_replaced;
    Stamp m_stamp;  // of the file as it was last read; the watch's thread

    mutable Mutex m_mutex;
    Condition m_wake;
    bool m_stop GUARDED_BY(m_mutex) = false;
    std::shared_ptr<const RouterTable> m_table GUARDED_BY(m_mutex);
    uint64_t m_reloads GUARDED_BY(m_mutex) = 0;
    std::string m_notice GUARDED_BY(m_mutex);
    std::thread m_thread;
};

}  // namespace colibri
