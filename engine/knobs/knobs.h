// SPDX-License-Identifier: Apache-2.0
// The knob table: the single source for sliders, command-line options, config files, sweep spaces
// and help. A knob is a row; nothing else in the program lists knobs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

enum class KnobId : uint8_t {
    ExpertCacheSize,  // experts per MoE layer (times MoE layers = slots; scope is global)
    CachePolicy,
    PrefetchSource,
    PrefetchDepth,
    PrefetchThreads,
    BatchTimeout,
    MaxBatch,
    ComputeThreads,
    IoMode,
    IoDepth,
    LinkLimit,
    NumaMode,
    NumaNode,
    PrefillChunk,
    RouterMode,
    ContextLength,
    KvDtype,
    Device,
    Count
};
constexpr int kKnobCount = int(KnobId::Count);

// Every value is an int64: a number in the knob's unit, or the index of a choice.
struct KnobRow {
    KnobId id;
    const char* name;   // "expert_cache_size"; the option is --expert-cache-size
    const char* label;  // "Cache size"
    const char* group;  // "Expert cache", "Prefetch", "Batching", "Compute", "Reads", "At load"
    const char* unit;   // "experts / layer"; "" for choices
    int64_t min, max;   // numbers; narrowed by KnobLimits at run time
    int64_t step;
    int64_t defaultValue;                  // -1: derived from model and machine (KnobLimits)
    std::span<const char* const> choices;  // empty: a number
    bool live;                             // false: takes effect at the next load
    bool ofExperts;                        // true: has no effect in a model without experts
    const char* help;                      // one paragraph, plain text
};

std::span<const KnobRow> knobTable();  // in the order of KnobId
const KnobRow& knobRow(KnobId id);
const KnobRow* findKnob(std::string_view name);  // "expert_cache_size" or with dashes
// The label, with its group if the label alone is unclear: "Cache size", "Prefetch depth".
std::string knobTitle(const KnobRow& row);

// Range and default of one knob for a loaded (or inspected) model on this machine.
struct KnobLimits {
    int64_t min = 0, max = 0, defaultValue = 0;
};

// A requested value for each knob; unset knobs use the default.
using KnobValues = std::array<std::optional<int64_t>, kKnobCount>;

// The requested and the effective value, and why they differ ("" if equal).
struct KnobState {
    int64_t requested = 0;
    int64_t effective = 0;
    std::string reason;
};

// "12", "lru", "25" -> value; the error names the knob, the range and the unit.
Result<int64_t> parseKnobValue(const KnobRow& row, std::string_view text, const KnobLimits& limits);
std::string knobValueText(const KnobRow& row, int64_t value);  // "12" or "lru"

// The choices of the table, in its order. Those of KnobId::KvDtype are KvType (kernels/kernels.h).
enum class CachePolicyKind : int64_t { Lru, Slru, Lfru };
enum class PrefetchSource : int64_t { Off, RouterTable, PreviousToken, NextRouter };
enum class NumaMode : int64_t { Off, Bind, Interleave };
enum class RouterMode : int64_t { Exact, Table };
enum class IoMode : int64_t { Direct, Buffered };

}  // namespace colibri
