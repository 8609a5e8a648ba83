// SPDX-License-Identifier: GPL-3.0-or-later
// The whole program under locales with a decimal comma, other digits and other cases of letters.
// The parent makes the locales with localedef and runs itself once in each.
#include <httplib.h>
#include <sqlite3.h>

#include <QProcess>
#include <clocale>
#include <locale>

#include "app/workbench/widgets/typed_number.h"
#include "app/workbench/window/program.h"
#include "engine/base/format.h"
#include "engine/text/chat_template.h"
#include "engine_window.h"
#include "profiler/loadtest/load_run.h"
#include "session_path.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

constexpr const char* kLocales[] = {"de_DE", "fr_FR", "ar_EG", "tr_TR"};
constexpr const char* kChild = "COLIBRI_TEST_LOCALE";

// A number whose decimals follow a comma, or digits that are not ASCII.
bool isForeign(const QString& text) {
    static const QRegularExpression comma("\\d,\\d{1,2}(?!\\d)|\\d,\\d{4}|,,");
    for (const QChar c : text)
        if (c.digitValue() >= 0 && c.unicode() > 0x7F) return true;
    return comma.match(text).hasMatch();
}

// What a template writes of numbers and dates.
QString templateText() {
    static const char* const kSource =
        "{{ 1.5 }} {{ '%.2f' % 1.25 }} {{ 2.674 | round(2) }} {{ '1.5' | float + 1 }} "
        "{{ 1536000.0 | filesizeformat }} {{ '{:.3f}'.format(0.5) }} {{ 1e400 }} {{ 'I' | lower }} "
        "{{ strftime_now('%d %B %Y') }}";
    const auto parsed = ChatTemplate::parse(kSource, "numbers.jinja");
    if (!parsed) return QString::fromStdString(parsed.status().text());
    std::tm may{};
    may.tm_year = 126;
    may.tm_mon = 4;
    may.tm_mday = 3;
    ChatTemplate::RenderOptions options;
    options.now = may;
    const auto text =
        (*parsed)->render({{"messages", {{{"role", "user"}, {"content", "x"}}}}}, options);
    return QString::fromStdString(text ? *text : text.status().text());
}
const char* const kTemplateText = "1.5 1.25 2.67 2.5 1.5 MB 0.500 inf i 03 May 2026";

// A host program that takes the user's locale over, for C and for C++ streams.
class AdoptedLocale {
public:
    AdoptedLocale() : m_before(std::locale()) {
        std::setlocale(LC_ALL, "");
        std::locale::global(std::locale(""));
    }
    ~AdoptedLocale() {
        std::locale::global(m_before);
        prepareApplication();
    }

private:
    std::locale m_before;
};

}  // namespace

class TestLocales : public EngineWindow {
    Q_OBJECT

    QStringList shownTexts() {
        QStringList texts;
        for (const FigureCard& card : m_window->chatPage()->plots()->figures()->cards())
            texts << card.value + " " + card.unit;
        for (int i = 0; i < StatusBar::CellCount; ++i)
            texts << m_window->status()->cell(StatusBar::Cell(i))->shownText();
        for (auto* row : m_window->findChildren<SliderRow*>()) texts << row->field()->text();
        for (auto* note : m_window->findChildren<Note*>()) texts << note->text();
        for (auto* widget : m_window->findChildren<QWidget*>()) texts << widget->accessibleName();
        return texts;
    }

private slots:
    void initTestCase() { makeModel(); }
    void init() { open(); }
    void cleanup() { drop(); }

    // Else none of this says anything.
    void theLocaleIsThere() {
        const QByteArray name = qgetenv("LC_ALL");
        const locale_t locale = newlocale(LC_ALL_MASK, name.constData(), locale_t());
        QVERIFY2(locale, name.constData());
        freelocale(locale);
        QCOMPARE(QLocale::system().name(), QString::fromUtf8(qgetenv(kChild)));
        QCOMPARE(qApp->layoutDirection(), Qt::LeftToRight);
    }

    void theEngineWritesNumbersOneWayInAnyHostProgram() {
        const AdoptedLocale adopted;
        QCOMPARE(formatFixed(1234.5, 2), std::string("1,234.50"));
        QCOMPARE(formatMs(1.5), std::string("1.50 ms"));
        QCOMPARE(formatGiB(2.5 * (1 << 30)), std::string("2.50 GiB"));
        QCOMPARE(templateText(), QString(kTemplateText));
        LoadReport report;
        report.samples.push_back({});
        report.samples.back().endS = 1.25;
        const std::string csv = loadCsv(report);
        QVERIFY2(csv.find("1.250000") != std::string::npos, csv.c_str());
        QCOMPARE(nlohmann::json::parse("{\"a\": 1.5}").dump(), std::string("{\"a\":1.5}"));
    }

    void templatesRenderTheSameText() { QCOMPARE(templateText(), QString(kTemplateText)); }

    void figuresOfTheWindowHaveOneDecimalPoint() {
        FakeSource source;
        m_window = std::make_unique<MainWindow>(&source, m_sandbox->path("fake-chats"));
        m_window->resize(1440, 900);
        m_window->show();
        for (int i = 0; i < 9; ++i) m_window->tick();
        m_window->chatPage()->chat()->openConversation(storyConversation(false));
        QCOMPARE(m_window->status()->cell(StatusBar::Memory)->content().value,
                 QString("2.86 of 4.81 GiB"));
        QCOMPARE(m_window->status()->cell(StatusBar::Session)->content().value,
                 QString("session 0412, 18.4 MiB"));
        const QStringList texts = shownTexts();
        QVERIFY(texts.size() > 100);
        for (const QString& text : texts) QVERIFY2(!isForeign(text), qPrintable(text));
    }

    void aPlotsCsvHasCommasBetweenColumnsOnly() {
        FakeSource source;
        m_window = std::make_unique<MainWindow>(&source, m_sandbox->path("fake-chats"));
        m_window->resize(1440, 900);
        m_window->show();
        m_window->tick();
        const QStringList lines =
            m_window->chatPage()->plots()->plot("hit")->csv().split('\n', Qt::SkipEmptyParts);
        QVERIFY(lines.size() > 10);
        const qsizetype columns = lines.last().count(',');
        bool ok = false;
        lines.last().section(',', 0, 0).toDouble(&ok);
        QVERIFY2(ok, qPrintable(lines.last()));
        for (const QString& line : lines.mid(lines.size() - 8)) QCOMPARE(line.count(','), columns);
    }

    // One reply, seen in the figures of the turn, in /metrics, in the session file.
    void aReplyHasTheSameFiguresEverywhere() {
        QVERIFY(load());
        m_window->servePanel()->port()->setText("0");
        m_window->servePanel()->apiKey()->setText("key");
        m_window->servePanel()->setOn(true);
        QVERIFY(waitUntil([&] { return m_window->server()->state() == ModelServer::State::On; }));
        httplib::Client client("127.0.0.1", m_window->server()->port());
        client.set_read_timeout(60);
        // Header names in capitals: under tr_TR an I has another small letter.
        const httplib::Headers headers = {{"AUTHORIZATION", "Bearer key"}};
        const auto chat =
            client.Post("/v1/chat/completions", headers,
                        R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":4,
                                          "temperature":0.5,"ignore_eos":true})",
                        "application/json");
        QVERIFY(chat);
        QCOMPARE(chat->status, 200);
        QCOMPARE(nlohmann::json::parse(chat->body)["usage"]["completion_tokens"].get<int>(), 4);
        const auto metrics = client.Get("/metrics", headers);
        QVERIFY(metrics);
        for (const QString& line : QString::fromStdString(metrics->body).split('\n')) {
            if (line.isEmpty() || line.startsWith('#')) continue;
            bool ok = false;
            line.section(' ', -1).toDouble(&ok);
            QVERIFY2(ok || line.endsWith("NaN"), qPrintable(line));
            QVERIFY2(!line.section(' ', -1).contains(','), qPrintable(line));
        }
        QVERIFY(metrics->body.find("le=\"0.025\"") != std::string::npos);
        const QString session = sessionPath(*m_host);
        QVERIFY(!session.isEmpty());
        m_host->close();
        QVERIFY(waitUntil([&] { return m_host->state() == SessionSource::State::NoModel; }));
        drop();
        sqlite3* db = nullptr;
        QCOMPARE(sqlite3_open_v2(session.toUtf8().constData(), &db, SQLITE_OPEN_READONLY, nullptr),
                 SQLITE_OK);
        sqlite3_stmt* query = nullptr;
        QCOMPARE(sqlite3_prepare_v2(db, "SELECT count(*) FROM tokens WHERE typeof(t) = 'real'", -1,
                                    &query, nullptr),
                 SQLITE_OK);
        QCOMPARE(sqlite3_step(query), SQLITE_ROW);
        QVERIFY(sqlite3_column_int(query, 0) >= 4);
        sqlite3_finalize(query);
        sqlite3_close(db);
    }

    void typedNumbers_data() {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<double>("value");  // NaN: none
        const double none = std::nan("");
        QTest::newRow("point") << "1.5" << 1.5;
        QTest::newRow("comma") << "1,5" << 1.5;
        QTest::newRow("as shown") << "1,024" << 1024.0;
        QTest::newRow("as shown, with decimals") << "12,345.5" << 12345.5;
        QTest::newRow("German thousands") << "12.345,5" << 12345.5;
        QTest::newRow("narrow space") << QString("12") + QChar(0x202F) + "345,5" << 12345.5;
        QTest::newRow("Arabic") << QString::fromUtf8("٣٫٥") << 3.5;
        QTest::newRow("true minus") << QString::fromUtf8("−2,5") << -2.5;
        QTest::newRow("leading zero") << "0,125" << 0.125;
        QTest::newRow("two commas") << "1,5,1" << none;
        QTest::newRow("word") << "many" << none;
        QTest::newRow("infinite") << "inf" << none;
        QTest::newRow("empty") << "" << none;
    }
    void typedNumbers() {
        QFETCH(QString, typed);
        QFETCH(double, value);
        const auto read = typedNumber(typed);
        QCOMPARE(read.has_value(), std::isfinite(value));
        if (read) QCOMPARE(*read, value);
    }

    // Where only whole numbers are, a fraction is refused; it was read as 15.
    void aTypedFractionIsNotTakenForAnotherNumber() {
        QVERIFY(load());
        KnobControl* cache = m_window->chatPage()->knobs()->control(KnobId::ExpertCacheSize);
        NumberField* field = cache->sliderRow()->field();
        const int64_t before = m_host->knobState(KnobId::ExpertCacheSize).requested;
        emit field->applied("1,5");
        QCOMPARE(m_host->knobState(KnobId::ExpertCacheSize).requested, before);
        SliderRow* temperature = nullptr;
        for (auto* row : m_window->chatPage()->chat()->samplingPanel()->findChildren<SliderRow*>())
            if (!temperature) temperature = row;
        QVERIFY(temperature);
        emit temperature->field()->applied("1,5");
        QCOMPARE(temperature->field()->text(), QString("1.50"));
    }
};

int main(int argc, char** argv) {
    if (!qEnvironmentVariableIsEmpty(kChild)) {
        QApplication app(argc, argv);
        prepareApplication();
        TestLocales test;
        return QTest::qExec(&test, argc, argv);
    }
    QCoreApplication app(argc, argv);
    QTemporaryDir made;
    int failed = 0;
    for (const char* name : kLocales) {
        const QString locale = QString(name) + ".UTF-8";
        QProcess localedef;
        localedef.start("localedef", {"-i", name, "-f", "UTF-8", made.filePath(locale)});
        if (!localedef.waitForFinished() || localedef.exitCode() > 1) {
            std::fprintf(stderr,
                         "localedef could not make %s: %s\nThe package locales has its sources.\n",
                         name, localedef.readAllStandardError().constData());
            return 1;
        }
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("LOCPATH", made.path());
        environment.insert("LC_ALL", locale);
        environment.insert("LANG", locale);
        environment.insert(kChild, name);
        QProcess run;
        run.setProcessEnvironment(environment);
        run.setProcessChannelMode(QProcess::ForwardedChannels);
        std::printf("---- %s\n", name);
        std::fflush(stdout);
        run.start(app.applicationFilePath(), app.arguments().mid(1));
        if (!run.waitForFinished(-1) || run.exitStatus() != QProcess::NormalExit ||
            run.exitCode() != 0)
            ++failed;
    }
    return failed;
}
#include "test_locales.moc"
