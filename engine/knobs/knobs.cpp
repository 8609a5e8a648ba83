// SPDX-License-Identifier: Apache-2.0
#include "engine/knobs/knobs.h"

#include <algorithm>
#include <charconv>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr const char* kPolicies[] = {"lru", "slru", "lfru"};
constexpr const char* kSources[] = {"off", "router_table", "previous_token", "next_router"};
constexpr const char* kRouterModes[] = {"exact", "table"};
constexpr const char* kIoModes[] = {"direct", "buffered"};
constexpr const char* kNumaModes[] = {"off", "bind", "interleave"};
constexpr const char* kKvTypes[] = {"f32", "f16", "q8"};
constexpr const char* kDevices[] = {"cpu"};

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
     true,
     "How many experts of each MoE layer are kept in memory, on average over the layers. A larger "
     "cache needs fewer reads and more memory. With fewer experts than one token uses (top-k), an "
     "LRU cache reuses nothing: every lookup is a miss."},
    {KnobId::CachePolicy, "cache_policy", "Policy", "Expert cache", "", 0, 2, 1, 0, kPolicies, true,
     true,
     "Which expert is evicted when the cache is full. lru: the least recently used one. slru: "
     "experts used twice are protected from experts used once. lfru: frequency and recency "
     "combined. The cache size matters more than the policy."},
    {KnobId::PrefetchSource, "prefetch_source", "Source", "Prefetch", "", 0, 3, 1, 3, kSources,
     true, true,
     "How the next experts are predicted. next_router: the next layer's router is applied to this "
     "layer's state. previous_token: the experts of the previous token. router_table: a table from "
     "token to experts, if the model has one. off: no prediction."},
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
     true,
     "How many layers ahead experts are predicted and read. Predictions further ahead are less "
     "accurate. 0 turns prefetching off."},
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
     true,
     "Threads that read predicted experts while the link is idle. Reads that a token is waiting "
     "for always have priority. 0 turns prefetching off."},
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
     false,
     "How long a request may wait for others to start with it. It starts sooner when the batch is "
     "full. Requests that start together share their expert reads; each request waits up to this "
     "long, even when nothing else is running. 0 starts every request immediately."},
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
     false,
     "How many requests run together, each with one row of the batch while it decodes. More rows "
     "give more tokens per second in total and a longer step for each request; further requests "
     "wait in the queue."},
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
     false,
     "Number of compute threads. More threads than physical cores seldom help: decoding is limited "
     "by memory bandwidth, not by arithmetic."},
    {KnobId::IoMode, "io_mode", "Reads", "Reads", "", 0, 1, 1, 0, kIoModes, true, true,
     "direct: reads bypass the system's page cache and fill the engine's own memory. buffered: "
     "reads go through the page cache, which keeps a second copy while memory is available."},
    {KnobId::IoDepth,
     "io_depth",
     "Concurrent reads",
     "Reads",
     "reads in flight",
     1,
     64,
     1,
     8,
     {},
     true,
     true,
     "How many expert reads that a token waits for are in flight at the same time. Fast disks need "
     "several to reach their full rate; too many make each read slower."},
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
     true,
     "Limits expert reads to this rate, to show how the model would run from a slower disk or bus. "
     "0 means no limit. A badge is shown while a limit is set."},
    {KnobId::NumaMode, "numa_mode", "NUMA", "Reads", "", 0, 2, 1, 0, kNumaModes, true, true,
     "Which NUMA node's memory holds the experts on a machine with several processors. off: the "
     "system decides. bind: all experts on one node, together with the compute threads if the node "
     "has enough cores. interleave: spread over all nodes. Experts already in memory are moved in "
     "the background."},
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
     true,
     "The node that holds the experts while the NUMA mode is bind."},
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
     false,
     "How many prompt tokens the model processes together. Larger chunks read each expert fewer "
     "times and need more buffer memory."},
    {KnobId::RouterMode, "router_mode", "Router", "Compute", "", 0, 1, 1, 0, kRouterModes, true,
     true,
     "What chooses the experts. exact: the model's own gate. table: a table from token to experts, "
     "made by convert --router-table. The table sees a token without its context, so this is an "
     "approximation; the share of choices that agree with the gate is measured."},
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
     false,
     "The maximum number of tokens in one conversation, prompt and reply together. The KV cache "
     "grows with it."},
    {KnobId::KvDtype, "kv_dtype", "KV type", "At load", "", 0, 2, 1, 1, kKvTypes, false, false,
     "The number format of the KV cache. f16 is exact to about three digits and takes half the "
     "memory of f32, which is meant for validation. q8 stores eight bits per value and one scale "
     "per 32 values, and takes slightly more than half the memory of f16."},
    {KnobId::Device, "device", "Device", "At load", "", 0, 0, 1, 0, kDevices, false, false,
     "The device that runs the model."},
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
        return Status(Code::InvalidArgument, where + " is not a valid choice",
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

}  // namespace colibri
