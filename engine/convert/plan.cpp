// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/plan.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/format.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

constexpr size_t kListed = 20;           // names shown per kind of fault
constexpr size_t kEnoughFaults = 1000;   // a hostile config stops here

// Faults of one kind, shown as a list of bounded length.
struct FaultList {
    const char* title;
    std::vector<std::string> lines;
    size_t count = 0;

    void add(std::string line) {
        ++count;
        if (lines.size() < kListed) lines.push_back(std::move(line));
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
    Planner(const OpenedSource& source, std::optional<DType> dtype)
        : m_source(source), m_checkpoint(source.checkpoint), m_dtype(dtype) {
        for (const NameRow& row : source.naming->rows) m_names.emplace(row.part, row.names);
    }

    Result<Plan> run() {
        m_plan.config = m_source.config;
        settleTied();
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
        place();
        return std::move(m_plan);
    }

private:
    void settleTied() {
        if (m_source.tiedKnown) return;
        m_plan.config.tiedEmbeddings = lookup("head", -1, -1) == nullptr;
    }

    bool tooMany() const { return m_missing.count + m_shape.count + m_type.count > kEnoughFaults; }

    // First of the alternatives that is there.
    const SourceTensor* firstOf(const char* names, int64_t layer, int64_t expert) const {
        for (const std::string& pattern : splitAlternatives(names)) {
            if (auto* t = m_checkpoint.find(fillName(pattern, layer, expert))) return t;
        }
        return nullptr;
    }
    const SourceTensor* lookup(const std::string& part, int64_t layer, int64_t expert) const {
        auto it = m_names.find(part);
        return it == m_names.end() ? nullptr : firstOf(it->second, layer, expert);
    }
    static std::string firstName(const char* names, int64_t layer, int64_t expert) {
        return fillName(splitAlternatives(names).front(), layer, expert);
    }

    // Marks as used; checks type and shape. Nothing when at fault.
    bool take(const SourceTensor* t, const std::vector<int64_t>& shape) {
        m_used.insert(t);
        if (!t->dtype) {
            m_type.add(t->name + " " + t->typeName);
            return false;
        }
        if (t->shape == shape) return true;
        if (shape.size() == 2 && shape[0] == 1 && t->shape == std::vector<int64_t>{shape[1]}) {
            return true;                 // a vector
        }
        m_shape.add(t->name + " " + shapeText(t->shape) + ", expected " +
                    (shape.size() == 2 && shape[0] == 1
                         ? "[" + std::to_string(shape[1]) + "]"
                         : shapeText(shape)));
        return false;
    }

    void addDense(const TensorSpec& spec) {
        int64_t layer = -1;
        std::string part = spec.name;
        if (size_t dot = spec.name.find('.'); dot != std::string::npos) {
            layer = std::stoll(spec.name.substr(0, dot));
            part = spec.name.substr(dot + 1);
        }
        const SourceTensor* t = lookup(part, layer, -1);
        if (!t) {
            auto it = m_names.find(part);
            if (!spec.optional) {
                m_missing.add(it == m_names.end() ? spec.name
                                                  : firstName(it->second, layer, -1));
            }
            return;
        }
        if (!take(t, {spec.rows, spec.cols})) return;
        DensePart d;
        d.info.name = spec.name;
        d.info.rows = spec.rows;
        d.info.cols = spec.cols;
        d.info.packed = spec.matrix;
        d.info.dtype = spec.matrix ? targetType(spec.name, *t->dtype, m_dtype) : DType::F32;
        d.view = {t, 0, spec.rows, spec.cols, 0};
        if (m_source.pairedRope && (part[0] == 'q' || part[0] == 'k') && !part.ends_with("norm")) {
            d.view.pairedHeads = part[0] == 'q' ? m_plan.config.numHeads : m_plan.config.numKvHeads;
            if (!spec.matrix) std::swap(d.view.rows, d.view.cols);   // a bias: one value per row
        }
        m_plan.dense.push_back(std::move(d));
    }

    // One of the three matrices for all experts of a layer, from whichever layout is there.
    bool expertMatrix(int64_t layer, size_t which, ExpertsPart& out) {
        const ModelConfig& c = m_plan.config;
        const ExpertNames& n = m_source.naming->experts;
        const char* single = std::array{n.w1, n.w3, n.w2}[which];
        const char* stacked = std::array{n.stackedW1, n.stackedW3, n.stackedW2}[which];
        int64_t rows = which == 2 ? c.hiddenSize : c.expertSize;
        int64_t cols = which == 2 ? c.expertSize : c.hiddenSize;
        if (which != 2) {
            if (auto* t = firstOf(n.stackedW13, layer, -1)) {   // gate rows, then up rows
                if (!take(t, {c.numExperts, 2 * rows, cols})) return false;
                for (int64_t e = 0; e < c.numExperts; ++e) {
                    int64_t first = e * 2 * rows + (which == 1 ? rows : 0);
                    out.experts[size_t(e)][which] = {t, first, rows, cols, 0};
                }
                return true;
            }
        }
        if (auto* t = firstOf(stacked, layer, -1)) {
            if (!take(t, {c.numExperts, rows, cols})) return false;
            for (int64_t e = 0; e < c.numExperts; ++e) {
                out.experts[size_t(e)][which] = {t, e * rows, rows, cols, 0};
            }
            return true;
        }
        bool good = true;
        for (int64_t e = 0; e < c.numExperts && !tooMany(); ++e) {
            const SourceTensor* t = firstOf(single, layer, e);
            if (!t) m_missing.add(firstName(single, layer, e));
            if (!t || !take(t, {rows, cols})) {
                good = false;
                continue;
            }
            out.experts[size_t(e)][which] = {t, 0, rows, cols, 0};
        }
        return good;
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

    // Of each matrix the one type that all experts of the layer can have.
    ExpertTypes typesOf(const ExpertsPart& part) const {
        if (m_dtype) return ExpertTypes::all(*m_dtype);
        DType types[3];
        for (size_t i = 0; i < 3; ++i) {
            types[i] = *part.experts[0][i].tensor->dtype;
            for (const auto& views : part.experts)
                types[i] = common(types[i], *views[i].tensor->dtype);
        }
        matchInputs(types[0], types[1]);
        return {types[0], types[1], types[2]};
    }

    // A type that holds the values of both; of two quantised types no better one than q8_0.
    static DType common(DType a, DType b) {
        if (a == b) return a;
        if (isQuantised(a) && isQuantised(b)) return DType::Q8_0;
        if (isQuantised(a)) return b;
        if (isQuantised(b)) return a;
        return DType::F32;
    }

    // Gate and up are multiplied with one input: a quantised one beside a plain one becomes plain.
    static void matchInputs(DType& gate, DType& up) {
        if (isQuantised(gate) == isQuantised(up)) return;
        (isQuantised(gate) ? gate : up) = DType::F32;
    }

    // The same for the dense layers.
    void matchDenseInputs() {
        for (size_t i = 1; i < m_plan.dense.size(); ++i) {
            TensorInfo &gate = m_plan.dense[i - 1].info, &up = m_plan.dense[i].info;
            if (gate.name.ends_with(".gate") && up.name.ends_with(".up")) {
                matchInputs(gate.dtype, up.dtype);
            }
        }
    }

    // Buffers that hold nothing learned, the copy of a tied head, prediction layers after the last.
    bool ignored(const std::string& name) const {
        if (name.ends_with("rotary_emb.inv_freq") || name.ends_with("rotary_emb.cos_cached") ||
            name.ends_with("rotary_emb.sin_cached")) {
            return true;
        }
        if (m_plan.config.tiedEmbeddings && name == m_names.at("head")) return true;
        const int64_t layers = m_plan.config.numLayers;
        for (int64_t extra = 0; extra < std::min<int64_t>(m_source.extraLayers, 64); ++extra) {
            for (const char* prefix : {"model.layers.{L}.", "blk.{L}."}) {
                if (name.starts_with(fillName(prefix, layers + extra, -1))) return true;
            }
        }
        return m_source.extraLayers > 0 && (name.starts_with("mtp.") ||
                                            name.starts_with("model.mtp."));
    }

    void place() {
        matchDenseInputs();
        std::vector<TensorInfo> infos;
        for (DensePart& d : m_plan.dense) infos.push_back(d.info);
        m_plan.denseBytes = placeDense(infos);
        for (size_t i = 0; i < infos.size(); ++i) m_plan.dense[i].info = infos[i];
        for (ExpertsPart& p : m_plan.layers) {
            m_plan.expertBytes += p.layout.recordBytes * m_plan.config.numExperts;
        }
        std::array<int64_t, kDTypeCount> bytes{};
        for (const SourceTensor* t : m_used) bytes[size_t(*t->dtype)] += t->bytes;
        m_plan.sourceType = DType(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
        m_plan.sourceTensors = int64_t(m_used.size());
    }

    Status failure() const {
        std::string lists = m_missing.text() + m_shape.text() + m_unknown.text();
        std::string where = m_checkpoint.files().front().path.parent_path().string();
        if (lists.empty()) {
            return Status(Code::Unsupported,
                          where + ": tensors of a type that is not read" + m_type.text(),
                          "Read are F32, F16, BF16, and from GGUF also Q8_0, Q4_0, Q4_1, Q5_0, "
                          "Q5_1, Q4_K, Q5_K, Q6_K and MXFP4");
        }
        return Status(Code::BadInput,
                      where + ": the tensors do not fit a " + m_plan.config.family +
                          " model with this config" + lists + m_type.text());
    }

    const OpenedSource& m_source;
    const Checkpoint& m_checkpoint;
    std::optional<DType> m_dtype;
    std::unordered_map<std::string, const char*> m_names;
    std::unordered_set<const SourceTensor*> m_used;
    FaultList m_missing{"missing"}, m_shape{"of the wrong shape"}, m_unknown{"unknown"},
        m_type{"of a type that is not read"};
    Plan m_plan;
};

}  // namespace

DType targetType(const std::string& name, DType source, std::optional<DType> asked) {
    if (!asked) return source;
    const bool coarse = *asked == DType::Q4_0 || *asked == DType::MXFP4;
    if (coarse && (name == "embed" || name == "head")) return DType::Q8_0;
    return *asked;
}

Status noEncoder(DType type) {
    return Status(Code::InvalidArgument,
                  std::string(dtypeName(type)) + " is read from GGUF files, not made here",
                  "Use " + encodableNames());
}

Result<Plan> makePlan(const OpenedSource& source, std::optional<DType> dtype) {
    if (dtype && !hasEncoder(*dtype)) return noEncoder(*dtype);
    return Planner(source, dtype).run();
}

}  // namespace colibri
