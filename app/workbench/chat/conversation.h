// SPDX-License-Identifier: GPL-3.0-or-later
// A conversation as plain data: a tree of turns (editing and regenerating make branches), with the
// figures and token times of each reply. Stored as one JSON file.
#pragma once

#include <QDateTime>
#include <QJsonObject>
#include <QString>
#include <QVector>
#include <limits>
#include <optional>

#include "engine/text/reply_parts.h"

namespace colibri::ui {

// One generated token of a reply: where its text ends, and what it waited for.
struct TokenMark {
    int end = 0;                  // offset in Turn::text after this token
    float gapMs = 0;              // since the previous token; 0 for the first
    float stallMs = 0;            // waiting for experts
    float waitMs = 0;             // the longest of those waits
    double t = 0;                 // session seconds
    int layer = -1, expert = -1;  // of the longest wait
};

struct TurnFigures {
    double tokS = kUnknown, ttftMs = kUnknown, promptTokS = kUnknown, hitRate = kUnknown;
    double bytesRead = kUnknown;
    int promptTokens = 0, tokens = 0;
    int cachedTokens = 0;  // of the prompt, found in the KV cache instead of computed
    int limit = 0;         // the most tokens that were asked for; 0 = not known
    int leftOut = 0;       // earlier messages that did not fit the context
    double from = kUnknown, to = kUnknown;  // session seconds, for the jump to the plots
    QString stop;                           // "eos", "length", "cancelled", ...; "" while running
    QString sampling;                       // as the composer sums it up; "" = not known
    QString drawn;  // how tokens were chosen: "seed 43", "greedy"; "" = not known

    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
};

// Why a reply ended that the program did not see the end of.
inline constexpr char kInterrupted[] = "interrupted";

struct Turn {
    enum class Role { User, Model };

    Role role = Role::User;
    QString text;
    bool inReasoning = false;  // the prompt began its reasoning
    QString model;             // name of the model that answered
    double sessionTime = 0;    // seconds, when it began
    qint64 wallMs = 0;         // since 1970
    QVector<TokenMark> tokens;
    TurnFigures figures;
    QString error;      // why the turn ended early
    QString session;    // of which its times are; "" = none
    bool live = false;  // that session runs: its times are those of the plots
    int parent = -1;
    QVector<int> children;  // branches, in the order they were made
    int active = 0;         // of children
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
    QVector<int> siblings(int index) const;  // branches at the same place, itself included
    void activate(int index);                // its branch becomes the active one
    int turnCount() const;                   // user turns on the active branch
    QString suggestTitle() const;            // from the first user turn
    QString plainText() const;               // all of it, for search
    QString markdown() const;                // the active branch, with its figures
    QString fileName() const;                // made of the title, without an ending
    void setLive(const QString& session);    // marks the turns of the session that runs

    // A turn alone, as toJson() has it, and back in its place. False: it does not fit there.
    QJsonObject turnJson(int index) const;
    bool putTurn(int index, const QJsonObject& json);
    QJsonObject toJson() const;
    static std::optional<Conversation> fromJson(const QJsonObject& json);

private:
    QVector<int> m_roots;
    int m_activeRoot = 0;
};

// The parts of a reply, in UTF-16 units as QString counts.
inline ReplyParts splitReply(const Turn& turn) {
    const auto* units = reinterpret_cast<const char16_t*>(turn.text.utf16());
    return colibri::splitReply(std::u16string_view(units, size_t(turn.text.size())),
                               turn.inReasoning);
}

}  // namespace colibri::ui
