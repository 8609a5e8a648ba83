// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/ask_file.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>

#include "app/workbench/session/settings.h"

namespace colibri::ui {
namespace {

constexpr const char* kKey = "last_folder";

QString remembered(const QString& chosen) {
    rememberFolder(chosen);
    return chosen;
}

}  // namespace

QString inLastFolder(const QString& name) {
    const QString folder = settings().value(kKey).toString();
    return folder.isEmpty() || !QFileInfo(folder).isDir() ? name : QDir(folder).filePath(name);
}

void rememberFolder(const QString& chosen) {
    if (chosen.isEmpty()) return;
    const QFileInfo info(chosen);
    settings().setValue(kKey, info.isDir() ? info.absoluteFilePath() : info.absolutePath());
}

QString askOpenFile(QWidget* parent, const QString& title, const QString& filter, const QString& from) {
    return remembered(
        QFileDialog::getOpenFileName(parent, title, from.isEmpty() ? inLastFolder({}) : from, filter));
}

QString askSaveFile(QWidget* parent, const QString& title, const QString& name, const QString& filter) {
    return remembered(QFileDialog::getSaveFileName(parent, title, inLastFolder(name), filter));
}

QString askFolder(QWidget* parent, const QString& title, const QString& from) {
    return remembered(
        QFileDialog::getExistingDirectory(parent, title, from.isEmpty() ? inLastFolder({}) : from));
}

}  // namespace colibri::ui
