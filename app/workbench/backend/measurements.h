// SPDX-License-Identifier: GPL-3.0-or-later
// How each model ran. The rates of disk and memory are the engine's (engine/store/calibration.h).
// One JSON file, replaced whole; figures of another machine are not used.
#pragma once

#include <QDateTime>
#include <QString>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "profiler/metrics/run_tally.h"

namespace colibri::ui {

// How a model ran in one session, with one set of knobs.
struct ModelRun : RunFigures {
    QString knobs;  // "cache 20, lru, link 25 MB/s"
    QDateTime when;
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
    std::map<std::string, ModelRun> m_runs;  // by the model's fingerprint
};

}  // namespace colibri::ui
