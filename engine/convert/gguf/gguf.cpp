// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf.h"

#include <algorithm>
#include <cstring>

#include "engine/base/printable.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

constexpr int64_t kGgufHeaderLimit = 512 << 20;
constexpr int64_t kFirstRead = 1 << 20;
constexpr uint64_t kStringLimit = 64 << 20;
constexpr uint64_t kCountLimit = 16 << 20;
constexpr int kMaxDims = 4;

// ggml's weight types, including those that are not supported, for messages. The size of a tensor
// is checked if the block size of its type is known.
struct GgmlType {
    uint32_t id;
    const char* name;
    std::optional<DType> dtype;
    FileBlock block = {0, 0};  // of an unsupported type; 0: unknown
};
const GgmlType kGgmlTypes[] = {
    {0, "F32", DType::F32},
    {1, "F16", DType::F16},
    {2, "Q4_0", DType::Q4_0},
    {3, "Q4_1", DType::Q4_1},
    {6, "Q5_0", DType::Q5_0},
    {7, "Q5_1", DType::Q5_1},
    {8, "Q8_0", DType::Q8_0},
    {9, "Q8_1", {}, {32, 36}},
    {10, "Q2_K", {}, {256, 84}},
    {11, "Q3_K", {}, {256, 110}},
    {12, "Q4_K", DType::Q4_K},
    {13, "Q5_K", DType::Q5_K},
    {14, "Q6_K", DType::Q6_K},
    {15, "Q8_K", {}, {256, 292}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}, {32, 18}},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}, {256, 136}},
    {24, "I8", {}, {1, 1}},
    {25, "I16", {}, {1, 2}},
    {26, "I32", {}, {1, 4}},
    {27, "I64", {}, {1, 8}},
    {28, "F64", {}, {1, 8}},
    {29, "IQ1_M", {}},
    {30, "BF16", DType::BF16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", DType::MXFP4},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
};

enum ValueType : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64,
};

// Bytes of a fixed-size value; 0 for strings, arrays and unknown types.
int valueBytes(uint32_t type) {
    switch (type) {
        case kU8:
        case kI8:
        case kBool:
            return 1;
        case kU16:
        case kI16:
            return 2;
        case kU32:
        case kI32:
        case kF32:
            return 4;
        case kU64:
        case kI64:
        case kF64:
            return 8;
        default:
            return 0;
    }
}

class Parser {
public:
    Parser(std::span<const std::byte> start, int64_t fileBytes, const std::string& where,
           bool& needMore)
        : m_data(start), m_fileBytes(fileBytes), m_where(where), m_needMore(needMore) {}

    Result<GgufHeader> run() {
        GgufHeader out;
        char magic[4] = {};
        take(magic, 4);
        uint32_t version = read<uint32_t>();
        if (m_status.ok() && std::memcmp(magic, "GGUF", 4) != 0) fail("not a GGUF file");
        if (m_status.ok() && version != 2 && version != 3) {
            bool swapped = (version & 0xffff) == 0;
            return Status(Code::Unsupported,
                          m_where + (swapped ? ": big-endian GGUF is not supported"
                                             : ": GGUF version " + std::to_string(version) +
                                                   " is not supported (2 and 3 are)"));
        }
        out.version = int(version);
        uint64_t tensors = read<uint64_t>(), pairs = read<uint64_t>();
        if (m_status.ok() && (tensors > kCountLimit || pairs > kCountLimit)) {
            fail("counts of " + std::to_string(tensors) + " tensors and " + std::to_string(pairs) +
                 " keys are not plausible");
        }
        for (uint64_t i = 0; i < pairs && m_status.ok(); ++i) readPair(out);
        for (uint64_t i = 0; i < tensors && m_status.ok(); ++i) readTensor(out);
        if (!m_status.ok()) return m_status;
        COLIBRI_TRY(locateData(out));
        return out;
    }

private:
    void fail(const std::string& what) {
        if (m_status.ok()) {
            m_status = Status(Code::BadInput, m_where + ": " + printable(what) + " (byte " +
                                                  std::to_string(m_at) + ")");
        }
    }

    bool take(void* out, size_t bytes) {
        if (!m_status.ok()) return false;
        if (bytes > m_data.size() - m_at) {
            m_needMore = int64_t(m_data.size()) < m_fileBytes;
            fail("the header is truncated");
            return false;
        }
        std::memcpy(out, m_data.data() + m_at, bytes);
        m_at += bytes;
        return true;
    }
    bool skip(uint64_t bytes) {
        if (!m_status.ok()) return false;
        if (bytes > m_data.size() - m_at) {
            m_needMore = int64_t(m_data.size()) < m_fileBytes;
            fail("the header is truncated");
            return false;
        }
        m_at += size_t(bytes);
        return true;
    }
    template <typename T>
    T read() {
        T v{};
        take(&v, sizeof v);
        return v;
    }
    std::string readString() {
        uint64_t length = read<uint64_t>();
        if (m_status.ok() && length > kStringLimit)
            fail("a string of " + std::to_string(length) + " bytes is too long");
        if (!m_status.ok()) return {};
        if (length > m_data.size() - m_at) {
            skip(length);  // reports the fault
            return {};
        }
        std::string out(reinterpret_cast<const char*>(m_data.data()) + m_at, size_t(length));
        m_at += size_t(length);
        return out;
    }

    GgufValue readScalar(uint32_t type) {
        switch (type) {
            case kU8:
                return int64_t(read<uint8_t>());
            case kI8:
                return int64_t(read<int8_t>());
            case kU16:
                return int64_t(read<uint16_t>());
            case kI16:
                return int64_t(read<int16_t>());
            case kU32:
                return int64_t(read<uint32_t>());
            case kI32:
                return int64_t(read<int32_t>());
            case kU64:
                return int64_t(std::min<uint64_t>(read<uint64_t>(), uint64_t(INT64_MAX)));
            case kI64:
                return read<int64_t>();
            case kF32:
                return double(read<float>());
            case kF64:
                return read<double>();
            case kBool:
                return read<uint8_t>() != 0;
            case kString:
                return readString();
            default:
                fail("a value of unknown type " + std::to_string(type));
                return {};
        }
    }

    GgufValue readArray(int depth) {
        uint32_t type = read<uint32_t>();
        uint64_t count = read<uint64_t>();
        if (m_status.ok() && (count > kCountLimit || depth > 4)) fail("an array is too large");
        if (!m_status.ok()) return {};
        if (type == kArray) {
            for (uint64_t i = 0; i < count && m_status.ok(); ++i) readArray(depth + 1);
            return {};
        }
        if (type == kString) {
            std::vector<std::string> out;
            for (uint64_t i = 0; i < count && m_status.ok(); ++i) out.push_back(readString());
            return out;
        }
        int bytes = valueBytes(type);
        if (bytes == 0) fail("an array of unknown type " + std::to_string(type));
        if (m_status.ok() && count * uint64_t(bytes) > m_data.size() - m_at) {
            skip(count * uint64_t(bytes));
        }
        std::vector<double> out;
        for (uint64_t i = 0; i < count && m_status.ok(); ++i) {
            GgufValue v = readScalar(type);
            if (auto* whole = std::get_if<int64_t>(&v))
                out.push_back(double(*whole));
            else if (auto* real = std::get_if<double>(&v))
                out.push_back(*real);
            else if (auto* yes = std::get_if<bool>(&v))
                out.push_back(*yes ? 1 : 0);
        }
        return out;
    }

    void readPair(GgufHeader& out) {
        std::string key = readString();
        uint32_t type = read<uint32_t>();
        GgufValue value = type == kArray ? readArray(0) : readScalar(type);
        if (m_status.ok() && !out.metadata.emplace(key, std::move(value)).second) {
            fail("duplicate key \"" + key + "\"");
        }
    }

    void readTensor(GgufHeader& out) {
        SourceTensor t;
        t.name = readString();
        uint32_t dims = read<uint32_t>();
        if (m_status.ok() && (dims == 0 || dims > kMaxDims)) {
            fail("tensor \"" + t.name + "\" has " + std::to_string(dims) + " dimensions");
        }
        int64_t elements = 1;
        for (uint32_t i = 0; i < dims && m_status.ok(); ++i) {
            uint64_t d = read<uint64_t>();
            if (d == 0 || d > uint64_t(kElementLimit) ||
                __builtin_mul_overflow(elements, int64_t(d), &elements) ||
                elements > kElementLimit) {
                fail("tensor \"" + t.name + "\" has an invalid size");
                return;
            }
            t.shape.insert(t.shape.begin(), int64_t(d));
        }
        uint32_t type = read<uint32_t>();
        uint64_t offset = read<uint64_t>();
        if (!m_status.ok()) return;
        auto it = std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes),
                               [&](const GgmlType& row) { return row.id == type; });
        if (offset > uint64_t(m_fileBytes)) {
            fail("tensor \"" + t.name + "\" is past the end of the file");
            return;
        }
        t.offset = int64_t(offset);
        if (it == std::end(kGgmlTypes)) {
            t.typeName = "type " + std::to_string(type);  // size unknown: never read
        } else {
            const FileBlock block = it->dtype ? fileBlock(*it->dtype) : it->block;
            t.typeName = it->name;
            t.dtype = it->dtype;
            if (block.cols > 0 && t.shape.back() % block.cols != 0) {
                fail("tensor \"" + t.name + "\": a row of " + std::to_string(t.shape.back()) +
                     " does not divide into blocks of " + it->name);
                return;
            }
            if (block.cols > 0) t.bytes = elements / block.cols * block.bytes;
        }
        out.tensors.push_back(std::move(t));
    }

    // Offsets are relative to the first aligned byte after the header.
    Status locateData(GgufHeader& out) {
        int64_t alignment = out.integer("general.alignment").value_or(32);
        if (alignment < 1 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0) {
            return Status(Code::BadInput, m_where + ": general.alignment " +
                                              std::to_string(alignment) + " is not a power of two");
        }
        int64_t start = alignUp(int64_t(m_at), alignment);
        for (SourceTensor& t : out.tensors) {
            if (t.offset % alignment != 0) {
                return Status(Code::BadInput,
                              m_where + ": tensor \"" + printable(t.name) + "\" is not aligned");
            }
            t.offset += start;
            if (t.offset > m_fileBytes - t.bytes) {
                return Status(Code::BadInput,
                              m_where + ": the data of tensor \"" + printable(t.name) +
                                  "\" ends at byte " + std::to_string(t.offset + t.bytes) + " of " +
                                  std::to_string(m_fileBytes) + "; the file is truncated");
            }
        }
        std::vector<const SourceTensor*> sorted;
        for (const SourceTensor& t : out.tensors) sorted.push_back(&t);
        std::sort(sorted.begin(), sorted.end(),
                  [](auto* a, auto* b) { return a->offset < b->offset; });
        for (size_t i = 1; i < sorted.size(); ++i) {
            if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset) {
                return Status(Code::BadInput, m_where + ": tensors \"" +
                                                  printable(sorted[i - 1]->name) + "\" and \"" +
                                                  printable(sorted[i]->name) + "\" overlap");
            }
        }
        return {};
    }

    std::span<const std::byte> m_data;
    int64_t m_fileBytes;
    const std::string& m_where;
    bool& m_needMore;
    size_t m_at = 0;
    Status m_status;
};

template <typename T>
const T* get(const std::map<std::string, GgufValue>& metadata, const std::string& key) {
    auto it = metadata.find(key);
    return it == metadata.end() ? nullptr : std::get_if<T>(&it->second);
}

}  // namespace

const std::string* GgufHeader::text(const std::string& key) const {
    return get<std::string>(metadata, key);
}
const std::vector<std::string>* GgufHeader::texts(const std::string& key) const {
    return get<std::vector<std::string>>(metadata, key);
}
const std::vector<double>* GgufHeader::numbers(const std::string& key) const {
    return get<std::vector<double>>(metadata, key);
}
std::optional<int64_t> GgufHeader::integer(const std::string& key) const {
    const int64_t* v = get<int64_t>(metadata, key);
    return v ? std::optional(*v) : std::nullopt;
}
std::optional<double> GgufHeader::number(const std::string& key) const {
    if (const double* v = get<double>(metadata, key)) return *v;
    std::optional<int64_t> whole = integer(key);
    return whole ? std::optional(double(*whole)) : std::nullopt;
}
std::optional<bool> GgufHeader::flag(const std::string& key) const {
    const bool* v = get<bool>(metadata, key);
    return v ? std::optional(*v) : std::nullopt;
}

Result<GgufHeader> parseGgufHeader(std::span<const std::byte> start, int64_t fileBytes,
                                   const std::string& where, bool& needMore) {
    needMore = false;
    return Parser(start, fileBytes, where, needMore).run();
}

Result<GgufHeader> readGgufHeader(const File& file, int64_t fileBytes) {
    std::vector<std::byte> start;
    for (int64_t want = kFirstRead;; want *= 8) {
        int64_t n = std::min({want, fileBytes, kGgufHeaderLimit});
        start.resize(size_t(n));
        COLIBRI_TRY(file.readAt(0, start));
        bool needMore = false;
        Result<GgufHeader> header =
            parseGgufHeader(start, fileBytes, file.path().string(), needMore);
        if (header || !needMore || n >= kGgufHeaderLimit) return header;
    }
}

}  // namespace colibri
