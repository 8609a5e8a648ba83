// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of a model by part, compared with the limit and the free memory. One bar shows the model
// as it would be loaded, another with all experts resident. Amounts are bytes.
#pragma once

#include <QWidget>

#include "app/workbench/widgets/paint.h"
#include "engine/model/container.h"

namespace colibri::ui {

struct MemoryPart {
    const char* name;
    Tone series;
    int64_t MemoryEstimate::*bytes;
};
// In the order of the bar: dense weights, expert cache, KV cache, buffers, recording.
const QVector<MemoryPart>& memoryParts();

// The unit of a scale: GiB, or MiB for models below 1 GiB.
struct MemoryUnit {
    double bytes;
    const char* name;
    int decimals;                       // of the amounts
    QString text(double amount) const;  // without the unit
};
MemoryUnit memoryUnitFor(int64_t largest);

class MemoryBar : public QWidget {
    Q_OBJECT

public:
    explicit MemoryBar(QWidget* parent = nullptr);
    // free and limit: 0 = unknown. `allName`: "all 64 per layer".
    void setMemory(const MemoryEstimate& model, const MemoryEstimate& allResident, int64_t limit,
                   int64_t free, const QString& allName);
    QSize sizeHint() const override { return {400, 112}; }
    // Bytes at the right end of the axis; the limit can be larger.

protected:
    void paintEvent(QPaintEvent*) override;

private:
    double xOf(double bytes) const;
    void paintBar(QPainter& p, const QRectF& box, const MemoryEstimate& parts, bool model);
    void paintLimits(QPainter& p);
    void paintAxis(QPainter& p);

    MemoryEstimate m_model, m_all;
    int64_t m_limit = 0, m_free = 0;
    QString m_allName;
    double m_axisEnd = 1, m_step = 1;
    MemoryUnit m_unit{1 << 30, "GiB", 2};
};

}  // namespace colibri::ui
