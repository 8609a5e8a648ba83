// SPDX-License-Identifier: Apache-2.0
#include "profiler/explain/causes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace colibri {
namespace {

struct CauseRow {
    Cause cause;
    const char *name, *text;
};
constexpr std::array<CauseRow, kCauseCount> kCauses{{
    {Cause::DiskWait, "disk_wait", "reading experts from disk"},
    {Cause::QueueWait, "queue_wait", "waiting for a slot or the read queue"},
    {Cause::LinkWait, "link_limit", "the link limit"},
    {Cause::MemoryWait, "page_faults", "reading into newly allocated memory"},
    {Cause::PrefetchWait, "late_prefetch", "prefetches that came late"},
    {Cause::Attention, "attention", "attention"},
    {Cause::Router, "router", "the router"},
    {Cause::Experts, "experts", "computing experts"},
    {Cause::Dense, "dense", "dense feed-forward layers"},
    {Cause::Logits, "logits", "logits"},
    {Cause::Sampling, "sampling", "sampling and output"},
    {Cause::Descheduled, "descheduled", "other programs on its processor"},
    {Cause::Prefill, "prefill_of_others", "prompts of other requests"},
    {Cause::BatchWait, "batch_wait", "waiting for its turn in the batch"},
    {Cause::Scheduling, "scheduling", "the scheduler"},
    {Cause::Preempted, "preempted", "preemption"},
}};

constexpr bool inOrder() {
    for (size_t i = 0; i < kCauses.size(); ++i)
        if (kCauses[i].cause != Cause(i)) return false;
    return true;
}
static_assert(inOrder(), "kCauses has one row for each Cause, in its order");

// The columns of a step that become causes, in this order.
constexpr std::array kParts{Cause::Attention,  Cause::Router,      Cause::Experts,
                            Cause::Dense,      Cause::Logits,      Cause::Sampling,
                            Cause::QueueWait,  Cause::DiskWait,    Cause::LinkWait,
                            Cause::MemoryWait, Cause::PrefetchWait};
constexpr size_t kComputeParts = 6;  // the first ones
constexpr const char* kColumns =
    "steps.attention_ns, router_ns, experts_ns, dense_ns, head_ns, sample_ns, stall_slot_ns, "
    "stall_disk_ns, stall_link_ns, stall_memory_ns, stall_prefetch_ns";

using Parts = std::array<double, kCauseCount>;

double& of(Parts& parts, Cause cause) {
    return parts[size_t(cause)];
}

// One token with its step, as the query returns it.
struct TokenStep {
    uint64_t request, step;
    double gapNs, preemptedNs, totalNs, sinceLastNs, offCpuNs;
    double promptShare;  // of the rows of the step: prompts of other requests
    std::array<double, kParts.size()> parts;
};

// What the gap of a token in the step directly after that of the previous token consists of.
Parts partsOf(const TokenStep& token) {
    Parts out{};
    double compute = 0;
    for (size_t i = 0; i < kComputeParts; ++i) compute += token.parts[i];
    const double off = std::min(token.offCpuNs, compute);
    const double onCpu = compute > 0 ? 1 - off / compute : 1;
    for (size_t i = 0; i < kParts.size(); ++i)
        of(out, kParts[i]) += token.parts[i] * (i < kComputeParts ? onCpu : 1);
    of(out, Cause::Descheduled) = off;
    of(out, Cause::Scheduling) = token.sinceLastNs;
    if (token.promptShare > 0) {
        for (size_t i = 0; i < kParts.size(); ++i) {
            const double prompts = of(out, kParts[i]) * token.promptShare;
            of(out, kParts[i]) -= prompts;
            of(out, Cause::Prefill) += prompts;
        }
    }
    return out;
}

// The duration of all steps up to each one, with the time between them.
class StepClock {
public:
    Status read(const SessionDb& db) {
        SessionRows rows;
        COLIBRI_TRY(rows.prepare(db, "SELECT id, total_ns + since_last_ns FROM steps ORDER BY id"));
        double sum = 0;
        while (rows.next()) {
            m_ids.push_back(uint64_t(rows.integer(0)));
            m_until.push_back(sum += rows.real(1));
        }
        return rows.status();
    }
    bool empty() const { return m_ids.empty(); }
    // Of the steps after `from` and before `to`.
    double between(uint64_t from, uint64_t to) const { return until(to - 1) - until(from); }

private:
    double until(uint64_t id) const {
        const auto after = std::upper_bound(m_ids.begin(), m_ids.end(), id);
        return after == m_ids.begin() ? 0 : m_until[size_t(after - m_ids.begin()) - 1];
    }
    std::vector<uint64_t> m_ids;
    std::vector<double> m_until;
};

TokenStep tokenOf(const SessionRows& row) {
    TokenStep token{};
    token.request = uint64_t(row.integer(0));
    token.step = uint64_t(row.integer(1));
    token.gapNs = row.real(2);
    token.preemptedNs = row.real(3);
    token.totalNs = row.real(4);
    token.sinceLastNs = row.real(5);
    token.offCpuNs = row.real(6);
    const double all = row.real(7), prompts = row.real(8);
    token.promptShare = all > 0 ? std::clamp(prompts / all, 0.0, 1.0) : 0;
    for (size_t i = 0; i < kParts.size(); ++i) token.parts[i] = row.real(int(9 + i));
    return token;
}

void add(Causes& out, const TokenStep& token, double elsewhereNs) {
    Parts parts = partsOf(token);
    of(parts, Cause::Preempted) = token.preemptedNs;
    // The request had no row in the steps between its last token and this one, unless it was
    // preempted, which is counted already.
    of(parts, Cause::BatchWait) = std::max(0.0, elsewhereNs - token.preemptedNs);
    // Parts are measured on their own, so their sum may be larger by rounding.
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    const double scale = sum > token.gapNs ? token.gapNs / sum : 1;
    for (size_t i = 0; i < parts.size(); ++i) out.ns[i] += parts[i] * scale;
    out.gapNs += token.gapNs;
    ++out.tokens;
}

}  // namespace

const char* causeName(Cause cause) {
    return kCauses[size_t(cause)].name;
}

const char* causeText(Cause cause) {
    return kCauses[size_t(cause)].text;
}

double Causes::share(Cause cause) const {
    return gapNs > 0 ? ns[size_t(cause)] / gapNs : std::nan("");
}

double Causes::explained() const {
    return gapNs > 0 ? std::accumulate(ns.begin(), ns.end(), 0.0) / gapNs : std::nan("");
}

double Causes::ofCompute() const {
    double sum = 0;
    for (size_t i = 0; i < kComputeParts; ++i) sum += share(kParts[i]);
    return sum;
}

double Causes::ofWaits() const {
    double sum = 0;
    for (size_t i = kComputeParts; i < kParts.size(); ++i) sum += share(kParts[i]);
    return sum;
}

std::vector<Cause> Causes::largestFirst() const {
    std::vector<Cause> order;
    for (int i = 0; i < kCauseCount; ++i)
        if (ns[size_t(i)] > 0) order.push_back(Cause(i));
    std::ranges::sort(order, std::greater(), [&](Cause c) { return ns[size_t(c)]; });
    return order;
}

Result<Causes> causesOf(const SessionDb& db, const TimeRange& range, const CancelFlag* cancel) {
    const Status none(Code::Unsupported,
                      db.name() + " has no times of steps, so no causes can be given",
                      "An earlier version recorded it, or nothing ran. Record it again");
    if (!db.has("tokens", "step")) return none;
    StepClock clock;
    COLIBRI_TRY(clock.read(db));
    if (clock.empty()) return none;
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        db, std::string("SELECT request, step, gap_ns, preempted_ns, total_ns, since_last_ns, "
                        "off_cpu_ns, rows, prefill_rows, ") +
                kColumns +
                " FROM tokens JOIN steps ON steps.id = tokens.step "
                "WHERE tokens.t BETWEEN ? AND ? ORDER BY tokens.rowid"));
    rows.bind(range);
    Causes out;
    std::unordered_map<uint64_t, uint64_t> lastStep;  // by request
    while (rows.next()) {
        if (out.tokens % 1024 == 0 && cancel && cancel->load())
            return Status(Code::Cancelled, "the analysis was cancelled");
        const TokenStep token = tokenOf(rows);
        const auto before = lastStep.find(token.request);
        const uint64_t previous = before == lastStep.end() ? token.step - 1 : before->second;
        lastStep[token.request] = token.step;
        if (token.gapNs > 0) add(out, token, clock.between(previous, token.step));
    }
    COLIBRI_TRY(rows.status());
    return out;
}

}  // namespace colibri
