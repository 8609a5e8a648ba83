// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/measurements.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/workbench/session/save_file.h"
#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "profiler/record/histogram.h"

namespace colibri::ui {
namespace {

constexpr int kSchema = 1;
constexpr size_t kMinGaps = 16;

using Json = nlohmann::json;

double number(const Json& json, const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0;
}

QString text(const Json& json, const char* key) {
    return json.contains(key) && json[key].is_string()
               ? QString::fromStdString(json[key].get<std::string>())
               : QString();
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
    const auto content = readTextFile(m_file.toStdString(), 16 << 20);
    if (!content) return;
    const Json json = Json::parse(*content, nullptr, false);
    if (!json.is_object() || json.value("schema", 0) != kSchema ||
        text(json, "machine").toStdString() != machineFingerprint()) {
        return;
    }
    if (!json.contains("runs") || !json["runs"].is_object()) return;
    for (const auto& [fingerprint, item] : json["runs"].items()) {
        if (!item.is_object()) continue;
        ModelRun run;
        run.decodeTokS = number(item, "decode_tok_s");
        run.itlP99Ms = number(item, "itl_p99_ms");
        run.gaps = uint64_t(number(item, "gaps"));
        run.bytesPerToken = number(item, "bytes_per_token");
        run.missShare = number(item, "miss_share");
        run.stallShare = number(item, "stall_share");
        run.knobs = text(item, "knobs");
        run.when = QDateTime::fromString(text(item, "when"), Qt::ISODate);
        m_runs[fingerprint] = run;
    }
}

Status Measurements::write() const {
    const auto time = [](const QDateTime& t) { return t.toString(Qt::ISODate).toStdString(); };
    nlohmann::ordered_json json = {{"schema", kSchema}, {"machine", machineFingerprint()}};
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
