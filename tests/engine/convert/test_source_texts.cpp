// SPDX-License-Identifier: GPL-3.0-or-later
// Tokens that begin prompts and end replies, and chat templates, from all files that define them.
#include <QTemporaryDir>
#include <QTest>

#include "engine/convert/converter.h"
#include "engine/convert/gguf/gguf_texts.h"
#include "engine/convert/inspect.h"
#include "engine/convert/source/source_texts.h"
#include "engine/text/tokenizer.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<int32_t>;

constexpr const char* kTurns =
    "{{ bos_token }}{% for m in messages %}<|start|>{{ m.role }} {{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant {% endif %}";
constexpr const char* kPlain = "{% for m in messages %}{{ m.content }}{% endfor %}";

// Letters, the special tokens <s> 60, </s> 61, <|im_end|> 62, <|eot|> 63, <|start|> 64, and the
// given ones.
Json tinyTokenizer(const std::vector<std::pair<std::string, int>>& more = {}) {
    Json vocab = Json::object(), added = Json::array();
    for (int i = 0; i < 26; ++i) vocab[std::string(1, char('a' + i))] = i;
    std::vector<std::pair<std::string, int>> tokens = {
        {"<s>", 60}, {"</s>", 61}, {"<|im_end|>", 62}, {"<|eot|>", 63}, {"<|start|>", 64}};
    tokens.insert(tokens.end(), more.begin(), more.end());
    for (const auto& [text, id] : tokens) {
        added.push_back({{"id", id}, {"content", text}, {"special", true}});
    }
    return {{"version", "1.0"},
            {"added_tokens", added},
            {"normalizer", nullptr},
            {"pre_tokenizer", nullptr},
            {"post_processor", nullptr},
            {"decoder", nullptr},
            {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
}

bool contains(const std::vector<std::string>& notes, const std::string& part) {
    for (const std::string& note : notes) {
        if (note.find(part) != std::string::npos) return true;
    }
    for (const std::string& note : notes) qWarning("note: %s", note.c_str());
    return false;
}

}  // namespace

class TestSourceTexts : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }
    // A checkpoint with additional files.
    fs::path checkpoint(const std::map<std::string, Json>& files) {
        const fs::path folder = fresh();
        TinyOptions options;
        Json config = tinyConfig(options);
        config.erase("eos_token_id");
        config.erase("bos_token_id");
        if (files.contains("config.json")) config.update(files.at("config.json"));
        writeCheckpoint(folder, config, tinyTensors(options));
        for (const auto& [name, content] : files) {
            if (name == "config.json") continue;
            fs::create_directories((folder / name).parent_path());
            writeFile(folder / name,
                      content.is_string() ? content.get<std::string>() : content.dump());
        }
        return folder;
    }
    ContainerInfo converted(const fs::path& source, const std::string& choice = {},
                            std::vector<std::string>* notes = nullptr) {
        ConvertOptions options{.source = source, .target = fresh()};
        options.chatTemplate = choice;
        options.onNote = [&](const std::string& note) {
            if (notes) notes->push_back(note);
        };
        const Result<ContainerInfo> info = convertModel(options, {}, nullptr);
        if (!info.ok()) qWarning("%s", info.status().text().c_str());
        return info.ok() ? *info : ContainerInfo();
    }

private slots:
    void endTokensOfEveryFileAreUnited() {
        const fs::path source =
            checkpoint({{"tokenizer.json", tinyTokenizer()},
                        {"config.json", {{"eos_token_id", 1}}},
                        {"generation_config.json", {{"eos_token_id", {61, 4, nullptr}}}},
                        {"tokenizer_config.json",
                         {{"eos_token", {{"content", "</s>"}}}, {"bos_token", "<s>"}}},
                        {"special_tokens_map.json", {{"eot_token", "<|eot|>"}}}});
        const ModelConfig c = converted(source).config;
        // As in the reference, config.json counts for keys that generation_config.json does not
        // have.
        QCOMPARE(c.eosIds, (Ids{61, 63, 4}));
        QCOMPARE(c.eosSources,
                 (std::vector<std::string>{"tokenizer_config.json, generation_config.json",
                                           "special_tokens_map.json", "generation_config.json"}));
        QCOMPARE(c.bosId, 60);
        QCOMPARE(c.bosSource, "tokenizer_config.json");
    }

    void oneFileAloneIsEnough_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("config") << "config.json" << QByteArray(R"({"eos_token_id": [62]})");
        QTest::newRow("generation")
            << "generation_config.json" << QByteArray(R"({"eos_token_id": 62})");
        QTest::newRow("tokenizer")
            << "tokenizer_config.json" << QByteArray(R"({"eos_token": "<|im_end|>"})");
        QTest::newRow("map") << "special_tokens_map.json"
                             << QByteArray(
                                    R"({"eos_token": {"content": "<|im_end|>", "lstrip": false}})");
    }
    void oneFileAloneIsEnough() {
        QFETCH(QString, file);
        QFETCH(QByteArray, content);
        const ModelConfig c = converted(checkpoint({{"tokenizer.json", tinyTokenizer()},
                                                    {file.toStdString(), Json::parse(content)}}))
                                  .config;
        QCOMPARE(c.eosIds, (Ids{62}));
        QCOMPARE(c.eosSources, (std::vector<std::string>{file.toStdString()}));
    }

    // The first token of a prompt is the one that the reference implementation adds.
    void flagsOfTheTokenizerPutTokensAroundATextOrNot() {
        Json withBos = tinyTokenizer();
        withBos["post_processor"] = {
            {"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", Json::array()},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {60}}, {"tokens", {"<s>"}}}}}}};
        const auto idsOf = [&](const Json& tokenizer, Json config) {
            config.update(Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
            const ContainerInfo info = converted(
                checkpoint({{"tokenizer.json", tokenizer}, {"tokenizer_config.json", config}}));
            const auto made = Tokenizer::load(info.dir);
            return made.ok() ? (*made)->encode("ab", {.bos = true}) : Ids();
        };
        const Json plain = tinyTokenizer(), none = Json::object();
        QCOMPARE(idsOf(plain, none), (Ids{0, 1}));
        QCOMPARE(idsOf(plain, {{"add_bos_token", true}}), (Ids{60, 0, 1}));
        QCOMPARE(idsOf(plain, {{"add_bos_token", true}, {"add_eos_token", true}}),
                 (Ids{60, 0, 1, 61}));
        QCOMPARE(idsOf(withBos, none), (Ids{60, 0, 1}));
        QCOMPARE(
            idsOf(withBos, {{"add_bos_token", false}, {"tokenizer_class", "LlamaTokenizerFast"}}),
            (Ids{0, 1}));
        // For other classes tokenizer.json decides.
        QCOMPARE(idsOf(withBos, {{"add_bos_token", false}, {"tokenizer_class", "Foo"}}),
                 (Ids{60, 0, 1}));
    }

    void whatEndsTurnsInTheTemplateEndsReplies() {
        std::map<std::string, Json> files = {{"tokenizer.json", tinyTokenizer()},
                                             {"tokenizer_config.json", {{"eos_token", "</s>"}}}};
        QCOMPARE(converted(checkpoint(files)).config.eosIds, (Ids{61}));
        files["chat_template.jinja"] = kPlain;  // does not end turns
        QCOMPARE(converted(checkpoint(files)).config.eosIds, (Ids{61}));
        files["chat_template.jinja"] = kTurns;
        const ModelConfig c = converted(checkpoint(files)).config;
        QCOMPARE(c.eosIds, (Ids{61, 62}));
        QCOMPARE(c.eosSources[1], "chat template");
        // A reply of several messages continues after the end of a message.
        files["tokenizer.json"] = tinyTokenizer({{"<|end|>", 65}, {"<|channel|>", 66}});
        files["chat_template.jinja"] = "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}";
        QCOMPARE(converted(checkpoint(files)).config.eosIds, (Ids{61}));
    }

    void ggufKeysAndTemplateAreUnited() {
        GgufHeader header;
        std::vector<std::string> tokens(70);
        std::vector<double> types(70, 1);
        for (int i = 0; i < 70; ++i)
            tokens[size_t(i)] = std::string(1, char('a' + i % 26)) + std::to_string(i);
        const std::pair<int, const char*> special[] = {
            {60, "<s>"}, {61, "</s>"}, {62, "<|im_end|>"}, {63, "<|eot|>"}, {64, "<|start|>"}};
        for (const auto& [id, text] : special) {
            tokens[size_t(id)] = text;
            types[size_t(id)] = 3;
        }
        header.metadata = {{"tokenizer.ggml.model", std::string("gpt2")},
                           {"tokenizer.ggml.pre", std::string("default")},
                           {"tokenizer.ggml.tokens", tokens},
                           {"tokenizer.ggml.token_type", types},
                           {"tokenizer.ggml.merges", std::vector<std::string>()},
                           {"tokenizer.ggml.bos_token_id", int64_t(60)},
                           {"tokenizer.ggml.eos_token_id", int64_t(61)},
                           {"tokenizer.ggml.eot_token_id", int64_t(63)},
                           {"tokenizer.ggml.eom_token_id", int64_t(700)},
                           {"tokenizer.chat_template", std::string(kTurns)}};
        OpenedSource out;
        out.config.vocabSize = 70;
        const Status status = resolveTexts(ggufTexts(header), {}, out);
        QVERIFY2(status.ok() && out.tokenizerProblem.ok(), out.tokenizerProblem.text().c_str());
        QCOMPARE(out.config.eosIds, (Ids{61, 63, 62}));
        QCOMPARE(out.config.eosSources[0], "tokenizer.ggml.eos_token_id");
        QCOMPARE(out.config.bosId, 60);
        QVERIFY(contains(out.notes, "700"));  // has no row in the embedding
    }

    void tokensBeyondTheEmbeddingAreTold() {
        const fs::path source =
            checkpoint({{"tokenizer.json", tinyTokenizer({{"<|x|>", 70}, {"<|y|>", 75}})},
                        {"tokenizer_config.json", {{"eos_token", "<|x|>"}}}});
        std::vector<std::string> notes;
        QCOMPARE(converted(source, {}, &notes).config.eosIds, Ids());
        QVERIFY(contains(notes, "2 tokens beyond the 70 rows"));
        QVERIFY(contains(notes, "tokenizer_config.json names a token that has no row"));
    }

    void valuesThatTurnSamplingOffDoNotStopAConversion() {
        const auto with = [&](const Json& generation) {
            return converted(checkpoint({{"generation_config.json", generation}})).config;
        };
        ModelConfig c = with({{"top_k", -1},
                              {"top_p", nullptr},
                              {"temperature", nullptr},
                              {"eos_token_id", nullptr}});
        QCOMPARE(c.family, "olmoe");
        QCOMPARE(c.topKSampling, 0);
        QCOMPARE(c.topP, -1.0f);
        QCOMPARE(c.temperature, -1.0f);
        c = with({{"top_k", nullptr}, {"top_p", -1}, {"temperature", "0.6"}});
        QCOMPARE(c.family, "olmoe");
        QCOMPARE(c.topKSampling, -1);
        QCOMPARE(c.topP, 1.0f);
        QCOMPARE(c.temperature, -1.0f);
        c = with({{"top_k", 20}, {"top_p", 0.8}, {"temperature", 0.7}});
        QCOMPARE(c.topKSampling, 20);
        QCOMPARE(c.topP, 0.8f);
        QCOMPARE(c.temperature, 0.7f);
    }

    void templatesAreTakenFromWhereverTheyAre_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("choice");
        QTest::addColumn<QString>("taken");
        QTest::addColumn<QString>("note");
        const auto row = [](const char* name, const char* file, const QByteArray& content,
                            const char* taken, const char* note = "", const char* choice = "") {
            QTest::newRow(name) << file << content << choice << taken << note;
        };
        const QByteArray three =
            R"([{"name": "rag", "template": "R"}, {"name": "default", "template": "D"},
                                     {"name": "tool_use", "template": "T"}])";
        const QByteArray named =
            R"([{"name": "tool_use", "template": "T"}, {"name": "zephyr", "template": "Z"}])";
        row("chat_template.json", "chat_template.json", R"({"chat_template": "J"})", "J");
        row("chat_template.jinja", "chat_template.jinja", "F", "F");
        row("list", "tokenizer_config.json", "{\"chat_template\":" + three + "}", "D",
            "\"rag\", \"tool_use\"");
        row("list without default", "tokenizer_config.json", "{\"chat_template\":" + named + "}",
            "Z", "\"tool_use\"");
        row("object", "tokenizer_config.json", R"({"chat_template": {"tool_use": "T"}})", "T",
            "the only one");
        row("chosen", "tokenizer_config.json", "{\"chat_template\":" + three + "}", "T",
            "as requested", "tool_use");
        row("list in chat_template.json", "chat_template.json", "{\"chat_template\":" + named + "}",
            "Z", "zephyr");
        row("folder", "additional_chat_templates/rag.jinja", "A", "A",
            "additional_chat_templates/rag.jinja");
    }
    void templatesAreTakenFromWhereverTheyAre() {
        QFETCH(QString, file);
        QFETCH(QByteArray, content);
        QFETCH(QString, choice);
        QFETCH(QString, taken);
        QFETCH(QString, note);
        const fs::path source = checkpoint({{"tokenizer.json", tinyTokenizer()},
                                            {file.toStdString(), Json(content.toStdString())}});
        std::vector<std::string> notes;
        const ContainerInfo info = converted(source, choice.toStdString(), &notes);
        QVERIFY(info.hasTemplate);
        QCOMPARE(readFile(info.dir / "chat_template.jinja"), taken.toStdString());
        QVERIFY(note.isEmpty() ? notes.empty() : contains(notes, note.toStdString()));
    }

    void theOtherTemplatesGoAlong() {
        const std::string named =
            R"([{"name": "default", "template": "D"}, {"name": "rag", "template": "R"},
                                      {"name": "../../out", "template": "O"}])";
        const fs::path source =
            checkpoint({{"tokenizer.json", tinyTokenizer()},
                        {"tokenizer_config.json", Json("{\"chat_template\":" + named + "}")}});
        std::vector<std::string> notes;
        const fs::path dir = converted(source, "", &notes).dir;
        const auto kept = hfTemplates(dir, {});
        QVERIFY(kept.ok());
        QCOMPARE(kept->size(), size_t(2));
        QCOMPARE(readFile(dir / "additional_chat_templates/rag.jinja"), std::string("R"));
        QVERIFY(contains(notes, "not a valid file name"));
        const fs::path other = converted(source, "rag").dir;
        QCOMPARE(readFile(other / "chat_template.jinja"), std::string("R"));
        QCOMPARE(readFile(other / "additional_chat_templates/checkpoint_default.jinja"),
                 std::string("D"));
    }

    void aChosenTemplateIsANameOrAFile() {
        const fs::path source =
            checkpoint({{"tokenizer.json", tinyTokenizer()}, {"chat_template.jinja", "F"}});
        const fs::path own = fresh();
        writeFile(own, "mine");
        const ContainerInfo info = converted(source, own.string());
        QCOMPARE(readFile(info.dir / "chat_template.jinja"), std::string("mine"));
        ConvertOptions options{.source = source, .target = fresh()};
        options.chatTemplate = "nothing";
        const Status status = convertModel(options, {}, nullptr).status();
        QVERIFY(status.code() == Code::InvalidArgument);
        QVERIFY(status.text().find("\"default\"") != std::string::npos);
        QVERIFY(!fs::exists(options.target));
    }

    void ggufTemplatesHaveNames() {
        GgufHeader header;
        header.metadata = {
            {"tokenizer.chat_template.tool_use", std::string("T")},
            {"tokenizer.chat_template.zephyr", std::string("Z")},
            {"tokenizer.chat_templates", std::vector<std::string>{"tool_use", "zephyr"}}};
        std::vector<std::string> notes;
        QCOMPARE(**chooseTemplate(ggufTemplates(header), "", notes), std::string("Z"));
        QVERIFY(contains(notes, "tool_use"));
        QCOMPARE(**chooseTemplate(ggufTemplates(header), "tool_use", notes), std::string("T"));
        header.metadata["tokenizer.chat_template"] = std::string("D");
        QCOMPARE(**chooseTemplate(ggufTemplates(header), "", notes), std::string("D"));
    }

    void whatCannotBeChattedWithIsSaidBeforeAConversion() {
        const Result<SourceInfo> bare = inspectSource(checkpoint({}));
        QVERIFY2(bare.ok(), bare.status().text().c_str());
        QVERIFY(!bare->tokenizerProblem.empty() && !bare->templateProblem.empty());
        QVERIFY(contains(bare->notes, "no tokenizer.json") &&
                contains(bare->notes, "no chat template"));
        const Result<SourceInfo> broken = inspectSource(
            checkpoint({{"tokenizer.json", "{\"model\": {"}, {"chat_template.jinja", "{% if"}}));
        QVERIFY2(broken.ok(), broken.status().text().c_str());
        QVERIFY(contains({broken->tokenizerProblem}, "tokenizer.json"));
        QVERIFY(contains({broken->templateProblem}, "chat_template.jinja:1:"));
        const Result<SourceInfo> other = inspectSource(checkpoint({{"tokenizer.model", "x"}}));
        QVERIFY(contains(other->notes, "tokenizer.model"));
        const Result<SourceInfo> good = inspectSource(
            checkpoint({{"tokenizer.json", tinyTokenizer()}, {"chat_template.jinja", kTurns}}));
        QVERIFY(good->tokenizerProblem.empty() && good->templateProblem.empty() &&
                good->notes.empty());
    }

    // A flat folder does not contain the other files.
    void aFlatFolderKeepsTheTokens() {
        const fs::path source =
            checkpoint({{"tokenizer.json", tinyTokenizer()},
                        {"tokenizer_config.json", {{"eos_token", "</s>"}, {"bos_token", "<s>"}}}});
        ConvertOptions options{.source = source,
                               .target = fresh(),
                               .dtype = DType::F16,
                               .layout = ConvertLayout::Flat};
        const Result<ContainerInfo> flat = convertModel(options, {}, nullptr);
        QVERIFY2(flat.ok(), flat.status().text().c_str());
        const ModelConfig c = converted(options.target).config;
        QCOMPARE(c.eosIds, (Ids{61}));
        QCOMPARE(c.bosId, 60);
    }
};

QTEST_GUILESS_MAIN(TestSourceTexts)
#include "test_source_texts.moc"
