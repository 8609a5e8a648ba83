// SPDX-License-Identifier: GPL-3.0-or-later
// Files and functions that the contributors' pages and comments in sources mention exist.
#include <QDir>
#include <QDirIterator>
#include <QFileInfo>
#include <QRegularExpression>
#include <QSet>
#include <QTest>

class TestPagesPaths : public QObject {
    Q_OBJECT

    using Words = QSet<QByteArray>;
    std::vector<Words> m_files;  // the words of each source

    static QString textOf(const QString& path) {
        QFile file(COLIBRI_SOURCE_DIR "/" + path);
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }
    static Words wordsOf(const QByteArray& text) {
        Words words;
        const auto inWord = [](char c) { return std::isalnum(uchar(c)) || c == '_'; };
        for (qsizetype at = 0; at < text.size();) {
            qsizetype end = at;
            while (end < text.size() && inWord(text[end])) ++end;
            if (end > at) words << text.mid(at, end - at);
            at = end + 1;
        }
        return words;
    }
    // The texts in `code` spans of a page, except in code blocks.
    static QStringList spansOf(const QString& page) {
        static const QRegularExpression block("```.*?```",
                                              QRegularExpression::DotMatchesEverythingOption);
        static const QRegularExpression span("`([^`\n]+)`");
        QStringList spans;
        auto found = span.globalMatch(textOf(page).remove(block));
        while (found.hasNext()) spans << found.next().captured(1);
        return spans;
    }
    static bool exists(const QString& path) {
        return QFileInfo::exists(COLIBRI_SOURCE_DIR "/" + path);
    }
    static void addPages(std::initializer_list<const char*> pages) {
        QTest::addColumn<QString>("page");
        for (const char* page : pages) {
            QVERIFY2(exists(page), page);
            QTest::newRow(page) << page;
        }
    }
    bool anySourceHas(const QStringList& parts) const {
        return std::any_of(m_files.begin(), m_files.end(), [&](const Words& words) {
            return std::all_of(parts.begin(), parts.end(),
                               [&](const QString& part) { return words.contains(part.toUtf8()); });
        });
    }

private slots:
    void initTestCase() {
        for (const char* top : {"kernels", "engine", "profiler", "app", "tests"}) {
            QDirIterator it(COLIBRI_SOURCE_DIR "/" + QString(top), {"*.h", "*.cpp", "*.py"},
                            QDir::Files, QDirIterator::Subdirectories);
            while (it.hasNext()) {
                QFile file(it.next());
                if (QFileInfo(file).fileName() == "test_pages_paths.cpp") continue;
                QVERIFY(file.open(QIODevice::ReadOnly));
                m_files.push_back(wordsOf(file.readAll()));
            }
        }
        QVERIFY(m_files.size() > 100);
    }

    void filesExist_data() {
        addPages({"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "kernels/README.md",
                  "resources/help/architecture.md", "resources/help/glossary.md",
                  "resources/help/server.md", "resources/help/session-file.md",
                  "resources/help/user-guide.md"});
    }
    void filesExist() {
        QFETCH(QString, page);
        static const QRegularExpression path(
            "^(?:kernels|engine|profiler|app|resources|tests)/[\\w./-]*");
        QStringList missing;
        for (const QString& span : spansOf(page)) {
            const QString named = path.match(span).captured();
            // An upper-case word is a placeholder: "verb_NAME.cpp".
            static const QRegularExpression standsForAName("[A-Z]{3}");
            const bool placeholder = named.contains(standsForAName) && !named.endsWith("README.md");
            if (!named.isEmpty() && !placeholder && !exists(named)) missing << named;
        }
        static const QRegularExpression link("\\]\\(([^)#:]+)(?:#[^)]*)?\\)");
        auto links = link.globalMatch(textOf(page));
        while (links.hasNext()) {
            const QString target =
                QDir::cleanPath(QFileInfo(page).path() + "/" + links.next().captured(1));
            if (!exists(target)) missing << target;
        }
        QVERIFY2(missing.isEmpty(), qPrintable("does not exist: " + missing.join(", ")));
    }

    // Checks comments, messages and build files.
    void filesNamedInSourcesExist() {
        static const QRegularExpression path(
            "(?<![\\w/.-])(?:kernels|engine|profiler|app|resources|tests)/[\\w/-]+"
            "\\.(?:h|cpp|py|md|txt|json)\\b(?!\\.\\w)");
        QStringList missing;
        for (const char* top : {"kernels", "engine", "profiler", "app", "tests"}) {
            QDirIterator it(COLIBRI_SOURCE_DIR "/" + QString(top),
                            {"*.h", "*.cpp", "*.in", "CMakeLists.txt"}, QDir::Files,
                            QDirIterator::Subdirectories);
            while (it.hasNext()) {
                QFile file(it.next());
                QVERIFY(file.open(QIODevice::ReadOnly));
                const QString text = QString::fromUtf8(file.readAll());
                auto found = path.globalMatch(text);
                while (found.hasNext()) {
                    const QString named = found.next().captured();
                    if (!exists(named)) missing << file.fileName() + " names " + named;
                }
            }
        }
        QVERIFY2(missing.isEmpty(), qPrintable(missing.join("\n")));
    }

    void namesExist_data() { addPages({"CONTRIBUTING.md", "resources/help/architecture.md"}); }
    void namesExist() {
        QFETCH(QString, page);
        static const QRegularExpression name("^[A-Za-z_]\\w*(?:::[A-Za-z_]\\w*)*$");
        static const QRegularExpression mixedCase("[a-z].*[A-Z]|[A-Z].*[a-z]");
        QStringList missing;
        int names = 0;
        for (const QString& span : spansOf(page)) {
            // Single words in lower or upper case are commands, files or values.
            if (!name.match(span).hasMatch() || !span.contains(mixedCase)) continue;
            ++names;
            if (!anySourceHas(span.split("::"))) missing << span;
        }
        QVERIFY(names > 20);
        QVERIFY2(missing.isEmpty(), qPrintable("in no source: " + missing.join(", ")));
    }
};

QTEST_GUILESS_MAIN(TestPagesPaths)
#include "test_pages_paths.moc"
