// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QLoggingCategory>
#include <cstdio>

#include "app/workbench/platform/settings.h"
#include "app/workbench/window/program.h"
#include "engine/base/printable.h"
#include "engine/base/process.h"

int main(int argc, char** argv) {
    using namespace colibri::ui;
    colibri::prepareProcess();
    QCoreApplication::setApplicationName("colibri-workbench");
    QCoreApplication::setOrganizationName("colibri");
    QCoreApplication::setApplicationVersion(COLIBRI_VERSION);
    QStringList arguments;
    for (int i = 0; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
    QString text, error;
    const auto options = ProgramOptions::parse(arguments, &text, &error);
    if (!options) {
        std::fprintf(stderr, "%s\nSee --help.\n", qPrintable(error));
        return colibri::exitCodeOf(colibri::Code::InvalidArgument);
    }
    if (!text.isEmpty()) {
        std::fputs(qPrintable(text), stdout);
        return 0;
    }
    // The scale must be known before the first window of Qt.
    const int scale = options->scale ? options->scale : settings().value("scale", 100).toInt();
    if (scale > 100 && isScale(scale) && qEnvironmentVariableIsEmpty("QT_SCALE_FACTOR"))
        qputenv("QT_SCALE_FACTOR", QByteArray::number(scale / 100.0));
    if (!options->screenshot.isEmpty() && qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") &&
        qEnvironmentVariableIsEmpty("DISPLAY") && qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    // Qt says for every font and script that the font lacks it, though it goes on to the next font.
    QLoggingCategory::setFilterRules("qt.text.font.db.warning=false");
    QApplication app(argc, argv);
    prepareApplication();
    if (const colibri::Status status = options->checkKnobs(); !status.ok()) {
        std::fprintf(stderr, "%s\nSee --help.\n", colibri::printableLines(status.text()).c_str());
        return colibri::exitCodeOf(status.code());
    }
    const QString stored = settings().value("theme", "system").toString();
    Theme::get().setMode(stored == "light"  ? Theme::Mode::Light
                         : stored == "dark" ? Theme::Mode::Dark
                                            : Theme::Mode::System);
    Theme::get().setHighContrast(settings().value("high_contrast").toBool());
    Theme::get().install();
    Program program(*options);
    program.start();
    return QApplication::exec();
}
