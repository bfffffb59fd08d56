// SPDX-License-Identifier: Apache-2.0
// The watermark and the suffix cache of docs/c.md, in C99: a model that babbles.
#include <sluice/c/sluice.h>

#include <stdio.h>

enum { letters = 26, length = 120 };

static int calls = 0;

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}

static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  (void)user;
  ++calls;
  for (size_t i = 0; i < count; ++i)
    for (size_t k = rows[i].count - (size_t)rows[i].lines; k < rows[i].count; ++k)
      for (int next = 0; next < letters; ++next)
        *scores++ = (float)((rows[i].tokens[k] + 3) * (next + 5) * 7 % 29) / 10;
  return 0;
}

static int say(sluice_status status) {
  if (status != SLUICE_OK) printf("%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

static int decode(sluice_model* model, sluice_search* search, sluice_results** results) {
  sluice_request const request = {.size = sizeof request, .source = NULL};
  calls = 0;
  return say(sluice_decode(model, search, &request, 1, 0, results));
}

int main(void) {
  sluice_model_functions const functions = {.size = sizeof functions,
                                            .vocabulary = letters,
                                            .abilities = SLUICE_BLOCKS | SLUICE_ROLL_BACK,
                                            .start = start,
                                            .step = step};
  sluice_model* model = NULL;
  sluice_search *sample = NULL, *blocks = NULL;
  sluice_results* results = NULL;
  if (!say(sluice_model_create(&functions, &model)) || !say(sluice_search_create("sample", &sample)) ||
      !say(sluice_search_set(sample, "max_length", length)) || !say(sluice_search_create("blockwise", &blocks)) ||
      !say(sluice_search_set(blocks, "block", 16)) || !say(sluice_search_set(blocks, "max_length", length)))
    return 1;

  // [mark]
  sluice_watermark_key* key = NULL;
  sluice_watermark* watermark = NULL;
  uint64_t const word = 2026;  // or of a file: sluice_watermark_key_open("secret.key", &key)
  if (!say(sluice_watermark_key_create(&word, 1, &key)) || !say(sluice_watermark_create("gumbel", key, &watermark)) ||
      !say(sluice_watermark_set(watermark, "width", 3)) || !say(sluice_search_mark(sample, watermark)) ||
      !decode(model, sample, &results))
    return 1;

  sluice_hypothesis const* const text = sluice_results_at(results, 0)->hypotheses;
  sluice_watermark_detection const* found = NULL;
  if (!say(sluice_detect_watermark(watermark, text->tokens, text->count, NULL, &found))) return 1;
  printf("score %.0f of %d tokens, p %.2g\n", found->score, found->scored, found->p_value);
  sluice_watermark_detection_free(found);
  // [/mark]
  sluice_results_free(results);

  // [remember]
  sluice_suffix_cache* cache = NULL;
  sluice_model* remembering = NULL;
  sluice_suffix_options const options = {.size = sizeof options, .not_own = 1};  // not from the output itself
  if (!say(sluice_suffix_cache_create(0, 0, &cache)) ||
      !say(
          sluice_model_remember(model, cache, &options, &remembering)))  // the model, with guesses from earlier outputs
    return 1;
  for (int i = 0; i < 2; ++i) {
    if (!decode(remembering, blocks, &results)) return 1;
    printf("%d tokens in %d calls\n", (int)sluice_results_at(results, 0)->hypotheses->count, calls);
    sluice_results_free(results);
  }
  // [/remember]
  sluice_model_free(remembering), sluice_suffix_cache_free(cache);
  sluice_watermark_free(watermark), sluice_watermark_key_free(key);
  sluice_search_free(sample), sluice_search_free(blocks);
  sluice_model_free(model);
  return 0;
}
