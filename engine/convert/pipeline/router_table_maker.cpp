// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/router_table_maker.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "engine/base/progress_gate.h"
#include "engine/model/router.h"
#include "engine/model/router_table.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int64_t kEmbeddingBlockBytes = 16 << 20;  // of f32 embedding rows
constexpr int64_t kSliceRows = 64;                  // rows of one product

class TableMaker {
public:
    TableMaker(const OpenedSource& source, const Plan& plan, const ProgressFn& progress,
               const CancelFlag* cancel)
        : m_source(source),
          m_plan(plan),
          m_config(plan.config),
          m_router(m_config.routing, int(m_config.numExperts), int(m_config.topK), bestKernels()),
          m_gate(progress),
          m_cancel(cancel) {}

    Status write(const std::filesystem::path& file) {
        if (m_config.moeLayerCount() == 0) {
            return Status(Code::Unsupported, "a router table needs a model with experts");
        }
        Result<RouterTableWriter> writer = RouterTableWriter::create(file, m_config);
        if (!writer.ok()) return writer.status();
        for (int64_t layer = 0; layer < m_config.numLayers; ++layer) {
            if (m_config.moeLayer[size_t(layer)]) COLIBRI_TRY(writeLayer(*writer, layer));
        }
        return writer->finish();
    }

private:
    // All values of a dense tensor; empty if the model does not have it.
    Result<std::vector<float>> values(const std::string& name) {
        for (const DensePart& part : m_plan.dense) {
            if (part.info.name != name) continue;
            std::vector<float> out(size_t(part.view.rows * part.view.cols));
            COLIBRI_TRY(
                m_source.checkpoint.readFloats(part.view, 0, part.view.rows, m_raw, out.data()));
            return out;
        }
        return std::vector<float>();
    }
    const RowView& embedding() const {
        for (const DensePart& part : m_plan.dense) {
            if (part.info.name == "embed") return part.view;
        }
        return m_plan.dense.front().view;  // not reached: every plan has an embedding
    }

    Status writeLayer(RouterTableWriter& writer, int64_t layer) {
        Result<std::vector<float>> norm = values(tensorName(layer, "ffn_norm"));
        if (!norm.ok()) return norm.status();
        Result<std::vector<float>> router = values(tensorName(layer, "router"));
        if (!router.ok()) return router.status();
        Result<std::vector<float>> bias = values(tensorName(layer, "router_bias"));
        if (!bias.ok()) return bias.status();
        Result<std::vector<float>> normBias = values(tensorName(layer, "ffn_norm_bias"));
        if (!normBias.ok()) return normBias.status();
        Result<std::vector<float>> logitBias = values(tensorName(layer, "router_logit_bias"));
        if (!logitBias.ok()) return logitBias.status();
        m_norm = std::move(*norm);
        m_bias = std::move(*bias);
        m_normBias = std::move(*normBias);
        m_logitBias = std::move(*logitBias);
        m_packed.resize(size_t(packedBytes(DType::F32, m_config.numExperts, m_config.hiddenSize)));
        packRows(DType::F32, router->data(), m_config.numExperts, m_config.hiddenSize,
                 m_packed.data());

        const RowView& embed = embedding();
        const int64_t rowBytes = m_config.hiddenSize * int64_t(sizeof(float));
        const int64_t block =
            std::max<int64_t>(kEmbeddingBlockBytes / rowBytes / kSliceRows, 1) * kSliceRows;
        for (int64_t first = 0; first < embed.rows; first += block) {
            if (cancelled(m_cancel)) {
                return Status(Code::Cancelled, "The conversion was cancelled",
                              "Run it again to resume");
            }
            const int64_t n = std::min(block, embed.rows - first);
            m_rows.resize(size_t(n * m_config.hiddenSize));
            COLIBRI_TRY(m_source.checkpoint.readFloats(embed, first, n, m_raw, m_rows.data()));
            m_entries.resize(size_t(n * m_config.topK));
            chooseAll(n);
            COLIBRI_TRY(writer.append(m_entries));
            m_done += uint64_t(n);
            m_gate.report("Router table", m_done, uint64_t(embed.rows * m_config.moeLayerCount()));
        }
        return {};
    }

    // Computes the entries of the n rows in m_rows, in slices on all processors.
    void chooseAll(int64_t n) {
        const int64_t slices = (n + kSliceRows - 1) / kSliceRows;
        std::atomic<int64_t> next{0};
        const auto work = [&] {
            for (int64_t s = next++; s < slices; s = next++) {
                const int64_t first = s * kSliceRows;
                choose(first, std::min(kSliceRows, n - first));
            }
        };
        const auto threads = std::min<int64_t>(std::thread::hardware_concurrency(), slices);
        std::vector<std::thread> helpers;
        for (int64_t i = 1; i < threads; ++i) helpers.emplace_back(work);
        work();
        for (std::thread& helper : helpers) helper.join();
    }

    void choose(int64_t first, int64_t n) {
        const KernelSet& k = bestKernels();
        const int64_t hidden = m_config.hiddenSize, experts = m_config.numExperts;
        for (int64_t r = first; r < first + n; ++r) {
            float* row = m_rows.data() + r * hidden;
            float mean = 0;  // layer norms subtract it
            for (int64_t i = 0; i < hidden && !m_normBias.empty(); ++i)
                mean += row[i] / float(hidden);
            for (int64_t i = 0; i < hidden; ++i) {
                row[i] = (row[i] - mean) * float(m_config.embeddingScale);
            }
            k.rmsNorm(row, m_norm.data(), hidden, m_config.rmsEps, row);
            if (!m_normBias.empty()) k.axpy(row, 1.0f, m_normBias.data(), hidden);
        }
        // The element type aligns the prepared rows for float.
        std::vector<float> input(size_t(n * inputRowBytes(DType::F32, hidden)) / sizeof(float));
        auto* prepared = reinterpret_cast<std::byte*>(input.data());
        k.prepareInput(DType::F32, m_rows.data() + first * hidden, hidden, n, hidden, prepared);
        std::vector<float> logits(size_t(n * experts)), scratch(static_cast<size_t>(experts));
        k.matmul(DType::F32, m_packed.data(), experts, hidden, 0, panelCount(experts), prepared, n,
                 logits.data(), experts);
        std::vector<int> chosen(static_cast<size_t>(m_config.topK));
        std::vector<float> weights(static_cast<size_t>(m_config.topK));
        for (int64_t r = 0; r < n; ++r) {
            if (!m_logitBias.empty()) {
                k.axpy(logits.data() + r * experts, 1.0f, m_logitBias.data(), experts);
            }
            m_router.select(logits.data() + r * experts, m_bias.empty() ? nullptr : m_bias.data(),
                            scratch.data(), chosen.data(), weights.data());
            std::copy(chosen.begin(), chosen.end(),
                      m_entries.begin() + (first + r) * m_config.topK);
        }
    }

    const OpenedSource& m_source;
    const Plan& m_plan;
    const ModelConfig& m_config;
    const Router m_router;
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    uint64_t m_done = 0;
    std::vector<std::byte> m_raw, m_packed;  // m_packed: the layer's router
    std::vector<float> m_norm, m_normBias, m_bias, m_logitBias, m_rows;
    std::vector<uint16_t> m_entries;  // (block, k)
};

}  // namespace

Status makeRouterTable(const OpenedSource& source, const Plan& plan,
                       const std::filesystem::path& file, const ProgressFn& progress,
                       const CancelFlag* cancel) {
    return TableMaker(source, plan, progress, cancel).write(file);
}

}  // namespace colibri
