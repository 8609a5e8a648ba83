// SPDX-License-Identifier: Apache-2.0
#include "profiler/explain/verdicts.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "profiler/machine/machine_profile.h"

namespace colibri {
namespace {

// With fewer tokens nothing is said.
constexpr uint64_t kFewestTokens = 50;
// With this many tokens their number no longer limits the confidence.
constexpr double kManyTokens = 500;

// Shares of the time between tokens from which on a cause is worth a verdict.
constexpr double kWaits = 0.25, kLink = 0.15, kNewMemory = 0.10, kLatePrefetch = 0.10,
                 kDescheduled = 0.08, kPrefill = 0.20, kBatchWait = 0.20, kCompute = 0.60;
// A rate above this share of the measured one is at the limit of the machine.
constexpr double kNearLimit = 0.70;
constexpr int64_t kFewestPrefetches = 200;
constexpr double kUsefulPrefetch = 0.60, kUselessPrefetch = 0.20, kWastedPrefetch = 0.50;
constexpr double kBusyThreads = 0.30;   // of the prefetch threads, on average
constexpr double kRemoteAsFast = 0.90;  // another node's memory is nearly as fast as the own
constexpr double kCancelled = 0.50;     // share of the predictions that were never read
constexpr double kDiskIdle = 0.50;      // share of the time in which the disk had nothing to read
constexpr double kHotQuarter = 0.60, kFlatQuarter = 0.35;
constexpr double kAlone = 1.2;  // mean requests per step: hardly ever two
constexpr double kByTimeout = 0.80;
constexpr int64_t kFewestRequests = 5;
constexpr double kShortQueueMs = 2;  // below it a batch timeout is not worth a verdict

class Rules {
public:
    explicit Rules(const SessionFacts& facts) : f(facts), c(facts.causes) {}

    std::vector<Verdict> all() {
        if (c.tokens < kFewestTokens) return {tooShort()};
        limits();
        numaCrossing();
        waits();
        prefetching();
        requests();
        routing();
        std::ranges::stable_sort(m_found, std::greater(), &Found::weight);
        std::vector<Verdict> out;
        bool toMove = false;
        for (Found& found : m_found) {
            toMove = toMove || !found.verdict.knob.empty();
            out.push_back(std::move(found.verdict));
        }
        if (!toMove) out.insert(out.begin(), nothingToGain());
        return out;
    }

private:
    struct Found {
        double weight;  // share of the time that it is about; informative ones: small
        Verdict verdict;
    };

    // `margin`: how far the deciding figure is beyond its threshold, as a share of the threshold.
    void add(double weight, double margin, const char* name, KnobId knob, std::string text,
             std::vector<std::pair<std::string, double>> figures) {
        add(weight, margin, name, knobRow(knob).name, std::move(text), std::move(figures));
    }
    void add(double weight, double margin, const char* name, const char* knob, std::string text,
             std::vector<std::pair<std::string, double>> figures) {
        m_found.push_back(
            {weight, {name, std::move(text), confidence(margin), knob, std::move(figures)}});
    }
    double confidence(double margin) const {
        const double enough = std::min(1.0, double(c.tokens) / kManyTokens);
        return (0.5 + 0.5 * std::clamp(margin, 0.0, 1.0)) * (0.5 + 0.5 * enough);
    }
    static double beyond(double value, double threshold) { return value / threshold - 1; }
    static std::string percent(double share) { return formatPercent(share, 0); }

    Verdict tooShort() const {
        return {"too_short",
                "The session has " + formatCount(int64_t(c.tokens)) + " tokens with a gap; " +
                    formatCount(int64_t(kFewestTokens)) + " are needed to say what limits it.",
                1,
                "",
                {{"tokens", double(c.tokens)}}};
    }

    Verdict nothingToGain() const {
        return {"nothing_to_gain",
                "No setting of a knob promises a gain: " + percent(c.ofCompute()) +
                    " of the time between tokens is computing, and " + percent(c.ofWaits()) +
                    " is waiting for experts.",
                confidence(0.5),
                "",
                {{"compute_share", c.ofCompute()}, {"wait_share", c.ofWaits()}}};
    }

    // When the machine's rates were measured.
    std::string measured() const {
        return f.ratesMeasuredAt > 0 ? " (" + measurementDate(f.ratesMeasuredAt) + ")" : "";
    }

    // What computing is limited by: memory, or the processor.
    void limits() {
        const double compute = c.ofCompute();
        if (compute < kCompute) return;
        const double rate = f.bytesPerToken * f.tokensPerSecond() * std::max(1.0, f.requests);
        const double whileComputing = rate / std::max(1.0, f.requests) / compute;
        const auto shareOf = [&](double limit) {
            return limit > 0 && f.bytesPerToken > 0 ? whileComputing / limit : std::nan("");
        };
        const double reached = shareOf(f.memoryBytesPerSecond);
        const double ofKernels = shareOf(f.kernelBytesPerSecond);
        std::vector<std::pair<std::string, double>> figures{{"compute_share", compute},
                                                            {"memory_bytes_per_s", rate},
                                                            {"of_roofline", reached},
                                                            {"of_kernel_rate", ofKernels}};
        if (reached >= kNearLimit) {
            add(0.05, beyond(reached, kNearLimit), "memory_bound", "",
                "Computing takes " + percent(compute) +
                    " of the time between tokens, and reads weights at " + percent(reached) +
                    " of the memory rate measured on this machine" + measured() +
                    ". Only fewer bytes per token help: a smaller weight type, or more requests in "
                    "a batch.",
                std::move(figures));
        } else if (const int64_t threads = f.knob(KnobId::ComputeThreads);
                   threads > 0 && f.cores > threads) {
            add(compute / 2, beyond(double(f.cores), double(threads)), "compute_bound",
                KnobId::ComputeThreads,
                "Computing takes " + percent(compute) + " of the time between tokens with " +
                    formatCount(threads) + " of " + formatCount(f.cores) +
                    " cores. More compute threads can shorten it.",
                std::move(figures));
        } else if (ofKernels >= kNearLimit) {
            add(0.05, beyond(ofKernels, kNearLimit), "compute_bound", "",
                "Computing takes " + percent(compute) +
                    " of the time between tokens, and reads weights at " + percent(ofKernels) +
                    " of the rate at which this machine's processor can use weights of this type" +
                    measured() + ". Only more cores or another weight type help.",
                std::move(figures));
        } else if (std::isfinite(reached)) {
            add(0.05, 0.2, "compute_bound", "",
                "Computing takes " + percent(compute) + " of the time between tokens, at " +
                    percent(reached) + " of the measured memory rate" + measured() + ".",
                std::move(figures));
        }
    }

    // Weights in the memory of another NUMA node.
    void numaCrossing() {
        const double compute = c.ofCompute();
        if (f.numaNodes < 2 || f.knob(KnobId::NumaMode) != int64_t(NumaMode::Off) ||
            compute < kCompute || f.remoteMemoryShare >= kRemoteAsFast)
            return;
        std::string text = "This machine has " + formatCount(f.numaNodes) +
                           " NUMA nodes, and the memory of the experts is not bound to one: part "
                           "of the weights is read from another node";
        if (f.remoteMemoryShare > 0)
            text += ", at " + percent(f.remoteMemoryShare) + " of the own node's rate";
        // About half of the memory is on another node.
        const double slower = f.remoteMemoryShare > 0 ? 1 - f.remoteMemoryShare : 0.1;
        add(compute * slower / 2, f.remoteMemoryShare > 0 ? 1 : 0.2, "numa_crossing",
            KnobId::NumaMode, text + ".",
            {{"compute_share", compute},
             {"numa_nodes", double(f.numaNodes)},
             {"remote_memory_share",
              f.remoteMemoryShare > 0 ? f.remoteMemoryShare : std::nan("")}});
    }

    void waits() {
        cacheBelowTopK();
        diskBound();
        const double link = c.share(Cause::LinkWait);
        if (link >= kLink)
            add(link, beyond(link, kLink), "link_bound", KnobId::LinkLimit,
                "The link limit takes " + percent(link) +
                    " of the time between tokens. It is a setting: 0 removes it.",
                {{"share", link}, {"link_limit_mb_per_s", double(f.knob(KnobId::LinkLimit))}});
        const double memory = c.share(Cause::MemoryWait);
        if (memory >= kNewMemory)
            add(memory / 2, beyond(memory, kNewMemory), "new_memory", "",
                percent(memory) +
                    " of the time between tokens is reading experts into memory that the system "
                    "had "
                    "to allocate first. This ends when all slots of the cache have been used.",
                {{"share", memory}});
        const double off = c.share(Cause::Descheduled);
        if (off >= kDescheduled)
            add(off, beyond(off, kDescheduled), "oversubscribed", KnobId::ComputeThreads,
                "For " + percent(off) +
                    " of the time between tokens the engine was ready to compute but did not run: "
                    "more threads than cores, or other programs. Fewer compute threads can help.",
                {{"share", off},
                 {"compute_threads", double(f.knob(KnobId::ComputeThreads))},
                 {"cores", double(f.cores)}});
    }

    void cacheBelowTopK() {
        const int64_t size = f.knob(KnobId::ExpertCacheSize);
        if (f.topK <= 0 || size <= 0 || size >= f.topK || f.lookups == 0) return;
        add(1, 1, "below_the_cliff", KnobId::ExpertCacheSize,
            "The cache holds " + formatCount(size) + " experts of each layer, but one token uses " +
                formatCount(f.topK) + ": hardly any expert is found again. Choose at least " +
                formatCount(f.topK) + ".",
            {{"cache_size", double(size)},
             {"top_k", double(f.topK)},
             {"hit_rate", double(f.hits) / double(f.lookups)}});
    }

    void diskBound() {
        const double share = c.share(Cause::DiskWait) + c.share(Cause::QueueWait);
        if (share < kWaits) return;
        const double bytes = f.demandBytes + f.prefetchBytes;
        const double rate = f.diskBusySeconds > 0 ? bytes / f.diskBusySeconds : std::nan("");
        const double reached =
            f.diskBytesPerSecond > 0 ? rate / f.diskBytesPerSecond : std::nan("");
        std::string text = "Waiting for experts from the disk takes " + percent(share) +
                           " of the time between tokens. The disk delivered " + formatRate(rate);
        if (std::isfinite(reached))
            text += ", " + percent(reached) + " of the rate measured on this machine";
        const bool atLimit = !(reached < kNearLimit);
        const bool whole = f.experts > 0 && f.knob(KnobId::ExpertCacheSize) >= f.experts;
        KnobId knob = KnobId::ExpertCacheSize;
        if (!atLimit && !whole) {
            text += ". More reads at a time can use the rest; a larger cache needs fewer reads.";
            knob = KnobId::IoDepth;
        } else {
            text += ". A larger cache needs fewer reads.";
        }
        add(share, beyond(share, kWaits), "disk_bound", knob, std::move(text),
            {{"share", share},
             {"disk_bytes_per_s", rate},
             {"of_measured_rate", reached},
             {"hit_rate", f.lookups ? double(f.hits) / double(f.lookups) : std::nan("")}});
    }

    void prefetching() {
        const double late = c.share(Cause::PrefetchWait);
        if (late >= kLatePrefetch)
            add(late, beyond(late, kLatePrefetch), "late_prefetch", KnobId::PrefetchDepth,
                "Prefetches that come late take " + percent(late) +
                    " of the time between tokens. A greater prefetch depth starts them earlier.",
                {{"share", late}, {"prefetch_depth", double(f.knob(KnobId::PrefetchDepth))}});
        const auto& p = f.prefetch;
        const int64_t outcomes = p.useful + p.late + p.wasted;
        if (f.knob(KnobId::PrefetchSource) == int64_t(PrefetchSource::Off) ||
            outcomes < kFewestPrefetches)
            return;
        const double useful = double(p.useful) / double(outcomes);
        const double wasted = double(p.wasted) / double(outcomes);
        const std::vector<std::pair<std::string, double>> figures{
            {"useful_share", useful},
            {"late_share", double(p.late) / double(outcomes)},
            {"wasted_share", wasted},
            {"outcomes", double(outcomes)}};
        const double disk = c.share(Cause::DiskWait) + c.share(Cause::QueueWait);
        if (wasted >= kWastedPrefetch && disk >= kWaits) {
            add(disk * wasted, beyond(wasted, kWastedPrefetch), "prefetch_harmful",
                KnobId::PrefetchSource,
                percent(wasted) +
                    " of the prefetches are evicted unused, while tokens wait for the disk that "
                    "reads them. Another prefetch source, or none, leaves the disk to the reads "
                    "that tokens wait for.",
                figures);
        } else if (useful <= kUselessPrefetch) {
            add(0.02, beyond(kUselessPrefetch, std::max(useful, 1e-3)), "prefetch_useless",
                KnobId::PrefetchSource,
                "Only " + percent(useful) +
                    " of the prefetches are there when their expert is used. Another prefetch "
                    "source may predict better.",
                figures);
        } else if (useful >= kUsefulPrefetch) {
            add(0.01, beyond(useful, kUsefulPrefetch), "prefetch_useful", "",
                percent(useful) + " of the prefetches are there when their expert is used.",
                figures);
        }
        fewPrefetchThreads();
        manyPrefetchThreads();
    }

    void manyPrefetchThreads() {
        const int64_t threads = f.knob(KnobId::PrefetchThreads);
        if (threads < 2 || f.seconds <= 0) return;
        const double busy = f.prefetchSeconds / f.seconds;  // threads
        if (busy > kBusyThreads * double(threads)) return;
        const double off = c.share(Cause::Descheduled);
        add(off >= kDescheduled ? off / 2 : 0.01,
            beyond(kBusyThreads * double(threads), std::max(busy, 1e-3)), "many_prefetch_threads",
            KnobId::PrefetchThreads,
            "Of " + formatCount(threads) + " prefetch threads " + formatFixed(busy, 1) +
                " read at a time on average. Fewer do the same.",
            {{"prefetch_threads", double(threads)}, {"reading_at_a_time", busy}});
    }

    void fewPrefetchThreads() {
        const auto& p = f.prefetch;
        const double predicted = double(p.issued + p.cancelled);
        const double cancelled = predicted > 0 ? double(p.cancelled) / predicted : 0;
        const double idle = f.seconds > 0 ? 1 - std::min(1.0, f.diskBusySeconds / f.seconds) : 0;
        const double waits = c.ofWaits();
        if (cancelled < kCancelled || idle < kDiskIdle || waits < kLatePrefetch) return;
        add(waits / 2, beyond(cancelled, kCancelled), "few_prefetch_threads",
            KnobId::PrefetchThreads,
            percent(cancelled) +
                " of the predicted experts are not read before their layer needs them, although "
                "the "
                "disk is idle for " +
                percent(idle) + " of the time. More prefetch threads can read them.",
            {{"cancelled_share", cancelled},
             {"disk_idle_share", idle},
             {"prefetch_threads", double(f.knob(KnobId::PrefetchThreads))}});
    }

    void requests() {
        const double prefill = c.share(Cause::Prefill);
        if (prefill >= kPrefill)
            add(prefill, beyond(prefill, kPrefill), "prefill_delays_tokens", KnobId::PrefillChunk,
                "Prompts of other requests take " + percent(prefill) +
                    " of the time between tokens. A smaller prefill chunk delays each token less.",
                {{"share", prefill}, {"prefill_chunk", double(f.knob(KnobId::PrefillChunk))}});
        const double turn = c.share(Cause::BatchWait);
        if (turn >= kBatchWait)
            add(turn, beyond(turn, kBatchWait), "batch_too_small", KnobId::MaxBatch,
                "Requests wait " + percent(turn) +
                    " of the time between their tokens for a turn in the batch. A larger batch has "
                    "room for more of them.",
                {{"share", turn}, {"max_batch", double(f.knob(KnobId::MaxBatch))}});
        const double timeout = double(f.knob(KnobId::BatchTimeout));
        const double byTimeout =
            f.admitted > 0 ? double(f.joinedByTimeout) / double(f.admitted) : 0;
        if (f.admitted >= kFewestRequests && f.requests > 0 && f.requests < kAlone &&
            byTimeout >= kByTimeout && timeout >= kShortQueueMs && f.medianQueueMs >= timeout / 2)
            add(0.03, beyond(kAlone, f.requests) * 5, "batch_timeout_only_waits",
                KnobId::BatchTimeout,
                "Requests wait " + formatMs(f.medianQueueMs) +
                    " for others to join, but a step has " + formatFixed(f.requests, 1) +
                    " requests on average. A batch timeout of 0 starts them at once.",
                {{"median_queue_ms", f.medianQueueMs},
                 {"batch_timeout_ms", timeout},
                 {"requests_per_step", f.requests}});
    }

    void routing() {
        if (f.knob(KnobId::IoMode) == int64_t(IoMode::Buffered) && f.demandReads > 0)
            add(0.04, 0, "page_cache_beside_the_expert_cache", KnobId::IoMode,
                "Reads go through the system's page cache, which keeps a second copy of experts in "
                "memory that the expert cache could use. Direct reads avoid it.",
                {{"demand_reads", double(f.demandReads)}});
        if (!f.spread) return;
        const SessionFacts::Spread& s = *f.spread;
        const std::vector<std::pair<std::string, double>> figures{
            {"hottest_quarter_share", s.hottestQuarter},
            {"relative_entropy", s.entropy},
            {"overlap_of_consecutive_tokens", s.overlap}};
        if (s.hottestQuarter >= kHotQuarter) {
            add(0.01, beyond(s.hottestQuarter, kHotQuarter), "hot_set", "",
                "The routing has a hot set: the most used quarter of each layer's experts gets " +
                    percent(s.hottestQuarter) + " of the uses. A cache of that size serves them.",
                figures);
        } else if (s.hottestQuarter <= kFlatQuarter) {
            add(0.01, beyond(kFlatQuarter, s.hottestQuarter), "flat_routing", "",
                "The routing is flat: the most used quarter of each layer's experts gets only " +
                    percent(s.hottestQuarter) +
                    " of the uses, so the hit rate grows about as the cache does.",
                figures);
        }
    }

    const SessionFacts& f;
    const Causes& c;
    std::vector<Found> m_found;
};

}  // namespace

std::vector<Verdict> verdictsOf(const SessionFacts& facts) {
    return Rules(facts).all();
}

}  // namespace colibri
