// SPDX-License-Identifier: Apache-2.0
// The properties of a model: hyper-parameters, routing, attention variants. Read from model.json
// (by the converters from a checkpoint's config.json). Plain data with small queries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace colibri {

// The values by which experts are chosen, before a selection bias.
enum class ScoreFn : uint8_t { Softmax, Sigmoid, Logit };
// The values that weight the chosen experts. SparseMixer is PhiMoE's rule, which also chooses them:
// first the best expert, then the best of the others. The weight of each is a softmax over the
// logits close to its own.
enum class WeightSource : uint8_t { Score, LogitSoftmax, SigmoidLogit, SparseMixer };
// The score of a group of experts: its best, or the sum of its best two.
enum class GroupScore : uint8_t { Max, Top2Sum };
// Norm of queries and keys. L2: without weights.
enum class QkNorm : uint8_t { None, PerHead, FullWidth, L2 };
// Rms has neither mean nor bias, Layer has both.
enum class NormKind : uint8_t { Rms, Layer };
// Silu: silu(gate) * up. ClampedSwiglu (gpt-oss): (up + 1) * gate * sigmoid(alpha * gate), of
// clamped values.
enum class Activation : uint8_t { Silu, ClampedSwiglu };

// How the router chooses and weights experts.
struct RoutingSpec {
    ScoreFn scoreFn = ScoreFn::Softmax;
    bool logitBias = false;   // adds a per-expert bias to the logits
    bool selectBias = false;  // adds a per-expert bias for the selection only
    int64_t groups = 1;       // number of expert groups of equal size
    int64_t groupTopK = 1;    // groups kept before experts are chosen
    GroupScore groupScore = GroupScore::Max;
    WeightSource weightSource = WeightSource::Score;
    bool renorm = false;      // divides the chosen weights by their sum
    double renormEps = 0;     // added to that sum
    double scale = 1;         // multiplies the weights after the division
    bool scaleInput = false;  // weights multiply the expert's input, not its output
    double sparseJitter = 0;  // SparseMixer: half the relative distance of close logits
};

struct RopeSpec {
    double theta = 10000;
    std::string type = "default";  // "default", "linear", "yarn", "llama3"
    double factor = 1;             // linear: divides positions
    int rotaryDim = 0;             // dimensions that rotate, of headDim (MLA: of its rotated part)
    bool interleaved = false;
    int64_t originalPositions = 0;       // yarn, llama3: the context before extension
    double betaFast = 32, betaSlow = 1;  // yarn: in rotations; not extended above, fully below
    bool truncate = true;  // yarn: the ramp between begins and ends at whole dimensions
    double lowFreqFactor = 1, highFreqFactor = 4;  // llama3
    double attentionFactor = 1;                    // multiplies cos and sin
    // Replaces attentionFactor in contexts longer than originalPositions; 0: the same. The context
    // length at load decides, so that no key depends on later tokens.
    double longAttentionFactor = 0;
    std::vector<float> divisors;  // (rotaryDim / 2) divide the frequencies; empty: none
};

// The angle per position of each rotated pair: (rotaryDim / 2), in f32 and with the rounding of the
// reference implementations.
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
    int64_t headDim = 0;       // may differ from H / heads
    int64_t numExperts = 0;    // E per MoE layer
    int64_t topK = 0;          // k
    int64_t expertSize = 0;    // I of a routed expert
    int64_t denseSize = 0;     // I of a dense layer's FFN; 0: none
    int64_t sharedSize = 0;    // I of the expert that every token uses; 0: none
    bool sharedGate = false;   // its own sigmoid gate scales its output
    int64_t maxPositions = 0;  // trained context length
    NormKind norm = NormKind::Rms;
    float rmsEps = 1e-6f;  // also for layer norms
    QkNorm qkNorm = QkNorm::None;
    bool qkNormAfterRope = false;  // false: before
    bool attentionBias = false;    // q, k, v biases
    bool headBias = false;
    float clipQkv = 0;              // 0: none; after the q/k norm, on q, k and v
    int64_t slidingWindow = 0;      // 0: none; position j sees i with j - i < window
    bool chunkedWindow = false;     // true: j / window == i / window instead
    std::vector<bool> windowLayer;  // (L) layers with a window; empty: all
    std::vector<bool> ropeLayer;    // (L) layers with rotation; empty: all
    bool sinks = false;             // a logit per head that takes a share of the softmax
    double attentionScale = 0;      // factor of q . k; 0: 1 / sqrt(headDim)
    // In layers without rotation, q is multiplied by 1 + queryScale * ln(1 + floor((position + 1) /
    // queryScalePositions)).
    double queryScale = 0, queryScalePositions = 0;
    double embeddingScale = 1;  // multiplies embeddings
    double residualScale = 1;   // multiplies what each block adds to the residual
    double logitScale = 1;      // divides the logits
    Activation activation = Activation::Silu;
    double activationLimit = 0, activationAlpha = 0;  // ClampedSwiglu: 7, 1.702
    bool ffnBias = false;  // gate, up and down have a bias, in dense layers and the shared expert
    bool expertBias = false;  // gate, up and down of routed experts have a bias
    bool tiedEmbeddings = false;
    RopeSpec rope;
    MlaSpec mla;
    RoutingSpec routing;
    std::vector<bool> moeLayer;   // (L) true: MoE layer, false: dense FFN
    std::vector<int32_t> eosIds;  // tokens that end a reply, the template's eos_token first
    int32_t bosId = -1;           // the template's bos_token
    // The files that define them: "tokenizer_config.json, generation_config.json". Parallel to
    // eosIds; empty: unknown.
    std::vector<std::string> eosSources;
    std::string bosSource;
    // Sampling defaults from generation_config.json; -1: absent.
    float temperature = -1, topP = -1;
    int topKSampling = -1;

    int64_t moeLayerCount() const;
    // The index of a layer among the MoE layers; -1 for a dense layer.
    int64_t moeIndex(int64_t layer) const;
    bool hasWindow(int64_t layer) const;
    bool hasRope(int64_t layer) const { return ropeLayer.empty() || ropeLayer[size_t(layer)]; }

    // Shape of the KV cache and of attention, per position and layer.
    int64_t cachedHeads() const { return mla.kvRank ? 1 : numKvHeads; }
    int64_t cachedKeyDim() const { return mla.kvRank ? mla.kvRank + rope.rotaryDim : headDim; }
    int64_t cachedValueDim() const { return mla.kvRank ? mla.kvRank : headDim; }
    // Columns of the output projection.
    int64_t mixedWidth() const { return numHeads * (mla.kvRank ? mla.valueDim : headDim); }
};

}  // namespace colibri
