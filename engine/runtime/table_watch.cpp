// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/table_watch.h"

#include <sys/stat.h>

#include <chrono>

namespace colibri {

namespace {

constexpr std::chrono::seconds kPeriod{1};

}  // namespace

Result<std::unique_ptr<TableWatch>> TableWatch::open(const std::filesystem::path& path,
                                                     const ModelConfig& config, bool reload) {
    std::unique_ptr<TableWatch> watch(new TableWatch(path, config, reload));
    // First the stamp: a file that changes in between counts as changed.
    watch->m_stamp = watch->stampNow();
    Result<std::shared_ptr<const RouterTable>> table = RouterTable::load(path, config);
    if (!table.ok()) return table.status();
    const MutexLock lock(watch->m_mutex);
    watch->m_table = std::move(*table);
    return watch;
}

TableWatch::~TableWatch() {
    {
        MutexLock lock(m_mutex);
        m_stop = true;
    }
    m_wake.notifyAll();
    if (m_thread.joinable()) m_thread.join();
}

void TableWatch::start(std::function<void()> replaced) {
    m_replaced = std::move(replaced);
    m_thread = std::thread([this] {
        pthread_setname_np(pthread_self(), "router-table");
        loop();
    });
}

void TableWatch::loop() {
    MutexLock lock(m_mutex);
    for (;;) {
        if (!m_stop) m_wake.waitFor(m_mutex, kPeriod);
        if (m_stop) return;
        const MutexRelease released(m_mutex);
        try {
            look();
        } catch (const std::bad_alloc&) {  // the next change of the file is seen again
        }
    }
}

TableWatch::Stamp TableWatch::stampNow() const {
    struct stat info;
    if (::stat(m_path.c_str(), &info) != 0) return {};
    return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

void TableWatch::look() {
    const Stamp now = stampNow();
    if (now == m_stamp) return;
    m_stamp = now;
    std::string notice;
    std::shared_ptr<const RouterTable> fresh;
    if (!m_reload) {
        notice = m_path.string() + " has changed; the loaded table stays in use";
    } else {
        Result<std::shared_ptr<const RouterTable>> table = RouterTable::load(m_path, m_config);
        if (table.ok()) {
            fresh = std::move(*table);
        } else {
            notice = "the loaded table stays in use: " + table.status().message();
        }
    }
    {
        MutexLock lock(m_mutex);
        m_notice = notice;
        if (fresh) {
            m_table = fresh;
            ++m_reloads;
        }
    }
    if (fresh) m_replaced();
}

std::shared_ptr<const RouterTable> TableWatch::table() const {
    MutexLock lock(m_mutex);
    return m_table;
}

uint64_t TableWatch::reloads() const {
    MutexLock lock(m_mutex);
    return m_reloads;
}

std::string TableWatch::notice() const {
    MutexLock lock(m_mutex);
    return m_notice;
}

}  // namespace colibri
