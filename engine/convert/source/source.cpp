// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "engine/base/hasher.h"
#include "engine/base/in_order.h"
#include "engine/base/printable.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int kOpenFiles = 100;  // shards open at the same time, with two descriptors each
constexpr int kSamplesPerFile = 16;
constexpr int64_t kSampleBytes = 4096;
constexpr int kSamplers = 8;  // threads

uint16_t loadU16(const std::byte* p) {
    uint16_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

void decode(DType type, const std::byte* in, int64_t count, float* out) {
    switch (type) {
        case DType::F32:
            std::memcpy(out, in, size_t(count) * sizeof(float));
            return;
        case DType::F16:
            for (int64_t i = 0; i < count; i += 4096) {
                uint16_t half[4096];
                int64_t n = std::min<int64_t>(4096, count - i);
                std::memcpy(half, in + 2 * i, size_t(n) * 2);
                bestKernels().fromF16(half, n, out + i);
            }
            return;
        case DType::BF16:
            for (int64_t i = 0; i < count; ++i) {
                out[i] = std::bit_cast<float>(uint32_t(loadU16(in + 2 * i)) << 16);
            }
            return;
        default:
            ggmlToFloats(type, in, count / fileBlock(type).cols, out);
    }
}

// E4M3: a sign, four bits of exponent (bias 7), three of mantissa; no infinities.
float fp8ToF32(uint8_t v) {
    const int exponent = v >> 3 & 15, mantissa = v & 7;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
    const float magnitude = exponent == 0 ? std::ldexp(float(mantissa), -9)
                                          : std::ldexp(float(8 + mantissa), exponent - 10);
    return v & 0x80 ? -magnitude : magnitude;
}

// Decodes E4M3 values with a scale for each block of rows and columns of the tensor.
void decodeFp8(const RowView& view, const std::byte* in, int64_t first, int64_t count,
               const std::vector<float>& scales, float* out) {
    static const std::array<float, 256> values = [] {
        std::array<float, 256> all;
        for (int v = 0; v < 256; ++v) all[size_t(v)] = fp8ToF32(uint8_t(v));
        return all;
    }();
    const int64_t perRow = (view.width + view.scaleBlock[1] - 1) / view.scaleBlock[1];
    for (int64_t i = 0; i < count;) {
        const int64_t row = (first + i) / view.width, col = (first + i) % view.width;
        const int64_t inBlock = view.scaleBlock[1] - col % view.scaleBlock[1];
        const int64_t n = std::min({inBlock, view.width - col, count - i});
        const float scale =
            scales[size_t(row / view.scaleBlock[0] * perRow + col / view.scaleBlock[1])];
        for (int64_t j = i; j < i + n; ++j) out[j] = values[uint8_t(in[j])] * scale;
        i += n;
    }
}

// The number of rows, starting at `row` and at most n, that are adjacent in the file.
int64_t runOf(const RowView& view, int64_t row, int64_t n) {
    const int64_t first = view.start(row);
    int64_t run = 1;
    while (run < n && view.start(row + run) == first + run * view.cols) ++run;
    return run;
}

constexpr float kFp4[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};

}  // namespace

int64_t SourceTensor::elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
}

std::string shapeText(const std::vector<int64_t>& shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i) out += ", ";
        out += std::to_string(shape[i]);
    }
    return out + "]";
}

int64_t sourceRowBytes(DType type, int64_t cols) {
    const FileBlock block = fileBlock(type);
    return cols / block.cols * block.bytes;
}

Result<int> Checkpoint::addFile(const std::filesystem::path& path) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<int64_t> size = file->size();
    if (!size) return size.status();
    std::error_code error;
    auto time = std::filesystem::last_write_time(path, error);
    m_files.push_back({path, *size, error ? 0 : int64_t(time.time_since_epoch().count())});
    m_kept->open.emplace_back();
    return int(m_files.size()) - 1;
}

Status Checkpoint::addTensor(SourceTensor tensor) {
    auto [it, fresh] = m_byName.emplace(tensor.name, m_tensors.size());
    if (!fresh) {
        const SourceTensor& other = m_tensors[it->second];
        return Status(Code::BadInput, "tensor \"" + printable(tensor.name) + "\" is both in " +
                                          m_files[size_t(other.file)].path.string() + " and in " +
                                          m_files[size_t(tensor.file)].path.string());
    }
    m_tensors.push_back(std::move(tensor));
    return {};
}

const SourceTensor* Checkpoint::find(const std::string& name) const {
    auto it = m_byName.find(name);
    return it == m_byName.end() ? nullptr : &m_tensors[it->second];
}

int64_t Checkpoint::bytes() const {
    int64_t sum = 0;
    for (const SourceFile& f : m_files) sum += f.bytes;
    return sum;
}

Result<std::shared_ptr<const InputFile>> Checkpoint::fileAt(int index) const {
    std::lock_guard lock(m_kept->mutex);
    std::shared_ptr<const InputFile>& slot = m_kept->open[size_t(index)];
    if (!slot) {
        if (m_kept->openCount >= kOpenFiles) {
            for (auto& file : m_kept->open) file.reset();
            m_kept->openCount = 0;
        }
        Result<InputFile> file = InputFile::open(m_files[size_t(index)].path);
        if (!file) return file.status();
        slot = std::make_shared<const InputFile>(std::move(*file));
        ++m_kept->openCount;
    }
    return slot;
}

Status Checkpoint::read(int file, int64_t offset, std::span<std::byte> out) const {
    Result<std::shared_ptr<const InputFile>> opened = fileAt(file);
    if (!opened) return opened.status();
    return (*opened)->readAt(offset, out);
}

RowView rowsOf(const SourceTensor* tensor, int64_t firstRow, int64_t rows, int64_t cols) {
    RowView view;
    view.tensor = tensor;
    view.rows = rows;
    view.cols = view.rowStride = cols;
    view.base = firstRow * cols;
    return view;
}

int64_t RowView::start(int64_t r) const {
    if (pairedHeads > 0) {
        const int64_t d = rows / pairedHeads, in = r % d;
        r = r / d * d + in % (d / 2) * 2 + in / (d / 2);
    }
    return base + (block > 0 ? r / block * blockStride + r % block * rowStride : r * rowStride);
}

void Checkpoint::rename(const std::function<std::string(const std::string&)>& newName) {
    m_byName.clear();
    std::vector<SourceTensor> kept;
    for (SourceTensor& t : m_tensors) {
        t.name = newName(t.name);
        if (!t.name.empty() && m_byName.emplace(t.name, kept.size()).second) {
            kept.push_back(std::move(t));
        }
    }
    m_tensors = std::move(kept);
}

// Converts one row to the blocks of a GGUF: the scale, then 16 bytes with values j and j + 16. In
// the checkpoint a byte has values 2 j and 2 j + 1, and the scales are in another tensor.
Status Checkpoint::readMxfp4(const RowView& view, int64_t row, std::byte* out) const {
    const int64_t first = view.start(row), blocks = view.cols / kBlock;
    std::vector<std::byte> values(size_t(view.cols / 2)), scales(static_cast<size_t>(blocks));
    COLIBRI_TRY(read(view.tensor->file, view.tensor->offset + first / 2, values));
    COLIBRI_TRY(read(view.scales->file, view.scales->offset + first / kBlock, scales));
    for (int64_t b = 0; b < blocks; ++b) {
        std::byte* block = out + b * (1 + kBlock / 2);
        block[0] = scales[size_t(b)];
        const auto value = [&](int64_t i) {
            const auto byte = uint8_t(values[size_t(b * kBlock / 2 + i / 2)]);
            return uint8_t(i % 2 ? byte >> 4 : byte & 15);
        };
        for (int64_t j = 0; j < kBlock / 2; ++j) {
            block[1 + j] = std::byte(value(j) | value(j + kBlock / 2) << 4);
        }
    }
    return {};
}

Status Checkpoint::readRaw(const RowView& view, int64_t row, int64_t n, std::byte* out) const {
    const SourceTensor& t = *view.tensor;
    const int64_t rowBytes = sourceRowBytes(view.dtype(), view.cols);
    if (view.encoding == Encoding::Mxfp4) {
        for (int64_t i = 0; i < n; ++i) COLIBRI_TRY(readMxfp4(view, row + i, out + i * rowBytes));
        return {};
    }
    for (int64_t i = 0; i < n;) {
        const int64_t run = runOf(view, row + i, n - i);
        COLIBRI_TRY(read(t.file, t.offset + sourceRowBytes(*t.dtype, view.start(row + i)),
                         {out + i * rowBytes, size_t(run * rowBytes)}));
        i += run;
    }
    return {};
}

Result<Checkpoint::Scales> Checkpoint::scalesOf(const SourceTensor& tensor) const {
    {
        std::lock_guard lock(m_kept->mutex);
        if (m_kept->scalesTensor == &tensor) return m_kept->scales;
    }
    auto scales = std::make_shared<std::vector<float>>(size_t(tensor.elements()));
    std::vector<std::byte> raw(size_t(tensor.bytes));
    COLIBRI_TRY(read(tensor.file, tensor.offset, raw));
    if (tensor.dtype) {
        decode(*tensor.dtype, raw.data(), tensor.elements(), scales->data());
    } else {  // the bytes are exponents
        for (size_t i = 0; i < raw.size(); ++i) {
            (*scales)[i] = std::ldexp(1.0f, int(raw[i]) - 127);
        }
    }
    std::lock_guard lock(m_kept->mutex);
    m_kept->scalesTensor = &tensor;
    m_kept->scales = scales;
    return Scales(scales);
}

// Reads `count` consecutive elements of the view's tensor, starting at `first`.
Status Checkpoint::readSpan(const RowView& view, int64_t first, int64_t count,
                            std::vector<std::byte>& scratch, float* out) const {
    const SourceTensor& t = *view.tensor;
    if (view.encoding == Encoding::Plain) {
        const DType type = *t.dtype;
        const int64_t block = fileBlock(type).cols, skip = first % block;
        const int64_t whole = (skip + count + block - 1) / block * block;
        scratch.resize(size_t(sourceRowBytes(type, whole)));
        COLIBRI_TRY(read(t.file, t.offset + sourceRowBytes(type, first - skip), scratch));
        if (whole == count) {
            decode(type, scratch.data(), count, out);
        } else {  // values within blocks
            std::vector<float> values(static_cast<size_t>(whole));
            decode(type, scratch.data(), whole, values.data());
            std::copy(values.begin() + skip, values.begin() + skip + count, out);
        }
        return {};
    }
    Result<Scales> scales = scalesOf(*view.scales);
    if (!scales) return scales.status();
    const bool fp8 = view.encoding == Encoding::Fp8;
    scratch.resize(size_t(fp8 ? count : count / 2));
    COLIBRI_TRY(read(t.file, t.offset + (fp8 ? first : first / 2), scratch));
    if (fp8) {
        decodeFp8(view, scratch.data(), first, count, **scales, out);
        return {};
    }
    for (int64_t i = 0; i < count; ++i) {
        const int byte = int(scratch[size_t(i / 2)]);
        out[i] = kFp4[i % 2 ? byte >> 4 : byte & 15] * (**scales)[size_t((first + i) / kBlock)];
    }
    return {};
}

// Reads whole spans of the file and picks values that are not adjacent. Reads along rows or
// columns, whichever is denser.
Status Checkpoint::readFloats(const RowView& view, int64_t row, int64_t n,
                              std::vector<std::byte>& scratch, float* out) const {
    if (view.colStride == 1) {
        for (int64_t i = 0; i < n;) {
            const int64_t run = runOf(view, row + i, n - i);
            COLIBRI_TRY(
                readSpan(view, view.start(row + i), run * view.cols, scratch, out + i * view.cols));
            i += run;
        }
        return {};
    }
    std::vector<float> values;
    // Reads `count` values with distance `stride`, starting at element `first`, to out[0],
    // out[step], ...
    const auto pick = [&](int64_t first, int64_t count, int64_t stride, float* to, int64_t step) {
        const int64_t span = (count - 1) * stride + 1;
        values.resize(size_t(span));
        COLIBRI_TRY(readSpan(view, first, span, scratch, values.data()));
        for (int64_t i = 0; i < count; ++i) to[i * step] = values[size_t(i * stride)];
        return Status();
    };
    if (view.colStride < view.rowStride) {
        for (int64_t r = 0; r < n; ++r) {
            COLIBRI_TRY(
                pick(view.start(row + r), view.cols, view.colStride, out + r * view.cols, 1));
        }
        return {};
    }
    for (int64_t r = 0; r < n;) {
        const int64_t inBlock = view.block > 0 ? view.block - (row + r) % view.block : n;
        const int64_t run = std::min(n - r, inBlock);
        for (int64_t c = 0; c < view.cols; ++c) {
            COLIBRI_TRY(pick(view.start(row + r) + c * view.colStride, run, view.rowStride,
                             out + r * view.cols + c, view.cols));
        }
        r += run;
    }
    return {};
}

Result<std::string> Checkpoint::fingerprint(const std::string& extra) const {
    Fingerprinter all;
    all.update(extra);
    std::vector<const SourceTensor*> sorted;
    for (const SourceTensor& t : m_tensors) sorted.push_back(&t);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
    for (const SourceTensor* t : sorted) {
        all.update("\n" + t->name + " " + t->typeName + " " + shapeText(t->shape));
    }
    // Each read waits for the disk, so several run at a time.
    COLIBRI_TRY(makeInOrder<std::string>(
        int64_t(m_files.size()), kSamplers,
        [&](int64_t file, std::string& samples) {
            const int64_t size = m_files[size_t(file)].bytes, n = std::min(kSampleBytes, size);
            samples.resize(size_t(n * kSamplesPerFile));
            for (int64_t s = 0; s < kSamplesPerFile; ++s) {
                const std::span<char> sample(samples.data() + s * n, size_t(n));
                COLIBRI_TRY(read(int(file), (size - n) / kSamplesPerFile * (s + 1),
                                 std::as_writable_bytes(sample)));
            }
            return Status();
        },
        [&](int64_t, std::string& samples) {
            all.update(samples);
            return Status();
        }));
    return all.hex();
}

}  // namespace colibri
