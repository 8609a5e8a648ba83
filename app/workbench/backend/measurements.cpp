// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/measurements.h"

#include <nlohmann/json.hpp>

#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "engine/base/file.h"
#include "engine/base/json_fields.h"
#include "engine/base/machine.h"

namespace colibri::ui {
namespace {

constexpr int kMeasuredSchema = 1;
constexpr double kMostFigure = 1e18;  // larger than any real figure

QDateTime time(Fields& fields) {
    return QDateTime::fromString(exactText(fields.text("when", "")), Qt::ISODate);
}

}  // namespace

Measurements::Measurements(const QString& file) : m_file(file) {
    read();
}

void Measurements::read() {
    const std::string where = m_file.toStdString();
    const auto content = readTextFile(where, 16 << 20);
    if (!content) return;
    const auto json = parseJson(*content, where);
    m_damage = json ? read(*json, where) : json.status();
}

// Damaged figures are ignored; the first error is reported.
Status Measurements::read(const nlohmann::json& json, const std::string& where) {
    Fields file(json, where);
    file.integer("schema", kMeasuredSchema, kMeasuredSchema);
    const std::string machine = file.text("machine");
    COLIBRI_TRY(file.status());
    if (machine != machineFingerprint()) return {};
    Status damage;
    const auto sound = [&](const Fields& fields) {
        if (damage.ok()) damage = fields.status();
        return fields.status().ok();
    };
    const nlohmann::json* runs = file.find("runs");
    if (!runs) return damage;
    if (!runs->is_object()) return {Code::BadInput, where + ": \"runs\" is not an object"};
    for (const auto& [fingerprint, item] : runs->items()) {
        Fields fields(item, where + ", run \"" + fingerprint + "\"");
        ModelRun run;
        run.decodeTokS = fields.number("decode_tok_s", 0, kMostFigure, 0);
        run.itlP99Ms = fields.number("itl_p99_ms", 0, kMostFigure, 0);
        run.gaps = uint64_t(fields.number("gaps", 0, kMostFigure, 0));
        run.bytesPerToken = fields.number("bytes_per_token", 0, kMostFigure, 0);
        run.missShare = fields.number("miss_share", 0, 1, 0);
        run.stallShare = fields.number("stall_share", 0, 1, 0);
        run.knobs = exactText(fields.text("knobs", ""));
        run.when = time(fields);
        if (sound(fields)) m_runs[fingerprint] = run;
    }
    return damage;
}

Status Measurements::write() const {
    const auto time = [](const QDateTime& t) { return t.toString(Qt::ISODate).toStdString(); };
    nlohmann::ordered_json json = {{"schema", kMeasuredSchema}, {"machine", machineFingerprint()}};
    auto& runs = json["runs"] = nlohmann::ordered_json::object();
    for (const auto& [fingerprint, run] : m_runs) {
        runs[fingerprint] = {{"decode_tok_s", run.decodeTokS},
                             {"itl_p99_ms", run.itlP99Ms},
                             {"gaps", run.gaps},
                             {"bytes_per_token", run.bytesPerToken},
                             {"miss_share", run.missShare},
                             {"stall_share", run.stallShare},
                             {"knobs", run.knobs.toStdString()},
                             {"when", time(run.when)}};
    }
    return saveFile(m_file, QByteArray::fromStdString(json.dump(1) + "\n"));
}

std::optional<ModelRun> Measurements::run(const std::string& fingerprint) const {
    const auto it = m_runs.find(fingerprint);
    return it == m_runs.end() ? std::nullopt : std::optional(it->second);
}

Status Measurements::setRun(const std::string& fingerprint, const ModelRun& run) {
    m_runs[fingerprint] = run;
    return write();
}

}  // namespace colibri::ui
