// SPDX-License-Identifier: GPL-3.0-or-later
// Damaged session files: what can be read is kept, and the damaged file stays as it is.
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>
#include <random>

#include "profiler/session/session_reader.h"
#include "profiler/session/session_salvage.h"
#include "tests/profiler/session_maker.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kPage = 4096;

std::string contentOf(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

class TestSessionSalvage : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    const MadeSession m_made{.requests = 20, .tokens = 100, .layers = 4};
    int m_number = 0;

    fs::path file(const std::string& name) const {
        return fs::path(m_dir.path().toStdString()) / name;
    }
    // A copy of the sound session.
    fs::path copy() {
        fs::path path = file("damaged" + std::to_string(++m_number));
        fs::copy_file(file("sound"), path);
        return path;
    }
    static void overwrite(const fs::path& path, int64_t offset, int64_t bytes) {
        std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(offset);
        const std::string noise(size_t(bytes), '\xa5');
        out.write(noise.data(), std::streamsize(noise.size()));
    }
    static const SalvagedTable& table(const std::vector<SalvagedTable>& all, const char* name) {
        for (const SalvagedTable& t : all)
            if (t.name == name) return t;
        throw std::runtime_error(name);
    }

private slots:
    void initTestCase() { m_made.write(file("sound")); }

    void soundFilesHaveNoDamageAndAreCopiedWhole() {
        const auto damage = checkSession(file("sound"));
        QVERIFY(damage.ok() && damage->empty());
        const auto tables = salvageSession(file("sound"), file("copy"), {}, nullptr);
        QVERIFY2(tables.ok(), tables.status().text().c_str());
        for (const SalvagedTable& t : *tables) QVERIFY2(t.lost == 0, t.name.c_str());
        QCOMPARE(table(*tables, "tokens").kept, int64_t(m_made.allTokens()));
        QCOMPARE(table(*tables, "layer_steps").kept, int64_t(m_made.steps()));
        const auto summary = readSessionSummary(file("copy"));
        QVERIFY(summary.ok());
        QCOMPARE(summary->meta.at("ended"), std::string("recovered"));
        QCOMPARE(summary->meta.at("salvaged"), std::string("no row was lost"));
    }

    // Pages are destroyed at random places: no crash, most rows are kept, all rows are accounted
    // for, and the result is a sound file.
    void rowsAroundDamagedPagesAreKept() {
        const auto pages = int64_t(fs::file_size(file("sound"))) / kPage;
        QVERIFY(pages > 100);
        std::mt19937_64 random(7);
        for (int run = 0; run < 12; ++run) {
            const fs::path damaged = copy(), out = file("out" + std::to_string(run));
            // The tables have their first pages at the beginning of the file.
            const int64_t first = 40;
            for (int i = 0; i < 3; ++i)
                overwrite(damaged, (first + int64_t(random() % uint64_t(pages - first))) * kPage,
                          kPage);
            const std::string before = contentOf(damaged);
            const auto damage = checkSession(damaged);
            QVERIFY(damage.ok());
            const auto tables = salvageSession(damaged, out, {}, nullptr);
            QVERIFY2(tables.ok(), tables.status().text().c_str());
            QVERIFY(contentOf(damaged) == before);
            int64_t kept = 0, lost = 0;
            for (const SalvagedTable& t : *tables) {
                kept += t.kept;
                lost += t.lost;
            }
            QVERIFY2(kept > 9 * lost, QByteArray::number(lost));
            QVERIFY(!damage->empty() || lost == 0);
            const SalvagedTable& steps = table(*tables, "layer_steps");
            QVERIFY(steps.kept <= m_made.steps());
            const auto again = checkSession(out);
            QVERIFY(again.ok() && again->empty());
            QVERIFY(readSessionSummary(out).ok());
        }
    }

    void truncatedFilesKeepTheirBeginning() {
        const fs::path cut = copy();
        fs::resize_file(cut, fs::file_size(cut) / 2);
        const auto damage = checkSession(cut);
        QVERIFY(damage.ok() && !damage->empty());
        const auto tables = salvageSession(cut, file("cut-out"), {}, nullptr);
        QVERIFY2(tables.ok(), tables.status().text().c_str());
        QVERIFY(table(*tables, "tokens").kept > 0);
        QVERIFY(table(*tables, "layer_steps").kept > 0);
        QVERIFY(readSessionSummary(file("cut-out")).ok());
    }

    void hopelessFilesAreNamed() {
        const fs::path first = copy();
        overwrite(first, 0, kPage);
        for (const fs::path& path : {first, file("missing")}) {
            QCOMPARE(checkSession(path).status().code(), Code::BadInput);
            const auto tables = salvageSession(path, file("none"), {}, nullptr);
            QCOMPARE(tables.status().code(), Code::BadInput);
            QVERIFY(tables.status().message().find(path.string()) != std::string::npos);
            QVERIFY(!fs::exists(file("none")));
        }
    }

    void nothingIsOverwrittenOrLeftBehind() {
        QCOMPARE(salvageSession(file("sound"), file("sound"), {}, nullptr).status().code(),
                 Code::InvalidArgument);
        const CancelFlag cancel = true;
        QCOMPARE(salvageSession(file("sound"), file("half"), {}, &cancel).status().code(),
                 Code::Cancelled);
        QVERIFY(!fs::exists(file("half")));
    }
};

QTEST_GUILESS_MAIN(TestSessionSalvage)
#include "test_session_salvage.moc"
