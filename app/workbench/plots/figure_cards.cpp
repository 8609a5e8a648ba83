// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/figure_cards.h"

#include <cmath>

#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr double kTogether = 1.2;         // requests per step from which they are several
constexpr double kComparedSeconds = 120;  // figures stand beside those before a change

QString number(double v, int decimals) { return QString::fromStdString(formatFixed(v, decimals)); }

// The newest knob change while figures may still be compared with those before it: not for long, and
// not after a further change.
const Marker* recentChange(const Snapshot& snapshot) {
    for (size_t i = snapshot.markers.size(); i-- > 0;) {
        const Marker& marker = snapshot.markers[i];
        if (marker.kind == Marker::Kind::Knob && !marker.automatic)
            return snapshot.now - marker.t <= kComparedSeconds ? &marker : nullptr;
    }
    return nullptr;
}

// The series' value just before a change.
double valueBefore(const Snapshot& snapshot, SeriesId id, double t) {
    return visibleStats(snapshot.series[size_t(id)], t - 10, t).last;
}

}  // namespace

QVector<FigureCard> figureCards(const Snapshot& snapshot, const SessionSource& source, double sloMs) {
    const Figures& f = snapshot.figures;
    const bool few = f.itlCount < 200;
    QVector<FigureCard> cards;
    FigureCard decode{"Decode", number(f.decodeTokS, 1), "tok/s", {},
                      "Tokens per second that one request gets, over the last 2 s; with several at once "
                      "all of them together get more. A turn's own figure is over its whole reply.\n"
                      "Source: engine events, 2 s window"};
    const SeriesData& batches = snapshot.series[size_t(SeriesId::MeanBatch)];
    const double together = batches.y.empty() ? std::nan("") : batches.y.back();
    const Marker* change = recentChange(snapshot);
    const EffectLook effect = change ? effectLook(*change) : EffectLook();
    if (together >= kTogether && std::isfinite(f.decodeTokS)) {
        decode.detail = {caption("per request, "), captionMono(number(together, 1)), caption(" at once")};
    } else if (effect.figure && std::isfinite(f.decodeTokS)) {
        decode.detail = {captionMono(effect.text.section(" tok/s", 0, 0), effect.ink),
                         caption(" since " + clockText(change->t, 0))};
    } else if (!std::isfinite(f.itlP50Ms)) {
        decode.detail = {caption("no tokens now")};
    } else {
        decode.detail = {caption("ITL P50 "), captionMono(number(f.itlP50Ms, 1)), caption(" ms")};
    }
    cards << decode;

    FigureCard itl{"ITL P99", number(f.itlP99Ms, 1), "ms", {},
                   "99th percentile of every gap between tokens, pooled.\n"
                   "Source: engine events, 10 s window"};
    const QString slo = number(sloMs, 0);
    if (!std::isfinite(f.itlP99Ms)) {
        itl.detail = {caption("SLO " + slo + " ms")};
    } else if (few) {
        itl.detail = {caption(QString("n = %1, under 200").arg(f.itlCount))};
    } else {
        const bool met = f.itlP99Ms <= sloMs;
        itl.detail = {caption("SLO " + slo + " ms, "),
                      caption(met ? "met" : "over", met ? Tone::Ok : Tone::Error)};
    }
    cards << itl;

    FigureCard hit{"Hit rate", number(f.hitRate, 1), "%", {},
                   "Experts found in memory at first touch, out of all look-ups.\n"
                   "A prefetch that comes late counts as a miss. Over the last 10 s; a turn's own "
                   "figure is over its whole reply.\nSource: engine events, 10 s window"};
    const double before = change && std::isfinite(f.hitRate)
                              ? valueBefore(snapshot, SeriesId::HitRate, change->t) : std::nan("");
    if (std::isfinite(before)) {
        hit.detail = {caption("was " + number(before, 1) + " %")};
    } else if (std::isfinite(f.prefetchHitRate)) {
        hit.detail = {captionMono(number(f.prefetchHitRate, 1)), caption(" % by prefetch")};
    } else {
        hit.detail = {caption("no look-ups now")};
    }
    cards << hit;

    const QString rate = std::isfinite(f.readBytesPerS)
                             ? QString::fromStdString(formatRate(f.readBytesPerS)) : "n/a";
    FigureCard read{"Read", rate.section(' ', 0, 0), rate.section(' ', 1), {},
                    "Bytes of experts read from disk per second, over the last second; below it what "
                    "the disk was measured to deliver.\nSource: engine events, 1 s window"};
    const int64_t limit = source.knobState(KnobId::LinkLimit).effective;
    const double roof = source.calibration().diskBytesPerSecond;
    read.detail = {limit > 0 ? caption(QString("link limit %1 MB/s").arg(limit), Tone::Warn)
                   : roof > 0 ? caption("of " + QString::fromStdString(formatRate(roof)))
                              : caption("experts from disk")};
    cards << read;

    cards << FigureCard{"Stall", number(f.stallShare, 0), "%", {caption("waiting for the disk")},
                        "Share of decode time in which compute waited for experts.\n"
                        "Source: engine events, 10 s window"};
    return cards;
}

QVector<FigureCard> emptyFigureCards() {
    QVector<FigureCard> cards;
    for (const char* label : {"Decode", "ITL P99", "Hit rate", "Read", "Stall"})
        cards << FigureCard{label, "n/a", "", {caption("no model is loaded")}, ""};
    return cards;
}

}  // namespace colibri::ui
