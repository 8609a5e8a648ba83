// SPDX-License-Identifier: GPL-3.0-or-later
// The file dialogs of the window. Each begins in the folder where the last one ended, also after a
// restart; the first one in the user's documents. They return "" if the user cancels. They block in
// a local event loop; GUI thread only.
#pragma once

#include <QString>

class QWidget;

namespace colibri::ui {

// `from`: a file or folder to begin at, instead of the last folder.
QString askOpenFile(QWidget* parent, const QString& title, const QString& filter,
                    const QString& from = {});
QString askSaveFile(QWidget* parent, const QString& title, const QString& name,
                    const QString& filter);
QString askFolder(QWidget* parent, const QString& title, const QString& from = {});

// A model: a file, or a folder (the user may also type the path of a file). Models have a last
// folder of their own, since exports usually go elsewhere.
QString askModelFile(QWidget* parent);
QString askModelFolder(QWidget* parent);

// The path at which a dialog begins: `name` in the last folder if that exists, else in the user's
// documents.
QString inLastFolder(const QString& name);
void rememberFolder(const QString& chosen);  // the folder of a file, or a folder

}  // namespace colibri::ui
