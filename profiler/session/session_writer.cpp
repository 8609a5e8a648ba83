// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

#include "engine/base/file.h"
#include "engine/base/printable.h"
#include "engine/telemetry/gpu_scope.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_thinning.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

// Times t are seconds since the session began; durations are ns. resources/help/session-file.md
// documents the schema, and a test compares it with this text.
constexpr const char* kSchemaSql = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE knobs(t REAL, name TEXT, requested TEXT, effective TEXT, reason TEXT);
CREATE TABLE threads(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE requests(id INTEGER PRIMARY KEY, arrived REAL, admitted REAL, first_token REAL,
  done REAL, prompt_tokens INTEGER, cached_tokens INTEGER, generated INTEGER, stop TEXT,
  preemptions INTEGER, recomputed_tokens INTEGER, preempted_ns INTEGER, joined TEXT);
CREATE TABLE prompts(request INTEGER, first INTEGER, tokens BLOB);
CREATE TABLE tokens(t REAL, request INTEGER, idx INTEGER, token INTEGER, step_ns INTEGER,
  gap_ns INTEGER, stall_ns INTEGER, lookups INTEGER, hits INTEGER, preempted_ns INTEGER,
  memory_stall_ns INTEGER, step INTEGER);
CREATE TABLE steps(id INTEGER PRIMARY KEY, t REAL, rows INTEGER, prefill_rows INTEGER,
  requests INTEGER, total_ns INTEGER, since_last_ns INTEGER, attention_ns INTEGER,
  router_ns INTEGER, experts_ns INTEGER, dense_ns INTEGER, head_ns INTEGER, sample_ns INTEGER,
  stall_slot_ns INTEGER, stall_disk_ns INTEGER, stall_link_ns INTEGER, stall_memory_ns INTEGER,
  stall_prefetch_ns INTEGER, off_cpu_ns INTEGER, minor_faults INTEGER, major_faults INTEGER);
CREATE TABLE step_requests(step INTEGER, request INTEGER, rows INTEGER, prefill INTEGER);
CREATE TABLE layer_steps(t REAL, layer INTEGER, rows INTEGER, prefill INTEGER, router_ns INTEGER,
  wait_ns INTEGER, compute_ns INTEGER, lookups INTEGER, hits INTEGER, prefetched INTEGER,
  routing BLOB, step INTEGER);
CREATE TABLE loads(t REAL, layer INTEGER, expert INTEGER, reason TEXT, bytes INTEGER,
  queue_ns INTEGER, read_ns INTEGER, need_ns INTEGER, failed INTEGER, late INTEGER,
  link_ns INTEGER, step INTEGER, thread INTEGER);
CREATE TABLE evictions(t REAL, layer INTEGER, expert INTEGER, resident_ns INTEGER, uses INTEGER);
CREATE TABLE prefetches(t REAL, source TEXT, issued INTEGER, useful INTEGER, late INTEGER,
  wasted INTEGER, cancelled INTEGER);
CREATE TABLE samples(t REAL, series TEXT, value REAL);
CREATE TABLE gpu_spans(t REAL, duration_ns INTEGER, name TEXT, kind TEXT, bytes INTEGER,
  device INTEGER, stream INTEGER, correlation INTEGER, step INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE marks(t REAL, kind TEXT, label TEXT);
)sql";

// Shares of the size limit at which detail is thinned, and at which tokens are thinned too.
constexpr double kThinDetailAt = 0.85, kThinTokensAt = 0.92;

const char* reasonName(ReadReason reason) {
    switch (reason) {
        case ReadReason::Demand:
            return "demand";
        case ReadReason::Prefetch:
            return "prefetch";
        case ReadReason::WarmStart:
            return "warm_start";
    }
    return "demand";
}

const char* joinName(JoinReason reason) {
    return reason == JoinReason::BatchFull ? "full" : "timeout";
}

std::string wallClock() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

}  // namespace

struct SessionWriter::Impl {
    SqliteDb db;
    std::string path;
    int64_t mostBytes = 0;  // 0: no limit
    bool failed = false, finished = false;
    // What was written, for a summary that needs no scan.
    int64_t requests = 0, tokens = 0, reads = 0, lookups = 0, hits = 0;
    double lastTime = 0;
    SqliteStatement meta, knob, thread, arrived, prompt, admitted, firstToken, preempted, done,
        token, step, stepRequest, layerStep, read, eviction, prefetch, sample, gpu, mark;
    std::array<SqliteStatement*, 19> statements{
        &meta,      &knob,     &thread, &arrived, &prompt,      &admitted,  &firstToken,
        &preempted, &done,     &token,  &step,    &stepRequest, &layerStep, &read,
        &eviction,  &prefetch, &sample, &gpu,     &mark};
    // The layer step that is being collected. Its rows arrive as one event each.
    struct Pending {
        bool open = false;
        double t = 0;
        LayerStepEvent lead{};
        int64_t lookups = 0, hits = 0, prefetched = 0;
        std::vector<uint8_t> routing;
    } pending;

    Status exec(const char* sql) {
        const int result = sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr);
        return result == SQLITE_OK ? Status() : sqliteError(db.get(), result, path);
    }

    Status open(const std::vector<std::pair<std::string, std::string>>& entries) {
        sqlite3* handle = nullptr;
        const int result = sqlite3_open_v2(plainFileName(path).c_str(), &handle,
                                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
        db.reset(handle);
        if (result != SQLITE_OK) return sqliteError(handle, result, path);
        COLIBRI_TRY(exec("PRAGMA journal_mode=WAL"));
        COLIBRI_TRY(exec("PRAGMA synchronous=NORMAL"));
        COLIBRI_TRY(exec("BEGIN"));
        COLIBRI_TRY(exec(kSchemaSql));
        COLIBRI_TRY(exec(kThinningSchemaSql));
        COLIBRI_TRY(prepareAll());
        COLIBRI_TRY(setMeta("schema", std::to_string(kSessionSchema)));
        COLIBRI_TRY(setMeta("started", wallClock()));
        for (const auto& [key, value] : entries) COLIBRI_TRY(setMeta(key, value));
        COLIBRI_TRY(exec("COMMIT"));
        return exec("BEGIN");
    }

    Status prepareAll() {
        const auto prepare = [&](SqliteStatement& statement, const char* sql) {
            return statement.prepare(db.get(), sql, path);
        };
        COLIBRI_TRY(prepare(meta, "INSERT OR REPLACE INTO meta VALUES(?,?)"));
        COLIBRI_TRY(prepare(knob, "INSERT INTO knobs VALUES(?,?,?,?,?)"));
        COLIBRI_TRY(prepare(arrived,
                            "INSERT OR IGNORE INTO requests(id, arrived, prompt_tokens) "
                            "VALUES(?,?,?)"));
        COLIBRI_TRY(prepare(
            admitted, "UPDATE requests SET admitted=?, cached_tokens=?, joined=? WHERE id=?"));
        COLIBRI_TRY(prepare(thread, "INSERT OR REPLACE INTO threads VALUES(?,?)"));
        COLIBRI_TRY(prepare(prompt, "INSERT INTO prompts VALUES(?,?,?)"));
        COLIBRI_TRY(prepare(firstToken, "UPDATE requests SET first_token=? WHERE id=?"));
        COLIBRI_TRY(prepare(preempted, "UPDATE requests SET preemptions=? WHERE id=?"));
        // More tokens can be found in the KV cache after the admission. The count stays unknown for
        // a request that was never admitted.
        COLIBRI_TRY(prepare(done,
                            "UPDATE requests SET done=?, generated=?, stop=?, "
                            "cached_tokens=max(cached_tokens, ?), preemptions=?, "
                            "recomputed_tokens=?, preempted_ns=? WHERE id=?"));
        COLIBRI_TRY(prepare(token, "INSERT INTO tokens VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"));
        COLIBRI_TRY(prepare(step,
                            "INSERT OR REPLACE INTO steps "
                            "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
        COLIBRI_TRY(prepare(stepRequest, "INSERT INTO step_requests VALUES(?,?,?,?)"));
        COLIBRI_TRY(prepare(eviction, "INSERT INTO evictions VALUES(?,?,?,?,?)"));
        COLIBRI_TRY(prepare(prefetch, "INSERT INTO prefetches VALUES(?,?,?,?,?,?,?)"));
        COLIBRI_TRY(prepare(layerStep, "INSERT INTO layer_steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"));
        COLIBRI_TRY(prepare(read, "INSERT INTO loads VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"));
        COLIBRI_TRY(prepare(sample, "INSERT INTO samples VALUES(?,?,?)"));
        COLIBRI_TRY(prepare(gpu, "INSERT INTO gpu_spans VALUES(?,?,?,?,?,?,?,?,?,?,?)"));
        return prepare(mark, "INSERT INTO marks VALUES(?,?,?)");
    }

    Status setMeta(std::string_view key, std::string_view value) {
        return meta.bind(key).bind(value).run();
    }

    Status setTotals() {
        COLIBRI_TRY(setMeta("requests", std::to_string(requests)));
        COLIBRI_TRY(setMeta("tokens", std::to_string(tokens)));
        COLIBRI_TRY(setMeta("reads", std::to_string(reads)));
        COLIBRI_TRY(setMeta("lookups", std::to_string(lookups)));
        COLIBRI_TRY(setMeta("hits", std::to_string(hits)));
        char duration[32];
        std::snprintf(duration, sizeof duration, "%.9f", lastTime);
        return setMeta("duration", duration);
    }

    Status flushLayerStep() {
        if (!pending.open) return {};
        pending.open = false;
        lookups += pending.lookups;
        hits += pending.hits;
        const LayerStepEvent& lead = pending.lead;
        return layerStep.bind(pending.t)
            .bind(int64_t(lead.layer))
            .bind(int64_t(lead.rows))
            .bind(int64_t(lead.prefill))
            .bind(int64_t(lead.routerNs))
            .bind(int64_t(lead.waitNs))
            .bind(int64_t(lead.computeNs))
            .bind(pending.lookups)
            .bind(pending.hits)
            .bind(pending.prefetched)
            .bindBlob(pending.routing)
            .bind(int64_t(lead.step))
            .run();
    }

    // Routing blob, little endian, one entry per row event: u64 request, u32 position, u8 count,
    // then for each expert u16 id and u8 bits (1: first of the step, 2: hit, 4: by prefetch).
    Status addLayerStep(const LayerStepEvent& step, double t) {
        if (step.firstRow || !pending.open) {
            COLIBRI_TRY(flushLayerStep());
            pending = {.open = true, .t = t, .lead = step};
        }
        const auto put = [&](auto value) {
            for (size_t i = 0; i < sizeof value; ++i) {
                pending.routing.push_back(uint8_t(uint64_t(value) >> (8 * i)));
            }
        };
        put(step.request);
        put(step.position);
        const int count = std::min<int>(step.count, kEventExperts);
        put(uint8_t(count));
        for (int i = 0; i < count; ++i) {
            const unsigned first = step.firstBits >> i & 1, hit = step.hitBits >> i & 1;
            const unsigned prefetch = step.prefetchBits >> i & 1;
            put(step.experts[i]);
            put(uint8_t(first | hit << 1 | prefetch << 2));
            pending.lookups += first;
            pending.hits += first & hit;
            pending.prefetched += first & hit & prefetch;
        }
        return {};
    }

    Status addRequest(const Event& event, double t) {
        const RequestEvent& request = event.request;
        const int64_t id = int64_t(request.request);
        switch (event.type) {
            case EventType::RequestArrived:
                ++requests;
                return arrived.bind(id).bind(t).bind(int64_t(request.promptTokens)).run();
            case EventType::RequestAdmitted:
                return admitted.bind(t)
                    .bind(int64_t(request.cachedTokens))
                    .bind(std::string_view(joinName(request.joined)))
                    .bind(id)
                    .run();
            case EventType::RequestFirstToken:
                return firstToken.bind(t).bind(id).run();
            case EventType::RequestPreempted:
                return preempted.bind(int64_t(request.preemptions)).bind(id).run();
            case EventType::RequestResumed:
                return {};
            default:
                return done.bind(t)
                    .bind(int64_t(request.generated))
                    .bind(std::string_view(stopReasonName(request.stop)))
                    .bind(int64_t(request.cachedTokens))
                    .bind(int64_t(request.preemptions))
                    .bind(int64_t(request.recomputed))
                    .bind(int64_t(request.preemptedNs))
                    .bind(id)
                    .run();
        }
    }

    // Numbers, in the order of the columns.
    template <typename... Values>
    static SqliteStatement& bindAll(SqliteStatement& statement, Values... values) {
        (statement.bind(int64_t(values)), ...);
        return statement;
    }

    Status addToken(const TokenEvent& e, double t) {
        ++tokens;
        return bindAll(token.bind(t), e.request, e.index, e.token, e.stepNs, e.gapNs, e.stallNs,
                       e.lookups, e.hits, e.preemptedNs, e.memoryStallNs, e.step)
            .run();
    }

    Status addPrompt(const PromptEvent& e) {
        const int count = std::min<int>(e.count, kEventTokens);
        std::vector<uint8_t> bytes;
        for (int i = 0; i < count; ++i)
            for (int byte = 0; byte < 4; ++byte)
                bytes.push_back(uint8_t(uint32_t(e.tokens[i]) >> (8 * byte)));
        return bindAll(prompt, e.request, e.first).bindBlob(bytes).run();
    }

    Status addStep(const StepEvent& e, double t) {
        bindAll(step, e.step).bind(t);
        bindAll(step, e.rows, e.prefillRows, e.requests, e.totalNs, e.sinceLastNs, e.attentionNs,
                e.routerNs, e.expertsNs, e.denseNs, e.headNs, e.sampleNs);
        return bindAll(step, e.stallSlotNs, e.stallDiskNs, e.stallLinkNs, e.stallMemoryNs,
                       e.stallPrefetchNs, e.offCpuNs, e.minorFaults, e.majorFaults)
            .run();
    }

    Status addMark(double t, std::string_view kind, std::string_view label) {
        return mark.bind(t).bind(kind).bind(label).run();
    }

    // Thins the file when it is nearly full. What was freed is used again by the next records.
    Status keepWithinSize() {
        if (mostBytes <= 0) return {};
        const auto used = usedBytes(db.get(), path);
        if (!used) return used.status();
        const double full = double(*used) / double(mostBytes);
        if (full < kThinDetailAt) return {};
        return thinOldest(db.get(), path, full >= kThinTokensAt);
    }

    Status commit() {
        COLIBRI_TRY(flushLayerStep());
        COLIBRI_TRY(keepWithinSize());
        COLIBRI_TRY(exec("COMMIT"));
        return exec("BEGIN");
    }

    // Remembers a failure, after which the session is not marked as ended.
    Status noted(Status status) {
        failed |= !status.ok();
        return status;
    }
    Status write(const Event& event, double t);
    Status addSamples(const Snapshot& snapshot, double t);
    Status addGpuSpan(const GpuSpan& span, double t);

    Status addKnob(const KnobEvent& event, double t) {
        if (event.knob >= kKnobCount) return {};
        const KnobRow& row = knobRow(KnobId(event.knob));
        const size_t length = strnlen(event.reason, sizeof event.reason);
        return knob.bind(t)
            .bind(std::string_view(row.name))
            .bind(knobValueText(row, event.requested))
            .bind(knobValueText(row, event.effective))
            .bind(std::string_view(event.reason, length))
            .run();
    }
};

SessionWriter::SessionWriter() : m_impl(std::make_unique<Impl>()) {}

namespace {

// Also checks the names of the companions, which SQLite creates and removes with the file.
Status checkUnused(const std::filesystem::path& path) {
    std::error_code error;
    for (const std::filesystem::path& taken : sessionFiles(path)) {
        if (!std::filesystem::exists(std::filesystem::symlink_status(taken, error))) continue;
        return Status(Code::InvalidArgument,
                      "session file " + printable(taken.string()) + " exists",
                      "Choose another name; sessions are never overwritten");
    }
    return {};
}

}  // namespace

Status SessionWriter::check(const std::filesystem::path& path) {
    COLIBRI_TRY(checkUnused(path));
    std::error_code error;
    std::filesystem::path made = path,
                          folder = std::filesystem::absolute(path, error).parent_path();
    while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
        made = folder;
        folder = folder.parent_path();
    }
    // Only an attempt shows this: the system may refuse for other reasons than permissions.
    const bool isFile = made == path;
    const int fd =
        isFile ? ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (isFile ? fd < 0 : ::mkdir(made.c_str(), 0700) != 0) {
        return systemError("cannot create", made, errno);
    }
    if (fd >= 0) ::close(fd);
    std::filesystem::remove(made, error);
    return {};
}

Result<std::unique_ptr<SessionWriter>> SessionWriter::create(
    const std::filesystem::path& path, const std::vector<std::pair<std::string, std::string>>& meta,
    int64_t mostBytes) {
    COLIBRI_TRY(checkUnused(path));
    std::error_code error;
    if (path.has_parent_path()) {
        std::filesystem::create_directories(path.parent_path(), error);
        if (error) return systemError("cannot create", path.parent_path(), error.value());
    }
    auto writer = std::unique_ptr<SessionWriter>(new SessionWriter);
    writer->m_impl->path = path.string();
    writer->m_impl->mostBytes = mostBytes;
    if (Status status = writer->m_impl->open(meta); !status.ok()) {
        writer->m_impl.reset();
        removeSession(path);
        return status;
    }
    return writer;
}

SessionWriter::~SessionWriter() {
    if (m_impl && m_impl->db) (void)finish();  // a failure only loses the mark of a clean end
}

Status SessionWriter::finish() {
    if (m_impl->failed || m_impl->finished) return {};
    m_impl->finished = true;
    COLIBRI_TRY(m_impl->flushLayerStep());
    COLIBRI_TRY(m_impl->setTotals());
    COLIBRI_TRY(m_impl->setMeta("ended", wallClock()));
    COLIBRI_TRY(m_impl->exec("COMMIT"));
    for (SqliteStatement* statement : m_impl->statements) *statement = SqliteStatement();
    return leaveWal(m_impl->db.get(), m_impl->path);
}

Status SessionWriter::thread(int64_t number, const std::string& name) {
    return m_impl->noted(m_impl->thread.bind(number).bind(std::string_view(name)).run());
}

Status SessionWriter::write(const Event& event, double t) {
    return m_impl->noted(m_impl->write(event, t));
}

Status SessionWriter::Impl::write(const Event& event, double t) {
    lastTime = std::max(lastTime, t);
    switch (event.type) {
        case EventType::RequestArrived:
        case EventType::RequestAdmitted:
        case EventType::RequestFirstToken:
        case EventType::RequestDone:
        case EventType::RequestPreempted:
        case EventType::RequestResumed:
            return addRequest(event, t);
        case EventType::Token:
            return addToken(event.token, t);
        case EventType::Step:
            return addStep(event.step, t);
        case EventType::StepMember: {
            const StepMemberEvent& e = event.stepMember;
            return bindAll(stepRequest, e.step, e.request, e.rows, e.prefill).run();
        }
        case EventType::Prompt:
            return addPrompt(event.prompt);
        case EventType::LayerStep:
            return addLayerStep(event.layerStep, t);
        case EventType::ExpertRead: {
            const ExpertReadEvent& e = event.expertRead;
            ++reads;
            bindAll(read.bind(t), e.layer, e.expert).bind(std::string_view(reasonName(e.reason)));
            bindAll(read, e.bytes, e.queueNs, e.readNs, e.needNs, e.failed, e.late, e.linkNs);
            return (e.step ? read.bind(int64_t(e.step)) : read.bind(NAN))  // NULL
                .bind(int64_t(event.thread))
                .run();
        }
        case EventType::KnobChanged:
            return addKnob(event.knob, t);
        case EventType::Note:
            return addMark(t, "note",
                           {event.note.text, strnlen(event.note.text, sizeof event.note.text)});
        case EventType::Eviction: {
            const EvictionEvent& e = event.eviction;
            return bindAll(eviction.bind(t), e.layer, e.expert, e.residentNs, e.uses).run();
        }
        case EventType::PrefetchOutcome: {
            const PrefetchEvent& e = event.prefetch;
            const KnobRow& row = knobRow(KnobId::PrefetchSource);
            prefetch.bind(t).bind(knobValueText(row, e.source));
            return bindAll(prefetch, e.issued, e.useful, e.late, e.wasted, e.cancelled).run();
        }
        case EventType::BatchFormed:  // the rows of steps say the same
            return {};
    }
    return {};
}

Status SessionWriter::gpuSpan(const GpuSpan& span, double t) {
    return m_impl->noted(m_impl->addGpuSpan(span, t));
}

// Step, layer and stage are NULL for work that was launched outside any GpuScope.
Status SessionWriter::Impl::addGpuSpan(const GpuSpan& span, double t) {
    lastTime = std::max(lastTime, t);
    gpu.bind(t).bind(int64_t(span.durationNs)).bind(span.name);
    gpu.bind(std::string_view(gpuSpanKindName(span.kind)));
    bindAll(gpu, span.bytes, span.device, span.stream, span.correlation);
    if (span.work == 0) return gpu.bind(NAN).bind(NAN).bind(NAN).run();
    const GpuWork work = gpuWorkOf(span.work);
    return bindAll(gpu, work.step, work.layer)
        .bind(std::string_view(gpuStageName(work.stage)))
        .run();
}

Status SessionWriter::mark(double t, const std::string& kind, const std::string& label) {
    return m_impl->noted(m_impl->addMark(t, kind, label));
}

Status SessionWriter::sample(const Snapshot& snapshot, double t) {
    return m_impl->noted(m_impl->addSamples(snapshot, t));
}

Status SessionWriter::Impl::addSamples(const Snapshot& snapshot, double t) {
    lastTime = std::max(lastTime, t);
    for (int i = 0; i < kSeriesCount; ++i) {
        const SeriesData& series = snapshot.series[size_t(i)];
        if (series.y.empty() || std::isnan(series.y.back())) continue;
        COLIBRI_TRY(sample.bind(t)
                        .bind(std::string_view(metricRow(SeriesId(i)).label))
                        .bind(series.y.back())
                        .run());
    }
    return {};
}

Status SessionWriter::commit() {
    return m_impl->noted(m_impl->commit());
}

int64_t SessionWriter::fileBytes() const {
    return sessionBytes(m_impl->path);
}

}  // namespace colibri
