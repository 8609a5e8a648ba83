// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/row_runs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <thread>

#include "engine/base/format.h"
#include "engine/base/in_order.h"
#include "engine/base/progress_gate.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int64_t kRunBytes = 1 << 20;  // as f32; fits into a core's cache until it is encoded
constexpr int kMostThreads = 32;
// More threads than cores, so that some encode while others wait for the disk.
constexpr int kReaders = 4;

constexpr uint32_t kInfinityBits = 0x7f800000u;

// The largest magnitude of values in a type whose numbers or scales are f16.
float limitOf(DType type) {
    switch (type) {
        case DType::F16:
            return kF16Overflow;
        case DType::Q8_0:
            return kF16Overflow * 127;
        case DType::Q4_0:
            return kF16Overflow * 8;
        default:
            return std::numeric_limits<float>::infinity();
    }
}

// The bits of the largest magnitude. Infinities and NaN compare greater than all numbers.
uint32_t largestBits(const std::vector<float>& values) {
    uint32_t largest = 0;
    for (const float v : values) {
        largest = std::max(largest, std::bit_cast<uint32_t>(v) & 0x7fffffffu);
    }
    return largest;
}

// A run being encoded. The buffers are reused.
struct EncodedRun {
    std::vector<std::byte> raw, bytes;
    std::vector<float> floats;
    bool finite = true;
    float largest = 0;
};

// Converts the layout of blocks of the source's own type.
Status rearrange(const Checkpoint& checkpoint, const RowRun& run, EncodedRun& out) {
    const int64_t cols = run.view->cols;
    const int64_t rawBytes = run.rows * sourceRowBytes(run.type, cols);
    out.raw.resize(size_t(rawBytes));
    COLIBRI_TRY(checkpoint.readRaw(*run.view, run.row, run.rows, out.raw.data()));
    out.finite = ggmlScalesFinite(run.type, out.raw.data(), rawBytes / fileBlock(run.type).bytes);
    out.bytes.resize(size_t(packedBytes(run.type, run.rows, cols)));
    packGgmlRows(run.type, out.raw.data(), run.rows, cols, out.bytes.data());
    return {};
}

void storeRows(DType type, const std::vector<float>& values, std::vector<std::byte>& bytes) {
    const auto n = int64_t(values.size());
    if (type == DType::F32) {
        bytes.resize(values.size() * sizeof(float));
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return;
    }
    bytes.resize(values.size() * sizeof(uint16_t));
    auto* halves = reinterpret_cast<uint16_t*>(bytes.data());
    if (type == DType::F16) {
        bestKernels().toF16(values.data(), n, halves);
    } else {
        std::transform(values.begin(), values.end(), halves, f32ToBf16);
    }
}

Status encode(const Checkpoint& checkpoint, const RowRun& run, EncodedRun& out) {
    out.finite = true;
    out.largest = 0;
    const RowView& view = *run.view;
    if (run.packed && view.dtype() == run.type && isQuantised(run.type) && view.colStride == 1) {
        return rearrange(checkpoint, run, out);
    }
    out.floats.resize(size_t(run.rows * view.cols));
    COLIBRI_TRY(checkpoint.readFloats(view, run.row, run.rows, out.raw, out.floats.data()));
    const uint32_t bits = largestBits(out.floats);
    out.finite = bits < kInfinityBits;
    if (out.finite) out.largest = std::bit_cast<float>(bits);
    if (run.packed) {
        out.bytes.resize(size_t(packedBytes(run.type, run.rows, view.cols)));
        packRows(run.type, out.floats.data(), run.rows, view.cols, out.bytes.data());
    } else {
        storeRows(run.type, out.floats, out.bytes);
    }
    return {};
}

}  // namespace

void addRuns(std::vector<RowRun>& runs, size_t tensor, const RowView& view, DType type,
             bool packed) {
    const int64_t unit = packed ? kPanel : 1;
    const int64_t unitBytes = unit * view.cols * int64_t(sizeof(float));
    // Columns that are not adjacent are read one by one, so more rows at a time mean fewer reads.
    const int64_t bytes = view.colStride == 1 ? kRunBytes : 4 * kRunBytes;
    const int64_t rows = std::max<int64_t>(bytes / unitBytes, 1) * unit;
    for (int64_t row = 0; row < view.rows; row += rows) {
        const int64_t n = std::min(rows, view.rows - row);
        runs.push_back({&view, type, packed, row, n, tensor, row == 0, row + n == view.rows});
    }
}

void ValueFaults::note(const std::string& tensor, const std::string& what) {
    std::string line = tensor + ": " + what;
    if (!m_lines.empty() && m_lines.back() == line) return;
    ++m_count;
    if (m_lines.size() < kListed) m_lines.push_back(std::move(line));
}

Status ValueFaults::status(const std::string& stage) const {
    if (m_count == 0) return {};
    std::string list;
    for (const std::string& line : m_lines) list += "\n  " + line;
    if (m_count > m_lines.size()) {
        list += "\n  and " + formatCount(int64_t(m_count - m_lines.size())) + " more";
    }
    return Status(Code::BadInput,
                  stage + ": values that are not numbers (NaN or infinite) in" + list,
                  "The checkpoint is damaged; download it again");
}

Status encodeRuns(const Checkpoint& checkpoint, std::span<const RowRun> runs, ValueFaults& faults,
                  const CancelFlag* cancel, const TakeRun& take) {
    const int threads =
        std::clamp(int(std::thread::hardware_concurrency()) + kReaders, 1, kMostThreads);
    return makeInOrder<EncodedRun>(
        int64_t(runs.size()), threads,
        [&](int64_t i, EncodedRun& out) { return encode(checkpoint, runs[size_t(i)], out); },
        [&](int64_t i, EncodedRun& encoded) {
            const RowRun& run = runs[size_t(i)];
            const std::string& name = run.view->tensor->name;
            if (cancelled(cancel)) {
                return Status(Code::Cancelled, "The conversion was cancelled",
                              "Run it again to resume");
            }
            if (!encoded.finite) faults.note(name, "not finite");
            if (encoded.largest >= limitOf(run.type)) {
                return Status(Code::BadInput,
                              "tensor \"" + name + "\" holds values up to " +
                                  formatSig(double(encoded.largest)) + ", too large for " +
                                  std::string(dtypeName(run.type)),
                              "Choose bf16");
            }
            return take(run, encoded.bytes);
        });
}

}  // namespace colibri
