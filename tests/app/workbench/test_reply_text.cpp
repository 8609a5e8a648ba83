// SPDX-License-Identifier: GPL-3.0-or-later
// What is made of a reply's text: reasoning and answer, Markdown blocks, and how they flow.
#include <QTest>

#include "app/workbench/chat/conversation.h"
#include "app/workbench/chat/markdown.h"
#include "app/workbench/chat/text_flow.h"

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
        const QString text = "# Head\n\nPlain **bold** and `code`\nsecond line\n\n- one\n  more\n- two\n\n1. first\n"
                             "```py\nx = 1\ny = 2\n```\n| a | b |\n|---|--:|\n| x | 3 |\n\n> said";
        const auto blocks = parseMarkdown(text, 0, false);
        using Kind = MarkdownBlock::Kind;
        std::vector<Kind> kinds;
        for (const auto& block : blocks) kinds.push_back(block.kind);
        QCOMPARE(kinds, (std::vector<Kind>{Kind::Heading, Kind::Paragraph, Kind::Item, Kind::Item, Kind::Item,
                                           Kind::Code, Kind::Table, Kind::Quote}));
        QCOMPARE(blocks[1].text.text, QString("Plain bold and code") + QChar(QChar::LineSeparator) + "second line");
        QCOMPARE(blocks[2].text.text, QString("one more"));
        QCOMPARE(blocks[4].marker, QString("1."));
        QCOMPARE(blocks[5].marker, QString("py"));
        QCOMPARE(blocks[5].text.text, QString("x = 1\ny = 2"));
        QCOMPARE(blocks[6].rows[1][1].text, QString("3"));
        // Every visible character knows its source.
        for (const auto& block : blocks) {
            QCOMPARE(block.text.source.size(), block.text.text.isEmpty() ? block.text.source.size()
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
        QCOMPARE(parseMarkdown("2 * 3 * 4 and a_b_c", 0, false)[0].text.text, QString("2 * 3 * 4 and a_b_c"));
        QVERIFY(parseMarkdown("```\nopen", 0, true)[0].open);
    }

    // In time that grows as the square of their number these would take hours.
    void aMillionMarksAreReadInOnePass() {
        constexpr int kCount = 1'000'000;
        for (const QString piece : {"[", "](", "[](", "*", "*a ", "**", "**a ** ", "_", "__a", "`", "``a", "\\", "|",
                                    "[a](", "*[`__", "a|\n"}) {
            const QString text = piece.repeated(kCount / int(piece.size()));
            for (const QString& whole : {text, text + "](", text + "](b", "**" + text, "a|b\n--|--\n" + text}) {
                const auto blocks = parseMarkdown(whole, 0, true);
                QVERIFY2(!blocks.empty(), qPrintable(piece));
            }
        }
        const auto table = [](const QString& head, const QString& rows) {
            return parseMarkdown(head.repeated(kCount / 3) + "\n--|--\n" + rows.repeated(kCount / 4), 0, false);
        };
        QCOMPARE(table("a|", "1|2\n")[0].rows.size(), size_t(1 + kCount / 4));
        QCOMPARE(parseMarkdown("a|b\n" + QString(kCount, ' ') + "-x", 0, false).size(), size_t(1));
    }

    void marksBetweenMarks() {
        const auto text = [](const char* source) { return parseMarkdown(source, 0, false)[0].text; };
        QCOMPARE(text("[ [a](b) [c] **d [e](f)**").text, QString("[ a [c] d e"));
        QCOMPARE(text("a *b* ` *c* `d` __e__").text, QString("a b  *c* d` e"));
        QCOMPARE(text("[a](b").text, QString("[a](b"));
        QCOMPARE(text("[a] (b) [c](d)").styles.size(), size_t(1));
        QCOMPARE(parseMarkdown("a|b\n|:--|--:|\nc|7", 0, false)[0].rightAligned, (std::vector<int>{0, 1}));
        QCOMPARE(parseMarkdown("a|b\n|-|-|", 0, false)[0].kind, MarkdownBlock::Kind::Paragraph);
    }

    void growingTextGivesTheSameBlocksAsWholeText() {
        const QString text = "One **two** three.\n\n- a\n- b `c`\n\n```sh\nls -l\n```\n\nEnd | of\n|---|---|\n| x | y |\n\nlast";
        TextFlow grown, whole;
        grown.layoutFor(400);
        whole.layoutFor(400);
        for (int i = 1; i <= text.size(); ++i) grown.setText(text.left(i), 0, i < text.size());
        whole.setText(text, 0, false);
        QCOMPARE(grown.visibleText(), whole.visibleText());
        QCOMPARE(grown.layoutFor(400), whole.layoutFor(400));
    }

    void hostileTextIsShown() {
        TextFlow flow;
        for (const QString& text : {QString("****"), QString("[a](b"), QString("[](#)"), QString("| | |\n|-|"),
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
