// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf_source.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "engine/convert/gguf_parts.h"
#include "engine/convert/gguf_tokenizer.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

// Metadata of one architecture: "<arch>.<key>".
class ArchFields {
public:
    ArchFields(const GgufHeader& header, std::string arch)
        : m_header(header), m_arch(std::move(arch)) {}

    int64_t integer(const char* key, std::optional<int64_t> fallback = {}) {
        std::string full = m_arch + "." + key;
        if (std::optional<int64_t> v = m_header.integer(full)) return *v;
        // A value per layer is fine as long as all are the same.
        if (const auto* list = m_header.numbers(full); list && !list->empty()) {
            bool same = std::all_of(list->begin(), list->end(),
                                    [&](double v) { return v == list->front(); });
            if (!same) fail(Code::Unsupported, full + " differs between layers");
            if (std::abs(list->front()) < 9e15) return int64_t(list->front());
        }
        if (!fallback) fail(Code::BadInput, "\"" + full + "\" is missing");
        return fallback.value_or(0);
    }
    double number(const char* key, double fallback) {
        return m_header.number(m_arch + "." + key).value_or(fallback);
    }
    const std::string* text(const char* key) { return m_header.text(m_arch + "." + key); }
    std::optional<bool> flag(const char* key) { return m_header.flag(m_arch + "." + key); }

    void fail(Code code, const std::string& what) {
        if (m_status.ok()) m_status = Status(code, what);
    }
    const Status& status() const { return m_status; }

private:
    const GgufHeader& m_header;
    std::string m_arch;
    Status m_status;
};

const SourceTensor* findTensor(const GgufHeader& header, const std::string& name) {
    for (const SourceTensor& t : header.tensors) {
        if (t.name == name) return &t;
    }
    return nullptr;
}

void readRope(ArchFields& f, const FamilyRow& family, ModelConfig& c) {
    c.rope.theta = f.number("rope.freq_base", family.defaultTheta);
    c.rope.interleaved = family.interleavedRope;
    int64_t rotary = f.integer("rope.dimension_count", c.headDim);
    if (rotary != c.headDim) {
        f.fail(Code::Unsupported, "rope.dimension_count " + std::to_string(rotary) +
                                      " of a head of " + std::to_string(c.headDim));
    }
    c.rope.rotaryDim = int(std::clamp<int64_t>(rotary, 0, 1 << 20));
    const std::string* type = f.text("rope.scaling.type");
    if (!type || *type == "none") return;
    if (*type != "linear") {
        f.fail(Code::Unsupported, "rope.scaling.type \"" + *type + "\"");
        return;
    }
    c.rope.type = "linear";
    c.rope.factor = f.number("rope.scaling.factor", 1);
}

void readRouting(ArchFields& f, const FamilyRow& family, ModelConfig& c) {
    int64_t gating = f.integer("expert_gating_func", 0);   // 0: not given, 1: softmax
    if (gating != 0 && gating != 1) {
        f.fail(Code::Unsupported, "expert_gating_func " + std::to_string(gating));
    }
    double scale = f.number("expert_weights_scale", 1);
    if (scale != 1 && scale != 0) {
        f.fail(Code::Unsupported, "expert_weights_scale " + formatSig(scale));
    }
    // Files seldom say; the runtime they are made for renormalises all but OLMoE.
    bool usual = family.modelType != std::string_view("olmoe");
    c.routing.renorm = f.flag("expert_weights_norm").value_or(usual);
}

void readSizes(ArchFields& f, const GgufHeader& header, const FamilyRow& family, ModelConfig& c) {
    c.hiddenSize = f.integer("embedding_length");
    c.numLayers = f.integer("block_count");
    c.numHeads = f.integer("attention.head_count");
    c.numKvHeads = f.integer("attention.head_count_kv", c.numHeads);
    c.headDim = f.integer("attention.key_length", c.numHeads > 0 ? c.hiddenSize / c.numHeads : 0);
    if (int64_t v = f.integer("attention.value_length", c.headDim); v != c.headDim) {
        f.fail(Code::Unsupported, "attention.value_length " + std::to_string(v) +
                                      " differs from key_length " + std::to_string(c.headDim));
    }
    c.numExperts = f.integer("expert_count");
    c.topK = f.integer("expert_used_count");
    c.maxPositions = f.integer("context_length", family.defaultPositions);
    c.rmsEps = float(f.number("attention.layer_norm_rms_epsilon", family.defaultEps));
    c.qkNorm = family.qkNorm;
    c.clipQkv = float(f.number("attention.clamp_kqv", 0));
    c.attentionBias = findTensor(header, "blk.0.attn_q.bias") != nullptr;
    if (family.window == WindowRule::Plain) {
        c.slidingWindow = f.integer("attention.sliding_window", 0);
    }
    // The tensors know these for certain.
    c.vocabSize = f.integer("vocab_size", 0);
    if (auto* t = findTensor(header, "token_embd.weight")) c.vocabSize = t->shape.front();
    c.expertSize = f.integer("expert_feed_forward_length", f.integer("feed_forward_length", 0));
    c.denseSize = f.integer("feed_forward_length", 0);
}

// A layer is dense where its gate is.
void readLayers(ArchFields& f, const GgufHeader& header, ModelConfig& c) {
    if (c.numLayers < 1 || c.numLayers > 1 << 12) {
        f.fail(Code::BadInput, "block_count is " + std::to_string(c.numLayers) +
                                   ", expected a value between 1 and 4096");
        return;
    }
    c.moeLayer.assign(size_t(c.numLayers), true);
    bool sized = false;
    for (const SourceTensor& t : header.tensors) {
        for (const char* end : {".ffn_gate_exps.weight", ".ffn_gate.0.weight"}) {
            if (!sized && t.name.ends_with(end) && t.shape.size() >= 2) {
                c.expertSize = t.shape[t.shape.size() - 2];
                sized = true;
            }
        }
        if (!t.name.starts_with("blk.") || !t.name.ends_with(".ffn_gate.weight")) continue;
        std::string number = t.name.substr(4, t.name.find('.', 4) - 4);
        if (number.empty() || number.size() > 4 ||
            !std::all_of(number.begin(), number.end(), [](char d) { return d >= '0' && d <= '9'; })) {
            continue;
        }
        if (std::stoll(number) < c.numLayers) c.moeLayer[size_t(std::stoll(number))] = false;
    }
    if (c.moeLayerCount() == c.numLayers) c.denseSize = 0;
}

void readTokens(const GgufHeader& header, ModelConfig& c) {
    auto token = [&](const char* key) -> int32_t {
        std::optional<int64_t> id = header.integer(std::string("tokenizer.ggml.") + key);
        return id && *id >= 0 && *id < INT32_MAX ? int32_t(*id) : -1;
    };
    for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
        int32_t id = token(key);
        if (id >= 0 && std::find(c.eosIds.begin(), c.eosIds.end(), id) == c.eosIds.end()) {
            c.eosIds.push_back(id);
        }
    }
    c.bosId = token("bos_token_id");
}

Result<const FamilyRow*> familyOf(const GgufHeader& header, const std::string& where) {
    const std::string* arch = header.text("general.architecture");
    if (!arch) return Status(Code::BadInput, where + ": no general.architecture");
    const FamilyRow* family = familyByGgufArch(*arch);
    // "llama" is many models; the one known here is the one with experts.
    if (!family || (*arch == "llama" && header.integer("llama.expert_count").value_or(0) == 0)) {
        return Status(Code::Unsupported,
                      where + ": architecture \"" + *arch + "\"" +
                          (family ? " without experts" : "") + " is not supported",
                      "Supported: llama with experts (Mixtral), olmoe, qwen3moe");
    }
    if (findTensor(header, "rope_freqs.weight")) {
        return Status(Code::Unsupported, where + ": rope_freqs.weight (rope type llama3)");
    }
    return family;
}

void addTokenizer(const GgufHeader& header, OpenedSource& out) {
    Result<std::string> json = ggufTokenizerJson(header);
    if (json) {
        out.extraFiles.emplace_back("tokenizer.json", std::move(*json));
    } else {
        out.notes.push_back("Without a tokenizer: " + json.status().message());
    }
    if (const std::string* text = header.text("tokenizer.chat_template"); text && json) {
        out.extraFiles.emplace_back("chat_template.jinja", *text);
    }
}

}  // namespace

Result<OpenedSource> openGgufSource(const std::filesystem::path& path) {
    const std::string where = path.string();
    OpenedSource out;
    Result<GgufParts> parts = openGgufParts(path, out.checkpoint);
    if (!parts) return parts.status();
    GgufHeader* header = &parts->header;
    Result<const FamilyRow*> family = familyOf(*header, where);
    if (!family) return family.status();
    const FamilyRow& row = **family;

    ModelConfig& c = out.config;
    c.family = row.modelType;
    ArchFields fields(*header, row.ggufArch);
    readSizes(fields, *header, row, c);
    readRope(fields, row, c);
    readRouting(fields, row, c);
    readLayers(fields, *header, c);
    readTokens(*header, c);
    if (!fields.status().ok()) return fields.status().in(where);
    c.tiedEmbeddings = findTensor(*header, "output.weight") == nullptr;
    if (Status s = checkConfig(c); !s.ok()) return s.in(where);
    const std::string* name = header->text("general.name");
    c.name = name && !name->empty() ? *name : parts->name;

    out.naming = &ggufNaming();
    out.pairedRope = row.ggufPairedRope;
    out.kind = "GGUF " + std::to_string(header->version);
    std::string summary = c.family;
    for (auto& [key, value] : header->metadata) {
        summary += "\n" + key;
        if (auto* v = std::get_if<int64_t>(&value)) summary += " " + std::to_string(*v);
        if (auto* v = std::get_if<double>(&value)) summary += " " + std::to_string(*v);
        if (auto* v = std::get_if<std::string>(&value)) summary += " " + *v;
    }
    addTokenizer(*header, out);
    for (SourceTensor& t : header->tensors) {
        COLIBRI_TRY(out.checkpoint.addTensor(std::move(t)));
    }
    Result<std::string> fingerprint = out.checkpoint.fingerprint(summary);
    if (!fingerprint) return fingerprint.status();
    out.fingerprint = *fingerprint;
    return out;
}

}  // namespace colibri
