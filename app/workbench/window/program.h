// SPDX-License-Identifier: GPL-3.0-or-later
// The program around the window: options of the command line, the engine host, the pages before
// the chat, and the headless run that asks, waits and takes a picture.
#pragma once

#include <QObject>
#include <QSize>
#include <QTimer>
#include <memory>
#include <optional>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/window/main_window.h"

namespace colibri::ui {

struct ProgramOptions {
    QString model;  // container, checkpoint or session to open; "" = none
    bool demo = false;
    KnobValues knobs;
    QString ask;                // sent as soon as the model is ready
    QString page;               // "welcome", "load", "shape", "diagnose"; "" = what follows
    QString sessionFile;        // "" = in the sessions folder
    QString screenshot;         // taken when the reply has ended; then the program ends
    std::optional<QSize> size;  // of the window; else as it was left
    std::optional<Theme::Mode> theme;
    int scale = 0;  // percent; 0 = the setting

    // Errors go to `error`; --help and --version are answered by `text`, with nothing to run.
    static std::optional<ProgramOptions> parse(const QStringList& arguments, QString* text,
                                               QString* error);
    // The knobs against what the model allows; ok where it cannot be opened (the page says why).
    Status checkKnobs() const;
};

bool isScale(int percent);  // one of the scales there are

// What the program does right after its QApplication: that has put the process into the user's
// locale, but numbers are written one way everywhere, in files as on the screen.
void prepareApplication();

class Program : public QObject {
    Q_OBJECT

public:
    explicit Program(const ProgramOptions& options);
    ~Program() override;
    void start();
    MainWindow* window() { return m_window.get(); }
    StartPages* startPages() { return m_start; }
    int exitCode() const { return m_exitCode; }

private:
    void addModelCommands();
    void onState();
    void restart();
    void watchScreenshot();
    void takeScreenshot();
    void failRun(int code, const QString& why);  // of a headless run: told, and its exit code

    ProgramOptions m_options;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<MainWindow> m_window;
    StartPages* m_start;
    QTimer m_watch;
    std::function<void()> m_showGuide;
    QString m_beforeGuide = "start";
    bool m_asked = false, m_recoveryOffered = false;
    int m_quietTicks = 0, m_exitCode = 0;
};

}  // namespace colibri::ui
