// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_source.h"

namespace colibri::ui {
namespace {

Turn user(double t, const QString& text) {
    Turn turn;
    turn.sessionTime = t;
    turn.live = true;
    turn.text = text;
    return turn;
}

Turn reply(double t, const QString& text, double tokS, double ttft, double prompt, int tokens,
           double hit, double gib, const QString& stop) {
    Turn turn;
    turn.role = Turn::Role::Model;
    turn.model = "Wren-14B-A1.3B";
    turn.sessionTime = t;
    turn.live = true;
    turn.text = text;
    TurnFigures& f = turn.figures;
    f.tokS = tokS;
    f.ttftMs = ttft;
    f.promptTokS = prompt;
    f.tokens = tokens;
    f.promptTokens = 1560;
    f.hitRate = hit;
    f.bytesRead = gib * double(1 << 30);
    f.stop = stop;
    f.from = t;
    f.to = t + 20;
    return turn;
}

// Tokens of whole words, with one gap of 44.6 ms where `slow` stands.
void tokenize(Turn* turn, const QString& slow, int reasoning, double reasoningSeconds) {
    const colibri::ReplyParts parts = splitReply(*turn);
    double t = turn->sessionTime;
    for (int i = 0; i < reasoning && parts.reasoningTo > parts.reasoningFrom; ++i) {
        TokenMark mark;
        mark.end =
            parts.reasoningFrom + (parts.reasoningTo - parts.reasoningFrom) * (i + 1) / reasoning;
        mark.gapMs = 27;
        mark.t = t;
        t += reasoningSeconds / std::max(1, reasoning - 1);
        turn->tokens << mark;
    }
    int at = parts.answerFrom;
    while (at < turn->text.size()) {
        int end = at + 1;
        while (end < turn->text.size() && !turn->text[end].isSpace() && !turn->text[end].isPunct())
            ++end;
        TokenMark mark;
        mark.end = end;
        mark.gapMs = 27;
        mark.t = t += 0.027;
        if (turn->text.mid(at, end - at).trimmed() == slow) {
            mark.gapMs = 44.6f;
            mark.waitMs = 12.6f;
            mark.layer = 14;
            mark.expert = 37;
        }
        turn->tokens << mark;
        at = end;
    }
}

}  // namespace

Conversation storyConversation(bool large) {
    Conversation c = Conversation::create();
    c.title = "Why decode slows down";
    if (large) c.system = "You answer briefly, with figures.";
    int parent = -1;
    if (large) {
        parent =
            c.append(-1, user(2, "What does an expert cache hold, and how large should it be?"));
        c.append(parent, reply(2, "First answer.", 29, 600, 90, 600, 50, 100, "eos"));
        parent = c.append(
            parent,
            reply(3,
                  "<think>cache</think>It holds the experts used most recently, whole: three "
                  "matrices each, read once and "
                  "kept until something hotter needs the slot. For this model, one more expert per "
                  "layer costs "
                  "111 MiB.\n\n| Per layer | Memory | Hits, lru | Read per token "
                  "|\n|---|---|---|---|\n"
                  "| 8 | 0.87 GiB | 60.8 % | 183 MB |\n| 12 | 1.31 GiB | 71.9 % | 131 MB |\n"
                  "| 16 | 1.74 GiB | 79.6 % | 95 MB |\n| 20 | 2.18 GiB | 85.1 % | 70 MB |\n"
                  "| 32 | 3.48 GiB | 92.5 % | 35 MB |\n\nStart at twice the experts one token uses "
                  "per layer, "
                  "8 here, and grow until the misses stop falling.",
                  30.1, 612, 96.4, 632, 55.2, 113, "eos"));
        tokenize(&c.turns[parent], "", 402, 13.1);
    }
    parent = c.append(parent,
                      user(31, "Why does decoding slow down when the expert cache is too small?"));
    c.append(parent, reply(31, "Because experts are read again and again.", 30, 400, 140, 500, 60,
                           120, "eos"));
    parent = c.append(parent, reply(31,
                                    "<think>why</think>Every token asks for 96 experts, 4 in each "
                                    "of 24 layers. A miss is a read of 4.64 MiB, "
                                    "and a layer waits for its slowest read.\n\n- **Below 4 per "
                                    "layer nothing is reused:** an LRU "
                                    "smaller than one token’s set evicts each expert just before "
                                    "its next use.\n- Above it misses "
                                    "fall fast; past the knee a larger cache buys little.",
                                    34.2, 402, 148, 1062, 67.5, 149, "eos"));
    tokenize(&c.turns[parent], "larger", 781, 23.4);
    parent = c.append(parent, user(68, "How do I measure how fast this disk reads experts?"));
    parent = c.append(
        parent,
        reply(68,
              "<think>disk</think>Read expert-sized blocks at random, past the page cache, as many "
              "in flight as the engine "
              "keeps:\n\n```bash\nfio --name=experts --filename=layer_000.bin \\\n    "
              "--rw=randread --bs=4752k "
              "--direct=1 \\\n    --ioengine=io_uring --iodepth=8\n```\n\nCompare its bandwidth "
              "with **Read** in "
              "the figures. When the two are close, the disk is the limit and a larger cache",
              36.6, 431, 151, 781, 71.4, 95.6, ""));
    c.turns[parent].figures.promptTokens = 1839;
    tokenize(&c.turns[parent], "limit", 598, 16.5);
    return c;
}

}  // namespace colibri::ui
