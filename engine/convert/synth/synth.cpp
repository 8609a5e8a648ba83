// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/synth/synth.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/format.h"
#include "engine/base/hasher.h"
#include "engine/base/progress_gate.h"
#include "engine/convert/pipeline/plan.h"
#include "engine/convert/pipeline/target.h"
#include "engine/convert/synth/synth_text.h"
#include "engine/model/layout.h"
#include "engine/model/model_json.h"
#include "kernels/kernels.h"
#include "kernels/packed.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSynthFiles = 6;  // other than those of the experts

constexpr int64_t kMatrixBytes = 4 << 20;  // size packed at once

constexpr SynthShape kShapes[] = {
    // name, family, of, layers, hidden, heads, kv, head dim, experts, k, I, vocab, positions, ...
    {"olmoe", "olmoe", "OLMoE-1B-7B", 16, 2048, 16, 16, 128, 64, 8, 1024, 50304, 4096,
     QkNorm::FullWidth, false, 1e-5, 1e4},
    {"qwen3-30b-a3b", "qwen3_moe", "Qwen3-30B-A3B", 48, 2048, 32, 4, 128, 128, 8, 768, 151936,
     40960, QkNorm::PerHead, true, 1e-6, 1e6},
    {"mixtral-8x7b", "mixtral", "Mixtral-8x7B", 32, 4096, 32, 8, 128, 8, 2, 14336, 32000, 32768,
     QkNorm::None, true, 1e-5, 1e6},
    {"tiny", "qwen3_moe", "not a real model; for experiments", 4, 64, 4, 2, 32, 16, 4, 64, 512,
     2048, QkNorm::PerHead, true, 1e-6, 1e4},
};

// Standard deviation of each residual contribution, chosen so that hidden states keep their
// magnitude through many layers.
constexpr double kGain = 0.6;

ModelConfig configOf(const SynthShape& s, int64_t layers) {
    ModelConfig c;
    c.family = s.family;
    c.name = std::string(s.name) + "-synthetic";
    c.vocabSize = s.vocab;
    c.hiddenSize = s.hidden;
    c.numLayers = layers;
    c.numHeads = s.heads;
    c.numKvHeads = s.kvHeads;
    c.headDim = s.headDim;
    c.numExperts = s.experts;
    c.topK = s.topK;
    c.expertSize = s.expertSize;
    c.maxPositions = s.positions;
    c.rmsEps = float(s.rmsEps);
    c.qkNorm = s.qkNorm;
    c.rope.theta = s.ropeTheta;
    c.rope.rotaryDim = int(s.headDim);
    c.routing.renorm = s.renorm;
    c.moeLayer.assign(size_t(layers), true);
    c.eosIds = {kSynthTurnEnd};
    return c;
}

// Random numbers in bulk: splitmix64, whose sequence is the same with every compiler and library.
class Noise {
public:
    explicit Noise(uint64_t seed) : m_state(seed) {}

    uint64_t next() {
        uint64_t z = m_state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    double uniform() { return (double(next() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
    double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform()); }

private:
    uint64_t m_state;
};

// Fills `bytes` with packed q8_0 or q4_0 blocks of weights with standard deviation `sd` and mean 0.
void fillBlocks(Noise& noise, DType type, double sd, std::byte* out, int64_t bytes) {
    const bool q8 = type == DType::Q8_0;
    const int64_t blockBytes = panelBytes(type, kBlock);
    // 73.6 and 4.61: standard deviations of uniform values in -127..127 and -8..7.
    const uint16_t scale = f32ToF16(float(sd / (q8 ? 73.6 : 4.61)));
    for (int64_t at = 0; at < bytes; at += blockBytes) {
        uint16_t scales[kPanel];
        const uint64_t signs = noise.next();
        for (int64_t i = 0; i < kPanel; ++i) scales[i] = scale | uint16_t((signs >> i & 1) << 15);
        std::memcpy(out + at, scales, sizeof(scales));
        std::byte* q = out + at + sizeof(scales);
        for (int64_t i = 0; i < blockBytes - int64_t(sizeof(scales)); i += 8) {
            const uint64_t word = noise.next();
            std::memcpy(q + i, &word, 8);
            if (!q8) continue;
            for (int64_t k = i; k < i + 8; ++k) {
                if (q[k] == std::byte{0x80}) q[k] = std::byte{0};  // -128 is not a value of q8_0
            }
        }
    }
}

class SynthWriter {
public:
    SynthWriter(ContainerInfo& info, const SynthOptions& options, const fs::path& folder,
                const DiskHooks& hooks, const ProgressFn& progress, const CancelFlag* cancel)
        : m_info(info),
          m_options(options),
          m_folder(folder),
          m_hooks(hooks),
          m_gate(progress),
          m_cancel(cancel),
          m_noise(options.seed) {}

    Status write() {
        COLIBRI_TRY(writeDense());
        for (ExpertLayer& layer : m_info.expertLayers) COLIBRI_TRY(writeLayer(layer));
        return {};
    }

private:
    Status writeDense() {
        m_stage = "Dense weights";
        Result<OutputFile> out = OutputFile::open(m_folder / kDenseFile, 0, &m_hooks);
        if (!out) return out.status();
        for (TensorInfo& t : m_info.tensors) {
            COLIBRI_TRY(out->padTo(t.offset));
            out->beginHash();
            if (t.packed) {
                const double sd = t.name == "embed" ? 1 : kGain / std::sqrt(double(t.cols));
                COLIBRI_TRY(writeMatrix(*out, t.dtype, t.rows, t.cols, sd));
            } else {
                COLIBRI_TRY(writePlain(*out, t));
            }
            t.hash = out->hash();
        }
        COLIBRI_TRY(out->padTo(m_info.denseBytes));
        return out->sync();
    }

    Status writeLayer(ExpertLayer& layer) {
        const ModelConfig& c = m_info.config;
        m_stage = "Experts, layer " + std::to_string(layer.layer + 1) + " of " +
                  std::to_string(c.numLayers);
        Result<OutputFile> out = OutputFile::open(m_folder / layer.file, 0, &m_hooks);
        if (!out) return out.status();
        const double in = kGain / std::sqrt(double(c.hiddenSize));
        const double down = kGain / std::sqrt(double(c.expertSize));
        for (int64_t e = 0; e < c.numExperts; ++e) {
            const int64_t start = e * layer.recordBytes;
            out->beginHash();
            COLIBRI_TRY(out->padTo(start + layer.w1Offset));
            COLIBRI_TRY(writeMatrix(*out, layer.types.w1, c.expertSize, c.hiddenSize, in));
            COLIBRI_TRY(out->padTo(start + layer.w3Offset));
            COLIBRI_TRY(writeMatrix(*out, layer.types.w1, c.expertSize, c.hiddenSize, in));
            COLIBRI_TRY(out->padTo(start + layer.w2Offset));
            COLIBRI_TRY(writeMatrix(*out, layer.types.w2, c.hiddenSize, c.expertSize, down));
            COLIBRI_TRY(out->padTo(start + layer.recordBytes));
            layer.hashes.push_back(out->hash());
        }
        return out->sync();
    }

    // Writes [rows, cols] in whole panels, a few MiB at a time.
    Status writeMatrix(OutputFile& out, DType type, int64_t rows, int64_t cols, double sd) {
        const int64_t perPanel = panelBytes(type, cols);
        const int64_t run = std::max<int64_t>(1, kMatrixBytes / perPanel);
        for (int64_t p = 0; p < panelCount(rows); p += run) {
            const int64_t n = std::min(run, panelCount(rows) - p);
            m_bytes.resize(size_t(n * perPanel));
            if (type == DType::Q8_0 || type == DType::Q4_0) {
                fillBlocks(m_noise, type, sd, m_bytes.data(), n * perPanel);
            } else {
                const double half = sd * std::sqrt(3.0);  // uniform in -half..half
                m_floats.resize(size_t(n * kPanel * cols));
                for (float& v : m_floats) v = float((2 * m_noise.uniform() - 1) * half);
                packRows(type, m_floats.data(), n * kPanel, cols, m_bytes.data());
            }
            COLIBRI_TRY(append(out));
        }
        return {};
    }

    // Writes norms near 1, and routers whose rows have unequal lengths if skewed.
    Status writePlain(OutputFile& out, const TensorInfo& t) {
        const bool router = t.rows > 1;
        m_floats.resize(size_t(t.rows * t.cols));
        for (int64_t r = 0; r < t.rows; ++r) {
            const double length = std::exp(m_options.skew * m_noise.normal());
            for (int64_t i = 0; i < t.cols; ++i) {
                m_floats[size_t(r * t.cols + i)] =
                    router ? float(length * m_noise.normal() / std::sqrt(double(t.cols)))
                           : float(0.8 + 0.4 * m_noise.uniform());
            }
        }
        const auto bytes = std::as_bytes(std::span(m_floats));
        m_bytes.assign(bytes.begin(), bytes.end());
        return append(out);
    }

    Status append(OutputFile& out) {
        if (cancelled(m_cancel)) return Status(Code::Cancelled, "writing the model was cancelled");
        COLIBRI_TRY(out.append(m_bytes));
        m_done += m_bytes.size();
        const uint64_t total = uint64_t(m_info.denseBytes + m_info.expertBytes);
        m_gate.report(m_stage, std::min(m_done, total), total);
        return {};
    }

    ContainerInfo& m_info;
    const SynthOptions& m_options;
    const fs::path m_folder;
    const DiskHooks& m_hooks;
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    Noise m_noise;
    std::string m_stage;
    uint64_t m_done = 0;
    std::vector<std::byte> m_bytes;
    std::vector<float> m_floats;
};

}  // namespace

Result<ContainerInfo> plannedSynthetic(const SynthOptions& o) {
    const auto shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                    [&](const SynthShape& s) { return o.shape == s.name; });
    if (shape == std::end(kShapes)) {
        return Status(Code::InvalidArgument, "\"" + o.shape + "\" is not a shape",
                      "Use " + synthShapeNames());
    }
    if (o.layers < 0 || o.layers > shape->layers) {
        return Status(Code::InvalidArgument,
                      std::to_string(o.layers) + " layers: " + o.shape + " has " +
                          std::to_string(shape->layers),
                      "Use 1.." + std::to_string(shape->layers));
    }
    if (!(o.skew >= 0 && o.skew <= 4)) {
        return Status(Code::InvalidArgument, "the skew is not between 0 and 4",
                      "0 is nearly uniform routing, 1 has clear favourites");
    }
    if (!hasEncoder(o.dtype)) return noEncoder(o.dtype);
    ContainerInfo info;
    info.config = configOf(*shape, o.layers ? o.layers : shape->layers);
    COLIBRI_TRY(checkConfig(info.config));
    for (const TensorSpec& spec : denseTensors(info.config)) {
        if (spec.optional) continue;
        TensorInfo t;
        t.name = spec.name;
        t.packed = spec.matrix;
        t.dtype = spec.matrix ? targetType(spec.name, o.dtype, o.dtype) : DType::F32;
        t.rows = spec.rows;
        t.cols = spec.cols;
        info.tensors.push_back(std::move(t));
    }
    info.denseBytes = layOutDense(info.tensors);
    for (int64_t l = 0; l < info.config.numLayers; ++l) {
        info.expertLayers.push_back(expertLayout(info.config, l, ExpertTypes::all(o.dtype)));
        info.expertBytes += info.expertLayers.back().recordBytes * info.config.numExperts;
    }
    info.updateExpertType();
    info.source = std::string("synthetic: random weights in the shape of ") + shape->of +
                  ", router skew " + formatSig(o.skew, 2);
    info.fingerprint =
        fingerprintOf("synthetic 1\n" + o.shape + "\n" + std::to_string(info.config.numLayers) +
                      "\n" + std::string(dtypeName(o.dtype)) + "\n" + std::to_string(o.skew) +
                      "\n" + std::to_string(o.seed));
    return info;
}

std::span<const SynthShape> synthShapes() {
    return kShapes;
}

std::string synthShapeNames() {
    std::string names;
    for (const SynthShape& s : kShapes) names += (names.empty() ? "" : ", ") + std::string(s.name);
    return names;
}

Result<ContainerInfo> synthesiseModel(const SynthOptions& options, const ProgressFn& progress,
                                      const CancelFlag* cancel, const DiskHooks& hooks) {
    Result<ContainerInfo> info = plannedSynthetic(options);
    if (!info) return info.status();
    Result<fs::path> target = checkTarget(options.target);
    if (!target) return target.status();
    const fs::path partial = partialFolderOf(*target);
    Result<Journal> journal = enterPartial(partial, info->fingerprint);
    if (!journal) return journal.status();
    const auto write = [&]() -> Status {
        const std::string tokenizer = synthTokenizerJson(info->config.vocabSize);
        const int64_t texts = int64_t(tokenizer.size() + writeModelJson(*info).size());
        COLIBRI_TRY(checkSpace(partial, info->denseBytes + info->expertBytes + texts,
                               int64_t(info->expertLayers.size()) + kSynthFiles, hooks));
        std::error_code error;
        fs::create_directories(partial / "experts", error);
        if (error) return systemError("cannot create", partial / "experts", error.value());
        COLIBRI_TRY(SynthWriter(*info, options, partial, hooks, progress, cancel).write());
        COLIBRI_TRY(writeSmallFile(partial / "tokenizer.json", tokenizer, hooks));
        COLIBRI_TRY(writeSmallFile(partial / "chat_template.jinja", synthChatTemplate(), hooks));
        COLIBRI_TRY(writeSmallFile(partial / kModelFile, writeModelJson(*info), hooks));
        return moveToTarget(partial, *target, *journal);
    };
    if (Status status = write(); !status.ok()) {
        std::error_code ignored;
        fs::remove_all(partial, ignored);
        return status;
    }
    return openContainer(*target);
}

}  // namespace colibri
