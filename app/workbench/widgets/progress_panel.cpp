// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/progress_panel.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/memory_bar.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/format.h"

namespace colibri::ui {

QString amountText(const JobProgress& progress) {
    if (progress.unit == "bytes") {
        const MemoryUnit unit = memoryUnitFor(int64_t(std::max(progress.done, progress.total)));
        if (progress.total == 0)
            return progress.done ? unit.text(double(progress.done)) + " " + unit.name : QString();
        return unit.text(double(progress.done)) + " / " + unit.text(double(progress.total)) + " " +
               unit.name;
    }
    if (progress.total == 0) return {};
    return str(formatCount(int64_t(progress.done)) + " / " + formatCount(int64_t(progress.total)) +
               " ") +
           progress.unit;
}

QString paceText(const JobProgress& progress) {
    QStringList parts;
    if (progress.unit == "bytes" && progress.rate > 0) parts << str(formatRate(progress.rate));
    if (std::isfinite(progress.secondsLeft)) {
        const double left = progress.secondsLeft;
        parts << (left < 60 ? QString("about %1 s left").arg(int(std::ceil(left)))
                            : QString("about %1 min left").arg(int(std::ceil(left / 60))));
    }
    return parts.join(", ");
}

ProgressPanel::ProgressPanel(QWidget* parent)
    : QWidget(parent),
      m_cancel(new Button("Cancel", Button::Kind::Default, Button::Size::Dense, this)) {
    m_cancel->setKey("Esc");
    setFixedHeight(66);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(m_cancel, &QAbstractButton::clicked, this, &ProgressPanel::cancelled);
}

void ProgressPanel::begin(const QString& title) {
    m_title = title;
    m_progress = {};
    m_cancelling = false;
    m_cancel->setEnabled(true);
    update();
}

void ProgressPanel::setProgress(const JobProgress& progress) {
    m_progress = progress;
    setAccessibleName(m_title + " " + progress.stage + " " + amountText(progress));
    update();
}

void ProgressPanel::setCancelling() {
    m_cancelling = true;
    m_cancel->setEnabled(false);
    update();
}

void ProgressPanel::resizeEvent(QResizeEvent*) {
    const QSize size = m_cancel->sizeHint();
    m_cancel->setGeometry(width() - size.width(), 38, size.width(), size.height());
}

void ProgressPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const QString amount = amountText(m_progress);
    const double w = textWidth(type::mono(), amount);
    const QString stage = m_cancelling ? QString("Cancelling") : m_progress.stage;
    drawSpans(p, QRectF(0, 0, width() - w - 12, 18),
              {{m_title, Tone::Text1, type::body()}, {stage, Tone::Text3, type::dense()}}, 8);
    drawText(p, QRectF(width() - w, 0, w, 18), Qt::AlignVCenter, amount, type::mono(),
             tone(Tone::Text1));
    fillBox(p, QRectF(0, 24, width(), 4), tone(Tone::Bg3), Qt::transparent, 1);
    if (m_progress.total > 0) {
        const double share = std::min(1.0, double(m_progress.done) / double(m_progress.total));
        fillBox(p, QRectF(0, 24, width() * share, 4), tone(Tone::Accent), Qt::transparent, 1);
    }
    drawElided(p, QRectF(0, 38, width() - m_cancel->width() - 12, 24), Qt::AlignVCenter,
               paceText(m_progress), type::mono(), tone(Tone::Text3));
}

}  // namespace colibri::ui
