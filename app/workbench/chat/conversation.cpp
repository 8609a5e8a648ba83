// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/conversation.h"

#include <QJsonArray>
#include <QUuid>
#include <cmath>

#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr int kChatSchema = 1;

QJsonValue jsonNumber(double v) {
    return std::isfinite(v) ? QJsonValue(v) : QJsonValue();
}
double jsonNumber(const QJsonValue& v) {
    return v.isDouble() ? v.toDouble() : TurnFigures::kUnknown;
}

QJsonObject turnToJson(const Turn& turn) {
    QJsonObject json{{"role", turn.role == Turn::Role::User ? "user" : "assistant"},
                     {"text", turn.text},
                     {"session_time", turn.sessionTime},
                     {"wall_ms", turn.wallMs},
                     {"session", turn.session},
                     {"parent", turn.parent},
                     {"active", turn.active}};
    QJsonArray children;
    for (const int child : turn.children) children.append(child);
    json["children"] = children;
    if (turn.role == Turn::Role::User) return json;
    json["model"] = turn.model;
    if (turn.inReasoning) json["in_reasoning"] = true;
    if (!turn.error.isEmpty()) json["error"] = turn.error;
    const TurnFigures& f = turn.figures;
    json["figures"] = QJsonObject{{"tok_s", jsonNumber(f.tokS)},
                                  {"ttft_ms", jsonNumber(f.ttftMs)},
                                  {"prompt_tok_s", jsonNumber(f.promptTokS)},
                                  {"hit_rate", jsonNumber(f.hitRate)},
                                  {"bytes_read", jsonNumber(f.bytesRead)},
                                  {"prompt_tokens", f.promptTokens},
                                  {"cached_tokens", f.cachedTokens},
                                  {"tokens", f.tokens},
                                  {"from", jsonNumber(f.from)},
                                  {"to", jsonNumber(f.to)},
                                  {"limit", f.limit},
                                  {"left_out", f.leftOut},
                                  // A file that is written during a reply must be correct if the
                                  // program is killed.
                                  {"stop", f.stop.isEmpty() ? QString(kInterrupted) : f.stop},
                                  {"sampling", f.sampling},
                                  {"drawn", f.drawn}};
    // Rows of [end, gap ms, stall ms, wait ms, t, layer, expert], since a reply can have thousands
    // of tokens.
    QJsonArray tokens;
    const auto rounded = [](double v) { return std::round(v * 1000) / 1000; };
    for (const TokenMark& m : turn.tokens)
        tokens.append(QJsonArray{m.end, rounded(m.gapMs), rounded(m.stallMs), rounded(m.waitMs),
                                 rounded(m.t), m.layer, m.expert});
    json["tokens"] = tokens;
    return json;
}

std::optional<Turn> turnFromJson(const QJsonObject& json, int count) {
    Turn turn;
    const QString role = json["role"].toString();
    if (role != "user" && role != "assistant") return std::nullopt;
    turn.role = role == "user" ? Turn::Role::User : Turn::Role::Model;
    turn.text = json["text"].toString();
    turn.model = json["model"].toString();
    turn.inReasoning = json["in_reasoning"].toBool();
    turn.error = json["error"].toString();
    turn.sessionTime = json["session_time"].toDouble();
    turn.wallMs = qint64(json["wall_ms"].toDouble());
    turn.session = json["session"].toString();
    turn.parent = json["parent"].toInt(-1);
    turn.active = json["active"].toInt();
    if (turn.parent < -1 || turn.parent >= count) return std::nullopt;
    for (const QJsonValue& child : json["children"].toArray()) {
        const int index = child.toInt(-1);
        if (index < 0 || index >= count) return std::nullopt;
        turn.children << index;
    }
    if (turn.active < 0 || turn.active > std::max<qsizetype>(0, turn.children.size() - 1))
        turn.active = 0;
    const QJsonObject f = json["figures"].toObject();
    turn.figures.tokS = jsonNumber(f["tok_s"]);
    turn.figures.ttftMs = jsonNumber(f["ttft_ms"]);
    turn.figures.promptTokS = jsonNumber(f["prompt_tok_s"]);
    turn.figures.hitRate = jsonNumber(f["hit_rate"]);
    turn.figures.bytesRead = jsonNumber(f["bytes_read"]);
    turn.figures.promptTokens = f["prompt_tokens"].toInt();
    turn.figures.cachedTokens = f["cached_tokens"].toInt();
    turn.figures.tokens = f["tokens"].toInt();
    turn.figures.from = jsonNumber(f["from"]);
    turn.figures.to = jsonNumber(f["to"]);
    turn.figures.limit = f["limit"].toInt();
    turn.figures.leftOut = f["left_out"].toInt();
    turn.figures.stop = f["stop"].toString();
    if (turn.role == Turn::Role::Model && turn.figures.stop.isEmpty())
        turn.figures.stop = kInterrupted;
    turn.figures.sampling = f["sampling"].toString();
    turn.figures.drawn = f["drawn"].toString();
    int last = 0;
    for (const QJsonValue& value : json["tokens"].toArray()) {
        const QJsonArray row = value.toArray();
        TokenMark mark;
        mark.end = row[0].toInt();
        if (row.size() != 7 || mark.end < last || mark.end > turn.text.size()) return std::nullopt;
        last = mark.end;
        mark.gapMs = float(row[1].toDouble());
        mark.stallMs = float(row[2].toDouble());
        mark.waitMs = float(row[3].toDouble());
        mark.t = row[4].toDouble();
        mark.layer = row[5].toInt(-1);
        mark.expert = row[6].toInt(-1);
        turn.tokens << mark;
    }
    return turn;
}

// "*2026-11-30 21:09, 34.2 tok/s, TTFT 402 ms, 212 tokens, hit 67.5 %, stop eos; temp 0.7, seed
// 42*"
QString figuresLine(const Turn& turn) {
    const TurnFigures& f = turn.figures;
    const auto add = [](QStringList* parts, const QString& before, double v, int decimals,
                        const QString& after) {
        if (std::isfinite(v)) *parts << before + str(formatFixed(v, decimals)) + after;
    };
    QStringList parts;
    if (turn.wallMs > 0)
        parts << QDateTime::fromMSecsSinceEpoch(turn.wallMs).toString("yyyy-MM-dd HH:mm");
    add(&parts, "", f.tokS, 1, " tok/s");
    add(&parts, "TTFT ", f.ttftMs, 0, " ms");
    if (f.promptTokens > 0) {
        const QString reused = f.cachedTokens > 0 ? " (" + count(f.cachedTokens) + " reused)" : "";
        parts << "prompt " + count(f.promptTokens) + " tokens" + reused;
    }
    parts << "reply " + count(f.tokens) + " tokens";
    add(&parts, "hit rate ", f.hitRate, 1, " %");
    if (std::isfinite(f.bytesRead)) parts << "read " + str(formatGiB(f.bytesRead));
    if (!f.stop.isEmpty()) parts << "stop: " + f.stop;
    const QString drawn = !f.sampling.isEmpty() ? f.sampling : f.drawn;
    return "*" + parts.join(", ") + (drawn.isEmpty() ? QString() : "; " + drawn) + "*";
}

}  // namespace

Conversation Conversation::create() {
    Conversation c;
    c.id = QUuid::createUuid().toString(QUuid::WithoutBraces);
    c.changed = QDateTime::currentDateTime();
    return c;
}

QVector<int> Conversation::path() const {
    QVector<int> out;
    int at = m_roots.isEmpty() ? -1 : m_roots[m_activeRoot];
    while (at >= 0 && out.size() <= turns.size()) {
        out << at;
        const Turn& turn = turns[at];
        at = turn.children.isEmpty() ? -1 : turn.children[turn.active];
    }
    return out;
}

int Conversation::append(int parent, Turn turn) {
    const int index = int(turns.size());
    turn.parent = parent;
    turns << turn;
    if (parent < 0) {
        m_roots << index;
        m_activeRoot = int(m_roots.size()) - 1;
    } else {
        turns[parent].children << index;
        turns[parent].active = int(turns[parent].children.size()) - 1;
    }
    changed = QDateTime::currentDateTime();
    return index;
}

QVector<int> Conversation::siblings(int index) const {
    const int parent = turns[index].parent;
    return parent < 0 ? m_roots : turns[parent].children;
}

void Conversation::activate(int index) {
    const int parent = turns[index].parent;
    const int at = int(siblings(index).indexOf(index));
    if (parent < 0)
        m_activeRoot = at;
    else
        turns[parent].active = at;
}

int Conversation::turnCount() const {
    int n = 0;
    for (const int index : path()) n += turns[index].role == Turn::Role::User;
    return n;
}

QString Conversation::suggestTitle() const {
    for (const int index : path()) {
        if (turns[index].role != Turn::Role::User) continue;
        QString text = shown(turns[index].text.simplified());
        if (text.size() > 48) text = text.left(47).section(' ', 0, -2) + "…";
        return text;
    }
    return "New chat";
}

QString Conversation::plainText() const {
    QString out = title;
    for (const Turn& turn : turns) out += "\n" + turn.text;
    return out;
}

QString Conversation::markdown() const {
    QString out = "# " + title + "\n";
    if (!turns.isEmpty() && turns[0].wallMs > 0)
        out += "\nStarted on " +
               QDateTime::fromMSecsSinceEpoch(turns[0].wallMs).toString("yyyy-MM-dd HH:mm") + "\n";
    if (!system.isEmpty()) out += "\n> " + QString(system).replace('\n', "\n> ") + "\n";
    for (const int index : path()) {
        const Turn& turn = turns[index];
        const bool user = turn.role == Turn::Role::User;
        out += "\n## " + (user ? QString("You") : turn.model.isEmpty() ? "Model" : turn.model);
        out += "\n\n" + turn.text + "\n";
        if (!user) out += "\n" + figuresLine(turn) + "\n";
    }
    return out;
}

QString Conversation::fileName() const {
    QString name;
    for (const QChar c : title.toLower())
        if (c.isLetterOrNumber())
            name += c;
        else if (!name.isEmpty() && !name.endsWith('-'))
            name += '-';
    name.truncate(48);
    while (name.endsWith('-')) name.chop(1);
    return name.isEmpty() ? QString("chat") : name;
}

void Conversation::setLive(const QString& session) {
    for (Turn& turn : turns) turn.live = !session.isEmpty() && turn.session == session;
}

QJsonObject Conversation::turnJson(int index) const {
    return turnToJson(turns[index]);
}

bool Conversation::putTurn(int index, const QJsonObject& json) {
    if (index < 0 || index >= turns.size()) return false;
    auto turn = turnFromJson(json, int(turns.size()));
    const Turn& old = turns[index];
    if (!turn || turn->role != old.role || turn->parent != old.parent ||
        turn->children != old.children)
        return false;
    turns[index] = std::move(*turn);
    return true;
}

QJsonObject Conversation::toJson() const {
    QJsonArray all, roots;
    for (const Turn& turn : turns) all.append(turnToJson(turn));
    for (const int root : m_roots) roots.append(root);
    return {{"schema", kChatSchema},
            {"id", id},
            {"title", title},
            {"system", system},
            {"changed", changed.toUTC().toString(Qt::ISODateWithMs)},
            {"roots", roots},
            {"active_root", m_activeRoot},
            {"turns", all}};
}

std::optional<Conversation> Conversation::fromJson(const QJsonObject& json) {
    if (json["schema"].toInt() != kChatSchema) return std::nullopt;
    Conversation c;
    c.id = json["id"].toString();
    c.title = shown(json["title"].toString());
    c.system = json["system"].toString();
    c.changed = QDateTime::fromString(json["changed"].toString(), Qt::ISODateWithMs).toLocalTime();
    const QJsonArray all = json["turns"].toArray();
    for (const QJsonValue& value : all) {
        auto turn = turnFromJson(value.toObject(), int(all.size()));
        if (!turn) return std::nullopt;
        c.turns << *turn;
    }
    for (const QJsonValue& value : json["roots"].toArray()) {
        const int root = value.toInt(-1);
        if (root < 0 || root >= c.turns.size()) return std::nullopt;
        c.m_roots << root;
    }
    c.m_activeRoot = json["active_root"].toInt();
    if (c.m_activeRoot < 0 || c.m_activeRoot >= std::max<qsizetype>(1, c.m_roots.size()))
        c.m_activeRoot = 0;
    if (c.id.isEmpty() || (c.m_roots.isEmpty() && !c.turns.isEmpty())) return std::nullopt;
    return c;
}

}  // namespace colibri::ui
