// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/load_facts.h"

#include <algorithm>
#include <set>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/memory_bar.h"
#include "engine/base/format.h"
#include "engine/convert/source/families.h"
#include "engine/knobs/knob_options.h"
#include "engine/runtime/engine.h"

namespace colibri::ui {
namespace {

// Dense tensors by purpose; the order is that of the table.
enum Group { kAttention, kFeedForward, kEmbedding, kSmall, kGroups };
constexpr const char* kGroupNames[kGroups] = {"Attention", "Dense feed-forward", "Embedding, head",
                                              "Routers, norms"};

Group groupOf(const TensorInfo& tensor) {
    const std::string part = tensor.name.substr(tensor.name.rfind('.') + 1);
    if (part == "embed" || part == "head") return kEmbedding;
    if (!tensor.packed) return kSmall;
    return part.ends_with("gate") || part.ends_with("down") || part == "up" || part == "shared_up"
               ? kFeedForward
               : kAttention;
}

QString routingText(const RoutingSpec& routing) {
    QString text = routing.scoreFn == ScoreFn::Sigmoid   ? "sigmoid"
                   : routing.scoreFn == ScoreFn::Softmax ? "softmax"
                                                         : "softmax of the chosen";
    if (routing.weightSource == WeightSource::SigmoidLogit) text = "sigmoid";
    if (routing.weightSource == WeightSource::SparseMixer) text = "sparse mixer";
    if (routing.groups > 1) {
        text += QString(", %1 of %2 groups").arg(routing.groupTopK).arg(routing.groups);
    }
    if (routing.renorm) text += ", renormalised";
    if (routing.selectBias) text += ", selection bias";
    if (routing.scale != 1) text += ", scale " + str(formatSig(routing.scale));
    return text;
}

}  // namespace

QString familyText(const std::string& family) {
    const FamilyRow* row = familyByModelType(family);
    return (row ? QString(row->title) : str(family)) + " type";
}

QString parameterText(int64_t n) {
    if (n >= 1'000'000'000) return str(formatFixed(double(n) / 1e9, 2)) + " B";
    if (n >= 1'000'000) return str(formatFixed(double(n) / 1e6, 1)) + " M";
    return count(n);
}

QVector<Fact> modelFactList(const ContainerInfo& info) {
    const ModelConfig& c = info.config;
    const int64_t moe = c.moeLayerCount();
    const QString layers = count(c.numLayers) + ", " +
                           (moe == c.numLayers ? "all"
                            : moe == 0         ? "none"
                                               : count(moe)) +
                           " with experts";
    QString attention = count(c.numHeads) + " heads, ";
    attention += c.mla.kvRank > 0
                     ? "latent " + count(c.mla.kvRank) + " + " + count(c.rope.rotaryDim)
                     : count(c.numKvHeads) + " KV, " + count(c.headDim);
    if (c.slidingWindow > 0) {
        attention +=
            QString(c.chunkedWindow ? ", chunks of " : ", window ") + count(c.slidingWindow);
    }
    const QString shared = c.sharedSize > 0 ? ", shared " + count(c.sharedSize) : QString();
    return {
        {"Family", familyText(c.family)},
        {"Parameters", parameterText(info.parameterCount()) + ", " +
                           parameterText(info.activeParameterCount()) + " active"},
        {"Layers", layers},
        {"Experts", moe == 0 ? QString("none: a dense model")
                             : count(c.numExperts) + " per layer, top-" + count(c.topK)},
        {moe == 0 ? "Hidden, inner size" : "Hidden, expert size",
         count(c.hiddenSize) + ", " + count(moe == 0 ? c.denseSize : c.expertSize) + shared},
        {"Attention", attention},
        {"Context", c.maxPositions > 0 ? count(c.maxPositions) + " trained" : QString("n/a")},
        {"Vocabulary", count(c.vocabSize)},
        {"Routing", moe == 0 ? QString("none") : routingText(c.routing)},
        {"Converted from", info.source.empty() ? QString("n/a") : shortPath(str(info.source))},
    };
}

int64_t bytesPerToken(const ContainerInfo& info) {
    int64_t bytes = 0;
    for (const ExpertLayer& layer : info.expertLayers)
        bytes += info.config.topK * layer.recordBytes;
    for (const TensorInfo& tensor : info.tensors) {
        // A separate embedding contributes one row only.
        if (tensor.name == "embed" && info.find("head")) continue;
        bytes += tensor.bytes;
    }
    return bytes;
}

QVector<Fact> tokenFactList(const ContainerInfo& info, const Calibration& rates) {
    const ModelConfig& c = info.config;
    const int64_t moe = c.moeLayerCount(), bytes = bytesPerToken(info);
    Fact bound{"Upper bound, all resident", "n/a: memory not measured yet", Tone::Text3};
    if (rates.memoryBytesPerSecond > 0 && bytes > 0) {
        bound.value = str(formatSig(rates.memoryBytesPerSecond / double(bytes))) + " tok/s (" +
                      str(formatRate(rates.memoryBytesPerSecond)) + ")";
        bound.tone = Tone::Text1;
    }
    const double unit = bytes >= 1'000'000'000 ? 1e9 : 1e6;
    return {
        {"Expert lookups", count(moe * c.topK)},
        {"One expert", moe == 0 ? QString("n/a") : sizeText(double(info.expertRecordBytes()))},
        {"Bytes read per token",
         str(formatSig(double(bytes) / unit)) + (unit == 1e9 ? " GB" : " MB")},
        {"Smallest useful cache",
         moe == 0 ? QString("n/a")
                  : count(c.topK) + " per layer, " +
                        sizeText(double(c.topK * moe * info.expertRecordBytes()))},
        bound,
    };
}

QVector<QVector<TableCell>> weightRows(const ContainerInfo& info, QString* unitName) {
    const MemoryUnit unit = memoryUnitFor(info.denseBytes + info.expertBytes);
    *unitName = unit.name;
    QVector<QVector<TableCell>> rows;
    const auto row = [&](const QString& name, int64_t tensors, const QString& type, int64_t bytes) {
        QString amount = unit.text(double(bytes));
        if (bytes > 0 && amount.toDouble() == 0)
            amount = "<" + QString::number(unit.decimals == 2 ? 0.01 : 0.1);
        rows.push_back({{name}, {count(tensors)}, {type}, {amount}});
    };
    const ModelConfig& c = info.config;
    if (const int64_t matrices = c.moeLayerCount() * c.numExperts * 3; matrices > 0) {
        row("Routed experts", matrices, str(info.expertTypeNames()), info.expertBytes);
    }
    for (int group = 0; group < kGroups; ++group) {
        int64_t tensors = 0, bytes = 0;
        std::set<std::string_view> types;
        for (const TensorInfo& tensor : info.tensors) {
            if (groupOf(tensor) != group) continue;
            ++tensors;
            bytes += tensor.bytes;
            types.insert(dtypeName(tensor.dtype));
        }
        QStringList names;
        for (const std::string_view type : types) names << str(type);
        if (tensors) row(kGroupNames[group], tensors, names.join(", "), bytes);
    }
    return rows;
}

int64_t knobValue(const ContainerInfo& info, const KnobValues& knobs, KnobId id) {
    if (knobs[size_t(id)]) return *knobs[size_t(id)];
    const KnobRow& row = knobRow(id);
    return row.defaultValue >= 0 ? row.defaultValue : knobLimitsFor(id, info).defaultValue;
}

LoadShape loadShape(const ContainerInfo& info, const KnobValues& knobs) {
    LoadShape shape;
    shape.cacheSize = knobValue(info, knobs, KnobId::ExpertCacheSize);
    shape.contextLength = knobValue(info, knobs, KnobId::ContextLength);
    shape.kvType = KvType(knobValue(info, knobs, KnobId::KvDtype));
    shape.prefillChunk = knobValue(info, knobs, KnobId::PrefillChunk);
    shape.threads = knobValue(info, knobs, KnobId::ComputeThreads);
    return shape;
}

int64_t largestCache(const ContainerInfo& info, const KnobValues& knobs, int64_t limit) {
    LoadShape shape = loadShape(info, knobs);
    shape.cacheSize = 0;
    const int64_t rest = estimateMemory(info, shape).total();
    const int64_t perSize = info.config.moeLayerCount() * info.expertRecordBytes();
    if (perSize <= 0 || limit <= rest) return 0;
    return std::min(info.config.numExperts, (limit - rest) / perSize);
}

QString knobOptions(const KnobValues& knobs) {
    QStringList options;
    for (const KnobRow& row : knobTable()) {
        const auto& value = knobs[size_t(row.id)];
        if (!value) continue;
        options << "--" + str(knobOptionName(row)) + " " + str(knobValueText(row, *value));
    }
    return options.join(' ');
}

namespace {

// Problems of tokenizer and chat template, without which the model cannot chat.
QVector<Badge> textBadges(const Inspection& inspection) {
    const ContainerInfo& info = inspection.container;
    QVector<Badge> badges;
    if (!inspection.tokenizerProblem.isEmpty())
        badges.push_back({warnTag(info.hasTokenizer ? "tokenizer cannot be used" : "no tokenizer"),
                          inspection.tokenizerProblem});
    if (inspection.templateProblem.isEmpty()) {
        badges.push_back({okTag("template compiles"), "The model's chat template can be used."});
    } else {
        badges.push_back({warnTag(info.hasTemplate ? "template fails" : "no chat template"),
                          inspection.templateProblem});
    }
    return badges;
}

}  // namespace

QVector<Badge> badgesOf(const Inspection& inspection) {
    const ContainerInfo& info = inspection.container;
    const QString tensors = count(int64_t(info.tensors.size())) + " dense tensors, " +
                            count(info.config.moeLayerCount() * info.config.numExperts) +
                            " experts";
    if (inspection.kind == Inspection::Kind::Checkpoint) {
        QStringList notes;
        QVector<Badge> badges = {{okTag("complete: " + count(inspection.source.files) +
                                        (inspection.source.files == 1 ? " file" : " files")),
                                  "All tensors of the model are present, with the right shapes."},
                                 {okTag(tensors), "The tensors of the converted model."}};
        badges.push_back({warnTag("needs conversion"),
                          "The engine runs converted models; the original stays unchanged."});
        badges << textBadges(inspection);
        for (const std::string& note : inspection.source.notes) notes << str(note);
        if (!notes.isEmpty())
            badges.push_back(
                {{.text = count(notes.size()) + (notes.size() == 1 ? " note" : " notes")},
                 notes.join("\n")});
        return badges;
    }
    QVector<Badge> badges = {
        {okTag("complete: " + count(inspection.files) + " files"),
         "All files of the container are present with their full size. Verify hashes reads them."},
        {okTag(tensors), "The tensor table is complete for this family."}};
    if (!inspection.convertedFrom.empty()) {
        badges.push_back({okTag("converted before"), "An earlier conversion of " +
                                                         str(inspection.convertedFrom.string()) +
                                                         ". To convert it again, move " +
                                                         str(inspection.path.string()) + " away."});
    }
    badges << textBadges(inspection);
    return badges;
}

}  // namespace colibri::ui
