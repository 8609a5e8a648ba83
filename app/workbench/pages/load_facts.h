// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of the load page about a model, from the tables of its container. Plain functions that do
// not read the disk. Any thread.
#pragma once

#include <QString>
#include <QVector>

#include "app/workbench/backend/inspection.h"
#include "app/workbench/backend/measurements.h"
#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/knobs/knobs.h"

namespace colibri::ui {

QString familyText(const std::string& family);
QString parameterText(int64_t count);  // "13.96 B"
QVector<Fact> modelFactList(const ContainerInfo& info);
QVector<Fact> tokenFactList(const ContainerInfo& info, const Calibration& rates);
QVector<QVector<TableCell>> weightRows(const ContainerInfo& info, QString* unit);

// Bytes of weights that one decoded token uses: dense weights, and k experts for each MoE layer.
int64_t bytesPerToken(const ContainerInfo& info);
// The memory estimate for a set of knobs; others have the defaults of the model.
LoadShape loadShape(const ContainerInfo& info, const KnobValues& knobs);
int64_t knobValue(const ContainerInfo& info, const KnobValues& knobs, KnobId id);
// The largest cache size whose estimate is within `limit` bytes; 0: none.
int64_t largestCache(const ContainerInfo& info, const KnobValues& knobs, int64_t limit);
// The knobs that are set, as options: "--expert-cache-size 20 --context-length 8192".
QString knobOptions(const KnobValues& knobs);

// Badges of the page head, each with a longer text for its tooltip.
struct Badge {
    TagLook look;
    QString tip;
};
QVector<Badge> badgesOf(const Inspection& inspection);

}  // namespace colibri::ui
