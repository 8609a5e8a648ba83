// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/platform/ask_file.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QStandardPaths>
#include <QTreeView>

#include "app/workbench/platform/settings.h"

namespace colibri::ui {
namespace {

constexpr const char* kKey = "last_folder";
constexpr const char* kModels = "last_model_folder";

// The dialog of the desktop if it has one, else Qt's. If a folder is asked for and the user types
// the path of a file, that is accepted: the caller decides what it means.
class Dialog : public QFileDialog {
public:
    Dialog(QWidget* parent, const QString& title, const QString& from)
        : QFileDialog(parent, title, from) {
        setViewMode(Detail);
        if (auto* list = findChild<QTreeView*>("treeView")) {
            list->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
            list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
            resize(860, 520);
        }
    }
    QString ask() { return exec() == Accepted ? selectedFiles().value(0) : QString(); }

protected:
    void accept() override {
        if (fileMode() == Directory && QFileInfo(selectedFiles().value(0)).isFile())
            return done(Accepted);
        QFileDialog::accept();
    }
};

QString folderOf(const char* key) {
    const QString folder = settings().value(key).toString();
    return QFileInfo(folder).isDir() ? folder : QString();
}

void remember(const char* key, const QString& chosen) {
    if (chosen.isEmpty()) return;
    const QFileInfo info(chosen);
    settings().setValue(key, info.isDir() ? info.absoluteFilePath() : info.absolutePath());
}

QString openedIn(const char* key, QWidget* parent, const QString& title, const QString& filter,
                 const QString& from) {
    Dialog dialog(parent, title, from);
    dialog.setAcceptMode(QFileDialog::AcceptOpen);
    dialog.setFileMode(QFileDialog::ExistingFile);
    dialog.setNameFilters(filter.split(";;"));
    const QString chosen = dialog.ask();
    remember(key, chosen);
    return chosen;
}

QString folderIn(const char* key, QWidget* parent, const QString& title, const QString& from) {
    Dialog dialog(parent, title, from);
    dialog.setFileMode(QFileDialog::Directory);
    const QString chosen = dialog.ask();
    remember(key, chosen);
    return chosen;
}

}  // namespace

QString inLastFolder(const QString& name) {
    if (const QString folder = folderOf(kKey); !folder.isEmpty())
        return QDir(folder).filePath(name);
    // Where users keep their files; never the folder in which the program was started.
    const QString documents = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    return QDir(QFileInfo(documents).isDir() ? documents : QDir::homePath()).filePath(name);
}

void rememberFolder(const QString& chosen) {
    remember(kKey, chosen);
}

QString askOpenFile(QWidget* parent, const QString& title, const QString& filter,
                    const QString& from) {
    return openedIn(kKey, parent, title, filter, from.isEmpty() ? inLastFolder({}) : from);
}

QString askSaveFile(QWidget* parent, const QString& title, const QString& name,
                    const QString& filter) {
    const QFileInfo start(inLastFolder(name));
    Dialog dialog(parent, title, start.path());
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setFileMode(QFileDialog::AnyFile);
    dialog.setNameFilters(filter.split(";;"));
    dialog.selectFile(start.fileName());
    const QString chosen = dialog.ask();
    rememberFolder(chosen);
    return chosen;
}

QString askFolder(QWidget* parent, const QString& title, const QString& from) {
    return folderIn(kKey, parent, title, from.isEmpty() ? inLastFolder({}) : from);
}

namespace {

// Where models were opened last, else the user's home.
QString modelsFolder() {
    const QString last = folderOf(kModels);
    return last.isEmpty() ? QDir::homePath() : last;
}

}  // namespace

QString askModelFile(QWidget* parent) {
    return openedIn(kModels, parent, "Open a model",
                    "Models (*.gguf *.safetensors model.json config.json);;All files (*)",
                    modelsFolder());
}

QString askModelFolder(QWidget* parent) {
    return folderIn(kModels, parent, "Open a model", modelsFolder());
}

}  // namespace colibri::ui
