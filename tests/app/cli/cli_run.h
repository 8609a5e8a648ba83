// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the colibri command and returns its output.
#pragma once

#include <QtTest>

namespace cli_test {

struct Run {
    int code = -1;
    QByteArray out, err;

    QJsonObject json() const {
        QJsonParseError error;
        const QJsonDocument document = QJsonDocument::fromJson(out, &error);
        if (error.error != QJsonParseError::NoError) {
            qWarning("not one JSON object: %s", qPrintable(error.errorString()));
        }
        return document.object();
    }
};

// `before`: called in the new process before the command starts.
inline Run colibri(const QStringList& arguments, const QByteArray& input = {},
                   const std::function<void()>& before = {}) {
    QProcess process;
    process.setChildProcessModifier(before);
    process.start(COLIBRI_BINARY, arguments);
    process.write(input);
    process.closeWriteChannel();
    Run run;
    if (!process.waitForFinished(120000)) {
        process.kill();
        return run;
    }
    run.code = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -2;
    run.out = process.readAllStandardOutput();
    run.err = process.readAllStandardError();
    return run;
}

inline QStringList keys(const QJsonObject& object) {
    return object.keys();
}

inline bool hasKeys(const QJsonObject& object, const QStringList& wanted) {
    for (const QString& key : wanted) {
        if (!object.contains(key)) {
            qWarning("key %s is missing in %s", qPrintable(key),
                     qPrintable(keys(object).join(' ')));
            return false;
        }
    }
    return true;
}

inline const QString kGolden = COLIBRI_GOLDEN_DIR;

}  // namespace cli_test
