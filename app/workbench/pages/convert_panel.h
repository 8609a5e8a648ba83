// SPDX-License-Identifier: GPL-3.0-or-later
// The choices for converting a checkpoint: weight type and target folder, with the size of the
// result. After every change it checks the disk on another thread.
#pragma once

#include <QWidget>

#include "app/workbench/backend/inspection.h"
#include "app/workbench/pages/target_folder.h"
#include "app/workbench/widgets/controls.h"
#include "engine/convert/converter.h"

namespace colibri::ui {

class ConvertPanel : public QWidget {
    Q_OBJECT

public:
    explicit ConvertPanel(QWidget* parent = nullptr);
    void setSource(const Inspection& inspection);
    ConvertOptions options() const;
    bool ready() const { return m_target->ready(); }  // checked, and the target can be written
    QString command() const;                          // "colibri convert ..."
    Segment* types() const { return m_types; }
    QLineEdit* target() const { return m_target->edit(); }
    TargetFolder* targetFolder() const { return m_target; }

signals:
    void planned(const colibri::ContainerInfo& info);  // the result of the conversion
    void changed();

private:
    std::optional<DType> dtype() const { return weightType(*m_types); }  // nullopt: as stored
    void suggestTarget();
    void look();

    Inspection m_inspection;
    Segment* m_types;
    TargetFolder* m_target;
};

}  // namespace colibri::ui
