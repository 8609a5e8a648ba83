// SPDX-License-Identifier: GPL-3.0-or-later
// The command palette (Ctrl+Shift+P) finds every command by a few letters. The same panel asks for
// one line of text, and shows sheets (keyboard, diagnostics). GUI thread only.
#pragma once

#include <QAbstractScrollArea>
#include <QLineEdit>
#include <functional>

#include "app/workbench/widgets/overlay.h"
#include "app/workbench/window/commands.h"

namespace colibri::ui {

// Rows with group headings, painted by one widget.
class PaletteList : public QAbstractScrollArea {
    Q_OBJECT

public:
    struct Row {
        QString group, icon, title, detail, key;
        bool enabled = true;
        int source = -1;  // index of the row in its source
    };

    explicit PaletteList(QWidget* parent = nullptr);
    void setRows(std::vector<Row> rows, const QStringList& words);
    void setSelectable(bool on) { m_selectable = on; }
    int current() const { return m_current; }
    const std::vector<Row>& rows() const { return m_rows; }
    void move(int by);
    int contentHeight() const;

signals:
    void activated(int row);

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void resizeEvent(QResizeEvent*) override { updateScroll(); }

private:
    int rowTop(int row) const;
    int rowAt(int y) const;
    bool headed(int row) const;  // there is a heading above the row
    void updateScroll();
    void paintTitle(QPainter& p, const QRectF& rect, const Row& row) const;

    std::vector<Row> m_rows;
    QStringList m_words;
    int m_current = 0;
    bool m_selectable = true;
};

class CommandPalette : public Overlay {
    Q_OBJECT

public:
    CommandPalette(Commands* commands, QWidget* window);
    void openCommands(const QString& query = {});
    void ask(const QString& title, const QString& initial, std::function<void(QString)> done);
    void setCommandLine(std::function<QString()> line) { m_commandLine = std::move(line); }
    QLineEdit* input() const { return m_input; }
    PaletteList* list() const { return m_list; }

protected:
    QRect panelRect() const override;
    void opened() override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    class Frame;
    void filter();
    void accept();

    Commands* m_commands;
    std::vector<Command> m_pool;
    QLineEdit* m_input;
    PaletteList* m_list;
    Frame* m_frame;
    std::function<QString()> m_commandLine;
    std::function<void(QString)> m_answer;  // set while the panel asks for text
    QString m_title;
};

// A sheet of rows with a title: text at the left, monospaced text at the right. Copy copies it as
// plain text.
class Sheet : public Overlay {
    Q_OBJECT

public:
    explicit Sheet(QWidget* window);
    void openSheet(const QString& title, std::vector<PaletteList::Row> rows);
    QString plainText() const;

protected:
    QRect panelRect() const override;
    void opened() override;
    void keyPressEvent(QKeyEvent*) override;

private:
    class Head;
    Head* m_head;
    PaletteList* m_list;
    QString m_title;
};

}  // namespace colibri::ui
