// SPDX-License-Identifier: Apache-2.0
// The token -> experts table, router_table.bin: for each token id the experts that the gates choose
// for its embedding alone, computed once for the whole vocabulary. It replaces a matrix product by
// a lookup and is known before a layer begins, but it ignores the context, so it is an
// approximation.
//
//   bytes 0..7    magic "CLBRTBL\0"
//   8..31         uint32 version (1), vocab, layers (MoE), k, experts, dtype (1: uint16)
//   32..39        uint64 xxh3-64 of all that follows the header
//   40..63        zero
//   64..          uint16 [layers][vocab][k], best first, little endian
//
// A file without the magic has the older format: uint16 [vocab][k], one table for all layers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/file.h"
#include "engine/base/hasher.h"
#include "engine/base/status.h"
#include "engine/model/config.h"
#include "kernels/kernels.h"

namespace colibri {

constexpr const char* kRouterTableFile = "router_table.bin";

// A router table in memory, so that a change of the file never affects a running model. Immutable.
class RouterTable {
public:
    // Reads the file and checks size, shape against the model, checksum, the range of every expert,
    // and that no entry has a duplicate. Errors: BadInput with file, byte or token; IoError.
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
    // Has room for one more value that a gather may read. Uses huge pages: the entries of tokens
    // are far apart, so each token would otherwise cost a page-table walk in every layer.
    ScratchBuffer m_data;
};

// Writes a table layer by layer, and the header last, so that an incomplete file is rejected.
class RouterTableWriter {
public:
    static Result<RouterTableWriter> create(const std::filesystem::path& path,
                                            const ModelConfig& config);
    // Appends entries (n, k): layer by layer, in ascending token order.
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
