// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "engine/base/format.h"
#include "engine/model/layout.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int64_t kSyncBytes = 64 << 20;  // dense bytes between two entries of the journal

// Largest magnitude a value may have in a type whose numbers or scales are f16.
float limitOf(DType type) {
    switch (type) {
        case DType::F16: return kF16Overflow;
        case DType::Q8_0: return kF16Overflow * 127;
        case DType::Q4_0: return kF16Overflow * 8;
        default: return std::numeric_limits<float>::infinity();
    }
}

// Bits of the largest magnitude; infinities and NaN compare above every number.
uint32_t largestBits(const float* x, int64_t n) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
    }
    return largest;
}

constexpr uint32_t kInfinityBits = 0x7f800000u;

// pack(first row, rows) over whole panels on all cores: packing is slower than a disk.
template <typename Pack>
void packInParallel(int64_t n, const Pack& packSome) {
    const int64_t panels = panelCount(n);
    const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, panels);
    const int64_t each = (panels + threads - 1) / threads * kPanel;
    const auto pack = [&](int64_t first) { packSome(first, std::min(each, n - first)); };
    std::vector<std::thread> others;
    for (int64_t first = each; first < n; first += each) others.emplace_back(pack, first);
    pack(0);
    for (std::thread& t : others) t.join();
}

}  // namespace

PlanWriter::PlanWriter(const OpenedSource& source, Plan& plan,
                       const std::filesystem::path& folder, Journal& journal,
                       const DiskHooks& hooks, const ProgressFn& progress,
                       const CancelFlag* cancel)
    : m_source(source), m_plan(plan), m_folder(folder), m_journal(journal), m_hooks(hooks),
      m_gate(progress), m_cancel(cancel),
      m_total(uint64_t(plan.denseBytes + plan.expertBytes)) {}

int64_t PlanWriter::bytesDone() const {
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

Status PlanWriter::write() {
    std::error_code error;
    std::filesystem::create_directories(m_folder / "experts", error);
    if (error) return systemError("cannot create", m_folder / "experts", error.value());
    COLIBRI_TRY(writeDense());
    size_t number = 0;
    for (ExpertsPart& part : m_plan.layers) COLIBRI_TRY(writeLayer(part, ++number));
    m_gate.report(m_stage, m_total, m_total, true);
    return {};
}

// Dense tensors follow each other; those up to the journal's last entry are kept.
Status PlanWriter::writeDense() {
    m_stage = "Dense weights";
    size_t next = 0;
    int64_t keep = 0;
    for (; next < m_plan.dense.size(); ++next) {
        const auto* hashes = m_journal.find("dense", int64_t(next));
        if (!hashes || hashes->size() != 1) break;
        TensorInfo& info = m_plan.dense[next].info;
        info.hash = hashes->front();
        keep = info.offset + info.bytes;
    }
    Result<OutputFile> out = OutputFile::open(m_folder / kDenseFile, keep, &m_hooks);
    if (!out) return out.status();
    m_done = uint64_t(keep);
    size_t recorded = next;
    for (; next < m_plan.dense.size(); ++next) {
        DensePart& part = m_plan.dense[next];
        COLIBRI_TRY(out->padTo(part.info.offset));
        out->beginHash();
        Status status = writeRows(*out, part.view, part.info.dtype, part.info.packed);
        if (status.code() == Code::Cancelled && m_faultCount == 0) {
            COLIBRI_TRY(flushDense(*out, recorded, next));
        }
        COLIBRI_TRY(status);
        part.info.hash = out->hash();
        if (out->position() - keep >= kSyncBytes && m_faultCount == 0) {
            COLIBRI_TRY(flushDense(*out, recorded, next + 1));
            recorded = next + 1;
            keep = out->position();
        }
    }
    COLIBRI_TRY(faults());
    COLIBRI_TRY(out->padTo(m_plan.denseBytes));
    COLIBRI_TRY(flushDense(*out, recorded, next));
    m_done = uint64_t(m_plan.denseBytes);
    return {};
}

Status PlanWriter::flushDense(OutputFile& out, size_t from, size_t to) {
    COLIBRI_TRY(out.sync());
    for (size_t i = from; i < to; ++i) {
        COLIBRI_TRY(m_journal.record("dense", int64_t(i), {m_plan.dense[i].info.hash}));
    }
    return m_journal.sync();
}

Status PlanWriter::writeLayer(ExpertsPart& part, size_t number) {
    ExpertLayer& layout = part.layout;
    const int64_t layerBytes = layout.recordBytes * int64_t(part.experts.size());
    m_stage = "Experts, layer " + std::to_string(number) + " of " +
              std::to_string(m_plan.layers.size());
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
    for (size_t e = 0; e < part.experts.size(); ++e) {
        const int64_t start = int64_t(e) * layout.recordBytes;
        const int64_t offsets[3] = {layout.w1Offset, layout.w3Offset, layout.w2Offset};
        const DType types[3] = {layout.types.w1, layout.types.w3, layout.types.w2};
        out->beginHash();
        for (int i = 0; i < 3; ++i) {
            COLIBRI_TRY(out->padTo(start + offsets[i]));
            COLIBRI_TRY(writeRows(*out, part.experts[e][size_t(i)], types[i], true));
        }
        COLIBRI_TRY(out->padTo(start + layout.recordBytes));
        layout.hashes.push_back(out->hash());
    }
    COLIBRI_TRY(faults());
    COLIBRI_TRY(out->sync());
    COLIBRI_TRY(m_journal.record("layer", layout.layer, layout.hashes));
    COLIBRI_TRY(m_journal.sync());
    m_done = before + uint64_t(layerBytes);
    return {};
}

// A matrix in runs of whole panels, a plain tensor in runs of rows or pieces of its one row.
Status PlanWriter::writeRows(OutputFile& out, const RowView& view, DType type, bool packed) {
    const int64_t rowBytes = paddedCols(view.cols) * int64_t(sizeof(float));
    int64_t run = std::max<int64_t>(kRunBytes / rowBytes / kPanel, 1) * kPanel;
    for (int64_t row = 0; row < view.rows; row += run) {
        if (cancelled(m_cancel)) {
            return Status(Code::Cancelled, "The conversion was cancelled",
                          "Started again, it goes on from here");
        }
        int64_t n = std::min(run, view.rows - row);
        COLIBRI_TRY(packRun(view, type, packed, row, n));
        COLIBRI_TRY(out.append(m_packed));
        m_done += m_packed.size();
        m_gate.report(m_stage, m_done, m_total);
    }
    return {};
}

// Rows [row, row + n) into m_packed.
Status PlanWriter::packRun(const RowView& view, DType type, bool packed, int64_t row, int64_t n) {
    const DType from = view.dtype();
    if (packed && from == type && isQuantised(type) && view.colStride == 1) {
        const int64_t rawBytes = n * sourceRowBytes(type, view.cols);
        m_raw.resize(size_t(rawBytes));
        COLIBRI_TRY(m_source.checkpoint.readRaw(view, row, n, m_raw.data()));
        if (!ggmlScalesFinite(type, m_raw.data(), rawBytes / fileBlock(type).bytes)) {
            noteFault(view, "not finite");
        }
        m_packed.resize(size_t(packedBytes(type, n, view.cols)));
        const int64_t rowBytes = sourceRowBytes(type, view.cols);
        packInParallel(n, [&](int64_t first, int64_t rows) {
            packGgmlRows(type, m_raw.data() + first * rowBytes, rows, view.cols,
                         m_packed.data() + first / kPanel * panelBytes(type, view.cols));
        });
        return {};
    }
    m_floats.resize(size_t(n * view.cols));
    COLIBRI_TRY(m_source.checkpoint.readFloats(view, row, n, m_raw, m_floats.data()));
    COLIBRI_TRY(checkRun(view, type, n * view.cols));
    if (packed) {
        m_packed.resize(size_t(packedBytes(type, n, view.cols)));
        packInParallel(n, [&](int64_t first, int64_t rows) {
            packRows(type, m_floats.data() + first * view.cols, rows, view.cols,
                     m_packed.data() + first / kPanel * panelBytes(type, view.cols));
        });
    } else {
        m_packed.resize(m_floats.size() * sizeof(float));
        std::memcpy(m_packed.data(), m_floats.data(), m_packed.size());
    }
    return {};
}

Status PlanWriter::checkRun(const RowView& view, DType type, int64_t count) {
    uint32_t bits = largestBits(m_floats.data(), count);
    if (bits >= kInfinityBits) {
        noteFault(view, "not finite");
        // The quantisers may assume numbers; the file will not be kept.
        std::fill(m_floats.begin(), m_floats.end(), 0.0f);
        return {};
    }
    float largest = std::bit_cast<float>(bits);
    if (largest >= limitOf(type)) {
        return Status(Code::BadInput,
                      "tensor \"" + view.tensor->name + "\" holds values up to " +
                          formatSig(double(largest)) + ", too large for " +
                          std::string(dtypeName(type)),
                      "Choose bf16");
    }
    return {};
}

void PlanWriter::noteFault(const RowView& view, const std::string& what) {
    std::string line = view.tensor->name + ": " + what;
    if (!m_faultTensors.empty() && m_faultTensors.back() == line) return;
    ++m_faultCount;
    if (m_faultTensors.size() < kListed) m_faultTensors.push_back(line);
}

// Reported once per dense part or layer, so that one run names all that is wrong there.
Status PlanWriter::faults() const {
    if (m_faultCount == 0) return {};
    std::string list;
    for (const std::string& line : m_faultTensors) list += "\n  " + line;
    if (m_faultCount > m_faultTensors.size()) {
        list += "\n  and " + formatCount(int64_t(m_faultCount - m_faultTensors.size())) + " more";
    }
    return Status(Code::BadInput,
                  m_stage + ": values that are not numbers (NaN or infinite) in" + list,
                  "The checkpoint is damaged; download it again");
}

}  // namespace colibri
