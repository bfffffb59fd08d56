// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/c.md, in C99.
// [model]
#include <sluice/c/sluice.h>

#include <math.h>
#include <stdio.h>

enum { stop, time_, flies, fruit, like, a, banana, words };
static char const* const word[words] = {".", "time", "flies", "fruit", "like", "a", "banana"};
static double const follows[words][words] = {  // the probability of a word after another
    [stop] = {[time_] = 0.6, [fruit] = 0.4},
    [time_] = {[flies] = 1},
    [fruit] = {[flies] = 1},
    [flies] = {[like] = 0.7, [stop] = 0.3},
    [like] = {[a] = 1},
    [a] = {[banana] = 1},
    [banana] = {[stop] = 1}};

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;  // no state: the last word is enough
}

static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  (void)user;
  for (size_t i = 0; i < count; ++i)
    for (int next = 0; next < words; ++next) *scores++ = (float)log(follows[rows[i].tokens[rows[i].count - 1]][next]);
  return 0;
}
// [/model]

// [main]
static int say(sluice_status status) {
  if (status != SLUICE_OK) fprintf(stderr, "%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

int main(void) {
  sluice_token const eos = stop;
  sluice_model_functions const functions = {.size = sizeof functions,
                                            .vocabulary = words,
                                            .bos = stop,
                                            .eos = &eos,
                                            .eos_count = 1,
                                            .log_probs = 1,
                                            .start = start,
                                            .step = step};
  sluice_model* model = NULL;
  sluice_search* search = NULL;
  sluice_results* results = NULL;
  sluice_request const request = {.size = sizeof request, .source = NULL};  // no input: it just generates text
  sluice_token const wanted[] = {fruit};
  if (!say(sluice_model_create(&functions, &model)) || !say(sluice_search_create("beam", &search)) ||
      !say(sluice_search_set(search, "width", 3)) || !say(sluice_search_set(search, "n_best", 2)) ||
      !say(sluice_search_demand(search, wanted, 1)) || !say(sluice_decode(model, search, &request, 1, 0, &results)))
    return 1;

  sluice_result const* const result = sluice_results_at(results, 0);
  for (size_t i = 0; i < result->count; ++i) {
    sluice_hypothesis const* const found = &result->hypotheses[i];
    printf("%.2f", exp(found->log_prob));
    for (size_t t = 0; t < found->count; ++t) printf(" %s", word[found->tokens[t]]);
    printf("\n");
  }
  sluice_results_free(results);
  sluice_search_free(search);
  sluice_model_free(model);
  return 0;
}
// [/main]
