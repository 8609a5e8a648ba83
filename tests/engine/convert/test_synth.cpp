// SPDX-License-Identifier: GPL-3.0-or-later
// Models of random weights are complete, reproducible and usable, and a failure leaves no files.
#include <QtTest>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/convert/synth/synth.h"
#include "engine/model/layout.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "kernels/packed.h"

using namespace colibri;
namespace fs = std::filesystem;

class TestSynth : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;

    fs::path at(const char* name) const { return fs::path(m_dir.path().toStdString()) / name; }
    static std::string bytesOf(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static SynthOptions tiny(const fs::path& target, DType type = DType::Q8_0) {
        SynthOptions o;
        o.shape = "tiny";
        o.target = target;
        o.dtype = type;
        return o;
    }

private slots:
    void everyType() {
        for (const DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
            const fs::path dir = at(std::string(dtypeName(type)).c_str());
            const auto info = synthesiseModel(tiny(dir, type), {}, nullptr);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QCOMPARE(info->expertType, type);
            QVERIFY(info->source.find("synthetic") != std::string::npos);
            QVERIFY(verifyContainer(*info, {}, nullptr).ok());
            QVERIFY(!fs::exists(fs::path(dir.string() + ".partial")));
            // Weights have the requested standard deviation and mean 0.
            const TensorInfo* q = info->find("0.q");
            const std::string dense = bytesOf(dir / kDenseFile);
            std::vector<float> row(size_t(q->cols));
            double sum = 0, squares = 0;
            for (int64_t r = 0; r < q->rows; ++r) {
                unpackRow(q->dtype, reinterpret_cast<const std::byte*>(dense.data()) + q->offset,
                          q->cols, r, row.data());
                for (const float v : row) {
                    sum += v;
                    squares += double(v) * v;
                }
            }
            const double n = double(q->rows * q->cols), sd = std::sqrt(squares / n);
            QVERIFY(std::abs(sd * std::sqrt(double(q->cols)) - 0.6) < 0.05);
            QVERIFY(std::abs(sum / n) < 0.1 * sd);
        }
    }

    void sameOptionsSameBytes() {
        SynthOptions o = tiny(at("a"));
        const auto a = synthesiseModel(o, {}, nullptr);
        o.target = at("b");
        const auto b = synthesiseModel(o, {}, nullptr);
        o.target = at("c");
        o.seed = 2;
        const auto c = synthesiseModel(o, {}, nullptr);
        QVERIFY(a.ok() && b.ok() && c.ok());
        QCOMPARE(bytesOf(at("a") / "model.json"), bytesOf(at("b") / "model.json"));
        QVERIFY(a->expertLayers[0].hashes == b->expertLayers[0].hashes);
        QVERIFY(a->expertLayers[0].hashes != c->expertLayers[0].hashes);
        QVERIFY(a->fingerprint != c->fingerprint);
    }

    void skewMakesFavourites() {
        const auto spread = [&](double skew) {
            SynthOptions o = tiny(at(skew > 0 ? "skewed" : "flat"));
            o.skew = skew;
            const auto info = synthesiseModel(o, {}, nullptr);
            const TensorInfo* router = info->find("1.router");
            const std::string dense = bytesOf(o.target / kDenseFile);
            const auto* w = reinterpret_cast<const float*>(dense.data() + router->offset);
            double low = 1e9, high = 0;
            for (int64_t e = 0; e < router->rows; ++e) {
                double norm = 0;
                for (int64_t i = 0; i < router->cols; ++i) {
                    norm += double(w[e * router->cols + i]) * w[e * router->cols + i];
                }
                low = std::min(low, std::sqrt(norm));
                high = std::max(high, std::sqrt(norm));
            }
            return high / low;
        };
        QVERIFY(spread(0) < 2);
        QVERIFY(spread(1) > 4);
    }

    void itsTextsWork() {
        QVERIFY(synthesiseModel(tiny(at("text")), {}, nullptr).ok());
        const auto tokenizer = Tokenizer::load(at("text"));
        QVERIFY2(tokenizer.ok(), tokenizer.status().text().c_str());
        const std::string text = "Grüße, 世界 \n\t\x01!";
        const std::vector<int32_t> ids = (*tokenizer)->encode(text);
        QCOMPARE(ids.size(), text.size());
        QCOMPARE((*tokenizer)->decode(ids), text);
        QCOMPARE((*tokenizer)->vocabSize(), 512);
        QCOMPARE((*tokenizer)->decode({300, 511}), std::string(" w300 w511"));
        const auto chat = ChatTemplate::parse(bytesOf(at("text") / "chat_template.jinja"), "chat");
        QVERIFY(chat.ok());
        const auto prompt = (*chat)->render(nlohmann::ordered_json::parse(
            R"({"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":true})"));
        QCOMPARE(*prompt, std::string("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"));
        QCOMPARE((*tokenizer)->encode(*prompt).front(), 256);
    }

    void everyShapeFits() {
        for (const SynthShape& shape : synthShapes()) {
            SynthOptions o = tiny(at(shape.name), DType::Q4_0);
            o.shape = shape.name;
            DiskHooks none;
            none.freeBytes = [](const fs::path&) { return int64_t(1000); };
            const Status status = synthesiseModel(o, {}, nullptr, none).status();
            QCOMPARE(status.code(), Code::NoSpace);
            QVERIFY(!fs::exists(o.target) && !fs::exists(o.target.string() + ".partial"));
        }
    }

    void fewerLayers() {
        SynthOptions o = tiny(at("cut"));
        o.layers = 2;
        const auto info = synthesiseModel(o, {}, nullptr);
        QVERIFY(info.ok());
        QCOMPARE(info->config.numLayers, int64_t(2));
    }

    void wrongOptions() {
        const auto code = [&](const std::function<void(SynthOptions&)>& change) {
            SynthOptions o = tiny(at("wrong"));
            change(o);
            const Status status = synthesiseModel(o, {}, nullptr).status();
            return std::pair(status.code(), fs::exists(at("wrong")));
        };
        const std::pair refused(Code::InvalidArgument, false);
        QVERIFY(code([](auto& o) { o.shape = "llama"; }) == refused);
        QVERIFY(code([](auto& o) { o.layers = 5; }) == refused);
        QVERIFY(code([](auto& o) { o.skew = -1; }) == refused);
        QVERIFY(code([](auto& o) { o.skew = std::nan(""); }) == refused);
        QVERIFY(code([](auto& o) { o.target = "/nowhere/at/all"; }) == refused);
    }

    void aFailureLeavesNothing() {
        const SynthOptions o = tiny(at("failed"));
        CancelFlag cancel{true};
        QCOMPARE(synthesiseModel(o, {}, &cancel).status().code(), Code::Cancelled);
        QVERIFY(!fs::exists(o.target) && !fs::exists(o.target.string() + ".partial"));
        DiskHooks full;
        full.beforeWrite = [](const fs::path& file, int64_t) {
            return file.filename() == "layer_002.bin" ? ENOSPC : 0;
        };
        QCOMPARE(synthesiseModel(o, {}, nullptr, full).status().code(), Code::NoSpace);
        QVERIFY(!fs::exists(o.target) && !fs::exists(o.target.string() + ".partial"));
        QVERIFY(synthesiseModel(o, {}, nullptr).ok());
        QCOMPARE(synthesiseModel(o, {}, nullptr).status().code(), Code::InvalidArgument);
    }
};

QTEST_GUILESS_MAIN(TestSynth)
#include "test_synth.moc"
