// SPDX-License-Identifier: GPL-3.0-or-later
// A session without an engine, for tests of the window: a seeded story of 90 s (three turns, two
// knob changes) as a snapshot, knobs that take any value, and replies that a test feeds by hand.
#pragma once

#include <QHash>
#include <map>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/chat/conversation.h"

namespace colibri::ui {

class FakeSource : public SessionSource {
    Q_OBJECT

public:
    explicit FakeSource(bool loaded = true);

    void setLoaded(bool on);
    void setModelName(const QString& name) { m_facts.name = name; }
    void setNow(double now);  // the session's clock; rebuilds the snapshot
    // Takes effect with the next snapshot.
    void limitEffective(KnobId id, int64_t value, const std::string& reason);
    void publishKnobs();  // into the next snapshot(), as the recorder does 4 times a second
    std::shared_ptr<Snapshot> editable();  // to change what the next snapshot() returns
    std::shared_ptr<ChatRun> lastRun;      // of startChat
    ChatRequest lastRequest;
    int cancels = 0, active = 0;
    std::vector<std::pair<KnobId, int64_t>> knobCalls;
    int finalKnobCalls = 0;
    QStringList notes;
    bool routerTable = false;
    int numaNodes = 1;
    void setDense();  // a model without experts
    Calibration machine{6.8e9, 21e9, true, "io_uring", ""};

    // Feeds a reply: tokens of `gapMs` each; finish() ends it.
    void feed(ChatRun& run, const QStringList& tokens, double gapMs = 25);
    void finish(ChatRun& run, StopReason stop = StopReason::Eos);

    State state() const override { return m_loaded ? State::Ready : State::NoModel; }
    const ModelFacts* model() const override { return m_loaded ? &m_facts : nullptr; }
    std::shared_ptr<const Snapshot> snapshot() const override {
        return m_loaded ? m_snapshot : nullptr;
    }
    double sessionTime(uint64_t ns) const override;
    int activeRequests() const override { return active; }
    MemoryNow memory() const override;
    KnobLimits knobLimits(KnobId id) const override;
    KnobState knobState(KnobId id) const override;
    void setKnob(KnobId id, int64_t value, bool final = true) override;
    std::string knobProblem(KnobId id, int64_t value) const override;
    Calibration calibration() const override { return machine; }
    Histogram pooled(Pooled what, double t0, double t1) const override;
    void note(const QString& text) override { notes << text; }
    std::shared_ptr<ChatRun> startChat(ChatRequest request) override;
    void cancelChat(const std::shared_ptr<ChatRun>& run) override;
    int countTokens(const QString& text) const override {
        return text.size() > (64 << 10) ? -1 : int(text.size() / 4);  // as EngineHost
    }
    Result<std::string> renderChat(const nlohmann::ordered_json& messages,
                                   const ChatOptions& options) const override;
    ModelFacts& facts() { return m_facts; }
    void setContextLength(int64_t tokens) { m_facts.contextLength = tokens; }

private:
    void buildStory();
    void buildExperts();
    void rebuild();
    void fillKnobs();

    bool m_loaded;
    ModelFacts m_facts;
    Snapshot m_story;  // all 90 s
    std::shared_ptr<Snapshot> m_snapshot;
    std::array<KnobState, kKnobCount> m_knobs;
    double m_now = 90;
    uint64_t m_startNs = 0;
    struct Fed {  // what a run got so far
        std::vector<int32_t> ids;
        std::string text;
    };
    std::map<const ChatRun*, Fed> m_fed;
};

// The conversation of the pictures.
Conversation storyConversation(bool large);

}  // namespace colibri::ui
