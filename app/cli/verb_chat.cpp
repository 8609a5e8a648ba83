// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include "app/cli/line_reader.h"
#include "app/cli/sampling_args.h"
#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/runtime/run_request.h"
#include "engine/text/reply_parts.h"
#include "profiler/metrics/effect.h"

namespace colibri::cli {

namespace {

constexpr const char* kHelp =
    "/set KNOB VALUE   change a knob, e.g. /set expert_cache_size 12\n"
    "/knobs            all knobs: effective value, range\n"
    "/stats            expert cache since the model was loaded, measured effects of /set\n"
    "/system TEXT      set the system message and restart the conversation\n"
    "/clear            restart the conversation\n"
    "/help             show this help\n"
    "/quit             end the chat (as does Ctrl-D)\n"
    "Ctrl-C stops a reply.";

struct ChatArgs {
    EngineArgs engine;
    SamplingArgs sampling;
    ChatOptionArgs chat;
    std::string system;
    int figuresEvery = 0;  // tokens; 0: only at the end of a reply
};

// Prints a line of metrics every N tokens of a reply.
class Figures {
public:
    explicit Figures(int every) : m_every(every) {}

    void add(const GeneratedToken& token) {
        if (token.gapNs == 0) return;  // the first token waits for the prompt
        ++m_tokens;
        m_gapsNs += token.gapNs;
        m_stallNs += token.stallNs;
        m_lookups += token.lookups;
        m_hits += token.hits;
        if (m_every == 0 || (token.index + 1) % uint32_t(m_every) != 0) return;
        const double nan = std::numeric_limits<double>::quiet_NaN();
        message("\n  [token " + formatCount(token.index + 1) + "  " +
                formatSig(double(m_tokens) * 1e9 / double(m_gapsNs)) + " tok/s  hit rate " +
                formatPercent(m_lookups ? double(m_hits) / m_lookups : nan) +
                "  waiting for experts " + formatPercent(double(m_stallNs) / double(m_gapsNs), 0) +
                "]");
        *this = Figures(m_every);
    }

private:
    int m_every, m_tokens = 0;
    uint64_t m_gapsNs = 0, m_stallNs = 0;
    uint32_t m_lookups = 0, m_hits = 0;
};

constexpr const char* kCommands[] = {"/set",   "/knobs", "/stats", "/system",
                                     "/clear", "/help",  "/quit",  "/exit"};

// Splits a line into its first word and the rest, both without surrounding white space.
std::pair<std::string, std::string> cutWord(std::string_view line) {
    constexpr std::string_view kSpace = " \t\r";
    const size_t first = std::min(line.find_first_not_of(kSpace), line.size());
    line = line.substr(first, line.find_last_not_of(kSpace) + 1 - first);
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    const size_t rest = std::min(line.find_first_not_of(kSpace, word.size()), line.size());
    return {std::string(word), std::string(line.substr(rest))};
}

// Completions for Tab: commands; after /set knob names, then the names of the knob's values.
std::vector<std::string> candidates(const std::string& before) {
    std::vector<std::string> all;
    const size_t at = before.find_last_of(' ') + 1;
    const auto [command, rest] = cutWord(before.substr(0, at));
    if (at == 0) {
        all.assign(std::begin(kCommands), std::end(kCommands));
    } else if (command == "/set" && rest.empty()) {
        for (const KnobRow& row : knobTable()) all.emplace_back(row.name);
    } else if (const KnobRow* row = command == "/set" ? findKnob(rest) : nullptr) {
        all.assign(row->choices.begin(), row->choices.end());
    }
    const std::string word = before.substr(at);
    std::erase_if(all, [&](const std::string& one) { return !one.starts_with(word); });
    return all;
}

class Chat {
public:
    Chat(const ChatArgs& args, ChatOptions options, LoadedEngine& loaded)
        : m_args(args), m_options(std::move(options)), m_loaded(loaded), m_engine(*loaded.engine) {
        clear(args.system);
    }

    int run() {
        const bool terminal = isatty(STDIN_FILENO);
        if (terminal) message(m_engine.info().config.name + ". Type /help for commands.");
        LineReader lines(candidates);
        int interruptions = 0;
        for (;;) {
            std::string line;
            const LineReader::Got got = lines.read(line);
            if (got == LineReader::Got::Interrupted) {
                interrupted().store(false);
                if (!terminal || ++interruptions > 1) return kFailed;
                message("To end the chat, type /quit or press Ctrl-C again.");
                continue;
            }
            interruptions = 0;
            if (got == LineReader::Got::End) return end();
            if (cutWord(line).first.empty()) continue;
            if (line[0] == '/') {
                if (!command(line)) return end();
            } else if (const int code = turn(line); code != kOk) {
                return code;
            }
        }
    }

private:
    int end() {
        if (m_args.engine.json) {
            if (const int code = outJson({{"turns", m_turns}}); code != kOk) return code;
        }
        // With input from a pipe no user sees a failed turn, so the exit code reports it.
        return endRecording(m_loaded, m_failed && !isatty(STDIN_FILENO) ? kFailed : kOk);
    }

    void clear(const std::string& system) {
        m_messages = Json::array();
        m_system = system;
        if (!system.empty()) m_messages.push_back({{"role", "system"}, {"content", system}});
    }

    // False: the chat ends.
    bool command(const std::string& line) {
        const auto [name, rest] = cutWord(line);
        if (name == "/quit" || name == "/exit") return false;
        if (name == "/help") {
            messageLines(kHelp);
        } else if (name == "/set") {
            set(rest);
        } else if (name == "/knobs") {
            knobs();
        } else if (name == "/stats") {
            stats();
        } else if (name == "/system") {
            clear(rest);
            message(rest.empty() ? "System message removed; conversation restarted."
                                 : "System message set; conversation restarted.");
        } else if (name == "/clear") {
            clear(m_system);
            message("Conversation restarted.");
        } else {
            message("Unknown command " + name + ". " +
                    didYouMean(name, {std::begin(kCommands), std::end(kCommands)}) +
                    "/help lists them.");
        }
        return true;
    }

    void set(const std::string& rest) {
        const auto [name, text] = cutWord(rest);
        const KnobRow* row = findKnob(name);
        if (!row || text.empty()) {
            std::vector<std::string> names;
            for (const KnobRow& knob : knobTable()) names.emplace_back(knob.name);
            message(row            ? "Give a value: /set " + std::string(row->name) + " VALUE"
                    : rest.empty() ? "Write /set KNOB VALUE. /knobs lists the knobs."
                                   : "No knob \"" + name + "\". " + didYouMean(name, names) +
                                         "/knobs lists them.");
            return;
        }
        Result<int64_t> value = parseKnobValue(*row, text, m_engine.knobLimits(row->id));
        if (!value.ok()) {
            message(value.status().text());
            return;
        }
        const KnobState s = m_engine.applyKnob(row->id, *value);
        message(std::string(row->name) + " = " + knobValueText(*row, s.effective) +
                (s.reason.empty() ? "" : "   " + s.reason));
    }

    void knobs() {
        for (const KnobRow& row : knobTable()) {
            const KnobState s = m_engine.knobState(row.id);
            const KnobLimits l = m_engine.knobLimits(row.id);
            std::string range;
            if (row.choices.empty()) {
                range = formatCount(l.min) + ".." + formatCount(l.max) + " " + row.unit;
            } else {
                for (const char* choice : row.choices) {
                    range += (range.empty() ? "" : " | ") + std::string(choice);
                }
            }
            message(std::string(row.name) + " = " + knobValueText(row, s.effective) + "   (" +
                    range + (row.live ? ")" : ", at load)") +
                    (s.reason.empty() ? "" : "   " + s.reason));
        }
    }

    void stats() {
        const StoreStats s = m_engine.store().stats();
        message("lookups " + formatCount(int64_t(s.lookups)) + ", hit rate " +
                formatPercent(s.lookups ? double(s.hits) / double(s.lookups) : 0.0 / 0.0) +
                ", read " + formatGiB(double(s.bytesRead)) + ", slots " + formatCount(s.slotsUsed) +
                " of " + formatCount(s.slotCount) + " (" + formatGiB(double(s.slotBytes)) + "), " +
                (s.slotsToPrepare > 0
                     ? "memory of " + formatCount(s.slotsToPrepare) + " being prepared, "
                     : "") +
                "memory " + formatGiB(double(m_engine.memory().processRss)));
        if (const std::string line = routerLine(m_engine); !line.empty()) message(line);
        (void)m_loaded.recorder->flush();
        printEffects(true);
    }

    // Prints the measured effect of each /set on the decode rate: new ones only, or all of them.
    void printEffects(bool all) {
        const auto snapshot = m_loaded.recorder->snapshot();
        for (const Marker& m : snapshot->markers) {
            if (m.kind != Marker::Kind::Knob || m.automatic) continue;
            const bool decided = m.effect != Marker::Effect::Measuring;
            if (!all && (!decided || m.t <= m_printedTo)) continue;
            message(m.label + ": " + effectText(m));
            if (decided) m_printedTo = std::max(m_printedTo, m.t);
        }
    }

    int turn(const std::string& line) {
        m_messages.push_back({{"role", "user"}, {"content", line}});
        Result<std::vector<int32_t>> prompt = m_engine.encodeChat(m_messages, m_options);
        if (!prompt.ok()) {
            m_messages.erase(m_messages.size() - 1);
            return fail(prompt.status());
        }
        const bool inReasoning = endsInReasoning(*m_engine.tokenizer(), *prompt);
        Request request =
            m_args.sampling.request(std::move(*prompt), chatSampling(m_engine.info().config));
        request.specialText = marksAreSpecial(*m_engine.tokenizer());
        const double from = m_loaded.recorder->sessionTime(monotonicNs());
        RequestObserver observer;
        observer.onToken = [figures =
                                Figures{m_args.figuresEvery}](const GeneratedToken& t) mutable {
            figures.add(t);
            return true;
        };
        observer.onText = [this](const std::string& text) { return show(text); };
        Result<RequestResult> result =
            runRequest(m_engine, std::move(request), std::move(observer), &interrupted());
        const bool stopped = interrupted().exchange(false);
        const Status status = result.ok() ? result->status : result.status();
        if (!status.ok()) {
            // The conversation continues without this turn.
            m_messages.erase(m_messages.size() - 1);
            m_turns.push_back({{"user", line}, {"error", status.text()}});
            m_failed = true;
            fail(status);
            return kOk;
        }
        if (stopped && result->tokens.empty()) {
            m_messages.erase(m_messages.size() - 1);
            m_turns.push_back({{"user", line}, {"stop", stopReasonName(result->stop)}});
            message(
                "Stopped before the first token: the conversation continues without this turn.");
            return kOk;
        }
        if (!show("\n")) return kFailed;
        (void)m_loaded.recorder->flush();
        m_lost.report(m_loaded);
        const double to = m_loaded.recorder->sessionTime(monotonicNs());
        m_turns.push_back(
            {{"user", line},
             {"text", result->text},
             {"stop", stopReasonName(result->stop)},
             {"stats",
              statsJson(*result, m_loaded.recorder->expertLoadBetween(from, to), m_engine)}});
        // The reasoning of a turn is not part of later prompts.
        const auto answer = size_t(splitReply(result->text, inReasoning).answerFrom);
        m_messages.push_back({{"role", "assistant"}, {"content", result->text.substr(answer)}});
        messageFigures((stopped ? "Stopped. " : "") + statsLine(*result));
        printEffects(false);
        return kOk;
    }

    // Prints the reply: to standard error with --json, because standard output then gets one
    // object.
    bool show(const std::string& text) {
        if (!m_args.engine.json) return outText(text);
        const std::string shown = isatty(STDERR_FILENO) ? printableLines(text) : text;
        std::fwrite(shown.data(), 1, shown.size(), stderr);
        return true;
    }

    const ChatArgs& m_args;
    const ChatOptions m_options;
    LoadedEngine& m_loaded;
    Engine& m_engine;
    std::string m_system;
    Json m_messages;
    Json m_turns = Json::array();  // for --json
    bool m_failed = false;         // a turn failed
    LostRecording m_lost;
    double m_printedTo = 0;  // seconds; effects of changes up to here are printed
};

int run(const ChatArgs& args) {
    Result<ChatOptions> options = args.chat.options();
    if (!options.ok()) return fail(options.status());
    Result<LoadedEngine> loaded = loadEngine(args.engine);
    if (!loaded.ok()) return fail(loaded.status());
    if (!loaded->engine->tokenizer() || !loaded->engine->chatTemplate()) {
        const char* what = loaded->engine->tokenizer() ? "chat template" : "tokenizer";
        return refuse(*loaded, args.engine,
                      missingText(*loaded->engine, what, "Use colibri generate"));
    }
    return Chat(args, std::move(*options), *loaded).run();
}

}  // namespace

void addChat(Verbs& verbs) {
    auto args = std::make_shared<ChatArgs>();
    CLI::App* verb = verbs.add("chat", "Chat in the terminal", [args] { return run(*args); });
    args->engine.addTo(*verb);
    verb->add_option("--system", args->system, "System message");
    args->chat.addTo(*verb);
    verb->add_option("--figures", args->figuresEvery,
                     "Print a line of metrics every N tokens; 0: none")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    args->sampling.maxTokens = kChatMaxTokens;
    args->sampling.addTo(*verb, true);
}

}  // namespace colibri::cli
