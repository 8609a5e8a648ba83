// SPDX-License-Identifier: Apache-2.0
// The properties of a model: hyper-parameters, routing, attention variants. Filled from model.json
// (or, in the converters, from a checkpoint's config.json); plain data, no behaviour beyond small
// queries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace colibri {

// The values by which experts are chosen, before a selection bias.
enum class ScoreFn : uint8_t { Softmax, Sigmoid, Logit };
// The values by which the chosen experts are weighted. SparseMixer: PhiMoE's rule, which also
// chooses them (the first and then, without it, the second; each weighted among the logits close to
// it).
enum class WeightSource : uint8_t { Score, LogitSoftmax, SigmoidLogit, SparseMixer };
// The score of a group of experts: its best, or the sum of its best two.
enum class GroupScore : uint8_t { Max, Top2Sum };
// Norm of queries and keys. L2: without weights.
enum class QkNorm : uint8_t { None, PerHead, FullWidth, L2 };
// Rms: without a mean and without bias. Layer: with both.
enum class NormKind : uint8_t { Rms, Layer };
// silu(gate) * up, or gpt-oss's (up + 1) * gate * sigmoid(alpha * gate) of clamped values.
enum class Activation : uint8_t { Silu, ClampedSwiglu };

// How the router picks and weights experts.
struct RoutingSpec {
    ScoreFn scoreFn = ScoreFn::Softmax;
    bool logitBias = false;   // a per-expert bias is part of the logits
    bool selectBias = false;  // a per-expert bias takes part in selection only
    int64_t groups = 1;       // number of expert groups of equal size;
    int64_t groupTopK = 1;    // groups kept before experts are chosen
    GroupScore groupScore = GroupScore::Max;
    WeightSource weightSource = WeightSource::Score;
    bool renorm = false;      // divide the chosen weights by their sum
    double renormEps = 0;     // added to that sum
    double scale = 1;         // multiplies the weights after renormalisation
    bool scaleInput = false;  // weights multiply the expert's input, not its output
    double sparseJitter = 0;  // SparseMixer: half the relative distance that counts as close
};

struct RopeSpec {
    double theta = 10000;
    std::string type = "default";  // "default", "linear", "yarn", "llama3"
    double factor = 1;             // linear: positions are divided by it
    int rotaryDim = 0;             // part of headDim (MLA: of its rotated part)
    bool interleaved = false;
    int64_t originalPositions = 0;                 // yarn, llama3: the context before extension
    double betaFast = 32, betaSlow = 1;            // yarn: rotations in that context, between which
    bool truncate = true;                          // the extension fades in, at whole dimensions
    double lowFreqFactor = 1, highFreqFactor = 4;  // llama3
    double attentionFactor = 1;                    // multiplies cos and sin,
    // ... or this in contexts longer than originalPositions; 0: the same. The choice is made
    // once, by the context length at load, so that no key depends on later tokens.
    double longAttentionFactor = 0;
    std::vector<float> divisors;  // (rotaryDim / 2) of the frequencies, or empty
};

// The angle per position of each rotated pair, (rotaryDim / 2), in f32 as the reference
// implementations evaluate it.
std::vector<float> ropeFrequencies(const RopeSpec& rope);

// Multi-head latent attention (DeepSeek): keys and values of all heads are computed from one latent
// per position. The cache holds this latent and one rotated key.
struct MlaSpec {
    int64_t kvRank = 0;                 // width of the latent; 0: ordinary attention
    int64_t qRank = 0;                  // width of the latent of queries; 0: q is computed directly
    int64_t nopeDim = 0, valueDim = 0;  // per head; headDim is nopeDim + rope.rotaryDim
};

struct ModelConfig {
    std::string family;  // "olmoe", "qwen3_moe", "mixtral", ...
    std::string name;    // display name; the folder name unless the source gives one
    int64_t vocabSize = 0;
    int64_t hiddenSize = 0;  // H
    int64_t numLayers = 0;   // L
    int64_t numHeads = 0;
    int64_t numKvHeads = 0;
    int64_t headDim = 0;       // not always H / heads
    int64_t numExperts = 0;    // E per MoE layer
    int64_t topK = 0;          // k
    int64_t expertSize = 0;    // I of a routed expert
    int64_t denseSize = 0;     // I of a dense layer's FFN; 0: none
    int64_t sharedSize = 0;    // I of the expert that every token uses; 0: none
    bool sharedGate = false;   // the sigmoid of its own gate scales its output
    int64_t maxPositions = 0;  // trained context
    NormKind norm = NormKind::Rms;
    float rmsEps = 1e-6f;  // of layer norms too
    QkNorm qkNorm = QkNorm::None;
    bool qkNormAfterRope = false;  // false: before
    bool attentionBias = false;    // q, k, v biases
    bool headBias = false;
    float clipQkv = 0;              // 0: none; after the q/k norm, on q, k and v
    int64_t slidingWindow = 0;      // 0: none; position j sees i with j - i < window
    bool chunkedWindow = false;     // true: j / window == i / window instead
    std::vector<bool> windowLayer;  // (L) where it applies; empty: everywhere
    std::vector<bool> ropeLayer;    // (L) where positions rotate; empty: everywhere
    bool sinks = false;             // a logit per head that takes part of the attention
    double attentionScale = 0;      // of q . k; 0: 1 / sqrt(headDim)
    // On layers without rotation q is multiplied by
    // 1 + queryScale * ln(1 + floor((position + 1) / queryScalePositions)).
    double queryScale = 0, queryScalePositions = 0;
    double embeddingScale = 1;  // multiplies embeddings
    double residualScale = 1;   // multiplies what each block adds to the residual stream
    double logitScale = 1;      // divides the logits
    Activation activation = Activation::Silu;
    double activationLimit = 0, activationAlpha = 0;  // ClampedSwiglu: 7, 1.702
    bool ffnBias = false;                             // of gate, up and down, dense and shared
    bool expertBias = false;                          // of gate, up and down of each routed expert
    bool tiedEmbeddings = false;
    RopeSpec rope;
    MlaSpec mla;
    RoutingSpec routing;
    std::vector<bool> moeLayer;   // (L) true: FFN is experts, false: dense FFN
    std::vector<int32_t> eosIds;  // tokens that end a reply; the first is the template's eos_token
    int32_t bosId = -1;           // the template's bos_token
    // The files that name them: "tokenizer_config.json, generation_config.json". Parallel to
    // eosIds; empty: unknown.
    std::vector<std::string> eosSources;
    std::string bosSource;
    // Sampling defaults from generation_config.json; NaN / -1 = not given.
    float temperature = -1, topP = -1;
    int topKSampling = -1;

    int64_t moeLayerCount() const;
    // The index of a layer among the MoE layers; -1 for a dense layer.
    int64_t moeIndex(int64_t layer) const;
    bool hasWindow(int64_t layer) const;
    bool hasRope(int64_t layer) const { return ropeLayer.empty() || ropeLayer[size_t(layer)]; }

    // Dimensions of the KV cache and of attention, per position and layer.
    int64_t cachedHeads() const { return mla.kvRank ? 1 : numKvHeads; }
    int64_t cachedKeyDim() const { return mla.kvRank ? mla.kvRank + rope.rotaryDim : headDim; }
    int64_t cachedValueDim() const { return mla.kvRank ? mla.kvRank : headDim; }
    // Width of the input of the output projection.
    int64_t mixedWidth() const { return numHeads * (mla.kvRank ? mla.valueDim : headDim); }
};

}  // namespace colibri
