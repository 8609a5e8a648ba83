// SPDX-License-Identifier: GPL-3.0-or-later
// The file dialogs of the window: each begins in the folder in which the last one ended, also after
// a restart; the first among the user's documents. "" when the user chose nothing.
#pragma once

#include <QString>

class QWidget;

namespace colibri::ui {

// `from`: a file or folder to begin at in place of the last folder.
QString askOpenFile(QWidget* parent, const QString& title, const QString& filter,
                    const QString& from = {});
QString askSaveFile(QWidget* parent, const QString& title, const QString& name,
                    const QString& filter);
QString askFolder(QWidget* parent, const QString& title, const QString& from = {});

// A model, as a file of it or as its folder (where the path of a file may be typed too). Models
// have a last folder of their own: exports go elsewhere.
QString askModelFile(QWidget* parent);
QString askModelFolder(QWidget* parent);

// Where a dialog begins: `name` in the last folder that is still there, else among the documents.
QString inLastFolder(const QString& name);
void rememberFolder(const QString& chosen);  // the folder of a file, or a folder

}  // namespace colibri::ui
