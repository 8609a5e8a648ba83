// SPDX-License-Identifier: GPL-3.0-or-later
#include <QClipboard>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>

#include "app/workbench/knobs/changes_list.h"
#include "app/workbench/knobs/knobs_panel.h"
#include "app/workbench/platform/text.h"
#include "window_test.h"

using namespace colibri;
using namespace colibri::ui;

class TestKnobs : public QObject {
    Q_OBJECT

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<FakeSource> m_source;
    std::unique_ptr<KnobsPanel> m_panel;

    SliderRow* row(KnobId id) { return m_panel->control(id)->sliderRow(); }
    int64_t requested(KnobId id) { return m_source->knobState(id).requested; }
    void tick() {
        m_source->editable();
        m_panel->tick(m_source->snapshot());
    }

private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }
    void init() {
        m_source = std::make_unique<FakeSource>();
        m_panel = std::make_unique<KnobsPanel>();
        m_panel->setSource(m_source.get());
        m_panel->resize(303, 836);
        m_panel->show();
        m_panel->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_panel.get()));
        tick();
    }
    void cleanup() {
        m_panel.reset();
        m_source.reset();
    }

    void everyLiveKnobOfTheTableHasAControl() {
        for (const KnobRow& knob : knobTable()) {
            KnobControl* control = m_panel->control(knob.id);
            QCOMPARE(control != nullptr, knob.live);
            if (!control) continue;
            QCOMPARE(control->sliderRow() != nullptr, knob.choices.empty());
            QCOMPARE(control->shownValue(), requested(knob.id));
        }
    }

    void everyKnobShowsWhatIsInForce() {
        for (const KnobRow& knob : knobTable()) {
            const KnobState state = m_source->knobState(knob.id);
            const QString value = knobText(knob, state.effective);  // "8,192", as everywhere
            if (knob.live) {
                QVERIFY2(m_panel->control(knob.id)->isVisibleTo(m_panel.get()), knob.name);
                if (state.effective != state.requested)
                    QVERIFY2(m_panel->control(knob.id)->note().contains("Effective " + value),
                             knob.name);
                continue;
            }
            bool shown = false;
            for (const QLabel* label : m_panel->findChildren<QLabel*>())
                shown = shown || (label->text().section(' ', 0, 0) == value &&
                                  label->parentWidget()->toolTip() == knob.help);
            QVERIFY2(shown, knob.name);
        }
    }

    // A note has its text and nothing more: no line stands empty for what may come.
    void noLineIsKeptEmptyUnderAKnob() {
        for (const KnobId id : {KnobId::PrefetchSource, KnobId::ExpertCacheSize}) {
            const KnobControl* knob = m_panel->control(id);
            QVERIFY(!knob->note().isEmpty());
            for (const Note* note : knob->findChildren<Note*>()) {
                if (note->isHidden()) continue;
                Note plain;
                plain.setNote(note->text());
                QVERIFY2(note->height() <= plain.heightForWidth(note->width()) + 1,
                         qPrintable(note->text()));
            }
        }
    }

    // What cannot work is greyed, and says why: in the choice's tooltip and under the knob.
    void choicesThatCannotWorkAreGreyedWithTheReason() {
        KnobControl* router = m_panel->control(KnobId::RouterMode);
        QCOMPARE(router->note(), QString("table n/a: no router table in this model."));
        router->segment()->setFocus();
        QTest::keyClick(router->segment(), Qt::Key_Right);
        QTest::mouseClick(router->segment(), Qt::LeftButton, {},
                          {router->segment()->width() - 8, 12});
        QCOMPARE(requested(KnobId::RouterMode), int64_t(RouterMode::Exact));

        KnobControl* source = m_panel->control(KnobId::PrefetchSource);
        const int table = int(PrefetchSource::RouterTable);
        QVERIFY(!(source->select()->model()->index(table, 0).flags() & Qt::ItemIsEnabled));
        QCOMPARE(source->select()->itemData(table, Qt::ToolTipRole).toString(),
                 QString("no router table in this model"));
        QVERIFY(source->note().endsWith("router_table n/a: no router table in this model."));
        source->select()->setFocus();
        QTest::keyClick(source->select(), Qt::Key_Up);
        QTest::keyClick(source->select(), Qt::Key_Up);  // past the table
        QCOMPARE(requested(KnobId::PrefetchSource), int64_t(PrefetchSource::Off));

        QCOMPARE(m_panel->control(KnobId::NumaMode)->note(),
                 QString("bind, interleave n/a: this machine has one NUMA node."));
        QVERIFY(!row(KnobId::NumaNode)->slider()->isEnabled());
        QVERIFY(!row(KnobId::NumaNode)->field()->isEnabled());
        QCOMPARE(m_panel->control(KnobId::NumaNode)->note(),
                 QString("n/a: this machine has one NUMA node."));

        // Another model, another machine.
        m_source->routerTable = true;
        m_source->numaNodes = 2;
        m_panel->setSource(m_source.get());
        QCOMPARE(router->note(), QString());
        QTest::keyClick(router->segment(), Qt::Key_Right);
        QCOMPARE(requested(KnobId::RouterMode), int64_t(RouterMode::Table));
        QVERIFY(row(KnobId::NumaNode)->slider()->isEnabled());
        QVERIFY(source->select()->model()->index(table, 0).flags() & Qt::ItemIsEnabled);
    }

    // A config file requests it nevertheless: the reason is shown once.
    void aRefusedChoiceThatIsRequestedSaysWhyOnce() {
        m_source->setKnob(KnobId::RouterMode, 1);
        m_source->limitEffective(KnobId::RouterMode, 0, "no router table in this model");
        tick();
        QCOMPARE(m_panel->control(KnobId::RouterMode)->note(),
                 QString("Effective exact: no router table in this model."));
    }

    void typingAppliesOnEnter() {
        NumberField* field = row(KnobId::ExpertCacheSize)->field();
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, "20");
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(20));
        QCOMPARE(row(KnobId::ExpertCacheSize)->value(), int64_t(20));
    }

    void typedNonsenseIsAnErrorAndEscapeRestores() {
        NumberField* field = row(KnobId::ExpertCacheSize)->field();
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, "80");
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
        QVERIFY(field->property("error").toBool());
        tick();  // the error stays while the session goes on
        QVERIFY(field->property("error").toBool());
        QCOMPARE(field->text(), QString("80"));
        QTest::keyClick(field, Qt::Key_Escape);
        QCOMPARE(field->text(), QString("12"));
        QVERIFY(!field->property("error").toBool());
    }

    void dragAppliesLiveAndCountsAsOneChange() {
        Slider* slider = row(KnobId::ExpertCacheSize)->slider();
        const size_t before = m_source->knobCalls.size();
        const int finals = m_source->finalKnobCalls;
        drag(slider, QPoint(int(slider->xOf(12)), 11), QPoint(int(slider->xOf(40)), 11));
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(40));
        QVERIFY(m_source->knobCalls.size() > before);
        // Paced: a drag of five mouse events at once gives at most the first and the last value.
        QVERIFY(m_source->knobCalls.size() - before <= 2);
        QCOMPARE(m_source->finalKnobCalls - finals, 1);  // one change for the session too
        QVERIFY(m_panel->history()->canUndo());
        m_panel->undo();
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
        QVERIFY(!m_panel->history()->canUndo());
        m_panel->redo();
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(40));
    }

    // A snapshot whose states were read before a change would set the control back for a moment.
    void aRequestStaysShownUntilASnapshotKnowsOfIt() {
        const auto before = m_source->snapshot();
        m_panel->request(KnobId::ExpertCacheSize, 40);
        const auto late = m_source->editable();
        late->knobs = before->knobs;
        late->knobsAt = before->knobsAt;
        tick();
        QCOMPARE(m_panel->control(KnobId::ExpertCacheSize)->shownValue(), int64_t(40));
        m_source->limitEffective(KnobId::ExpertCacheSize, 20, "memory for 20 only");
        m_source->editable();
        tick();
        QCOMPARE(m_panel->control(KnobId::ExpertCacheSize)->shownValue(), int64_t(40));
        QVERIFY(m_panel->control(KnobId::ExpertCacheSize)->note().contains("memory for 20 only"));
        m_panel->undo();
    }

    void wheelNeedsTheFocus() {
        Slider* slider = row(KnobId::PrefetchDepth)->slider();
        slider->clearFocus();
        wheel(slider, {100, 11}, 1);
        QCOMPARE(requested(KnobId::PrefetchDepth), int64_t(1));
        slider->setFocus();
        wheel(slider, {100, 11}, 1);
        QCOMPARE(requested(KnobId::PrefetchDepth), int64_t(2));
        wheel(slider, {100, 11}, -1);
        QCOMPARE(requested(KnobId::PrefetchDepth), int64_t(1));
    }

    void keysStepAndReachTheEndsAndTheDefault() {
        Slider* slider = row(KnobId::ExpertCacheSize)->slider();
        slider->setFocus();
        QTest::keyClick(slider, Qt::Key_Right);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(13));
        QTest::keyClick(slider, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(23));
        QTest::keyClick(slider, Qt::Key_End);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(64));
        QTest::keyClick(slider, Qt::Key_Home);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(1));
        QTest::keyClick(slider, Qt::Key_0, Qt::ControlModifier);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(30));
    }

    void resetAppearsOnlyWhenChanged() {
        auto* reset = row(KnobId::ExpertCacheSize)->findChild<IconButton*>();
        QVERIFY(reset->isVisible());
        QTest::mouseClick(reset, Qt::LeftButton);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(30));
        QVERIFY(!reset->isVisible());
    }

    void segmentsAndListsChoose() {
        Segment* policy = m_panel->control(KnobId::CachePolicy)->segment();
        policy->setFocus();
        QTest::keyClick(policy, Qt::Key_Right);
        QCOMPARE(requested(KnobId::CachePolicy), int64_t(CachePolicyKind::Slru));
        QTest::mouseClick(policy, Qt::LeftButton, {}, QPoint(policy->width() - 8, 12));
        QCOMPARE(requested(KnobId::CachePolicy), int64_t(CachePolicyKind::Lfru));
        Select* source = m_panel->control(KnobId::PrefetchSource)->select();
        QCOMPARE(source->currentText(), QString("next_router"));
        source->setFocus();
        QTest::keyClick(source, Qt::Key_Up);
        QCOMPARE(requested(KnobId::PrefetchSource), int64_t(PrefetchSource::PreviousToken));
    }

    void requestedThatIsNotEffectiveSaysWhy() {
        const auto notes = m_panel->control(KnobId::PrefetchThreads)->findChildren<Note*>();
        QCOMPARE(notes.size(), 1);
        QCOMPARE(notes[0]->text(),
                 QString("Effective 2: the process may use 10 cores, 8 of them compute."));
        m_source->limitEffective(KnobId::PrefetchThreads, 4, "");
        tick();
        QVERIFY(!notes[0]->text().contains("Effective"));
    }

    void linkLimitReadsNoneAtZero() {
        QCOMPARE(row(KnobId::LinkLimit)->field()->text(), QString("none"));
        NumberField* field = row(KnobId::LinkLimit)->field();
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, "25");
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(requested(KnobId::LinkLimit), int64_t(25));
        // The wide range is logarithmic: 25 of 100,000 stands well clear of the low end.
        QVERIFY(row(KnobId::LinkLimit)->slider()->xOf(25) > 40);
        field->selectAll();
        QTest::keyClicks(field, "none");
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(requested(KnobId::LinkLimit), int64_t(0));
    }

    // An Undo of what nobody asked for would do nothing.
    void theEnginesOwnChangesAreNotOffered() {
        auto* list = m_panel->findChild<ChangesList*>();
        const int before = list->shown();
        const auto undos = list->findChildren<Button*>();
        m_source->editable()->markers.push_back({.t = 88,
                                                 .label = "Prefetch source next_router \u2192 off",
                                                 .kind = Marker::Kind::Knob,
                                                 .knob = KnobId::PrefetchSource,
                                                 .from = 3,
                                                 .to = 0,
                                                 .undoTo = 3,
                                                 .automatic = true});
        tick();
        QCOMPARE(list->shown(), before);
        QCOMPARE(list->findChildren<Button*>(), undos);
    }
    // A reason is read whole, on as many lines as it takes.
    void aLongReasonGetsItsLines() {
        auto* list = m_panel->findChild<ChangesList*>();
        const int before = list->height();
        auto& marker = m_source->editable()->markers.emplace_back();
        marker = {.t = 89,
                  .label = "Cache size 12 \u2192 13",
                  .kind = Marker::Kind::Knob,
                  .knob = KnobId::ExpertCacheSize,
                  .from = 12,
                  .to = 13,
                  .undoTo = 12,
                  .effect = Marker::Effect::NotMeasured};
        marker.reason =
            "load changed: tokens before it came at different numbers of requests, 24 are needed "
            "at one";
        m_panel->tick(m_source->snapshot());
        QVERIFY(list->height() > before);
        // So does a change whose values are long.
        const int reason = list->height();
        m_source->editable()->markers.push_back({.t = 89.5,
                                                 .label = "",
                                                 .kind = Marker::Kind::Knob,
                                                 .knob = KnobId::PrefetchSource,
                                                 .from = 3,
                                                 .to = 2,
                                                 .undoTo = 3});
        m_panel->tick(m_source->snapshot());
        QVERIFY(list->height() > reason);
    }
    void changesListUndoesAChange() {
        auto* list = m_panel->findChild<ChangesList*>();
        QCOMPARE(list->shown(), 2);
        auto* undo = list->findChildren<Button*>().first();
        QTest::mouseClick(undo, Qt::LeftButton);
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(8));
    }

    // Undo goes in the steps of the list: steps of one knob that follow each other at once are one,
    // and what was reset together comes back together.
    void undoHasTheGrainOfTheList() {
        KnobHistory history;
        const KnobId cache = KnobId::ExpertCacheSize, depth = KnobId::PrefetchDepth;
        history.push({cache, 64, 63}, 10.0, true);
        history.push({cache, 63, 62}, 10.4, true);
        QCOMPARE(history.undo().front().from, int64_t(64));
        QVERIFY(!history.canUndo());
        QCOMPARE(history.redo().front().to, int64_t(62));
        history.push({cache, 62, 61}, 20, true);  // much later: another change
        QCOMPARE(history.next()->front().from, int64_t(62));
        history.push({cache, 61, 50}, 20.2, false);  // a drag is a change of its own
        QCOMPARE(history.next()->front().from, int64_t(61));
        history.push({depth, 1, 2}, 20.3, true);  // another knob
        QCOMPARE(history.next()->front().knob, depth);
        history.push({depth, 2, 1}, 20.4, true);  // back where it was: no change at all
        QCOMPARE(history.next()->front().knob, cache);

        Slider* slider = row(cache)->slider();
        slider->setFocus();
        wheel(slider, {100, 11}, 1);
        wheel(slider, {100, 11}, 1);
        QCOMPARE(requested(cache), int64_t(14));
        m_panel->undo();
        QCOMPARE(requested(cache), int64_t(12));
        QVERIFY(!m_panel->history()->canUndo());
        m_panel->request(KnobId::CachePolicy, 2);
        m_panel->resetAll();
        QCOMPARE(requested(cache), int64_t(30));
        QCOMPARE(requested(KnobId::CachePolicy), int64_t(0));
        m_panel->undo();
        QCOMPARE(requested(cache), int64_t(12));
        QCOMPARE(requested(KnobId::CachePolicy), int64_t(2));
    }

    // What the engine says under a knob comes and goes while a reply streams: nothing moves.
    void knobsStayUnderTheHand() {
        const auto top = [&](KnobId id) {
            return m_panel->control(id)->mapTo(m_panel.get(), QPoint()).y();
        };
        const auto settle = [&] {
            tick();
            QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
            QCoreApplication::processEvents();
        };
        settle();
        const int before = top(KnobId::ComputeThreads);
        m_source->editable()->store.prefetchIssued = 75;
        settle();
        QCOMPARE(top(KnobId::ComputeThreads), before);
        m_source->limitEffective(KnobId::PrefetchSource, 0,
                                 "backed off: 72 % late or wasted in the last 256");
        settle();
        QVERIFY(m_panel->control(KnobId::PrefetchSource)->note().contains("backed off"));
        QCOMPARE(top(KnobId::ComputeThreads), before);
        m_source->limitEffective(KnobId::PrefetchSource, requested(KnobId::PrefetchSource), "");
        m_source->editable()->store.prefetchIssued = 0;
        settle();
        QCOMPARE(top(KnobId::ComputeThreads), before);
    }

    // A config that asks for what needs a reload, or for what another model has, says so.
    void anImportSaysWhatItDidNotApply() {
        const auto load = [&](const char* json) {
            const QString path = m_sandbox->path("other.json");
            QFile file(path);
            if (!file.open(QIODevice::WriteOnly)) return std::optional<Applied>();
            file.write(json);
            file.close();
            QString error;
            return m_panel->loadConfig(path, &error);
        };
        auto outcome = load(R"({"schema": 1, "model": "Wren-14B-A1.3B",
                               "knobs": {"expert_cache_size": 17, "context_length": 512}})");
        QVERIFY(outcome);
        QCOMPARE(outcome->text(), QString("1 of 2 applied; context length needs a reload"));
        QVERIFY(outcome->model.isEmpty());
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(17));
        QCOMPARE(requested(KnobId::ContextLength), int64_t(512));  // the load page begins with it
        outcome = load(R"({"schema": 1, "model": "Finch", "knobs": {"expert_cache_size": 900}})");
        QVERIFY(outcome);
        QCOMPARE(outcome->model, QString("Finch"));
        QCOMPARE(outcome->text(), QString("0 of 1 applied; out of range: cache size 900 (1..64)"));
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(17));
        m_panel->undo();  // an import is one step
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
    }

    // A profile has the name that was given, whatever a file may be called.
    void profilesKeepTheirNames() {
        const QString name = QString::fromUtf8("my profile ü/1: 50 %");
        QSignalSpy done(m_panel.get(), &KnobsPanel::done);
        m_panel->saveProfile(name);
        QCOMPARE(m_panel->profiles()->names(), QStringList{name});
        QCOMPARE(done.size(), 1);
        QCOMPARE(done[0][1].toString(), name);
        auto* box = m_panel->findChild<Select*>();
        QCOMPARE(box->currentText(), name);
        m_panel->request(KnobId::ExpertCacheSize, 9);
        QCOMPARE(m_panel->profileDifferences(), QStringList{"Cache size 9, in the profile 12"});
        m_panel->renameProfile(name, ".desk");
        QCOMPARE(m_panel->profiles()->names(), QStringList{".desk"});
        QCOMPARE(box->currentText(), QString(".desk"));
        QCOMPARE(Profiles().names(), QStringList{".desk"});
        m_panel->saveProfile("other");
        QSignalSpy failed(m_panel.get(), &KnobsPanel::failed);
        m_panel->renameProfile("other", ".desk");
        QCOMPARE(failed.size(), 1);
        for (const QString& each : m_panel->profiles()->names())
            QVERIFY(m_panel->profiles()->remove(each).ok());
    }

    // A dense model has the knobs that do something, and one line for the rest.
    void aDenseModelHasNoKnobsOfExperts() {
        m_source->setDense();
        m_panel->setSource(m_source.get());
        for (const KnobId id : {KnobId::ExpertCacheSize, KnobId::PrefetchDepth, KnobId::LinkLimit,
                                KnobId::RouterMode})
            QVERIFY2(!m_panel->control(id)->isVisible(), knobRow(id).name);
        QVERIFY(m_panel->control(KnobId::ComputeThreads)->isVisible());
        int lines = 0;
        for (const QLabel* label : m_panel->findChildren<QLabel*>())
            lines += label->isVisible() && label->text().startsWith("This model is dense");
        QCOMPARE(lines, 1);
    }

    void configRoundTrip() {
        const QString path = m_sandbox->path("config.json");
        m_panel->request(KnobId::ExpertCacheSize, 17);
        m_panel->request(KnobId::CachePolicy, 2);
        QString error;
        QVERIFY2(m_panel->saveConfig(path, &error), qPrintable(error));
        const QJsonObject knobs =
            QJsonDocument::fromJson(m_panel->configJson().toUtf8())["knobs"].toObject();
        QCOMPARE(knobs["expert_cache_size"].toInt(), 17);
        QCOMPARE(knobs["cache_policy"].toString(), QString("lfru"));
        m_panel->resetAll();
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(30));
        QVERIFY(m_panel->loadConfig(path, &error));
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(17));
        QCOMPARE(requested(KnobId::CachePolicy), int64_t(2));
        QFile bad(m_sandbox->path("bad.json"));
        QVERIFY(bad.open(QIODevice::WriteOnly));
        bad.write(R"({"schema": 1, "knobs": {"cache_sise": 3}})");
        bad.close();
        QVERIFY(!m_panel->loadConfig(bad.fileName(), &error));
        QVERIFY2(error.contains("cache_sise"), qPrintable(error));
    }

    void profilesAreSavedAndMarkedAsChanged() {
        m_panel->saveProfile("desk-16gb");
        QCOMPARE(m_panel->profiles()->names(), QStringList{"desk-16gb"});
        QCOMPARE(m_panel->profiles()->current(), QString("desk-16gb"));
        m_panel->request(KnobId::ExpertCacheSize, 9);
        m_panel->applyProfile("desk-16gb");
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
        QVERIFY(m_panel->profiles()->remove("desk-16gb").ok());
        QVERIFY(m_panel->profiles()->names().isEmpty());
        QSignalSpy failed(m_panel.get(), &KnobsPanel::failed);
        m_panel->applyProfile("missing");
        QCOMPARE(failed.size(), 1);
    }

    void commandLineNamesWhatDiffers() {
        QCOMPARE(m_panel->commandLine(),
                 QString("colibri chat wren-14b-a1.3b-q4_0 --expert-cache-size 12 "
                         "--prefetch-threads 4"));
    }

    void withoutAModelThereAreNoKnobs() {
        m_source->setLoaded(false);
        m_panel->setSource(m_source.get());
        QVERIFY(!m_panel->control(KnobId::ExpertCacheSize)->isVisible());
        QVERIFY(!m_panel->history()->canUndo());
        m_panel->request(KnobId::ExpertCacheSize, 5);  // nothing to change, nothing breaks
        QCOMPARE(requested(KnobId::ExpertCacheSize), int64_t(12));
    }
};

QTEST_MAIN(TestKnobs)
#include "test_workbench_knobs.moc"
