// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/engine_args.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/format.h"
#include "engine/convert/loadable_model.h"
#include "engine/knobs/knob_config.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_writer.h"

namespace colibri::cli {

namespace {

std::optional<Isa> isaFromName(const std::string& name) {
    if (name == "scalar") return Isa::Scalar;
    if (name == "avx2") return Isa::Avx2;
    if (name == "avx512") return Isa::Avx512;
    return std::nullopt;
}

void reportKnobs(const Engine& engine) {
    for (const KnobRow& row : knobTable()) {
        const KnobState s = engine.knobState(row.id);
        if (s.requested == s.effective) continue;
        message(std::string(row.name) + ": requested " + knobValueText(row, s.requested) +
                ", effective " + knobValueText(row, s.effective) +
                (s.reason.empty() ? "" : ": " + s.reason));
    }
}

}  // namespace

void KnobOptions::addTo(CLI::App& verb) {
    for (const KnobOption& option : knobOptions()) {
        verb.add_option("--" + option.name, m_texts[size_t(option.id)], option.help)
            ->type_name(option.type)
            ->group("Knobs");
    }
    verb.add_option("--config", m_config,
                    "Knobs from a JSON file, as the workbench exports it; an option on the command "
                    "line overrides the file")
        ->type_name("FILE")
        ->group("Knobs");
}

Result<KnobValues> KnobOptions::values(const ContainerInfo& info) const {
    KnobValues values;
    if (!m_config.empty()) {
        const Result<KnobValues> fromFile = knobsFromFile(m_config);
        if (!fromFile.ok()) return fromFile.status();
        values = *fromFile;
    }
    const Result<KnobValues> given =
        knobsFromOptions(m_texts, [&](KnobId id) { return knobLimitsFor(id, info); });
    if (!given.ok()) return given.status();
    for (size_t i = 0; i < given->size(); ++i) {
        if ((*given)[i]) values[i] = (*given)[i];
    }
    return values;
}

void EngineArgs::addTo(CLI::App& verb, bool withSession, const char* what, const char* about) {
    verb.add_option(what, model, about)->required();
    verb.add_flag("--json", json, "One JSON object on standard output");
    verb.add_option("--isa", isa, "Instruction set: scalar, avx2, avx512 (default: the best)")
        ->check(CLI::IsMember({"scalar", "avx2", "avx512"}));
    if (!coldStart) {
        verb.add_flag(
            "--cold-start", coldStart,
            "Do not preload the experts of earlier runs, and do not save those of this run");
    }
    verb.add_option("--router-table", routerTable,
                    "Router table to use instead of the model's router_table.bin")
        ->type_name("FILE");
    verb.add_flag("--reload-on-change", reloadRouterTable,
                  "Reload the router table when its file is replaced");
    if (withSession) {
        verb.add_option("--session", session, "Record a session file")->type_name("FILE");
        verb.add_flag("--pm-sampling", pmSampling,
                      "Record precise GPU counters; locks the GPU's clocks");
    }
    knobs.addTo(verb);
}

Result<LoadedEngine> loadEngine(const EngineArgs& args, const ProgressFn& listener) {
    if (!args.session.empty()) COLIBRI_TRY(SessionWriter::check(args.session));
    ProgressLine progress;
    const ProgressFn show = [&](const Progress& p) {
        progress.show(p);
        if (listener) listener(p);
    };
    Result<std::filesystem::path> model = loadableModel(args.model, show, &interrupted());
    progress.finish();
    if (!model.ok()) return model.status();
    Result<ContainerInfo> info = openContainer(*model);
    if (!info.ok()) return info.status();
    Result<KnobValues> values = args.knobs.values(*info);
    if (!values.ok()) return values.status();
    for (size_t i = 0; i < values->size(); ++i) {
        if (!(*values)[i]) (*values)[i] = args.otherKnobs[i];
    }
    std::optional<int64_t>& context = (*values)[size_t(KnobId::ContextLength)];
    if (!context && args.contextAtLeast > 0) {
        const KnobLimits limits = knobLimitsFor(KnobId::ContextLength, *info);
        context =
            std::clamp(std::max(limits.defaultValue, args.contextAtLeast), limits.min, limits.max);
    }
    EngineOptions options{*model, *values, isaFromName(args.isa), args.routerTable,
                          args.reloadRouterTable};
    options.warmStart = !args.coldStart;
    options.calibrate = true;
    Result<std::unique_ptr<Engine>> engine = Engine::load(options, show, &interrupted());
    progress.finish();
    if (!engine.ok()) return engine.status();
    LoadedEngine loaded;
    loaded.engine = std::move(*engine);
    Result<std::unique_ptr<Recorder>> recorder = Recorder::start(
        *loaded.engine, {.sessionFile = args.session, .pmSampling = args.pmSampling});
    if (!recorder.ok()) return recorder.status();
    loaded.recorder = std::move(*recorder);
    if (const Status refused = loaded.recorder->pmSampling(); !refused.ok())
        message("no precise GPU counters: " + refused.text());
    reportKnobs(*loaded.engine);
    if (const std::string warning = loaded.engine->store().warning(); !warning.empty())
        message(warning);
    return loaded;
}

int refuse(LoadedEngine& loaded, const EngineArgs& args, const Status& status) {
    loaded.recorder.reset();
    if (!args.session.empty()) removeSession(args.session);
    return fail(status);
}

int endRecording(LoadedEngine& loaded, int code) {
    const Status recorded = loaded.recorder->finish();
    if (recorded.ok()) return code;
    return fail({recorded.code(),
                 "the results are complete, but the session was not saved: " + recorded.message(),
                 recorded.hint()});
}

void LostRecording::report(LoadedEngine& loaded) {
    const std::string error = loaded.recorder->snapshot()->sessionError;
    if (error.empty() || std::exchange(m_reported, true)) return;
    message("Recording stopped: " + error);
}

Status missingText(const Engine& engine, const std::string& what, const std::string& hint) {
    const std::string& reason = engine.textReason();
    return {Code::Unsupported,
            reason.empty() ? "this model has no " + what
                           : "the " + what + " of this model cannot be used: " + reason,
            hint};
}

Json knobsJson(const Engine& engine) {
    Json knobs;
    for (const KnobRow& row : knobTable()) {
        const int64_t value = engine.knobState(row.id).effective;
        knobs[row.name] = row.choices.empty() ? Json(value) : Json(knobValueText(row, value));
    }
    return knobs;
}

Json routerJson(const Engine& engine) {
    const RouterStats s = engine.routerStats();
    if (!s.table) return nullptr;
    const KnobRow& row = knobRow(KnobId::RouterMode);
    return {{"mode", knobValueText(row, engine.knobState(row.id).effective)},
            {"compared", s.compared},
            {"agreed", s.agreed},
            {"agreement", jsonNumber(s.agreement())},
            {"reloads", s.reloads},
            {"notice", s.notice.empty() ? Json(nullptr) : Json(s.notice)}};
}

std::string routerLine(const Engine& engine) {
    const RouterStats s = engine.routerStats();
    const bool used =
        engine.knobState(KnobId::RouterMode).effective == int64_t(RouterMode::Table) ||
        engine.knobState(KnobId::PrefetchSource).requested == int64_t(PrefetchSource::RouterTable);
    if (!s.table || !used) return {};
    const KnobRow& row = knobRow(KnobId::RouterMode);
    return "router table: " + formatPercent(s.agreement()) + " of " +
           formatCount(int64_t(s.compared)) + " choices agree with the gate (router_mode " +
           knobValueText(row, engine.knobState(row.id).effective) + ")" +
           (s.notice.empty() ? "" : "; " + s.notice);
}

Json expertsJson(const StoreStats& s, const Histogram& loads) {
    return {{"lookups", s.lookups},
            {"hits", s.hits},
            {"misses", s.lookups - s.hits},
            {"hit_rate", s.lookups ? Json(double(s.hits) / double(s.lookups)) : Json(nullptr)},
            {"prefetch_issued", s.prefetchIssued},
            {"prefetch_useful", s.prefetchUseful},
            {"prefetch_late", s.prefetchLate},
            {"prefetch_wasted", s.prefetchWasted},
            {"demand_loads", s.demandReads},
            {"prefetch_loads", s.prefetchReads},
            {"evictions", s.evictions},
            {"bytes_loaded", s.bytesRead},
            {"stall_ms", double(s.stallNs) * 1e-6},
            {"memory_stall_ms", double(s.freshStallNs) * 1e-6},
            {"fresh_loads", s.freshReads},
            {"load_ms",
             {{"p50", jsonNumber(loads.quantile(0.5) * 1e-6)},
              {"p99", jsonNumber(loads.quantile(0.99) * 1e-6)},
              {"n", loads.count()}}}};
}

}  // namespace colibri::cli
