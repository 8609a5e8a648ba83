// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/welcome_page.h"

#include <QKeyEvent>
#include <QScrollArea>
#include <algorithm>
#include <cmath>

#include "app/workbench/pages/recent_table.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kBlock = 1136, kTiles = 480, kGap = 48, kTile = 64, kTileGap = 12;
constexpr int kTitle = 52, kTitleGap = 32, kMargin = 24, kStackBelow = 1000, kShownRows = 6;
constexpr int kStripCell = 66, kFirstCell = 150;

// Logo, name and purpose of the program.
class TitleBlock : public QWidget {
public:
    using QWidget::QWidget;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        paintIcon(p, "logo", QRectF(0, 4, 44, 44), tone(Tone::Accent), 1.15);
        QFont font = type::title();
        font.setLetterSpacing(QFont::AbsoluteSpacing, -0.2);
        drawElided(p, QRectF(60, 0, width() - 60, 30), Qt::AlignVCenter, "Colibri Workbench", font,
                   tone(Tone::Text1));
        drawElided(p, QRectF(60, 30, width() - 60, 22), Qt::AlignVCenter,
                   "Run Mixture-of-Experts models larger than your memory, and see where the time "
                   "goes.",
                   uiFont(15), tone(Tone::Text2));
    }
};

// A keyboard shortcut in a frame.
class KeyPlate : public QWidget {
public:
    KeyPlate(const QString& key, QWidget* parent) : QWidget(parent), m_key(key) {
        resize(int(keyPlateWidth(key)), 18);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        drawKeyPlate(p, 0, 9, m_key, tone(Tone::Text3), tone(Tone::Line2));
    }

private:
    QString m_key;
};

}  // namespace

// ---- ActionTile

ActionTile::ActionTile(const QString& icon, const QString& title, const QString& text,
                       const QString& key, bool primary, QWidget* parent)
    : QAbstractButton(parent), m_icon(icon), m_text(text), m_key(key), m_primary(primary) {
    setText(title);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setAccessibleName(title);
    setAccessibleDescription(text);
}

void ActionTile::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return click();
    if (event->key() == Qt::Key_Down) return void(focusNextChild());
    if (event->key() == Qt::Key_Up) return void(focusPreviousChild());
    QAbstractButton::keyPressEvent(event);
}

void ActionTile::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(underMouse() || isDown() ? Tone::Bg3 : Tone::Bg2),
            tone(m_primary ? Tone::Accent : Tone::Line1), 6);
    paintIcon(p, m_icon, QRectF(17, (height() - 20) / 2.0, 20, 20),
              tone(m_primary ? Tone::Accent : Tone::Text2));
    const double key = keyPlateWidth(m_key);
    const double room = width() - 51 - 17 - key - 14;
    drawElided(p, QRectF(51, 15, room, 18), Qt::AlignVCenter, text(), type::bodyBold(),
               tone(Tone::Text1));
    drawElided(p, QRectF(51, 33, room, 16), Qt::AlignVCenter, m_text, type::dense(),
               tone(Tone::Text3));
    drawKeyPlate(p, width() - 17 - key, height() / 2.0, m_key, tone(Tone::Text3),
                 tone(Tone::Line2));
    if (hasFocus()) focusRing(p, rect(), 6);
}

// ---- MachineStrip

MachineStrip::MachineStrip(QWidget* parent)
    : QWidget(parent), m_measure(new LinkButton("Measure", type::caption(), this)) {
    m_measure->setToolTip(
        "Measures random disk reads and memory reads; takes about "
        "a second.");
    connect(m_measure, &QAbstractButton::clicked, this, &MachineStrip::measureRequested);
    setFacts({}, {});
}

void MachineStrip::setFacts(const MachineFacts& facts, const Calibration& rates) {
    const auto plural = [&](int n, const char* word) {
        return count(n) + " " + word + (n == 1 ? "" : "s");
    };
    const bool known = facts.threads > 0;
    m_slow = facts.isa == "scalar";
    m_ready = !known ? "checking" : m_slow ? "no AVX2: slow" : "ready";
    m_cells.clear();
    m_cells.push_back(
        {"Processor", known ? plural(facts.cores, "core") + ", " + facts.isa : "",
         known ? plural(facts.threads, "thread") + ", " + plural(facts.numaNodes, "NUMA node")
               : QString(),
         1.1});
    const auto gib = [](int64_t bytes) {
        return str(formatFixed(double(bytes) / double(1 << 30), 2));
    };
    m_cells.push_back(
        {"Memory",
         known ? gib(facts.memoryFree) + " of " + gib(facts.memoryTotal) + " GiB free" : "",
         rates.memoryBytesPerSecond > 0 ? rateText(rates.memoryBytesPerSecond) + " measured"
                                        : QString("rate not measured yet"),
         1.25});
    if (rates.diskBytesPerSecond > 0) {
        m_cells.push_back(
            {"Disk", rateText(rates.diskBytesPerSecond),
             (rates.recordBytes > 0 ? sizeText(double(rates.recordBytes)) + " " : QString()) +
                 "random reads" + (rates.direct ? "" : ", cached"),
             1});
    } else {
        m_cells.push_back({"Disk", "n/a", "not measured yet", 1, true});
    }
    const bool gpu = known && facts.gpuReason.isEmpty();
    m_cells.push_back({"GPU",
                       gpu     ? facts.gpuName
                       : known ? "n/a"
                               : "",
                       gpu ? "monitored; models run on the CPU" : facts.gpuReason, 1, !gpu});
    m_cells.push_back({"Counters",
                       gpu     ? "SM utilisation"
                       : known ? "n/a"
                               : "",
                       gpu     ? facts.gpuProvenance
                       : known ? "need a GPU"
                               : "",
                       0.8, !gpu});
    QStringList names;
    for (const Cell& cell : m_cells) names << cell.name + ": " + cell.value + ", " + cell.note;
    setAccessibleName("This machine: " + m_ready + "; " + names.join("; "));
    m_measure->setText(rates.diskBytesPerSecond > 0 ? "Again" : "Measure");
    m_measure->setAccessibleName("Measure disk and memory");
    resizeEvent(nullptr);
    update();
}

void MachineStrip::setMeasuring(const QString& stage) {
    m_stage = stage;
    m_measure->setText(stage.isEmpty() ? "Again" : "Cancel");
    resizeEvent(nullptr);
    update();
}

// The first cell is the title. Cells share the width by weight, three in a row in a narrow window.
QVector<QRectF> MachineStrip::places(int width) const {
    QVector<QRectF> places;
    if (width >= 900) {
        double total = 0, x = kFirstCell;
        for (const Cell& cell : m_cells) total += cell.weight;
        places << QRectF(0, 0, kFirstCell, kStripCell);
        for (const Cell& cell : m_cells) {
            const double w = (width - kFirstCell) * cell.weight / total;
            places << QRectF(std::round(x), 0, std::round(x + w) - std::round(x), kStripCell);
            x += w;
        }
        return places;
    }
    const int perRow = width >= 560 ? 3 : 2;
    for (qsizetype i = 0; i <= m_cells.size(); ++i) {
        const double w = double(width) / perRow;
        places << QRectF(std::round(double(i % perRow) * w), double(i / perRow) * (kStripCell - 1),
                         std::round(w), kStripCell);
    }
    return places;
}

int MachineStrip::heightFor(int width) const {
    return int(places(width).back().bottom());
}

void MachineStrip::resizeEvent(QResizeEvent*) {
    if (m_cells.size() < 3) return;
    const QRectF disk = places(width())[3];
    const QSize size = m_measure->sizeHint();
    m_measure->setGeometry(int(disk.right()) - size.width() - 8, int(disk.top()) + 4, size.width(),
                           size.height());
}

void MachineStrip::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const auto at = places(width());
    const QColor line = tone(Tone::Line1);
    drawText(p, at[0].adjusted(15, 10, 0, 0), Qt::AlignLeft | Qt::AlignTop, "This machine",
             type::denseBold(), tone(Tone::Text1));
    const Tone ink = m_slow ? Tone::Warn : m_ready == "ready" ? Tone::Ok : Tone::Text3;
    const double y = at[0].top() + 29;
    double x = at[0].left() + 15;
    if (m_ready != "checking") {
        paintIcon(p, m_slow ? "warn" : "check", QRectF(x, y + 1, 12, 12), tone(ink));
        x += 16;
    }
    drawText(p, QRectF(x, y, 120, 14), Qt::AlignVCenter, m_ready, type::caption(), tone(ink));
    for (qsizetype i = 0; i < m_cells.size(); ++i) {
        const Cell& cell = m_cells[i];
        const QRectF box = at[i + 1];
        if (box.left() > 0) p.fillRect(QRectF(box.left(), box.top(), 1, box.height()), line);
        if (box.top() > 0) p.fillRect(QRectF(box.left(), box.top(), box.width(), 1), line);
        const double left = box.left() + 15, room = box.width() - 24;
        drawElided(p, QRectF(left, box.top() + 10, room, 14), Qt::AlignVCenter, cell.name,
                   type::caption(), tone(Tone::Text3));
        const bool measuring = cell.name == "Disk" && !m_stage.isEmpty();
        drawElided(p, QRectF(left, box.top() + 24, room, 18), Qt::AlignVCenter,
                   measuring ? "measuring" : cell.value, type::mono(),
                   tone(cell.missing || measuring ? Tone::Text3 : Tone::Text1));
        drawElided(p, QRectF(left, box.top() + 42, room, 14), Qt::AlignVCenter,
                   measuring ? m_stage : cell.note, type::caption(), tone(Tone::Text3));
    }
    fillBox(p, rect(), Qt::transparent, line, 6);
}

// ---- WelcomePage

WelcomePage::WelcomePage(RecentList& recent, QWidget* parent)
    : QWidget(parent), m_scroll(new QScrollArea(this)), m_content(new QWidget) {
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setWidget(m_content);
    m_title = new TitleBlock(m_content);
    m_tiles[0] =
        new ActionTile("folder", "Open a model", "Container, safetensors or GGUF; or drop one here",
                       "Ctrl+O", false, m_content);
    m_tiles[1] =
        new ActionTile("play", "Try the demo", "A small bundled model: a live plot within a minute",
                       "Ctrl+D", true, m_content);
    m_tiles[2] =
        new ActionTile("clock", "Open a session", "Its figures, its file, and how to query it",
                       "Ctrl+Shift+O", false, m_content);
    m_tiles[3] = new ActionTile("pulse", "Diagnose this machine",
                                "Disk, memory, NUMA, GPU: what is missing and why", "Ctrl+Shift+D",
                                false, m_content);
    m_tiles[4] =
        new ActionTile("grid", "Try a shape", "Random weights in the shape of a real model",
                       "Ctrl+Shift+N", false, m_content);
    m_guide = new LinkButton("User guide", type::dense(), m_content);
    m_sheet = new LinkButton("Keyboard sheet", type::dense(), m_content);
    m_sheetKey = new KeyPlate("F1", m_content);
    m_recent = new RecentTable(recent, m_content);
    m_machine = new MachineStrip(m_content);
    setFocusProxy(m_tiles[1]);  // the demo needs no files of the user

    connect(m_tiles[0], &QAbstractButton::clicked, this, &WelcomePage::openModelRequested);
    connect(m_tiles[1], &QAbstractButton::clicked, this, &WelcomePage::demoRequested);
    connect(m_tiles[2], &QAbstractButton::clicked, this, &WelcomePage::openSessionRequested);
    connect(m_tiles[3], &QAbstractButton::clicked, this, &WelcomePage::diagnoseRequested);
    connect(m_tiles[4], &QAbstractButton::clicked, this, &WelcomePage::shapeRequested);
    connect(m_guide, &QAbstractButton::clicked, this, &WelcomePage::guideRequested);
    connect(m_sheet, &QAbstractButton::clicked, this, &WelcomePage::keyboardSheetRequested);
    connect(m_recent, &RecentTable::openRequested, this, &WelcomePage::openRequested);
    connect(m_recent, &RecentTable::removeRequested, this, &WelcomePage::removeRequested);
}

void WelcomePage::resizeEvent(QResizeEvent*) {
    arrange();
}

void WelcomePage::arrange() {
    m_scroll->setGeometry(rect());
    const bool stacked = width() < kStackBelow;
    const int block = std::min(kBlock, width() - 2 * kMargin - (stacked ? 10 : 0));
    const int tiles = stacked ? block : std::min(kTiles, (block - kGap) / 2);
    const int tilesHeight = kTileCount * (kTile + kTileGap) + 4 + 18;
    const int tableHeight = std::max(m_recent->heightFor(kShownRows), tilesHeight);
    const int strip = m_machine->heightFor(block);
    const int body = stacked ? tilesHeight + kMargin + tableHeight : tableHeight;
    const int total = kTitle + kTitleGap + body + kTitleGap + strip;
    const int height = std::max(total + 2 * kMargin, this->height());
    m_content->resize(width(), height);
    const int x = (width() - block) / 2;
    int y = std::max(kMargin, (height - 8 - total) / 2);
    m_title->setGeometry(x, y, block, kTitle);
    y += kTitle + kTitleGap;
    int tileY = y;
    for (ActionTile* tile : m_tiles) {
        tile->setGeometry(x, tileY, tiles, kTile);
        tileY += kTile + kTileGap;
    }
    int linkX = x;
    for (LinkButton* link : {m_guide, m_sheet}) {
        const QSize size = link->sizeHint();
        link->setGeometry(linkX - 1, tileY + 1, size.width(), size.height());
        linkX += size.width() + 12;
    }
    m_sheetKey->move(linkX, tileY + 4);
    if (stacked) {
        y += tilesHeight + kMargin;
        m_recent->setGeometry(x, y, block, tableHeight);
    } else {
        m_recent->setGeometry(x + tiles + kGap, y, block - tiles - kGap, tableHeight);
    }
    y += tableHeight + kTitleGap;
    m_machine->setGeometry(x, y, block, strip);
    m_content->update();
}

void WelcomePage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
