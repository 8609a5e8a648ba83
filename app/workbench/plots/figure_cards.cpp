// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/figure_cards.h"

#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_spec.h"

namespace colibri::ui {
namespace {

constexpr double kTogether = 1.2;  // requests per step from which several run at once
constexpr double kComparedSeconds =
    120;  // for so long a figure is compared with its value before a change

constexpr uint64_t kFewestForP99 = 20;  // gaps; for fewer the P99 is little more than the largest

QString number(double v, int decimals) {
    return str(formatFixed(v, decimals));
}

// The newest knob change whose effect the cards show: for kComparedSeconds, until the next change,
// and not if it is newer than the figures.
const Marker* recentChange(const Snapshot& snapshot) {
    for (size_t i = snapshot.markers.size(); i-- > 0;) {
        const Marker& marker = snapshot.markers[i];
        if (marker.t > snapshot.figuresAt) continue;
        if (marker.kind == Marker::Kind::Knob && !marker.automatic)
            return snapshot.figuresAt - marker.t <= kComparedSeconds ? &marker : nullptr;
    }
    return nullptr;
}

// The value of the series just before a change.
double valueBefore(const Snapshot& snapshot, SeriesId id, double t) {
    return visibleStats(snapshot.series[size_t(id)], t - 10, t).last;
}

bool isPast(const Snapshot& snapshot) {
    return snapshot.running == 0 && snapshot.turns > 0;
}

FigureCard metricCard(SeriesId id, const QString& value, const QString& more = {}) {
    const MetricRow& row = metricRow(id);
    return {row.label, value, row.unit, {}, metricHelp(id, more)};
}

FigureCard decodeCard(const Snapshot& snapshot, const Marker* change) {
    const Figures& f = snapshot.figures;
    FigureCard card = metricCard(SeriesId::TokensPerSecond, number(f.decodeTokS, 1),
                                 "With several requests at once all of them together get more. A "
                                 "turn's own figure is over its whole reply.");
    const SeriesData& batches = snapshot.series[size_t(SeriesId::MeanBatch)];
    const double together = visibleStats(batches, snapshot.figuresAt - 1, snapshot.figuresAt).last;
    const EffectLook effect = change ? effectLook(*change) : EffectLook();
    if (!std::isfinite(f.decodeTokS))
        card.detail = {caption(snapshot.running > 0 ? "no token yet" : "no tokens now")};
    else if (together >= kTogether && std::isfinite(f.allTokS))
        card.detail = {caption("each; "), captionMono(number(f.allTokS, 1)), caption(" in all")};
    else if (effect.figure)
        card.detail = {captionMono(effect.text.section(" tok/s", 0, 0), effect.ink),
                       caption(" at " + clockText(change->t, 0))};
    else
        card.detail = {caption("ITL P50 "), captionMono(number(f.itlP50Ms, 1)), caption(" ms")};
    return card;
}

FigureCard itlCard(const Snapshot& snapshot, double sloMs) {
    const Figures& f = snapshot.figures;
    FigureCard card = metricCard(SeriesId::ItlP99, number(f.itlP99Ms, 1),
                                 QString("99th percentile of all requests' gaps together. It "
                                         "needs %1 gaps, and is no verdict below %2.")
                                     .arg(kFewestForP99)
                                     .arg(kEnoughForP99));
    const QString slo = number(sloMs, 0);
    const bool few = f.itlCount < kFewestForP99;
    if (few) card.value = "n/a";
    if (!std::isfinite(f.itlP99Ms)) {
        card.detail = {caption("SLO " + slo + " ms")};
    } else if (f.itlCount < kEnoughForP99) {
        card.detail = {caption(QString(few ? "n = %1, %2 needed" : "n = %1, under %2")
                                   .arg(f.itlCount)
                                   .arg(few ? kFewestForP99 : kEnoughForP99))};
    } else {
        const bool met = f.itlP99Ms <= sloMs;
        card.detail = {caption("SLO " + slo + " ms, "),
                       caption(met ? "met" : "over", met ? Tone::Ok : Tone::Error)};
    }
    return card;
}

FigureCard hitCard(const Snapshot& snapshot, const Marker* change) {
    const Figures& f = snapshot.figures;
    FigureCard card = metricCard(SeriesId::HitRate, number(f.hitRate, 1),
                                 "Of all look-ups of experts. A prefetch that comes late counts as "
                                 "a miss. A turn's own figure is over its whole reply.");
    const double before = change && std::isfinite(f.hitRate)
                              ? valueBefore(snapshot, SeriesId::HitRate, change->t)
                              : std::nan("");
    if (std::isfinite(before))
        card.detail = {caption("was " + number(before, 1) + " %")};
    else if (std::isfinite(f.prefetchHitRate))
        card.detail = {captionMono(number(f.prefetchHitRate, 1)), caption(" % by prefetch")};
    else
        card.detail = {caption(snapshot.running > 0 ? "no look-up yet" : "no look-ups now")};
    return card;
}

FigureCard readCard(const Snapshot& snapshot, const SessionSource& source) {
    const double value = snapshot.figures.readBytesPerS;
    const QString rate = std::isfinite(value) ? str(formatRate(value)) : QString("n/a");
    FigureCard card = metricCard(SeriesId::ReadRate, rate.section(' ', 0, 0),
                                 "Below it is what the disk was measured to deliver.");
    card.unit = rate.section(' ', 1);
    const int64_t limit = snapshot.knob(KnobId::LinkLimit).effective;
    const double measured = source.calibration().diskBytesPerSecond;
    card.detail = {limit > 0      ? caption("link limit " + count(limit) + " MB/s", Tone::Warn)
                   : measured > 0 ? caption("of " + str(formatRate(measured)))
                                  : caption("experts from disk")};
    return card;
}

FigureCard stallCard(const Snapshot& snapshot) {
    FigureCard card = metricCard(SeriesId::StallShare, number(snapshot.figures.stallShare, 0));
    card.detail = {caption(isPast(snapshot) ? "of the decode time" : "waiting for the disk")};
    return card;
}

// The cards of a dense model, instead of hit rate, reads and stall.
FigureCard memoryCard(const SessionSource& source) {
    const MemoryNow memory = source.memory();
    const QString size = str(formatGiB(double(memory.used)));
    FigureCard card = metricCard(SeriesId::MemoryGiB, size.section(' ', 0, 0),
                                 "Below it is what this process could use.");
    card.unit = size.section(' ', 1);
    card.detail = {memory.limit > 0 ? caption("of " + str(formatGiB(double(memory.limit))))
                                    : caption("of this process")};
    return card;
}

}  // namespace

QVector<FigureCard> figureCards(const Snapshot& snapshot, const SessionSource& source,
                                double sloMs) {
    const Marker* change = recentChange(snapshot);
    QVector<FigureCard> cards{decodeCard(snapshot, change), itlCard(snapshot, sloMs)};
    const ModelFacts* model = source.model();
    const bool dense = model && model->isDense();
    if (!dense)
        cards << hitCard(snapshot, change) << readCard(snapshot, source) << stallCard(snapshot);
    for (FigureCard& card : cards) card.past = isPast(snapshot) && card.value != "n/a";
    if (dense) cards << memoryCard(source);
    return cards;
}

QVector<FigureCard> emptyFigureCards() {
    QVector<FigureCard> cards;
    for (const SeriesId id : {SeriesId::TokensPerSecond, SeriesId::ItlP99, SeriesId::HitRate,
                              SeriesId::ReadRate, SeriesId::StallShare})
        cards << FigureCard{metricRow(id).label, "n/a", "", {caption("no model is loaded")}, ""};
    return cards;
}

}  // namespace colibri::ui
