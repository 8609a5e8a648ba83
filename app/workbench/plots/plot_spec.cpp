// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_spec.h"

#include "app/workbench/widgets/tooltip.h"

namespace colibri::ui {
namespace {

const PlotSpec kSpecs[] = {
    {.key = "hit",
     .series = {{SeriesId::HitRate, 1}, {SeriesId::PrefetchHitRate, 3}},
     .fixedMax = 100,
     .ofExperts = true},
    {.key = "load",
     .series = {{SeriesId::ExpertLoadP99, 2, 2, 0.99}, {SeriesId::ExpertLoadP50, 1, 2, 0.5}},
     .title = "Expert load",
     .pool = PlotSpec::Pool::ExpertLoad,
     .fill = PlotSpec::Fill::Between,
     .ofExperts = true},
    {.key = "itl",
     .series = {{SeriesId::ItlP99, 2, 1, 0.99}, {SeriesId::ItlP50, 1, 1, 0.5}},
     .title = "ITL",
     .pool = PlotSpec::Pool::Itl,
     .fill = PlotSpec::Fill::Between,
     .slo = true},
    {.key = "rate",
     .series = {{SeriesId::TokensPerSecond, 1}},
     .title = "Decode rate",
     .secondColumn = true},
    {.key = "disk",
     .series = {{SeriesId::ReadRate, 4, -1}},
     .ofExperts = true,
     .secondColumn = true,
     .smallUnit = "MB/s",
     .facts = readFacts},
    {.key = "memory",
     .series = {{SeriesId::MemoryGiB, 6, 2}},
     .secondColumn = true,
     .facts = memoryFacts},
    {.key = "stall",
     .series = {{SeriesId::StallShare, 2},
                {SeriesId::MemoryStallShare, 6},
                {SeriesId::PreemptedShare, 8}},
     .definition = "waiting for experts, in new memory; preempted, 10 s window",
     .fixedMax = 100},
    {.key = "kv",
     .series = {{SeriesId::KvHeld, 1}, {SeriesId::KvKept, 3}, {SeriesId::PromptReuse, 4}},
     .title = "KV cache",
     .definition = "blocks held and kept for reuse; prompt tokens reused, 60 s",
     .fill = PlotSpec::Fill::None,
     .fixedMax = 100,
     .secondColumn = true},
    {.key = "queue",
     .series = {{.id = SeriesId::QueueDepth, .color = 6, .decimals = 0, .steps = true},
                {SeriesId::MeanBatch, 1}},
     .definition = "waiting now; requests per step, 2 s window",
     .leastMax = 4,
     .secondColumn = true},
    {.key = "prefetch",
     .series = {{SeriesId::PrefetchUseful, 3},
                {SeriesId::PrefetchLate, 2},
                {SeriesId::PrefetchWasted, 8},
                {SeriesId::PrefetchIssued, 1}},
     .title = "Prefetch",
     .definition = "read ahead, by outcome, 2 s",
     .fill = PlotSpec::Fill::None,
     .ofExperts = true,
     .facts = prefetchFacts},
    {.key = "sm",
     .series = {{SeriesId::SmUtilisation, 6}, {SeriesId::GpuDram, 4}, {SeriesId::GpuBusy, 1}},
     .fixedMax = 100,
     .needs = "needs an NVIDIA GPU and its driver",
     .searchWords = "gpu graphics"},
};

// Titles and definitions that the table leaves out come from the first series.
std::vector<PlotSpec> completeSpecs() {
    std::vector<PlotSpec> specs(std::begin(kSpecs), std::end(kSpecs));
    for (PlotSpec& spec : specs) {
        const MetricRow& first = metricRow(spec.series[0].id);
        if (spec.title.isEmpty()) spec.title = first.label;
        if (spec.definition.isEmpty()) spec.definition = first.definition;
    }
    return specs;
}

}  // namespace

const std::vector<PlotSpec>& plotSpecs() {
    static const std::vector<PlotSpec> specs = completeSpecs();
    return specs;
}

QString PlotSpec::seriesDefinitions() const {
    QStringList definitions, lines;
    for (const PlotSeries& one : series) {
        const QString name = one.name();
        definitions << metricRow(one.id).definition;
        lines << name.left(1).toUpper() + name.mid(1) + ": " + definitions.last();
    }
    return definitions.count(definitions[0]) == definitions.size() ? definitions[0]
                                                                   : lines.join('\n');
}

QString metricHelp(SeriesId id, const QString& more) {
    const MetricRow& row = metricRow(id);
    const QString what = row.definition + (more.isEmpty() ? QString() : "\n" + more);
    return explained(QString(row.label) + ", " + row.unit, what, row.source);
}

}  // namespace colibri::ui
