// SPDX-License-Identifier: Apache-2.0
// What a model is: hyper-parameters, routing, attention variants. Filled from model.json (or, in
// the converters, from a checkpoint's config.json); plain data, no behaviour beyond small queries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace colibri {

enum class ScoreFn : uint8_t { Softmax, Sigmoid };
// What the chosen experts are weighted by.
enum class WeightSource : uint8_t { Score, LogitSoftmax, SigmoidLogit };
enum class QkNorm : uint8_t { None, PerHead, FullWidth };

// How the router picks and weights experts (terms of moe-family tables).
struct RoutingSpec {
    ScoreFn scoreFn = ScoreFn::Softmax;
    bool selectBias = false;             // a per-expert bias takes part in selection only
    WeightSource weightSource = WeightSource::Score;
    bool renorm = false;                 // divide the chosen weights by their sum
    double renormEps = 0;                // added to that sum
    double scale = 1;                    // multiplies the weights after renormalisation
};

struct RopeSpec {
    double theta = 10000;
    std::string type = "default";        // "default", "linear"
    double factor = 1;                   // linear: positions are divided by it
    int rotaryDim = 0;                   // of headDim
    bool interleaved = false;
};

struct ModelConfig {
    std::string family;                  // "olmoe", "qwen3_moe", "mixtral"
    std::string name;                    // shown to people; the folder name unless the source says
    int64_t vocabSize = 0;
    int64_t hiddenSize = 0;              // H
    int64_t numLayers = 0;               // L
    int64_t numHeads = 0;
    int64_t numKvHeads = 0;
    int64_t headDim = 0;                 // not always H / heads
    int64_t numExperts = 0;              // E per MoE layer
    int64_t topK = 0;                    // k
    int64_t expertSize = 0;              // I of a routed expert
    int64_t denseSize = 0;               // I of a dense layer's FFN, 0 when there is none
    int64_t maxPositions = 0;            // trained context
    float rmsEps = 1e-6f;
    QkNorm qkNorm = QkNorm::None;        // before RoPE
    bool attentionBias = false;          // q, k, v biases
    float clipQkv = 0;                   // 0: none; after the q/k norm, on q, k and v
    int64_t slidingWindow = 0;           // 0: none; position j sees i with j - i < window
    bool tiedEmbeddings = false;
    RopeSpec rope;
    RoutingSpec routing;
    std::vector<bool> moeLayer;          // (L) true: FFN is experts, false: dense FFN
    std::vector<int32_t> eosIds;
    int32_t bosId = -1;
    // Sampling defaults from generation_config.json; NaN / -1 = not given.
    float temperature = -1, topP = -1;
    int topKSampling = -1;

    int64_t moeLayerCount() const;
    // Index of a layer among the MoE layers, -1 for a dense one.
    int64_t moeIndex(int64_t layer) const;
};

}  // namespace colibri
