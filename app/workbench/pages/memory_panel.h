// SPDX-License-Identifier: GPL-3.0-or-later
// The memory section of the load page: the estimate by part, compared with free memory, and the
// actual amounts once the model is loaded. Amounts are bytes. GUI thread only.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/memory_bar.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/knobs/knobs.h"
#include "engine/runtime/engine.h"

namespace colibri::ui {

class MemoryPanel : public QWidget {
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);
    void setModel(const ContainerInfo& info, const KnobValues& knobs);
    // Actual bytes of this model while it is loaded; a reload frees them.
    void setActual(const std::optional<EngineMemory>& actual);
    // Free memory that the estimate is compared with; read every second while visible. Tests
    // replace it.
    void setFree(int64_t bytes);
    int64_t limit() const { return m_limit; }
    const MemoryEstimate& estimate() const { return m_estimate; }
    bool fits() const { return m_limit <= 0 || m_estimate.total() <= m_limit; }

signals:
    void limitChanged();

protected:
    void showEvent(QShowEvent*) override;
    void hideEvent(QHideEvent*) override;

private:
    void refreshFree();
    void refresh();
    void refreshTable();

    ContainerInfo m_info;
    KnobValues m_knobs;
    std::optional<EngineMemory> m_actual;
    MemoryEstimate m_estimate, m_all;
    int64_t m_free = 0, m_limit = 0;
    QElapsedTimer m_age;
    QTimer m_timer;
    PanelHead* m_head;
    TextLine* m_ageLine;
    TextLine *m_needs, *m_freeNow, *m_left;
    TagRow* m_verdict;
    MemoryBar* m_bar;
    DataTable* m_table;
};

}  // namespace colibri::ui
