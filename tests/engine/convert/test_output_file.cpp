// SPDX-License-Identifier: GPL-3.0-or-later
// Output files of the converters: written in blocks, past the page cache, and continued after
// interruptions.
#include <sys/resource.h>

#include <QtTest>
#include <csignal>
#include <fstream>
#include <random>

#include "engine/convert/pipeline/output.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> randomBytes(size_t n) {
    std::mt19937_64 random(7);
    std::vector<std::byte> out(n);
    for (std::byte& b : out) b = std::byte(random());
    return out;
}

std::vector<std::byte> contentOf(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<std::byte> out(fs::file_size(path));
    in.read(reinterpret_cast<char*>(out.data()), std::streamsize(out.size()));
    return out;
}

}  // namespace

class TestOutputFile : public QObject {
    Q_OBJECT

private slots:
    void whatIsAppendedIsWhatLiesThere();
    void goesOnFromWhereItWasKept_data();
    void goesOnFromWhereItWasKept();
    void anErrorIsReportedAndNamesTheFile();

private:
    QTemporaryDir m_folder;
    const fs::path m_path = fs::path(m_folder.path().toStdString()) / "out.bin";
    const std::vector<std::byte> m_data = randomBytes((11 << 20) + 12345);  // several blocks
};

// Appends pieces of many lengths with flushes between them, so the last page is written repeatedly.
void TestOutputFile::whatIsAppendedIsWhatLiesThere() {
    Result<OutputFile> out = OutputFile::open(m_path, 0, nullptr);
    QVERIFY(out.ok());
    const size_t lengths[] = {1, 4095, 3, 4096, 100'000, 5 << 20, 17};
    const std::span<const std::byte> data(m_data);
    for (size_t at = 0, i = 0; at < data.size(); ++i) {
        const size_t n = std::min(lengths[i % std::size(lengths)], data.size() - at);
        QVERIFY(out->append(data.subspan(at, n)).ok());
        at += n;
        if (i % 3 != 0) continue;
        QVERIFY(out->flush().ok());
        QCOMPARE(fs::file_size(m_path), at);
    }
    QVERIFY(out->sync().ok());
    QCOMPARE(out->position(), int64_t(m_data.size()));
    QVERIFY(contentOf(m_path) == m_data);
}

void TestOutputFile::goesOnFromWhereItWasKept_data() {
    QTest::addColumn<int>("keep");
    for (const int keep : {0, 1, 4096, 4097, (4 << 20) - 1, 4 << 20, (9 << 20) + 99}) {
        QTest::addRow("%d", keep) << keep;
    }
}

void TestOutputFile::goesOnFromWhereItWasKept() {
    QFETCH(int, keep);
    {
        Result<OutputFile> out = OutputFile::open(m_path, 0, nullptr);
        QVERIFY(out.ok());
        QVERIFY(out->append(std::span(m_data).first(size_t(keep))).ok());
        QVERIFY(out->append(randomBytes(5000)).ok());  // not kept
        QVERIFY(out->sync().ok());
    }
    Result<OutputFile> out = OutputFile::open(m_path, keep, nullptr);
    QVERIFY(out.ok());
    QVERIFY(out->append(std::span(m_data).subspan(size_t(keep))).ok());
    QVERIFY(out->sync().ok());
    QVERIFY(contentOf(m_path) == m_data);
    QVERIFY(!OutputFile::open(m_path, int64_t(m_data.size()) + 1, nullptr).ok());
}

// The write that exceeds the limit runs in the background.
void TestOutputFile::anErrorIsReportedAndNamesTheFile() {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit limited = {6 << 20, before.rlim_max};
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &limited), 0);
    Result<OutputFile> out = OutputFile::open(m_path, 0, nullptr);
    Status status = out.ok() ? out->append(m_data) : out.status();
    if (status.ok()) status = out->flush();
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &before), 0);
    QVERIFY(!status.ok());
    QVERIFY2(status.message().find("out.bin") != std::string::npos, status.text().c_str());
}

QTEST_GUILESS_MAIN(TestOutputFile)
#include "test_output_file.moc"
