// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QVBoxLayout>
#include <QWidget>

#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

// A group of knobs, with a hairline above and a head that folds it. GUI thread only.
class KnobGroup : public QWidget {
public:
    // The first group has no hairline, and its own margin above.
    KnobGroup(const QString& name, bool first, int firstMargin);
    void add(QWidget* widget);
    // The scroll bar takes the place of the margin: controls keep their width when it appears.
    void setBarShown(bool on);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    bool m_first;
    QVBoxLayout* m_column;
    FoldButton* m_head;
};

}  // namespace colibri::ui
