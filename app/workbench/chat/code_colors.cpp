// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/code_colors.h"

#include <QHash>
#include <QSet>
#include <QStringList>

namespace colibri::ui {
namespace {

using SpanKind = CodeSpan::Kind;

struct Language {
    const char *names, *keywords;
    QStringList lineComments;      // begin one
    QString blockBegin, blockEnd;  // of a comment; "": there is none
    QString quotes;
    bool manyLines = false;  // a string may hold line breaks
    bool anyCase = false;    // of keywords
};

const Language kLanguages[] = {
    {"python py python3 pycon",
     "and as assert async await break case class continue def del elif else except False finally "
     "for from global if "
     "import in is lambda match None nonlocal not or pass raise return self True try while with "
     "yield",
     {"#"},
     "",
     "",
     "\"'"},
    {"c cpp c++ cc cxx h hpp cuda objc arduino",
     "alignas auto bool break case catch char class concept const constexpr continue default "
     "delete do double else "
     "enum explicit extern false final float for friend if inline int long mutable namespace new "
     "noexcept nullptr "
     "operator override private protected public requires return short signed sizeof static struct "
     "switch template "
     "this throw true try typedef typename union unsigned using virtual void volatile while size_t",
     {"//"},
     "/*",
     "*/",
     "\"'"},
    {"javascript js jsx typescript ts tsx mjs node",
     "abstract any as async await boolean break case catch class const continue debugger declare "
     "default delete do "
     "else enum export extends false finally for from function if implements import in instanceof "
     "interface let new "
     "null number of private public readonly return static string super switch this throw true try "
     "type typeof "
     "undefined var void while yield",
     {"//"},
     "/*",
     "*/",
     "\"'`",
     true},
    {"java kotlin kt scala groovy",
     "abstract assert boolean break byte case catch char class const continue data default do "
     "double else enum extends "
     "false final finally float for fun if implements import in instanceof int interface is long "
     "native new null "
     "object open override package private protected public record return sealed short static "
     "super switch "
     "synchronized this throw throws true try val var void volatile when while",
     {"//"},
     "/*",
     "*/",
     "\"'"},
    {"csharp cs c# swift dart",
     "abstract as async await base bool break byte case catch char class const continue decimal "
     "default delegate do "
     "double else enum event extension false finally float for foreach func get guard if in int "
     "interface internal "
     "is let lock long namespace new nil null object out override private protected public "
     "readonly ref return self "
     "set static string struct switch this throw true try using var virtual void while yield",
     {"//"},
     "/*",
     "*/",
     "\"'"},
    {"go golang",
     "any bool break byte case chan const continue default defer else error fallthrough false "
     "float64 for func go goto "
     "if import int int64 interface map nil package range return rune select string struct switch "
     "true type uint var",
     {"//"},
     "/*",
     "*/",
     "\"'`",
     true},
    {"rust rs",
     "as async await bool break const continue crate dyn else enum extern f32 f64 false fn for i32 "
     "i64 if impl in let "
     "loop match mod move mut pub ref return self Self static str String struct super trait true "
     "type u8 u32 u64 "
     "unsafe use usize where while",
     {"//"},
     "/*",
     "*/",
     "\"",
     true},
    {"php",
     "abstract array as break case catch class const continue default do echo else elseif extends "
     "false final "
     "fn for foreach function global if implements include interface match namespace new null "
     "private protected "
     "public require return static switch this throw trait true try use var while",
     {"//", "#"},
     "/*",
     "*/",
     "\"'",
     true},
    {"bash sh shell zsh console shell-session dockerfile docker makefile make cmake",
     "case cd do done echo elif else esac exit export fi for function if in local read return set "
     "shift source then "
     "unset until while FROM RUN COPY ENV CMD",
     {"#"},
     "",
     "",
     "\"'"},
    {"sql sqlite postgresql mysql plsql",
     "add all alter and as asc begin between by case commit create cross default delete desc "
     "distinct drop else end "
     "exists foreign from full group having if in index inner insert into is join key left like "
     "limit not null offset "
     "on or order outer over partition primary references right rollback select set table then "
     "union unique update "
     "using values view when where with",
     {"--"},
     "/*",
     "*/",
     "\"'",
     false,
     true},
    {"ruby rb",
     "and begin break case class def do else elsif end ensure false for if in module next nil not "
     "or puts "
     "raise redo require rescue return self super then true unless until when while yield",
     {"#"},
     "",
     "",
     "\"'`"},
    {"json jsonc json5 yaml yml toml ini", "true false null yes no on off", {"#"}, "", "", "\"'"},
};

const Language* languageOf(const QString& word) {
    static const QHash<QString, const Language*> all = [] {
        QHash<QString, const Language*> out;
        for (const Language& language : kLanguages)
            for (const QString& name : QString(language.names).split(' '))
                out.insert(name, &language);
        return out;
    }();
    return all.value(word.trimmed().section(' ', 0, 0).toLower());
}

const QSet<QString>& keywordsOf(const Language* language) {
    static QHash<const Language*, QSet<QString>> all;
    QSet<QString>& words = all[language];
    if (words.isEmpty())
        for (const QString& word : QString(language->keywords).split(' ')) words.insert(word);
    return words;
}

bool startsAt(const QString& text, int at, const QString& part) {
    return !part.isEmpty() && QStringView(text).mid(at).startsWith(part);
}

bool isWord(QChar c) {
    return c.isLetterOrNumber() || c == '_';
}

// 0.5, 1'000
bool joinsDigits(const QString& text, int at) {
    return text[at] == '.' || (text[at] == '\'' && at + 1 < text.size() && text[at + 1].isDigit());
}

int lineEnd(const QString& text, int from) {
    const qsizetype end = text.indexOf('\n', from);
    return int(end < 0 ? text.size() : end);
}

// The end of the string that begins at `at`.
int stringEnd(const QString& text, int at, bool manyLines) {
    const QString triple(3, text[at]);
    if (text[at] != '`' && startsAt(text, at, triple)) {
        const qsizetype end = text.indexOf(triple, at + 3);
        return int(end < 0 ? text.size() : end + 3);
    }
    for (int i = at + 1; i < text.size(); ++i) {
        if (text[i] == '\\')
            ++i;
        else if (text[i] == text[at])
            return i + 1;
        else if (text[i] == '\n' && !manyLines)
            return i;
    }
    return int(text.size());
}

// The end of the comment that begins at `at`; `at` itself: no comment begins there. "#" and similar
// marks need a space before them.
int commentEnd(const QString& text, int at, const Language& language) {
    for (const QString& begin : language.lineComments)
        if (startsAt(text, at, begin) && (begin != "#" || at == 0 || text[at - 1].isSpace()))
            return lineEnd(text, at);
    if (!startsAt(text, at, language.blockBegin)) return at;
    const qsizetype end = text.indexOf(language.blockEnd, at + 2);
    return int(end < 0 ? text.size() : end + 2);
}

}  // namespace

std::vector<CodeSpan> codeSpans(const QString& text, const QString& word) {
    std::vector<CodeSpan> out;
    const Language* language = languageOf(word);
    if (!language) return out;
    const QSet<QString>& keywords = keywordsOf(language);
    for (int at = 0, end = 0; at < text.size(); at = end) {
        const QChar c = text[at];
        if ((end = commentEnd(text, at, *language)) > at) {
            out.push_back({at, end - at, SpanKind::Comment});
        } else if (language->quotes.contains(c)) {
            end = stringEnd(text, at, language->manyLines);
            out.push_back({at, end - at, SpanKind::String});
        } else if (isWord(c)) {
            end = at;
            while (end < text.size() &&
                   (isWord(text[end]) || (c.isDigit() && joinsDigits(text, end))))
                ++end;
            const QString name = text.mid(at, end - at);
            if (c.isDigit())
                out.push_back({at, end - at, SpanKind::Number});
            else if (keywords.contains(language->anyCase ? name.toLower() : name))
                out.push_back({at, end - at, SpanKind::Keyword});
        } else {
            end = at + 1;
        }
    }
    return out;
}

Tone codeTone(CodeSpan::Kind kind) {
    switch (kind) {
        case SpanKind::Comment:
            return Theme::get().highContrast() ? Tone::Text2 : Tone::Text3;
        case SpanKind::String:
            return Tone::S3;
        case SpanKind::Number:
            return Tone::S4;
        case SpanKind::Keyword:
            break;
    }
    return Tone::S1;
}

}  // namespace colibri::ui
