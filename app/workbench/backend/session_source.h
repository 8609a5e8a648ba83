// SPDX-License-Identifier: GPL-3.0-or-later
// The interface of the window to a loaded model: facts, snapshots, knobs and chat requests.
// EngineHost implements it with an Engine and a Recorder, tests with seeded data.
//
// For the GUI thread. Every function returns at once; results of longer work on other threads
// arrive in a later snapshot, in a ChatRun, or with stateChanged(). Times are seconds since the
// session began.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <vector>

#include "app/workbench/backend/chat_run.h"
#include "engine/convert/source/chat_templates.h"
#include "engine/runtime/engine.h"
#include "profiler/record/recorder.h"

namespace colibri::ui {

struct ModelFacts {
    QString name;     // "Wren-14B-A1.3B"
    QString weights;  // of the experts: "q4_0"
    QString folder;
    QString device;          // "AVX2"
    QString chatProblem;     // why it cannot chat; "": it can
    bool continues = false;  // a base model: it continues a text
    int64_t contextLength = 0;
    int64_t experts = 0, moeLayers = 0, topK = 0;
    bool isDense() const { return moeLayers == 0; }  // a model without experts
    int64_t expertBytes = 0;                         // of one expert
    std::vector<NamedTemplate> templates;            // its chat templates, the effective one first
    std::vector<int> layerIndex;                     // model layer of each MoE layer
    Sampling sampling = chatSampling({});            // the model's defaults
    bool recommendsSampling = false;                 // generation_config.json sets some of them
};

struct MemoryNow {
    int64_t used = 0;   // bytes of this process
    int64_t limit = 0;  // bytes it can use without swapping; 0 = unknown
    int64_t free = 0;   // bytes of the machine; 0 = unknown
};

class SessionSource : public QObject {
    Q_OBJECT

public:
    enum class State { NoModel, Loading, Ready };
    enum class Pooled { Itl, ExpertLoads };

    virtual State state() const = 0;
    virtual const ModelFacts* model() const = 0;                   // nullptr unless Ready
    virtual std::shared_ptr<const Snapshot> snapshot() const = 0;  // nullptr unless Ready
    virtual double sessionTime(uint64_t monotonicNs) const = 0;
    virtual int activeRequests() const = 0;
    virtual MemoryNow memory() const = 0;

    virtual KnobLimits knobLimits(KnobId id) const = 0;
    virtual KnobState knobState(KnobId id) const = 0;
    // `final` false: a step of a drag; the whole drag is recorded as one change.
    virtual void setKnob(KnobId id, int64_t value, bool final = true) = 0;
    // Why a value within the limits cannot work here; "": it can.
    virtual std::string knobProblem(KnobId id, int64_t value) const = 0;
    virtual Calibration calibration() const = 0;  // measured rates of disk and memory

    // All raw values (ns) with a time in [t0, t1].
    virtual Histogram pooled(Pooled what, double t0, double t1) const = 0;
    virtual void note(const QString& text) = 0;  // records a marker with the user's text

    // The engine, for servers and load tests. It exists at least as long as the returned pointer.
    // nullptr: no model, or a source without an engine.
    virtual std::shared_ptr<Engine> engine() const { return nullptr; }

    virtual std::shared_ptr<ChatRun> startChat(ChatRequest request) = 0;
    virtual void cancelChat(const std::shared_ptr<ChatRun>& run) = 0;
    virtual int countTokens(const QString& text) const = 0;  // -1: unknown, or too long to count
    // The prompt of a chat, rendered by the chat template. Errors: no model, no template.
    virtual Result<std::string> renderChat(const nlohmann::ordered_json& messages,
                                           const ChatOptions& options) const = 0;

signals:
    void stateChanged();
};

}  // namespace colibri::ui
