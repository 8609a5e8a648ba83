// SPDX-License-Identifier: Apache-2.0
#include "profiler/quality/perplexity.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "engine/runtime/engine.h"

namespace colibri {

namespace {

using Logits = std::vector<float>;  // (vocab) of one position

// A window of the text. Positions [scoreFrom, end) are scored with the logits of the positions
// before them.
struct Window {
    size_t begin, scoreFrom, end;
};

std::vector<Window> windowsOf(size_t tokens, size_t size) {
    std::vector<Window> windows;
    for (size_t scored = 1; scored < tokens;) {
        const size_t begin = scored == 1 ? 0 : scored - size / 2;
        const size_t end = std::min(tokens, begin + size);
        windows.push_back({begin, scored, end});
        scored = end;
    }
    return windows;
}

double logSumExp(const Logits& x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(double(v) - top);
    return top + std::log(sum);
}

class NllSum {
public:
    void add(double nll) {
        m_sum += nll;
        m_squares += nll * nll;
        ++m_count;
    }
    Perplexity result() const {
        const auto n = double(m_count);
        const double mean = m_sum / n;
        const double variance = n > 1 ? std::max(0.0, (m_squares - n * mean * mean) / (n - 1)) : 0;
        return {m_count, mean, std::sqrt(variance / n)};
    }

private:
    double m_sum = 0, m_squares = 0;
    int64_t m_count = 0;
};

// KL(p || q) of two distributions given as logits with their log-sum-exp.
double divergence(const Logits& p, double sumP, const Logits& q, double sumQ) {
    double kl = 0;
    for (size_t i = 0; i < p.size(); ++i) {
        const double logP = p[i] - sumP;
        kl += std::exp(logP) * (logP - (q[i] - sumQ));
    }
    return std::max(0.0, kl);  // rounding may give a negative result
}

size_t likeliest(const Logits& x) {
    return size_t(std::max_element(x.begin(), x.end()) - x.begin());
}

Status checkText(const Engine& engine, const std::vector<int32_t>& ids, int64_t window) {
    if (ids.size() < 2) {
        return {Code::InvalidArgument,
                "the text has " + formatCount(int64_t(ids.size())) + " tokens",
                "At least two are needed: the first is context for the second"};
    }
    if (window < 2 || window > engine.contextLength()) {
        return {Code::InvalidArgument,
                "a window of " + formatCount(window) + " tokens; it can be 2.." +
                    formatCount(engine.contextLength()),
                "Choose a smaller window or load with a larger context length"};
    }
    return {};
}

std::vector<int32_t> limited(const std::vector<int32_t>& ids, int64_t most) {
    const auto end = most > 0 && most < int64_t(ids.size()) ? ids.begin() + most : ids.end();
    return {ids.begin(), end};
}

// Calls forward(window) for every window, and then score(position) for its scored positions.
Status eachWindow(const std::vector<int32_t>& ids, int64_t size, const ProgressFn& progress,
                  const CancelFlag* cancel,
                  const std::function<Status(const std::vector<int32_t>&)>& forward,
                  const std::function<void(size_t row, int32_t token)>& score) {
    for (const Window& w : windowsOf(ids.size(), size_t(size))) {
        if (cancel && cancel->load()) return {Code::Cancelled, "stopped"};
        if (progress) progress({"Text", w.scoreFrom, ids.size(), "tokens"});
        COLIBRI_TRY(forward({ids.begin() + int64_t(w.begin), ids.begin() + int64_t(w.end)}));
        for (size_t i = w.scoreFrom; i < w.end; ++i) score(i - 1 - w.begin, ids[i]);
    }
    if (progress) progress({"Text", ids.size(), ids.size(), "tokens"});
    return {};
}

}  // namespace

double Perplexity::perplexity() const {
    return std::exp(meanNll);
}

Result<Perplexity> measurePerplexity(Engine& engine, const std::vector<int32_t>& allIds,
                                     const PerplexityOptions& options, const ProgressFn& progress,
                                     const CancelFlag* cancel) {
    const std::vector<int32_t> ids = limited(allIds, options.maxTokens);
    COLIBRI_TRY(checkText(engine, ids, options.window));
    NllSum sum;
    Result<Engine::LogitsResult> rows = Engine::LogitsResult{};
    COLIBRI_TRY(eachWindow(
        ids, options.window, progress, cancel,
        [&](const std::vector<int32_t>& window) {
            rows = engine.logits(window);
            return rows.status();
        },
        [&](size_t row, int32_t token) {
            const Logits& x = rows->logits[row];
            sum.add(logSumExp(x) - x[size_t(token)]);
        }));
    return sum.result();
}

Result<Comparison> compareModels(Engine& a, Engine& b, const std::vector<int32_t>& allIds,
                                 const PerplexityOptions& options, const ProgressFn& progress,
                                 const CancelFlag* cancel) {
    const std::vector<int32_t> ids = limited(allIds, options.maxTokens);
    COLIBRI_TRY(checkText(a, ids, options.window).in("first model"));
    COLIBRI_TRY(checkText(b, ids, options.window).in("second model"));
    if (a.info().config.vocabSize != b.info().config.vocabSize) {
        return Status(Code::InvalidArgument,
                      "vocabularies of " + formatCount(a.info().config.vocabSize) + " and " +
                          formatCount(b.info().config.vocabSize) + " tokens",
                      "Compare two containers of one model");
    }
    NllSum sumA, sumB;
    std::vector<double> kl;
    int64_t agreed = 0;
    Result<Engine::LogitsResult> rowsA = Engine::LogitsResult{}, rowsB = Engine::LogitsResult{};
    COLIBRI_TRY(eachWindow(
        ids, options.window, progress, cancel,
        [&](const std::vector<int32_t>& window) -> Status {
            rowsA = a.logits(window);
            COLIBRI_TRY(rowsA.status().in("first model"));
            rowsB = b.logits(window);
            return rowsB.status().in("second model");
        },
        [&](size_t row, int32_t token) {
            const Logits &x = rowsA->logits[row], &y = rowsB->logits[row];
            const double sumX = logSumExp(x), sumY = logSumExp(y);
            sumA.add(sumX - x[size_t(token)]);
            sumB.add(sumY - y[size_t(token)]);
            kl.push_back(divergence(x, sumX, y, sumY));
            agreed += likeliest(x) == likeliest(y);
        }));
    Comparison result{sumA.result(), sumB.result()};
    std::sort(kl.begin(), kl.end());
    for (const double v : kl) result.meanKl += v / double(kl.size());
    const auto rank = size_t(std::ceil(0.99 * double(kl.size())));
    result.p99Kl = kl[std::max<size_t>(rank, 1) - 1];
    result.maxKl = kl.back();
    result.top1Agreement = double(agreed) / double(kl.size());
    return result;
}

}  // namespace colibri
