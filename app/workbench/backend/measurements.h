// SPDX-License-Identifier: GPL-3.0-or-later
// How each model ran. The rates of disk and memory are the engine's (engine/store/calibration.h).
// One JSON file, replaced whole; figures of another machine are not used.
#pragma once

#include <QDateTime>
#include <QString>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/engine.h"

namespace colibri::ui {

// How a model ran in one session, with one set of knobs.
struct ModelRun {
    double decodeTokS = 0;
    double itlP99Ms = 0;
    uint64_t gaps = 0;  // inter-token gaps pooled
    double bytesPerToken = 0;
    double missShare = 0;            // of lookups
    double stallShare = 0;           // of the time of the replies, prompt and decode
    QString knobs;                   // "cache 20, lru, link 25 MB/s"
    QDateTime when;
};

// Adds up the replies of a session; any thread.
class RunTally {
public:
    void add(const RequestResult& result);
    void restart();                  // knobs changed: earlier replies say nothing about now
    std::optional<ModelRun> result() const;   // none before 16 gaps

private:
    mutable std::mutex m_mutex;
    std::vector<double> m_gaps;
    uint64_t m_tokens = 0;
    double m_seconds = 0;            // from the start of each prompt to its last token
    StoreStats m_experts;
};

class Measurements {
public:
    explicit Measurements(const QString& file);
    std::optional<ModelRun> run(const std::string& fingerprint) const;
    // What was wrong with the file, and is left out: all of it, or single figures.
    const Status& damage() const { return m_damage; }
    // The figures hold for this run also where they could not be written: that is the status.
    Status setRun(const std::string& fingerprint, const ModelRun& run);

private:
    void read();
    Status read(const nlohmann::json& json, const std::string& where);
    Status write() const;

    QString m_file;
    Status m_damage;
    std::map<std::string, ModelRun> m_runs;    // by the model's fingerprint
};

}  // namespace colibri::ui
