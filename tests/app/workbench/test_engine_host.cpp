// SPDX-License-Identifier: GPL-3.0-or-later
#include <QFile>
#include <QLockFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <mutex>
#include <nlohmann/json.hpp>
#include "app/workbench/backend/engine_host.h"
#include "app/workbench/backend/inspection.h"
#include "engine/base/machine.h"
#include "engine/store/folder_calibration.h"
#include "profiler/session/sqlite.h"
#include "session_path.h"
#include "test_model.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

using State = SessionSource::State;

// A reply collected as the chat view does it.
struct Reply {
    std::vector<GeneratedToken> tokens;
    std::optional<RequestResult> result;

    bool collect(ChatRun& run) {
        ChatRun::Update update = run.take();
        tokens.insert(tokens.end(), update.tokens.begin(), update.tokens.end());
        if (update.result) result = std::move(update.result);
        return result.has_value();
    }
};

ChatRequest ask(const char* text, int maxTokens = 24) {
    ChatRequest request;
    request.messages = {{{"role", "user"}, {"content", text}}};
    request.maxTokens = maxTokens;
    return request;
}

}  // namespace

class TestEngineHost : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void loadsAndForgetsNothing();
    void streamsAReply();
    void cancelledReplyEndsAndKeepsItsTokens();
    void closingEndsARunningReply();
    void knobChangeIsSeen();
    void missingModelSaysWhatAndWhere();
    void cancelledLoadEndsWithoutModel();
    void laterLoadReplacesEarlier();
    void modelFolderDeletedWhileLoaded();
    void runningSessionIsNotOfferedForRecovery();
    void killedSessionIsFoundRecoveredAndDiscarded();
    void sessionFilesAreNeverOverwritten();
    void modelRunsWhenNothingCanBeRecorded();
    void aClosedSessionHasTheSizeOfItsFile();
    void aReplyBesideOthersDoesNotMeasureTheModel();
    void recentListIsKept();
    void damagedRecentListIsAnEmptyOne();
    void fieldsOfAWrongTypeDoNotEndTheProgram();
    void runIsMeasured();
    void jobReportsProgressAndCancels();
    void abandonedJobSaysNothing();
    void diskIsMeasuredAndLeavesNothing();
    void demoComesFromItsVariable();

private:
    bool load(EngineHost& host, const KnobValues& knobs = {}) {
        host.load(m_model.toStdString(), knobs);
        return waitUntil([&] { return host.state() != State::Loading; }) &&
               host.state() == State::Ready;
    }
    bool finish(EngineHost&, const std::shared_ptr<ChatRun>& run, Reply& reply) {
        return waitUntil([&] { return reply.collect(*run); });
    }
    QString data(const char* name) { return m_dir.filePath(name); }

    QTemporaryDir m_dir;
    QString m_model;
};

void TestEngineHost::initTestCase() {
    m_model = m_dir.filePath("model");
    QCOMPARE(convertGolden("qwen3moe", m_model), QString());
}

void TestEngineHost::loadsAndForgetsNothing() {
    QString session;
    {
        EngineHost host(data("loads"));
        QCOMPARE(host.state(), State::NoModel);
        QVERIFY(!host.model());
        QVERIFY(!host.snapshot());
        QSignalSpy states(&host, &SessionSource::stateChanged);
        host.load(m_model.toStdString(), {});
        QCOMPARE(host.state(), State::Loading);
        QVERIFY(waitUntil([&] { return host.state() == State::Ready; }));
        QCOMPARE(states.count(), 2);
        QCOMPARE(host.model()->experts, int64_t(8));
        QCOMPARE(host.model()->topK, int64_t(2));
        QCOMPARE(host.model()->moeLayers, int64_t(2));
        QCOMPARE(host.model()->weights, QString("f32"));
        QCOMPARE(host.model()->chatProblem, QString());
        QVERIFY(host.engine()->memory().parts.dense > 0);
        QVERIFY(host.memory().used > 0);
        QCOMPARE(host.kept().recent.entries().size(), 1);
        QCOMPARE(host.kept().recent.entries()[0].path, m_model);
        session = sessionPath(host);
        QVERIFY(QFile::exists(session));
    }
    // The host is gone: the session ended cleanly and is listed.
    const auto summary = readSessionSummary(session.toStdString());
    QVERIFY2(summary.ok(), summary.status().text().c_str());
    QVERIFY(summary->endedCleanly);
    const RecentList recent(data("loads") + "/recent.json");
    QCOMPARE(recent.entries().size(), 2);
    QCOMPARE(recent.entries()[0].kind, RecentEntry::Kind::Session);
    QCOMPARE(recent.entries()[0].path, session);
}

void TestEngineHost::streamsAReply() {
    EngineHost host(data("streams"));
    QVERIFY(load(host));
    const auto run = host.startChat(ask("Hello"));
    Reply reply;
    QVERIFY(finish(host, run, reply));
    QVERIFY2(reply.result->status.ok(), reply.result->status.text().c_str());
    QCOMPARE(reply.tokens.size(), reply.result->tokens.size());
    QVERIFY(!reply.tokens.empty());
    for (size_t i = 0; i < reply.tokens.size(); ++i) {
        QCOMPARE(reply.tokens[i].id, reply.result->tokens[i]);
        QCOMPARE(reply.tokens[i].index, uint32_t(i));
    }
    QVERIFY(reply.result->promptTokens > 1);
    QVERIFY(host.countTokens("Hello there") > 0);
    // The same question gives the same reply: greedy, and nothing is left over from before.
    const auto again = host.startChat(ask("Hello"));
    Reply second;
    QVERIFY(finish(host, again, second));
    QCOMPARE(second.result->tokens, reply.result->tokens);
    // What the session file counts is what was asked.
    const QString session = sessionPath(host);
    const size_t tokens = reply.tokens.size() + second.tokens.size();
    host.close();
    QVERIFY(waitUntil([&] {
        const auto summary = readSessionSummary(session.toStdString());
        return summary && summary->endedCleanly;
    }));
    const auto summary = readSessionSummary(session.toStdString());
    QCOMPARE(summary->requests, int64_t(2));
    QCOMPARE(summary->tokens, int64_t(tokens));
}

void TestEngineHost::cancelledReplyEndsAndKeepsItsTokens() {
    EngineHost host(data("cancels"));
    KnobValues slow;
    slow[size_t(KnobId::LinkLimit)] = 1;  // each expert read takes some milliseconds
    slow[size_t(KnobId::ExpertCacheSize)] = 1;
    QVERIFY(load(host, slow));
    const auto run = host.startChat(ask("Tell me a long story", 150));
    Reply reply;
    QVERIFY(waitUntil([&] { return reply.collect(*run) || reply.tokens.size() >= 2; }));
    QVERIFY(!reply.result);
    host.cancelChat(run);
    QVERIFY(finish(host, run, reply));
    QCOMPARE(reply.result->stop, StopReason::Cancelled);
    QVERIFY(reply.tokens.size() >= 2 && reply.tokens.size() < 150);
    // The engine goes on.
    const auto next = host.startChat(ask("Hello", 3));
    Reply second;
    QVERIFY(finish(host, next, second));
    QVERIFY(second.result->status.ok());
}

void TestEngineHost::closingEndsARunningReply() {
    EngineHost host(data("closing"));
    KnobValues slow;
    slow[size_t(KnobId::LinkLimit)] = 1;
    slow[size_t(KnobId::ExpertCacheSize)] = 1;
    QVERIFY(load(host, slow));
    const auto run = host.startChat(ask("Tell me a long story", 150));
    Reply reply;
    QVERIFY(waitUntil([&] { return reply.collect(*run) || !reply.tokens.empty(); }));
    const std::string session = sessionPath(host).toStdString();
    host.close();
    QCOMPARE(host.state(), State::NoModel);
    QVERIFY(finish(host, run, reply));  // exactly one end, although the engine is going
    // The session has the end of the reply too, and its own.
    QVERIFY(waitUntil([&] {
        const auto summary = readSessionSummary(session);
        return summary && summary->endedCleanly;
    }));
    sqlite3* handle = nullptr;
    QCOMPARE(sqlite3_open_v2(session.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    const SqliteDb db(handle);
    sqlite3_stmt* row = nullptr;
    QCOMPARE(sqlite3_prepare_v2(handle, "SELECT stop, done FROM requests", -1, &row, nullptr),
             SQLITE_OK);
    QCOMPARE(sqlite3_step(row), SQLITE_ROW);
    QCOMPARE(QString::fromUtf8(reinterpret_cast<const char*>(sqlite3_column_text(row, 0))),
             QString("cancelled"));
    QVERIFY(sqlite3_column_type(row, 1) != SQLITE_NULL);
    sqlite3_finalize(row);
    const auto refused = host.startChat(ask("Hello"));
    Reply none;
    QVERIFY(finish(host, refused, none));
    QVERIFY(!none.result->status.ok());
}

void TestEngineHost::knobChangeIsSeen() {
    EngineHost host(data("knobs"));
    QVERIFY(load(host));
    host.setKnob(KnobId::ExpertCacheSize, 3);
    QVERIFY(waitUntil([&] { return host.knobState(KnobId::ExpertCacheSize).effective == 3; }));
    QVERIFY(waitUntil([&] {
        const auto snapshot = host.snapshot();
        for (const Marker& marker : snapshot->markers)
            if (marker.kind == Marker::Kind::Knob && marker.to == 3) return true;
        return false;
    }));
    host.setKnob(KnobId::ContextLength, 64);
    const KnobState state = host.knobState(KnobId::ContextLength);
    QVERIFY(state.effective != 64 || !state.reason.empty());
    QCOMPARE(*host.requestedKnobs()[size_t(KnobId::ContextLength)], int64_t(64));
}

void TestEngineHost::missingModelSaysWhatAndWhere() {
    EngineHost host(data("missing"));
    std::optional<Status> failure;
    connect(&host, &EngineHost::loadFailed, this, [&](const Status& s) { failure = s; });
    host.load(m_dir.filePath("nothing-here").toStdString(), {});
    QVERIFY(waitUntil([&] { return host.state() == State::NoModel; }));
    QVERIFY(failure.has_value());
    QVERIFY2(QString::fromStdString(failure->message()).contains("nothing-here"),
             failure->message().c_str());
    QVERIFY(host.kept().recent.entries().isEmpty());
}

void TestEngineHost::cancelledLoadEndsWithoutModel() {
    EngineHost host(data("cancel-load"));
    QSignalSpy failures(&host, &EngineHost::loadFailed);
    host.load(m_model.toStdString(), {});
    host.cancelLoad();
    QVERIFY(host.loadJob()->cancelling());
    QVERIFY(waitUntil([&] { return host.state() != State::Loading; }));
    QCOMPARE(host.state(), State::NoModel);
    QCOMPARE(failures.count(), 0);  // asked for, so nothing to complain about
    QVERIFY(load(host));
}

void TestEngineHost::laterLoadReplacesEarlier() {
    EngineHost host(data("replaces"));
    host.load(m_dir.filePath("nothing-here").toStdString(), {});
    QSignalSpy failures(&host, &EngineHost::loadFailed);
    QVERIFY(load(host));
    QCOMPARE(failures.count(), 0);  // the first load's failure came too late to matter
    QVERIFY(load(host));            // and over a running model
    QCOMPARE(host.model()->folder, m_model);
}

void TestEngineHost::modelFolderDeletedWhileLoaded() {
    const QString copy = m_dir.filePath("deleted");
    std::filesystem::copy(m_model.toStdString(), copy.toStdString(),
                          std::filesystem::copy_options::recursive);
    EngineHost host(data("deleted-data"));
    KnobValues small;
    small[size_t(KnobId::ExpertCacheSize)] = 1;
    host.load(copy.toStdString(), small);
    QVERIFY(waitUntil([&] { return host.state() == State::Ready; }));
    std::filesystem::remove_all(copy.toStdString());
    // The open files still serve the experts, or the request ends with an error.
    const auto run = host.startChat(ask("Hello", 8));
    Reply reply;
    QVERIFY(finish(host, run, reply));
    QVERIFY(reply.result->status.ok() || !reply.result->status.message().empty());
    std::optional<Status> failure;
    connect(&host, &EngineHost::loadFailed, this, [&](const Status& s) { failure = s; });
    host.load(copy.toStdString(), {});
    QVERIFY(waitUntil([&] { return host.state() == State::NoModel; }));
    QVERIFY(failure && QString::fromStdString(failure->text()).contains(copy));
    host.kept().recent.checkFiles();
    QVERIFY(waitUntil([&] {
        for (const RecentEntry& entry : host.kept().recent.entries())
            if (entry.path == copy && entry.missing) return true;
        return false;
    }));
}

void TestEngineHost::runningSessionIsNotOfferedForRecovery() {
    EngineHost host(data("running"));
    QVERIFY(load(host));
    QVERIFY(QFile::exists(sessionPath(host)));
    QVERIFY(!host.kept().sessions.interrupted());
}

void TestEngineHost::killedSessionIsFoundRecoveredAndDiscarded() {
    EngineHost host(data("killed"));
    QVERIFY(load(host));
    Reply reply;
    QVERIFY(finish(host, host.startChat(ask("Hello")), reply));
    const auto tokens = int64_t(reply.tokens.size());
    // As a kill leaves it: the files as they are while the recorder writes, and no lock held.
    const QString dir = m_dir.filePath("killed-copy"), left = dir + "/one." + kSessionSuffix;
    QDir().mkpath(dir);
    QVERIFY(waitUntil([&] {
        for (const char* suffix : {"", "-wal"}) {
            QFile::remove(left + suffix);
            QFile::copy(sessionPath(host) + suffix, left + suffix);
        }
        const auto summary = readSessionSummary(left.toStdString());
        return summary && summary->tokens == tokens;
    }));
    const SessionFolder folder(dir);
    const auto found = folder.interrupted();
    QVERIFY(found.has_value());
    QVERIFY(!found->endedCleanly);
    QVERIFY(found->lastTime > 0);
    // Discard, and bring it back.
    QVERIFY(SessionFolder::discard(left).ok());
    QVERIFY(!folder.interrupted());
    QVERIFY(SessionFolder::restore(left).ok());
    QVERIFY(folder.interrupted().has_value());
    QVERIFY(recoverSession(left.toStdString()).ok());
    QVERIFY(!folder.interrupted());
    QCOMPARE(readSessionSummary(left.toStdString())->tokens, tokens);
}

void TestEngineHost::sessionFilesAreNeverOverwritten() {
    const SessionFolder folder(data("names"));
    auto first = folder.reserve();
    auto second = folder.reserve();  // the first is only reserved: no file yet
    QVERIFY(first.ok() && second.ok());
    QVERIFY(first->path != second->path);
    QFile file(second->path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.close();
    second->lock.reset();
    const auto third = folder.reserve();
    QVERIFY(third.ok());
    QVERIFY(third->path != second->path);
}

void TestEngineHost::modelRunsWhenNothingCanBeRecorded() {
    const QString taken = m_dir.filePath("taken." + kSessionSuffix);
    QFile file(taken);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("somebody's");
    file.close();
    EngineHost host(data("unrecorded"));
    std::optional<Status> why;
    connect(&host, &EngineHost::recordingFailed, this, [&](const Status& s) { why = s; });
    host.setSessionFile(taken);
    QVERIFY(load(host));
    QVERIFY(why && QString::fromStdString(why->text()).contains(taken));
    QCOMPARE(sessionPath(host), QString());
    Reply reply;
    QVERIFY(finish(host, host.startChat(ask("Hello", 3)), reply));
    QVERIFY(reply.result->status.ok());
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), QByteArray("somebody's"));
}

// While it is written a second file stands beside it, which goes when it is closed.
void TestEngineHost::aClosedSessionHasTheSizeOfItsFile() {
    QDir().mkpath(data("sized"));
    const QString before = QDir::currentPath();
    QDir::setCurrent(data("sized"));
    EngineHost host(data("sized"));
    host.setSessionFile("mine.colibri-session");  // as a headless run names it
    const bool loaded = load(host);
    QDir::setCurrent(before);
    QVERIFY(loaded);
    Reply reply;
    QVERIFY(finish(host, host.startChat(ask("Hello", 40)), reply));
    host.close();
    const QString path = data("sized") + "/mine.colibri-session";
    QCOMPARE(host.kept().recent.entries()[0].path, path);
    QVERIFY(waitUntil([&] {
        return host.kept().recent.entries()[0].bytes == QFileInfo(path).size() &&
               !QFileInfo::exists(path + "-wal");
    }));
    QCOMPARE(RecentList(data("sized") + "/recent.json").entries()[0].bytes, QFileInfo(path).size());
}

// How fast a model runs is what a reply shows that had the engine to itself.
void TestEngineHost::aReplyBesideOthersDoesNotMeasureTheModel() {
    EngineHost host(data("shared"));
    KnobValues together;  // they start in one step
    together[size_t(KnobId::BatchTimeout)] = 200;
    together[size_t(KnobId::MaxBatch)] = 4;
    QVERIFY(load(host, together));
    std::vector<std::shared_ptr<ChatRun>> runs;
    ChatRequest request = ask("Hello", 60);
    for (uint64_t i = 0; i < 4; ++i) {
        request.sampling.temperature = 1;
        request.sampling.seed = 11 + i;
        runs.push_back(host.startChat(request));
    }
    size_t gaps = 0;
    for (const auto& run : runs) {
        Reply reply;
        QVERIFY(finish(host, run, reply));
        gaps += reply.result->gapsMs.size();
    }
    QVERIFY(gaps >= 16);  // enough to measure with, were they alone
    const std::string fingerprint = host.engine()->info().fingerprint;
    host.close();
    QVERIFY(!host.kept().measurements.run(fingerprint));
}

void TestEngineHost::recentListIsKept() {
    const QString file = m_dir.filePath("recent.json");
    const QDateTime now = QDateTime::currentDateTime();
    const auto entry = [&](const QString& path, int minutesAgo) {
        RecentEntry e;
        e.path = path;
        e.name = path;
        e.used = now.addSecs(-60 * minutesAgo);
        return e;
    };
    {
        RecentList list(file);
        list.add(entry(m_model, 3));
        list.add(entry("/gone", 2));
        list.add(entry("/third", 1));
        list.add(entry(m_model, 0));
        QCOMPARE(list.entries().size(), 3);
    }
    RecentList list(file);
    QCOMPARE(list.entries().size(), 3);
    QCOMPARE(list.entries()[0].path, m_model);
    QCOMPARE(list.entries()[1].path, QString("/third"));
    list.checkFiles();
    QVERIFY(waitUntil([&] { return list.entries()[1].missing; }));
    QVERIFY(list.entries()[2].missing);
    QVERIFY(!list.entries()[0].missing);
    const RecentEntry gone = list.entries()[2];
    list.remove("/gone");
    QCOMPARE(RecentList(file).entries().size(), 2);
    list.restore(gone);
    QCOMPARE(RecentList(file).entries()[2].path, QString("/gone"));
    QCOMPARE(usedText(now, now), now.toString("HH:mm"));
    const QDateTime noon(QDate(2024, 4, 12), QTime(12, 0));
    QCOMPARE(usedText(noon.addDays(-1), noon), QString("yesterday"));
    QCOMPARE(usedText(QDateTime(QDate(2024, 4, 9), QTime(9, 0)), noon), QString("9 Apr"));
    QCOMPARE(usedText(QDateTime(QDate(2023, 4, 9), QTime(9, 0)), noon), QString("9 Apr 2023"));
}

void TestEngineHost::damagedRecentListIsAnEmptyOne() {
    const QString file = m_dir.filePath("damaged.json");
    for (const char* text :
         {"{\"schema\": 1, \"recent\": [{\"path\": 7}, 3, null]}", "{", "[]",
          "{\"schema\": 9, \"recent\": []}", "", "{\"schema\": \"1\", \"recent\": []}",
          "{\"schema\": [1], \"recent\": {}}", "{\"schema\": 1, \"recent\": 3}",
          "{\"schema\": 1, \"recent\": [{\"path\": \"/a\", \"used\": 4}]}",
          "{\"schema\": 1, \"recent\": [{\"path\": \"/a\", \"bytes\": -1e300}]}"}) {
        QFile out(file);
        QVERIFY(out.open(QIODevice::WriteOnly | QIODevice::Truncate));
        out.write(text);
        out.close();
        const RecentList list(file);
        QVERIFY2(list.entries().isEmpty(), text);
        QVERIFY2(!list.damage().ok(), text);
        QVERIFY(list.damage().message().find("damaged.json") != std::string::npos);
    }
}

void TestEngineHost::fieldsOfAWrongTypeDoNotEndTheProgram() {
    QDir().mkpath(data("damaged"));
    const auto write = [&](const char* name, const std::string& text) {
        QFile out(data("damaged") + "/" + name);
        return out.open(QIODevice::WriteOnly) && out.write(text.c_str()) > 0;
    };
    const std::string machine = nlohmann::json(machineFingerprint()).dump();
    const std::vector<std::string> bad{
        R"({"schema": "1"})",
        R"({"schema": {}, "machine": 5})",
        R"({"schema": 1, "machine": 5})",
        R"({"schema": 1, "machine": )" + machine + R"(, "runs": [1]})",
        R"({"schema": 1, "machine": )" + machine + R"(, "runs": {"f": {"gaps": -1e300}}})",
        R"({"schema": 1, "machine": )" + machine + R"(, "runs": {"f": {"when": {}}}})",
        R"({"schema": 1, "machine": )" + machine + R"(, "runs": {"f": 7}})"};
    QVERIFY(write("recent.json", R"({"schema": "1", "recent": []})"));
    for (const std::string& text : bad) {
        QVERIFY(write("measurements.json", text));
        EngineHost host(data("damaged"));
        QVERIFY2(!host.kept().measurements.damage().ok(), text.c_str());
        QVERIFY2(!host.kept().measurements.run("f"), text.c_str());
        QSignalSpy reports(&host, &EngineHost::notRead);  // one for each of the two files
        QVERIFY(waitUntil([&] { return reports.count() == 2; }));
    }
    QVERIFY(
        write("measurements.json", R"({"schema": 1, "machine": )" + machine +
                                       R"(, "runs": {"f": {"gaps": 20}, "g": {"gaps": "x"}}})"));
    const Measurements kept(data("damaged") + "/measurements.json");
    QCOMPARE(kept.run("f")->gaps, uint64_t(20));
    QVERIFY(!kept.run("g"));
    QVERIFY(kept.damage().message().find("gaps") != std::string::npos);
}

void TestEngineHost::runIsMeasured() {
    std::string fingerprint;
    {
        EngineHost host(data("measured"));
        QVERIFY(load(host));
        fingerprint = host.engine()->info().fingerprint;
        QVERIFY(!fingerprint.empty());
        QVERIFY(!host.kept().measurements.run(fingerprint));
        // The random model may end a reply at any token.
        std::vector<double> gaps;
        for (uint64_t seed = 3; gaps.size() < 16 && seed < 100; ++seed) {
            Reply reply;
            ChatRequest request = ask("Hello", 60);
            request.sampling.temperature = 1;
            request.sampling.seed = seed;
            QVERIFY(finish(host, host.startChat(request), reply));
            gaps.insert(gaps.end(), reply.result->gapsMs.begin(), reply.result->gapsMs.end());
        }
        QVERIFY(gaps.size() >= 16);
        host.close();
        const auto run = host.kept().measurements.run(fingerprint);
        QVERIFY(run.has_value());
        QCOMPARE(run->gaps, uint64_t(gaps.size()));
        double total = 0;
        for (const double gap : gaps) total += gap;
        QVERIFY(std::abs(run->decodeTokS * total / 1000 / double(run->gaps) - 1) < 1e-9);
        QVERIFY(run->knobs.contains("cache"));
    }
    const Measurements kept(data("measured") + "/measurements.json");
    QVERIFY(kept.run(fingerprint).has_value());
}

void TestEngineHost::jobReportsProgressAndCancels() {
    std::atomic<bool> ended{false};
    auto* job = new Job([&](const ProgressFn& progress, const CancelFlag* cancel) {
        for (uint64_t i = 0; !cancel->load(); ++i) {
            progress({"counting", i, 1'000'000, "items"});
            QThread::msleep(1);
        }
        ended = true;
        return Status(Code::Cancelled, "cancelled");
    });
    QSignalSpy progressed(job, &Job::progressed);
    std::optional<Status> result;
    connect(job, &Job::finished, this, [&](const Status& status) { result = status; });
    job->start();
    QVERIFY(waitUntil([&] { return progressed.count() >= 3; }));
    QCOMPARE(job->progress().stage, QString("counting"));
    QCOMPARE(job->progress().total, uint64_t(1'000'000));
    job->cancel();
    QVERIFY(waitUntil([&] { return result.has_value(); }));
    QCOMPARE(result->code(), Code::Cancelled);
    QVERIFY(ended);
}

void TestEngineHost::abandonedJobSaysNothing() {
    QPointer<Job> job = new Job([](const ProgressFn&, const CancelFlag* cancel) {
        while (!cancel->load()) QThread::msleep(1);
        return Status();
    });
    bool finished = false;
    connect(job, &Job::finished, this, [&] { finished = true; });
    job->start();
    job->abandon();
    QVERIFY(waitUntil([&] { return job.isNull(); }));
    QVERIFY(!finished);
}

void TestEngineHost::diskIsMeasuredAndLeavesNothing() {
    const QString dir = m_dir.filePath("disk");
    QDir().mkpath(dir);
    CancelFlag cancel{false};
    const auto rates = calibrateFolder(dir.toStdString(), cancel);  // of a file of its own
    QVERIFY2(rates.ok(), rates.status().text().c_str());
    QVERIFY(rates->diskBytesPerSecond > 0 && rates->memoryBytesPerSecond > 0);
    QVERIFY(QDir(dir).isEmpty());
    QVERIFY(!calibrateFolder(dir.toStdString() + "/none", cancel).ok());
    cancel = true;
    QVERIFY(!calibrateFolder(dir.toStdString(), cancel).ok());
    QVERIFY(QDir(dir).isEmpty());
}

void TestEngineHost::demoComesFromItsVariable() {
    qputenv("COLIBRI_DEMO_MODEL", "/somewhere/else");
    QCOMPARE(demoModelPath(), QString("/somewhere/else"));
    qunsetenv("COLIBRI_DEMO_MODEL");
    QCOMPARE(*demoKnobs()[size_t(KnobId::LinkLimit)], int64_t(25));
    QCOMPARE(*demoKnobs()[size_t(KnobId::ExpertCacheSize)], int64_t(8));
}

QTEST_MAIN(TestEngineHost)
#include "test_engine_host.moc"
