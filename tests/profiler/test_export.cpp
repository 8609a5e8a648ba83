// SPDX-License-Identifier: GPL-3.0-or-later
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <sys/resource.h>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/base/format.h"
#include "profiler/export/export.h"
#include "profiler/metrics/histogram.h"
#include "profiler/metrics/metric_table.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_thinning.h"
#include "profiler/session/sqlite.h"
#include "tests/profiler/session_maker.h"

using namespace colibri;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

const ExportFormat kAllFormats[] = {ExportFormat::Perfetto, ExportFormat::Chrome,
                                    ExportFormat::Csv,      ExportFormat::Json,
                                    ExportFormat::Html,     ExportFormat::Markdown};

std::string textOf(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

}  // namespace

class TestExport : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    MadeSession m_made;

    fs::path file(const std::string& name) { return fs::path(m_dir.path().toStdString()) / name; }
    ExportOptions options(ExportFormat format, const std::string& output) {
        return {.session = file("a.colibri-session"), .output = file(output), .format = format};
    }
    static ExportOptions of(ExportOptions options, std::vector<std::string> series) {
        options.series = std::move(series);
        return options;
    }
    std::set<std::string> files() {
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator(m_dir.path().toStdString())) {
            names.insert(entry.path().filename().string());
        }
        return names;
    }
    // The status of an export that fails and must leave no file.
    Status failure(const ExportOptions& options, const CancelFlag* cancel = nullptr) {
        const std::set<std::string> before = files();
        const auto done = exportSession(options, {}, cancel);
        if (files() != before) return {Code::Internal, "a file remained"};
        return done.status();
    }

private slots:
    void initTestCase() { m_made.write(file("a.colibri-session")); }

    void csvHasUnitsAndDefinitions() {
        const ExportOptions csv = of(options(ExportFormat::Csv, "a.csv"), {"memory", "itl_p99"});
        const auto done = exportSession(csv, {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        QCOMPARE(done->values, 2 * m_made.samples());
        const QStringList lines =
            QString::fromStdString(textOf(csv.output)).split('\n', Qt::SkipEmptyParts);
        const MetricRow& itl = metricRow(SeriesId::ItlP99);
        QVERIFY(lines[1].startsWith(
            QString("# itl_p99: %1 (%2): %3").arg(itl.label, itl.unit, itl.definition)));
        const qsizetype head = lines.indexOf("time_s,memory,itl_p99");
        QVERIFY(head > 0);
        QCOMPARE(lines.size() - head - 1, m_made.samples());
        double sum = 0;
        for (qsizetype i = head + 1; i < lines.size(); ++i) {
            const QStringList fields = lines[i].split(',');
            QCOMPARE(fields.size(), 3);
            QCOMPARE(fields[1].toDouble(), 1.5);
            sum += fields[2].toDouble();
        }
        QCOMPARE(sum, m_made.requests *
                          (10.0 * m_made.tokens + m_made.tokens * (m_made.tokens - 1) / 2));
        for (qsizetype i = 0; i < head; ++i) QVERIFY(lines[i].startsWith("# "));
    }
    void jsonHasTheSameValues() {
        const auto done = exportSession(options(ExportFormat::Json, "a.json"), {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        const Json json = Json::parse(textOf(file("a.json")), nullptr, false);
        QVERIFY(!json.is_discarded());
        QCOMPARE(json["columns"], (Json{"time_s", "itl_p99", "memory"}));
        QCOMPARE(json["series"][0]["unit"], "ms");
        QCOMPARE(json["series"][1]["definition"], metricRow(SeriesId::MemoryGiB).definition);
        QCOMPARE(json["rows"].size(), size_t(m_made.samples()));
        QCOMPARE(json["rows"][3][1].get<double>(), 13.0);
        QCOMPARE(json["session"]["model"], "tiny <&> | model");
    }
    void unknownValuesAreEmpty() {
        const fs::path path = file("gaps.colibri-session");
        {
            auto writer = SessionWriter::create(path, {});
            QVERIFY(writer.ok());
            Snapshot snapshot;
            snapshot.series[size_t(SeriesId::QueueDepth)].y = {2};
            QVERIFY((*writer)->sample(snapshot, 0.5).ok());
            snapshot.series[size_t(SeriesId::HitRate)].y = {75};
            QVERIFY((*writer)->sample(snapshot, 1).ok());
        }
        ExportOptions gaps =
            of(options(ExportFormat::Csv, "gaps.csv"), {"hit_rate", "queue_depth"});
        gaps.session = path;
        QVERIFY(exportSession(gaps, {}, nullptr).ok());
        QVERIFY(textOf(gaps.output).ends_with("time_s,hit_rate,queue_depth\n0.5,,2\n1,75,2\n"));
        gaps.format = ExportFormat::Json;
        gaps.output = file("gaps.json");
        QVERIFY(exportSession(gaps, {}, nullptr).ok());
        QCOMPARE(Json::parse(textOf(gaps.output))["rows"],
                 (Json{{0.5, nullptr, 2.0}, {1.0, 75.0, 2.0}}));
        // A report of a session without tokens has no figures, not zeros.
        gaps = options(ExportFormat::Markdown, "gaps.md");
        gaps.session = path;
        QVERIFY(exportSession(gaps, {}, nullptr).ok());
        const std::string report = textOf(gaps.output);
        for (const char* figure : {"Decode rate", "ITL P99", "TTFT P50", "Stall", "Hit rate",
                                   "Expert load P99", "Experts read"}) {
            QVERIFY2(report.find(std::string("| ") + figure + " | n/a |") != std::string::npos,
                     figure);
        }
    }
    void theReportIsOneFile() {
        const auto done = exportSession(options(ExportFormat::Html, "a.html"), {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        const QString html = QString::fromStdString(textOf(file("a.html")));
        QVERIFY(html.contains("Session of tiny &lt;&amp;&gt; | model"));
        QVERIFY(html.contains("half the &quot;cache&quot;"));
        QVERIFY(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
        for (const char* outside :
             {"http:", "https:", "src=", "href=", "url(", "@import", "<script"})
            QVERIFY2(!html.contains(outside), outside);
        QCOMPARE(html.count("<svg"), 2);  // the other plots have no values
        QVERIFY(html.count("n/a: no values") > 5);
        QCOMPARE(html.count("class=\"change\""), 2 * 1);
        // All elements are closed.
        static const QRegularExpression tag(
            "<(/?)(div|table|tr|td|th|svg|dl|dd|dt|g|h2|h3|span|p)\\b");
        QMap<QString, int> open;
        for (auto it = tag.globalMatch(html); it.hasNext();) {
            const auto match = it.next();
            open[match.captured(2)] += match.captured(1).isEmpty() ? 1 : -1;
        }
        for (auto it = open.begin(); it != open.end(); ++it)
            QVERIFY2(it.value() == 0, qPrintable(it.key()));
    }
    void figuresComeFromAllValuesTogether() {
        const auto done = exportSession(options(ExportFormat::Markdown, "a.md"), {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        const std::string report = textOf(file("a.md"));
        Histogram gaps;
        double sum = 0;
        for (int i = 1; i < m_made.tokens; ++i) {
            gaps.add(uint64_t(m_made.gapNs(i)), uint64_t(m_made.requests));
            sum += double(m_made.requests) * double(m_made.gapNs(i));
        }
        const auto has = [&](const std::string& line) {
            return report.find(line) != std::string::npos;
        };
        const std::string n = std::to_string(gaps.count());
        QVERIFY(has("| ITL P50 | " + formatMs(gaps.quantile(0.5) / 1e6) + " | n = " + n));
        QVERIFY(has("| ITL P99 | " + formatMs(gaps.quantile(0.99) / 1e6) + " | n = " + n +
                    ", few for a P99 |"));
        QVERIFY(has("| Decode rate | " + formatSig(double(gaps.count()) / sum * 1e9) + " tok/s |"));
        const double lookups = 2.0 * m_made.steps(), hits = lookups - m_made.misses();
        QVERIFY(has("| Hit rate | " + formatPercent(hits / lookups) + " |"));
        const double stall = double(m_made.misses()) * MadeSession::kWaitNs;
        QVERIFY(has("| Stall | " + formatPercent(stall / (8e6 * m_made.allTokens())) + " |"));
        QVERIFY(has("| TTFT P50 | 12.0 ms | n = 3 |"));
        QVERIFY(has("| demand | " + std::to_string(m_made.misses() + 1) + " | 1 | "));
        QVERIFY(has("| prefetch | " + std::to_string(m_made.prefetches()) + " | 0 | "));
        QVERIFY(has("tiny \\<&\\> \\| model"));
        QVERIFY(has("## Slowest tokens") && has("## Layers while decoding"));
    }
    // Rows that were removed to keep the file small still count.
    void figuresIncludeRemovedRows() {
        const fs::path path = file("thinned.colibri-session");
        const MadeSession made{.requests = 20, .tokens = 50, .layers = 8};
        made.write(path);
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        const SqliteDb db(handle);
        // The histograms of removed rows contain failed reads.
        QCOMPARE(sqlite3_exec(handle, "DELETE FROM loads WHERE failed", nullptr, nullptr, nullptr),
                 SQLITE_OK);
        ExportOptions report = options(ExportFormat::Markdown, "whole.md");
        report.session = path;
        QVERIFY(exportSession(report, {}, nullptr).ok());
        const auto figures = [](const std::string& text) {
            const size_t from = text.find("## Figures");
            return text.substr(from, text.find("\n## ", from + 1) - from);
        };
        const std::string whole = figures(textOf(report.output));
        for (int i = 0; i < 5; ++i) QVERIFY(thinOldest(handle, path, true).ok());
        report.output = file("thinned.md");
        QVERIFY(exportSession(report, {}, nullptr).ok());
        const std::string thinned = textOf(report.output);
        QVERIFY(thinned.find("the figures include them") != std::string::npos);
        QVERIFY2(figures(thinned) == whole, (figures(thinned) + whole).c_str());
        report.output = file("part.md");
        report.from = 0.01;
        QVERIFY(exportSession(report, {}, nullptr).ok());
        QVERIFY(textOf(report.output).find("the report is without them") != std::string::npos);
    }
    void nothingIsOverwritten() {
        for (const ExportFormat format : kAllFormats) {
            std::ofstream(file("taken")) << "mine";
            QCOMPARE(failure(options(format, "taken")).code(), Code::InvalidArgument);
            QCOMPARE(textOf(file("taken")), std::string("mine"));
        }
        fs::create_symlink(file("nowhere"), file("link"));
        QCOMPARE(failure(options(ExportFormat::Csv, "link")).code(), Code::InvalidArgument);
        const Status folder = failure(options(ExportFormat::Csv, "none/a.csv"));
        QVERIFY(folder.code() == Code::BadInput &&
                folder.message().find("none/a.csv") != std::string::npos);
    }
    void aCancelledExportLeavesNothing() {
        const CancelFlag cancel{true};
        for (const ExportFormat format : kAllFormats) {
            QCOMPARE(failure(options(format, "cancelled"), &cancel).code(), Code::Cancelled);
        }
        // In the middle, too.
        CancelFlag later{false};
        const std::set<std::string> before = files();
        const ProgressFn stop = [&](const Progress& p) {
            later = p.stage.starts_with("Layer steps");
        };
        const auto done = exportSession(options(ExportFormat::Perfetto, "later"), stop, &later);
        QCOMPARE(done.status().code(), Code::Cancelled);
        QCOMPARE(files(), before);
    }
    void progressCountsRows() {
        uint64_t last = 0;
        bool monotonic = true;
        std::set<std::string> stages;
        const ProgressFn progress = [&](const Progress& p) {
            monotonic &= p.done >= last && p.done <= p.total && std::string(p.unit) == "rows";
            last = p.done;
            stages.insert(p.stage);
        };
        QVERIFY(exportSession(options(ExportFormat::Perfetto, "progress"), progress, nullptr).ok());
        QVERIFY(monotonic);
        QVERIFY(stages.contains("Layer steps and expert reads") && stages.contains("Tokens"));
        QVERIFY(last > 0);
    }
    void aFullDiskLeavesNothing() {
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit tight{1024, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        std::map<std::string, Status> results;
        for (const ExportFormat format : kAllFormats) {
            results[exportFormatName(format)] =
                failure(options(format, std::string("full.") + exportFormatName(format)));
        }
        setrlimit(RLIMIT_FSIZE, &before);
        for (const ExportFormat each : kAllFormats) {
            const std::string format = exportFormatName(each);
            const Status& status = results[format];
            QVERIFY2(status.code() == Code::NoSpace, (format + status.text()).c_str());
        }
    }
    void damagedSessionsAreRefused() {
        const std::string whole = textOf(file("a.colibri-session"));
        const auto write = [&](const std::string& content) {
            std::ofstream(file("damaged.colibri-session"), std::ios::binary) << content;
        };
        for (const ExportFormat format : kAllFormats) {
            ExportOptions damaged = options(format, "damaged.out");
            damaged.session = file("damaged.colibri-session");
            write("no database");
            QCOMPARE(failure(damaged).code(), Code::BadInput);
            write(whole.substr(0, whole.size() / 2));
            QCOMPARE(failure(damaged).code(), Code::BadInput);
            std::string noise = whole;
            std::fill(noise.begin() + 8192, noise.end() - 4096, '\x5a');
            write(noise);
            QCOMPARE(failure(damaged).code(), Code::BadInput);
            damaged.session = file("missing.colibri-session");
            QCOMPARE(failure(damaged).code(), Code::BadInput);
        }
    }
    void emptySessionsAndRangesAreNamed() {
        const fs::path path = file("empty.colibri-session");
        QVERIFY(SessionWriter::create(path, {}).ok());
        for (const ExportFormat format : kAllFormats) {
            ExportOptions empty = options(format, "empty.out");
            empty.session = path;
            QCOMPARE(failure(empty).code(), Code::BadInput);
            QVERIFY(failure(empty).message().find("has no records") != std::string::npos);
            ExportOptions late = options(format, "late.out");
            late.from = 1000;
            const Status status = failure(late);
            QCOMPARE(status.code(), Code::BadInput);
            QVERIFY2(status.message().find("after 1,000.00 s") != std::string::npos,
                     status.text().c_str());
            ExportOptions reversed = options(format, "reversed.out");
            reversed.from = 2;
            reversed.to = 1;
            QCOMPARE(failure(reversed).code(), Code::InvalidArgument);
        }
        ExportOptions between = options(ExportFormat::Csv, "between.out");
        between.from = 0.0001;
        between.to = 0.0002;
        QCOMPARE(failure(between).code(), Code::BadInput);
    }
    void unknownSeriesAreNamed() {
        const Status status = failure(of(options(ExportFormat::Csv, "x"), {"itl_p9"}));
        QCOMPARE(status.code(), Code::InvalidArgument);
        QVERIFY(status.text().find("itl_p99") != std::string::npos);
        QCOMPARE(failure(of(options(ExportFormat::Csv, "x"), {"memory", "memory"})).code(),
                 Code::InvalidArgument);
        QCOMPARE(failure(of(options(ExportFormat::Html, "x"), {"memory"})).code(),
                 Code::InvalidArgument);
        QCOMPARE(failure(of(options(ExportFormat::Csv, "x"), {"hit_rate"})).code(), Code::BadInput);
    }
    void aSessionCanBeExportedWhileItIsRecorded() {
        const fs::path path = file("open.colibri-session");
        auto writer = SessionWriter::create(path, {});
        QVERIFY(writer.ok());
        QVERIFY((*writer)->write(tokenEvent(1'000'000), 1).ok());
        QVERIFY((*writer)->commit().ok());
        ExportOptions open = options(ExportFormat::Perfetto, "open.pftrace");
        open.session = path;
        const auto done = exportSession(open, {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        QCOMPARE(done->slices, 1);
        QVERIFY((*writer)->write(tokenEvent(1'000'000), 2).ok());
        QVERIFY((*writer)->finish().ok());
    }
    void formatsHaveNames() {
        for (const ExportFormat format : kAllFormats) {
            QCOMPARE(exportFormatFromName(exportFormatName(format)), std::optional(format));
        }
        QVERIFY(!exportFormatFromName("pdf"));
    }
};

QTEST_GUILESS_MAIN(TestExport)
#include "test_export.moc"
