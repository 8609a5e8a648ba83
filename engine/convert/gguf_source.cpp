// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf_source.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/convert/gguf.h"
#include "engine/convert/gguf_config.h"
#include "engine/convert/gguf_parts.h"
#include "engine/convert/gguf_tokenizer.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

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

// What frequencies are divided by is a tensor: Llama 3's, or the shorter of two sets (PhiMoE).
Status readDivisors(OpenedSource& out) {
    for (const char* name : {"rope_freqs.weight", "rope_factors_short.weight"}) {
        const SourceTensor* t = out.checkpoint.find(name);
        if (!t || !t->dtype) continue;
        std::vector<std::byte> scratch;
        std::vector<float>& divisors = out.config.rope.divisors;
        if (t->elements() > 1 << 16) return Status(Code::BadInput, std::string(name) + " is too long");
        divisors.resize(size_t(t->elements()));
        COLIBRI_TRY(out.checkpoint.readFloats(rowsOf(t, 0, 1, t->elements()), 0, 1, scratch,
                                              divisors.data()));
        // All ones: no scaling.
        if (std::all_of(divisors.begin(), divisors.end(), [](float d) { return d == 1; })) {
            divisors.clear();
        }
    }
    return {};
}

}  // namespace

Result<OpenedSource> openGgufSource(const std::filesystem::path& path) {
    const std::string where = path.string();
    OpenedSource out;
    Result<GgufParts> parts = openGgufParts(path, out.checkpoint);
    if (!parts) return parts.status();
    GgufHeader* header = &parts->header;
    Result<GgufConfig> read = readGgufConfig(*header, where);
    if (!read) return read.status();
    ModelConfig& c = out.config = std::move(read->config);
    out.extraLayers = read->extraLayers;
    const std::string* name = header->text("general.name");
    c.name = name && !name->empty() ? *name : parts->name;

    out.naming = &ggufNaming();
    out.pairedRope = read->family->ggufPairedRope;
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
    COLIBRI_TRY(readDivisors(out));
    if (Status s = checkConfig(c); !s.ok()) return s.in(where);
    Result<std::string> fingerprint = out.checkpoint.fingerprint(summary);
    if (!fingerprint) return fingerprint.status();
    out.fingerprint = *fingerprint;
    return out;
}

}  // namespace colibri
