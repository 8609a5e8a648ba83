// SPDX-License-Identifier: GPL-3.0-or-later
// The knobs to set before a model is loaded: cache size, and those that are fixed at load.
// Controls, ranges and defaults come from the knob table. GUI thread only.
#pragma once

#include <QVector>
#include <QWidget>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"

class QGridLayout;

namespace colibri::ui {

class TextLine;

class AtLoadPanel : public QWidget {
    Q_OBJECT

public:
    explicit AtLoadPanel(QWidget* parent = nullptr);
    // `knobs`: initial values; knobs without a control keep theirs.
    void setModel(const ContainerInfo& info, const KnobValues& knobs);
    const KnobValues& knobs() const { return m_knobs; }
    void setLimit(int64_t bytes);              // for "At most 30 fit under the limit."
    void setGpuReason(const QString& reason);  // why the GPU is not used
    void setColumns(int columns);
    SliderRow* slider(KnobId id) const;
    Segment* segment(KnobId id) const;

signals:
    void changed();

private:
    struct Control {
        KnobId id;
        QWidget* widget;
        SliderRow* slider = nullptr;
        Segment* segment = nullptr;
        TextLine* note = nullptr;
    };
    void addSlider(const KnobRow& row);
    void addSegment(const KnobRow& row);
    void set(KnobId id, int64_t value);
    void refreshNotes();
    void layOut();

    ContainerInfo m_info;
    KnobValues m_knobs;
    int64_t m_limit = 0;
    int m_columns = 2;
    QString m_gpuReason;
    QVector<Control> m_controls;
    QGridLayout* m_grid;
};

}  // namespace colibri::ui
