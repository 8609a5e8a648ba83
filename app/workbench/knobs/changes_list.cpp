// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/changes_list.h"

#include <algorithm>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/figures_row.h"
#include "app/workbench/widgets/tooltip.h"
#include "profiler/metrics/effect.h"

namespace colibri::ui {
namespace {

constexpr int kListHead = 28, kRowHeight = 45, kLine = 14;

Span titleOf(const Marker& marker) {
    return {str(knobTitle(knobRow(marker.knob))) + " ", Tone::Text1, type::dense()};
}
// A short panel shows fewer changes, to leave room for the knobs.
constexpr int kShortPanel = 480;

Span changeOf(const Marker& marker) {
    return {str(knobChangeText(marker.knob, marker.from, marker.to)), Tone::Text1, type::mono()};
}
QString reasonOf(const Marker& marker) {
    return "not measured: " + effectLook(marker).interval;
}

bool same(const Marker& a, const Marker& b) {
    return a.t == b.t && a.knob == b.knob && a.from == b.from && a.to == b.to;
}

}  // namespace

ChangesList::ChangesList(QWidget* parent) : QWidget(parent) {
    setAccessibleName("Changes");
    setToolTip(
        explained("Changes",
                  "Decode speed after a change compared with before, with a 95 % interval. Only "
                  "tokens at the same number of requests are compared, without those during "
                  "which the cache settled.",
                  "engine events of this session"));
    layOut();
}

// The newest ones; of a recorded session the next one after its time and those before it.
std::vector<Marker> ChangesList::chosen(const Snapshot& snapshot) const {
    std::vector<Marker> out;
    const auto listed = [](const Marker& marker) {
        return marker.kind == Marker::Kind::Knob && marker.knob != KnobId::Count &&
               !marker.automatic;
    };
    const std::vector<Marker>& all = snapshot.markers;
    size_t end = all.size();
    if (snapshot.recorded) {
        size_t after = 0, before = 0;
        for (const Marker& marker : all)
            if (listed(marker)) ++(marker.t > snapshot.now ? after : before);
        // As many later ones as leave none of the earlier places empty, but at least one.
        const size_t later =
            std::min(after, std::max<size_t>(1, m_most - std::min(m_most, before)));
        size_t seen = 0;
        for (end = 0; end < all.size() && seen < before + later; ++end) seen += listed(all[end]);
    }
    for (size_t i = end; i-- > 0 && out.size() < m_most;)
        if (listed(all[i])) out.push_back(all[i]);
    return out;
}

void ChangesList::makeRows(const std::vector<Marker>& markers) {
    for (Row& row : m_rows) {
        row.button->hide();
        row.button->deleteLater();
    }
    m_rows.clear();
    for (const Marker& marker : markers) {
        auto* button = new Button(m_recorded ? "Go to" : "Undo", Button::Kind::Quiet,
                                  Button::Size::Dense, this);
        button->setAccessibleName(button->text() + " " + str(knobTitle(knobRow(marker.knob))));
        connect(button, &QAbstractButton::clicked, this, [this, marker] {
            if (m_recorded)
                emit goToWanted(marker.t);
            else
                emit undoWanted(marker.knob, marker.undoTo);
        });
        button->show();
        m_rows.push_back({marker, button});
    }
    layOut();
}

void ChangesList::setSnapshot(const Snapshot* snapshot) {
    std::vector<Marker> newest;
    const double before = m_now;
    const bool wasRecorded = m_recorded;
    if (snapshot) {
        m_idle = snapshot->running == 0;
        m_recorded = snapshot->recorded;
        m_now = snapshot->now;
        newest = chosen(*snapshot);
    }
    bool changed = newest.size() != m_rows.size() || wasRecorded != m_recorded;
    for (size_t i = 0; !changed && i < newest.size(); ++i)
        changed = !same(newest[i], m_rows[i].marker);
    if (changed) {
        makeRows(newest);
    } else {
        for (size_t i = 0; i < newest.size(); ++i) {
            const Marker& old = m_rows[i].marker;
            changed = changed || old.effect != newest[i].effect ||
                      old.measured != newest[i].measured || old.settling != newest[i].settling ||
                      old.low != newest[i].low || old.high != newest[i].high ||
                      old.refining != newest[i].refining || m_idle != m_paintedIdle ||
                      (m_recorded && (old.t > before) != (old.t > m_now));
            m_rows[i].marker = newest[i];
        }
    }
    m_paintedIdle = m_idle;
    if (!changed) return;
    layOut();  // a reason may need more lines
    update();
}

// What comes after the time of a recorded session is faint.
Tone ChangesList::ink(const Marker& marker, Tone tone) const {
    return m_recorded && marker.t > m_now ? Tone::Text3 : tone;
}

int ChangesList::ownLine(const Marker& marker) const {
    const Span title = titleOf(marker), change = changeOf(marker);
    const double needed = textWidth(title.font, title.text) + textWidth(change.font, change.text);
    return needed > width() - 64 - 58 ? 16 : 0;
}

// Long reasons are wrapped, not cut.
int ChangesList::rowTop(size_t row) const {
    int y = 1 + kListHead;
    for (size_t i = 0; i < row; ++i) {
        const Marker& marker = m_rows[i].marker;
        const bool reason = marker.effect == Marker::Effect::NotMeasured;
        y += kRowHeight + ownLine(marker) +
             (reason ? int(drawWrapped(nullptr, {}, width() - 58 - 12, reasonOf(marker),
                                       type::caption(), kLine, {})) -
                           kLine
                     : 0);
    }
    return y;
}

void ChangesList::setPanelHeight(int height) {
    m_most = height < kShortPanel ? 1 : 2;
}

void ChangesList::layOut() {
    setFixedHeight(m_rows.empty() ? 0 : rowTop(m_rows.size()));
    setVisible(!m_rows.empty());
    for (size_t i = 0; i < m_rows.size(); ++i) {
        const QSize size = m_rows[i].button->sizeHint();
        m_rows[i].button->setGeometry(width() - 6 - size.width(), rowTop(i) + 7, size.width(),
                                      size.height());
    }
}

void ChangesList::resizeEvent(QResizeEvent*) {
    layOut();
}

void ChangesList::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
    double x = 12;
    drawText(p, QRectF(x, 1, 100, kListHead), Qt::AlignVCenter, "Changes", type::denseBold(),
             tone(Tone::Text1));
    x += textWidth(type::denseBold(), "Changes") + 8;
    drawElided(p, QRectF(x, 1, width() - x - 12, kListHead), Qt::AlignVCenter,
               m_recorded ? "recorded, with their effect" : "effect on decode speed",
               type::caption(), tone(Tone::Text3));
    for (size_t i = 0; i < m_rows.size(); ++i) {
        const Marker& marker = m_rows[i].marker;
        double top = rowTop(i);
        p.fillRect(QRectF(0, top, width(), 1), tone(Tone::Line1));
        drawText(p, QRectF(12, top + 7, 46, 16), Qt::AlignVCenter, clockText(marker.t, 0),
                 type::monoSmall(), tone(Tone::Text3));
        const double right = width() - 64;
        // A long change has a line of its own.
        Span title = titleOf(marker), change = changeOf(marker);
        title.tone = change.tone = ink(marker, Tone::Text1);
        if (const double extra = ownLine(marker)) {
            drawSpans(p, QRectF(58, top + 7, right - 58, 16), {title});
            drawSpans(p, QRectF(58, top + 23, width() - 58 - 12, 16), {change});
            top += extra;
        } else {
            drawSpans(p, QRectF(58, top + 7, right - 58, 16), {title, change});
        }
        const EffectLook look = effectLook(marker);
        if (marker.effect == Marker::Effect::NotMeasured) {
            drawWrapped(&p, {58, top + 23}, width() - 58 - 12, reasonOf(marker), type::caption(),
                        kLine, tone(Tone::Text3));
            continue;
        }
        QVector<Span> effect;
        if (look.text.isEmpty()) {
            effect = {caption("no effect measured")};
        } else if (look.figure) {
            effect = {captionMono(look.text, ink(marker, look.ink)), caption(" " + look.interval)};
        } else if (marker.effect == Marker::Effect::Known) {
            effect = {caption("No significant effect", ink(marker, Tone::Text2)),
                      caption(" " + look.interval)};
        } else if (marker.effect == Marker::Effect::Measuring && m_idle) {
            const QString soFar = look.text.section(", ", 1);
            effect = {
                caption("waiting for the next reply" + (soFar.isEmpty() ? soFar : ", " + soFar))};
        } else {
            effect = {caption(look.text)};
        }
        drawSpans(p, QRectF(58, top + 23, width() - 58 - 12, 16), effect);
    }
}

}  // namespace colibri::ui
