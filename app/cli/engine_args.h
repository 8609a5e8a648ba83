// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the verbs that load a model: the folder, all knobs, the instruction set and the
// session file.
#pragma once

#include <memory>
#include <string>

#include "app/cli/cli.h"
#include "engine/knobs/knob_options.h"
#include "engine/runtime/engine.h"
#include "profiler/record/recorder.h"

namespace colibri::cli {

// The options --expert-cache-size N etc., made from the knob table, and --config FILE.
class KnobOptions {
public:
    void addTo(CLI::App& verb);
    // The values that were set; an option overrides the config file. Errors: BadInput (config
    // file), InvalidArgument.
    Result<KnobValues> values(const ContainerInfo& info) const;
    bool given(KnobId id) const { return m_texts[size_t(id)].has_value(); }
    void setText(KnobId id, std::string text) { m_texts[size_t(id)] = std::move(text); }

private:
    KnobTexts m_texts;
    std::string m_config;
};

struct EngineArgs {
    std::string model;
    KnobOptions knobs;
    KnobValues otherKnobs;  // of knobs that no option and no config file sets
    std::string isa;
    std::string session;
    std::string routerTable;
    bool reloadRouterTable = false;
    bool json = false;
    bool coldStart = false;  // true before addTo(): always, without an option
    bool pmSampling = false;
    // The smallest context length to choose if none is set, in tokens; 0: any.
    int64_t contextAtLeast = 0;

    // `what`: name of the argument, "DIR" or "URL|DIR".
    void addTo(CLI::App& verb, bool withSession = true, const char* what = "DIR",
               const char* about = "Model folder, written by colibri convert");
};

// A loaded engine and its recorder. Members are destroyed in reverse order, so the recorder ends
// first.
struct LoadedEngine {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Recorder> recorder;
};

// Ends a command that was refused before it did any work. Deletes the session file, so that the
// command can be repeated. Returns the exit code of `status`.
int refuse(LoadedEngine& loaded, const EngineArgs& args, const Status& status);

// Ends the recording after the results were printed. Returns `code`. If the session file is
// incomplete, reports this and returns the exit code of that error.
int endRecording(LoadedEngine& loaded, int code);

// Reports once, as soon as it is noticed, that the session file is no longer written.
class LostRecording {
public:
    void report(LoadedEngine& loaded);

private:
    bool m_reported = false;
};

// The error of a model that lacks what `chat` and text prompts need: "tokenizer" or "chat
// template".
Status missingText(const Engine& engine, const std::string& what, const std::string& hint);

// Loads a model, with progress on standard error and to `listener`. Ctrl-C cancels. Reports the
// knobs whose effective value differs from the requested one.
Result<LoadedEngine> loadEngine(const EngineArgs& args, const ProgressFn& listener = {});

// The "knobs" object of bench and load: effective values.
Json knobsJson(const Engine& engine);
// The "router" object of generate and bench; null without a router table.
Json routerJson(const Engine& engine);
// "router table: 71.3 % of 1,062 choices agree with the gate (router_mode exact)". "" if the router
// table neither replaces the router nor predicts experts for prefetching.
std::string routerLine(const Engine& engine);

// The "experts" object of generate and bench.
Json expertsJson(const StoreStats& stats, const Histogram& loads);

}  // namespace colibri::cli
