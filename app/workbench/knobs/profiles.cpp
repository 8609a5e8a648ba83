// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/profiles.h"

#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <QUrl>

#include "app/workbench/platform/save_file.h"
#include "engine/knobs/knob_config.h"

namespace colibri::ui {

QString Profiles::folder() {
    return QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation) + "/profiles";
}

QString Profiles::path(const QString& name) {
    QString safe;
    for (const QChar c : name) {
        const bool first = safe.isEmpty() && c == '.';
        if (c == '/' || c == '\\' || c == ':' || c == '%' || c < ' ' || first)
            safe += QString("%%1").arg(int(c.unicode()), 2, 16, QChar('0')).toUpper();
        else
            safe += c;
    }
    return folder() + "/" + safe + ".json";
}

Profiles::Profiles(QObject* parent) : QObject(parent) {
    list();
}

void Profiles::list() {
    m_names.clear();
    for (const QFileInfo& file : QDir(folder()).entryInfoList({"*.json"}, QDir::Files, QDir::Name))
        m_names << QUrl::fromPercentEncoding(file.completeBaseName().toUtf8());
}

void Profiles::setCurrent(const QString& name) {
    m_current = name;
    m_values = {};
    if (const auto values = read(name); values.ok()) m_values = *values;
}

Result<KnobValues> Profiles::read(const QString& name) const {
    return knobsFromFile(path(name).toStdString());
}

Status Profiles::write(const QString& name, const std::string& json) {
    if (!QDir().mkpath(folder())) return {Code::IoError, "cannot create " + folder().toStdString()};
    COLIBRI_TRY(saveFile(path(name), QByteArray::fromStdString(json)));
    list();
    return {};
}

Status Profiles::rename(const QString& from, const QString& to) {
    if (from == to) return {};
    if (to.trimmed().isEmpty()) return {Code::InvalidArgument, "a profile needs a name"};
    if (m_names.contains(to))
        return {Code::InvalidArgument, "a profile " + to.toStdString() + " already exists",
                "Delete it first, or choose another name"};
    if (!QFile::rename(path(from), path(to)))
        return {Code::IoError, "cannot rename " + path(from).toStdString()};
    if (m_current == from) m_current = to;
    list();
    return {};
}

Status Profiles::remove(const QString& name) {
    if (!QFile::remove(path(name)))
        return {Code::IoError, "cannot delete " + path(name).toStdString()};
    if (m_current == name) m_current.clear();
    list();
    return {};
}

}  // namespace colibri::ui
