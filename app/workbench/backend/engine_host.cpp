// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/engine_host.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>
#include <chrono>
#include <thread>

#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"

namespace colibri::ui {
namespace {

constexpr qint64 kMemoryEveryMs = 500;
constexpr int kLongestEndMs = 20000, kEndStepMs = 2;  // a cancelled reply ends within one token
constexpr qsizetype kCountedChars = 64 << 10;         // longer texts would delay typing

QString dataFolder(const QString& given) {
    const QString dir =
        given.isEmpty() ? QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) : given;
    QDir().mkpath(dir);
    return dir;
}

ModelFacts factsOf(const Engine& engine) {
    const ContainerInfo& info = engine.info();
    const ModelConfig& config = engine.info().config;
    ModelFacts facts;
    facts.name = exactText(config.name);
    facts.weights = str(info.expertTypeNames());
    facts.folder = exactText(info.dir.string());
    facts.device = str(isaName(engine.isa()));
    if (!engine.tokenizer()) {
        facts.chatProblem = "This model has no tokenizer, so it cannot process text.";
    } else if (!engine.chatTemplate()) {
        facts.chatProblem = "This model has no chat template.";
        facts.continues = true;
    }
    if (auto all = hfTemplates(info.dir, {})) facts.templates = std::move(*all);
    std::stable_partition(facts.templates.begin(), facts.templates.end(),
                          [](const NamedTemplate& t) { return t.from == "chat_template.jinja"; });
    facts.contextLength = engine.contextLength();
    facts.experts = config.numExperts;
    facts.moeLayers = config.moeLayerCount();
    facts.topK = config.topK;
    facts.expertBytes = info.expertRecordBytes();
    for (int64_t layer = 0; layer < config.numLayers; ++layer) {
        if (config.moeLayer[size_t(layer)]) facts.layerIndex.push_back(int(layer));
    }
    facts.sampling = chatSampling(config);
    facts.recommendsSampling =
        config.temperature >= 0 || config.topP > 0 || config.topKSampling > 0;
    return facts;
}

}  // namespace

// Shared with tasks of the worker, so that the engine outlives its users. The recorder is destroyed
// before the engine.
struct EngineHost::Loaded {
    ModelFacts facts;
    ReservedSession reserved;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Recorder> recorder;
    RunTally tally;
    Status notRecorded;                        // why there is no session file
    std::vector<std::weak_ptr<ChatRun>> runs;  // replies that may still run; GUI thread

    ~Loaded() {
        endReplies();
        recorder.reset();
        engine.reset();
        // The lock of `reserved` is released last: until then the session does not look
        // interrupted.
    }

private:
    // The recorder stops after the end of the last reply, so that it records how each one ended.
    void endReplies() {
        if (!engine) return;
        for (const auto& weak : runs) {
            if (const auto run = weak.lock()) run->cancel(*engine);
        }
        for (int waited = 0; engine->activeRequests() > 0 && waited < kLongestEndMs;
             waited += kEndStepMs)
            std::this_thread::sleep_for(std::chrono::milliseconds(kEndStepMs));
    }
};

EngineHost::EngineHost(const QString& dataDir, QObject* parent) : m_kept(dataFolder(dataDir)) {
    setParent(parent);
    m_kept.sessions.purge();
    connect(&m_kept.recent, &RecentList::failed, this, &EngineHost::notSaved);
    // Queued, so that a window can connect to the signal first.
    for (const Status& damage : {m_kept.recent.damage(), m_kept.measurements.damage()}) {
        if (damage.ok()) continue;
        QMetaObject::invokeMethod(
            this, [this, damage] { emit notRead(damage); }, Qt::QueuedConnection);
    }
}

EngineHost::~EngineHost() {
    delete m_load;
    m_load = nullptr;
    if (m_loaded) release(std::move(m_loaded));
}

void EngineHost::setState(State state) {
    m_state = state;
    emit stateChanged();
}

// ---- loading

void EngineHost::load(const std::filesystem::path& model, const KnobValues& knobs) {
    if (m_load) m_load->abandon();
    if (m_loaded) release(std::move(m_loaded));
    m_loaded.reset();
    m_knobs = knobs;
    const auto result = std::make_shared<std::shared_ptr<Loaded>>();
    const SessionFolder sessions = m_kept.sessions;
    const QString sessionFile = m_sessionFile;
    const bool pmSampling = settings().value(kPmSamplingKey).toBool();
    m_load = new Job(
        [model, knobs, result, sessions, sessionFile, pmSampling](const ProgressFn& progress,
                                                                  const CancelFlag* cancel) {
            auto loaded = std::make_shared<Loaded>();
            EngineOptions how{model, knobs, {}};
            how.warmStart = how.calibrate = true;
            auto engine = Engine::load(how, progress, cancel);
            if (!engine) return engine.status();
            loaded->engine = std::move(*engine);
            loaded->facts = factsOf(*loaded->engine);
            if (cancel->load()) return Status(Code::Cancelled, "Loading was cancelled");
            auto reserved = sessionFile.isEmpty()
                                ? sessions.reserve()
                                : Result<ReservedSession>(ReservedSession{sessionFile, {}});
            RecorderOptions recording{.pmSampling = pmSampling};
            if (reserved) {
                loaded->reserved = std::move(*reserved);
                recording.sessionFile = loaded->reserved.path.toStdString();
            }
            auto recorder = Recorder::start(recorderSource(*loaded->engine), recording);
            // Without a session file the model still runs, and the plots still work.
            if (!reserved) loaded->notRecorded = reserved.status();
            if (!recorder && reserved) {
                loaded->notRecorded = recorder.status();
                loaded->reserved = {};
                recorder =
                    Recorder::start(recorderSource(*loaded->engine), {.pmSampling = pmSampling});
            }
            if (!recorder) return recorder.status();
            loaded->recorder = std::move(*recorder);
            // After a cancel the engine is closed here, not on the GUI thread.
            if (cancel->load()) return Status(Code::Cancelled, "Loading was cancelled");
            *result = std::move(loaded);
            return Status();
        },
        this);
    connect(m_load, &Job::progressed, this, &EngineHost::loadProgressed);
    connect(m_load, &Job::finished, this,
            [this, result](const Status& status) { loadEnded(status, result); });
    m_load->start();
    setState(State::Loading);
}

void EngineHost::loadEnded(const Status& status,
                           const std::shared_ptr<std::shared_ptr<Loaded>>& result) {
    const bool cancelled = m_load->cancelling();
    m_load = nullptr;
    if (!status.ok() || cancelled) {
        // The load may have finished although it was cancelled: the worker closes the engine.
        if (*result) release(std::move(*result));
        setState(State::NoModel);
        if (!status.ok() && status.code() != Code::Cancelled) emit loadFailed(status);
        return;
    }
    m_loaded = std::move(*result);
    const ContainerInfo& info = m_loaded->engine->info();
    RecentEntry entry;
    entry.path = m_loaded->facts.folder;
    entry.name = m_loaded->facts.name;
    entry.what = QString("%1, %2 × %3 experts")
                     .arg(m_loaded->facts.weights)
                     .arg(m_loaded->facts.moeLayers)
                     .arg(m_loaded->facts.experts);
    entry.bytes = info.denseBytes + info.expertBytes;
    entry.used = QDateTime::currentDateTime();
    m_kept.recent.add(entry);
    setState(State::Ready);
    if (!m_loaded->notRecorded.ok()) emit recordingFailed(m_loaded->notRecorded);
}

// Absolute, because the recent list of a later start may have another working directory.
void EngineHost::setSessionFile(const QString& path) {
    m_sessionFile = path.isEmpty() ? path : QFileInfo(path).absoluteFilePath();
}

void EngineHost::cancelLoad() {
    if (m_load) m_load->cancel();
}

void EngineHost::close() {
    if (m_load) {
        m_load->abandon();
        m_load = nullptr;
    }
    if (m_loaded) release(std::move(m_loaded));
    m_loaded.reset();
    if (m_state != State::NoModel) setState(State::NoModel);
}

// Requests that run end with Cancelled; the threads are joined on the worker, not here.
void EngineHost::release(std::shared_ptr<Loaded> loaded) {
    rememberRun(*loaded);
    m_worker.post([this, loaded = std::move(loaded)]() mutable {
        loaded.reset();
        // The session file is complete, and smaller than while it was written.
        m_gui.post([this] { m_kept.recent.checkFiles(); });
    });
}

void EngineHost::rememberRun(const Loaded& loaded) {
    if (!loaded.recorder) return;
    if (const auto figures = loaded.tally.result()) {
        const ModelRun run{*figures, knobSummary(loaded), QDateTime::currentDateTime()};
        const Status status = m_kept.measurements.setRun(loaded.engine->info().fingerprint, run);
        if (!status.ok()) emit notSaved(status);
    }
    if (loaded.reserved.path.isEmpty()) return;
    const auto snapshot = loaded.recorder->snapshot();
    RecentEntry entry;
    entry.kind = RecentEntry::Kind::Session;
    entry.path = loaded.reserved.path;
    entry.name = loaded.facts.name;
    entry.what = "session, " + str(formatClock(snapshot->now)).section('.', 0, 0);
    entry.bytes = snapshot->sessionBytes;
    entry.used = QDateTime::currentDateTime();
    m_kept.recent.add(entry);
}

QString EngineHost::knobSummary(const Loaded& loaded) const {
    const auto effective = [&](KnobId id) { return loaded.engine->knobState(id).effective; };
    QString text = QString("cache %1").arg(effective(KnobId::ExpertCacheSize));
    text += ", " + str(knobValueText(knobRow(KnobId::CachePolicy), effective(KnobId::CachePolicy)));
    if (const int64_t limit = effective(KnobId::LinkLimit))
        text += ", link limit " + str(formatCount(limit)) + " MB/s";
    return text;
}

// ---- SessionSource

const ModelFacts* EngineHost::model() const {
    return m_loaded ? &m_loaded->facts : nullptr;
}

std::shared_ptr<const Snapshot> EngineHost::snapshot() const {
    return m_loaded ? m_loaded->recorder->snapshot() : nullptr;
}

double EngineHost::sessionTime(uint64_t monotonicNs) const {
    return m_loaded ? m_loaded->recorder->sessionTime(monotonicNs) : 0;
}

int EngineHost::activeRequests() const {
    return m_loaded ? m_loaded->engine->activeRequests() : 0;
}

MemoryNow EngineHost::memory() const {
    if (!m_memoryAge.isValid() || m_memoryAge.elapsed() > kMemoryEveryMs) {
        m_memoryAge.start();
        m_memory.used = processRss();
        const int64_t free = m_memory.free = memoryFreeNow();
        m_memory.limit = free > 0 ? m_memory.used + std::max<int64_t>(0, free - kMemoryReserve) : 0;
    }
    return m_memory;
}

KnobLimits EngineHost::knobLimits(KnobId id) const {
    if (m_loaded) return m_loaded->engine->knobLimits(id);
    const KnobRow& row = knobRow(id);
    return {row.min, row.max, std::max(row.min, row.defaultValue)};
}

KnobState EngineHost::knobState(KnobId id) const {
    if (m_loaded) return m_loaded->engine->knobState(id);
    const int64_t value = m_knobs[size_t(id)].value_or(knobLimits(id).defaultValue);
    return {value, value, {}};
}

void EngineHost::setKnob(KnobId id, int64_t value, bool final) {
    const bool same = m_loaded && m_loaded->engine->knobState(id).requested == value;
    m_knobs[size_t(id)] = value;
    if (!m_loaded) return;
    if (!final) m_loaded->recorder->hold(id);
    if (!same) {
        m_loaded->tally.restart();
        m_loaded->engine->setKnob(id, value);
    }
    if (final) m_loaded->recorder->release(id, value);
}

std::string EngineHost::knobProblem(KnobId id, int64_t value) const {
    return m_loaded ? m_loaded->engine->knobProblem(id, value) : std::string();
}

Calibration EngineHost::calibration() const {
    return m_loaded ? m_loaded->engine->calibration() : Calibration();
}

Histogram EngineHost::pooled(Pooled what, double t0, double t1) const {
    if (!m_loaded) return {};
    const Recorder& recorder = *m_loaded->recorder;
    return what == Pooled::Itl ? recorder.itlBetween(t0, t1) : recorder.expertLoadBetween(t0, t1);
}

void EngineHost::note(const QString& text) {
    if (m_loaded) m_loaded->recorder->note(text.toStdString());
}

// Keeps everything of the model alive, so that the last request is recorded too.
std::shared_ptr<Engine> EngineHost::engine() const {
    return m_loaded ? std::shared_ptr<Engine>(m_loaded, m_loaded->engine.get()) : nullptr;
}

std::shared_ptr<ChatRun> EngineHost::startChat(ChatRequest request) {
    auto run = std::make_shared<ChatRun>();
    if (!m_loaded) {
        run->fail(Status(Code::InvalidArgument, "No model is loaded", "Open a model first"));
        return run;
    }
    std::erase_if(m_loaded->runs, [](const auto& weak) { return weak.expired(); });
    m_loaded->runs.push_back(run);
    m_worker.post([loaded = m_loaded, run, request = std::move(request)] {
        ChatRun::start(run, *loaded->engine, loaded->tally, request);
    });
    return run;
}

void EngineHost::cancelChat(const std::shared_ptr<ChatRun>& run) {
    if (m_loaded) return run->cancel(*m_loaded->engine);
    run->cancel();
}

int EngineHost::countTokens(const QString& text) const {
    if (!m_loaded || !m_loaded->engine->tokenizer() || text.size() > kCountedChars) return -1;
    return int(m_loaded->engine->tokenizer()->encode(text.toStdString()).size());
}

Result<std::string> EngineHost::renderChat(const nlohmann::ordered_json& messages,
                                           const ChatOptions& options) const {
    if (!m_loaded) return Status(Code::InvalidArgument, "No model is loaded", "Open a model first");
    const auto prompt = chatPrompt(*m_loaded->engine, messages, options);
    if (!prompt) return prompt.status();
    return m_loaded->engine->tokenizer()->decode(*prompt);
}

// ---- demo

QString demoModelPath() {
    const QString own = qEnvironmentVariable("COLIBRI_DEMO_MODEL");
    if (!own.isEmpty()) return own;
    QDir dir(QCoreApplication::applicationDirPath());
    const QString installed = dir.filePath("../share/colibri-workbench/demo-model/container");
    if (QFileInfo::exists(installed + "/model.json")) return QDir::cleanPath(installed);
    // A build folder is some levels below the sources.
    for (int up = 0; up < 6; ++up) {
        const QString path = dir.filePath("resources/demo-model/container");
        if (QFileInfo::exists(path + "/model.json")) return path;
        if (!dir.cdUp()) break;
    }
    return {};
}

KnobValues demoKnobs() {
    KnobValues knobs;
    knobs[size_t(KnobId::ExpertCacheSize)] = 8;
    knobs[size_t(KnobId::LinkLimit)] = 25;
    return knobs;
}

}  // namespace colibri::ui
