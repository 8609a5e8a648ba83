// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/memory_bar.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr double kNameWidth = 112, kMaxNameShare = 0.28;
constexpr double kBarY = 22, kBarHeight = 28, kAllY = 58, kAllHeight = 18;
constexpr double kAxisY = 77, kTickEnd = 84;
constexpr int64_t kGiB = 1ll << 30, kMiB = 1ll << 20;

// #0e1519 or white, whichever has more contrast with the fill.
QColor labelOn(const QColor& fill) {
    const auto luminance = [](const QColor& c) {
        const auto linear = [](double v) {
            return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
        };
        return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
    };
    const auto contrast = [&](const QColor& a, const QColor& b) {
        const double x = luminance(a), y = luminance(b);
        return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
    };
    const QColor dark("#0e1519"), light("#ffffff");
    return contrast(fill, dark) >= contrast(fill, light) ? dark : light;
}

// The smallest of 1, 2, 5 times a power of ten that gives at most `count` steps up to `end`.
double roundStep(double end, int count) {
    const double raw = std::max(1e-9, end / count);
    const double power = std::pow(10, std::floor(std::log10(raw)));
    for (const double m : {1.0, 2.0, 5.0}) {
        if (m * power >= raw * (1 - 1e-9)) return m * power;
    }
    return 10 * power;
}

}  // namespace

const QVector<MemoryPart>& memoryParts() {
    static const QVector<MemoryPart> parts = {
        {"Dense weights", Tone::S1, &MemoryEstimate::dense},
        {"Expert cache", Tone::S2, &MemoryEstimate::expertCache},
        {"KV cache", Tone::S3, &MemoryEstimate::kvCache},
        {"Buffers", Tone::S4, &MemoryEstimate::buffers},
        {"Recording", Tone::S5, &MemoryEstimate::recording},
    };
    return parts;
}

MemoryUnit memoryUnitFor(int64_t largest) {
    return largest >= kGiB ? MemoryUnit{double(kGiB), "GiB", 2}
                           : MemoryUnit{double(kMiB), "MiB", 1};
}

QString MemoryUnit::text(double amount) const {
    return str(formatFixed(amount / bytes, decimals));
}

MemoryBar::MemoryBar(QWidget* parent) : QWidget(parent) {
    setFixedHeight(112);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void MemoryBar::setMemory(const MemoryEstimate& model, const MemoryEstimate& allResident,
                          int64_t limit, int64_t free, const QString& allName) {
    m_model = model;
    m_all = allResident;
    m_limit = limit;
    m_free = free;
    m_allName = allName;
    const double need = double(std::max(model.total(), allResident.total()));
    // Free memory is drawn unless that would squeeze the model; otherwise it is beyond the axis.
    const double largest = double(free) <= 3 * need ? std::max(need, double(free)) : need * 1.3;
    m_unit = memoryUnitFor(int64_t(largest));
    m_step = roundStep(largest * 1.06 / m_unit.bytes, 10) * m_unit.bytes;
    m_axisEnd = std::max(m_step, std::ceil(largest * 1.06 / m_step) * m_step);
    setAccessibleName(QString("Memory: this model %1, free now %2, all experts resident %3")
                          .arg(str(formatGiB(double(model.total()))), str(formatGiB(double(free))),
                               str(formatGiB(double(allResident.total())))));
    update();
}

double MemoryBar::xOf(double bytes) const {
    const double left = std::min(kNameWidth, width() * kMaxNameShare);
    return left + std::min(1.0, bytes / m_axisEnd) * (width() - 1 - left);
}

void MemoryBar::paintBar(QPainter& p, const QRectF& box, const MemoryEstimate& parts, bool model) {
    p.fillRect(box, tone(Tone::Plot));
    if (m_free > 0 && double(m_free) < m_axisEnd) {
        const double limit = xOf(double(m_limit)), free = xOf(double(m_free));
        drawHatch(p, QRectF(limit, box.top(), free - limit, box.height()));
        p.fillRect(QRectF(free, box.top(), box.right() - free, box.height()), tone(Tone::ErrorBg));
    }
    double sum = 0;
    for (const MemoryPart& part : memoryParts()) {
        const double bytes = double(parts.*part.bytes);
        const double x0 = std::round(xOf(sum)), x1 = std::round(xOf(sum + bytes));
        sum += bytes;
        if (x1 - x0 < 1.5) continue;
        QColor fill = tone(part.series);
        const QRectF piece(x0 + (sum == bytes ? 1 : 0), box.top(), x1 - x0 - 1, box.height());
        if (Theme::get().dark()) fill = withAlpha(fill, 0.9);
        p.fillRect(piece, fill);
        const QString amount = m_unit.text(bytes);
        QStringList labels;  // the longest that fits
        if (part.bytes == &MemoryEstimate::expertCache) {
            labels << (model ? "expert cache " : m_allName + " ") + amount << amount;
        } else if (model && part.bytes == &MemoryEstimate::kvCache) {
            labels << "KV " + amount << "KV";
        } else if (model) {
            labels << amount;
        }
        for (const QString& label : labels) {
            if (textWidth(type::caption(), label) + 14 > piece.width()) continue;
            drawText(p, piece.adjusted(8, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, label,
                     type::caption(), labelOn(tone(part.series)));
            break;
        }
    }
    p.setPen(QPen(tone(Tone::Line2), 1));
    p.setBrush(Qt::NoBrush);
    p.drawRect(box.adjusted(0.5, -0.5, -0.5, 0.5));
    drawText(p, QRectF(1, box.top(), kNameWidth - 6, box.height()), Qt::AlignVCenter,
             model ? "This model" : "All resident", type::caption(), tone(Tone::Text1));
    // The total, if it exceeds the free memory.
    if (m_free > 0 && double(parts.total()) > double(m_free) && m_axisEnd > double(m_free)) {
        const QString total = m_unit.text(double(parts.total()));
        const double x = xOf(double(parts.total())) + 8;
        if (x + textWidth(type::monoSmall(), total) < box.right() - 4)
            drawText(p, QRectF(x, box.top(), 60, box.height()), Qt::AlignVCenter, total,
                     type::monoSmall(), tone(Tone::Error));
    }
}

void MemoryBar::paintLimits(QPainter& p) {
    if (m_free <= 0) return;
    const MemoryUnit unit = memoryUnitFor(m_free);
    const QString free = "free now " + unit.text(double(m_free));
    if (double(m_free) >= m_axisEnd) {  // beyond the axis
        drawText(p, QRectF(0, 4, width() - 2, 14), Qt::AlignRight | Qt::AlignVCenter,
                 free + " " + unit.name + " →", type::caption(), tone(Tone::Text2));
        return;
    }
    const double x = std::round(xOf(double(m_free))), limit = std::round(xOf(double(m_limit)));
    p.fillRect(QRectF(x, 10, 1, kTickEnd - 10), tone(Tone::Error));
    const double width = textWidth(type::caption(), free);
    const bool right = x + 6 + width < this->width();
    drawText(p, QRectF(right ? x + 6 : x - 6 - width, 4, width, 14), Qt::AlignVCenter, free,
             type::caption(), tone(Tone::Error));
    if (m_limit <= 0) return;
    QPen dashed(tone(Tone::Text2), 1);
    dashed.setCapStyle(Qt::FlatCap);
    dashed.setDashPattern({3, 2});
    p.setPen(dashed);
    p.drawLine(QPointF(limit + 0.5, 10), QPointF(limit + 0.5, kTickEnd));
    const QString text = "limit " + unit.text(double(m_limit));
    if (right) {
        drawText(p, QRectF(0, 4, limit - 6, 14), Qt::AlignRight | Qt::AlignVCenter, text,
                 type::caption(), tone(Tone::Text2));
    }
    const double reserve = textWidth(type::caption(), "reserve");
    const double taken = xOf(double(m_model.total()));
    if (x - std::max(limit, taken) > reserve + 20) {
        const QRectF plate((std::max(limit, taken) + x - reserve) / 2 - 8, kBarY + 6, reserve + 16,
                           16);
        p.fillRect(plate, tone(Tone::Plot));
        drawText(p, plate, Qt::AlignCenter, "reserve", type::caption(), tone(Tone::Text2));
    }
}

void MemoryBar::paintAxis(QPainter& p) {
    const int decimals = m_step < m_unit.bytes ? (m_step < m_unit.bytes / 10 ? 2 : 1) : 0;
    const int steps = int(std::lround(m_axisEnd / m_step));
    for (int i = 0; i <= steps; ++i) {
        const double x = std::min(std::round(xOf(i * m_step)), width() - 2.0);
        p.fillRect(QRectF(x, kAxisY, 1, kTickEnd - kAxisY), tone(Tone::Line2));
        QString text = str(formatFixed(i * m_step / m_unit.bytes, decimals));
        if (i == steps) text += QString(" ") + m_unit.name;
        const double w = textWidth(type::monoSmall(), text);
        const double left = i == 0 ? x : i == steps ? x - w : x - w / 2;
        drawText(p, QRectF(left, 87, w, 14), Qt::AlignVCenter, text, type::monoSmall(),
                 tone(Tone::Text3));
    }
}

void MemoryBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const double left = xOf(0), right = width() - 1;
    paintBar(p, QRectF(left, kBarY, right - left, kBarHeight), m_model, true);
    paintBar(p, QRectF(left, kAllY, right - left, kAllHeight), m_all, false);
    paintLimits(p);
    paintAxis(p);
}

}  // namespace colibri::ui
