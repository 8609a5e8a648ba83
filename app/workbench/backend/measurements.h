// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of the last run of each model, in one JSON file that is replaced as a whole. Rates of
// disk and memory are in the engine (engine/store/calibration.h). GUI thread only.
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

// The figures of one session with one set of knobs.
struct ModelRun : RunFigures {
    QString knobs;  // "cache 20, lru, link 25 MB/s"
    QDateTime when;
};

class Measurements {
public:
    explicit Measurements(const QString& file);
    std::optional<ModelRun> run(const std::string& fingerprint) const;
    // What was damaged in the file and is ignored: all of it, or single figures.
    const Status& damage() const { return m_damage; }
    // Stores the figures. If writing fails, the status says so, but they remain until the program
    // ends.
    Status setRun(const std::string& fingerprint, const ModelRun& run);

private:
    void read();
    Status read(const nlohmann::json& json, const std::string& where);
    Status write() const;

    QString m_file;
    Status m_damage;
    std::map<std::string, ModelRun> m_runs;  // by the fingerprint of the model
};

}  // namespace colibri::ui
