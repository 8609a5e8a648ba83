// SPDX-License-Identifier: GPL-3.0-or-later
// The engine on a machine with at least two NUMA nodes: NUMA knobs that change while it computes
// move experts and threads, as reported by the kernel, and do not change the text. tests/numa-vm
// runs this on an emulated machine.
#include <QtTest>

#include "engine/base/machine.h"
#include "engine/store/numa.h"
#include "tests/engine/runtime/run_fixture.h"
#include "tests/engine/store/two_nodes.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr int kPatienceMs = 60'000;  // an emulated machine is slow

constexpr int kTokens = 24;

// The processors of a node, "2-3"; empty if they are not one range.
std::string coreList(int node) {
    const std::vector<int> cores = nodeProcessors(node);
    if (cores.empty() || cores.back() - cores.front() + 1 != int(cores.size())) return {};
    if (cores.size() == 1) return std::to_string(cores[0]);
    return std::to_string(cores.front()) + "-" + std::to_string(cores.back());
}

}  // namespace

class TestTwoNodesRun : public QObject {
    Q_OBJECT

    const std::filesystem::path m_demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
    std::vector<int32_t> m_prompt, m_expected;
    std::multiset<std::string> m_anywhere;

    std::vector<int32_t> reply(Engine& engine) const { return generate(engine, m_prompt, kTokens); }
    // Effective values with reasons: "bind, node 1" if there are no reasons.
    static QString effectiveState(const Engine& engine) {
        const KnobState mode = engine.knobState(KnobId::NumaMode);
        const KnobState node = engine.knobState(KnobId::NumaNode);
        const auto text = [](KnobId id, const KnobState& state) {
            std::string s = knobValueText(knobRow(id), state.effective);
            if (!state.reason.empty()) s += " (" + state.reason + ")";
            return QString::fromStdString(s);
        };
        return text(KnobId::NumaMode, mode) + ", node " + text(KnobId::NumaNode, node);
    }
    static QString placeText(NumaMode mode, int node) {
        return QString("%1, node %2")
            .arg(QString::fromStdString(knobValueText(knobRow(KnobId::NumaMode), int64_t(mode))))
            .arg(node);
    }

private slots:
    void initTestCase() {
        if (numaNodes() < 2) QSKIP(numaNodesText(numaNodes()).c_str());
        const auto numa = Numa::system();
        if (!numa->refusal().empty()) QSKIP(numa->refusal().c_str());
        if (coreList(0).empty() || coreList(1).empty())
            QSKIP("a node's processors are no single range");
        const auto engine = load(m_demo, {{KnobId::ComputeThreads, 2}});
        m_prompt = somePrompt(20, engine->info().config.vocabSize);
        m_expected = reply(*engine);
        QCOMPARE(m_expected.size(), size_t(kTokens));
        m_anywhere = coresOfThreads("compute-");
        QCOMPARE(m_anywhere.size(), size_t(1));
    }

    void fromTheStart() {
        for (const NumaMode mode : {NumaMode::Bind, NumaMode::Interleave})
            for (const int node : {0, 1}) {
                const auto engine = load(m_demo, {{KnobId::ComputeThreads, 2},
                                                  {KnobId::NumaMode, int64_t(mode)},
                                                  {KnobId::NumaNode, node}});
                QCOMPARE(reply(*engine), m_expected);
                QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(mode, node),
                                          kPatienceMs);
                const auto wanted = mode == NumaMode::Bind
                                        ? std::multiset<std::string>{coreList(node)}
                                        : m_anywhere;
                QCOMPARE(coresOfThreads("compute-"), wanted);
                QCOMPARE(coresOfThreads("scheduler"), wanted);
            }
    }

    void turnedWhileExpertsAreInMemory() {
        const auto engine = load(m_demo, {{KnobId::ComputeThreads, 2}});
        QCOMPARE(reply(*engine), m_expected);
        // Both in sequence, as from a configuration file or a slider.
        engine->setKnob(KnobId::NumaMode, int64_t(NumaMode::Bind));
        engine->setKnob(KnobId::NumaNode, 1);
        QCOMPARE(reply(*engine), m_expected);
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Bind, 1),
                                  kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(coresOfThreads("compute-"),
                                  std::multiset<std::string>{coreList(1)}, kPatienceMs);
        engine->applyKnob(KnobId::NumaMode, int64_t(NumaMode::Off));
        engine->applyKnob(KnobId::NumaMode, int64_t(NumaMode::Bind));
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Bind, 1),
                                  kPatienceMs);
        // Only the node changes. The mode stays, even while slots are being moved.
        engine->applyKnob(KnobId::NumaNode, 0);
        engine->applyKnob(KnobId::NumaNode, 1);
        engine->applyKnob(KnobId::NumaNode, 0);
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Bind, 0),
                                  kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(coresOfThreads("compute-"),
                                  std::multiset<std::string>{coreList(0)}, kPatienceMs);
        QCOMPARE(reply(*engine), m_expected);
        engine->applyKnob(KnobId::NumaMode, int64_t(NumaMode::Interleave));
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Interleave, 0),
                                  kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(coresOfThreads("compute-"), m_anywhere, kPatienceMs);
        QCOMPARE(reply(*engine), m_expected);
        engine->applyKnob(KnobId::NumaMode, int64_t(NumaMode::Off));
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Off, 0),
                                  kPatienceMs);
        QCOMPARE(reply(*engine), m_expected);
    }

    // Compute threads avoid the cores of prefetch threads, on the node and elsewhere.
    void prefetchThreadsHaveTheirCores() {
        const int most = logicalCpus() - 1;
        const auto engine =
            load(m_demo, {{KnobId::ComputeThreads, most - 1}, {KnobId::PrefetchThreads, 1}});
        engine->setPrefetchThreadCore(0, most);
        QCOMPARE(engine->store().prefetchThreadCore(0).effective, int64_t(most));
        QCOMPARE(coresOfThreads("prefetch-"), std::multiset<std::string>{std::to_string(most)});
        QCOMPARE(reply(*engine), m_expected);
        const std::string others = "0-" + std::to_string(most - 1);
        for (const std::string& list : coresOfThreads("compute-"))
            QCOMPARE(QString::fromStdString(list), QString::fromStdString(others));
        // A thread that starts later may run anywhere, although the thread that starts it may not.
        engine->applyKnob(KnobId::PrefetchThreads, 2);
        QCOMPARE(coresOfThreads("prefetch-").count(*m_anywhere.begin()), size_t(1));
        engine->setPrefetchThreadCore(0, -1);
        QCOMPARE(reply(*engine), m_expected);
        for (const char* name : {"compute-", "prefetch-", "scheduler"})
            for (const std::string& list : coresOfThreads(name))
                QCOMPARE(QString::fromStdString(list), QString::fromStdString(*m_anywhere.begin()));
    }

    // If the node has fewer cores than threads, the threads stay where they are.
    void tooManyThreadsForANode() {
        const int all = logicalCpus();
        const auto engine = load(m_demo, {{KnobId::ComputeThreads, all},
                                          {KnobId::NumaMode, int64_t(NumaMode::Bind)},
                                          {KnobId::NumaNode, 1}});
        QCOMPARE(reply(*engine), m_expected);
        QTRY_COMPARE_WITH_TIMEOUT(effectiveState(*engine), placeText(NumaMode::Bind, 1),
                                  kPatienceMs);
        for (const std::string& list : coresOfThreads("compute-"))
            QCOMPARE(QString::fromStdString(list), QString::fromStdString(*m_anywhere.begin()));
        // Fewer threads move to the node.
        engine->applyKnob(KnobId::ComputeThreads, 2);
        QTRY_COMPARE_WITH_TIMEOUT(coresOfThreads("compute-"),
                                  std::multiset<std::string>{coreList(1)}, kPatienceMs);
    }
};

QTEST_GUILESS_MAIN(TestTwoNodesRun)
#include "test_two_nodes_run.moc"
