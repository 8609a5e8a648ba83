// SPDX-License-Identifier: Apache-2.0
// Predicts the decode rate from misses, with the times that a session measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace colibri {

// How long compute waits for the experts of one layer, by the number of experts that are missing.
// Reads overlap with each other and with the computation of resident experts, so this is less than
// misses * read time.
class MissCost {
public:
    // A layer of a step with this many misses waited that long.
    void add(int64_t misses, uint64_t waitNs);
    bool empty() const { return m_counts.empty(); }
    // Call once, after the last add(). `readNs`: mean duration of a read, used for every miss if
    // nothing was added.
    void finish(double readNs);
    // Further cost of a miss, beyond the wait: more and smaller groups of experts to compute.
    void addOverhead(double nsPerMiss) { m_overheadNs = nsPerMiss; }
    double overheadNs() const { return m_overheadNs; }

    double costNs(int64_t misses) const;  // REQUIRES: finish() was called
    double meanNs() const;                // per miss, over all that was added

private:
    std::vector<double> m_sums;     // ns, by misses
    std::vector<int64_t> m_counts;  // by misses
    std::vector<double> m_waits;    // ns, by misses; from 0
    double m_slopeNs = 0;           // beyond the last
    double m_overheadNs = 0, m_meanNs = 0;
};

// Tokens per second of one request; NaN: unknown.
struct DecodeRate {
    double value, low, high;  // 95 % interval
};

// One step of the batch, as it was recorded.
struct StepTimes {
    int64_t tokens = 0;  // generated in it, without first tokens
    double otherNs = 0;  // sum over its tokens: gap without waiting for experts
    int64_t rows = 0;
    int64_t misses = 0;  // of all layers
};

// The time per token of a step is its recorded time without waiting for experts, plus the cost of
// the simulated misses of each layer:
//
//   rate = tokens / sum over tokens (gap - stall - preempted + sum over layers cost(misses))
//
// The interval is a block bootstrap over the tokens (Kuensch, 1989): blocks of about sqrt(n)
// successive tokens are drawn with replacement, because neighbouring tokens are similar. It covers
// how the text varies, not the drift of the machine nor a disk that behaves differently at another
// load.
class DecodeModel {
public:
    DecodeModel(std::vector<StepTimes> steps, MissCost cost);

    const std::string& unknownReason() const { return m_reason; }  // "": rates are known
    size_t blocks() const { return m_blocks.size(); }
    const MissCost& cost() const { return m_cost; }
    // Block and weight (tokens) of a step.
    size_t blockOf(uint32_t step) const { return m_blockOf[step]; }
    double weightOf(uint32_t step) const { return double(m_steps[step].tokens); }
    // The cost of a layer's misses. A sample of the keys (rate < 1) does not have all misses of a
    // layer, so each stands for 1 / rate misses of the mean cost.
    double costOf(int64_t misses, double rate) const;
    // Adds that cost to the step's block, once for each of its tokens.
    void addCost(uint32_t step, int64_t misses, double rate, std::span<double> costNs) const;
    // `costNs`: sum over tokens of what misses cost, by block.
    DecodeRate rate(std::span<const double> costNs) const;

private:
    struct Block {
        double tokens = 0, otherNs = 0;
    };
    void findOverhead();
    void makeBlocks();
    void draw();

    std::vector<StepTimes> m_steps;
    MissCost m_cost;
    std::string m_reason;
    std::vector<uint32_t> m_blockOf;  // (steps)
    std::vector<Block> m_blocks;
    std::vector<uint16_t> m_draws;  // (resamples, blocks) how often a block was drawn
};

// Without a model all is NaN.
DecodeRate rateOrUnknown(const DecodeModel* model, std::span<const double> costNs);

}  // namespace colibri
