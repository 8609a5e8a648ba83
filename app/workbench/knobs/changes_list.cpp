// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/changes_list.h"

#include <algorithm>

#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/figures_row.h"
#include "profiler/record/effect.h"

namespace colibri::ui {
namespace {

constexpr int kHead = 28, kRowHeight = 45, kMost = 2;

bool same(const Marker& a, const Marker& b) {
    return a.t == b.t && a.knob == b.knob && a.from == b.from && a.to == b.to;
}

}  // namespace

ChangesList::ChangesList(QWidget* parent) : QWidget(parent) {
    setAccessibleName("Changes");
    setToolTip("Decode speed of the 64 tokens after a change against the 64 before it, with a 95 % "
               "interval. The first 8 tokens after it are left out while the cache settles.");
    place();
}

void ChangesList::setSnapshot(const Snapshot* snapshot) {
    std::vector<Marker> newest;
    if (snapshot) {
        for (size_t i = snapshot->markers.size(); i-- > 0 && newest.size() < kMost;) {
            const Marker& marker = snapshot->markers[i];
            if (marker.kind == Marker::Kind::Knob && marker.knob != KnobId::Count)
                newest.push_back(marker);
        }
    }
    bool changed = newest.size() != m_rows.size();
    for (size_t i = 0; !changed && i < newest.size(); ++i) changed = !same(newest[i], m_rows[i].marker);
    if (changed) {
        for (Row& row : m_rows) {
            row.undo->hide();
            row.undo->deleteLater();
        }
        m_rows.clear();
        for (const Marker& marker : newest) {
            auto* undo = new Button("Undo", Button::Kind::Quiet, Button::Size::Dense, this);
            undo->setAccessibleName("Undo " + QString::fromStdString(knobTitle(knobRow(marker.knob))));
            connect(undo, &QAbstractButton::clicked, this,
                    [this, marker] { emit undoWanted(marker.knob, marker.from); });
            undo->show();
            m_rows.push_back({marker, undo});
        }
        place();
    } else {
        for (size_t i = 0; i < newest.size(); ++i) {
            const Marker& before = m_rows[i].marker;
            changed = changed || before.effect != newest[i].effect || before.measured != newest[i].measured;
            m_rows[i].marker = newest[i];
        }
    }
    if (changed) update();
}

void ChangesList::place() {
    setFixedHeight(m_rows.empty() ? 0 : 1 + kHead + int(m_rows.size()) * kRowHeight);
    setVisible(!m_rows.empty());
    for (size_t i = 0; i < m_rows.size(); ++i) {
        const QSize size = m_rows[i].undo->sizeHint();
        m_rows[i].undo->setGeometry(width() - 6 - size.width(), 1 + kHead + int(i) * kRowHeight + 7,
                                    size.width(), size.height());
    }
}

void ChangesList::resizeEvent(QResizeEvent*) { place(); }

void ChangesList::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
    double x = 12;
    drawText(p, QRectF(x, 1, 100, kHead), Qt::AlignVCenter, "Changes", type::denseBold(),
             tone(Tone::Text1));
    x += textWidth(type::denseBold(), "Changes") + 8;
    drawText(p, QRectF(x, 1, 220, kHead), Qt::AlignVCenter, "64 tokens before and after",
             type::caption(), tone(Tone::Text3));
    for (size_t i = 0; i < m_rows.size(); ++i) {
        const Marker& marker = m_rows[i].marker;
        const double top = 1 + kHead + double(i) * kRowHeight;
        p.fillRect(QRectF(0, top, width(), 1), tone(Tone::Line1));
        drawText(p, QRectF(12, top + 7, 46, 16), Qt::AlignVCenter, clockText(marker.t, 0),
                 type::monoSmall(), tone(Tone::Text3));
        const double right = width() - 64;
        drawSpans(p, QRectF(58, top + 7, right - 58, 16),
                  {{QString::fromStdString(knobTitle(knobRow(marker.knob))) + " ", Tone::Text1, type::dense()},
                   {QString::fromStdString(knobChangeText(marker.knob, marker.from, marker.to)),
                    Tone::Text1, type::mono()}});
        const EffectLook look = effectLook(marker);
        QVector<Span> effect;
        if (marker.effect == Marker::Effect::NotMeasured) {
            effect = {caption("not measured: " + look.interval)};
        } else if (look.text.isEmpty()) {
            effect = {caption("no effect measured")};
        } else if (look.figure) {
            effect = {captionMono(look.text, look.ink), caption(" " + look.interval)};
        } else if (marker.effect == Marker::Effect::Known) {
            effect = {caption("No significant effect", Tone::Text2), caption(" " + look.interval)};
        } else {
            effect = {caption(look.text)};
        }
        drawSpans(p, QRectF(58, top + 23, right - 58, 16), effect);
    }
}

}  // namespace colibri::ui
