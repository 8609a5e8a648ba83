// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/flat/flat_writer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/convert/flat/flat.h"

namespace colibri {

namespace {

// "3.attn_norm" -> the name in a checkpoint of this naming.
std::string checkpointName(const Naming& naming, const std::string& name) {
    const size_t dot = name.find('.');
    const int64_t layer = dot == std::string::npos ? -1 : std::stoll(name.substr(0, dot));
    const std::string part = dot == std::string::npos ? name : name.substr(dot + 1);
    for (const NameRow& row : naming.rows) {
        if (part == row.part) return fillName(splitAlternatives(row.names).front(), layer, -1);
    }
    return name;
}

}  // namespace

FlatWriter::FlatWriter(const Parts& parts, DType type, const Naming& naming)
    : m_source(parts.source),
      m_plan(parts.plan),
      m_type(type),
      m_folder(parts.folder),
      m_journal(parts.journal),
      m_hooks(parts.hooks),
      m_gate(parts.progress),
      m_cancel(parts.cancel) {
    for (const DensePart& part : m_plan.dense) {
        const int64_t bytes = part.info.rows * part.info.cols * (part.info.packed ? 2 : 4);
        m_dense.push_back({&part, checkpointName(naming, part.info.name), bytes});
        m_denseBytes += bytes;
    }
    const ModelConfig& c = m_plan.config;
    m_layerBytes = c.numExperts * 3 * c.hiddenSize * c.expertSize * 2;
    m_total = uint64_t(m_denseBytes + m_layerBytes * int64_t(m_plan.layers.size()));
}

int64_t FlatWriter::bytesDone() const {
    int64_t done = m_journal.find("dense", 0) ? m_denseBytes : 0;
    for (const ExpertsPart& p : m_plan.layers) {
        if (m_journal.find("layer", p.layout.layer)) done += m_layerBytes;
    }
    return done;
}

int64_t FlatWriter::files() const {
    return m_plan.config.moeLayerCount() * m_plan.config.numExperts * 3 + 1;
}

Status FlatWriter::write() {
    COLIBRI_TRY(writeDense());
    size_t number = 0;
    for (const ExpertsPart& part : m_plan.layers) COLIBRI_TRY(writeLayer(part, ++number));
    m_gate.report(m_stage, m_total, m_total, true);
    return {};
}

// The JSON of a safetensors file, padded with blanks to whole words.
std::string FlatWriter::denseHeader() const {
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"}};
    int64_t at = 0;
    for (const DenseTensor& t : m_dense) {
        const TensorInfo& info = t.part->info;
        const bool vector = !info.packed && info.rows == 1;
        header[t.name] = {{"dtype", !info.packed            ? "F32"
                                    : m_type == DType::BF16 ? "BF16"
                                                            : "F16"},
                          {"shape", vector ? std::vector<int64_t>{info.cols}
                                           : std::vector<int64_t>{info.rows, info.cols}},
                          {"data_offsets", {at, at + t.bytes}}};
        at += t.bytes;
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
}

Status FlatWriter::writeDense() {
    m_stage = "Dense weights";
    const std::string header = denseHeader();
    std::error_code error;
    const auto size = int64_t(std::filesystem::file_size(m_folder / kFlatDenseFile, error));
    if (m_journal.find("dense", 0) && size == 8 + int64_t(header.size()) + m_denseBytes) {
        m_done += uint64_t(m_denseBytes);
        return {};
    }
    Result<OutputFile> out = OutputFile::open(m_folder / kFlatDenseFile, 0, &m_hooks);
    if (!out.ok()) return out.status();
    const uint64_t length = header.size();
    COLIBRI_TRY(out->append(std::as_bytes(std::span(&length, 1))));
    COLIBRI_TRY(out->append(std::as_bytes(std::span(header))));
    std::vector<RowRun> runs;
    for (size_t i = 0; i < m_dense.size(); ++i) {
        const DensePart& part = *m_dense[i].part;
        addRuns(runs, i, part.view, part.info.packed ? m_type : DType::F32, false);
    }
    COLIBRI_TRY(encode(
        runs, [&](const RowRun&, std::span<const std::byte> bytes) { return out->append(bytes); }));
    COLIBRI_TRY(out->sync());
    COLIBRI_TRY(m_journal.record("dense", 0, {0}));
    return m_journal.sync();
}

Status FlatWriter::writeLayer(const ExpertsPart& part, size_t number) {
    m_stage =
        "Experts, layer " + std::to_string(number) + " of " + std::to_string(m_plan.layers.size());
    const int64_t layer = part.layout.layer;
    const auto path = [&](size_t e, size_t which) {
        return m_folder / flatFileName(int64_t(e), layer, which);
    };
    const int64_t fileBytes = m_plan.config.hiddenSize * m_plan.config.expertSize * 2;
    if (m_journal.find("layer", layer)) {
        bool whole = true;
        std::error_code error;
        for (size_t e = 0; e < part.experts.size() && whole; ++e) {
            for (size_t which = 0; which < 3; ++which) {
                whole &= int64_t(std::filesystem::file_size(path(e, which), error)) == fileBytes;
            }
        }
        if (whole) {
            m_done += uint64_t(m_layerBytes);
            return {};
        }
    }
    std::vector<RowRun> runs;
    for (size_t e = 0; e < part.experts.size(); ++e) {
        for (size_t i = 0; i < 3; ++i) addRuns(runs, 3 * e + i, part.experts[e][i], m_type, false);
    }
    // The last block of a file is still being written when the next file begins.
    std::unique_ptr<OutputFile> out, before;
    const auto finish = [](std::unique_ptr<OutputFile> file) {
        return file ? file->flush() : Status();
    };
    COLIBRI_TRY(encode(runs, [&](const RowRun& run, std::span<const std::byte> bytes) {
        if (run.first) {
            Result<OutputFile> file =
                OutputFile::open(path(run.tensor / 3, run.tensor % 3), 0, &m_hooks);
            if (!file.ok()) return file.status();
            COLIBRI_TRY(finish(std::exchange(before, std::move(out))));
            out = std::make_unique<OutputFile>(std::move(*file));
        }
        return out->append(bytes);
    }));
    COLIBRI_TRY(finish(std::move(before)));
    COLIBRI_TRY(finish(std::move(out)));
    COLIBRI_TRY(syncFileSystem(m_folder));  // once for thousands of files
    COLIBRI_TRY(m_journal.record("layer", layer, {0}));
    return m_journal.sync();
}

Status FlatWriter::encode(std::span<const RowRun> runs, const TakeRun& take) {
    ValueFaults faults;
    COLIBRI_TRY(encodeRuns(m_source.checkpoint, runs, faults, m_cancel,
                           [&](const RowRun& run, std::span<const std::byte> bytes) {
                               COLIBRI_TRY(take(run, bytes));
                               m_done += bytes.size();
                               m_gate.report(m_stage, m_done, m_total);
                               return Status();
                           }));
    return faults.status(m_stage);
}

}  // namespace colibri
