// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/verdict_chip.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {
namespace {

constexpr int kOneLine = 36, kLineHeight = 16, kSideMargin = 8, kMoreWidth = 44;

// Such a verdict names nothing that could be faster.
bool isGood(const Verdict& verdict) {
    return verdict.name == "nothing_to_gain";
}
bool isPlain(const Verdict& verdict) {
    return verdict.name == "too_short";
}

}  // namespace

VerdictChip::VerdictChip(QWidget* parent) : QAbstractButton(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(kOneLine);
    setCursor(Qt::PointingHandCursor);
    hide();
}

void VerdictChip::setVerdicts(const std::vector<Verdict>& verdicts) {
    m_verdicts = verdicts;
    setVisible(!verdicts.empty());
    setAccessibleName("Verdict: " + text());
    setToolTip("What limits this session; click for all verdicts");
    update();
}

// The first sentence; a point within a figure ends none.
QString VerdictChip::text() const {
    if (m_verdicts.empty()) return {};
    const QString all = str(m_verdicts[0].text);
    const qsizetype end = all.indexOf(". ");
    return end < 0 ? all : all.left(end + 1);
}

double VerdictChip::textRoom(int width) const {
    return width - 2 * kSideMargin - 8 - 12 - 8 - 8 - (m_verdicts.size() > 1 ? kMoreWidth : 0);
}

int VerdictChip::heightFor(int width) const {
    const double high = drawWrapped(nullptr, {}, std::max(60.0, textRoom(width)), text(),
                                    type::dense(), kLineHeight, {});
    return kOneLine + std::max(0, int(high) - kLineHeight);
}

void VerdictChip::paintEvent(QPaintEvent*) {
    if (m_verdicts.empty()) return;
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    const Verdict& first = m_verdicts[0];
    const Tone ground = isGood(first) ? Tone::OkBg : isPlain(first) ? Tone::Bg3 : Tone::WarnBg;
    const Tone ink = isGood(first) ? Tone::Ok : isPlain(first) ? Tone::Text2 : Tone::Warn;
    const double room = textRoom(width());
    const double used = std::min(room, std::ceil(textWidth(type::dense(), text())));
    const QRectF box(kSideMargin, 6, used + 8 + 12 + 8 + 8, height() - 12);
    fillBox(p, box, tone(underMouse() ? Tone::Bg3 : ground), Qt::transparent, 4);
    paintIcon(p,
              isGood(first)    ? "check"
              : isPlain(first) ? "info"
                               : "warn",
              QRectF(box.left() + 8, 12, 12, 12), tone(ink));
    drawWrapped(&p, {box.left() + 28, 10}, room, text(), type::dense(), kLineHeight,
                tone(Tone::Text1));
    if (m_verdicts.size() > 1)
        drawText(p, QRectF(width() - kSideMargin - kMoreWidth + 12, 6, kMoreWidth, 24),
                 Qt::AlignVCenter, "+" + count(int64_t(m_verdicts.size()) - 1), type::dense(),
                 tone(Tone::Text2));
    if (hasFocus()) focusRing(p, box, 4);
}

}  // namespace colibri::ui
