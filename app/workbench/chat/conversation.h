// SPDX-License-Identifier: GPL-3.0-or-later
// A conversation as plain data: a tree of turns (editing and regenerating create branches) with
// figures and token times of each reply. Stored as one JSON file. Not thread-safe.
#pragma once

#include <QDateTime>
#include <QJsonObject>
#include <QString>
#include <QVector>
#include <limits>
#include <optional>

#include "engine/text/reply_parts.h"

namespace colibri::ui {

// One generated token of a reply: where its text ends, and how long it waited.
struct TokenMark {
    int end = 0;                  // offset in Turn::text after this token
    float gapMs = 0;              // since the previous token; 0 for the first
    float stallMs = 0;            // stall: waiting for experts
    float waitMs = 0;             // the longest of those waits
    double t = 0;                 // session seconds
    int layer = -1, expert = -1;  // of the longest wait
};

struct TurnFigures {
    double tokS = kUnknown, ttftMs = kUnknown, promptTokS = kUnknown, hitRate = kUnknown;
    double bytesRead = kUnknown;
    int promptTokens = 0, tokens = 0;
    int cachedTokens = 0;                   // tokens of the prompt found in the KV cache
    int limit = 0;                          // largest number of tokens of the reply; 0 = not known
    int leftOut = 0;                        // earlier messages that did not fit the context
    double from = kUnknown, to = kUnknown;  // session seconds, to show the turn in the plots
    QString stop;                           // "eos", "length", "cancelled", ...; "" while running
    QString sampling;  // the settings as the composer shows them; "" = not known
    QString drawn;     // how tokens were sampled: "seed 43", "greedy"; "" = not known

    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
};

// The `stop` of a reply whose end was not recorded.
inline constexpr char kInterrupted[] = "interrupted";

struct Turn {
    enum class Role { User, Model };

    Role role = Role::User;
    QString text;
    bool inReasoning = false;  // the prompt ends inside the reasoning part
    QString model;             // name of the model that answered
    double sessionTime = 0;    // seconds, at its begin
    qint64 wallMs = 0;         // ms since 1970
    QVector<TokenMark> tokens;
    TurnFigures figures;
    QString error;      // why the turn ended early
    QString session;    // id of the session of its times; "" = none
    bool live = false;  // that session is running: the plots have its times
    int parent = -1;
    QVector<int> children;  // branches, oldest first
    int active = 0;         // index in children
};

class Conversation {
public:
    static Conversation create();

    QString id, title, system;  // system: the system prompt, "" = none
    QDateTime changed;
    QVector<Turn> turns;  // by index; -1 is the root

    bool isEmpty() const { return turns.isEmpty(); }
    QVector<int> path() const;               // the active branch, first to last
    int append(int parent, Turn turn);       // becomes the active branch; returns index
    QVector<int> siblings(int index) const;  // all branches of its parent
    void activate(int index);                // its branch becomes the active one
    int turnCount() const;                   // user turns on the active branch
    QString suggestTitle() const;            // from the first user turn
    QString plainText() const;               // all of it, for search
    QString markdown() const;                // the active branch, with its figures
    QString fileName() const;                // from the title, without an extension
    void setLive(const QString& session);    // sets Turn::live for the turns of this session

    // A single turn as JSON, and replacing a turn by it. False: it does not fit there.
    QJsonObject turnJson(int index) const;
    bool putTurn(int index, const QJsonObject& json);
    QJsonObject toJson() const;
    static std::optional<Conversation> fromJson(const QJsonObject& json);

private:
    QVector<int> m_roots;
    int m_activeRoot = 0;
};

// The parts of a reply. Offsets count UTF-16 units, as QString does.
inline ReplyParts splitReply(const Turn& turn) {
    const auto* units = reinterpret_cast<const char16_t*>(turn.text.utf16());
    return colibri::splitReply(std::u16string_view(units, size_t(turn.text.size())),
                               turn.inReasoning);
}

}  // namespace colibri::ui
