// SPDX-License-Identifier: GPL-3.0-or-later
// The program around the window: options of the command line, the engine host, the pages before
// the chat, and the headless run that sends a message, waits for the reply and takes a picture. GUI
// thread only.
#pragma once

#include <QObject>
#include <QSize>
#include <QTimer>
#include <memory>
#include <optional>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/window/main_window.h"

class QCommandLineParser;

namespace colibri::ui {

struct ProgramOptions {
    QString model;  // container, checkpoint or session to open; "" = none
    bool demo = false;
    KnobValues knobs;
    QString ask;                // sent as soon as the model is ready
    QString page;               // "welcome", "load", "shape", "diagnose", "chat"; "" = default
    QString sessionFile;        // "" = in the sessions folder
    QString screenshot;         // path of a PNG, written after the reply; then the program ends
    std::optional<QSize> size;  // of the window; else the last one
    std::optional<Theme::Mode> theme;
    int scale = 0;  // percent; 0 = the setting

    // nullopt, with `error`, if the options are wrong. After --help and --version `text` is not
    // empty: print it and exit.
    static std::optional<ProgramOptions> parse(const QStringList& arguments, QString* text,
                                               QString* error);
    // Checks the knobs against the limits of the model. Ok if the model cannot be opened: the load
    // page shows that error.
    Status checkKnobs() const;

private:
    QString read(const QCommandLineParser& parser);
    QString readLook(const QCommandLineParser& parser);
    QString readKnobs(const QCommandLineParser& parser);
};

bool isScale(int percent);  // one of the available scales

// Called after the QApplication was created: it sets the user's locale, but the program writes
// numbers in the same way everywhere.
void prepareApplication();

class Program : public QObject {
    Q_OBJECT

public:
    explicit Program(const ProgramOptions& options);
    ~Program() override;
    void start();
    EngineHost* host() { return m_host.get(); }
    MainWindow* window() { return m_window.get(); }
    StartPages* startPages() { return m_start; }
    int exitCode() const { return m_exitCode; }

private:
    void connectStartPages();
    void connectFailures();
    void offerRecovery();
    void addGuide();
    void addModelMenu();
    void addModelCommands();
    void onState();
    void restart();
    void watchScreenshot();
    void takeScreenshot();
    void failRun(int code, const QString& why);  // headless run: prints why, sets the exit code

    ProgramOptions m_options;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<MainWindow> m_window;
    StartPages* m_start;
    QTimer m_watch;
    std::function<void()> m_showGuide;
    QString m_beforeGuide = "start";
    bool m_askSent = false, m_recoveryOffered = false;
    int m_quietTicks = 0, m_exitCode = 0;
};

}  // namespace colibri::ui
