// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/container_writer.h"

#include "engine/model/layout.h"

namespace colibri {

namespace {

constexpr int64_t kSyncBytes = 64 << 20;  // dense bytes between two entries of the journal

}  // namespace

ContainerWriter::ContainerWriter(const Parts& parts)
    : m_source(parts.source),
      m_plan(parts.plan),
      m_folder(parts.folder),
      m_journal(parts.journal),
      m_hooks(parts.hooks),
      m_gate(parts.progress),
      m_cancel(parts.cancel),
      m_total(uint64_t(parts.plan.denseBytes + parts.plan.expertBytes)) {}

int64_t ContainerWriter::bytesDone() const {
    int64_t done = 0;
    for (size_t i = 0; i < m_plan.dense.size() && m_journal.find("dense", int64_t(i)); ++i) {
        done = m_plan.dense[i].info.offset + m_plan.dense[i].info.bytes;
    }
    for (const ExpertsPart& p : m_plan.layers) {
        if (m_journal.find("layer", p.layout.layer)) {
            done += p.layout.recordBytes * m_plan.config.numExperts;
        }
    }
    return done;
}

Status ContainerWriter::write() {
    std::error_code error;
    std::filesystem::create_directories(m_folder / "experts", error);
    if (error) return systemError("cannot create", m_folder / "experts", error.value());
    COLIBRI_TRY(writeDense());
    size_t number = 0;
    for (ExpertsPart& part : m_plan.layers) COLIBRI_TRY(writeLayer(part, ++number));
    m_gate.report(m_stage, m_total, m_total, true);
    return {};
}

// Dense tensors are stored in sequence. Those up to the journal's last entry are kept.
Status ContainerWriter::writeDense() {
    m_stage = "Dense weights";
    size_t recorded = 0;
    int64_t keep = 0;
    for (; recorded < m_plan.dense.size(); ++recorded) {
        const auto* hashes = m_journal.find("dense", int64_t(recorded));
        if (!hashes || hashes->size() != 1) break;
        TensorInfo& info = m_plan.dense[recorded].info;
        info.hash = hashes->front();
        keep = info.offset + info.bytes;
    }
    Result<OutputFile> out = OutputFile::open(m_folder / kDenseFile, keep, &m_hooks);
    if (!out) return out.status();
    m_done = uint64_t(keep);
    std::vector<RowRun> runs;
    for (size_t i = recorded; i < m_plan.dense.size(); ++i) {
        const DensePart& part = m_plan.dense[i];
        addRuns(runs, i, part.view, part.info.dtype, part.info.packed);
    }
    ValueFaults faults;
    size_t whole = recorded;  // tensors
    Status status = encode(runs, faults, [&](const RowRun& run, std::span<const std::byte> bytes) {
        TensorInfo& info = m_plan.dense[run.tensor].info;
        if (run.first) {
            COLIBRI_TRY(out->padTo(info.offset));
            out->beginHash();
        }
        COLIBRI_TRY(append(*out, bytes));
        if (!run.last) return Status();
        info.hash = out->hash();
        whole = run.tensor + 1;
        if (out->position() - keep < kSyncBytes || !faults.none()) return Status();
        COLIBRI_TRY(flushDense(*out, recorded, whole));
        recorded = whole;
        keep = out->position();
        return Status();
    });
    if (status.code() == Code::Cancelled && faults.none()) {
        COLIBRI_TRY(flushDense(*out, recorded, whole));
    }
    COLIBRI_TRY(status);
    COLIBRI_TRY(faults.status(m_stage));
    COLIBRI_TRY(out->padTo(m_plan.denseBytes));
    COLIBRI_TRY(flushDense(*out, recorded, whole));
    m_done = uint64_t(m_plan.denseBytes);
    return {};
}

Status ContainerWriter::encode(std::span<const RowRun> runs, ValueFaults& faults,
                               const TakeRun& take) {
    return encodeRuns(m_source.checkpoint, runs, faults, m_cancel, take);
}

Status ContainerWriter::append(OutputFile& out, std::span<const std::byte> bytes) {
    COLIBRI_TRY(out.append(bytes));
    m_done += bytes.size();
    m_gate.report(m_stage, m_done, m_total);
    return {};
}

Status ContainerWriter::flushDense(OutputFile& out, size_t from, size_t to) {
    COLIBRI_TRY(out.sync());
    for (size_t i = from; i < to; ++i) {
        COLIBRI_TRY(m_journal.record("dense", int64_t(i), {m_plan.dense[i].info.hash}));
    }
    return m_journal.sync();
}

Status ContainerWriter::writeLayer(ExpertsPart& part, size_t number) {
    ExpertLayer& layout = part.layout;
    const int64_t layerBytes = layout.recordBytes * int64_t(part.experts.size());
    m_stage =
        "Experts, layer " + std::to_string(number) + " of " + std::to_string(m_plan.layers.size());
    const auto* known = m_journal.find("layer", layout.layer);
    std::error_code error;
    if (known && known->size() == part.experts.size() &&
        int64_t(std::filesystem::file_size(m_folder / layout.file, error)) == layerBytes) {
        layout.hashes = *known;
        m_done += uint64_t(layerBytes);
        return {};
    }
    const uint64_t before = m_done;
    Result<OutputFile> out = OutputFile::open(m_folder / layout.file, 0, &m_hooks);
    if (!out) return out.status();
    layout.hashes.clear();
    const int64_t offsets[3] = {layout.w1Offset, layout.w3Offset, layout.w2Offset};
    const DType types[3] = {layout.types.w1, layout.types.w3, layout.types.w2};
    std::vector<RowRun> runs;
    for (size_t e = 0; e < part.experts.size(); ++e) {
        for (size_t i = 0; i < 3; ++i) addRuns(runs, 3 * e + i, part.experts[e][i], types[i], true);
    }
    ValueFaults faults;
    COLIBRI_TRY(encode(runs, faults, [&](const RowRun& run, std::span<const std::byte> bytes) {
        const int64_t start = int64_t(run.tensor / 3) * layout.recordBytes;
        const size_t matrix = run.tensor % 3;
        if (run.first && matrix == 0) out->beginHash();
        if (run.first) COLIBRI_TRY(out->padTo(start + offsets[matrix]));
        COLIBRI_TRY(append(*out, bytes));
        if (!run.last || matrix != 2) return Status();
        COLIBRI_TRY(out->padTo(start + layout.recordBytes));
        layout.hashes.push_back(out->hash());
        return Status();
    }));
    COLIBRI_TRY(faults.status(m_stage));
    COLIBRI_TRY(out->sync());
    COLIBRI_TRY(m_journal.record("layer", layout.layer, layout.hashes));
    COLIBRI_TRY(m_journal.sync());
    m_done = before + uint64_t(layerBytes);
    return {};
}

}  // namespace colibri
