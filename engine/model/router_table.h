// SPDX-License-Identifier: Apache-2.0
// The token -> experts table, router_table.bin: for each token id the experts that the gates choose
// for its embedding alone, computed once for the whole vocabulary. A look-up instead of a product,
// and known before a layer begins; right only as far as the context does not matter.
//
//   bytes 0..7    magic "CLBRTBL\0"
//   8..31         uint32 version (1), vocab, layers (MoE), k, experts, dtype (1: uint16)
//   32..39        uint64 xxh3-64 of all that follows the header
//   40..63        zero
//   64..          uint16 [layers][vocab][k], best first, little endian
//
// A file without the magic is the older form: uint16 [vocab][k], one table for every layer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/file.h"
#include "engine/base/status.h"
#include "engine/model/config.h"
#include "engine/base/hasher.h"
#include "kernels/kernels.h"

namespace colibri {

constexpr const char* kRouterTableFile = "router_table.bin";

// In memory, so that a change of the file never reaches a running model. Immutable.
class RouterTable {
public:
    // Reads and checks everything: size, shape against the model, checksum, every expert's range,
    // no expert twice in an entry. Errors: BadInput naming file, byte or token; IoError.
    static Result<std::shared_ptr<const RouterTable>> load(const std::filesystem::path& path,
                                                           const ModelConfig& config);

    // Experts (n, k) of n tokens in a MoE layer. REQUIRES: tokens in the vocabulary.
    void lookup(const KernelSet& kernels, int64_t moeLayer, std::span<const int32_t> tokens,
                int32_t* experts) const;

    int64_t layers() const { return m_layers; }  // 1: the same for every layer
    int64_t bytes() const { return m_data.bytes(); }

private:
    RouterTable() = default;
    Status readHeader(const File& file, int64_t size, const ModelConfig& config);
    Status checkEntries(const std::filesystem::path& path, int64_t experts) const;
    const uint16_t* entries() const { return static_cast<const uint16_t*>(m_data.data()); }

    int64_t m_vocab = 0, m_layers = 0, m_topK = 0;
    int64_t m_offset = 0;  // of the data in the file
    bool m_hashed = false;
    uint64_t m_hash = 0;
    // And one value that a gather may read. In huge pages: a token's entries lie far apart, and one
    // token alone would wait for a page table in every layer.
    ScratchBuffer m_data;
};

// Writes a table layer by layer; the header comes last, so that a half-written file is refused.
class RouterTableWriter {
public:
    static Result<RouterTableWriter> create(const std::filesystem::path& path,
                                            const ModelConfig& config);
    // Entries (n, k) that follow those given so far: layer by layer, by rising token.
    Status append(std::span<const uint16_t> entries);
    Status finish();

private:
    RouterTableWriter(File file, const ModelConfig& config);

    File m_file;
    int64_t m_vocab, m_layers, m_topK, m_experts;
    int64_t m_position;
    Hasher m_hasher;
};

}  // namespace colibri
