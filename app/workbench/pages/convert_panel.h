// SPDX-License-Identifier: GPL-3.0-or-later
// How a checkpoint becomes a container: weight type and target folder, with what the result takes
// on the disk. Looks again on another thread whenever a choice changes.
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
    bool ready() const { return m_target->ready(); }  // looked at, and the target can be written
    QString command() const;                          // "colibri convert ..."
    Segment* types() const { return m_types; }
    QLineEdit* target() const { return m_target->edit(); }
    TargetFolder* targetFolder() const { return m_target; }

signals:
    void planned(const colibri::ContainerInfo& info);  // what the conversion would give
    void changed();

private:
    std::optional<DType> dtype() const { return weightType(*m_types); }  // nothing: as stored
    void suggestTarget();
    void look();

    Inspection m_inspection;
    Segment* m_types;
    TargetFolder* m_target;
};

}  // namespace colibri::ui
