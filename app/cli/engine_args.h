// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the verbs that load a model: the folder, every knob of the table, the instruction set
// and the session file.
#pragma once

#include <memory>
#include <string>

#include "app/cli/cli.h"
#include "engine/knobs/knob_options.h"
#include "engine/runtime/engine.h"
#include "profiler/record/recorder.h"

namespace colibri::cli {

// --expert-cache-size N and so on, made from the knob table, and --config FILE below them.
class KnobOptions {
public:
    void addTo(CLI::App& verb);
    // Options over config file; unset ones stay unset. Errors: BadInput (config), InvalidArgument.
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
    std::string isa;
    std::string session;
    std::string routerTable;
    bool reloadRouterTable = false;
    bool json = false;
    bool coldStart = false;
    // Tokens the context must hold where no context length is asked for; 0: any.
    int64_t contextAtLeast = 0;

    // `what`: the name of the argument, "DIR" or "URL|DIR".
    void addTo(CLI::App& verb, bool withSession = true, const char* what = "DIR",
               const char* about = "Model folder, written by colibri convert");
};

// A loaded engine and what watches it. Members end in reverse order: the recorder first.
struct LoadedEngine {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Recorder> recorder;
};

// Ends with `status` what was refused before any work: no session file stays behind, so that the
// same command can be given again.
int refuse(LoadedEngine& loaded, const EngineArgs& args, const Status& status);

// Ends the recording once the results are told. Gives `code`, or says that the session was not kept
// whole and gives the exit code of that.
int endRecording(LoadedEngine& loaded, int code);

// Tells once, as soon as it is known, that the session file is no longer written: who goes on may
// want to begin anew.
class LostRecording {
public:
    void tell(LoadedEngine& loaded);

private:
    bool m_told = false;
};

// What `chat` and text prompts need and the model lacks: "tokenizer", "chat template".
Status missingText(const Engine& engine, const std::string& what, const std::string& hint);

// Loads with progress on standard error, and to `listener`; Ctrl-C cancels. Knobs whose effective
// value differs are told.
Result<LoadedEngine> loadEngine(const EngineArgs& args, const ProgressFn& listener = {});

// The "knobs" object of bench and load: the values in force.
Json knobsJson(const Engine& engine);
// The "router" object of generate and bench: null without a router table.
Json routerJson(const Engine& engine);
// "router table: 71.3 % of 1,062 choices agree with the gate (router_mode exact)"; "" while no
// table is in use: neither computed with nor read ahead by.
std::string routerLine(const Engine& engine);

// The "experts" object of generate and bench.
Json expertsJson(const StoreStats& stats, const Histogram& loads);

}  // namespace colibri::cli
