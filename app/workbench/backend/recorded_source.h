// SPDX-License-Identifier: GPL-3.0-or-later
// A session file as a SessionSource: it has the snapshot of the time that the player chose, so that
// plots, cards and maps show a recorded session like a live one. Knobs and chats do nothing.
//
// For the GUI thread. The file is read on the source's worker and, for the parts that take seconds,
// in a job; results arrive with changed(). Nothing is written to the file.
#pragma once

#include <map>
#include <memory>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/platform/gui_queue.h"
#include "app/workbench/platform/job.h"
#include "app/workbench/platform/worker.h"
#include "profiler/playback/playback.h"

namespace colibri::ui {

// An opened session with its first snapshot.
struct OpenedSession {
    std::shared_ptr<Playback> playback;
    std::shared_ptr<const Snapshot> first;
};
// Blocks for well under a second, so it runs in a job. Errors: those of Playback::open().
Result<OpenedSession> openSessionFile(const std::filesystem::path& path);

class RecordedSource final : public SessionSource {
    Q_OBJECT

public:
    explicit RecordedSource(const OpenedSession& session, QObject* parent = nullptr);
    ~RecordedSource() override;

    const SessionSummary& summary() const { return m_summary; }
    const PlaybackFacts& facts() const { return *m_facts; }
    QString path() const;
    QString name() const;      // of the file, without its suffix
    QString started() const;   // "12 Apr 18:03", local time; "": unknown
    QString problems() const;  // what cannot be read, in sentences; "": nothing
    double duration() const { return m_facts->duration; }

    double time() const { return m_time; }
    void setTime(double t);
    void setWindow(const PlotWindow& window);
    // Whether all series, percentiles and expert states have been read.
    bool complete() const { return m_index->complete; }
    // Whether the snapshot is that of the newest time and window.
    bool current() const { return !m_busy && !m_stale; }
    // The text of a request, by its index in facts(). nullptr: it is being read; changed() follows.
    std::shared_ptr<const RecordedTurn> turn(size_t request);
    // Only for these turns texts are kept.
    void keepTurns(size_t first, size_t last);

    // ---- SessionSource
    State state() const override { return State::Ready; }
    const ModelFacts* model() const override { return &m_model; }
    std::shared_ptr<const Snapshot> snapshot() const override { return m_snapshot; }
    double sessionTime(uint64_t) const override { return m_time; }
    int activeRequests() const override { return m_snapshot->running; }
    MemoryNow memory() const override { return {}; }
    KnobLimits knobLimits(KnobId id) const override;
    KnobState knobState(KnobId id) const override { return m_snapshot->knob(id); }
    void setKnob(KnobId, int64_t, bool) override {}
    std::string knobProblem(KnobId, int64_t) const override { return {}; }
    Calibration calibration() const override;
    Histogram pooled(Pooled what, double t0, double t1) const override;
    void note(const QString&) override {}
    std::shared_ptr<ChatRun> startChat(ChatRequest) override;
    void cancelChat(const std::shared_ptr<ChatRun>&) override {}
    int countTokens(const QString&) const override { return -1; }
    Result<std::string> renderChat(const nlohmann::ordered_json&,
                                   const ChatOptions&) const override;

signals:
    void changed();    // a newer snapshot or text
    void completed();  // complete() is true now

private:
    void fillModel();
    void request();
    void readAll();

    std::shared_ptr<Playback> m_playback;  // used on the worker only
    const SessionSummary m_summary;
    const std::shared_ptr<const PlaybackFacts> m_facts;
    std::shared_ptr<const PlaybackIndex> m_index;
    std::shared_ptr<const Snapshot> m_snapshot;
    ModelFacts m_model;
    double m_time = 0;
    PlotWindow m_window;
    bool m_busy = false, m_stale = false;  // the worker makes a snapshot; another one is needed
    std::map<size_t, std::shared_ptr<const RecordedTurn>> m_turns;  // nullptr: requested
    QStringList m_readProblems;
    Job* m_job = nullptr;
    GuiQueue m_gui;   // from the worker to the GUI thread
    Worker m_worker;  // last: its tasks end before the other members are destroyed
};

}  // namespace colibri::ui
