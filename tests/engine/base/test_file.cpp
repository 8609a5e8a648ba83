// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QTest>

#include <sys/resource.h>
#include <csignal>

#include "engine/base/file.h"
#include "engine/base/machine.h"

using namespace colibri;
namespace fs = std::filesystem;

class TestFile : public QObject {
    Q_OBJECT
private slots:
    void atomicWriteReplacesWhole() {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "config.json";
        QVERIFY(writeFileAtomically(path, "one").ok());
        QVERIFY(writeFileAtomically(path, "two, longer").ok());
        QCOMPARE(*readTextFile(path), "two, longer");
        QCOMPARE(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
    }
    void aFullDiskLeavesTheOldContentAndNoLitter() {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "chat.json";
        QVERIFY(writeFileAtomically(path, "old").ok());
        // Writes past the file size limit fail like those to a full disk.
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit tight{4096, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        const Status status = writeFileAtomically(path, std::string(10000, 'x'));
        setrlimit(RLIMIT_FSIZE, &before);
        QCOMPARE(status.code(), Code::NoSpace);
        QVERIFY(status.text().find("chat.json") != std::string::npos);
        QCOMPARE(*readTextFile(path), "old");
        QCOMPARE(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
    }
    void readingPastTheEndNamesFileAndByte() {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "layer.bin";
        QVERIFY(writeFileAtomically(path, "12345").ok());
        auto file = File::open(path, File::Mode::Read);
        QVERIFY(file.ok());
        std::byte buffer[8];
        const Status status = file->readAt(2, buffer);
        QCOMPARE(status.code(), Code::BadInput);
        QVERIFY(status.message().find("layer.bin ends at byte 5") != std::string::npos);
    }
    void missingFilesAndFoldersAreNamed() {
        const auto missing = File::open("/no/such/model.json", File::Mode::Read);
        QCOMPARE(missing.status().code(), Code::BadInput);
        QVERIFY(missing.status().message().find("/no/such/model.json") != std::string::npos);
        QTemporaryDir dir;
        QCOMPARE(readTextFile(dir.path().toStdString()).status().code(), Code::BadInput);
    }
    void textFilesAreBounded() {
        QTemporaryDir dir;
        const fs::path path = fs::path(dir.path().toStdString()) / "big.json";
        QVERIFY(writeFileAtomically(path, std::string(100, ' ')).ok());
        QCOMPARE(readTextFile(path, 99).status().code(), Code::BadInput);
    }
    void machineFactsAreSane() {
        QVERIFY(physicalCores() >= 1 && physicalCores() <= logicalCpus());
        QVERIFY(numaNodes() >= 1);
        QVERIFY(memoryTotal() > 0 && memoryFreeNow() > 0 && memoryFreeNow() <= memoryTotal());
        QVERIFY(processRss() > 0 && processRss() <= processPeakRss() + (1 << 20));
    }
};

QTEST_GUILESS_MAIN(TestFile)
#include "test_file.moc"
