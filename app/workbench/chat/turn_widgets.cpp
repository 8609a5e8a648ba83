// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/turn_widgets.h"

#include <QApplication>
#include <QClipboard>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>

#include "app/workbench/backend/recent_list.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "engine/telemetry/events.h"

namespace colibri::ui {
namespace {

constexpr int kFold = 26;
constexpr int kLongMessage = 300, kFoldedMessage = 160;  // px, heights of a message of the user
constexpr int kNote = 24;                                // px, the line about left out messages

QString text(double v, int decimals) {
    return str(formatFixed(v, decimals));
}

// The session time if the plots have it, else the time of day.
QString timeText(const Turn& turn) {
    if (turn.live) return clockText(turn.sessionTime, 0);
    if (turn.wallMs <= 0) return {};
    return usedText(QDateTime::fromMSecsSinceEpoch(turn.wallMs), QDateTime::currentDateTime());
}

// Three significant digits, or "n/a".
QString sig(double v) {
    return str(formatSig(v, 3));
}

}  // namespace

// ---- TurnWidget

TurnWidget::TurnWidget(int index, QWidget* parent)
    : QWidget(parent),
      m_index(index),
      m_left(smallButton("left", "Earlier branch")),
      m_right(smallButton("right", "Later branch")) {
    connect(m_left, &QAbstractButton::clicked, this, [this] { emit branchWanted(m_index, -1); });
    connect(m_right, &QAbstractButton::clicked, this, [this] { emit branchWanted(m_index, 1); });
}

void TurnWidget::setLast(bool on) {
    if (on == m_last) return;
    m_last = on;
    updateActions();
}

void TurnWidget::setRecorded(bool began) {
    if (m_recorded && began == m_began) return;
    m_recorded = true;
    m_began = began;
    flow()->setPlayed(began ? -1 : 0, false);
    updateActions();
}

void TurnWidget::layOutBranches(int right, int top) {
    m_right->move(right - 18, top);
    m_left->move(right - 18 - 18 - 18, top);
}

void TurnWidget::showBranches(bool on) {
    m_left->setVisible(on);
    m_right->setVisible(on);
    m_left->setEnabled(m_branch > 0);
    m_right->setEnabled(m_branch + 1 < m_branches);
}

void TurnWidget::paintBranch(QPainter& p, int top) const {
    if (!m_left->isVisibleTo(this)) return;
    drawText(p,
             QRectF(m_left->geometry().right(), top, m_right->x() - m_left->geometry().right(), 16),
             Qt::AlignCenter, QString("%1/%2").arg(m_branch + 1).arg(m_branches), type::monoSmall(),
             tone(Tone::Text3));
}

void TurnWidget::setBranches(int at, int count) {
    m_branch = at;
    m_branches = count;
    updateActions();
}

bool TurnWidget::actionsShown() const {
    const QWidget* focus = QApplication::focusWidget();
    const bool inside = focus && isAncestorOf(focus) && !qobject_cast<const TextFlow*>(focus);
    return m_last || underMouse() || inside;
}

IconButton* TurnWidget::smallButton(const QString& icon, const QString& name) {
    auto* button = new IconButton(icon, name, 24, this);
    button->setFocusPolicy(Qt::TabFocus);  // a click does not move the focus from the message field
    if (icon == "left" || icon == "right") {
        button->setIconSize(12);
        button->setHitWidth(18);
    }
    return button;
}

// ---- UserTurn

UserTurn::UserTurn(int index, const Turn& turn, QWidget* parent)
    : TurnWidget(index, parent),
      m_text(turn.text),
      m_time(timeText(turn)),
      m_flow(new TextFlow(this)),
      m_edit(smallButton("edit", "Edit message")),
      m_copy(smallButton("copy", "Copy message")),
      m_fold(new LinkButton("", type::dense(), this)) {
    // As typed, except that marked code is shown as code.
    static const QRegularExpression fence("(^|\\n) *(```|~~~)");
    m_flow->setPlain(!turn.text.contains(fence));
    m_flow->setLook(20, false);
    m_flow->setText(turn.text, 0, false);
    setAccessibleName("You: " + turn.text);
    connect(m_edit, &QAbstractButton::clicked, this, &UserTurn::startEdit);
    connect(m_copy, &QAbstractButton::clicked, this, [this] {
        QApplication::clipboard()->setText(m_text);
        emit copied();
    });
    connect(m_flow, &TextFlow::codeCopied, this, &TurnWidget::copied);
    connect(m_fold, &QAbstractButton::clicked, this, [this] { setOpen(!m_open); });
    m_fold->hide();
    updateActions();
}

void UserTurn::setOpen(bool on) {
    m_open = on;
    emit heightChanged();
    update();
}

void UserTurn::updateActions() {
    const bool shown = !m_compact || actionsShown();
    m_edit->setVisible(shown && !m_editor && !m_recorded);
    m_copy->setVisible(shown && !m_editor);
    showBranches(m_branches > 1);
    update();
}

int UserTurn::layoutFor(int width) {
    constexpr int kPad = 13, kTop = 9;
    int x = width - 8 - 24;
    m_copy->move(x, kTop - 4);
    m_edit->move(x - 24, kTop - 4);
    x -= 24 + 7;
    layOutBranches(x, kTop - 4);
    const int top = kTop + 16 + 4;
    int height = 0;
    if (m_editor) {
        const int lines = std::clamp(m_editor->document()->blockCount() + 1, 2, 12);
        height = lines * 20 + 8;
        m_editor->setGeometry(kPad - 4, top, width - 2 * kPad + 8, height);
        m_send->move(width - kPad - m_send->width(), top + height + 4);
        m_cancel->move(m_send->x() - 8 - m_cancel->width(), top + height + 4);
        height += 32;
    } else {
        height = m_flow->layoutFor(width - 2 * kPad);
        m_foldable = height > kLongMessage;
        if (folded()) height = kFoldedMessage;
        m_flow->setGeometry(kPad, top, width - 2 * kPad, height);
    }
    m_fold->setVisible(m_foldable && !m_editor);
    if (m_fold->isVisibleTo(this)) {
        const int lines = int(m_text.count('\n')) + 1;
        m_fold->setText(m_open      ? QString("Show less")
                        : lines > 1 ? "Show all " + count(lines) + " lines"
                                    : QString("Show all"));
        m_fold->resize(m_fold->sizeHint());
        m_fold->move(kPad, top + height + 4);
        height += 4 + m_fold->height();
    }
    return top + height + 9;
}

void UserTurn::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Bg2), tone(Tone::Line1), 6);
    drawText(p, QRectF(13, 9, 60, 16), Qt::AlignVCenter, "You", type::denseBold(),
             tone(m_began ? Tone::Text1 : Tone::Text3));
    drawText(p, QRectF(13 + textWidth(type::denseBold(), "You") + 8, 9, 80, 16), Qt::AlignVCenter,
             m_time, type::monoSmall(), tone(Tone::Text3));
    paintBranch(p, 9);
}

void UserTurn::startEdit() {
    if (m_editor) return;
    m_editor = new MessageEdit(this);
    m_editor->setPlainText(m_text);
    m_editor->setAccessibleName("Edit message");
    connect(m_editor, &MessageEdit::submitted, this, [this] { endEdit(true); });
    m_send = new Button("Send", Button::Kind::Primary, Button::Size::Dense, this);
    m_cancel = new Button("Cancel", Button::Kind::Default, Button::Size::Dense, this);
    for (Button* button : {m_send, m_cancel}) {
        button->resize(button->sizeHint());
        button->show();
    }
    connect(m_send, &QAbstractButton::clicked, this, [this] { endEdit(true); });
    connect(m_cancel, &QAbstractButton::clicked, this, [this] { endEdit(false); });
    connect(m_editor, &QPlainTextEdit::textChanged, this, &TurnWidget::heightChanged);
    m_flow->hide();
    m_editor->show();
    m_editor->setFocus();
    m_editor->moveCursor(QTextCursor::End);
    updateActions();
    emit heightChanged();
}

void UserTurn::endEdit(bool send) {
    const QString text = m_editor->toPlainText().trimmed();
    m_editor->deleteLater();
    m_send->deleteLater();
    m_cancel->deleteLater();
    m_editor = nullptr;
    m_send = m_cancel = nullptr;
    m_flow->show();
    updateActions();
    emit heightChanged();
    if (send && !text.isEmpty()) emit edited(m_index, text);
}

void UserTurn::keyPressEvent(QKeyEvent* event) {
    if (m_editor && event->key() == Qt::Key_Escape)
        endEdit(false);
    else
        QWidget::keyPressEvent(event);
}

// ---- TurnStrip

TurnStrip::TurnStrip(QWidget* parent)
    : QWidget(parent), m_jump(new IconButton("jump", "Show this turn in the plots", 24, this)) {
    connect(m_jump, &QAbstractButton::clicked, this, &TurnStrip::jumpWanted);
}

void TurnStrip::setFigures(const TurnFigures& figures, bool compact, bool running, bool jump) {
    m_figures = figures;
    m_compact = compact;
    m_running = running;
    m_jump->setVisible(jump && std::isfinite(figures.from));
    setToolTip(QString("tok/s: this reply's tokens over the time between them\n"
                       "TTFT: from sending to the first token\nprompt: its tokens per second%1\n"
                       "hit, read: expert lookups and bytes of this reply%2")
                   .arg(figures.promptTokens == 0 || figures.stop.isEmpty()
                            ? QString()
                            : QString("; %1 of %2 prompt tokens reused from the KV cache")
                                  .arg(count(figures.cachedTokens), count(figures.promptTokens)),
                        figures.drawn.isEmpty() ? QString() : "\nSampled with " + figures.drawn));
    update();
}

void TurnStrip::resizeEvent(QResizeEvent*) {
    m_jump->move(width() - 24, 10);
}

void TurnStrip::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
    const TurnFigures& f = m_figures;
    struct Column {
        QString name, value, unit;
        double share;
    };
    const QString tokens = count(f.tokens);
    const QString bytes = std::isfinite(f.bytesRead) ? str(formatGiB(f.bytesRead)) : "n/a";
    const QString stop = f.stop.isEmpty() ? QString("…") : f.stop;
    const auto known = [this](const QString& value) {
        return m_running && value == "n/a" ? QString("…") : value;
    };
    std::vector<Column> columns;
    if (m_compact) {
        columns = {{"tok/s", known(text(f.tokS, 1)), "", 0.25},
                   {"TTFT", known(sig(f.ttftMs)), "ms", 0.25},
                   {"tokens", tokens, "", 0.25},
                   {"hit", known(text(f.hitRate, 1)), "%", 0.25}};
    } else {
        // Wide enough for 6,544.6, 12,300 ms and "cancelled" before the icon, also in 320 px less.
        columns = {{"tok/s", known(text(f.tokS, 1)), "", 0.125},
                   {"TTFT", known(sig(f.ttftMs)), "ms", 0.135},
                   {"prompt", known(sig(f.promptTokS)), "tok/s", 0.185},
                   {"tokens", tokens, "", 0.1},
                   {"hit", known(text(f.hitRate, 1)), "%", 0.115},
                   {"read", known(bytes.section(' ', 0, 0)), bytes.section(' ', 1), 0.145},
                   {"stop", stop, "", 0.195}};
    }
    double x = 0;
    const double whole = m_compact ? width() - 24 : width();
    for (const Column& column : columns) {
        const double w = column.share * whole;
        drawText(p, QRectF(x, 7, w, 14), Qt::AlignVCenter, column.name, type::caption(),
                 tone(Tone::Text3));
        const bool unknown = column.value == "n/a";
        drawText(p, QRectF(x, 21, w, 16), Qt::AlignVCenter, column.value, type::mono(),
                 tone(unknown ? Tone::Text3 : Tone::Text1));
        if (!column.unit.isEmpty() && !unknown && column.value != "…")
            drawText(p, QRectF(x + textWidth(type::mono(), column.value + " "), 21, w, 16),
                     Qt::AlignVCenter, column.unit, type::monoSmall(), tone(Tone::Text3));
        x += w;
    }
}

// ---- ModelTurn

ModelTurn::ModelTurn(int index, const Turn& turn, QWidget* parent)
    : TurnWidget(index, parent),
      m_turn(turn),
      m_time(timeText(turn)),
      m_flow(new TextFlow(this)),
      m_reasoning(new TextFlow(this)),
      m_strip(new TurnStrip(this)),
      m_again(smallButton("reset", "Regenerate")),
      m_copy(smallButton("copy", "Copy reply")),
      m_retry(new LinkButton("Try again", type::dense(), this)) {
    m_flow->setFocusPolicy(Qt::StrongFocus);
    m_reasoning->setLook(20, true);
    m_reasoning->hide();
    m_retry->hide();
    connect(m_again, &QAbstractButton::clicked, this, [this] { emit regenerateWanted(m_index); });
    connect(m_retry, &QAbstractButton::clicked, this, [this] {
        if (contextFull())
            emit newChatWanted();
        else if (cutOff() && !m_turn.text.isEmpty())
            emit continueWanted(m_index);
        else
            emit regenerateWanted(m_index);
    });
    connect(m_copy, &QAbstractButton::clicked, this, [this] {
        QApplication::clipboard()->setText(m_turn.text.mid(m_parts.answerFrom));
        emit copied();
    });
    connect(m_strip, &TurnStrip::jumpWanted, this, [this] { emit jumpWanted(m_index); });
    connect(m_flow, &TextFlow::tokenHovered, this,
            [this](int token) { emit tokenHovered(m_index, token); });
    connect(m_reasoning, &TextFlow::tokenHovered, this,
            [this](int token) { emit tokenHovered(m_index, token); });
    connect(m_flow, &TextFlow::codeCopied, this, &TurnWidget::copied);
    refresh(turn, State::Done, {});
}

void ModelTurn::refresh(const Turn& turn, State state, const QString& progress) {
    m_turn = turn;
    m_state = state;
    m_progress = progress;
    m_parts = splitReply(m_turn);
    m_flow->setTokens(&m_turn.tokens);
    m_reasoning->setTokens(&m_turn.tokens);
    const bool running = state != State::Done;
    m_flow->setText(m_turn.text, m_parts.answerFrom, running);
    if (m_parts.reasoningTo > m_parts.reasoningFrom && m_reasoningOpen)
        m_reasoning->setText(m_turn.text.left(m_parts.reasoningTo), m_parts.reasoningFrom, running);
    m_flow->setCaret(state == State::Generating && !m_parts.open);
    m_reasoning->setCaret(state == State::Generating && m_parts.open && m_reasoningOpen);
    m_strip->setFigures(m_turn.figures, m_compact, running, m_turn.live);
    m_retry->setText(contextFull()                        ? "New chat"
                     : cutOff() && !m_turn.text.isEmpty() ? "Continue"
                                                          : "Try again");
    m_retry->resize(m_retry->sizeHint());
    if (!running) setAccessibleName(m_turn.model + ": " + m_turn.text.mid(m_parts.answerFrom));
    markSlow();
    updateActions();
}

void ModelTurn::setSloMs(double ms) {
    m_sloMs = ms;
    markSlow();
}

// Depends on this reply only, so it does not change when other replies are slower.
void ModelTurn::markSlow() {
    std::vector<float> gaps;
    for (const TokenMark& token : m_turn.tokens)
        if (token.gapMs > 0) gaps.push_back(token.gapMs);
    double limit = m_sloMs;
    if (!gaps.empty()) {
        const auto middle = gaps.begin() + std::ptrdiff_t(gaps.size() / 2);
        std::nth_element(gaps.begin(), middle, gaps.end());
        limit = std::max(limit, 1.5 * double(*middle));
    }
    m_flow->setSlowMs(limit);
    m_reasoning->setSlowMs(limit);
}

bool ModelTurn::contextFull() const {
    return m_turn.figures.stop == stopReasonName(StopReason::ContextFull);
}

bool ModelTurn::cutOff() const {
    const QString& stop = m_turn.figures.stop;
    return m_turn.error.isEmpty() &&
           (stop == "cancelled" || stop == "length" || stop == kInterrupted);
}

QVector<Span> ModelTurn::endText() const {
    const TurnFigures& f = m_turn.figures;
    const auto words = [](const QString& text) { return Span{text, Tone::Text3, type::dense()}; };
    const auto tokens = [](int n) {
        return Span{count(n) + (n == 1 ? " token" : " tokens"), Tone::Text3, type::monoSmall()};
    };
    if (f.stop == "length" && f.limit > 0)
        return {words("Stopped at the limit of "), tokens(f.limit)};
    if (f.stop == "length") return {words("Stopped at the limit, after "), tokens(f.tokens)};
    if (f.stop == kInterrupted) return {words("Interrupted after "), tokens(f.tokens)};
    return {words("Stopped by you after "), tokens(f.tokens)};
}

void ModelTurn::setReasoningOpen(bool on) {
    m_reasoningOpen = on;
    if (on)
        m_reasoning->setText(m_turn.text.left(m_parts.reasoningTo), m_parts.reasoningFrom,
                             m_state != State::Done);
    emit heightChanged();
}

void ModelTurn::updateActions() {
    const bool done = m_state == State::Done;
    const bool shown = done && (actionsShown() || !m_compact);
    m_again->setVisible(shown && !m_recorded);
    m_copy->setVisible(shown);
    showBranches(done && m_branches > 1);
    m_retry->setVisible(done && !m_recorded && (!m_turn.error.isEmpty() || (m_last && cutOff())));
    update();
}

void ModelTurn::setPlayed(int offset, bool here) {
    const bool reasoning = here && offset >= 0 && offset < m_parts.reasoningTo;
    m_flow->setPlayed(offset < 0 ? -1 : std::max<int>(offset, int(m_parts.answerFrom)),
                      here && !reasoning);
    m_reasoning->setPlayed(offset, reasoning);
    if (here == m_here) return;
    m_here = here;
    update();
}

QRect ModelTurn::playedRect() const {
    if (!m_here) return {};
    const TextFlow* flow = m_reasoning->isVisibleTo(this) && !m_reasoning->playedRect().isNull()
                               ? m_reasoning
                               : m_flow;
    const QRect rect = flow->playedRect();
    return rect.isNull() ? QRect(0, 0, width(), 20) : rect.translated(flow->pos());
}

QRectF ModelTurn::foldRect() const {
    return QRectF(0, m_foldTop, width(), kFold);
}

int ModelTurn::layoutFor(int width) {
    m_copy->move(width - 20, -4);
    m_again->move(width - 44, -4);
    layOutBranches(width - 75 + 18, -4);
    int y = 16 + 4 + (m_turn.figures.leftOut > 0 ? kNote : 0);
    const bool reasoning = m_parts.reasoningTo > m_parts.reasoningFrom && !m_compact;
    m_reasoning->setVisible(reasoning && m_reasoningOpen);
    if (reasoning) {
        m_foldTop = y;
        y += kFold + 4;
        if (m_reasoningOpen) {
            const int height = m_reasoning->layoutFor(width - 13);
            m_reasoning->setGeometry(13, y, width - 13, height);
            y += height + 8;
        }
    }
    const int height = m_flow->layoutFor(width);
    m_flow->setVisible(height > 0);
    m_flow->setGeometry(0, y, width, height);
    y += height;
    m_stopTop = 0;
    const bool stopped = m_state == State::Done && (!m_turn.error.isEmpty() || cutOff());
    if (stopped || (m_state == State::Prompt && !m_progress.isEmpty())) {
        m_stopTop = y + (height ? 6 : 0);
        const int lines = m_turn.error.isEmpty()
                              ? 16
                              : int(drawWrapped(nullptr, {}, width - 18 - 70, m_turn.error,
                                                type::dense(), 16, {}));
        m_retry->move(width - m_retry->sizeHint().width(), m_stopTop - 4);
        y = m_stopTop + lines;
    }
    const bool strip = !m_compact || m_state == State::Done;
    m_strip->setVisible(strip && (m_state != State::Done || m_turn.figures.tokens > 0));
    if (m_strip->isVisibleTo(this)) {
        m_strip->setFigures(m_turn.figures, m_compact, m_state != State::Done, m_turn.live);
        m_strip->setGeometry(0, y + 10, width, TurnStrip::kHeight);
        y += 10 + TurnStrip::kHeight;
    }
    return y;
}

void ModelTurn::mousePressEvent(QMouseEvent* event) {
    const bool reasoning = m_parts.reasoningTo > m_parts.reasoningFrom && !m_compact;
    if (reasoning && foldRect().contains(event->position())) setReasoningOpen(!m_reasoningOpen);
}

void ModelTurn::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const QString name = m_turn.model.isEmpty() ? QString("Model") : m_turn.model;
    const double w = std::min(textWidth(type::denseBold(), name), width() - 190.0);
    drawElided(p, QRectF(0, 0, w, 16), Qt::AlignVCenter, name, type::denseBold(),
               tone(m_began ? Tone::Text1 : Tone::Text3));
    drawText(p, QRectF(w + 8, 0, 80, 16), Qt::AlignVCenter, m_time, type::monoSmall(),
             tone(Tone::Text3));
    if (m_here)
        drawText(p, QRectF(0, 0, width() - 30, 16), Qt::AlignRight | Qt::AlignVCenter,
                 "at the playhead", type::dense(), tone(Tone::Accent));
    if (m_state != State::Done)
        drawText(p, QRectF(0, 0, width(), 16), Qt::AlignRight | Qt::AlignVCenter, "generating",
                 type::dense(), tone(Tone::Accent));
    paintBranch(p, 0);
    if (const int left = m_turn.figures.leftOut; left > 0) {
        paintIcon(p, "info", QRectF(0, 22, 12, 12), tone(Tone::Text3));
        drawElided(p, QRectF(18, 20, width() - 18, 16), Qt::AlignVCenter,
                   left == 1 ? QString("1 earlier message was omitted: the context is full")
                             : count(left) + " earlier messages were omitted: the context is full",
                   type::dense(), tone(Tone::Text3));
    }
    if (m_parts.reasoningTo > m_parts.reasoningFrom && !m_compact) {
        const QRectF fold = foldRect();
        paintIcon(p, m_reasoningOpen ? "down" : "right", QRectF(0, fold.top() + 7, 12, 12),
                  tone(Tone::Text3));
        drawText(p, fold.adjusted(18, 0, 0, 0), Qt::AlignVCenter, "Reasoning", type::dense(),
                 tone(Tone::Text3));
        int tokens = 0;
        double from = TurnFigures::kUnknown, to = from;
        for (const TokenMark& token : m_turn.tokens) {
            if (token.end > m_parts.reasoningTo) break;
            if (!tokens) from = token.t;
            to = token.t;
            ++tokens;
        }
        QString detail = count(tokens) + " tokens";
        if (tokens > 1) detail += ", " + text(to - from, 1) + " s";
        drawText(p, fold.adjusted(18 + textWidth(type::dense(), "Reasoning") + 6, 0, 0, 0),
                 Qt::AlignVCenter, detail, type::monoSmall(), tone(Tone::Text3));
        if (m_reasoningOpen)
            p.fillRect(QRectF(0, m_reasoning->y(), 1, m_reasoning->height()), tone(Tone::Line1));
    }
    if (m_stopTop <= 0) return;
    if (m_state == State::Prompt) {
        drawText(p, QRectF(0, m_stopTop, width(), 16), Qt::AlignVCenter, m_progress, type::dense(),
                 tone(Tone::Text3));
    } else if (!m_turn.error.isEmpty()) {
        paintIcon(p, "error", QRectF(0, m_stopTop + 2, 12, 12), tone(Tone::Error));
        drawWrapped(&p, {18.0, double(m_stopTop)}, width() - 18 - 70, m_turn.error, type::dense(),
                    16, tone(Tone::Error));
    } else {
        paintIcon(p, "stop", QRectF(0, m_stopTop + 2, 12, 12), tone(Tone::Text3));
        drawSpans(p, QRectF(18, m_stopTop, width() - 18, 16), endText());
    }
}

}  // namespace colibri::ui
