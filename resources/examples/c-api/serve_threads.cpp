// SPDX-License-Identifier: Apache-2.0
// Several threads score sequences at once; the engine computes them in common batches.
//   serve_threads MODEL THREADS
#include <colibri.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s MODEL THREADS\n", argv[0]);
        return 2;
    }
    const std::unique_ptr<colibri_context_t, decltype(&colibri_free)> ctx(
        colibri_init({.model_path = argv[1], .device = COLIBRI_DEVICE_CPU, .context_length = 64}),
        &colibri_free);
    if (!ctx) {
        std::fprintf(stderr, "%s\n", colibri_last_error());
        return 1;
    }
    colibri_model_info_t model;
    if (colibri_get_model_info(ctx.get(), &model) != COLIBRI_SUCCESS) return 1;

    std::vector<colibri_status_t> statuses(size_t(std::atoi(argv[2])), COLIBRI_ERROR_INTERNAL);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < statuses.size(); ++t) {
        threads.emplace_back([&, t] {
            const std::vector<int32_t> ids = {1, 2, int32_t(t % size_t(model.vocab_size))};
            std::vector<float> logits(ids.size() * size_t(model.vocab_size));
            statuses[t] = colibri_dispatch(ctx.get(), ids.data(), ids.size(), logits.data(),
                                           logits.size() * sizeof(float));
            if (statuses[t] != COLIBRI_SUCCESS) {
                std::fprintf(stderr, "%s: %s\n", colibri_status_string(statuses[t]),
                             colibri_last_error());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const colibri_status_t status : statuses) {
        if (status != COLIBRI_SUCCESS) return 1;
    }
    colibri_stats_t stats;
    if (colibri_get_stats(ctx.get(), &stats) != COLIBRI_SUCCESS) return 1;
    std::printf("%llu dispatches in %llu batches, %.1f sequences each\n",
                static_cast<unsigned long long>(stats.dispatches),
                static_cast<unsigned long long>(stats.batches),
                double(stats.batch_dispatches) / double(stats.batches));
}
