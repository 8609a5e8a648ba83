// SPDX-License-Identifier: GPL-3.0-or-later
// Reads of the converters give the same bytes whether all, some or none of the pages are in the
// page cache, also from several threads.
#include <fcntl.h>
#include <unistd.h>

#include <QtTest>
#include <fstream>
#include <random>
#include <thread>

#include "engine/base/in_order.h"
#include "engine/convert/source/input.h"

using namespace colibri;
namespace fs = std::filesystem;

class TestInputFile : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void bytesAreThoseOfTheFile_data();
    void bytesAreThoseOfTheFile();
    void theEndIsAnErrorThatNamesTheByte();
    void thingsAreTakenInOrder();
    void theFirstErrorInOrderEndsIt();
    void whatIsThrownArrives();

private:
    // Evicts the file from the page cache, except for [from, to).
    void cacheOnly(int64_t from, int64_t to) const {
        const int fd = ::open(m_path.c_str(), O_RDONLY);
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        std::vector<char> some(size_t(to - from));
        QCOMPARE(::pread(fd, some.data(), some.size(), from), ssize_t(some.size()));
        ::close(fd);
    }

    QTemporaryDir m_folder;
    const fs::path m_path = fs::path(m_folder.path().toStdString()) / "in.bin";
    std::vector<std::byte> m_data = std::vector<std::byte>((5 << 20) + 4321);
};

void TestInputFile::initTestCase() {
    std::mt19937_64 random(3);
    for (std::byte& b : m_data) b = std::byte(random());
    std::ofstream(m_path, std::ios::binary)
        .write(reinterpret_cast<const char*>(m_data.data()), std::streamsize(m_data.size()));
    const int fd = ::open(m_path.c_str(), O_RDONLY);
    QCOMPARE(::fsync(fd), 0);  // dirty pages cannot be evicted
    ::close(fd);
}

void TestInputFile::bytesAreThoseOfTheFile_data() {
    QTest::addColumn<qint64>("from");
    QTest::addColumn<qint64>("to");
    QTest::newRow("nothing cached") << qint64(0) << qint64(0);
    QTest::newRow("the beginning cached") << qint64(0) << qint64(1 << 20);
    QTest::newRow("the middle cached") << qint64(2'000'000) << qint64(3'000'000);
    QTest::newRow("all cached") << qint64(0) << qint64(m_data.size());
}

void TestInputFile::bytesAreThoseOfTheFile() {
    QFETCH(qint64, from);
    QFETCH(qint64, to);
    Result<InputFile> file = InputFile::open(m_path);
    QVERIFY(file.ok());
    struct Range {
        int64_t offset, bytes;
    };
    std::vector<Range> ranges;
    const auto size = int64_t(m_data.size());
    for (const int64_t offset : {0, 1, 4095, 4096, 777'777, 2 << 20}) {
        for (const int64_t bytes : {0, 1, 5000, 128 << 10, (128 << 10) + 1, 1 << 20, 3'000'003}) {
            if (offset + bytes <= size) ranges.push_back({offset, bytes});
        }
        ranges.push_back({offset, size - offset});
    }
    cacheOnly(from, to);
    std::atomic<int> wrong{0};
    const auto readAll = [&] {
        for (const Range& r : ranges) {
            std::vector<std::byte> out(size_t(r.bytes), std::byte(0x5a));
            const bool good = file->readAt(r.offset, out).ok() &&
                              std::equal(out.begin(), out.end(), m_data.begin() + r.offset);
            wrong += !good;
        }
    };
    { std::jthread one(readAll), another(readAll); }
    QCOMPARE(wrong.load(), 0);
}

void TestInputFile::theEndIsAnErrorThatNamesTheByte() {
    Result<InputFile> file = InputFile::open(m_path);
    QVERIFY(file.ok());
    cacheOnly(0, 0);
    std::vector<std::byte> out(1 << 20);
    const Status status = file->readAt(int64_t(m_data.size()) - 500'000, out);
    QCOMPARE(int(status.code()), int(Code::BadInput));
    QVERIFY2(status.message().find("5,247,201") != std::string::npos, status.message().c_str());
}

void TestInputFile::thingsAreTakenInOrder() {
    for (const int64_t count : {0, 1, 7, 1000}) {
        std::vector<int64_t> taken;
        const Status status = makeInOrder<std::vector<int64_t>>(
            count, 4,
            [](int64_t i, std::vector<int64_t>& thing) {
                thing.assign(3, i);
                return Status();
            },
            [&](int64_t i, std::vector<int64_t>& thing) {
                if (thing == std::vector<int64_t>(3, i)) taken.push_back(i);
                return Status();
            });
        QVERIFY(status.ok());
        QCOMPARE(int64_t(taken.size()), count);
        QVERIFY(std::is_sorted(taken.begin(), taken.end()));
    }
}

void TestInputFile::theFirstErrorInOrderEndsIt() {
    for (const bool taking : {false, true}) {
        int64_t last = -1;
        const auto failAt = [](int64_t i) {
            return i >= 40 ? Status(Code::IoError, std::to_string(i)) : Status();
        };
        const Status status = makeInOrder<int>(
            1000, 3, [&](int64_t i, int&) { return taking ? Status() : failAt(i); },
            [&](int64_t i, int&) {
                last = i;
                return taking ? failAt(i) : Status();
            });
        QCOMPARE(status.message(), std::string("40"));
        QCOMPARE(last, int64_t(taking ? 40 : 39));
    }
}

void TestInputFile::whatIsThrownArrives() {
    const auto make = [](int64_t i, int&) {
        if (i == 5) throw std::bad_alloc();
        return Status();
    };
    QVERIFY_THROWS_EXCEPTION(
        std::bad_alloc, (void)makeInOrder<int>(9, 2, make, [](int64_t, int&) { return Status(); }));
}

QTEST_GUILESS_MAIN(TestInputFile)
#include "test_input_file.moc"
