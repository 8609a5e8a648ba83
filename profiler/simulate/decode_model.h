// SPDX-License-Identifier: Apache-2.0
// Predicts the decode rate from misses, with the times that a session measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace colibri {

// What missing experts cost a layer of a step, by their number: how long compute waits for them,
// and how much longer it computes, since it computes in smaller groups of experts between the
// waits. Reads overlap with each other and with the computation of resident experts, so the wait is
// less than misses * read time.
class MissCost {
public:
    // A layer of a step with this many misses waited and computed that long.
    void add(int64_t misses, uint64_t waitNs, uint64_t computeNs);
    int64_t layers() const { return m_layers; }          // added so far
    bool measured() const { return m_sums.size() > 1; }  // some had misses
    // Call once, after the last add(). `readNs`: mean duration of a read, the cost of every miss if
    // no miss was added.
    void finish(double readNs);

    // Each layer with misses costs that much more, after finish().
    void addPerLayer(double ns);

    // REQUIRES: finish() was called.
    double costNs(int64_t misses) const;
    double meanNs() const { return m_meanNs; }  // per miss, over all that was added
    // The part that is computation: of a step with so many misses, in so many of its layers.
    double computeNs(int64_t missLayers, int64_t misses) const {
        return double(missLayers) * m_layerNs + double(misses) * m_missNs;
    }

private:
    struct Sum {
        int64_t count = 0;
        double waitNs = 0, computeNs = 0;
    };
    void findComputation();
    void findWaits();

    int64_t m_layers = 0;
    std::vector<Sum> m_sums;             // by misses
    std::vector<double> m_waits = {0};   // ns, by misses
    double m_slopeNs = 0;                // wait of a further miss, beyond the last
    double m_layerNs = 0, m_missNs = 0;  // computation: of a layer with misses, and of each
    double m_meanNs = 0;
    double m_missLayers = 0, m_misses = 0;  // added so far
};

// Tokens per second of one request; NaN: unknown.
struct DecodeRate {
    double value, low, high;  // 95 % interval
};

// One step of the batch, as it was recorded.
struct StepTimes {
    int64_t tokens = 0;      // generated in it, without first tokens
    double otherNs = 0;      // sum over its tokens: gap without waiting for experts
    int64_t missLayers = 0;  // layers with misses
    int64_t misses = 0;      // of all layers
};

// The time per token of a step is its recorded time without what its misses cost, plus the cost of
// the simulated misses of each layer:
//
//   rate = tokens / sum over tokens (gap - preempted - stall - computation for misses
//                                    + sum over layers cost(simulated misses))
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
    void findSlowness();
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
