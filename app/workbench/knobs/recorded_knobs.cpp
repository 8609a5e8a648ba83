// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/recorded_knobs.h"

#include <QLabel>
#include <QScrollArea>
#include <QSet>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/workbench/knobs/changes_list.h"
#include "app/workbench/knobs/knob_control.h"
#include "app/workbench/knobs/knob_group.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/tooltip.h"

namespace colibri::ui {
namespace {

constexpr int kChoiceHigh = 27, kNumberHigh = 54, kReasonHigh = 15;

// A value that the session does not have is the default that a load would derive: -1.
QString recordedText(const KnobRow& row, int64_t value) {
    if (value < 0 && row.min >= 0) return "n/a";
    if (row.id == KnobId::LinkLimit && value == 0) return "none";
    return knobText(row, value);
}

}  // namespace

// One knob: label and value; for a number also a track with the value and earlier ones.
class RecordedKnob : public QWidget {
public:
    explicit RecordedKnob(const KnobRow& row) : m_row(row) {
        setFixedHeight(row.choices.empty() ? kNumberHigh : kChoiceHigh);
        setToolTip(explained(row.label, row.help));
    }
    const KnobRow& row() const { return m_row; }
    void setRange(const SliderRange& range) {
        m_range = range;
        update();
    }
    void setState(const KnobState& state, const QVector<int64_t>& earlier) {
        if (state.requested == m_state.requested && state.effective == m_state.effective &&
            state.reason == m_state.reason && earlier == m_earlier)
            return;
        m_state = state;
        m_earlier = earlier;
        setFixedHeight((m_row.choices.empty() ? kNumberHigh : kChoiceHigh) +
                       (differs() ? kReasonHigh : 0));
        setAccessibleName(QString(m_row.label) + ": " + valueText());
        update();
    }
    QString valueText() const {
        QString text = recordedText(m_row, m_state.effective);
        const bool unit = m_row.unit[0] && text != "none" && text != "n/a";
        return unit ? text + " " + unitFor(m_row.unit, m_state.effective) : text;
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        drawElided(p, QRectF(0, 0, width() / 2.0, 24), Qt::AlignVCenter, m_row.label, type::body(),
                   tone(Tone::Text1));
        const QString value = recordedText(m_row, m_state.effective);
        const QString unit = m_row.unit[0] && value != "none" && value != "n/a"
                                 ? unitFor(m_row.unit, m_state.effective)
                                 : QString();
        double right = width();
        if (!unit.isEmpty()) {
            right -= textWidth(type::caption(), unit);
            drawText(p, QRectF(right, 0, width(), 24), Qt::AlignVCenter, unit, type::caption(),
                     tone(Tone::Text3));
            right -= 5;
        }
        const double w = textWidth(type::mono(), value);
        drawText(p, QRectF(right - w, 0, w + 2, 24), Qt::AlignVCenter, value, type::mono(),
                 tone(Tone::Text1));
        if (m_row.choices.empty()) paintTrack(p);
        if (differs())
            drawElided(p, QRectF(0, height() - kReasonHigh, width(), 14), Qt::AlignVCenter,
                       "Requested " + recordedText(m_row, m_state.requested) +
                           (m_state.reason.empty() ? QString() : ": " + str(m_state.reason)),
                       type::caption(), tone(Tone::Text2));
    }

private:
    bool differs() const { return m_state.requested != m_state.effective; }
    double share(int64_t value) const {
        const double low = double(m_range.min), high = double(m_range.max);
        if (high <= low) return 0;
        const double at = std::clamp(double(value), low, high);
        return m_range.logarithmic ? std::log1p(at - low) / std::log1p(high - low)
                                   : (at - low) / (high - low);
    }
    void paintTrack(QPainter& p) {
        const double left = 6, length = width() - 12, y = 28;
        const double at = std::round(left + share(m_state.effective) * length);
        fillBox(p, QRectF(left, y, length, 4), tone(Tone::Bg3), Qt::transparent, 2);
        fillBox(p, QRectF(left, y, at - left, 4), tone(Tone::Line2), Qt::transparent, 2);
        if (m_range.harmfulBelow) {
            const double end = left + share(*m_range.harmfulBelow) * length;
            fillBox(p, QRectF(left, y, std::min(end, at) - left, 4), tone(Tone::Error),
                    Qt::transparent, 2);
        }
        p.setRenderHint(QPainter::Antialiasing);
        for (const int64_t value : m_earlier) {
            p.setPen(QPen(tone(Tone::Text2), 1.5));
            p.setBrush(tone(Tone::Bg1));
            p.drawEllipse(QPointF(left + share(value) * length, y + 2), 3, 3);
        }
        p.setRenderHint(QPainter::Antialiasing, false);
        p.fillRect(QRectF(at - 1, y - 4, 3, 12), tone(Tone::Text1));
        const QString low =
            m_range.minText.isEmpty() ? recordedText(m_row, m_range.min) : m_range.minText;
        const QString high =
            m_range.maxText.isEmpty() ? recordedText(m_row, m_range.max) : m_range.maxText;
        drawText(p, QRectF(left, y + 7, 120, 14), Qt::AlignVCenter, low, type::monoSmall(),
                 tone(Tone::Text3));
        drawText(p, QRectF(left + length - 120, y + 7, 120, 14), Qt::AlignVCenter | Qt::AlignRight,
                 high, type::monoSmall(), tone(Tone::Text3));
    }

    const KnobRow& m_row;
    SliderRange m_range;
    KnobState m_state{-1, -1, ""};
    QVector<int64_t> m_earlier;
};

RecordedKnobs::RecordedKnobs(QWidget* parent)
    : QWidget(parent), m_head(new PanelHead("Knobs", "recorded")), m_changes(new ChangesList) {
    m_head->setIcon("knob");
    setMinimumWidth(264);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_head);
    auto* note = new QLabel("Read only: these values were recorded.");
    note->setFont(type::caption());
    note->setProperty("tone", "text3");
    note->setContentsMargins(12, 8, 12, 4);
    column->addWidget(note);
    auto* scroll = new QScrollArea;
    auto* content = new QWidget;
    m_groups = new QVBoxLayout(content);
    m_groups->setContentsMargins(0, 0, 0, 0);
    m_groups->setSpacing(0);
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    column->addWidget(scroll, 1);
    column->addWidget(m_changes);
    build();
    connect(m_changes, &ChangesList::goToWanted, this, &RecordedKnobs::goToWanted);
}

void RecordedKnobs::build() {
    QStringList order;
    for (const KnobRow& row : knobTable())
        if (!order.contains(row.group)) order << row.group;
    for (const QString& name : order) {
        auto* group = new KnobGroup(name, m_groupWidgets.empty(), 4);
        for (const KnobRow& row : knobTable()) {
            if (name != row.group) continue;
            auto* knob = new RecordedKnob(row);
            m_knobs.push_back(knob);
            group->add(knob);
        }
        m_groups->addWidget(group);
        m_groupWidgets.emplace_back(name, group);
    }
    m_groups->addStretch();
}

void RecordedKnobs::setSource(SessionSource* source) {
    m_source = source;
    m_changes->setSnapshot(nullptr);
    if (!source) return;
    const bool dense = source->model()->isDense();
    for (RecordedKnob* knob : m_knobs) {
        knob->setVisible(!dense || !knob->row().ofExperts);
        knob->setRange(
            knobSliderRange(knob->row(), source->knobLimits(knob->row().id), source->model()));
    }
    for (const auto& [name, group] : m_groupWidgets)
        group->setVisible(std::ranges::any_of(knobTable(), [&](const KnobRow& row) {
            return name == row.group && (!dense || !row.ofExperts);
        }));
}

void RecordedKnobs::tick(const std::shared_ptr<const Snapshot>& newest) {
    if (!m_source || !newest || !isVisible()) return;
    m_head->setCaption("recorded, at " + clockText(newest->now, 1));
    for (RecordedKnob* knob : m_knobs) {
        const KnobId id = knob->row().id;
        QVector<int64_t> earlier;  // values with a known effect: the newest three
        for (size_t i = newest->markers.size(); i-- > 0 && earlier.size() < 3;) {
            const Marker& marker = newest->markers[i];
            if (marker.kind == Marker::Kind::Knob && marker.knob == id && marker.t <= newest->now &&
                marker.effect == Marker::Effect::Known && !earlier.contains(marker.from) &&
                marker.from != newest->knob(id).effective)
                earlier << marker.from;
        }
        knob->setState(newest->knob(id), earlier);
    }
    m_changes->setPanelHeight(height());
    m_changes->setSnapshot(newest.get());
}

QString RecordedKnobs::valueText(KnobId id) const {
    for (const RecordedKnob* knob : m_knobs)
        if (knob->row().id == id) return knob->valueText();
    return {};
}

void RecordedKnobs::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
