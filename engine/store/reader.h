// SPDX-License-Identifier: Apache-2.0
// The source of expert records. The product uses FileReader; tests provide readers that fail, stall
// or return short counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"

namespace colibri {

// The properties of a model that the store needs.
struct StoreShape {
    int64_t experts = 0;               // per layer
    int64_t topK = 0;                  // experts per token and layer; 0: unknown
    std::vector<int64_t> layers;       // (MoE layers) model layer index
    std::vector<int64_t> recordBytes;  // (MoE layers) multiple of 4096
    std::vector<std::string> files;    // (MoE layers) for messages

    int64_t layerCount() const { return int64_t(layers.size()); }
    int64_t expertCount() const { return layerCount() * experts; }
    // An expert's key: moeLayer * experts + expert.
    uint32_t keyOf(int64_t moeLayer, int64_t expert) const {
        return uint32_t(moeLayer * experts + expert);
    }
    int64_t layerOf(uint32_t key) const { return int64_t(key) / experts; }
    int64_t expertOf(uint32_t key) const { return int64_t(key) % experts; }
};

class Reader {
public:
    virtual ~Reader() = default;
    // Reads up to out.size() bytes at `offset` of a MoE layer's file. Returns the count, 0 at the
    // end of the file, -errno on failure. Called from many threads at once. With IoMode::Direct
    // offset, size and memory are multiples of 4096.
    virtual int64_t readAt(int64_t moeLayer, int64_t offset, std::span<std::byte> out,
                           IoMode mode) = 0;
    // The open file, for io_uring; -1: only readAt() works.
    virtual int descriptor(int64_t /*moeLayer*/, IoMode /*mode*/) const { return -1; }
    // Whether the file system supports direct reads, which bypass the page cache.
    virtual bool directWorks() const { return true; }
};

// The expert files of a container, each opened twice (direct and buffered): reads still work after
// the folder is renamed or deleted.
class FileReader final : public Reader {
public:
    static Result<std::unique_ptr<Reader>> open(const ContainerInfo& info);
    int64_t readAt(int64_t moeLayer, int64_t offset, std::span<std::byte> out,
                   IoMode mode) override;
    int descriptor(int64_t moeLayer, IoMode mode) const override;
    bool directWorks() const override { return m_directWorks; }

private:
    const File& file(int64_t moeLayer, IoMode mode) const;
    std::vector<File> m_direct, m_buffered;  // (MoE layers)
    bool m_directWorks = true;
};

}  // namespace colibri
