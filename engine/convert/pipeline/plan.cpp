// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

constexpr size_t kEnoughFaults = 1000;  // limits the work for a hostile config

// Faults of one kind, shown as a list of bounded length.
struct FaultList {
    const char* title;
    std::vector<std::string> lines;
    size_t count = 0;

    void add(const std::string& line) {
        ++count;
        if (lines.size() < kListed) lines.push_back(printable(line));
    }
    std::string text() const {
        if (count == 0) return {};
        std::string out = "\n " + std::string(title) + " (" + formatCount(int64_t(count)) + "):";
        for (const std::string& line : lines) out += "\n  " + line;
        if (count > lines.size()) {
            out += "\n  and " + formatCount(int64_t(count - lines.size())) + " more";
        }
        return out;
    }
};

class Planner {
public:
    Planner(const OpenedSource& source, std::optional<DType> dtype, const TypeOverrides& overrides)
        : m_source(source),
          m_checkpoint(source.checkpoint),
          m_dtype(dtype),
          m_overrides(overrides) {
        for (const NameRow& row : source.naming->rows) m_names.emplace(row.part, row.names);
    }

    Result<Plan> run() {
        m_plan.config = m_source.config;
        resolveTied();
        for (const TensorSpec& spec : denseTensors(m_plan.config)) {
            addDense(spec);
            if (tooMany()) return failure();
        }
        for (int64_t layer = 0; layer < m_plan.config.numLayers; ++layer) {
            if (m_plan.config.moeLayer[size_t(layer)]) addExperts(layer);
            if (tooMany()) return failure();
        }
        for (const SourceTensor& t : m_checkpoint.tensors()) {
            if (!m_used.count(&t) && !ignored(t.name)) {
                m_unknown.add(t.name + " " + t.typeName + " " + shapeText(t.shape));
            }
        }
        if (m_missing.count + m_shape.count + m_unknown.count + m_type.count > 0) return failure();
        for (const auto& [part, type] : m_overrides) {
            if (m_usedOverrides.count(part)) continue;
            return Status(Code::InvalidArgument,
                          "no matrix of this model is called \"" + part + "\"",
                          "The matrices are " + matrixNames());
        }
        layOut();
        return std::move(m_plan);
    }

private:
    void resolveTied() {
        if (m_source.tiedKnown) return;
        m_plan.config.tiedEmbeddings = !lookup("head", -1);
    }

    bool tooMany() const { return m_missing.count + m_shape.count + m_type.count > kEnoughFaults; }

    // A tensor, and which of several equal parts of its rows is used.
    struct Found {
        const SourceTensor* tensor = nullptr;
        int64_t part = 0, parts = 1;

        explicit operator bool() const { return tensor != nullptr; }
    };

    // The first of the alternatives that exists.
    Found firstOf(const char* names, int64_t layer, int64_t expert) const {
        for (std::string pattern : splitAlternatives(names)) {
            Found found;
            if (pattern.ends_with(']')) {  // "name[1/2]"
                const size_t open = pattern.rfind('[');
                found.part = pattern[open + 1] - '0';
                found.parts = pattern[open + 3] - '0';
                pattern.resize(open);
            }
            found.tensor = m_checkpoint.find(fillName(pattern, layer, expert));
            if (found) return found;
        }
        return {};
    }
    Found lookup(const std::string& part, int64_t layer) const {
        auto it = m_names.find(part);
        return it == m_names.end() ? Found{} : firstOf(it->second, layer, -1);
    }
    static std::string firstName(const char* names, int64_t layer, int64_t expert) {
        return fillName(splitAlternatives(names).front(), layer, expert);
    }
    const SourceTensor* companionOf(const SourceTensor& t, const char* suffix) const {
        return m_checkpoint.find(t.name + suffix);
    }

    static std::vector<int64_t> trimmed(const std::vector<int64_t>& shape) {
        auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
        return {first, shape.end()};
    }

    // Returns a view of the whole tensor as rows of `cols` and marks it as used, if its shape is as
    // expected (ignoring leading ones) and its type is supported. Otherwise notes the fault.
    std::optional<RowView> take(const SourceTensor* t, const std::vector<int64_t>& shape) {
        m_used.insert(t);
        RowView view = rowsOf(t, 0, 1, shape.back());
        for (size_t i = 0; i + 1 < shape.size(); ++i) view.rows *= shape[i];
        const bool fp8 = t->typeName == "F8_E4M3" && m_source.fp8Block[0] > 0;
        if (fp8) {
            view.encoding = Encoding::Fp8;
            view.width = shape.back();
            view.scaleBlock = m_source.fp8Block;
            view.scales = companionOf(*t, "_scale_inv");
            if (!view.scales) {
                m_missing.add(t->name + "_scale_inv");
                return {};
            }
            const auto blocks = [&](size_t i) {
                const int64_t n = i == 0 ? view.rows : view.cols;
                return (n + view.scaleBlock[i] - 1) / view.scaleBlock[i];
            };
            m_used.insert(view.scales);
            if (view.scales->shape != std::vector<int64_t>{blocks(0), blocks(1)}) {
                wrongShape(*view.scales, {blocks(0), blocks(1)});
                return {};
            }
        } else if (!t->dtype) {
            m_type.add(t->name + " " + t->typeName);
            return {};
        }
        if (t->shape != shape && trimmed(t->shape) != trimmed(shape)) {
            wrongShape(*t, shape);
            return {};
        }
        return view;
    }

    void wrongShape(const SourceTensor& t, const std::vector<int64_t>& shape) {
        m_shape.add(t.name + " " + shapeText(t.shape) + ", expected " +
                    (shape.size() == 2 && shape[0] == 1 ? "[" + std::to_string(shape[1]) + "]"
                                                        : shapeText(shape)));
    }

    void addDense(const TensorSpec& spec) {
        int64_t layer = -1;
        std::string part = spec.name;
        if (size_t dot = spec.name.find('.'); dot != std::string::npos) {
            layer = std::stoll(spec.name.substr(0, dot));
            part = spec.name.substr(dot + 1);
        }
        std::optional<RowView> view;
        if (const Found found = lookup(part, layer)) {
            view = denseView(part, spec, found);
        } else if (const Found both = lookup("kv_b", layer);
                   both && (part == "k_up" || part == "v_up")) {
            view = latentView(part, both.tensor);
        } else {
            const auto it = m_names.find(part == "k_up" || part == "v_up" ? "kv_b" : part);
            if (!spec.optional) {
                m_missing.add(it == m_names.end() ? spec.name : firstName(it->second, layer, -1));
            }
        }
        if (!view) return;
        DensePart d;
        d.info.name = spec.name;
        d.info.rows = spec.rows;
        d.info.cols = spec.cols;
        d.info.packed = spec.matrix;
        d.info.dtype = DType::F32;
        if (spec.matrix) {
            d.info.dtype = overridden(part).value_or(targetType(spec.name, view->dtype(), m_dtype));
        }
        // Transposed rows are encoded again, which needs a type with an encoder.
        if (spec.matrix && view->colStride != 1 && !hasEncoder(d.info.dtype)) {
            d.info.dtype = DType::Q8_0;
        }
        d.view = *view;
        m_plan.dense.push_back(std::move(d));
    }

    std::optional<RowView> denseView(const std::string& part, const TensorSpec& spec,
                                     const Found& found) {
        const ModelConfig& c = m_plan.config;
        const bool byExpert = part == "expert_gate_bias" || part == "expert_up_bias";
        if (byExpert && m_source.stack == StackForm::Interleaved) {
            std::optional<RowView> view = take(found.tensor, {spec.rows, 2 * spec.cols});
            if (!view) return {};
            view->cols = spec.cols;
            view->colStride = 2;
            view->base = part == "expert_up_bias";
            return view;
        }
        std::vector<int64_t> shape{found.parts * spec.rows, spec.cols};
        // The file has one matrix per head, the container a single one.
        if ((part == "k_up" || part == "v_up") && found.tensor->shape.size() == 3) {
            shape = {c.numHeads, spec.rows / c.numHeads, spec.cols};
        }
        std::optional<RowView> view = take(found.tensor, shape);
        if (!view) return {};
        view->rows = spec.rows;
        view->base = found.part * spec.rows * spec.cols;
        if (m_source.pairedRope &&
            (part == "q" || part == "k" || part == "q_bias" || part == "k_bias")) {
            view->pairedHeads = part[0] == 'q' ? c.numHeads : c.numKvHeads;
            if (!spec.matrix) {  // a bias has one value per row
                std::swap(view->rows, view->cols);
                view->rowStride = 1;
            }
        }
        return view;
    }

    // The rows of kv_b_proj [heads * (nope + value), rank] for keys, transposed by head, or for
    // values.
    std::optional<RowView> latentView(const std::string& part, const SourceTensor* t) {
        const ModelConfig& c = m_plan.config;
        const int64_t perHead = c.mla.nopeDim + c.mla.valueDim, rank = c.mla.kvRank;
        std::optional<RowView> view = take(t, {c.numHeads * perHead, rank});
        if (!view) return {};
        view->blockStride = perHead * rank;
        if (part == "v_up") {
            view->rows = c.numHeads * c.mla.valueDim;
            view->block = c.mla.valueDim;
            view->base = c.mla.nopeDim * rank;
        } else {
            view->rows = c.numHeads * rank;
            view->cols = c.mla.nopeDim;
            view->block = rank;
            view->rowStride = 1;
            view->colStride = rank;
        }
        return view;
    }

    // A stack of all experts in MXFP4: "_blocks" [E, out, in / 32, 16] and "_scales".
    bool mxfp4Stack(const char* names, int64_t layer, int64_t out, int64_t in, RowView& view) {
        for (const std::string& pattern : splitAlternatives(names)) {
            const std::string name = fillName(pattern, layer, -1);
            const SourceTensor* blocks = m_checkpoint.find(name + "_blocks");
            const SourceTensor* scales = m_checkpoint.find(name + "_scales");
            if (!blocks || !scales) continue;
            m_used.insert(blocks);
            m_used.insert(scales);
            const int64_t E = m_plan.config.numExperts;
            const std::vector<int64_t> shape{E, out, in / kBlock, kBlock / 2};
            if (blocks->shape != shape || in % kBlock != 0) wrongShape(*blocks, shape);
            if (scales->shape != std::vector<int64_t>{E, out, in / kBlock}) {
                wrongShape(*scales, {E, out, in / kBlock});
            }
            view = rowsOf(blocks, 0, E * out, in);
            view.encoding = Encoding::Mxfp4;
            view.scales = scales;
            return true;
        }
        return false;
    }

    // Finds one of the three matrices for all experts of a layer, in any of the layouts.
    bool expertMatrix(int64_t layer, size_t which, ExpertsPart& out) {
        const ModelConfig& c = m_plan.config;
        const ExpertNames& n = m_source.naming->experts;
        const char* single = std::array{n.w1, n.w3, n.w2}[which];
        const char* stacked = std::array{n.stackedW1, n.stackedW3, n.stackedW2}[which];
        const bool both = which != 2;  // gate and up may be in one stack
        const int64_t rows = which == 2 ? c.hiddenSize : c.expertSize;
        const int64_t cols = which == 2 ? c.expertSize : c.hiddenSize;
        // `view` covers a whole stack with `height` rows per expert. This matrix consists of `rows`
        // of them, starting at `first`, `step` apart.
        const auto cut = [&](const RowView& view, int64_t height, int64_t first, int64_t step) {
            for (int64_t e = 0; e < c.numExperts; ++e) {
                RowView& v = out.experts[size_t(e)][which] = view;
                v.rows = rows;
                v.base = (e * height + first) * cols;
                v.rowStride = step * cols;
            }
            return true;
        };
        RowView view;
        if (mxfp4Stack(both ? n.stackedW13 : stacked, layer, both ? 2 * rows : rows, cols, view)) {
            return both ? cut(view, 2 * rows, which, 2) : cut(view, rows, 0, 1);
        }
        const Found together = both ? firstOf(n.stackedW13, layer, -1) : Found{};
        if (const Found found = together ? together : firstOf(stacked, layer, -1)) {
            const int64_t height = together ? 2 * rows : rows;
            if (m_source.stack != StackForm::Rows) {
                return columnStack(found.tensor, which, height, rows, cols, out);
            }
            const auto all = take(found.tensor, {c.numExperts, height, cols});
            return all && cut(*all, height, together && which == 1 ? rows : 0, 1);
        }
        bool good = true;
        for (int64_t e = 0; e < c.numExperts && !tooMany(); ++e) {
            const Found found = firstOf(single, layer, e);
            if (!found) m_missing.add(firstName(single, layer, e));
            const auto one = found ? take(found.tensor, {rows, cols}) : std::nullopt;
            good &= one.has_value();
            if (one) out.experts[size_t(e)][which] = *one;
        }
        return good;
    }

    // [E, in, out]: a row of the matrix is a column in the file.
    bool columnStack(const SourceTensor* t, size_t which, int64_t height, int64_t rows,
                     int64_t cols, ExpertsPart& out) {
        const ModelConfig& c = m_plan.config;
        const bool inTurn = m_source.stack == StackForm::Interleaved && which != 2;
        auto view = take(t, {c.numExperts, cols, height});
        if (!view) return false;
        view->rows = rows;
        view->cols = cols;
        view->rowStride = inTurn ? 2 : 1;
        view->colStride = height;
        const int64_t first = inTurn ? int64_t(which) : which == 1 ? rows : 0;
        for (int64_t e = 0; e < c.numExperts; ++e) {
            view->base = e * cols * height + first;
            out.experts[size_t(e)][which] = *view;
        }
        return true;
    }

    void addExperts(int64_t layer) {
        ExpertsPart part;
        part.experts.resize(size_t(m_plan.config.numExperts));
        bool good = true;
        for (size_t which = 0; which < 3; ++which) good &= expertMatrix(layer, which, part);
        if (!good) return;
        part.layout = expertLayout(m_plan.config, layer, typesOf(part));
        m_plan.layers.push_back(std::move(part));
    }

    std::string matrixNames() const {
        std::string out;
        std::set<std::string> seen;
        for (const DensePart& d : m_plan.dense) {
            const std::string part = d.info.name.substr(d.info.name.rfind('.') + 1);
            if (d.info.packed && seen.insert(part).second) out += part + ", ";
        }
        return m_plan.layers.empty() ? out.substr(0, out.size() - 2)
                                     : out + "and of experts w1, w3, w2";
    }

    std::optional<DType> overridden(const std::string& part) {
        const auto it = m_overrides.find(part);
        if (it == m_overrides.end()) return {};
        m_usedOverrides.insert(part);
        return it->second;
    }

    // For each matrix, a single type that suits all experts of the layer.
    ExpertTypes typesOf(const ExpertsPart& part) {
        DType types[3];
        for (size_t i = 0; i < 3; ++i) {
            types[i] = part.experts[0][i].dtype();
            for (const auto& views : part.experts) types[i] = common(types[i], views[i].dtype());
            if (m_dtype) types[i] = *m_dtype;
            types[i] = overridden(std::array{"w1", "w3", "w2"}[i]).value_or(types[i]);
        }
        matchInputs(types[0], types[1]);
        return {types[0], types[1], types[2]};
    }

    // A type that can represent the values of both. For two different quantised types this is q8_0.
    static DType common(DType a, DType b) {
        if (a == b) return a;
        if (isQuantised(a) && isQuantised(b)) return DType::Q8_0;
        if (isQuantised(a)) return b;
        if (isQuantised(b)) return a;
        return DType::F32;
    }

    // Gate and up have a common input, so if only one of them is quantised, it becomes plain.
    static void matchInputs(DType& gate, DType& up) {
        if (isQuantised(gate) == isQuantised(up)) return;
        (isQuantised(gate) ? gate : up) = DType::F32;
    }

    // The same for dense layers.
    void matchDenseInputs() {
        for (size_t i = 1; i < m_plan.dense.size(); ++i) {
            TensorInfo &gate = m_plan.dense[i - 1].info, &up = m_plan.dense[i].info;
            if (gate.name.ends_with(".gate") && up.name.ends_with(".up")) {
                matchInputs(gate.dtype, up.dtype);
            }
        }
    }

    // Tensors without learned content: buffers, the copy of a tied head, prediction layers after
    // the last.
    bool ignored(const std::string& name) const {
        if (name.ends_with("rotary_emb.inv_freq") || name.ends_with("rotary_emb.cos_cached") ||
            name.ends_with("rotary_emb.sin_cached")) {
            return true;
        }
        if (m_plan.config.tiedEmbeddings && name == m_names.at("head")) return true;
        // The divisors of the rotation's frequencies are already part of the config.
        if (name.starts_with("rope_f") && name.ends_with(".weight")) return true;
        const int64_t layers = m_plan.config.numLayers;
        for (int64_t extra = 0; extra < std::min<int64_t>(m_source.extraLayers, 64); ++extra) {
            for (const char* prefix : {"model.layers.{L}.", "blk.{L}."}) {
                if (name.starts_with(fillName(prefix, layers + extra, -1))) return true;
            }
        }
        return m_source.extraLayers > 0 &&
               (name.starts_with("mtp.") || name.starts_with("model.mtp."));
    }

    void layOut() {
        matchDenseInputs();
        std::vector<TensorInfo> infos;
        for (DensePart& d : m_plan.dense) infos.push_back(d.info);
        m_plan.denseBytes = layOutDense(infos);
        for (size_t i = 0; i < infos.size(); ++i) m_plan.dense[i].info = infos[i];
        for (ExpertsPart& p : m_plan.layers) {
            m_plan.expertBytes += p.layout.recordBytes * m_plan.config.numExperts;
        }
        std::array<int64_t, kDTypeCount> bytes{};
        for (const SourceTensor* t : m_used) {
            bytes[size_t(t->dtype.value_or(DType::BF16))] += t->bytes;
        }
        m_plan.sourceType = DType(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
        m_plan.sourceTensors = int64_t(m_used.size());
    }

    Status failure() const {
        std::string lists = m_missing.text() + m_shape.text() + m_unknown.text();
        std::string where = m_checkpoint.files().front().path.parent_path().string();
        if (lists.empty()) {
            return Status(
                Code::Unsupported, where + ": tensors of an unsupported type" + m_type.text(),
                "Supported types: F32, F16, BF16, FP8 in blocks, MXFP4, and in GGUF files also "
                "Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K");
        }
        return Status(Code::BadInput, where + ": the tensors do not match a " +
                                          m_plan.config.family + " model with this config" + lists +
                                          m_type.text());
    }

    const OpenedSource& m_source;
    const Checkpoint& m_checkpoint;
    std::optional<DType> m_dtype;
    const TypeOverrides& m_overrides;
    std::unordered_set<std::string> m_usedOverrides;
    std::unordered_map<std::string, const char*> m_names;
    std::unordered_set<const SourceTensor*> m_used;
    FaultList m_missing{"missing"}, m_shape{"of the wrong shape"}, m_unknown{"unknown"},
        m_type{"of an unsupported type"};
    Plan m_plan;
};

}  // namespace

DType targetType(const std::string& name, DType source, std::optional<DType> requested) {
    if (!requested) return source;
    const bool coarse = *requested == DType::Q4_0 || *requested == DType::MXFP4;
    if (coarse && (name == "embed" || name == "head")) return DType::Q8_0;
    return *requested;
}

Status noEncoder(DType type) {
    return Status(Code::InvalidArgument,
                  std::string(dtypeName(type)) + " can only be read from GGUF files, not written",
                  "Use " + encodableNames());
}

Result<Plan> makePlan(const OpenedSource& source, std::optional<DType> dtype,
                      const TypeOverrides& overrides) {
    if (dtype && !hasEncoder(*dtype)) return noEncoder(*dtype);
    for (const auto& [part, type] : overrides) {
        if (!hasEncoder(type)) return noEncoder(type);
    }
    return Planner(source, dtype, overrides).run();
}

}  // namespace colibri
