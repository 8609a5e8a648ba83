// SPDX-License-Identifier: GPL-3.0-or-later
// The Serve dock: switch, host, port and access of the model's HTTP server; its address and an
// example to copy; figures and the latest requests. GUI thread only.
#pragma once

#include <QLineEdit>

#include "app/workbench/backend/model_server.h"
#include "app/workbench/docks/dock_parts.h"

namespace colibri::ui {

class CommandLine;
class DataTable;
class LinkButton;
class Note;
class Segment;

class ServePanel : public DockPanel {
    Q_OBJECT

public:
    // Source and server must outlive the panel.
    ServePanel(SessionSource* source, ModelServer* server, QWidget* parent = nullptr);
    void tick();                   // figures; a few times a second while shown
    void setOn(bool on);           // what the switch does
    ServeOptions options() const;  // from the fields

    Segment* switcher() const { return m_switch; }
    QLineEdit* host() const { return m_host; }
    QLineEdit* port() const { return m_port; }
    QLineEdit* apiKey() const { return m_key; }
    QLineEdit* origins() const { return m_origins; }
    QLineEdit* hostNames() const { return m_names; }
    QString note() const;
    DataTable* figures() const { return m_figures; }
    DataTable* log() const { return m_log; }  // finished requests, newest first
    QString example() const;                  // a curl command
    void copyAddress() const;

private:
    void addServerFields(DockSection* section);
    void addAccessFields(DockSection* section);
    void addUse();
    void addTables();
    void refresh();
    void refreshNote();
    QString commandLine() const;

    SessionSource* m_source;
    ModelServer* m_server;
    Segment* m_switch;
    QLineEdit *m_host, *m_port, *m_key, *m_origins, *m_names, *m_address;
    Note* m_note;
    LinkButton* m_copyError;
    DockSection* m_use;
    CommandLine *m_example, *m_command;
    DockSection* m_logSection;
    DataTable *m_figures, *m_log;
};

}  // namespace colibri::ui
