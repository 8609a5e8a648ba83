// SPDX-License-Identifier: Apache-2.0
// A checkpoint as the converters see it: files, their tensors, and rows of tensors as f32 or as
// stored. Nothing is mapped or cached; every read is one positional read of a bounded range, and
// the reading functions may be called from several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/input.h"
#include "kernels/dtype.h"

namespace colibri {

constexpr int64_t kElementLimit = int64_t(1) << 56;  // of one tensor; the parsers enforce it
constexpr float kF16Overflow = 65520;                // rounds to infinity from here on
constexpr size_t kListed = 20;                       // names shown per kind of fault

struct SourceTensor {
    std::string name;
    std::string typeName;           // as in the file: "BF16", "F8_E4M3"
    std::optional<DType> dtype;     // nothing: an unsupported type
    std::vector<int64_t> shape;     // outermost first
    int file = 0;                   // index into the checkpoint's files
    int64_t offset = 0, bytes = 0;  // in the file

    int64_t elements() const;  // at most kElementLimit
};

// "[64, 2048]"
std::string shapeText(const std::vector<int64_t>& shape);

// Bytes of one row of `cols` stored values; quantised types in ggml's block form.
int64_t sourceRowBytes(DType type, int64_t cols);

// How the values of a view are stored: in the tensor's type, or as FP8 (E4M3) or MXFP4 with scales
// in a separate tensor, as in Hugging Face checkpoints.
enum class Encoding { Plain, Fp8, Mxfp4 };

// A matrix within a tensor. Value (r, c) is element `base + start(r) + c * colStride`. Row r starts
// at r * rowStride or, in blocks, at r / block * blockStride + r % block * rowStride.
struct RowView {
    const SourceTensor* tensor = nullptr;
    int64_t rows = 0, cols = 0;
    int64_t base = 0, rowStride = 0, colStride = 1;
    int64_t block = 0, blockStride = 0;  // 0: not in blocks
    // Rows of each head are stored as rotated pairs (0, d/2, 1, d/2 + 1, ...) and are read in the
    // order of halves. 0: stored in the order of halves.
    int64_t pairedHeads = 0;
    Encoding encoding = Encoding::Plain;
    const SourceTensor* scales = nullptr;
    int64_t width = 0;                    // FP8: width of the tensor's rows, to find the scales
    std::array<int64_t, 2> scaleBlock{};  // FP8: rows and columns that share a scale

    // The default type of a conversion.
    DType dtype() const {
        return encoding == Encoding::Plain ? *tensor->dtype
               : encoding == Encoding::Fp8 ? DType::BF16
                                           : DType::MXFP4;
    }
    int64_t start(int64_t row) const;  // element at which a row begins
};

// Consecutive whole rows of a tensor that is a matrix or a stack of them.
RowView rowsOf(const SourceTensor* tensor, int64_t firstRow, int64_t rows, int64_t cols);

struct SourceFile {
    std::filesystem::path path;
    int64_t bytes = 0;
    int64_t modified = 0;  // to detect a change between two runs; not part of the identity
};

class Checkpoint {
public:
    // Adds a file (opened and measured); returns its index.
    Result<int> addFile(const std::filesystem::path& path);
    // Errors: BadInput if there is already a tensor of this name.
    Status addTensor(SourceTensor tensor);

    const std::vector<SourceFile>& files() const { return m_files; }
    const std::vector<SourceTensor>& tensors() const { return m_tensors; }
    const SourceTensor* find(const std::string& name) const;
    // Keeps the tensors whose new name is not empty.
    void rename(const std::function<std::string(const std::string&)>& newName);
    int64_t bytes() const;  // of all files

    // Bytes of a file at an offset.
    Status read(int file, int64_t offset, std::span<std::byte> out) const;
    // Rows [row, row + n) of a view as stored (n * sourceRowBytes of its dtype; REQUIRES: not FP8,
    // colStride 1) or as f32 (n * cols).
    Status readRaw(const RowView& view, int64_t row, int64_t n, std::byte* out) const;
    Status readFloats(const RowView& view, int64_t row, int64_t n, std::vector<std::byte>& scratch,
                      float* out) const;

    // hex xxh3-128 of `extra` (the config), every tensor's name, type and shape, and samples of
    // the data, so that two fine-tunes of one model differ and two copies do not.
    Result<std::string> fingerprint(const std::string& extra) const;

private:
    Result<std::shared_ptr<const InputFile>> fileAt(int index) const;
    Status readMxfp4(const RowView& view, int64_t row, std::byte* out) const;
    Status readSpan(const RowView& view, int64_t first, int64_t count,
                    std::vector<std::byte>& scratch, float* out) const;
    // A small tensor as f32; cached for the next call.
    using Scales = std::shared_ptr<const std::vector<float>>;
    Result<Scales> scalesOf(const SourceTensor& tensor) const;
    // State shared between calls.
    struct Kept {
        std::mutex mutex;
        std::vector<std::shared_ptr<const InputFile>>
            open;  // by file; the number open at once is limited
        int openCount = 0;
        const SourceTensor* scalesTensor = nullptr;
        Scales scales;
    };

    std::vector<SourceFile> m_files;
    std::unique_ptr<Kept> m_kept = std::make_unique<Kept>();
    std::vector<SourceTensor> m_tensors;
    std::unordered_map<std::string, size_t> m_byName;
};

}  // namespace colibri
