// SPDX-License-Identifier: GPL-3.0-or-later
// A container on disk: opening, verifying, loading the dense part, estimating memory.
#include <QTemporaryDir>
#include <QTest>
#include <cstring>

#include "engine/base/file.h"
#include "engine/convert/converter.h"
#include "engine/convert/inspect.h"
#include "engine/model/container.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

class TestContainer : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    fs::path m_target;
    int m_number = 0;
    TinyOptions m_options;

    void flip(const fs::path& file, size_t at) {
        std::string content = readFile(file);
        content[at] ^= 0x10;
        writeFile(file, content);
    }

private slots:
    void init() {
        const fs::path root = fs::path(m_dir.path().toStdString()) / std::to_string(m_number++);
        writeCheckpoint(root, tinyConfig(m_options), tinyTensors(m_options));
        m_target = root / "out";
        Result<ContainerInfo> info = convertModel({root, m_target, DType::Q8_0, ""}, {}, nullptr);
        QVERIFY2(info.ok(), info.status().text().c_str());
    }

    void opensAndVerifies() {
        Result<ContainerInfo> info = openContainer(m_target);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QCOMPARE(info->config.family, std::string("olmoe"));
        QCOMPARE(info->expertLayers.size(), size_t(2));
        QCOMPARE(info->expertRecordBytes() % kRecordAlign, 0);
        QCOMPARE(int64_t(fs::file_size(m_target / "dense.bin")), info->denseBytes);
        QVERIFY(verifyContainer(*info, {}, nullptr).ok());
        QVERIFY(!info->hasTokenizer && !info->hasTemplate);
        // Computed by hand: embedding and head; attention, norms, router, experts of each layer.
        const TinyOptions& o = m_options;
        const int64_t q = o.heads * o.headDim, kv = o.kvHeads * o.headDim;
        const int64_t expert = 3 * o.hidden * o.expertSize;
        const int64_t layer =
            2 * o.hidden * q + 2 * o.hidden * kv + 2 * o.hidden + q + kv + o.experts * o.hidden;
        const int64_t rest = 2 * o.vocab * o.hidden + o.hidden;
        QCOMPARE(info->parameterCount(), rest + o.layers * (layer + o.experts * expert));
        QCOMPARE(info->activeParameterCount(), rest + o.layers * (layer + o.topK * expert));
    }

    void everyFlippedByteIsFound() {
        Result<ContainerInfo> info = openContainer(m_target);
        QVERIFY(info.ok());
        const TensorInfo& k = *info->find("1.k");
        flip(m_target / "dense.bin", size_t(k.offset + 5));
        Status status = verifyContainer(*info, {}, nullptr);
        QCOMPARE(int(status.code()), int(Code::BadInput));
        QVERIFY(status.message().find("tensor \"1.k\"") != std::string::npos);
        flip(m_target / "dense.bin", size_t(k.offset + 5));
        const ExpertLayer& e = info->expertLayers[1];
        flip(m_target / e.file, size_t(3 * e.recordBytes - 1));  // padding belongs to the record
        status = verifyContainer(*info, {}, nullptr);
        QVERIFY(status.message().find("layer 1, expert 2") != std::string::npos);
        QVERIFY(status.message().find("1.k") == std::string::npos);
    }

    void sizesAndFilesAreChecked() {
        const std::string dense = readFile(m_target / "dense.bin");
        for (const std::string& bad :
             {dense.substr(0, dense.size() - 1), dense + "x", std::string()}) {
            writeFile(m_target / "dense.bin", bad);
            Result<ContainerInfo> info = openContainer(m_target);
            QCOMPARE(int(info.status().code()), int(Code::BadInput));
            QVERIFY(info.status().message().find("dense.bin") != std::string::npos);
        }
        writeFile(m_target / "dense.bin", dense);
        QVERIFY(openContainer(m_target).ok());
        fs::remove(m_target / "experts" / "layer_001.bin");
        Result<ContainerInfo> info = openContainer(m_target);
        QVERIFY(info.status().message().find("layer_001.bin") != std::string::npos);
        fs::remove(m_target / "model.json");
        QVERIFY(openContainer(m_target).status().message().find("model.json") != std::string::npos);
        QCOMPARE(int(openContainer(m_target / "nowhere").status().code()), int(Code::BadInput));
    }

    void denseWeightsAreTheFile() {
        Result<ContainerInfo> info = openContainer(m_target);
        uint64_t last = 0;
        auto dense = DenseWeights::load(
            *info, [&](const Progress& p) { last = p.done; }, nullptr);
        QVERIFY2(dense.ok(), dense.status().text().c_str());
        QCOMPARE(int64_t(last), info->denseBytes);
        const std::string file = readFile(m_target / "dense.bin");
        for (const TensorInfo& t : info->tensors) {
            const std::byte* data = (*dense)->data(t.name);
            QVERIFY(data && reinterpret_cast<uintptr_t>(data) % kTensorAlign == 0);
            QVERIFY(std::memcmp(data, file.data() + t.offset, size_t(t.bytes)) == 0);
        }
        QVERIFY(!(*dense)->data("2.q"));
        QCOMPARE((*dense)->bytes(), info->denseBytes);
        CancelFlag cancel{true};
        QCOMPARE(int(DenseWeights::load(*info, {}, &cancel).status().code()), int(Code::Cancelled));
        QCOMPARE(int(verifyContainer(*info, {}, &cancel).code()), int(Code::Cancelled));
    }

    void aFileThatShrinksWhileLoaded() {
        Result<ContainerInfo> info = openContainer(m_target);
        fs::resize_file(m_target / "dense.bin", 100);
        auto dense = DenseWeights::load(*info, {}, nullptr);
        QVERIFY(!dense.ok());
        QVERIFY(dense.status().message().find("dense.bin") != std::string::npos);
        fs::resize_file(m_target / "experts" / "layer_000.bin", 100);
        QVERIFY(!verifyContainer(*info, {}, nullptr).ok());
    }

    void estimateFollowsItsShape() {
        Result<ContainerInfo> info = openContainer(m_target);
        LoadShape shape;
        shape.cacheSize = 2;
        shape.contextLength = 100;
        const MemoryEstimate m = estimateMemory(*info, shape);
        QCOMPARE(m.expertCache, 2 * 2 * info->expertRecordBytes());
        QVERIFY(m.dense >= info->denseBytes);
        // 100 positions are 4 pages of 32; 2 layers, K and V, 2 heads of 16, 2 bytes.
        QCOMPARE(m.kvCache, 128 * 2 * 2 * 2 * 16 * 2);
        QCOMPARE(m.recording, int64_t(16) << 20);
        QCOMPARE(m.total(), m.dense + m.expertCache + m.kvCache + m.buffers + m.recording);
        shape.kvType = KvType::F32;
        QCOMPARE(estimateMemory(*info, shape).kvCache, 2 * m.kvCache);
        shape.cacheSize = 1000;  // more than exist
        QCOMPARE(estimateMemory(*info, shape).expertCache, 4 * 2 * info->expertRecordBytes());
        shape.prefillChunk *= 2;
        QVERIFY(estimateMemory(*info, shape).buffers > m.buffers);
    }

    void inspectTellsAContainerFromACheckpoint() {
        QVERIFY(sourceKindOf(m_target) == SourceKind::Container);
        QVERIFY(sourceKindOf(m_target.parent_path()) == SourceKind::HuggingFace);
        QVERIFY(!sourceKindOf(m_target / "dense.bin"));
        Result<SourceInfo> seen = inspectSource(m_target.parent_path());
        QVERIFY(seen.ok());
        QCOMPARE(seen->files, 1);
        QCOMPARE(seen->tensors, int64_t(tinyTensors(m_options).size()));
        QCOMPARE(int(seen->dtype), int(DType::F32));
        Result<SourceInfo> container = inspectSource(m_target);
        QVERIFY(container.status().message().find("already a converted model") !=
                std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestContainer)
#include "test_container.moc"
