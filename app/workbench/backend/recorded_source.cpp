// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/recorded_source.h"

#include <QDateTime>
#include <QFileInfo>
#include <QLocale>
#include <algorithm>

#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr int kFirstColumns = 1000;

QString metaOf(const SessionSummary& summary, const char* key) {
    const auto it = summary.meta.find(key);
    return it == summary.meta.end() ? QString() : str(it->second);
}

}  // namespace

Result<OpenedSession> openSessionFile(const std::filesystem::path& path) {
    auto playback = Playback::open(path);
    if (!playback) return playback.status();
    OpenedSession session{std::move(*playback), nullptr};
    session.first =
        session.playback->at(0, {0, session.playback->facts()->duration, kFirstColumns});
    return session;
}

RecordedSource::RecordedSource(const OpenedSession& session, QObject* parent)
    : m_playback(session.playback),
      m_summary(session.playback->summary()),
      m_facts(session.playback->facts()),
      m_index(session.playback->index()),
      m_snapshot(session.first),
      m_window{0, session.playback->facts()->duration, kFirstColumns} {
    setParent(parent);
    for (const Status& status : m_facts->problems) m_readProblems << str(status.message());
    fillModel();
    readAll();
}

RecordedSource::~RecordedSource() {
    delete m_job;  // cancels and joins
}

void RecordedSource::fillModel() {
    m_model.name = metaOf(m_summary, "model");
    if (m_model.name.isEmpty()) m_model.name = name();
    m_model.folder = metaOf(m_summary, "model_dir");
    m_model.device = metaOf(m_summary, "isa");
    m_model.chatProblem = "A recorded session is read only.";
    m_model.contextLength = m_facts->contextLength;
    m_model.experts = m_facts->experts;
    m_model.moeLayers = int64_t(m_facts->moeLayers.size());
    m_model.topK = m_facts->topK;
    m_model.expertBytes = m_facts->expertBytes;
    for (const int64_t layer : m_facts->moeLayers) m_model.layerIndex.push_back(int(layer));
}

// The parts of the file whose reading takes seconds, with a connection of their own.
void RecordedSource::readAll() {
    const auto result = std::make_shared<std::shared_ptr<const PlaybackIndex>>();
    m_job = new Job([result, path = m_summary.path, facts = m_facts](const ProgressFn& progress,
                                                                     const CancelFlag* cancel) {
        auto db = SessionDb::open(path, Totals::None);
        if (!db) return db.status();
        auto index = makeFullIndex(*db, *facts, progress, cancel);
        if (!index) return index.status();
        *result = *index;
        return Status();
    });
    connect(m_job, &Job::finished, this, [this, result](const Status& status) {
        m_job = nullptr;
        if (!*result) {
            m_readProblems << str(status.message());
        } else {
            m_index = *result;
            for (const Status& problem : m_index->problems)
                m_readProblems << str(problem.message());
            m_worker.post([playback = m_playback, index = m_index] { playback->setIndex(index); });
            request();
        }
        emit completed();
    });
    m_job->start();
}

QString RecordedSource::path() const {
    return exactText(m_summary.path.string());
}

QString RecordedSource::name() const {
    return QFileInfo(path()).completeBaseName();
}

QString RecordedSource::started() const {
    const QDateTime time = QDateTime::fromString(metaOf(m_summary, "started"), Qt::ISODate);
    return time.isValid() ? QLocale::c().toString(time.toLocalTime(), "d MMM HH:mm") : QString();
}

QString RecordedSource::problems() const {
    QStringList all = m_readProblems;
    all.removeDuplicates();
    return all.join(". ");
}

void RecordedSource::setTime(double t) {
    t = std::clamp(t, 0.0, duration());
    if (t == m_time) return;
    m_time = t;
    request();
}

void RecordedSource::setWindow(const PlotWindow& window) {
    if (window == m_window) return;
    m_window = window;
    request();
}

// Only the newest wish is served: while the worker is busy, later ones replace each other.
void RecordedSource::request() {
    m_stale = m_busy;
    if (m_busy) return;
    m_busy = true;
    m_worker.post([this, playback = m_playback, t = m_time, window = m_window] {
        m_gui.post([this, snapshot = playback->at(t, window)] {
            m_busy = false;
            m_snapshot = snapshot;
            if (m_stale) request();
            emit changed();
        });
    });
}

std::shared_ptr<const RecordedTurn> RecordedSource::turn(size_t request) {
    const auto known = m_turns.find(request);
    if (known != m_turns.end()) return known->second;
    m_turns[request] = nullptr;
    m_worker.post([this, playback = m_playback, facts = m_facts, request] {
        auto read = playback->turn(facts->requests[request]);
        RecordedTurn turn;
        if (read)
            turn = std::move(*read);
        else
            turn.userUnknown = turn.replyUnknown = read.status().message();
        m_gui.post([this, request, kept = std::make_shared<const RecordedTurn>(std::move(turn))] {
            if (const auto it = m_turns.find(request); it != m_turns.end()) it->second = kept;
            emit changed();
        });
    });
    return nullptr;
}

void RecordedSource::keepTurns(size_t first, size_t last) {
    std::erase_if(m_turns, [&](const auto& entry) {
        return entry.second && (entry.first < first || entry.first > last);
    });
}

// The range of the table, with the limits of the recorded model and machine where it has them.
KnobLimits RecordedSource::knobLimits(KnobId id) const {
    const KnobRow& row = knobRow(id);
    KnobLimits limits{row.min, row.max, row.defaultValue};
    const auto most = [&](int64_t value) {
        if (value > 0) limits.max = std::clamp(value, limits.min, limits.max);
    };
    if (id == KnobId::ExpertCacheSize) most(m_facts->experts);
    if (id == KnobId::ComputeThreads || id == KnobId::PrefetchThreads) most(m_facts->cores);
    if (id == KnobId::ContextLength) most(m_facts->contextLength);
    const int64_t now = m_snapshot->knob(id).effective;
    limits.max = std::max(limits.max, now);
    return limits;
}

Calibration RecordedSource::calibration() const {
    Calibration rates;
    rates.diskBytesPerSecond = m_facts->diskBytesPerSecond;
    rates.memoryBytesPerSecond = m_facts->memoryBytesPerSecond;
    return rates;
}

Histogram RecordedSource::pooled(Pooled what, double t0, double t1) const {
    return (what == Pooled::Itl ? m_index->itl : m_index->expertLoads).between(t0, t1);
}

std::shared_ptr<ChatRun> RecordedSource::startChat(ChatRequest) {
    auto run = std::make_shared<ChatRun>();
    run->fail(Status(Code::InvalidArgument, "a recorded session is read only",
                     "Close it to chat with a model"));
    return run;
}

Result<std::string> RecordedSource::renderChat(const nlohmann::ordered_json&,
                                               const ChatOptions&) const {
    return Status(Code::InvalidArgument, "a recorded session is read only",
                  "Close it to chat with a model");
}

}  // namespace colibri::ui
