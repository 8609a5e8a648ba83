// SPDX-License-Identifier: GPL-3.0-or-later
// The figures of the last run of a model on this machine, if there was one.
#pragma once

#include <QWidget>
#include <optional>

#include "app/workbench/backend/measurements.h"

namespace colibri::ui {

class ExpectedPanel : public QWidget {
    Q_OBJECT

public:
    explicit ExpectedPanel(QWidget* parent = nullptr);
    void setRun(const std::optional<ModelRun>& run);
    QString caption() const;  // "last measured 10:41, cache 20, lru"

protected:
    void paintEvent(QPaintEvent*) override;

private:
    std::optional<ModelRun> m_run;
};

}  // namespace colibri::ui
