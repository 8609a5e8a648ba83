// SPDX-License-Identifier: GPL-3.0-or-later
// The C functions, used only through colibri.h: results, argument checks, concurrent dispatches,
// knobs.
#include <sys/mman.h>

#include <QTest>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/base/machine.h"
#include "engine/include/colibri.h"
#include "tests/engine/runtime/run_fixture.h"

using colibri::numaNodes;
using namespace colibri::test;

namespace {

using Context = std::unique_ptr<colibri_context_t, decltype(&colibri_free)>;

Context open(colibri_config_t config) {
    return {colibri_init(config), &colibri_free};
}

struct Scored {
    colibri_status_t status;
    std::vector<float> logits;
};

Scored score(colibri_context_t* ctx, const std::vector<int32_t>& ids, size_t vocab) {
    Scored out{COLIBRI_SUCCESS, std::vector<float>(ids.size() * vocab)};
    out.status = colibri_dispatch(ctx, ids.data(), ids.size(), out.logits.data(),
                                  out.logits.size() * sizeof(float));
    return out;
}

bool lastErrorHas(const char* text) {
    return std::string(colibri_last_error()).find(text) != std::string::npos;
}

}  // namespace

class TestCApi : public QObject {
    Q_OBJECT

    std::string m_model;
    static constexpr size_t kVocab = 300;

private slots:
    void initTestCase() { m_model = randomModel().string(); }

    void dispatchGivesTheLogitsOfEveryPosition() {
        // Longer than one chunk, and than the number of rows scored in one step.
        const std::vector<int32_t> ids = somePrompt(700, kVocab);
        const auto engine = load(m_model);
        const auto expected = engine->logits(ids);
        QVERIFY(expected.ok());
        const Context ctx = open({.model_path = m_model.c_str()});
        QVERIFY2(ctx, colibri_last_error());
        const Scored got = score(ctx.get(), ids, kVocab);
        QCOMPARE(got.status, COLIBRI_SUCCESS);
        for (size_t i = 0; i < ids.size(); ++i) {
            QVERIFY(std::memcmp(got.logits.data() + i * kVocab, expected->logits[i].data(),
                                kVocab * sizeof(float)) == 0);
        }
    }

    void concurrentDispatchesShareBatchesAndChangeNothing() {
        const Context ctx = open({.model_path = m_model.c_str(), .expert_cache_size = 2});
        QVERIFY2(ctx, colibri_last_error());
        constexpr size_t kThreads = 8, kRounds = 6;
        std::vector<std::vector<int32_t>> ids;
        std::vector<Scored> alone;
        for (size_t t = 0; t < kThreads; ++t) {
            ids.push_back(somePrompt(int(5 + 9 * t), kVocab, t + 1));
            alone.push_back(score(ctx.get(), ids.back(), kVocab));
            QCOMPARE(alone.back().status, COLIBRI_SUCCESS);
        }
        std::atomic<size_t> wrong{0};
        std::vector<std::thread> threads;
        for (size_t t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (size_t round = 0; round < kRounds; ++round) {
                    const Scored again = score(ctx.get(), ids[t], kVocab);
                    wrong += again.status != COLIBRI_SUCCESS || again.logits != alone[t].logits;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), size_t(0));
        colibri_stats_t stats;
        QCOMPARE(colibri_get_stats(ctx.get(), &stats), COLIBRI_SUCCESS);
        QCOMPARE(stats.dispatches, uint64_t(kThreads * (kRounds + 1)));
        // With eight threads, some dispatch is always waiting while another runs.
        QVERIFY(stats.batch_dispatches > stats.batches);
        QVERIFY(stats.expert_lookups > stats.expert_hits);
        QCOMPARE(stats.expert_cache_size, int64_t(2));
    }

    void wrongArgumentsAreNamed() {
        const Context ctx = open({.model_path = m_model.c_str(), .context_length = 32});
        QVERIFY2(ctx, colibri_last_error());
        std::vector<int32_t> ids = {1, 2, 3};
        std::vector<float> out(ids.size() * kVocab, -1.0f);
        const size_t bytes = out.size() * sizeof(float);
        const auto dispatch = [&](const int32_t* i, size_t n, float* o, size_t b) {
            return colibri_dispatch(ctx.get(), i, n, o, b);
        };
        QCOMPARE(colibri_dispatch(nullptr, ids.data(), 3, out.data(), bytes),
                 COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("ctx"));
        QCOMPARE(dispatch(nullptr, 3, out.data(), bytes), COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("ids"));
        QCOMPARE(dispatch(ids.data(), 3, nullptr, bytes), COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("out"));
        QCOMPARE(dispatch(ids.data(), 0, out.data(), bytes), COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(dispatch(ids.data(), 33, out.data(), size_t(1) << 40),
                 COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("32"));
        QCOMPARE(dispatch(ids.data(), SIZE_MAX / 2, out.data(), SIZE_MAX),
                 COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(dispatch(ids.data(), 3, out.data(), bytes - 1), COLIBRI_ERROR_BUFFER_TOO_SMALL);
        QVERIFY(lastErrorHas("3600"));
        for (const int32_t wrong : {-1, 300}) {
            ids[1] = wrong;
            QCOMPARE(dispatch(ids.data(), 3, out.data(), bytes), COLIBRI_ERROR_INVALID_ARGUMENT);
            QVERIFY(lastErrorHas(std::to_string(wrong).c_str()));
        }
        for (const float v : out) QCOMPARE(v, -1.0f);
        colibri_stats_t stats;
        QCOMPARE(colibri_get_stats(ctx.get(), nullptr), COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(colibri_get_stats(nullptr, &stats), COLIBRI_ERROR_INVALID_ARGUMENT);
        colibri_free(nullptr);
    }

    void nothingIsWrittenBehindTheBuffer() {
        const Context ctx = open({.model_path = m_model.c_str()});
        QVERIFY2(ctx, colibri_last_error());
        // The buffer ends at an inaccessible page.
        const size_t bytes = 4 * kVocab * sizeof(float), page = 4096;
        const size_t mapped = (bytes + page - 1) / page * page;
        auto* block = static_cast<char*>(mmap(nullptr, mapped + page, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        QVERIFY(block != MAP_FAILED);
        QCOMPARE(mprotect(block + mapped, page, PROT_NONE), 0);
        auto* out = reinterpret_cast<float*>(block + mapped - bytes);
        const int32_t ids[] = {1, 2, 3, 4};
        QCOMPARE(colibri_dispatch(ctx.get(), ids, 4, out, bytes), COLIBRI_SUCCESS);
        // A buffer that the process cannot write, such as a device pointer, is an error.
        auto* beyond = reinterpret_cast<float*>(block + mapped);
        QCOMPARE(colibri_dispatch(ctx.get(), ids, 1, beyond, page), COLIBRI_ERROR_UNSUPPORTED);
        QVERIFY(lastErrorHas("no CUDA device"));
        QCOMPARE(colibri_dispatch(ctx.get(), reinterpret_cast<int32_t*>(beyond), 1, out, bytes),
                 COLIBRI_ERROR_UNSUPPORTED);
        munmap(block, mapped + page);
    }

    void wrongBeliefsAboutTheModelNameBothSides() {
        const auto refused = [&](colibri_config_t config, const char* asked, const char* model) {
            config.model_path = m_model.c_str();
            return !open(config) && lastErrorHas(asked) && lastErrorHas(model);
        };
        QVERIFY(refused({.num_experts = 64}, "64", "16"));
        QVERIFY(refused({.top_k = 2}, "2", "4"));
        QVERIFY(refused({.weight_dtype = COLIBRI_DTYPE_BF16}, "bf16", "q8_0"));
        QVERIFY(refused({.device = COLIBRI_DEVICE_GPU, .gpu_id = 3}, "GPU 3", "no CUDA device"));
        QVERIFY(refused({.expert_cache_size = 17}, "17", "1..16"));
        QVERIFY(refused({.expert_cache_size = -1}, "-1", "1..16"));
        QVERIFY(refused({.config_file = "/nowhere.json"}, "/nowhere.json", ""));
        QVERIFY(!open({}) && lastErrorHas("model_path"));
        QVERIFY(!open({.model_path = "/nowhere"}) && lastErrorHas("/nowhere"));
        QVERIFY(open({.model_path = m_model.c_str(),
                      .num_experts = 16,
                      .top_k = 4,
                      .device = COLIBRI_DEVICE_CPU,
                      .weight_dtype = COLIBRI_DTYPE_Q8_0}));
    }

    void modelInfo() {
        const Context ctx = open({.model_path = m_model.c_str(), .context_length = 64});
        colibri_model_info_t info;
        QCOMPARE(colibri_get_model_info(ctx.get(), &info), COLIBRI_SUCCESS);
        QCOMPARE(info.vocab_size, 300);
        QCOMPARE(info.num_experts, 16);
        QCOMPARE(info.top_k, 4);
        QCOMPARE(info.num_moe_layers, 4);
        QCOMPARE(info.weight_dtype, COLIBRI_DTYPE_Q8_0);
        QCOMPARE(info.context_length, int64_t(64));
    }

    void knobsAreInForceWhenTheCallReturns() {
        const Context ctx = open({.model_path = m_model.c_str()});
        QVERIFY2(ctx, colibri_last_error());
        colibri_stats_t stats;
        for (const int size : {3, 9, 1}) {
            QCOMPARE(colibri_set_cache_size(ctx.get(), size), COLIBRI_SUCCESS);
            QCOMPARE(colibri_get_stats(ctx.get(), &stats), COLIBRI_SUCCESS);
            QCOMPARE(stats.expert_cache_size, int64_t(size));
        }
        QCOMPARE(colibri_set_cache_size(ctx.get(), 0), COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("1..16"));
        QCOMPARE(colibri_set_prefetch_threads(ctx.get(), 0), COLIBRI_SUCCESS);
        QCOMPARE(colibri_set_prefetch_threads(ctx.get(), -1), COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(colibri_set_knob(ctx.get(), "cache_policy", "slru"), COLIBRI_SUCCESS);
        QCOMPARE(colibri_set_knob(ctx.get(), "cache_policy", "best"),
                 COLIBRI_ERROR_INVALID_ARGUMENT);
        QVERIFY(lastErrorHas("slru"));
        QCOMPARE(colibri_set_knob(ctx.get(), "context_length", "64"), COLIBRI_ERROR_UNSUPPORTED);
        QCOMPARE(colibri_set_knob(ctx.get(), "speed", "11"), COLIBRI_ERROR_UNSUPPORTED);
        QCOMPARE(colibri_set_knob(ctx.get(), nullptr, "1"), COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(colibri_set_cache_size(nullptr, 4), COLIBRI_ERROR_INVALID_ARGUMENT);
        QCOMPARE(colibri_get_bound_numa_node(ctx.get()), -1);
    }

    // On a machine with two nodes (tests/numa-vm), also while experts are in memory.
    void bindsToANode() {
        const Context ctx = open({.model_path = m_model.c_str()});
        QVERIFY2(ctx, colibri_last_error());
        const std::vector<int32_t> ids = somePrompt(40, kVocab);
        const Scored before = score(ctx.get(), ids, kVocab);
        const bool two = numaNodes() > 1;
        for (const int node : {1, 0, 1}) {
            const colibri_status_t status = colibri_bind_to_numa_node(ctx.get(), node);
            if (node > 0 && !two) QCOMPARE(status, COLIBRI_ERROR_INVALID_ARGUMENT);
            if (two) QCOMPARE(status, COLIBRI_SUCCESS);
            if (two) QTRY_COMPARE(colibri_get_bound_numa_node(ctx.get()), node);
            QVERIFY(score(ctx.get(), ids, kVocab).logits == before.logits);
        }
        QCOMPARE(colibri_bind_to_numa_node(ctx.get(), -1), COLIBRI_SUCCESS);
        QCOMPARE(colibri_get_bound_numa_node(ctx.get()), -1);
        QCOMPARE(colibri_bind_to_numa_node(ctx.get(), 900), COLIBRI_ERROR_INVALID_ARGUMENT);
    }

    void aConfigFileSetsWhatTheFieldsLeave() {
        const auto path = scratchFolder() / "knobs.json";
        std::ofstream(path) << R"({"schema": 1, "knobs": {"expert_cache_size": 5}})";
        colibri_config_t config = {.model_path = m_model.c_str()};
        config.config_file = path.c_str();
        colibri_stats_t stats;
        QCOMPARE(colibri_get_stats(open(config).get(), &stats), COLIBRI_SUCCESS);
        QCOMPARE(stats.expert_cache_size, int64_t(5));
        config.expert_cache_size = 6;
        QCOMPARE(colibri_get_stats(open(config).get(), &stats), COLIBRI_SUCCESS);
        QCOMPARE(stats.expert_cache_size, int64_t(6));
    }

    void aRouterTableIsAFieldAndItsAgreementAStat() {
        // The older format, one table for all layers: experts 0..3 for all tokens.
        const auto path = scratchFolder() / "table.bin";
        std::vector<uint16_t> entries;
        for (size_t i = 0; i < kVocab * 4; ++i) entries.push_back(uint16_t(i % 4));
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(entries.data()),
                   std::streamsize(entries.size() * sizeof(uint16_t)));
        colibri_config_t config = {.model_path = m_model.c_str()};
        const Context plain = open(config);
        config.router_table = path.c_str();
        const Context ctx = open(config);
        QVERIFY2(ctx, colibri_last_error());
        const std::vector<int32_t> ids = somePrompt(20, kVocab);
        const Scored exact = score(ctx.get(), ids, kVocab);
        QVERIFY(exact.logits == score(plain.get(), ids, kVocab).logits);
        colibri_stats_t stats;
        QCOMPARE(colibri_get_stats(ctx.get(), &stats), COLIBRI_SUCCESS);
        QCOMPARE(stats.router_compared, uint64_t(20 * 4 * 4));
        QVERIFY(stats.router_agreed > 0 && stats.router_agreed < stats.router_compared);
        QVERIFY(!stats.router_table_changed);
        QCOMPARE(colibri_set_knob(ctx.get(), "router_mode", "table"), COLIBRI_SUCCESS);
        QVERIFY(exact.logits != score(ctx.get(), ids, kVocab).logits);
        QCOMPARE(colibri_set_knob(plain.get(), "router_mode", "table"), COLIBRI_ERROR_UNSUPPORTED);
        QVERIFY(lastErrorHas("no router table"));
        std::filesystem::resize_file(path, 100);
        QVERIFY(!open(config) && lastErrorHas("table.bin"));
    }

    void errorsBelongToTheirThread() {
        QVERIFY(!open({.model_path = "/here"}));
        std::string other = "?";
        std::thread([&] { other = colibri_last_error(); }).join();
        QCOMPARE(other, std::string());
        QVERIFY(lastErrorHas("/here"));
    }

    void everyStatusHasAName() {
        for (int i = 0; i <= COLIBRI_ERROR_BUFFER_TOO_SMALL; ++i) {
            QVERIFY(std::strncmp(colibri_status_string(colibri_status_t(i)), "COLIBRI_", 8) == 0);
        }
        QVERIFY(colibri_status_string(colibri_status_t(99)));
    }

    void freeEndsWhatRuns() {
        colibri_context_t* ctx = colibri_init({.model_path = m_model.c_str()});
        QVERIFY(ctx);
        const std::vector<int32_t> ids = somePrompt(2000, kVocab);
        // A slow link, so that the dispatch is running when the context is destroyed.
        QCOMPARE(colibri_set_knob(ctx, "link_limit", "1"), COLIBRI_SUCCESS);
        colibri_status_t status = COLIBRI_SUCCESS;
        std::thread running([&] { status = score(ctx, ids, kVocab).status; });
        colibri_stats_t stats{};
        while (stats.batches == 0) {
            QCOMPARE(colibri_get_stats(ctx, &stats), COLIBRI_SUCCESS);
            std::this_thread::yield();
        }
        colibri_free(ctx);
        running.join();
        QCOMPARE(status, COLIBRI_ERROR_CANCELLED);
    }
};

QTEST_GUILESS_MAIN(TestCApi)
#include "test_c_api.moc"
