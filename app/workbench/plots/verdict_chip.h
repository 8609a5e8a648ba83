// SPDX-License-Identifier: GPL-3.0-or-later
// What limits a recorded session, in a sentence, and how many further verdicts there are. A click
// opens all of them. GUI thread only.
#pragma once

#include <QAbstractButton>
#include <vector>

#include "profiler/explain/verdicts.h"

namespace colibri::ui {

class VerdictChip : public QAbstractButton {
    Q_OBJECT

public:
    explicit VerdictChip(QWidget* parent = nullptr);
    void setVerdicts(const std::vector<Verdict>& verdicts);  // the strongest one first
    const std::vector<Verdict>& verdicts() const { return m_verdicts; }
    QString text() const;            // of the strongest one
    int heightFor(int width) const;  // px; a long sentence takes two lines
    QSize sizeHint() const override { return {300, heightFor(width())}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    double textRoom(int width) const;

    std::vector<Verdict> m_verdicts;
};

}  // namespace colibri::ui
