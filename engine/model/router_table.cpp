// SPDX-License-Identifier: Apache-2.0
#include "engine/model/router_table.h"

#include <algorithm>
#include <cstring>

#include "engine/base/format.h"

namespace colibri {

namespace {

constexpr char kMagic[8] = {'C', 'L', 'B', 'R', 'T', 'B', 'L', 0};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kUint16 = 1;

struct Header {
    char magic[8];
    uint32_t version, vocab, layers, topK, experts, dtype;
    uint64_t hash;
    uint8_t zero[24];
};
static_assert(sizeof(Header) == 64);

Status bad(const std::filesystem::path& path, const std::string& what) {
    return Status(Code::BadInput, path.string() + ": " + what,
                  "Make the table again: colibri convert --router-table");
}

}  // namespace

Result<std::shared_ptr<const RouterTable>> RouterTable::load(const std::filesystem::path& path,
                                                             const ModelConfig& config) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file.ok()) return file.status();
    Result<int64_t> size = file->size();
    if (!size.ok()) return size.status();
    std::shared_ptr<RouterTable> table(new RouterTable);
    COLIBRI_TRY(table->readHeader(*file, *size, config));
    const int64_t values = table->m_layers * table->m_vocab * table->m_topK;
    const std::span<uint16_t> data(table->m_data.as<uint16_t>(values + 1), size_t(values));
    data.data()[values] = 0;
    COLIBRI_TRY(file->readAt(table->m_offset, std::as_writable_bytes(data)));
    if (table->m_hashed) {
        Hasher hasher;
        hasher.update(data.data(), data.size_bytes());
        if (hasher.digest() != table->m_hash) {
            return bad(path, "the checksum in its header does not match its content");
        }
    }
    COLIBRI_TRY(table->checkEntries(path, config.numExperts));
    return std::shared_ptr<const RouterTable>(std::move(table));
}

Status RouterTable::readHeader(const File& file, int64_t size, const ModelConfig& config) {
    const int64_t layers = config.moeLayerCount();
    if (layers == 0) return bad(file.path(), "the model has no experts to choose");
    m_vocab = config.vocabSize;
    m_topK = config.topK;
    const int64_t layerBytes = m_vocab * m_topK * int64_t(sizeof(uint16_t));
    Header h{};
    if (size >= int64_t(sizeof h))
        COLIBRI_TRY(file.readAt(0, std::as_writable_bytes(std::span(&h, 1))));
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) {
        if (size != layerBytes) {
            return bad(file.path(), "not a router table of this model: " + formatCount(size) +
                                        " bytes, without a header " + formatCount(layerBytes) +
                                        " are expected (vocabulary " + std::to_string(m_vocab) +
                                        ", top-" + std::to_string(m_topK) + ")");
        }
        m_layers = 1;
        return {};
    }
    if (h.version > kVersion) {
        return Status(Code::Unsupported, file.path().string() + ": router table version " +
                                             std::to_string(h.version) + ", this program reads " +
                                             std::to_string(kVersion));
    }
    const struct {
        const char* name;
        int64_t file, model;
    } fields[] = {{"version", h.version, kVersion},
                  {"dtype", h.dtype, kUint16},
                  {"vocab", h.vocab, m_vocab},
                  {"layers", h.layers, layers},
                  {"k", h.topK, m_topK},
                  {"experts", h.experts, config.numExperts}};
    for (const auto& f : fields) {
        if (f.file != f.model) {
            return bad(file.path(), std::string(f.name) + " is " + std::to_string(f.file) +
                                        ", this model needs " + std::to_string(f.model));
        }
    }
    m_layers = layers;
    m_offset = sizeof h;
    m_hashed = true;
    m_hash = h.hash;
    if (size != m_offset + layers * layerBytes) {
        return bad(file.path(), formatCount(size) + " bytes, expected " +
                                    formatCount(m_offset + layers * layerBytes));
    }
    return {};
}

Status RouterTable::checkEntries(const std::filesystem::path& path, int64_t experts) const {
    for (int64_t i = 0; i < m_layers * m_vocab; ++i) {
        const uint16_t* entry = entries() + i * m_topK;
        for (int64_t j = 0; j < m_topK; ++j) {
            const bool twice = std::find(entry, entry + j, entry[j]) != entry + j;
            if (entry[j] < experts && !twice) continue;
            return bad(path, "token " + std::to_string(i % m_vocab) + " in MoE layer " +
                                 std::to_string(i / m_vocab) + " names expert " +
                                 std::to_string(entry[j]) +
                                 (twice ? " twice" : " of " + std::to_string(experts)));
        }
    }
    return {};
}

void RouterTable::lookup(const KernelSet& kernels, int64_t moeLayer,
                         std::span<const int32_t> tokens, int32_t* experts) const {
    const int64_t layer = std::min(moeLayer, m_layers - 1);
    kernels.tableLookup(entries() + layer * m_vocab * m_topK, m_topK, tokens.data(),
                        int64_t(tokens.size()), experts);
}

RouterTableWriter::RouterTableWriter(File file, const ModelConfig& config)
    : m_file(std::move(file)),
      m_vocab(config.vocabSize),
      m_layers(config.moeLayerCount()),
      m_topK(config.topK),
      m_experts(config.numExperts),
      m_position(sizeof(Header)) {}

Result<RouterTableWriter> RouterTableWriter::create(const std::filesystem::path& path,
                                                    const ModelConfig& config) {
    Result<File> file = File::open(path, File::Mode::Create);
    if (!file.ok()) return file.status();
    return RouterTableWriter(std::move(*file), config);
}

Status RouterTableWriter::append(std::span<const uint16_t> entries) {
    COLIBRI_TRY(m_file.writeAt(m_position, std::as_bytes(entries)));
    m_position += int64_t(entries.size_bytes());
    m_hasher.update(entries.data(), entries.size_bytes());
    return {};
}

Status RouterTableWriter::finish() {
    Header h{};
    std::memcpy(h.magic, kMagic, sizeof kMagic);
    h.version = kVersion;
    h.vocab = uint32_t(m_vocab);
    h.layers = uint32_t(m_layers);
    h.topK = uint32_t(m_topK);
    h.experts = uint32_t(m_experts);
    h.dtype = kUint16;
    h.hash = m_hasher.digest();
    COLIBRI_TRY(m_file.writeAt(0, std::as_bytes(std::span(&h, 1))));
    return m_file.sync();
}

}  // namespace colibri
