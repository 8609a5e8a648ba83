// SPDX-License-Identifier: GPL-3.0-or-later
// router_table.bin: both formats, lookups of every width with every instruction set, and invalid
// files.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <fstream>
#include <random>

#include "engine/model/router_table.h"

using namespace colibri;

namespace fs = std::filesystem;

class TestRouterTable : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;

    static ModelConfig config(int64_t k, int64_t experts = 64) {
        ModelConfig c;
        c.vocabSize = 37;
        c.numLayers = 4;
        c.topK = k;
        c.numExperts = experts;
        c.moeLayer = {false, true, true, true};
        return c;
    }
    static std::vector<uint16_t> entries(const ModelConfig& c, int64_t layers) {
        std::mt19937 random(7);
        std::vector<uint16_t> all, pool;
        for (int64_t e = 0; e < c.numExperts; ++e) pool.push_back(uint16_t(e));
        for (int64_t i = 0; i < layers * c.vocabSize; ++i) {
            std::shuffle(pool.begin(), pool.end(), random);
            all.insert(all.end(), pool.begin(), pool.begin() + c.topK);
        }
        return all;
    }
    fs::path path(const char* name) const { return m_dir.filePath(name).toStdString(); }
    static std::string read(const fs::path& p) {
        std::ifstream file(p, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void write(const fs::path& p, const std::string& content) {
        std::ofstream(p, std::ios::binary) << content;
    }
    fs::path written(const ModelConfig& c, const std::vector<uint16_t>& all) const {
        const fs::path p = path("table.bin");
        Result<RouterTableWriter> writer = RouterTableWriter::create(p, c);
        if (!writer.ok()) qFatal("%s", writer.status().text().c_str());
        // In pieces of different sizes.
        for (size_t at = 0; at < all.size(); at += 50) {
            const auto n = std::min<size_t>(50, all.size() - at);
            if (!writer->append({all.data() + at, n}).ok()) qFatal("append");
        }
        if (!writer->finish().ok()) qFatal("finish");
        return p;
    }

private slots:
    void lookupsInEveryWidthAndSet() {
        for (const int64_t k : {1, 2, 3, 4, 5, 6, 8, 10, 16, 17}) {
            const ModelConfig c = config(k);
            const std::vector<uint16_t> all = entries(c, 3);
            const auto table = RouterTable::load(written(c, all), c);
            QVERIFY2(table.ok(), table.status().text().c_str());
            QCOMPARE((*table)->layers(), int64_t(3));
            std::mt19937 random(3);
            for (const int64_t n : {0, 1, 3, 4, 7, 8, 9, 31, 40}) {
                std::vector<int32_t> tokens;
                for (int64_t i = 0; i < n; ++i) tokens.push_back(int32_t(random() % 37));
                if (n > 0) tokens.back() = 36;  // the last token of the table
                for (const Isa isa : availableIsas()) {
                    for (int64_t layer = 0; layer < 3; ++layer) {
                        std::vector<int32_t> out(size_t(n * k) + 1, -7);
                        (*table)->lookup(kernelsFor(isa), layer, tokens, out.data());
                        for (int64_t i = 0; i < n * k; ++i) {
                            const int64_t entry = layer * 37 + tokens[size_t(i / k)];
                            QCOMPARE(out[size_t(i)], int32_t(all[size_t(entry * k + i % k)]));
                        }
                        QCOMPARE(out.back(), -7);
                    }
                }
            }
        }
    }

    void theHeaderlessFormServesEveryLayer() {
        const ModelConfig c = config(2);
        const std::vector<uint16_t> all = entries(c, 1);
        write(path("seed.bin"), {reinterpret_cast<const char*>(all.data()), all.size() * 2});
        const auto table = RouterTable::load(path("seed.bin"), c);
        QVERIFY2(table.ok(), table.status().text().c_str());
        QCOMPARE((*table)->layers(), int64_t(1));
        const std::vector<int32_t> tokens = {5};
        for (int64_t layer = 0; layer < 3; ++layer) {
            int32_t out[2];
            (*table)->lookup(bestKernels(), layer, tokens, out);
            QCOMPARE(out[0], int32_t(all[10]));
            QCOMPARE(out[1], int32_t(all[11]));
        }
    }

    void everyTruncationIsRefused() {
        const ModelConfig c = config(1);
        const std::string whole = read(written(c, entries(c, 3)));
        QCOMPARE(whole.size(), size_t(64 + 3 * 37 * 2));
        for (size_t n = 0; n < whole.size(); ++n) {
            write(path("cut.bin"), whole.substr(0, n));
            const Status status = RouterTable::load(path("cut.bin"), c).status();
            QVERIFY(status.code() == Code::BadInput);
            QVERIFY(status.message().find("cut.bin") != std::string::npos);
        }
        write(path("cut.bin"), whole + "x");
        QCOMPARE(RouterTable::load(path("cut.bin"), c).status().code(), Code::BadInput);
    }

    void everyFlippedBitIsNoticed() {
        const ModelConfig c = config(2);
        const std::string whole = read(written(c, entries(c, 3)));
        for (size_t at = 0; at < whole.size(); ++at) {
            if (at >= 40 && at < 64) continue;  // reserved
            std::string changed = whole;
            changed[at] = char(changed[at] ^ 0x10);
            write(path("flipped.bin"), changed);
            QVERIFY(!RouterTable::load(path("flipped.bin"), c).ok());
        }
    }

    void aTableOfAnotherModelNamesTheField() {
        const ModelConfig c = config(2);
        const fs::path p = written(c, entries(c, 3));
        const auto refused = [&](const ModelConfig& other, const char* named) {
            const Status status = RouterTable::load(p, other).status();
            return status.code() == Code::BadInput &&
                   status.message().find(named) != std::string::npos;
        };
        ModelConfig other = c;
        other.vocabSize = 38;
        QVERIFY(refused(other, "vocab is 37, this model needs 38"));
        other = c;
        other.moeLayer[0] = true;
        QVERIFY(refused(other, "layers is 3, this model needs 4"));
        other = c;
        other.topK = 4;
        QVERIFY(refused(other, "k is 2, this model needs 4"));
        other = c;
        other.numExperts = 32;
        QVERIFY(refused(other, "experts is 64, this model needs 32"));
        QCOMPARE(RouterTable::load("/nowhere/table.bin", c).status().code(), Code::BadInput);
    }

    void entriesThatCannotBeAreNamed() {
        const ModelConfig c = config(2, 8);
        std::vector<uint16_t> all = entries(c, 1);
        const auto status = [&] {
            write(path("seed.bin"), {reinterpret_cast<const char*>(all.data()), all.size() * 2});
            return RouterTable::load(path("seed.bin"), c).status().message();
        };
        all[2 * 9 + 1] = 8;
        QVERIFY(status().find("token 9 in MoE layer 0 names expert 8 of 8") != std::string::npos);
        all[2 * 9] = all[2 * 9 + 1] = 3;
        QVERIFY(status().find("names expert 3 twice") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestRouterTable)
#include "test_router_table.moc"
