// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include <algorithm>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/json_node.h"
#include "engine/base/json_reader.h"
#include "engine/text/added_tokens.h"
#include "engine/text/decoders.h"
#include "engine/text/normalizers.h"
#include "engine/text/post_processors.h"
#include "engine/text/pre_tokenizers.h"
#include "engine/text/token_model.h"
#include "engine/unicode/unicode.h"

namespace colibri {

using namespace text;

// The stages of encoding: added tokens -> normalizer -> pre-tokenizer -> model -> post-processor.
struct Tokenizer::Impl {
    AddedTokens added;
    std::unique_ptr<Normalizer> normalizer;
    std::unique_ptr<PreTokenizer> preTokenizer;
    std::unique_ptr<TokenModel> model;
    IdFrame frame;
    std::unique_ptr<Decoder> decoder;
    int32_t highestId = -1;
    std::vector<bool> controlIds;  // by id

    Status read(const JsonNode& root);
    Status readAddedTokens(const JsonNode& root);
    // The decoder's input for an id; empty if the id does not exist or is skipped.
    std::optional<DecodedToken> tokenOf(int32_t id, bool skipSpecial) const;
    const std::string* textOf(int32_t id) const;
    // Encodes the pieces without producing `barred` ids.
    void encode(std::vector<Piece> pieces, const std::vector<bool>* barred,
                std::vector<int32_t>& ids) const;
};

namespace {

Result<AddedToken> readAddedToken(const JsonNode& node, const TokenModel& model) {
    AddedToken token;
    Result<std::string> content = node.text("content");
    if (!content) return content.status();
    token.content = std::move(*content);
    const Result<bool> special = node.flag("special", false);
    if (!special) return special.status();
    token.special = *special;
    struct Flag {
        const char* key;
        bool* target;
        bool fallback;
    };
    for (const Flag& flag :
         {Flag{"normalized", &token.normalized, !token.special},
          Flag{"single_word", &token.singleWord, false}, Flag{"lstrip", &token.leftStrip, false},
          Flag{"rstrip", &token.rightStrip, false}}) {
        const Result<bool> value = node.flag(flag.key, flag.fallback);
        if (!value) return value.status();
        *flag.target = *value;
    }
    const Result<int64_t> id = node.integer("id");
    if (!id) return id.status();
    if (*id < 0 || *id > kHighestId) {
        return node.bad("the id " + std::to_string(*id) + " is not between 0 and " +
                        std::to_string(kHighestId));
    }
    token.id = int32_t(*id);
    const auto known = model.tokenToId(token.content);
    if (known && *known != token.id) {
        return node.bad("the id " + std::to_string(token.id) + " differs from the vocabulary's, " +
                        std::to_string(*known));
    }
    const std::string* other = model.idToToken(token.id);
    if (other && *other != token.content) {
        return node.bad("the id " + std::to_string(token.id) +
                        " belongs to another token of the vocabulary");
    }
    return token;
}

}  // namespace

Status Tokenizer::Impl::readAddedTokens(const JsonNode& root) {
    std::vector<AddedToken> tokens;
    if (root.has("added_tokens")) {
        const Result<std::vector<JsonNode>> nodes = root.array("added_tokens");
        if (!nodes) return nodes.status();
        std::unordered_map<int32_t, std::string> contents;
        for (const JsonNode& node : *nodes) {
            Result<AddedToken> token = readAddedToken(node, *model);
            if (!token) return token.status();
            if (token->content.empty()) continue;
            const auto [entry, fresh] = contents.emplace(token->id, token->content);
            if (!fresh && entry->second != token->content) {
                return node.bad("the id " + std::to_string(token->id) +
                                " is that of another added token");
            }
            if (!fresh) continue;
            highestId = std::max(highestId, token->id);
            tokens.push_back(std::move(*token));
        }
    }
    added.build(std::move(tokens), normalizer.get());
    controlIds.resize(size_t(highestId + 1));
    for (const AddedToken& token : added.all()) {
        if (token.control) controlIds[size_t(token.id)] = true;
    }
    return {};
}

Status Tokenizer::Impl::read(const JsonNode& root) {
    if (!root.json().is_object()) return root.bad("not a tokenizer: not a JSON object");
    if (!root.has("model")) return root.bad("not a tokenizer: \"model\" is missing");
    Result<std::unique_ptr<TokenModel>> readModel = makeTokenModel(root.at("model"));
    if (!readModel) return readModel.status();
    model = std::move(*readModel);
    highestId = model->highestId();
    Result<std::unique_ptr<Normalizer>> readNormalizer = makeNormalizer(root.at("normalizer"));
    if (!readNormalizer) return readNormalizer.status();
    normalizer = std::move(*readNormalizer);
    Result<std::unique_ptr<PreTokenizer>> readPre = makePreTokenizer(root.at("pre_tokenizer"));
    if (!readPre) return readPre.status();
    preTokenizer = std::move(*readPre);
    Result<IdFrame> readFrame = readPostProcessor(root.at("post_processor"));
    if (!readFrame) return readFrame.status();
    frame = std::move(*readFrame);
    Result<std::unique_ptr<Decoder>> readDecoder = makeDecoder(root.at("decoder"));
    if (!readDecoder) return readDecoder.status();
    decoder = std::move(*readDecoder);
    COLIBRI_TRY(readAddedTokens(root));
    for (const auto* ids : {&frame.before, &frame.after}) {
        for (int32_t id : *ids) {
            if (!textOf(id))
                return root.at("post_processor")
                    .bad("there is no token with the id " + std::to_string(id));
        }
    }
    return {};
}

const std::string* Tokenizer::Impl::textOf(int32_t id) const {
    if (const AddedToken* token = added.byId(id)) return &token->written;
    return model->idToToken(id);
}

std::optional<DecodedToken> Tokenizer::Impl::tokenOf(int32_t id, bool skipSpecial) const {
    const AddedToken* token = added.byId(id);
    const std::string* text = textOf(id);
    if (!text || (skipSpecial && token && token->special)) return std::nullopt;
    return DecodedToken{*text, token != nullptr};
}

namespace {

// The depth limit is above that of nested components. As in the reference implementation, the last
// value of a duplicate key counts.
constexpr JsonRules kTokenizerJson{.maxDepth = 4096, .lastDuplicateCounts = true};

Result<nlohmann::json> readDocument(std::string_view text, const std::string& name) {
    JsonFault fault;
    std::optional<nlohmann::json> json = readJson(text, kTokenizerJson, fault);
    if (json) return std::move(*json);
    if (fault.kind == JsonFault::Kind::TooDeep) {
        return Status(Code::BadInput, name + ": nested too deeply");
    }
    return Status(Code::BadInput, name + ": not valid JSON at byte " + std::to_string(fault.byte),
                  "The file may be incomplete; copy it again");
}

}  // namespace

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
    std::error_code error;
    const auto file = std::filesystem::is_directory(path, error) ? path / "tokenizer.json" : path;
    const Result<std::string> json = readTextFile(file);
    if (!json) return json.status();
    return parse(*json, file.string());
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::parse(std::string_view json,
                                                    const std::string& name) {
    const Result<nlohmann::json> document = readDocument(json, name);
    if (!document) return document.status();
    auto impl = std::make_unique<Impl>();
    try {
        COLIBRI_TRY(impl->read(JsonNode(*document, name + ":")));
    } catch (const std::bad_alloc&) {
        return Status(Code::OutOfMemory, name + ": no memory for this tokenizer");
    }
    std::unique_ptr<Tokenizer> tokenizer(new Tokenizer);
    tokenizer->m_impl = std::move(impl);
    return {std::move(tokenizer)};
}

void Tokenizer::Impl::encode(std::vector<Piece> pieces, const std::vector<bool>* barred,
                             std::vector<int32_t>& ids) const {
    if (preTokenizer) preTokenizer->apply(pieces);
    for (const Piece& piece : pieces) {
        if (piece.id >= 0) {
            ids.push_back(piece.id);
        } else {
            model->encode(piece.text, ids, barred);
        }
    }
}

std::vector<int32_t> Tokenizer::encode(const TracedText& text) const {
    if (!text.hasData()) return encode(text.text);
    std::vector<int32_t> ids;
    m_impl->encode(m_impl->added.cut(text, true), &m_impl->controlIds, ids);
    return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    std::string valid;
    if (!isValidUtf8(text)) text = valid = toValidUtf8(text);
    std::vector<int32_t> ids;
    if (options.bos) ids = m_impl->frame.before;
    m_impl->encode(m_impl->added.cut(TracedText(std::string(text)), options.special), nullptr, ids);
    if (options.bos) ids.insert(ids.end(), m_impl->frame.after.begin(), m_impl->frame.after.end());
    return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skipSpecial) const {
    std::vector<DecodedToken> tokens;
    tokens.reserve(ids.size());
    for (int32_t id : ids) {
        if (auto token = m_impl->tokenOf(id, skipSpecial)) tokens.push_back(std::move(*token));
    }
    if (m_impl->decoder) m_impl->decoder->apply(tokens, true);
    std::string out;
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (!m_impl->decoder && i > 0) out += ' ';
        out += tokens[i].text;
    }
    return out;
}

std::string Tokenizer::tokenBytes(int32_t id, bool skipSpecial) const {
    auto token = m_impl->tokenOf(id, skipSpecial);
    if (!token) return {};
    std::vector<DecodedToken> tokens{std::move(*token)};
    if (m_impl->decoder) m_impl->decoder->apply(tokens, false);
    return tokens.empty() ? std::string() : tokens[0].text;
}

int32_t Tokenizer::vocabSize() const {
    return m_impl->highestId + 1;
}

std::optional<int32_t> Tokenizer::tokenToId(std::string_view token) const {
    if (const AddedToken* found = m_impl->added.byContent(token)) return found->id;
    return m_impl->model->tokenToId(token);
}

std::string Tokenizer::idToToken(int32_t id) const {
    const std::string* text = m_impl->textOf(id);
    return text ? *text : std::string();
}

bool Tokenizer::isSpecial(int32_t id) const {
    const AddedToken* token = m_impl->added.byId(id);
    return token && token->special;
}

}  // namespace colibri
