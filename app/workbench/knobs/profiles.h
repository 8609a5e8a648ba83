// SPDX-License-Identifier: GPL-3.0-or-later
// Named sets of knob values, stored as config files in the config folder of the program. Characters
// of a name that are not allowed in file names are written as %XX. The folder is small and read
// only after changes; files are replaced as a whole. GUI thread only.
#pragma once

#include <QObject>
#include <QStringList>

#include "engine/knobs/knobs.h"

namespace colibri::ui {

class Profiles : public QObject {
    Q_OBJECT

public:
    explicit Profiles(QObject* parent = nullptr);
    const QStringList& names() const { return m_names; }
    QString current() const { return m_current; }
    const KnobValues& currentValues() const { return m_values; }  // as stored
    void setCurrent(const QString& name);
    Result<KnobValues> read(const QString& name) const;
    Status write(const QString& name, const std::string& json);
    Status remove(const QString& name);
    Status rename(const QString& from, const QString& to);  // an error if the name exists
    static QString folder();

private:
    static QString path(const QString& name);
    void list();

    QStringList m_names;
    QString m_current;
    KnobValues m_values;
};

}  // namespace colibri::ui
