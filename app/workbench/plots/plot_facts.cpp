// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_facts.h"

#include <cmath>

#include "app/workbench/platform/text.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

double newest(const Snapshot& snapshot, SeriesId id) {
    const SeriesData& data = snapshot.series[size_t(id)];
    return data.y.empty() ? std::nan("") : data.y.back();
}

QString totals(const StoreStats& stats) {
    QStringList lines;
    for (size_t i = 0; i < kPrefetchSources; ++i) {
        const PrefetchCounts& c = stats.bySource[i];
        if (c.issued == 0) continue;
        lines << QString("%1 since loading: %2 issued, %3 useful, %4 late, %5 wasted")
                     .arg(str(knobValueText(knobRow(KnobId::PrefetchSource), int64_t(i))),
                          count(c.issued), count(c.useful), count(c.late), count(c.wasted));
    }
    return lines.join('\n');
}

}  // namespace

PlotFacts memoryFacts(const SessionSource& source, const Snapshot&) {
    PlotFacts facts;
    const double limit = double(source.memory().limit) / double(1 << 30);
    if (limit <= 0) return facts;
    facts.bound = {limit, "limit " + str(formatFixed(limit, 2)), true};
    return facts;
}

PlotFacts readFacts(const SessionSource& source, const Snapshot& snapshot) {
    PlotFacts facts;
    const Calibration machine = source.calibration();
    const double measured = machine.diskBytesPerSecond;
    const int64_t limit = snapshot.knob(KnobId::LinkLimit).effective;
    if (limit > 0 && (measured <= 0 || double(limit) * 1e6 < measured)) {
        facts.bound = {double(limit) / 1000, "link limit " + count(limit) + " MB/s"};
    } else if (measured > 0) {
        facts.bound = {measured / 1e9, "measured limit " + str(formatRate(measured))};
    }
    if (measured <= 0) {
        facts.note = "limit n/a: " + str(machine.reason);
    } else {
        facts.note = "limit " + str(formatRate(measured));
        facts.detail = "Limit: random reads of whole experts, measured when a model was loaded: " +
                       str(machine.reads) + (machine.direct ? "" : "; includes page-cache reads");
    }
    return facts;
}

PlotFacts prefetchFacts(const SessionSource&, const Snapshot& snapshot) {
    PlotFacts facts;
    facts.detail = totals(snapshot.store);
    const KnobState& state = snapshot.knob(KnobId::PrefetchSource);
    const KnobRow& row = knobRow(KnobId::PrefetchSource);
    if (PrefetchSource(state.requested) == PrefetchSource::Off) {
        facts.emptyReason = "prefetch is off";
        facts.tags.push_back({"off", ""});
        return facts;
    }
    for (const KnobId id : {KnobId::PrefetchDepth, KnobId::PrefetchThreads}) {
        if (snapshot.knob(id).effective > 0) continue;
        facts.emptyReason = QString("%1 is 0").arg(knobRow(id).name);
        facts.tags.push_back({"off: " + facts.emptyReason, ""});
        return facts;
    }
    facts.note = "by " + str(knobValueText(row, state.requested));
    if (state.effective != state.requested) {
        const QString reason = str(state.reason);
        facts.tags.push_back(warnTag(reason.section(':', 0, 0)));
        if (reason.contains(": ")) facts.note += ", " + reason.section(": ", 1);
        return facts;
    }
    const double useful = newest(snapshot, SeriesId::PrefetchUseful);
    const double known = useful + newest(snapshot, SeriesId::PrefetchLate) +
                         newest(snapshot, SeriesId::PrefetchWasted);
    if (known > 0) facts.tags.push_back({str(formatPercent(useful / known, 0)) + " useful", ""});
    return facts;
}

}  // namespace colibri::ui
