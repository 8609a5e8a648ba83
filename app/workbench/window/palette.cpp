// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/palette.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainterPath>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>

#include "app/workbench/widgets/controls.h"

namespace colibri::ui {
namespace {

constexpr int kInput = 44, kCommandRow = 32, kHeading = 26, kPaletteFoot = 36;

}  // namespace

// ---- PaletteList

PaletteList::PaletteList(QWidget* parent) : QAbstractScrollArea(parent) {
    viewport()->setMouseTracking(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
    viewport()->setAutoFillBackground(false);
}

void PaletteList::setRows(std::vector<Row> rows, const QStringList& words) {
    m_rows = std::move(rows);
    m_words = words;
    m_current = 0;
    verticalScrollBar()->setValue(0);
    updateScroll();
    viewport()->update();
}

bool PaletteList::headed(int row) const {
    return row == 0 || m_rows[size_t(row)].group != m_rows[size_t(row) - 1].group;
}

int PaletteList::rowTop(int row) const {
    int y = 0;
    for (int i = 0; i < row; ++i) y += kCommandRow + (headed(i) ? kHeading : 0);
    return y + (row < int(m_rows.size()) && headed(row) ? kHeading : 0);
}

int PaletteList::contentHeight() const {
    int y = 6;
    for (int i = 0; i < int(m_rows.size()); ++i) y += kCommandRow + (headed(i) ? kHeading : 0);
    return y;
}

int PaletteList::rowAt(int y) const {
    y += verticalScrollBar()->value();
    for (int i = 0; i < int(m_rows.size()); ++i)
        if (y >= rowTop(i) && y < rowTop(i) + kCommandRow) return i;
    return -1;
}

void PaletteList::updateScroll() {
    verticalScrollBar()->setRange(0, std::max(0, contentHeight() - viewport()->height()));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(kCommandRow);
}

void PaletteList::move(int by) {
    if (m_rows.empty()) return;
    if (!m_selectable) {
        verticalScrollBar()->setValue(verticalScrollBar()->value() + by * kCommandRow);
        return;
    }
    m_current = std::clamp(m_current + by, 0, int(m_rows.size()) - 1);
    const int top = rowTop(m_current) - (headed(m_current) ? kHeading : 0);
    const int bottom = rowTop(m_current) + kCommandRow;
    QScrollBar* bar = verticalScrollBar();
    if (top < bar->value()) bar->setValue(top);
    if (bottom > bar->value() + viewport()->height()) bar->setValue(bottom - viewport()->height());
    viewport()->update();
}

void PaletteList::mouseMoveEvent(QMouseEvent* event) {
    const int row = rowAt(int(event->position().y()));
    if (!m_selectable || row < 0 || row == m_current) return;
    m_current = row;
    viewport()->update();
}

void PaletteList::mousePressEvent(QMouseEvent* event) {
    const int row = rowAt(int(event->position().y()));
    if (m_selectable && row >= 0) emit activated(row);
}

// Matching letters are bold.
void PaletteList::paintTitle(QPainter& p, const QRectF& rect, const Row& row) const {
    QVector<bool> hit(row.title.size(), false);
    for (const QString& word : m_words) {
        const qsizetype at = row.title.indexOf(word, 0, Qt::CaseInsensitive);
        for (qsizetype i = 0; at >= 0 && i < word.size(); ++i) hit[at + i] = true;
    }
    QVector<Span> spans;
    for (qsizetype i = 0; i < row.title.size();) {
        qsizetype end = i;
        while (end < row.title.size() && hit[end] == hit[i]) ++end;
        spans << Span{row.title.mid(i, end - i), row.enabled ? Tone::Text1 : Tone::TextOff,
                      hit[i] ? type::bodyBold() : type::body()};
        i = end;
    }
    drawSpans(p, rect, spans);
}

void PaletteList::paintEvent(QPaintEvent*) {
    QPainter p(viewport());
    const int scroll = verticalScrollBar()->value(), width = viewport()->width();
    for (int i = 0; i < int(m_rows.size()); ++i) {
        const Row& row = m_rows[size_t(i)];
        const double y = rowTop(i) - scroll;
        if (y > viewport()->height() || y + kCommandRow < -kHeading) continue;
        if (headed(i))
            drawText(p, QRectF(14, y - kHeading + 8, width - 28, 14), Qt::AlignVCenter, row.group,
                     type::captionBold(), tone(Tone::Text3));
        const bool selected = m_selectable && i == m_current;
        if (selected) p.fillRect(QRectF(0, y, width, kCommandRow), tone(Tone::Tint));
        double x = 14, right = width - 14;
        if (!row.icon.isEmpty()) {
            paintIcon(p, row.icon, QRectF(x, y + 8, 16, 16),
                      tone(selected ? Tone::Accent : Tone::Text2));
            x += 26;
        }
        if (!row.key.isEmpty()) {
            right -= keyPlateWidth(row.key);
            drawKeyPlate(p, right, y + kCommandRow / 2.0, row.key, tone(Tone::Text3),
                         tone(Tone::Line2));
            right -= 10;
        }
        if (!row.detail.isEmpty()) {
            const double w = std::min(textWidth(type::dense(), row.detail), (right - x) * 0.6);
            right -= w;
            drawElided(p, QRectF(right, y, w, kCommandRow), Qt::AlignVCenter, row.detail,
                       type::dense(), tone(Tone::Text3));
            right -= 10;
        }
        paintTitle(p, QRectF(x, y, right - x, kCommandRow), row);
    }
}

// ---- CommandPalette

class CommandPalette::Frame : public QWidget {
public:
    explicit Frame(CommandPalette* owner) : QWidget(owner->panel()), m_owner(owner) {}
    QString count, footer;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        paintIcon(p, m_owner->m_answer ? "edit" : "search", QRectF(14, 14, 16, 16),
                  tone(Tone::Text3));
        p.fillRect(QRectF(1, kInput - 1, width() - 2, 1), tone(Tone::Line1));
        drawText(p, QRectF(0, 0, width() - 14, kInput), Qt::AlignRight | Qt::AlignVCenter, count,
                 type::dense(), tone(Tone::Text3));
        if (footer.isEmpty()) return;
        const double top = height() - kPaletteFoot;
        QPainterPath clip;
        clip.addRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 5, 5);
        p.setClipPath(clip);
        p.fillRect(QRectF(0, top, width(), kPaletteFoot), tone(Tone::Bg2));
        p.fillRect(QRectF(0, top, width(), 1), tone(Tone::Line1));
        paintIcon(p, "term", QRectF(14, top + 10, 16, 16), tone(Tone::Text3));
        double right = width() - 14 - keyPlateWidth("Ctrl+C");
        drawKeyPlate(p, right, top + kPaletteFoot / 2.0, "Ctrl+C", tone(Tone::Text3),
                     tone(Tone::Line2));
        right -= 8 + textWidth(type::caption(), "copy");
        drawText(p, QRectF(right, top, 60, kPaletteFoot), Qt::AlignVCenter, "copy", type::caption(),
                 tone(Tone::Text3));
        drawElided(p, QRectF(38, top, right - 46, kPaletteFoot), Qt::AlignVCenter, footer,
                   type::monoSmall(), tone(Tone::Text2));
    }

private:
    CommandPalette* m_owner;
};

CommandPalette::CommandPalette(Commands* commands, QWidget* window)
    : Overlay(window), m_commands(commands), m_input(nullptr), m_list(nullptr), m_frame(nullptr) {
    m_frame = new Frame(this);
    m_input = new QLineEdit(panel());
    m_input->setProperty("bare", true);
    m_input->setFont(uiFont(15));
    m_input->setAccessibleName("Command");
    m_list = new PaletteList(panel());
    m_input->installEventFilter(this);
    connect(m_input, &QLineEdit::textChanged, this, &CommandPalette::filter);
    connect(m_list, &PaletteList::activated, this, [this](int row) {
        m_list->move(row - m_list->current());
        accept();
    });
}

QRect CommandPalette::panelRect() const {
    QRect rect = Overlay::panelRect();
    rect.setTop(std::min(96, std::max(48, parentWidget()->height() / 8)));
    const int foot = m_frame && !m_frame->footer.isEmpty() ? kPaletteFoot : 0;
    const int rows = m_answer ? 0 : m_list ? m_list->contentHeight() : 360;
    const int most = parentWidget()->height() - rect.top() - 40;
    rect.setHeight(std::min(most, kInput + std::min(rows, 372) + foot + 2));
    return rect;
}

void CommandPalette::openCommands(const QString& query) {
    m_answer = nullptr;
    m_pool = m_commands->all();
    if (m_commands->dynamic)
        for (Command& command : m_commands->dynamic()) m_pool.push_back(std::move(command));
    m_frame->footer = m_commandLine ? m_commandLine() : QString();
    m_input->setPlaceholderText("Type a command");
    m_input->setText(query);
    filter();
    openPanel();
}

void CommandPalette::ask(const QString& title, const QString& initial,
                         std::function<void(QString)> done) {
    m_answer = std::move(done);
    m_frame->footer.clear();
    m_frame->count = title;
    m_input->setPlaceholderText(title);
    m_input->setText(initial);
    m_input->selectAll();
    filter();
    openPanel();
}

void CommandPalette::opened() {
    m_frame->setGeometry(panel()->rect());
    m_frame->lower();
    const int right = int(textWidth(type::dense(), m_frame->count)) + 24;
    m_input->setGeometry(40, 10, panel()->width() - 40 - right, 24);
    const int foot = m_frame->footer.isEmpty() ? 0 : kPaletteFoot;
    m_list->setGeometry(1, kInput, panel()->width() - 2,
                        std::max(0, panel()->height() - kInput - foot - 1));
    m_list->setVisible(!m_answer);
    m_input->setFocus();
}

void CommandPalette::filter() {
    if (m_answer) return;
    const QStringList words = m_input->text().simplified().split(' ', Qt::SkipEmptyParts);
    std::vector<PaletteList::Row> rows;
    for (const QString& group : m_commands->groups()) {
        for (int i = 0; i < int(m_pool.size()); ++i) {
            const Command& command = m_pool[size_t(i)];
            if (command.group != group) continue;
            const QString text = command.group + " " + command.title + " " + command.also;
            const bool all = std::all_of(words.begin(), words.end(), [&](const QString& word) {
                return text.contains(word, Qt::CaseInsensitive);
            });
            if (!all) continue;
            const bool enabled = !command.enabled || command.enabled();
            rows.push_back({group, command.icon, command.title,
                            !enabled         ? "not now: " + command.needs
                            : command.detail ? command.detail()
                                             : QString(),
                            command.key.toString(QKeySequence::NativeText), enabled, i});
        }
    }
    m_frame->count = QString("%1 of %2").arg(rows.size()).arg(m_pool.size());
    m_list->setRows(std::move(rows), words);
    if (isVisible()) {
        relayout();
        opened();
    }
    m_frame->update();
}

void CommandPalette::accept() {
    if (m_answer) {
        const QString text = m_input->text().trimmed();
        const auto answer = std::move(m_answer);
        m_answer = nullptr;
        closePanel();
        if (!text.isEmpty()) answer(text);
        return;
    }
    const int at = m_list->current();
    if (at < 0 || at >= int(m_list->rows().size())) return;
    const Command command = m_pool[size_t(m_list->rows()[size_t(at)].source)];
    if (command.enabled && !command.enabled()) {
        m_frame->count = "Not now: " + command.needs;  // shown at the end of the input field
        opened();
        m_frame->update();
        return;
    }
    closePanel();
    command.run();
}

bool CommandPalette::eventFilter(QObject* object, QEvent* event) {
    if (object == m_input && event->type() == QEvent::KeyPress) {
        auto* key = static_cast<QKeyEvent*>(event);
        switch (key->key()) {
            case Qt::Key_Down:
                m_list->move(1);
                return true;
            case Qt::Key_Up:
                m_list->move(-1);
                return true;
            case Qt::Key_PageDown:
                m_list->move(10);
                return true;
            case Qt::Key_PageUp:
                m_list->move(-10);
                return true;
            case Qt::Key_Return:
            case Qt::Key_Enter:
                accept();
                return true;
            case Qt::Key_Escape:
                closePanel();
                return true;
            case Qt::Key_C:
                if (key->modifiers() == Qt::ControlModifier && !m_input->hasSelectedText() &&
                    !m_frame->footer.isEmpty()) {
                    QGuiApplication::clipboard()->setText(m_frame->footer);
                    return true;
                }
                break;
            default:
                break;
        }
    }
    return Overlay::eventFilter(object, event);
}

// ---- Sheet

class Sheet::Head : public QWidget {
public:
    explicit Head(Sheet* owner) : QWidget(owner->panel()), m_owner(owner) {
        m_copy = new Button("Copy", Button::Kind::Quiet, Button::Size::Dense, this);
        m_copy->setIconName("copy");
        QObject::connect(m_copy, &QAbstractButton::clicked, owner,
                         [owner] { QGuiApplication::clipboard()->setText(owner->plainText()); });
        m_close = new IconButton("close", "Close", 24, this);
        QObject::connect(m_close, &QAbstractButton::clicked, owner, &Overlay::closePanel);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        drawText(p, QRectF(14, 0, width() - 28, height()), Qt::AlignVCenter, m_owner->m_title,
                 type::section(), tone(Tone::Text1));
        p.fillRect(QRectF(1, height() - 1, width() - 2, 1), tone(Tone::Line1));
    }
    void resizeEvent(QResizeEvent*) override {
        m_close->move(width() - 34, (height() - 24) / 2);
        m_copy->setGeometry(width() - 38 - m_copy->sizeHint().width(), (height() - 24) / 2,
                            m_copy->sizeHint().width(), 24);
    }

private:
    Sheet* m_owner;
    Button* m_copy;
    IconButton* m_close;
};

Sheet::Sheet(QWidget* window) : Overlay(window), m_head(nullptr), m_list(nullptr) {
    m_head = new Head(this);
    m_list = new PaletteList(panel());
    m_list->setSelectable(false);
    setFocusPolicy(Qt::StrongFocus);
}

QRect Sheet::panelRect() const {
    const QWidget* window = parentWidget();
    const int w = std::min(640, window->width() - 32);
    const int top = std::min(72, window->height() / 10);
    const int most = window->height() - top - 40;
    const int want = kInput + (m_list ? m_list->contentHeight() : 300) + 2;
    return {(window->width() - w) / 2, top, w, std::min(most, want)};
}

void Sheet::openSheet(const QString& title, std::vector<PaletteList::Row> rows) {
    m_title = title;
    m_list->setRows(std::move(rows), {});
    setAccessibleName(title);
    openPanel();
}

void Sheet::opened() {
    m_head->setGeometry(0, 0, panel()->width(), kInput);
    m_list->setGeometry(1, kInput, panel()->width() - 2, panel()->height() - kInput - 2);
    setFocus();
}

QString Sheet::plainText() const {
    QString out = m_title + "\n", group;
    for (const PaletteList::Row& row : m_list->rows()) {
        if (row.group != group) out += "\n" + row.group + "\n";
        group = row.group;
        out += "  " + row.title + ": " + (row.detail.isEmpty() ? row.key : row.detail) + "\n";
    }
    return out;
}

void Sheet::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
        case Qt::Key_Down:
            m_list->move(1);
            return;
        case Qt::Key_Up:
            m_list->move(-1);
            return;
        case Qt::Key_PageDown:
        case Qt::Key_Space:
            m_list->move(10);
            return;
        case Qt::Key_PageUp:
            m_list->move(-10);
            return;
        case Qt::Key_C:
            if (event->modifiers() == Qt::ControlModifier)
                QGuiApplication::clipboard()->setText(plainText());
            return;
        default:
            Overlay::keyPressEvent(event);
    }
}

}  // namespace colibri::ui
