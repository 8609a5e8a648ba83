// SPDX-License-Identifier: Apache-2.0
#include "engine/knobs/knobs.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr const char* kPolicies[] = {"lru", "slru", "lfru"};
constexpr const char* kSources[] = {"off", "router_table", "previous_token", "next_router"};
constexpr const char* kRouterModes[] = {"exact", "table"};
constexpr const char* kIoModes[] = {"direct", "buffered"};
constexpr const char* kNumaModes[] = {"off", "bind", "interleave"};
constexpr const char* kKvDtypes[] = {"f32", "f16", "q8"};
constexpr const char* kDevices[] = {"cpu"};

constexpr int kConfigSchema = 1;

const KnobRow kTable[kKnobCount] = {
    {KnobId::ExpertCacheSize,
     "expert_cache_size",
     "Cache size",
     "Expert cache",
     "experts / layer",
     1,
     65536,
     1,
     -1,
     {},
     true,
     "How many experts of each MoE layer are kept in memory, on average over the layers. More "
     "means fewer reads and more memory. Below the experts that one token uses (top-k) an LRU "
     "cache reuses nothing: every look-up is a miss."},
    {KnobId::CachePolicy, "cache_policy", "Policy", "Expert cache", "", 0, 2, 1, 0, kPolicies, true,
     "Which expert leaves the cache when room is needed. lru: the one not used for longest. slru: "
     "experts used twice are protected from those used once. lfru: frequency and recency together. "
     "The size of the cache matters more than its policy."},
    {KnobId::PrefetchSource, "prefetch_source", "Source", "Prefetch", "", 0, 3, 1, 3, kSources,
     true,
     "Where the guess comes from which experts are needed next. next_router: the next layer's "
     "router applied to this layer's state. previous_token: the experts of the previous token. "
     "router_table: a table from token to experts, where the model has one. off: no guess."},
    {KnobId::PrefetchDepth,
     "prefetch_depth",
     "Depth",
     "Prefetch",
     "layers ahead",
     0,
     4,
     1,
     1,
     {},
     true,
     "How many layers ahead experts are guessed and read. Deeper guesses are less often right; 0 "
     "turns prefetch off."},
    {KnobId::PrefetchThreads,
     "prefetch_threads",
     "Threads",
     "Prefetch",
     "threads",
     0,
     1024,
     1,
     1,
     {},
     true,
     "Threads that read guessed experts while the link is idle. Reads that a token is waiting for "
     "always go first. 0 turns prefetch off."},
    {KnobId::BatchTimeout,
     "batch_timeout_ms",
     "Batch timeout",
     "Batching",
     "ms",
     0,
     200,
     1,
     10,
     {},
     true,
     "How long a request may wait for others to start with it. It starts sooner when it fills the "
     "batch. Requests that start together share the reads of their experts; each waits at most "
     "this long for it, also when nothing else runs. 0 starts every request at once."},
    {KnobId::MaxBatch,
     "max_batch",
     "Batch size",
     "Batching",
     "rows",
     1,
     64,
     1,
     8,
     {},
     true,
     "How many requests run together, one row of the batch each while they decode. More rows give "
     "more tokens per second in all and a longer step for each request; further requests wait in "
     "the queue."},
    {KnobId::ComputeThreads,
     "compute_threads",
     "Threads",
     "Compute",
     "threads",
     1,
     1024,
     1,
     -1,
     {},
     true,
     "Threads that compute. More than the physical cores seldom helps: decoding waits for memory, "
     "not for arithmetic."},
    {KnobId::IoMode, "io_mode", "Reads", "Reads", "", 0, 1, 1, 0, kIoModes, true,
     "direct: experts are read past the system's page cache into the engine's own memory. "
     "buffered: through the page cache, which keeps a second copy while memory lasts."},
    {KnobId::IoDepth,
     "io_depth",
     "Reads at once",
     "Reads",
     "reads in flight",
     1,
     64,
     1,
     8,
     {},
     true,
     "How many expert reads that a token waits for are under way at the same time. Fast disks need "
     "several to reach their rate; too many make each read take longer."},
    {KnobId::LinkLimit,
     "link_limit",
     "Link limit",
     "Reads",
     "MB/s",
     0,
     100000,
     1,
     0,
     {},
     true,
     "Paces expert reads to this rate, to see how the model would run from a slower disk or bus. "
     "0 is no limit. A badge is shown while a limit is on."},
    {KnobId::NumaMode, "numa_mode", "NUMA", "Reads", "", 0, 2, 1, 0, kNumaModes, true,
     "On which memory of a machine with several processors experts are kept. off: where the system "
     "puts them. bind: all on one node, with the compute threads when it has cores for them. "
     "interleave: spread over all nodes. Experts in memory are moved in the background."},
    {KnobId::NumaNode,
     "numa_node",
     "NUMA node",
     "Reads",
     "node",
     0,
     1023,
     1,
     0,
     {},
     true,
     "The node that experts are kept on while the NUMA mode is bind."},
    {KnobId::PrefillChunk,
     "prefill_chunk",
     "Prefill chunk",
     "Compute",
     "tokens",
     16,
     4096,
     16,
     512,
     {},
     true,
     "How many tokens of a prompt go through the model together. Larger chunks read each expert "
     "fewer times and need more buffer memory."},
    {KnobId::RouterMode, "router_mode", "Router", "Compute", "", 0, 1, 1, 0, kRouterModes, true,
     "Who chooses the experts. exact: the model's own gate. table: a table from token to experts, "
     "made by convert --router-table. The table knows a token but not what stands before it, so "
     "this is an approximation: the share of choices that agree with the gate is measured."},
    {KnobId::ContextLength,
     "context_length",
     "Context length",
     "At load",
     "tokens",
     16,
     1 << 24,
     256,
     -1,
     {},
     false,
     "The most tokens, prompt and reply together, that one conversation may hold. The KV cache "
     "grows with it."},
    {KnobId::KvDtype, "kv_dtype", "KV type", "At load", "", 0, 2, 1, 1, kKvDtypes, false,
     "The number format of the KV cache. f16 is exact to about three digits and takes half the "
     "memory of f32, which is for validation; q8, eight bits and a scale for each 32 values, "
     "takes a little over half of f16's."},
    {KnobId::Device, "device", "Device", "At load", "", 0, 0, 1, 0, kDevices, false,
     "Where the model computes."},
};

std::string quotedChoices(const KnobRow& row) {
    std::string text;
    for (size_t i = 0; i < row.choices.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == row.choices.size() ? " or " : ", ");
        text += row.choices[i];
    }
    return text;
}

}  // namespace

std::span<const KnobRow> knobTable() {
    return kTable;
}

const KnobRow& knobRow(KnobId id) {
    return kTable[size_t(id)];
}

const KnobRow* findKnob(std::string_view name) {
    std::string plain(name);
    std::replace(plain.begin(), plain.end(), '-', '_');
    for (const KnobRow& row : kTable) {
        if (plain == row.name) return &row;
    }
    return nullptr;
}

std::string knobTitle(const KnobRow& row) {
    std::string title = row.label;
    if (title != "Threads" && title != "Depth" && title != "Source") return title;
    title[0] = char(title[0] - 'A' + 'a');
    return std::string(row.group) + " " + title;
}

Result<int64_t> parseKnobValue(const KnobRow& row, std::string_view text,
                               const KnobLimits& limits) {
    const std::string where = std::string(row.name) + ": \"" + std::string(text) + "\"";
    if (!row.choices.empty()) {
        for (size_t i = 0; i < row.choices.size(); ++i) {
            if (text == row.choices[i]) return int64_t(i);
        }
        return Status(Code::InvalidArgument, where + " is not a choice",
                      "Use " + quotedChoices(row));
    }
    const std::string range =
        formatCount(limits.min) + ".." + formatCount(limits.max) + " " + row.unit;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        return Status(Code::InvalidArgument, where + " is not a whole number", "Use " + range);
    }
    if (value < limits.min || value > limits.max) {
        return Status(Code::InvalidArgument, where + " is out of range", "Use " + range);
    }
    return value;
}

std::string knobValueText(const KnobRow& row, int64_t value) {
    if (row.choices.empty()) return std::to_string(value);
    return value >= 0 && size_t(value) < row.choices.size() ? row.choices[size_t(value)] : "?";
}

namespace {
// A file that names every knob has 2 kB. The library's parser takes time that grows as the square
// of the values in one list, and writes nested ones by recursion.
constexpr size_t kMostConfig = 64 << 10;
constexpr int kDeepestConfig = 8;
}  // namespace

Result<KnobValues> knobsFromJson(std::string_view text) {
    using nlohmann::json;
    const auto bad = [](const std::string& what, const std::string& hint = {}) {
        return Status(Code::BadInput, "config: " + what, hint);
    };
    if (text.size() > kMostConfig) {
        return bad(std::to_string(text.size()) + " bytes are too many for a list of knobs");
    }
    json config;
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    std::string twice;
    bool tooDeep = false;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
        if (depth > kDeepestConfig) {
            tooDeep = true;
            return false;
        }
        if (event == json::parse_event_t::object_start) keys.emplace_back();
        if (event == json::parse_event_t::object_end) keys.pop_back();
        if (event == json::parse_event_t::key && !keys.back().insert(parsed).second) {
            twice = parsed.get<std::string>();
        }
        return true;
    };
    try {
        config = json::parse(text, watch);
    } catch (const json::parse_error& error) {
        return bad("not JSON at byte " + std::to_string(error.byte));
    }
    if (tooDeep) return bad("it is nested too deep");
    if (!twice.empty()) return bad("\"" + twice + "\" stands there twice", "Leave one");
    if (!config.is_object()) return bad("the file holds no JSON object");
    for (const auto& [key, value] : config.items()) {
        if (key != "schema" && key != "knobs" && key != "comment" && key != "model" &&
            key != "machine") {
            return bad("unknown key \"" + key + "\"",
                       "Known keys: schema, knobs, comment, model, machine");
        }
    }
    if (!config.contains("schema") || !config["schema"].is_number_integer()) {
        return bad("\"schema\" is missing or not a whole number", "Add \"schema\": 1");
    }
    if (config["schema"] != kConfigSchema) {
        return Status(Code::Unsupported, "config: schema " + config["schema"].dump() +
                                             ", this program reads " +
                                             std::to_string(kConfigSchema));
    }
    if (!config.contains("knobs") || !config["knobs"].is_object()) {
        return bad("\"knobs\" is missing or not an object");
    }
    KnobValues values;
    for (const auto& [key, value] : config["knobs"].items()) {
        const KnobRow* row = findKnob(key);
        if (!row) return bad("unknown knob \"" + key + "\"");
        if (!value.is_string() && !value.is_number_integer()) {
            return bad("knobs." + key + ": " + value.dump() + " is neither a number nor a choice");
        }
        const auto parsed =
            parseKnobValue(*row, value.is_string() ? value.get<std::string>() : value.dump(),
                           {row->min, row->max, row->defaultValue});
        if (!parsed) return bad("knobs." + parsed.status().message(), parsed.status().hint());
        values[size_t(row->id)] = *parsed;
    }
    return values;
}

std::string knobsToJson(const KnobValues& values, std::string_view model,
                        std::string_view machine) {
    nlohmann::ordered_json config;
    config["schema"] = kConfigSchema;
    if (!model.empty()) config["model"] = model;
    if (!machine.empty()) config["machine"] = machine;
    auto& knobs = config["knobs"] = nlohmann::ordered_json::object();
    for (const KnobRow& row : kTable) {
        const auto& value = values[size_t(row.id)];
        if (!value) continue;
        if (row.choices.empty()) {
            knobs[row.name] = *value;
        } else {
            knobs[row.name] = knobValueText(row, *value);
        }
    }
    return config.dump(2) + "\n";
}

}  // namespace colibri
