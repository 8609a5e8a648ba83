// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/theme/style.h"

#include "app/workbench/theme/icons.h"
#include "app/workbench/theme/theme.h"

namespace colibri::ui {
namespace {

struct IconRow {
    QStyle::StandardPixmap which;
    const char* icon;
    Tone tone = Tone::Text2;
};
constexpr IconRow kIcons[] = {
    {QStyle::SP_DirIcon, "folder"},
    {QStyle::SP_DirClosedIcon, "folder"},
    {QStyle::SP_DirOpenIcon, "folder"},
    {QStyle::SP_DirLinkIcon, "folder"},
    {QStyle::SP_DirHomeIcon, "folder"},
    {QStyle::SP_FileIcon, "file"},
    {QStyle::SP_FileLinkIcon, "file"},
    {QStyle::SP_ComputerIcon, "chip"},
    {QStyle::SP_DriveHDIcon, "disk"},
    {QStyle::SP_DriveFDIcon, "disk"},
    {QStyle::SP_DriveCDIcon, "disk"},
    {QStyle::SP_DriveNetIcon, "disk"},
    {QStyle::SP_DesktopIcon, "panel"},
    {QStyle::SP_TrashIcon, "trash"},
    {QStyle::SP_ArrowBack, "left"},
    {QStyle::SP_ArrowForward, "right"},
    {QStyle::SP_ArrowLeft, "left"},
    {QStyle::SP_ArrowRight, "right"},
    {QStyle::SP_FileDialogBack, "left"},
    {QStyle::SP_FileDialogToParent, "up"},
    {QStyle::SP_FileDialogNewFolder, "plus"},
    {QStyle::SP_FileDialogListView, "grid"},
    {QStyle::SP_FileDialogDetailedView, "list"},
    {QStyle::SP_FileDialogInfoView, "info"},
    {QStyle::SP_FileDialogContentsView, "list"},
    {QStyle::SP_MessageBoxInformation, "info", Tone::Accent},
    {QStyle::SP_MessageBoxWarning, "warn", Tone::Warn},
    {QStyle::SP_MessageBoxCritical, "error", Tone::Error},
    {QStyle::SP_MessageBoxQuestion, "help", Tone::Accent},
};

const IconRow* rowOf(QStyle::StandardPixmap which) {
    for (const IconRow& row : kIcons)
        if (row.which == which) return &row;
    return nullptr;
}

}  // namespace

QIcon ThemedStyle::standardIcon(StandardPixmap which, const QStyleOption* option,
                                const QWidget* widget) const {
    const IconRow* row = rowOf(which);
    return row ? makeIcon(row->icon, tone(row->tone))
               : QProxyStyle::standardIcon(which, option, widget);
}

QPixmap ThemedStyle::standardPixmap(StandardPixmap which, const QStyleOption* option,
                                    const QWidget* widget) const {
    const IconRow* row = rowOf(which);
    if (!row) return QProxyStyle::standardPixmap(which, option, widget);
    const int size =
        pixelMetric(row->tone == Tone::Text2 ? PM_SmallIconSize : PM_MessageBoxIconSize);
    return makeIcon(row->icon, tone(row->tone), size).pixmap(size);
}

}  // namespace colibri::ui
