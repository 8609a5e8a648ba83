// SPDX-License-Identifier: GPL-3.0-or-later
// What is made of a reply's text: reasoning and answer, Markdown blocks, and how they flow.
#include <QGlyphRun>
#include <QRawFont>
#include <QTextLayout>
#include <QWheelEvent>
#include <QtTest>

#include "app/workbench/chat/code_colors.h"
#include "app/workbench/chat/conversation.h"
#include "app/workbench/chat/markdown.h"
#include "app/workbench/chat/text_flow.h"
#include "app/workbench/theme/theme.h"

using namespace colibri::ui;

class TestReplyText : public QObject {
    Q_OBJECT

private slots:
    // ---- reasoning (engine/text has the cases; here are places in a QString)

    void placesCountInUtf16() {
        Turn turn;
        turn.text = u"<think>\u00e9\U0001f600</think>\n\u00fcber"_qs;
        const QString& text = turn.text;
        const colibri::ReplyParts parts = splitReply(turn);
        QCOMPARE(text.mid(parts.reasoningFrom, parts.reasoningTo - parts.reasoningFrom),
                 u"\u00e9\U0001f600"_qs);
        QCOMPARE(text.mid(parts.answerFrom), u"\u00fcber"_qs);
    }

    // ---- markdown

    void markdownBlocks() {
        const QString text =
            "# Head\n\nPlain **bold** and `code`\nsecond line\n\n- one\n  more\n- two\n\n1. first\n"
            "```py\nx = 1\ny = 2\n```\n| a | b |\n|---|--:|\n| x | 3 |\n\n> said";
        const auto blocks = parseMarkdown(text, 0, false);
        using Kind = MarkdownBlock::Kind;
        std::vector<Kind> kinds;
        for (const auto& block : blocks) kinds.push_back(block.kind);
        QCOMPARE(kinds, (std::vector<Kind>{Kind::Heading, Kind::Paragraph, Kind::Item, Kind::Item,
                                           Kind::Item, Kind::Code, Kind::Table, Kind::Quote}));
        QCOMPARE(blocks[1].text.text,
                 QString("Plain bold and code") + QChar(QChar::LineSeparator) + "second line");
        QCOMPARE(blocks[2].text.text, QString("one more"));
        QCOMPARE(blocks[4].marker, QString("1."));
        QCOMPARE(blocks[5].marker, QString("py"));
        QCOMPARE(blocks[5].text.text, QString("x = 1\ny = 2"));
        QCOMPARE(blocks[6].rows[1][1].text, QString("3"));
        // Every visible character knows its source.
        for (const auto& block : blocks) {
            QCOMPARE(block.text.source.size(), block.text.text.isEmpty()
                                                   ? block.text.source.size()
                                                   : block.text.text.size() + 1);
            for (qsizetype i = 0; i < block.text.text.size(); ++i) {
                const QChar shown = block.text.text[i], source = text[block.text.source[i]];
                if (shown != QChar::LineSeparator && shown != ' ') QCOMPARE(shown, source);
            }
        }
    }

    void streamingShowsAnOpenMarkAsBold() {
        const auto blocks = parseMarkdown("so **much", 0, true);
        QCOMPARE(blocks[0].text.text, QString("so much"));
        QCOMPARE(parseMarkdown("so **much", 0, false)[0].text.text, QString("so **much"));
        QCOMPARE(parseMarkdown("2 * 3 * 4 and a_b_c", 0, false)[0].text.text,
                 QString("2 * 3 * 4 and a_b_c"));
        QVERIFY(parseMarkdown("```\nopen", 0, true)[0].open);
    }

    // In time that grows as the square of their number these would take hours.
    void aMillionMarksAreReadInOnePass() {
        constexpr int kCount = 1'000'000;
        for (const QString piece : {"[", "](", "[](", "*", "*a ", "**", "**a ** ", "_", "__a", "`",
                                    "``a", "\\", "|", "[a](", "*[`__", "a|\n"}) {
            const QString text = piece.repeated(kCount / int(piece.size()));
            for (const QString& whole :
                 {text, text + "](", text + "](b", "**" + text, "a|b\n--|--\n" + text}) {
                const auto blocks = parseMarkdown(whole, 0, true);
                QVERIFY2(!blocks.empty(), qPrintable(piece));
            }
        }
        const auto table = [](const QString& head, const QString& rows) {
            return parseMarkdown(
                head.repeated(kCount / 3) + "\n--|--\n" + rows.repeated(kCount / 4), 0, false);
        };
        QCOMPARE(table("a|", "1|2\n")[0].rows.size(), size_t(1 + kCount / 4));
        QCOMPARE(parseMarkdown("a|b\n" + QString(kCount, ' ') + "-x", 0, false).size(), size_t(1));
    }

    void marksBetweenMarks() {
        const auto text = [](const char* source) {
            return parseMarkdown(source, 0, false)[0].text;
        };
        QCOMPARE(text("[ [a](b) [c] **d [e](f)**").text, QString("[ a [c] d e"));
        QCOMPARE(text("a *b* ` *c* `d` __e__").text, QString("a b  *c* d` e"));
        QCOMPARE(text("[a](b").text, QString("[a](b"));
        QCOMPARE(text("[a] (b) [c](d)").styles.size(), size_t(1));
        QCOMPARE(parseMarkdown("a|b\n|:--|--:|\nc|7", 0, false)[0].rightAligned,
                 (std::vector<int>{0, 1}));
        QCOMPARE(parseMarkdown("a|b\n|-|-|", 0, false)[0].kind, MarkdownBlock::Kind::Paragraph);
    }

    void fencesEndWhereTheyShould() {
        const auto blocks = [](const QString& text) { return parseMarkdown(text, 0, false); };
        const auto code = [&](const QString& text) {
            for (const auto& block : blocks(text))
                if (block.kind == MarkdownBlock::Kind::Code) return block.text.text;
            return QString("no code");
        };
        QCOMPARE(code("````md\n```py\nx\n```\n````\nafter"), QString("```py\nx\n```"));
        QCOMPARE(code("~~~\n```\nx\n```\n~~~"), QString("```\nx\n```"));
        QCOMPARE(code("```\nx\n``` not yet\n```"), QString("x\n``` not yet"));
        QCOMPARE(code("1. Do:\n   ```sh\n   ls\n     -l\n   ```\n2. Done"), QString("ls\n  -l"));
        QCOMPARE(blocks("1. Do:\n   ```sh\n   ls\n   ```\n2. Done").size(), size_t(3));
        QCOMPARE(code("- a\n  - b\n    ```\n    x\n    ```"), QString("x"));
        QCOMPARE(code("> Say:\n> ```\n> x\n> y\n> ```\n> end"), QString("x\ny"));
        QCOMPARE(code("text\n```\nlast\n```"), QString("last"));
        const auto atEnd = blocks("text\n```\nlast\n```");
        QCOMPARE(atEnd.size(), size_t(2));
        QVERIFY(!atEnd[1].open);
        // On its way: open, and the first marks of its end are no code.
        const auto open = parseMarkdown("```py\nx\n``", 0, true);
        QVERIFY(open[0].open);
        QCOMPARE(open[0].text.text, QString("x"));
        QCOMPARE(blocks("inline ```x``` here")[0].kind, MarkdownBlock::Kind::Paragraph);
    }

    void quotesAndListsHoldBlocks() {
        using Kind = MarkdownBlock::Kind;
        const auto quote = parseMarkdown("> one\n> two\nlazy\n>\n> - item\n\nout", 0, false);
        QCOMPARE(quote.size(), size_t(3));
        QCOMPARE(quote[0].kind, Kind::Quote);
        QCOMPARE(quote[0].text.text, QString("one two lazy"));
        QCOMPARE(quote[1].kind, Kind::Item);
        QCOMPARE(quote[1].quote, 1);
        QCOMPARE(quote[2].kind, Kind::Paragraph);
        const auto list =
            parseMarkdown("1. a\n\n   b\n   - c\n2. d\n- [ ] todo\n- [x] done", 0, false);
        QStringList shown;
        for (const auto& block : list)
            shown << QString("%1 %2 %3").arg(block.depth).arg(block.marker, block.text.text);
        QCOMPARE(shown,
                 QStringList({"1 1. a", "1  b", "2 • c", "1 2. d", "1 [ ] todo", "1 [x] done"}));
    }

    void inlineMarksHaveTheirOwnLook() {
        const auto flags = [](const QString& source) {
            QStringList out;
            const MarkedText text = parseMarkdown(source, 0, false)[0].text;
            for (const TextStyle& style : text.styles)
                out << QString("%1 %2")
                           .arg(style.flags)
                           .arg(text.text.mid(style.begin, style.length));
            return out.join(", ");
        };
        QCOMPARE(flags("*a* **b** ***c***"), QString("8 a, 1 b, 9 c"));
        QCOMPARE(flags("_a_ __b__ a_b_c"), QString("8 a, 1 b"));
        QCOMPARE(flags("*a **b** c*"), QString("8 a , 9 b, 8  c"));
        QCOMPARE(flags("~~a~~ ~b~"), QString("16 a"));
        QCOMPARE(flags("$a_1 * b_2$ and \\(x_1\\), but $5 and $6"), QString("2 a_1 * b_2, 2 x_1"));
        QCOMPARE(flags("``a`b``"), QString("2 a`b"));
    }

    void addressesAreLinks() {
        const auto links = [](const QString& source) {
            QStringList out;
            const auto blocks = parseMarkdown(source, 0, false);
            for (const TextStyle& style : blocks[0].text.styles)
                if (style.flags & TextStyle::Link) out << style.target;
            return out.join(' ');
        };
        QCOMPARE(links("See https://a.org/b_c(d). Or (http://x.net/y), or <https://z.org>."),
                 QString("https://a.org/b_c(d) http://x.net/y https://z.org"));
        QCOMPARE(links("[here](https://a.org/x_(y) \"title\")"), QString("https://a.org/x_(y)"));
        QCOMPARE(links("`https://code.org` xhttp://no https://"), QString());
    }

    void aClickOpensALink() {
        TextFlow flow;
        flow.setText("Go to https://a.org now", 0, false);
        flow.resize(400, flow.layoutFor(400));
        QSignalSpy opened(&flow, &TextFlow::linkWanted);
        QTest::mouseClick(&flow, Qt::LeftButton, {}, QPoint(70, 10));
        QCOMPARE(opened.size(), 1);
        QCOMPARE(opened[0][0].toString(), QString("https://a.org"));
        QTest::mouseClick(&flow, Qt::LeftButton, {}, QPoint(8, 10));
        QCOMPARE(opened.size(), 1);
    }

    // ---- tables

    void tablesNeverCutFigures() {
        const QString text =
            "| Model | tok/s | Experts | Notes |\n|---|---|---|---|\n"
            "| Qwen3-30B-A3B | 12.5 | 1,024 | A long remark that goes on and on, about the disk, "
            "the "
            "cache, the threads and whatever else one may say of a model |\n| Mixtral | 9.75 | 8 | "
            "no |";
        TextFlow flow;
        flow.setText(text, 0, false);
        for (const int width : {700, 420, 300}) {
            flow.resize(width, flow.layoutFor(width));
            int right = 0;
            for (int row = 0; row < 3; ++row)
                for (int column = 0; column < 3; ++column) {
                    const QRect cell = flow.cellRect(row, column);
                    QVERIFY2(cell.width() > 0,
                             qPrintable(QString("%1 %2 at %3").arg(row).arg(column).arg(width)));
                    QVERIFY2(cell.height() < 24, "a figure is broken into lines");
                    if (column > 0)
                        QVERIFY2(cell.left() >= flow.cellRect(row, column - 1).right(),
                                 "cells overlap");
                    right = std::max(right, cell.right());
                }
            QVERIFY(flow.cellRect(1, 3).height() > 24);  // the long text is what gives way
            if (width >= 420) QVERIFY(flow.cellRect(1, 3).right() <= width);
        }
        // Too narrow for the words and figures: it scrolls sideways, as code does.
        flow.resize(220, flow.layoutFor(220));
        QVERIFY(flow.cellRect(1, 3).right() > 220);
        QWheelEvent wheel(QPointF(20, 40), QPointF(20, 40), {}, {-2000, 0}, Qt::NoButton, {},
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(&flow, &wheel);
        QVERIFY(flow.cellRect(1, 3).right() <= 220);
    }

    void tablesAreFoundAndCopied() {
        TextFlow flow;
        flow.setText("Before\n\n| a | b |\n|--|--|\n| needle | 2 |\n\n1. one\n2. two\n   - three",
                     0, false);
        flow.resize(400, flow.layoutFor(400));
        QCOMPARE(flow.setFind("needle"), 1);
        QVERIFY(flow.findRect(0).width() > 10);
        flow.selectAll();
        QCOMPARE(flow.selectedText(),
                 QString("Before\na\tb\nneedle\t2\n1. one\n2. two\n  • three"));
    }

    // ---- fonts

    // The glyphs of the characters as they stand in the font: nothing is put in their place.
    void textIsShownAsItIsWritten() {
        for (const QFont& font :
             {type::chat(), type::body(), type::dense(), uiFont(11, QFont::Medium), type::mono()})
            for (const QString& text : {QString("0x10"), QString("1024x768"), QString("->"),
                                        QString("=>"), QString("<-")}) {
                QTextLayout layout(text, font);
                layout.beginLayout();
                layout.createLine();
                layout.endLayout();
                const QList<QGlyphRun> runs = layout.glyphRuns();
                QCOMPARE(runs.size(), 1);
                QCOMPARE(runs[0].glyphIndexes(), runs[0].rawFont().glyphIndexesForString(text));
            }
    }

    // Code in a line of text is drawn as wide as its characters, one by one.
    void codeInTextHasNoLigatures() {
        TextFlow flow;
        flow.layoutFor(400);
        flow.resize(400, 40);
        flow.setText("`->`", 0, false);
        const QImage arrow = flow.grab().toImage();
        flow.setText("`-`", 0, false);
        const QImage dash = flow.grab().toImage();
        const QRect first(0, 0, int(QFontMetricsF(monoFont(13)).horizontalAdvance('-')), 40);
        QCOMPARE(arrow.copy(first), dash.copy(first));
    }

    void growingTextGivesTheSameBlocksAsWholeText() {
        const QString text =
            "One **two** three.\n\n- a\n- b `c`\n  - d\n\n  e\n\n> q\n> ```\n> x\n> "
            "```\nlazy\n\n```sh\nls -l\n```\n\nEnd | of\n|---|---|\n| x | y |\n\nlast";
        TextFlow grown, whole;
        grown.layoutFor(400);
        whole.layoutFor(400);
        for (int i = 1; i <= text.size(); ++i) grown.setText(text.left(i), 0, i < text.size());
        whole.setText(text, 0, false);
        QCOMPARE(grown.visibleText(), whole.visibleText());
        QCOMPARE(grown.layoutFor(400), whole.layoutFor(400));
    }

    // ---- colours of code

    void codeHasItsColours_data() {
        QTest::addColumn<QString>("language");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("spans");  // kind and text of each
        QTest::newRow("python") << "py"
                                << "def f(x):  # a 'note'\n    return \"#\" * 12"
                                << "k:def|c:# a 'note'|k:return|s:\"#\"|n:12";
        QTest::newRow("triple quotes") << "python"
                                       << "'''one\n# two'''\nx"
                                       << "s:'''one\n# two'''";
        QTest::newRow("c++") << "cpp"
                             << "/* int */ int a = 1'000; // \"x\"\nchar c = '\\'';"
                             << "c:/* int */|k:int|n:1'000|c:// \"x\"|k:char|s:'\\''";
        QTest::newRow("go, raw string") << "go"
                                        << "var s = `a\nb`"
                                        << "k:var|s:`a\nb`";
        QTest::newRow("rust, lifetime") << "rust"
                                        << "fn f<'a>(x: &'a str) {}"
                                        << "k:fn|k:str";
        QTest::newRow("sql, any case") << "SQL"
                                       << "SELECT a from t -- 'x'"
                                       << "k:SELECT|k:from|c:-- 'x'";
        QTest::newRow("shell, # in a word") << "sh"
                                            << "echo a#b # c"
                                            << "k:echo|c:# c";
        QTest::newRow("unfinished") << "js"
                                    << "let a = \"b"
                                    << "k:let|s:\"b";
        QTest::newRow("unfinished comment") << "java"
                                            << "/* a"
                                            << "c:/* a";
        QTest::newRow("more behind the fence") << "json title=x"
                                               << "{\"a\": true}"
                                               << "s:\"a\"|k:true";
        QTest::newRow("not known") << "brainfuck"
                                   << "if \"x\" 1"
                                   << "";
        QTest::newRow("none") << ""
                              << "int a"
                              << "";
    }
    void codeHasItsColours() {
        QFETCH(QString, language);
        QFETCH(QString, code);
        QStringList found;
        for (const CodeSpan& span : codeSpans(code, language))
            found << QString(QChar("csnk"[int(span.kind)])) + ":" +
                         code.mid(span.begin, span.length);
        QTEST(found.join('|'), "spans");
    }

    void colouredCodeFollowsTheTheme() {
        TextFlow flow;
        flow.setText("```py\nreturn 1\n```", 0, false);
        flow.resize(400, flow.layoutFor(400));
        flow.show();
        const auto near = [](const QColor& a, const QColor& b) {  // edges of letters are blended
            return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) +
                       std::abs(a.blue() - b.blue()) <
                   40;
        };
        const auto has = [&](Tone t) {
            const QImage image = flow.grab().toImage();
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x)
                    if (near(image.pixelColor(x, y), tone(t))) return true;
            return false;
        };
        const auto luminance = [](const QColor& c) {
            const auto linear = [](double v) {
                return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
            };
            return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) +
                   0.0722 * linear(c.blueF());
        };
        Theme::get().install();
        for (const bool high : {false, true}) {
            Theme::get().setHighContrast(high);
            for (const Theme::Mode mode : {Theme::Mode::Dark, Theme::Mode::Light}) {
                Theme::get().setMode(mode);
                QApplication::processEvents();
                QVERIFY(has(codeTone(CodeSpan::Kind::Keyword)));
                for (const auto kind : {CodeSpan::Kind::Comment, CodeSpan::Kind::String,
                                        CodeSpan::Kind::Number, CodeSpan::Kind::Keyword}) {
                    double a = luminance(tone(codeTone(kind))), b = luminance(tone(Tone::Plot));
                    if (a < b) std::swap(a, b);
                    const double ratio = (a + 0.05) / (b + 0.05);
                    QVERIFY2(ratio >= 4.5, qPrintable(QString("%1: %2").arg(int(kind)).arg(ratio)));
                }
            }
        }
        Theme::get().setHighContrast(false);
        Theme::get().setMode(Theme::Mode::Dark);
    }

    void hostileTextIsShown() {
        TextFlow flow;
        for (const QString& text :
             {QString("****"), QString("[a](b"), QString("[](#)"), QString("| | |\n|-|"),
              QString("```"), QString("> "), QString(5000, '*'), QString("\n\n\n"),
              QString("- \n- "), QString("<b>no html</b>")}) {
            flow.setText(text, 0, true);
            QVERIFY(flow.layoutFor(200) >= 0);
            flow.grab();
        }
        flow.setText("<b>no html</b>", 0, false);
        QCOMPARE(flow.visibleText(), QString("<b>no html</b>"));
    }
};

QTEST_MAIN(TestReplyText)
#include "test_reply_text.moc"
