// SPDX-License-Identifier: GPL-3.0-or-later
// What the load page says about a model, from its container's tables. No widgets, no disk.
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

// Bytes that one decoded token multiplies with: dense weights and k experts per MoE layer.
int64_t bytesPerToken(const ContainerInfo& info);
// The memory estimate for a set of knobs; unset ones take the model's defaults.
LoadShape loadShape(const ContainerInfo& info, const KnobValues& knobs);
int64_t knobValue(const ContainerInfo& info, const KnobValues& knobs, KnobId id);
// The largest cache size whose estimate stays under `limit`; 0 when not even one does.
int64_t largestCache(const ContainerInfo& info, const KnobValues& knobs, int64_t limit);
// "--expert-cache-size 20 --context-length 8192": the knobs that are set, as options.
QString knobOptions(const KnobValues& knobs);

// Badges of the page's head, each with a longer word for its tooltip.
struct Badge {
    TagLook look;
    QString tip;
};
QVector<Badge> badgesOf(const Inspection& inspection);

}  // namespace colibri::ui
