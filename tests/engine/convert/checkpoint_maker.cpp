// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/convert/checkpoint_maker.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "engine/model/layout.h"
#include "kernels/kernels.h"
#include "tests/kernels/random_blocks.h"

namespace colibri::test {

namespace {

using Json = nlohmann::json;

bool isMixtral(const TinyOptions& o) {
    return o.family == "mixtral";
}
std::string moePrefix(const TinyOptions& o) {
    return isMixtral(o) ? "block_sparse_moe" : "mlp";
}

bool isDense(const TinyOptions& o, int64_t layer) {
    return std::find(o.denseLayers.begin(), o.denseLayers.end(), layer) != o.denseLayers.end();
}

template <typename T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void putText(std::string& out, const std::string& text) {
    put(out, uint64_t(text.size()));
    out += text;
}

void encode(std::string& out, const std::vector<float>& values, const std::string& type) {
    for (float v : values) {
        if (type == "F32")
            put(out, v);
        else
            put(out, type == "F16" ? f32ToF16(v) : f32ToBf16(v));
    }
}

// ggml's row-major blocks, made from the packed form, which keeps scales and values.
std::string ggmlBlocks(const std::vector<float>& values, int64_t cols, DType type) {
    std::string out;
    const int64_t rows = int64_t(values.size()) / cols;
    std::vector<std::byte> packed(size_t(packedBytes(type, 1, cols)));
    for (int64_t r = 0; r < rows; ++r) {
        packRows(type, values.data() + r * cols, 1, cols, packed.data());
        for (int64_t b = 0; b < cols / kBlock; ++b) {
            const bool q8 = type == DType::Q8_0;
            const std::byte* block = packed.data() + b * (panelBytes(type, cols) / (cols / kBlock));
            out.append(reinterpret_cast<const char*>(block), 2);
            const std::byte* q = block + 32;
            for (int j = 0; j < (q8 ? 32 : 16); ++j) out += char(q[(j / 4) * 64 + j % 4]);
        }
    }
    return out;
}

}  // namespace

Json tinyConfig(const TinyOptions& o) {
    Json c = {{"model_type", o.family},         {"hidden_size", o.hidden},
              {"vocab_size", o.vocab},          {"num_hidden_layers", o.layers},
              {"num_attention_heads", o.heads}, {"num_key_value_heads", o.kvHeads},
              {"head_dim", o.headDim},          {"num_experts_per_tok", o.topK},
              {"max_position_embeddings", 512}, {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},          {"hidden_act", "silu"},
              {"tie_word_embeddings", o.tied},  {"eos_token_id", 3},
              {"bos_token_id", nullptr}};
    c[isMixtral(o) ? "num_local_experts" : "num_experts"] = o.experts;
    if (o.family == "qwen3_moe") {
        c["moe_intermediate_size"] = o.expertSize;
        c["intermediate_size"] = o.denseSize;
        c["mlp_only_layers"] = o.denseLayers;
        c["norm_topk_prob"] = true;
    } else {
        c["intermediate_size"] = o.expertSize;
    }
    if (!isMixtral(o)) c["attention_bias"] = o.bias;
    return c;
}

Tensors tinyTensors(const TinyOptions& o) {
    std::mt19937 random(o.seed);
    Tensors out;
    auto add = [&](const std::string& name, std::vector<int64_t> shape) {
        Tensor t;
        int64_t n = 1;
        for (int64_t d : shape) n *= d;
        t.shape = std::move(shape);
        // Sixths of a byte: 7 significant bits, exact in bf16 and f16.
        for (int64_t i = 0; i < n; ++i) t.values.push_back(float(int(random() % 255) - 127) / 64);
        out[name] = std::move(t);
    };
    const int64_t q = o.heads * o.headDim, kv = o.kvHeads * o.headDim;
    add("model.embed_tokens.weight", {o.vocab, o.hidden});
    add("model.norm.weight", {o.hidden});
    if (!o.tied) add("lm_head.weight", {o.vocab, o.hidden});
    for (int64_t layer = 0; layer < o.layers; ++layer) {
        const std::string p = "model.layers." + std::to_string(layer) + ".";
        add(p + "input_layernorm.weight", {o.hidden});
        add(p + "post_attention_layernorm.weight", {o.hidden});
        add(p + "self_attn.q_proj.weight", {q, o.hidden});
        add(p + "self_attn.k_proj.weight", {kv, o.hidden});
        add(p + "self_attn.v_proj.weight", {kv, o.hidden});
        add(p + "self_attn.o_proj.weight", {o.hidden, q});
        if (o.family != "mixtral") {
            const bool full = o.family == "olmoe";
            add(p + "self_attn.q_norm.weight", {full ? q : o.headDim});
            add(p + "self_attn.k_norm.weight", {full ? kv : o.headDim});
        }
        if (o.bias) {
            add(p + "self_attn.q_proj.bias", {q});
            add(p + "self_attn.k_proj.bias", {kv});
            add(p + "self_attn.v_proj.bias", {kv});
            add(p + "self_attn.o_proj.bias", {o.hidden});
        }
        if (isDense(o, layer)) {
            add(p + "mlp.gate_proj.weight", {o.denseSize, o.hidden});
            add(p + "mlp.up_proj.weight", {o.denseSize, o.hidden});
            add(p + "mlp.down_proj.weight", {o.hidden, o.denseSize});
            continue;
        }
        const std::string m = p + moePrefix(o) + ".";
        add(m + "gate.weight", {o.experts, o.hidden});
        for (int64_t e = 0; e < o.experts; ++e) {
            const std::string x = m + "experts." + std::to_string(e) + ".";
            add(x + (isMixtral(o) ? "w1.weight" : "gate_proj.weight"), {o.expertSize, o.hidden});
            add(x + (isMixtral(o) ? "w3.weight" : "up_proj.weight"), {o.expertSize, o.hidden});
            add(x + (isMixtral(o) ? "w2.weight" : "down_proj.weight"), {o.hidden, o.expertSize});
        }
    }
    return out;
}

Tensors stacked(const Tensors& tensors, const TinyOptions& o) {
    Tensors out;
    for (auto& [name, t] : tensors) {
        if (name.find(".experts.") != std::string::npos) continue;
        std::string renamed = name;
        if (size_t at = renamed.find("block_sparse_moe"); at != std::string::npos) {
            renamed.replace(at, 16, "mlp");
        }
        out[renamed] = t;
    }
    for (int64_t layer = 0; layer < o.layers; ++layer) {
        if (isDense(o, layer)) continue;
        const std::string p = "model.layers." + std::to_string(layer) + ".";
        Tensor both{{o.experts, 2 * o.expertSize, o.hidden}, {}};
        Tensor down{{o.experts, o.hidden, o.expertSize}, {}};
        for (int64_t e = 0; e < o.experts; ++e) {
            const std::string x = p + moePrefix(o) + ".experts." + std::to_string(e) + ".";
            for (const char* part : {isMixtral(o) ? "w1.weight" : "gate_proj.weight",
                                     isMixtral(o) ? "w3.weight" : "up_proj.weight"}) {
                const auto& v = tensors.at(x + part).values;
                both.values.insert(both.values.end(), v.begin(), v.end());
            }
            const auto& v =
                tensors.at(x + (isMixtral(o) ? "w2.weight" : "down_proj.weight")).values;
            down.values.insert(down.values.end(), v.begin(), v.end());
        }
        out[p + "mlp.experts.gate_up_proj"] = std::move(both);
        out[p + "mlp.experts.down_proj"] = std::move(down);
    }
    return out;
}

std::string safetensorsBytes(const Tensors& tensors, const std::string& type) {
    Json header = Json::object();
    std::string data;
    for (auto& [name, t] : tensors) {
        const size_t begin = data.size();
        encode(data, t.values, type);
        header[name] = {
            {"dtype", type}, {"shape", t.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    std::string out;
    put(out, uint64_t(text.size()));
    return out + text + data;
}

void writeFile(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary).write(content.data(), std::streamsize(content.size()));
}

std::string readFile(const std::filesystem::path& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
}

void writeCheckpoint(const std::filesystem::path& folder, const Json& config,
                     const Tensors& tensors, int shards, bool index, const std::string& type) {
    std::filesystem::create_directories(folder);
    writeFile(folder / "config.json", config.dump());
    if (shards == 1) {
        writeFile(folder / "model.safetensors", safetensorsBytes(tensors, type));
        return;
    }
    std::vector<Tensors> parts(static_cast<size_t>(shards));
    Json map = Json::object();
    int i = 0;
    auto fileName = [&](int part) {
        char name[64];
        std::snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", part + 1, shards);
        return std::string(name);
    };
    for (auto& [name, t] : tensors) {
        parts[size_t(i % shards)][name] = t;
        map[name] = fileName(i++ % shards);
    }
    for (int part = 0; part < shards; ++part) {
        writeFile(folder / fileName(part), safetensorsBytes(parts[size_t(part)], type));
    }
    if (index) {
        writeFile(folder / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    }
}

namespace {

struct GgufTensor {
    std::string name;
    std::vector<int64_t> shape;
    uint32_t type;
    std::string data;
};

// The data of a type that has no values here: random blocks, or zeros for an unknown type.
std::string anyBlocks(const Tensor& t, uint32_t type, unsigned seed) {
    const std::pair<uint32_t, DType> known[] = {
        {3, DType::Q4_1},  {6, DType::Q5_0},  {7, DType::Q5_1},  {12, DType::Q4_K},
        {13, DType::Q5_K}, {14, DType::Q6_K}, {39, DType::MXFP4}};
    const int64_t cols = t.shape.back(), rows = int64_t(t.values.size()) / cols;
    for (auto& [id, dtype] : known) {
        if (id != type) continue;
        const std::vector<std::byte> blocks = randomBlocks(dtype, rows, cols, seed);
        return {reinterpret_cast<const char*>(blocks.data()), blocks.size()};
    }
    return std::string(t.values.size(), '\0');
}

struct GgufWriter {
    std::string pairs;
    uint64_t pairCount = 0;
    std::vector<GgufTensor> tensors;
    GgufTypes types;

    void text(const std::string& key, const std::string& value) {
        putText(pairs, key);
        put(pairs, uint32_t(8));
        putText(pairs, value);
        ++pairCount;
    }
    void number(const std::string& key, uint32_t value) {
        putText(pairs, key);
        put(pairs, uint32_t(4));
        put(pairs, value);
        ++pairCount;
    }
    void real(const std::string& key, float value) {
        putText(pairs, key);
        put(pairs, uint32_t(6));
        put(pairs, value);
        ++pairCount;
    }
    void plain(const std::string& name, const Tensor& t) { add(name, t, 0); }
    void matrix(const std::string& name, const Tensor& t) { add(name, t, types(name)); }
    void add(const std::string& name, const Tensor& t, uint32_t type) {
        std::string data;
        if (type == 0)
            encode(data, t.values, "F32");
        else if (type == 1)
            encode(data, t.values, "F16");
        else if (type == 30)
            encode(data, t.values, "BF16");
        else if (type == 2 || type == 8)
            data = ggmlBlocks(t.values, t.shape.back(), type == 2 ? DType::Q4_0 : DType::Q8_0);
        else
            data = anyBlocks(t, type, 100 * type + unsigned(tensors.size()));
        tensors.push_back({name, t.shape, type, data});
    }
    // The file with tensors [first, last).
    std::string bytes(size_t first, size_t last) const {
        std::string infos, data;
        for (size_t i = first; i < last; ++i) {
            const GgufTensor& t = tensors[i];
            putText(infos, t.name);
            put(infos, uint32_t(t.shape.size()));
            for (size_t d = t.shape.size(); d-- > 0;) put(infos, uint64_t(t.shape[d]));
            put(infos, t.type);
            data.resize((data.size() + 31) / 32 * 32);
            put(infos, uint64_t(data.size()));
            data += t.data;
        }
        std::string out = "GGUF";
        put(out, uint32_t(3));
        put(out, uint64_t(last - first));
        put(out, pairCount);
        out += pairs + infos;
        out.resize((out.size() + 31) / 32 * 32);
        return out + data;
    }
    std::vector<std::string> parts(int count) {
        if (count == 1) return {bytes(0, tensors.size())};
        std::vector<std::string> out;
        for (int i = 0; i < count; ++i) {
            if (i > 0) {  // only the first part has the metadata
                pairs.clear();
                pairCount = 0;
            }
            number("split.no", uint32_t(i));
            number("split.count", uint32_t(count));
            number("split.tensors.count", uint32_t(tensors.size()));
            out.push_back(bytes(tensors.size() * size_t(i) / size_t(count),
                                tensors.size() * size_t(i + 1) / size_t(count)));
        }
        return out;
    }
};

// Reorders the rows of each head from (half, pair) to adjacent pairs.
Tensor paired(const Tensor& t, int64_t heads) {
    const int64_t rows = t.shape[0], cols = t.shape[1], d = rows / heads;
    Tensor out{t.shape, std::vector<float>(t.values.size())};
    for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < d / 2; ++i) {
            for (int64_t half = 0; half < 2; ++half) {
                const int64_t from = h * d + half * (d / 2) + i, to = h * d + 2 * i + half;
                std::copy_n(t.values.begin() + from * cols, cols, out.values.begin() + to * cols);
            }
        }
    }
    return out;
}

}  // namespace

TinyOptions wideOptions() {
    TinyOptions o;
    o.family = "qwen3_moe";
    o.hidden = o.expertSize = 256;
    o.heads = 8;
    o.headDim = 32;
    return o;
}

uint32_t mixedType(const std::string& name) {
    const std::pair<const char*, uint32_t> types[] = {{"token_embd.", 14},
                                                      {"attn_q.", 12},
                                                      {"attn_k.", 13},
                                                      {"attn_v.", 14},
                                                      {"attn_output.", 6},
                                                      {"output.", 14},
                                                      {"blk.0.ffn_gate_exps.", 12},
                                                      {"blk.0.ffn_up_exps.", 12},
                                                      {"blk.0.ffn_down_exps.", 14},
                                                      {"blk.1.ffn_gate_exps.", 7},
                                                      {"blk.1.ffn_up_exps.", 3},
                                                      {"blk.1.ffn_down_exps.", 39}};
    for (auto& [part, type] : types) {
        if (name.find(part) != std::string::npos) return type;
    }
    return 0;
}

std::string ggufBytes(const TinyOptions& o, const Tensors& tensors, uint32_t quant,
                      const std::vector<std::pair<std::string, std::string>>& texts) {
    return ggufParts(
               o, tensors, [quant](const std::string&) { return quant; }, 1, texts)
        .front();
}

std::vector<std::string> ggufParts(const TinyOptions& o, const Tensors& tensors,
                                   const GgufTypes& types, int parts,
                                   const std::vector<std::pair<std::string, std::string>>& texts) {
    const std::string arch = isMixtral(o)              ? "llama"
                             : o.family == "qwen3_moe" ? "qwen3moe"
                                                       : "olmoe";
    GgufWriter w;
    w.types = types;
    w.text("general.architecture", arch);
    w.text("general.name", "tiny");
    for (auto& [key, value] : texts) w.text(key, value);
    const std::pair<const char*, int64_t> numbers[] = {{"block_count", o.layers},
                                                       {"context_length", 512},
                                                       {"embedding_length", o.hidden},
                                                       {"feed_forward_length", o.expertSize},
                                                       {"attention.head_count", o.heads},
                                                       {"attention.head_count_kv", o.kvHeads},
                                                       {"attention.key_length", o.headDim},
                                                       {"attention.value_length", o.headDim},
                                                       {"expert_count", o.experts},
                                                       {"expert_used_count", o.topK},
                                                       {"vocab_size", o.vocab}};
    for (auto& [key, value] : numbers) w.number(arch + "." + key, uint32_t(value));
    w.real(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
    w.real(arch + ".rope.freq_base", 10000.0f);

    const Tensors s = stacked(tensors, o);
    w.matrix("token_embd.weight", s.at("model.embed_tokens.weight"));
    w.plain("output_norm.weight", s.at("model.norm.weight"));
    if (!o.tied) w.matrix("output.weight", s.at("lm_head.weight"));
    for (int64_t layer = 0; layer < o.layers; ++layer) {
        const std::string p = "model.layers." + std::to_string(layer) + ".";
        const std::string b = "blk." + std::to_string(layer) + ".";
        w.plain(b + "attn_norm.weight", s.at(p + "input_layernorm.weight"));
        w.plain(b + "ffn_norm.weight", s.at(p + "post_attention_layernorm.weight"));
        const Tensor &q = s.at(p + "self_attn.q_proj.weight"),
                     &k = s.at(p + "self_attn.k_proj.weight");
        w.matrix(b + "attn_q.weight", isMixtral(o) ? paired(q, o.heads) : q);
        w.matrix(b + "attn_k.weight", isMixtral(o) ? paired(k, o.kvHeads) : k);
        w.matrix(b + "attn_v.weight", s.at(p + "self_attn.v_proj.weight"));
        w.matrix(b + "attn_output.weight", s.at(p + "self_attn.o_proj.weight"));
        for (const char* part : {"q", "k", "v"}) {
            if (!o.bias) continue;
            w.add(b + "attn_" + part + ".bias", s.at(p + "self_attn." + part + "_proj.bias"),
                  o.quantisedBias ? 8 : 0);
        }
        if (!isMixtral(o)) {
            w.plain(b + "attn_q_norm.weight", s.at(p + "self_attn.q_norm.weight"));
            w.plain(b + "attn_k_norm.weight", s.at(p + "self_attn.k_norm.weight"));
        }
        w.plain(b + "ffn_gate_inp.weight", s.at(p + "mlp.gate.weight"));
        const Tensor& both = s.at(p + "mlp.experts.gate_up_proj");
        Tensor gate{{o.experts, o.expertSize, o.hidden}, {}}, up = gate;
        const int64_t half = o.expertSize * o.hidden;
        for (int64_t e = 0; e < o.experts; ++e) {
            auto at = both.values.begin() + e * 2 * half;
            gate.values.insert(gate.values.end(), at, at + half);
            up.values.insert(up.values.end(), at + half, at + 2 * half);
        }
        w.matrix(b + "ffn_gate_exps.weight", gate);
        w.matrix(b + "ffn_up_exps.weight", up);
        w.matrix(b + "ffn_down_exps.weight", s.at(p + "mlp.experts.down_proj"));
    }
    return w.parts(parts);
}

namespace {

std::vector<float> unpackAll(DType type, const std::string& bytes, int64_t rows, int64_t cols) {
    std::vector<float> out(size_t(rows * cols));
    for (int64_t r = 0; r < rows; ++r) {
        unpackRow(type, reinterpret_cast<const std::byte*>(bytes.data()), cols, r,
                  out.data() + r * cols);
    }
    return out;
}

}  // namespace

std::vector<float> containerValues(const ContainerInfo& info, const std::string& name) {
    const TensorInfo* t = info.find(name);
    if (!t) return {};
    const std::string bytes =
        readFile(info.dir / t->file).substr(size_t(t->offset), size_t(t->bytes));
    if (t->packed) return unpackAll(t->dtype, bytes, t->rows, t->cols);
    std::vector<float> out(size_t(t->rows * t->cols));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

std::vector<float> expertValues(const ContainerInfo& info, int64_t layer, int64_t expert,
                                const std::string& matrix) {
    const ModelConfig& c = info.config;
    const ExpertLayer& e = info.expertLayers[size_t(c.moeIndex(layer))];
    const bool down = matrix == "w2";
    const int64_t offset = matrix == "w1" ? e.w1Offset : down ? e.w2Offset : e.w3Offset;
    const int64_t rows = down ? c.hiddenSize : c.expertSize;
    const int64_t cols = down ? c.expertSize : c.hiddenSize;
    const std::string record =
        readFile(info.dir / e.file).substr(size_t(expert * e.recordBytes), size_t(e.recordBytes));
    const DType type = matrix == "w1" ? e.types.w1 : down ? e.types.w2 : e.types.w3;
    return unpackAll(type, record.substr(size_t(offset)), rows, cols);
}

std::map<std::string, std::string> folderContent(const std::filesystem::path& folder) {
    std::map<std::string, std::string> out;
    for (auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            out[entry.path().lexically_relative(folder).string()] = readFile(entry.path());
        }
    }
    return out;
}

}  // namespace colibri::test
