// SPDX-License-Identifier: Apache-2.0
// The model container: a self-contained folder.
//
//   model.json              schema, config, tensor table, source fingerprint
//   dense.bin               all tensors that are not routed experts, each 128-byte aligned
//   experts/layer_NNN.bin   routed experts of one layer; record e at e * recordBytes
//   tokenizer.json, chat_template.jinja   verbatim from the source (may be absent)
//   additional_chat_templates/NAME.jinja  its other templates (may be absent)
//
// An expert record is [w1 | w3 | w2] (gate, up, down) in the packed layout of kernels/packed.h,
// each matrix 128-byte aligned, the record padded to 4096 bytes: one direct read per expert.
// Names in the tensor table: "embed", "norm", "head" (absent when tied), "head_bias"; per layer L
// (a number: "3.q", see tensorName) "L.attn_norm", "L.q", "L.k", "L.v", "L.o", "L.q_norm",
// "L.k_norm", "L.q_bias", "L.k_bias", "L.v_bias", "L.o_bias" (may be absent even if the
// others are present), "L.sinks", "L.ffn_norm", "L.router", "L.router_logit_bias", "L.router_bias"
// (selection only), "L.expert_gate_bias", "L.expert_up_bias", "L.expert_down_bias" (a row per
// expert), "L.shared_gate", "L.shared_up", "L.shared_down", "L.shared_router", and for dense layers
// "L.gate", "L.up", "L.down". Layer norms have a "..._bias" each. Latent attention has "L.q" or
// "L.q_a", "L.q_a_norm", "L.q_b"; "L.kv_a", "L.kv_a_norm", and per head "L.k_up" (kvRank rows of
// nopeDim) and "L.v_up" (valueDim rows of kvRank). Matrices are [out, in] and packed; norms, biases
// and routers are plain row-major f32.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/model/config.h"
#include "kernels/dtype.h"
#include "kernels/kernels.h"

namespace colibri {

constexpr int kContainerSchema = 2;  // 1: without the fields added for more families
constexpr int64_t kTensorAlign = 128;
constexpr int64_t kRecordAlign = 4096;

struct TensorInfo {
    std::string name;
    DType dtype = DType::F32;
    bool packed = false;         // packed panels, or plain row-major f32
    int64_t rows = 0, cols = 0;  // vectors: rows = 1
    std::string file;            // relative to the folder
    int64_t offset = 0, bytes = 0;
    uint64_t hash = 0;  // xxh3-64 of the bytes
};

struct ExpertTypes {  // of the three matrices of a record
    DType w1 = DType::Q8_0, w3 = DType::Q8_0, w2 = DType::Q8_0;

    static ExpertTypes all(DType type) { return {type, type, type}; }
    bool same() const { return w1 == w3 && w1 == w2; }
};

// The experts of one layer, all with the same shape and types. The inputs of w1 and w3 have the
// same form: both or neither are quantised.
struct ExpertLayer {
    int64_t layer = 0;  // model layer index
    std::string file;   // "experts/layer_003.bin"
    ExpertTypes types;
    int64_t recordBytes = 0;                           // multiple of kRecordAlign
    int64_t w1Offset = 0, w3Offset = 0, w2Offset = 0;  // inside a record
    std::vector<uint64_t> hashes;                      // (E) xxh3-64 of each record
};

// The content of model.json, checked (files present, sizes correct, tensor table complete for the
// config). Reading it reads no weights.
struct ContainerInfo {
    std::filesystem::path dir;
    ModelConfig config;
    std::vector<TensorInfo> tensors;
    std::vector<ExpertLayer> expertLayers;  // one per MoE layer, in order
    DType expertType = DType::F32;          // the type of most bytes of the experts
    std::string source;                     // path it was converted from
    std::string fingerprint;                // hex xxh3-128 of source headers: identity of the model
    int64_t denseBytes = 0;                 // dense.bin
    int64_t expertBytes = 0;                // all expert files
    bool hasTokenizer = false, hasTemplate = false;

    const TensorInfo* find(const std::string& name) const;
    int64_t expertRecordBytes() const;     // of one expert (largest layer)
    int64_t parameterCount() const;        // all weights
    int64_t activeParameterCount() const;  // dense weights and k experts per MoE layer
    void updateExpertType();               // from the expert layers
    // All types of the matrices, the one with the most bytes first: "q4_k, q6_k".
    std::string denseTypeNames() const;
    std::string expertTypeNames() const;

private:
    using TypeBytes = std::array<int64_t, kDTypeCount>;
    TypeBytes denseTypeBytes() const;
    TypeBytes expertTypeBytes() const;
};

std::string tensorName(int64_t layer, const char* part);  // (3, "q") -> "3.q"

// Opens and checks a container folder. Errors: BadInput with file and reason, Unsupported for a
// newer schema or an unknown weight type.
Result<ContainerInfo> openContainer(const std::filesystem::path& dir);

// Reads every byte once and compares hashes. Errors name tensor or layer and expert.
Status verifyContainer(const ContainerInfo& info, const ProgressFn& progress,
                       const CancelFlag* cancel);

// The dense weights in memory: one aligned block, tensors by name.
class DenseWeights {
public:
    static Result<std::unique_ptr<DenseWeights>> load(const ContainerInfo& info,
                                                      const ProgressFn& progress,
                                                      const CancelFlag* cancel);
    ~DenseWeights();
    // nullptr if absent.
    const std::byte* data(const std::string& name) const;
    const float* floats(const std::string& name) const;
    int64_t bytes() const;

private:
    DenseWeights() = default;
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

// The estimated memory of a model before it is loaded, by part, in bytes.
struct MemoryEstimate {
    int64_t dense = 0, expertCache = 0, kvCache = 0, buffers = 0, recording = 0;
    int64_t total() const { return dense + expertCache + kvCache + buffers + recording; }
};
struct LoadShape {          // the settings that the estimate depends on
    int64_t cacheSize = 0;  // experts per MoE layer
    int64_t contextLength = 0;
    KvType kvType = KvType::F16;
    int64_t prefillChunk = 512;
    int64_t threads = 1;
};
MemoryEstimate estimateMemory(const ContainerInfo& info, const LoadShape& shape);

}  // namespace colibri
