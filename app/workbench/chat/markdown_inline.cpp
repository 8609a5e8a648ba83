// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/markdown_inline.h"

#include <QHash>
#include <algorithm>
#include <functional>

namespace colibri::ui {
namespace {

// Searches a range from positions that only increase. It keeps the last result, so that all
// searches together pass the range once. `search` returns the first match at or after its argument,
// or -1.
class Finder {
public:
    using Search = std::function<int(int)>;
    explicit Finder(Search search) : m_search(std::move(search)) {}

    int next(int from) {
        if (m_found != kNone && m_found < from) m_found = m_search(from);
        return m_found;
    }

private:
    static constexpr int kNone = -1, kUnknown = -2;

    Search m_search;
    int m_found = kUnknown;
};

class InlineParser {
public:
    InlineParser(const QString& source, int begin, int end, int base, QString target,
                 bool streaming, MarkedText* out)
        : m_source(source),
          m_begin(begin),
          m_end(end),
          m_base(base),
          m_target(std::move(target)),
          m_streaming(streaming),
          m_out(out),
          m_at(begin),
          m_plain(begin) {}

    void run() {
        while (m_at < m_end)
            if (!mark(m_source[m_at])) ++m_at;
        flush(m_end);
    }

private:
    bool mark(QChar c) {
        switch (c.unicode()) {
            case '`':
                return code();
            case '*':
            case '_':
                return doubled(m_at, c) ? strong(c) : emphasis(c);
            case '~':
                return doubled(m_at, c) && struck();
            case '[':
            case '!':
                return link();
            case '$':
                return dollars();
            case '\\':
                return escape();
            case '<':
                return angle();
            case 'h':
                return address(m_at);
            default:
                return false;
        }
    }

    // ---- the source

    bool is(int at, QChar c) const { return at >= m_begin && at < m_end && m_source[at] == c; }
    bool doubled(int at, QChar c) const { return is(at, c) && is(at + 1, c); }
    bool space(int at) const { return at < m_begin || at >= m_end || m_source[at].isSpace(); }
    bool word(int at) const {
        return at >= m_begin && at < m_end && m_source[at].isLetterOrNumber();
    }
    bool escaped(int at) const { return is(at - 1, '\\'); }
    QStringView view(int from, int to) const { return QStringView(m_source).mid(from, to - from); }

    int find(QStringView mark, int from) const {
        const qsizetype at = view(from, m_end).indexOf(mark);
        return at < 0 ? -1 : int(at) + from;
    }
    // A pair of marks that is not escaped.
    int findPair(QStringView mark, int from) const {
        int at = find(mark, from);
        while (at >= 0 && escaped(at)) at = find(mark, at + 1);
        return at;
    }
    // A single mark that can close: not one of a pair, and no space before it.
    int findSingle(QChar mark, int from) const {
        for (int at = from; at < m_end;) {
            const qsizetype hit = m_source.indexOf(mark, at);
            if (hit < 0 || hit >= m_end) return -1;
            int last = int(hit);
            while (is(last + 1, mark)) ++last;
            const int run = last - int(hit) + 1;
            const bool inWord = mark == '_' && word(last + 1);
            if (run != 2 && !space(int(hit) - 1) && !escaped(int(hit)) && !inWord) return int(hit);
            at = last + 1;
        }
        return -1;
    }

    // ---- output

    void flush(int to) {
        if (to > m_plain)
            m_out->append(m_source.mid(m_plain, to - m_plain), m_plain, m_base, m_target);
    }
    // The text between marks, and the position after them.
    bool marked(int from, int to, int after, int flag, bool open, const QString& target = {}) {
        flush(m_at);
        InlineParser(m_source, from, to, m_base | flag, target.isEmpty() ? m_target : target, open,
                     m_out)
            .run();
        m_at = m_plain = std::min(m_end, after);
        return true;
    }
    bool verbatim(int from, int to, int after, int flag, const QString& target = {}) {
        flush(m_at);
        m_out->append(m_source.mid(from, to - from), from, m_base | flag,
                      target.isEmpty() ? m_target : target);
        m_at = m_plain = after;
        return true;
    }

    // ---- marks

    // The closing run has as many backticks as the opening one.
    bool code() {
        int from = m_at;
        while (is(from, '`')) ++from;
        const int count = from - m_at;
        if (m_ticks.isEmpty()) {
            for (int at = m_at; at < m_end;) {
                int end = at;
                while (is(end, '`')) ++end;
                if (end > at) m_ticks[end - at].append(at);
                at = std::max(end, at + 1);
            }
        }
        const QVector<int>& runs = m_ticks[count];
        const auto close = std::lower_bound(runs.begin(), runs.end(), from);
        if (close == runs.end()) {  // no closing run: the backticks are text
            m_at = from;
            return true;
        }
        int begin = from, end = *close;
        if (count > 1 && end - begin > 2 && space(begin) && space(end - 1)) {
            ++begin;
            --end;
        }
        return verbatim(begin, end, *close + count, TextStyle::Code);
    }

    bool strong(QChar c) {
        if (space(m_at + 2)) return false;
        int close = (c == '*' ? m_stars : m_bars).next(m_at + 2);
        // Of three marks the inner one closes an inner part.
        if (close >= 0 && is(close + 2, c) && !is(close + 3, c) && close > m_at + 2) ++close;
        if (close < 0 && m_streaming) close = m_end;
        if (close <= m_at + 2) return false;
        return marked(m_at + 2, close, close + 2, TextStyle::Strong, m_streaming);
    }

    bool emphasis(QChar c) {
        if (space(m_at + 1) || (c == '_' && word(m_at - 1))) return false;
        const int close = (c == '*' ? m_star : m_bar).next(m_at + 1);
        return close > m_at + 1 &&
               marked(m_at + 1, close, close + 1, TextStyle::Emphasis, m_streaming);
    }

    bool struck() {
        const int close = space(m_at + 2) ? -1 : m_tildes.next(m_at + 2);
        return close > m_at + 2 && marked(m_at + 2, close, close + 2, TextStyle::Struck, false);
    }

    // [text](address), and ![text](address) for a picture.
    bool link() {
        const int open = m_at + (m_source[m_at] == '!');
        if (!is(open, '[') || (m_base & TextStyle::Link)) return false;
        // The bracket nearest to "](" begins the link: "a[0] and [here](x)".
        const int middle = m_middles.next(open + 1), other = m_opens.next(open + 1);
        int close = middle > 0 ? m_closes.next(middle + 2) : -1;
        if (close < 0 || (other >= 0 && other < middle)) return false;
        for (int at = middle + 2; at < close; ++at) {
            const int further = m_source[at] == '(' ? m_closes.next(close + 1) : close;
            if (further > close) close = further;
        }
        const QString target = view(middle + 2, close).trimmed().toString().section(' ', 0, 0);
        return marked(open + 1, middle, close + 1, TextStyle::Link, false, target);
    }

    // a formula, but not a price.
    bool dollars() {
        const int count = doubled(m_at, '$') ? 2 : 1, from = m_at + count;
        if (space(from)) return false;
        const int close = count == 2 ? m_dollars.next(from) : m_dollar.next(from);
        if (close <= from || space(close - 1) || word(close + count)) return false;
        return verbatim(from, close, close + count, TextStyle::Code);
    }

    bool escape() {
        if (is(m_at + 1, '(') || is(m_at + 1, '[')) {
            const bool round = m_source[m_at + 1] == '(';
            const int close = (round ? m_formulas : m_squares).next(m_at + 2);
            if (close > m_at + 2) return verbatim(m_at + 2, close, close + 2, TextStyle::Code);
        }
        const QChar next = m_at + 1 < m_end ? m_source[m_at + 1] : QChar(' ');
        if (next.unicode() >= 128 || !(next.isPunct() || next.isSymbol())) return false;
        flush(m_at);
        m_plain = m_at + 1;
        m_at += 2;
        return true;
    }

    // <https://...>, and the line break that tables use.
    bool angle() {
        for (const QStringView tag : {u"<br>", u"<br/>", u"<br />"}) {
            if (!view(m_at, m_end).startsWith(tag, Qt::CaseInsensitive)) continue;
            flush(m_at);
            m_out->append(QString(QChar::LineSeparator), m_at, m_base);
            m_at = m_plain = m_at + int(tag.size());
            return true;
        }
        if (!startsAddress(m_at + 1)) return false;
        const int close = m_angles.next(m_at + 1);
        if (close < 0 || addressEnd(m_at + 1) < close) return false;
        return verbatim(m_at + 1, close, close + 1, TextStyle::Link,
                        m_source.mid(m_at + 1, close - m_at - 1));
    }

    bool startsAddress(int at) const {
        const QStringView rest = view(at, std::min(m_end, at + 9));
        return rest.startsWith(u"https://") || rest.startsWith(u"http://");
    }
    int addressEnd(int at) const {
        while (at < m_end && !m_source[at].isSpace() &&
               !QStringView(u"<>\"`|").contains(m_source[at]))
            ++at;
        return at;
    }

    // A bare address. The full stop of the sentence does not belong to it.
    bool address(int from) {
        if (word(from - 1) || (m_base & TextStyle::Link) || !startsAddress(from)) return false;
        int end = addressEnd(from);
        const QStringView all = view(from, end);
        auto open = all.count('('), closed = all.count(')');
        for (; end > from; --end) {
            const QChar last = m_source[end - 1];
            if (last == ')' && closed > open)
                --closed;
            else if (!QStringView(u".,:;!?'*_~]").contains(last))
                break;
        }
        if (view(from, end).endsWith(u"://")) return false;
        return verbatim(from, end, end, TextStyle::Link, m_source.mid(from, end - from));
    }

    Finder text(QStringView mark) {
        return Finder([this, mark](int from) { return find(mark, from); });
    }
    Finder pair(QStringView mark) {
        return Finder([this, mark](int from) { return findPair(mark, from); });
    }
    Finder single(QChar mark) {
        return Finder([this, mark](int from) { return findSingle(mark, from); });
    }

    const QString& m_source;
    int m_begin, m_end, m_base;
    QString m_target;
    bool m_streaming;
    MarkedText* m_out;
    int m_at, m_plain;
    QHash<int, QVector<int>> m_ticks;  // runs of backticks by their length

    Finder m_stars = pair(u"**"), m_bars = pair(u"__"), m_tildes = pair(u"~~");
    Finder m_star = single('*'), m_bar = single('_');
    Finder m_opens = text(u"["), m_middles = text(u"]("), m_closes = text(u")"),
           m_dollar = text(u"$"), m_dollars = text(u"$$"), m_formulas = text(u"\\)"),
           m_squares = text(u"\\]"), m_angles = text(u">");
};

}  // namespace

void MarkedText::append(const QString& piece, int from, int flags, const QString& target) {
    if (!source.isEmpty()) source.removeLast();
    if (flags) styles.push_back({int(text.size()), int(piece.size()), flags, target});
    text += piece;
    for (int k = 0; k <= piece.size(); ++k) source << from + k;
}

void parseInline(const QString& source, int begin, int end, int base, bool streaming,
                 MarkedText* out) {
    InlineParser(source, begin, end, base, {}, streaming, out).run();
}

}  // namespace colibri::ui
