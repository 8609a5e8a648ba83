// SPDX-License-Identifier: GPL-3.0-or-later
// Displays a growing reply. It lays out Markdown blocks itself, so that a new token lays out one
// paragraph only, and has the position of every token: slow ones are underlined, the hovered one is
// framed. Text can be selected and copied. Lengths are px. GUI thread only.
#pragma once

#include <QTextLayout>
#include <QWidget>
#include <memory>
#include <vector>

#include "app/workbench/chat/conversation.h"
#include "app/workbench/chat/markdown.h"
#include "app/workbench/theme/theme.h"

namespace colibri::ui {

class TextFlow : public QWidget {
    Q_OBJECT

public:
    explicit TextFlow(QWidget* parent = nullptr);

    // Shows `text` from offset `from` on; tokens have offsets in the whole text. Cheap if the text
    // only grew.
    void setText(const QString& text, int from, bool streaming);
    void setPlain(bool on) { m_plain = on; }  // for turns of the user: line breaks, no Markdown
    void setTokens(const QVector<TokenMark>* tokens) { m_tokens = tokens; }
    void setSlowMs(double ms);  // tokens with a longer gap are underlined
    void setLook(double lineHeight, bool muted);
    void setCaret(bool on);
    // Text from this offset on is not played yet and is drawn faintly; -1: all of it is played.
    // `bar`: the playhead is there.
    void setPlayed(int offset, bool bar);
    QRect playedRect() const;  // of the bar; null: it is not in this text
    int layoutFor(int width);  // returns the height

    QString selectedText() const;
    bool hasSelection() const { return m_anchor != m_cursor; }
    void clearSelection();
    void selectAll();
    QString visibleText() const;
    // Searches: returns the number of matches of `needle`. The current match is highlighted.
    int setFind(const QString& needle);
    void setFindCurrent(int index);
    QRect findRect(int index) const;

    int tokenAt(const QPoint& at) const;  // -1: none
    int hoveredToken() const { return m_hovered; }
    void setHoveredToken(int token);
    QRect tokenRect(int token) const;
    QString linkAt(const QPoint& at) const;     // its address; "" = no link there
    QRect cellRect(int row, int column) const;  // of the first table's text, for tests

signals:
    void tokenHovered(int token);  // -1: the pointer left
    void codeCopied();
    void linkWanted(const QString& address);

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mouseReleaseEvent(QMouseEvent*) override;
    void mouseDoubleClickEvent(QMouseEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void leaveEvent(QEvent*) override;
    void focusOutEvent(QFocusEvent*) override;
    void contextMenuEvent(QContextMenuEvent*) override;
    void changeEvent(QEvent*) override;

private:
    // A text that is item out separately: that of a block or of a table cell.
    struct Piece {
        std::shared_ptr<QTextLayout> layout;
        int row = -1, column = -1;  // of a table; -1: the block's own text
        double x = 0, y = 0;        // in the block
        int start = 0, length = 0;  // in the flow's characters
    };
    struct BlockLayout {  // a block with its layout
        MarkdownBlock block;
        std::vector<Piece> pieces;
        std::vector<double> columns, rows;  // table: edges from the block's corner
        double top = 0, height = 0, left = 0;
        double scroll = 0, contentWidth = 0;  // code and wide tables scroll sideways
        int start = 0, length = 0;            // in the flow's characters
        const MarkedText& text(const Piece& piece) const;
        bool scrolls() const;
    };

    void layoutBlock(BlockLayout* item, int width);
    void layoutTable(BlockLayout* item, int width);
    std::shared_ptr<QTextLayout> layoutCell(const BlockLayout& item, const Piece& piece,
                                            double width) const;
    std::vector<double> columnWidths(const BlockLayout& item, double room) const;
    QFont cellFont(const BlockLayout& item, const Piece& piece) const;
    double room(const BlockLayout& item) const;  // width in which its content scrolls
    double gapBefore(size_t index) const;
    QVector<QTextLayout::FormatRange> formats(const MarkedText& text, bool strong) const;
    QVector<QTextLayout::FormatRange> blockFormats(
        const MarkdownBlock& block) const;  // of its own text
    void positionBlocks(size_t from);
    void applyColors();

    QString textBetween(int begin, int end) const;
    int positionAt(const QPointF& at) const;  // in the flow's characters
    const Piece* pieceAt(const BlockLayout& item, const QPointF& at) const;
    const BlockLayout* blockOf(int position) const;
    // Rectangles of the flow's characters [begin, end) in a block.
    std::vector<QRectF> rectsOf(const BlockLayout& item, int begin, int end) const;
    std::pair<int, int> charsOfSource(const BlockLayout& item, const Piece& piece, int begin,
                                      int end) const;
    std::vector<QRectF> tokenRects(const BlockLayout& item, int token) const;
    void paintBlock(QPainter& p, const BlockLayout& item);
    void paintPieces(QPainter& p, const BlockLayout& item, Tone ink);
    void drawPiece(QPainter& p, const BlockLayout& item, const Piece& piece, const QPointF& at);
    void paintScroll(QPainter& p, const BlockLayout& item);
    void paintQuote(QPainter& p, size_t index);
    void paintMarker(QPainter& p, const BlockLayout& item);
    void paintCode(QPainter& p, const BlockLayout& item);
    void paintTable(QPainter& p, const BlockLayout& item);
    void paintMarks(QPainter& p, const BlockLayout& item);
    QRectF copyRect(const BlockLayout& item) const;
    bool slow(const TokenMark& token) const { return m_slowMs > 0 && token.gapMs > m_slowMs; }

    QString m_text;
    int m_from = 0;
    std::vector<BlockLayout> m_blocks;
    const QVector<TokenMark>* m_tokens = nullptr;
    int m_width = 0;
    double m_lineHeight = 21, m_slowMs = 0;
    bool m_streaming = false, m_caret = false, m_plain = false, m_muted = false;
    int m_anchor = 0, m_cursor = 0;  // selection, in the flow's characters
    bool m_selecting = false;
    QPoint m_pressed;
    int m_hovered = -1, m_hoverCode = -1;
    int m_played = -1;  // offset in m_text
    bool m_playedBar = false;
    QString m_needle;
    std::vector<int> m_found;  // positions of matches
    int m_findCurrent = -1;
};

}  // namespace colibri::ui
