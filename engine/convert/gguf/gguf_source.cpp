// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_source.h"

#include <algorithm>

#include "engine/base/printable.h"
#include "engine/convert/gguf/gguf.h"
#include "engine/convert/gguf/gguf_config.h"
#include "engine/convert/gguf/gguf_parts.h"
#include "engine/convert/gguf/gguf_texts.h"
#include "engine/convert/source/source_texts.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

// Rejects GGUF files that are not language models. General keys declare their kind.
Status checkIsModel(const GgufHeader& header, const std::string& where) {
    const std::string* type = header.text("general.type");
    const std::string* arch = header.text("general.architecture");
    const bool projector = arch && *arch == "clip";
    if (!projector && (!type || *type == "model")) return {};
    if (projector || *type == "mmproj") {
        return {Code::Unsupported,
                where + ": a projector for images or audio (mmproj), not a language model",
                "Open the GGUF file of the language model that it belongs to"};
    }
    if (*type == "adapter") {
        return {Code::Unsupported, where + ": a LoRA adapter, not a whole model",
                "Merge it into its base model first (llama.cpp's export-lora), or open the base "
                "model"};
    }
    return {Code::Unsupported,
            where + ": general.type is \"" + printable(*type) + "\", not a language model"};
}

// A tensor holds the divisors of the frequencies: Llama 3's, or the shorter of two sets (PhiMoE).
Status readDivisors(OpenedSource& out) {
    for (const char* name : {"rope_freqs.weight", "rope_factors_short.weight"}) {
        const SourceTensor* t = out.checkpoint.find(name);
        if (!t || !t->dtype) continue;
        std::vector<std::byte> scratch;
        std::vector<float>& divisors = out.config.rope.divisors;
        if (t->elements() > 1 << 16)
            return Status(Code::BadInput, std::string(name) + " is too long");
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

Result<OpenedSource> openGgufSource(const std::filesystem::path& path,
                                    const std::string& chatTemplate) {
    const std::string where = path.string();
    OpenedSource out;
    Result<GgufParts> parts = openGgufParts(path, out.checkpoint);
    if (!parts) return parts.status();
    GgufHeader* header = &parts->header;
    COLIBRI_TRY(checkIsModel(*header, where));
    Result<GgufConfig> read = readGgufConfig(*header, where);
    if (!read) return read.status();
    ModelConfig& c = out.config = std::move(read->config);
    out.extraLayers = read->extraLayers;
    const std::string* name = header->text("general.name");
    c.name = printable(name && !name->empty() ? *name : parts->name);

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
    COLIBRI_TRY(resolveTexts(ggufTexts(*header), chatTemplate, out));
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
