// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <system_error>

#include "engine/model/hasher.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int kOpenFiles = 128;          // shards held open at once
constexpr int kSamplesPerFile = 16;
constexpr int64_t kSampleBytes = 4096;

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

// Row of the file that holds row `r` of a view whose heads lie in rotated pairs.
int64_t pairedRow(const RowView& view, int64_t r) {
    int64_t d = view.rows / view.pairedHeads;
    int64_t head = r / d, in = r % d;
    int64_t half = in / (d / 2), i = in % (d / 2);
    return head * d + 2 * i + half;
}

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
    m_open.emplace_back();
    return int(m_files.size()) - 1;
}

Status Checkpoint::addTensor(SourceTensor tensor) {
    auto [it, fresh] = m_byName.emplace(tensor.name, m_tensors.size());
    if (!fresh) {
        const SourceTensor& other = m_tensors[it->second];
        return Status(Code::BadInput, "tensor \"" + tensor.name + "\" stands in " +
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

Result<const File*> Checkpoint::fileAt(int index) const {
    std::optional<File>& slot = m_open[size_t(index)];
    if (!slot) {
        if (m_openCount >= kOpenFiles) {
            for (auto& file : m_open) file.reset();
            m_openCount = 0;
        }
        Result<File> file = File::open(m_files[size_t(index)].path, File::Mode::Read);
        if (!file) return file.status();
        slot.emplace(std::move(*file));
        ++m_openCount;
    }
    return static_cast<const File*>(&*slot);
}

Status Checkpoint::read(int file, int64_t offset, std::span<std::byte> out) const {
    Result<const File*> opened = fileAt(file);
    if (!opened) return opened.status();
    return (*opened)->readAt(offset, out);
}

Status Checkpoint::readRaw(const RowView& view, int64_t row, int64_t n, std::byte* out) const {
    const SourceTensor& t = *view.tensor;
    int64_t rowBytes = sourceRowBytes(*t.dtype, view.cols);
    if (view.pairedHeads == 0) {
        return read(t.file, t.offset + (view.firstRow + row) * rowBytes,
                    {out, size_t(n * rowBytes)});
    }
    for (int64_t i = 0; i < n; ++i) {
        int64_t from = view.firstRow + pairedRow(view, row + i);
        COLIBRI_TRY(read(t.file, t.offset + from * rowBytes,
                         {out + i * rowBytes, size_t(rowBytes)}));
    }
    return {};
}

Status Checkpoint::readFloats(const RowView& view, int64_t row, int64_t n,
                              std::vector<std::byte>& scratch, float* out) const {
    DType type = *view.tensor->dtype;
    scratch.resize(size_t(n * sourceRowBytes(type, view.cols)));
    COLIBRI_TRY(readRaw(view, row, n, scratch.data()));
    decode(type, scratch.data(), n * view.cols, out);
    return {};
}

Result<std::string> Checkpoint::fingerprint(const std::string& extra) const {
    std::string text = extra;
    std::vector<const SourceTensor*> sorted;
    for (const SourceTensor& t : m_tensors) sorted.push_back(&t);
    std::sort(sorted.begin(), sorted.end(),
              [](auto* a, auto* b) { return a->name < b->name; });
    for (const SourceTensor* t : sorted) {
        text += "\n" + t->name + " " + t->typeName + " " + shapeText(t->shape);
    }
    std::vector<std::byte> sample;
    for (size_t i = 0; i < m_files.size(); ++i) {
        const int64_t size = m_files[i].bytes;
        for (int s = 0; s < kSamplesPerFile; ++s) {
            int64_t n = std::min(kSampleBytes, size);
            int64_t offset = (size - n) / kSamplesPerFile * (s + 1);
            sample.resize(size_t(n));
            COLIBRI_TRY(read(int(i), offset, sample));
            text.append(reinterpret_cast<const char*>(sample.data()), sample.size());
        }
    }
    return fingerprintOf(text);
}

}  // namespace colibri
