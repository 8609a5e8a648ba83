// SPDX-License-Identifier: GPL-3.0-or-later
// Reasoning and answer of a reply, whole and in pieces.
#include <QtTest>

#include "engine/text/reply_parts.h"

using namespace colibri;

class TestReplyParts : public QObject {
    Q_OBJECT

private slots:
    void partsAreTold_data();
    void partsAreTold();
    void aReplyWithoutTagsIsGivenOutAtOnce();
    void promptsThatBeginTheReasoning();
    void marksOfAContinuedReplyCountAndItsTextDoesNot();
};

void TestReplyParts::partsAreTold_data() {
    QTest::addColumn<std::string>("text");
    QTest::addColumn<bool>("begun");
    QTest::addColumn<std::string>("reasoning");
    QTest::addColumn<std::string>("answer");
    const auto row = [](const char* name, const char* text, const char* reasoning,
                        const char* answer, bool begun = false) {
        QTest::newRow(name) << std::string(text) << begun << std::string(reasoning)
                            << std::string(answer);
    };
    row("nothing", "", "", "");
    row("none", "Hello <b>.", "", "Hello <b>.");
    row("none, with blanks", "\n Hello.", "", "\n Hello.");
    row("looks like a tag at first", "<thin air", "", "<thin air");
    row("ends as a tag begins", "<thi", "", "<thi");
    row("tags", "\n<think>I see.</think>\n\nHello.", "I see.", "Hello.");
    row("no answer", "<think>I see.</think>\n", "I see.", "");
    row("unfinished", "<think>I s", "I s", "");
    row("unfinished, in the tag", "<think>I see.</thi", "I see.</thi", "");
    row("a smaller sign", "<think>1 < 2 </ 3</think>4", "1 < 2 </ 3", "4");
    row("other tags", "[THINK]Hm.</think>[/THINK]Yes.", "Hm.</think>", "Yes.");
    row("begun by the prompt", "I see.\n</think>\nHello.", "I see.\n", "Hello.", true);
    row("begun, other tags", "I see.[/THINK]Hello.", "I see.", "Hello.", true);
    row("begun, unfinished", "I see", "I see", "", true);
    row("channels",
        "<|channel|>analysis<|message|>I see.<|end|><|start|>assistant"
        "<|channel|>final<|message|>Hello.",
        "I see.", "Hello.");
    row("channels, unfinished", "<|channel|>analysis<|message|>I s", "I s", "");
    row("channels, between", "<|channel|>analysis<|message|>I see.<|end|><|start|>assistant",
        "I see.", "");
    row("channels, several",
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>commentary<|message|"
        ">"
        "Two.<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}",
        "One.<|end|><|start|>assistant<|channel|>commentary<|message|>Two.", "{}");
    row("channels, never the final one",
        "<|channel|>analysis<|message|>One.<|end|> and more without a head",
        "One.<|end|> and more without a head", "");
    row("a tag that ends what never began", "Write </think> here.", "", "Write </think> here.");
    row("the final channel at once", "<|channel|>final<|message|>Hello.", "", "Hello.");
}

void TestReplyParts::partsAreTold() {
    QFETCH(std::string, text);
    QFETCH(bool, begun);
    QFETCH(std::string, reasoning);
    QFETCH(std::string, answer);
    const ReplyParts parts = splitReply(text, begun);
    QCOMPARE(
        text.substr(size_t(parts.reasoningFrom), size_t(parts.reasoningTo - parts.reasoningFrom)),
        reasoning);
    QCOMPARE(text.substr(size_t(parts.answerFrom)), answer);
    const std::u16string wide(text.begin(), text.end());
    const ReplyParts same = splitReply(wide, begun);
    QCOMPARE(same.reasoningTo, parts.reasoningTo);
    QCOMPARE(same.answerFrom, parts.answerFrom);

    for (size_t step = 1; step <= text.size() + 1; ++step) {
        ReplySplitter splitter(begun);
        ReplySplitter::Piece all;
        const auto take = [&](ReplySplitter::Piece piece) {
            all.reasoning += piece.reasoning;
            all.answer += piece.answer;
        };
        for (size_t at = 0; at < text.size(); at += step) {
            take(splitter.add(std::string_view(text).substr(at, step)));
            QVERIFY(reasoning.starts_with(all.reasoning));
            QVERIFY(answer.starts_with(all.answer));
        }
        take(splitter.finish());
        QCOMPARE(all.reasoning, reasoning);
        QCOMPARE(all.answer, answer);
    }
}

void TestReplyParts::aReplyWithoutTagsIsGivenOutAtOnce() {
    ReplySplitter splitter;
    QCOMPARE(splitter.add("H").answer, std::string("H"));
    // A closing tag without an opening one is ordinary text.
    QCOMPARE(splitter.add("i </think> you").answer, std::string("i </think> you"));
    ReplySplitter reasoning;
    QCOMPARE(reasoning.add("<think>a").reasoning, std::string("a"));
    QCOMPARE(reasoning.add("b<").reasoning, std::string("b"));
    QCOMPARE(reasoning.add("c").reasoning, std::string("<c"));
}

void TestReplyParts::promptsThatBeginTheReasoning() {
    QVERIFY(endsInReasoning("<|im_start|>assistant\n<think>\n"));
    QVERIFY(endsInReasoning("[THINK]"));
    QVERIFY(!endsInReasoning("<think>\n\n</think>\n\n"));
    QVERIFY(!endsInReasoning(""));
}

void TestReplyParts::marksOfAContinuedReplyCountAndItsTextDoesNot() {
    const auto data = [](const TracedText& text) {
        std::string out;
        for (const ByteRange& range : text.data)
            out += "[" + text.text.substr(range.begin, range.end - range.begin) + "]";
        return out;
    };
    const std::string named = "Write <|im_end|> at its end.";
    QCOMPARE(tracedReply(named).text, named);
    QCOMPARE(data(tracedReply(named)), "[" + named + "]");
    const std::string reasoned = "<think>A </s>?</think>\n\nNo </s>.";
    QCOMPARE(tracedReply(reasoned).text, reasoned);
    QCOMPARE(data(tracedReply(reasoned)), std::string("[A </s>?][No </s>.]"));
    QCOMPARE(data(tracedReply("A?</think>B", true)), std::string("[A?][B]"));
    QCOMPARE(data(tracedReply("<think>A", false)), std::string("[A]"));
    QCOMPARE(data(tracedReply("", true)), std::string());
}

QTEST_GUILESS_MAIN(TestReplyParts)
#include "test_reply_parts.moc"
