// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/recent_table.h"

#include <QKeyEvent>
#include <QMenu>
#include <QPainterPath>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kTableHead = 32, kNames = 24, kRecentRow = 44, kLeft = 14;

// Columns by width; those that do not fit are omitted.
struct Columns {
    double what, sizeRight, usedRight, actionRight;
    bool showWhat, showUsed;
};

Columns columnsOf(double width) {
    Columns c;
    c.actionRight = width - 8;
    c.usedRight = width - 92;
    c.sizeRight = width - 182;
    c.what = std::round(width * 0.331);
    c.showUsed = width >= 420;
    c.showWhat = width >= 520;
    if (!c.showUsed) c.sizeRight = c.usedRight;
    return c;
}

}  // namespace

// ---- RecentRow

RecentRow::RecentRow(const RecentEntry& entry, bool last, QWidget* parent)
    : QAbstractButton(parent), m_entry(entry), m_last(last) {
    setFixedHeight(kRecentRow);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setContextMenuPolicy(Qt::CustomContextMenu);
    const bool model = entry.kind == RecentEntry::Kind::Model;
    setAccessibleName(
        entry.missing
            ? "Remove " + entry.name + " from the list: moved or deleted"
            : QString("Open %1 %2, %3").arg(model ? "model" : "session", entry.name, entry.what));
    setToolTip(shortPath(entry.path) + (entry.missing ? "\nIt was moved or deleted." : ""));
}

void RecentRow::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return click();
    if (event->key() == Qt::Key_Down) return void(focusNextChild());
    if (event->key() == Qt::Key_Up) return void(focusPreviousChild());
    QAbstractButton::keyPressEvent(event);
}

void RecentRow::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const bool gone = m_entry.missing;
    if (underMouse()) p.fillRect(rect(), tone(Tone::Bg2));
    if (!m_last) p.fillRect(0, height() - 1, width(), 1, tone(Tone::Line1));
    const Columns c = columnsOf(width());
    const double h = kRecentRow - 1;
    const QColor ink = tone(gone ? Tone::TextOff : Tone::Text1);
    const bool model = m_entry.kind == RecentEntry::Kind::Model;
    paintIcon(p, model ? "chip" : "clock", QRectF(kLeft, (h - 16) / 2, 16, 16), ink);
    const double nameEnd = c.showWhat ? c.what : c.sizeRight - 70;
    drawElided(p, QRectF(kLeft + 26, 0, nameEnd - kLeft - 34, h), Qt::AlignVCenter, m_entry.name,
               type::bodyMedium(), ink);
    if (c.showWhat) {
        double x = c.what;
        if (gone) {
            paintIcon(p, "warn", QRectF(x, (h - 12) / 2, 12, 12), tone(Tone::Text3));
            x += 17;
        }
        drawElided(p, QRectF(x, 0, c.sizeRight - 72 - x, h), Qt::AlignVCenter,
                   gone ? "moved or deleted" : m_entry.what, type::dense(),
                   tone(gone ? Tone::Text3 : Tone::Text2));
    }
    const auto right = [&](double edge, const QString& text, const QFont& font, Tone t) {
        drawText(p, QRectF(0, 0, edge, h), Qt::AlignRight | Qt::AlignVCenter, text, font, tone(t));
    };
    right(c.sizeRight, gone ? QString("-") : sizeText(double(m_entry.bytes)), type::mono(),
          gone ? Tone::Text3 : Tone::Text1);
    if (c.showUsed)
        right(c.usedRight, usedText(m_entry.used, QDateTime::currentDateTime()), type::mono(),
              Tone::Text2);
    QFont link = type::dense();
    link.setUnderline(underMouse());
    right(c.actionRight, gone ? "Remove" : "Open", link, gone ? Tone::Text3 : Tone::Accent);
    if (hasFocus()) focusRing(p, QRectF(rect()).adjusted(1, 0, -1, -1), 3);
}

// ---- RecentTable

RecentTable::RecentTable(RecentList& list, QWidget* parent)
    : QWidget(parent),
      m_list(list),
      m_filter(new Segment({"All", "Models", "Sessions"}, this)),
      m_scroll(new QScrollArea(this)),
      m_content(new QWidget),
      m_rows(new QVBoxLayout(m_content)) {
    m_filter->setAccessibleName("Entries to list");
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setWidget(m_content);
    m_rows->setContentsMargins(0, 0, 0, 0);
    m_rows->setSpacing(0);
    connect(m_filter, &Segment::chosen, this, &RecentTable::refresh);
    connect(&m_list, &RecentList::changed, this, &RecentTable::refresh);
    refresh();
}

QVector<RecentRow*> RecentTable::rows() const {
    QVector<RecentRow*> rows;
    for (int i = 0; i < m_rows->count(); ++i) {
        if (auto* row = qobject_cast<RecentRow*>(m_rows->itemAt(i)->widget())) rows << row;
    }
    return rows;
}

int RecentTable::heightFor(int rows) const {
    return 2 + kTableHead + kNames + rows * kRecentRow;
}

void RecentTable::refresh() {
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        if (item->widget()) {
            item->widget()->hide();
            item->widget()->deleteLater();  // may be the row that was clicked
        }
        delete item;
    }
    QVector<RecentEntry> shown;
    for (const RecentEntry& entry : m_list.entries()) {
        const bool model = entry.kind == RecentEntry::Kind::Model;
        if (m_filter->current() == 0 || model == (m_filter->current() == 1)) shown << entry;
    }
    for (qsizetype i = 0; i < shown.size(); ++i) {
        auto* row = new RecentRow(shown[i], i + 1 == shown.size(), m_content);
        m_rows->addWidget(row);
        connect(row, &QAbstractButton::clicked, this, [this, entry = shown[i]] {
            entry.missing ? emit removeRequested(entry) : emit openRequested(entry.path);
        });
        connect(row, &QWidget::customContextMenuRequested, this,
                [this, row](const QPoint& at) { showMenu(row, row->mapToGlobal(at)); });
    }
    m_rows->addStretch(1);
    const bool sessions = m_filter->current() == 2;
    m_emptyTitle = sessions ? "No sessions yet" : "Nothing opened yet";
    m_emptyText = sessions ? "Every run of a model is recorded and listed here."
                           : "Models and sessions you open are listed here.";
    m_scroll->setVisible(!shown.isEmpty());
    update();
}

void RecentTable::showMenu(RecentRow* row, const QPoint& at) {
    const RecentEntry entry = row->entry();
    QMenu menu(this);
    if (!entry.missing) {
        menu.addAction("Open", this, [this, entry] { emit openRequested(entry.path); });
        menu.addAction("Reveal in folder", this, [entry] { revealInFolder(entry.path); });
    }
    menu.addAction("Copy path", this, [entry] { copyText(entry.path); });
    menu.addSeparator();
    menu.addAction("Remove from the list", this, [this, entry] { emit removeRequested(entry); });
    menu.exec(at);
}

void RecentTable::resizeEvent(QResizeEvent*) {
    const QSize size = m_filter->sizeHint();
    m_filter->setGeometry(width() - size.width() - 7, 5, size.width(), size.height());
    m_scroll->setGeometry(1, 1 + kTableHead + kNames, width() - 2,
                          std::max(0, height() - 2 - kTableHead - kNames));
}

void RecentTable::paintEvent(QPaintEvent*) {
    QPainter p(this);
    QPainterPath clip;
    clip.addRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    p.setClipPath(clip);
    p.fillRect(QRectF(0, 0, width(), kTableHead), tone(Tone::Bg2));
    p.setClipping(false);
    p.fillRect(1, kTableHead, width() - 2, 1, tone(Tone::Line1));
    p.fillRect(1, kTableHead + kNames, width() - 2, 1, tone(Tone::Line1));
    drawText(p, QRectF(kLeft + 1, 1, 200, kTableHead - 1), Qt::AlignVCenter, "Recent",
             type::bodyBold(), tone(Tone::Text1));
    const Columns c = columnsOf(width() - 2);
    const QFont font = uiFont(11, QFont::Medium);
    const QRectF line(1, kTableHead + 1, width() - 2, kNames - 1);
    const auto head = [&](double x, double w, int align, const QString& text) {
        drawText(p, QRectF(line.left() + x, line.top(), w, line.height()), Qt::AlignVCenter | align,
                 text, font, tone(Tone::Text3));
    };
    head(kLeft, 100, Qt::AlignLeft, "Name");
    if (c.showWhat) head(c.what, 100, Qt::AlignLeft, "What");
    head(0, c.sizeRight, Qt::AlignRight, "Size");
    if (c.showUsed) head(0, c.usedRight, Qt::AlignRight, "Used");
    if (!m_scroll->isVisibleTo(this)) {
        const double y = (kTableHead + kNames + height()) / 2.0;
        paintIcon(p, "list", QRectF(width() / 2.0 - 10, y - 38, 20, 20), tone(Tone::Text3));
        drawText(p, QRectF(0, y - 8, width(), 18), Qt::AlignCenter, m_emptyTitle,
                 type::bodyMedium(), tone(Tone::Text1));
        drawText(p, QRectF(0, y + 10, width(), 16), Qt::AlignCenter, m_emptyText, type::dense(),
                 tone(Tone::Text3));
    }
    fillBox(p, rect(), Qt::transparent, tone(Tone::Line1), 6);
}

}  // namespace colibri::ui
