// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/measurements.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/workbench/platform/save_file.h"
#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "engine/base/json_fields.h"
#include "profiler/metrics/histogram.h"

namespace colibri::ui {
namespace {

constexpr int kMeasuredSchema = 1;
constexpr size_t kMinGaps = 16;
constexpr double kMostFigure = 1e18;  // beyond any figure that is measured here

QDateTime time(Fields& fields) {
    return QDateTime::fromString(QString::fromStdString(fields.text("when", "")), Qt::ISODate);
}

}  // namespace

// ---- RunTally

void RunTally::add(const RequestResult& result) {
    const std::lock_guard lock(m_mutex);
    m_gaps.insert(m_gaps.end(), result.gapsMs.begin(), result.gapsMs.end());
    m_tokens += result.gapsMs.size() + 1;
    m_seconds += std::accumulate(result.gapsMs.begin(), result.gapsMs.end(),
                                 std::max(0.0, result.ttftMs - result.queueMs)) /
                 1000;
    m_experts.lookups += result.experts.lookups;
    m_experts.hits += result.experts.hits;
    m_experts.bytesLoaded += result.experts.bytesLoaded;
    m_experts.stallNs += result.experts.stallNs;
}

void RunTally::restart() {
    const std::lock_guard lock(m_mutex);
    m_gaps.clear();
    m_tokens = 0;
    m_seconds = 0;
    m_experts = {};
}

std::optional<ModelRun> RunTally::result() const {
    const std::lock_guard lock(m_mutex);
    if (m_gaps.size() < kMinGaps) return std::nullopt;
    ModelRun run;
    Histogram histogram;
    for (const double ms : m_gaps) histogram.add(uint64_t(ms * 1e6));
    const double seconds = std::accumulate(m_gaps.begin(), m_gaps.end(), 0.0) / 1000;
    run.decodeTokS = double(m_gaps.size()) / seconds;
    run.itlP99Ms = histogram.quantile(0.99) / 1e6;
    run.gaps = m_gaps.size();
    run.bytesPerToken = double(m_experts.bytesLoaded) / double(m_tokens);
    if (m_experts.lookups) run.missShare = 1 - double(m_experts.hits) / double(m_experts.lookups);
    if (m_seconds > 0) run.stallShare = std::min(1.0, double(m_experts.stallNs) / 1e9 / m_seconds);
    run.when = QDateTime::currentDateTime();
    return run;
}

// ---- Measurements

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

// Single figures that are damaged are left out; the first is told.
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
        run.knobs = QString::fromStdString(fields.text("knobs", ""));
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
