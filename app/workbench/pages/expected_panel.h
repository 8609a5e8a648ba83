// SPDX-License-Identifier: GPL-3.0-or-later
// How a model ran when it was last used on this machine; or that it never was.
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
