/* SPDX-License-Identifier: Apache-2.0
 * Scores a token sequence: for every position the most likely next token and its logit.
 *   score MODEL ID...
 */
#include <colibri.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL ID...\n", argv[0]);
        return 2;
    }
    colibri_config_t config = {.model_path = argv[1], .device = COLIBRI_DEVICE_CPU};
    colibri_context_t *ctx = colibri_init(config);
    if (!ctx) {
        fprintf(stderr, "%s\n", colibri_last_error());
        return 1;
    }
    colibri_model_info_t model;
    if (colibri_get_model_info(ctx, &model) != COLIBRI_SUCCESS) return 1;

    size_t n = (size_t)(argc - 2), bytes = n * (size_t)model.vocab_size * sizeof(float);
    int32_t *ids = malloc(n * sizeof *ids);
    float *logits = malloc(bytes);
    if (!ids || !logits) return 1;
    for (size_t i = 0; i < n; ++i) ids[i] = (int32_t)strtol(argv[i + 2], NULL, 10);

    colibri_status_t status = colibri_dispatch(ctx, ids, n, logits, bytes);
    if (status != COLIBRI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", colibri_status_string(status), colibri_last_error());
    } else {
        for (size_t i = 0; i < n; ++i) {
            const float *row = logits + i * (size_t)model.vocab_size;
            int best = 0;
            for (int v = 1; v < model.vocab_size; ++v) {
                if (row[v] > row[best]) best = v;
            }
            printf("%d %.6f\n", best, row[best]);
        }
    }
    free(logits);
    free(ids);
    colibri_free(ctx);
    return status == COLIBRI_SUCCESS ? 0 : 1;
}
