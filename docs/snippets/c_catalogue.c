// SPDX-License-Identifier: Apache-2.0
// The catalogue and the guesses of docs/c.md, in C99: a model that counts, decoded in blocks.
#include <sluice/c/sluice.h>

#include <stdio.h>

enum { stop, vocabulary = 10 };

static int calls = 0;

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}

// [step]
static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  (void)user;
  ++calls;
  for (size_t i = 0; i < count; ++i)  // a line after each of the last tokens of a row
    for (size_t k = rows[i].count - (size_t)rows[i].lines; k < rows[i].count; ++k)
      for (int next = 0; next < vocabulary; ++next)
        *scores++ = next == rows[i].tokens[k] % 3 + 1 ? 3.0f : (float)next / 9;
  return 0;
}
// [/step]

static int say(sluice_status status) {
  if (status != SLUICE_OK) printf("%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

static int show(sluice_model* model, sluice_search* search) {
  sluice_request const request = {.size = sizeof request, .source = NULL};
  sluice_results* results = NULL;
  calls = 0;
  if (!say(sluice_decode(model, search, &request, 1, 0, &results))) return 0;
  sluice_hypothesis const* const found = sluice_results_at(results, 0)->hypotheses;
  for (size_t t = 0; t < found->count; ++t) printf("%d ", found->tokens[t]);
  printf("in %d calls\n", calls);
  sluice_results_free(results);
  return 1;
}

int main(void) {
  // [model]
  sluice_token const eos = stop;
  sluice_model_functions const functions = {.size = sizeof functions,
                                            .vocabulary = vocabulary,
                                            .bos = stop,
                                            .eos = &eos,
                                            .eos_count = 1,
                                            .abilities = SLUICE_BLOCKS | SLUICE_ROLL_BACK,
                                            .lookup = 3,  // or your own guesses: .propose
                                            .start = start,
                                            .step = step};
  // [/model]
  sluice_model* model = NULL;
  sluice_search *greedy = NULL, *blocks = NULL;
  if (!say(sluice_model_create(&functions, &model)) || !say(sluice_search_create("greedy", &greedy)) ||
      !say(sluice_search_set(greedy, "max_length", 24)))
    return 1;

  // [blocks]
  if (!show(model, greedy)) return 1;
  if (!say(sluice_search_create("blockwise", &blocks)) || !say(sluice_search_set(blocks, "block", 8)) ||
      !say(sluice_search_set(blocks, "max_length", 24)) || !show(model, blocks))
    return 1;
  // [/blocks]

  // [catalogue]
  sluice_token const items[] = {1, 2, 2, 4, 1, 3, 3, 9, 9};
  size_t const lengths[] = {3, 4, 2};  // 1 2 2, 4 1 3 3 and 9 9
  sluice_catalogue* catalogue = NULL;
  if (!say(sluice_catalogue_create(items, lengths, 3, &catalogue)) || !say(sluice_search_choose(greedy, catalogue)) ||
      !show(model, greedy))
    return 1;
  // [/catalogue]
  sluice_catalogue_free(catalogue);
  sluice_search_free(greedy), sluice_search_free(blocks);
  sluice_model_free(model);
  return 0;
}
