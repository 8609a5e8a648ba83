// SPDX-License-Identifier: GPL-3.0-or-later
// The choices for a model with random weights: shape, weight type, skew of the routing, layers,
// seed and target folder, with the size on disk. After every change it checks the disk on another
// thread.
#pragma once

#include <QWidget>

#include "app/workbench/pages/target_folder.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/convert/synth/synth.h"

namespace colibri::ui {

class ShapePanel : public QWidget {
    Q_OBJECT

public:
    explicit ShapePanel(QWidget* parent = nullptr);
    SynthOptions options() const;
    bool ready() const { return m_target->ready(); }  // checked, and the target can be written
    QString command() const;                          // "colibri synth ..."
    void look();                                      // checks again; the disk may have changed
    void keepFolder() const;                          // the next suggestion is beside this folder

    Select* shape() const { return m_shape; }
    Segment* types() const { return m_types; }
    SliderRow* layers() const { return m_layers; }
    SliderRow* skew() const { return m_skew; }  // hundredths
    SliderRow* seed() const { return m_seed; }
    QLineEdit* target() const { return m_target->edit(); }
    QString note() const { return m_target->note(); }

signals:
    void planned(const colibri::ContainerInfo& info);  // the model that would be created
    void changed();

private:
    void shapeChosen();
    void suggestTarget();

    Select* m_shape;
    Segment* m_types;
    SliderRow *m_layers, *m_skew, *m_seed;
    TargetFolder* m_target;
};

}  // namespace colibri::ui
