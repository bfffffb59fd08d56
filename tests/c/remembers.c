/* SPDX-License-Identifier: Apache-2.0 */
#include "remembers.h"

#include "expected.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLIENT "remembers"
#define LAST_ERROR sluice_last_error
#include "check.h"
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_BAD_ARGUMENT && strstr(sluice_last_error(), text) != NULL, #call, __LINE__)

enum { all_abilities = SLUICE_RAGGED | SLUICE_BLOCKS | SLUICE_ROLL_BACK, twice = 24, once = twice / 2 };

static int calls;
static int (*its_step)(void* user, size_t count, sluice_row const* rows, float* scores);
static int counted(void* user, size_t count, sluice_row const* rows, float* scores) {
  ++calls;
  return its_step(user, count, rows, scores);
}

static sluice_model* plain(table* t, int lookup) {
  sluice_model_functions functions = table_functions(t, all_abilities);
  sluice_model* model = NULL;
  its_step = functions.step, functions.step = counted, functions.propose = NULL, functions.lookup = lookup;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  return model;
}
static sluice_search* searching(char const* kind) {
  sluice_search* search = NULL;
  CHECK(sluice_search_create(kind, &search) == SLUICE_OK);
  CHECK(sluice_search_set(search, "max_length", 12) == SLUICE_OK);
  CHECK(sluice_search_set(search, "min_length", 2) == SLUICE_OK);
  if (strcmp(kind, "blockwise") == 0) CHECK(sluice_search_set(search, "block", 5) == SLUICE_OK);
  return search;
}
static sluice_suffix_cache* remembered(void) {
  sluice_suffix_cache* cache = NULL;
  CHECK(sluice_suffix_cache_create(0, 0, &cache) == SLUICE_OK);
  return cache;
}

/* Decodes requests one after another; they are greedy's. Returns how often the model was called. */
static int decoded(sluice_model* model, sluice_search* search, uint64_t const* sources, size_t count, int32_t forget,
                   int32_t* rounds) {
  sluice_request requests[twice];
  sluice_results* results = NULL;
  size_t i;
  for (i = 0; i < count; ++i) {
    requests[i] = sluice_request_init();
    requests[i].source = &sources[i], requests[i].forget = forget;
  }
  calls = 0;
  CHECK(sluice_decode(model, search, requests, count, 1, &results) == SLUICE_OK);
  for (i = 0; i < count; ++i) {
    sluice_result const* const result = sluice_results_at(results, i);
    CHECK(differs(blocks_guessed, sources[i], i, result) == 0);
    if (rounds != NULL) rounds[i] = result->count == 0 ? -1 : (int32_t)result->hypotheses[0].block_count;
  }
  sluice_results_free(results);
  return calls;
}

static void set(sluice_suffix_options* options, int way) {
  static double const least = 0.5;
  if (way == 0) return;
  options->shortest = 2, options->samples = 3, options->factor = 1.5, options->least = &least, options->not_own = 1;
}

/* Of a server. */
typedef struct answered {
  int done, wrong;
} answered;
static void on_done(void* user, sluice_result const* result) {
  answered* const a = user;
  ++a->done;
  a->wrong += differs(blocks_guessed, 40, 0, result);
}

/* A model that repeats itself: guesses from the output so far, or not. */
static int no_start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}
static int turns(void* user, size_t count, sluice_row const* rows, float* scores) {
  size_t i, k;
  int32_t next;
  (void)user;
  ++calls;
  for (i = 0; i < count; ++i)
    for (k = rows[i].count - (size_t)rows[i].lines; k < rows[i].count; ++k)
      for (next = 0; next < table_size; ++next) *scores++ = next == rows[i].tokens[k] % 3 + 1 ? 1.0f : 0.0f;
  return 0;
}
static void own_text(void) {
  sluice_model_functions functions = sluice_model_functions_init();
  sluice_search* const blocks = searching("blockwise");
  sluice_model* model = NULL;
  int not_own;
  functions.vocabulary = table_size, functions.abilities = all_abilities;
  functions.start = no_start, functions.step = turns;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  CHECK(sluice_search_set(blocks, "max_length", 24) == SLUICE_OK);
  for (not_own = 0; not_own < 2; ++not_own) {
    sluice_suffix_cache* const cache = remembered();
    sluice_suffix_options options = sluice_suffix_options_init();
    sluice_model* memory = NULL;
    sluice_results* results = NULL;
    sluice_request const request = sluice_request_init();
    options.not_own = not_own;
    CHECK(sluice_model_remember(model, cache, &options, &memory) == SLUICE_OK);
    calls = 0;
    CHECK(sluice_decode(memory, blocks, &request, 1, 0, &results) == SLUICE_OK);
    CHECK(not_own == 1 ? calls == 24 : calls < 12);
    sluice_results_free(results), sluice_model_free(memory), sluice_suffix_cache_free(cache);
  }
  sluice_search_free(blocks), sluice_model_free(model);
}

int remembers(table* t, int* its_passed) {
  static char const path[] = "sluice.test.c.suffixes", other_path[] = "sluice.test.c.suffixes.2";
  uint64_t sources[twice];
  int32_t rounds[twice], wanted[twice];
  sluice_search *const blocks = searching("blockwise"), *const greedy = searching("greedy");
  int way, i;
  for (i = 0; i < twice; ++i) sources[i] = 40u + (uint64_t)(i % once);

  /* Options or none, a look-up inside or none: rounds are those of C++, fewer where a text comes again. */
  for (way = 0; way < 3; ++way) {
    sluice_suffix_cache *const cache = remembered(), *loaded = remembered();
    sluice_model *const model = plain(t, way == 2 ? 2 : 0), *memory = NULL, *again = NULL;
    sluice_suffix_options options = sluice_suffix_options_init();
    int first, second, forgetting, alone = decoded(model, blocks, sources, once, 0, NULL);
    int64_t texts;
    set(&options, way);
    CHECK(sluice_model_remember(model, cache, way == 0 ? NULL : &options, &memory) == SLUICE_OK);
    remembered_rounds(way, sources, twice, 0, wanted);
    decoded(memory, blocks, sources, twice, 0, rounds);
    CHECK(memcmp(rounds, wanted, sizeof rounds) == 0);
    CHECK(sluice_suffix_cache_texts(cache) == twice);

    /* What is to be forgotten changes nothing, and has the rounds of an empty cache. */
    texts = sluice_suffix_cache_texts(cache);
    CHECK(texts == twice && sluice_suffix_cache_tokens(cache) > 2 * twice);
    CHECK(sluice_suffix_cache_bytes(cache) > sluice_suffix_cache_tokens(cache));
    remembered_rounds(way, sources, twice, 1, wanted);
    forgetting = decoded(memory, blocks, sources, twice, 1, rounds);
    CHECK(memcmp(rounds, wanted, sizeof rounds) == 0);
    CHECK(sluice_suffix_cache_texts(cache) == texts);
    CHECK(memcmp(rounds, rounds + once, once * sizeof *rounds) == 0);
    CHECK(sluice_suffix_cache_clear(cache) == SLUICE_OK);
    CHECK(sluice_suffix_cache_texts(cache) == 0 && sluice_suffix_cache_tokens(cache) == 0);
    first = decoded(memory, blocks, sources, once, 0, NULL), second = decoded(memory, blocks, sources, once, 0, NULL);
    CHECK(first <= alone + alone / 10 && 3 * second < 2 * first && second < forgetting / 2);

    /* Again from a file; greedy outputs are stored, too. */
    CHECK(sluice_suffix_cache_clear(cache) == SLUICE_OK);
    decoded(memory, greedy, sources, once, 0, NULL);
    CHECK(sluice_suffix_cache_texts(cache) == once);
    CHECK(sluice_suffix_cache_save(cache, path) == SLUICE_OK);
    CHECK(sluice_suffix_cache_load(loaded, path) == SLUICE_OK);
    CHECK(sluice_suffix_cache_texts(loaded) == once);
    CHECK(sluice_suffix_cache_tokens(loaded) == sluice_suffix_cache_tokens(cache));
    CHECK(sluice_model_remember(model, loaded, way == 0 ? NULL : &options, &again) == SLUICE_OK);
    sluice_suffix_cache_free(loaded), loaded = NULL; /* the model keeps it */
    CHECK(decoded(again, blocks, sources, once, 0, rounds) == second);
    CHECK(decoded(memory, blocks, sources, once, 0, wanted) == second);
    CHECK(memcmp(rounds, wanted, once * sizeof *rounds) == 0);
    CHECK(sluice_suffix_cache_save(cache, path) == SLUICE_OK); /* which is mapped */
    sluice_suffix_cache_free(cache);
    sluice_model_free(again), sluice_model_free(memory);
    CHECK(t->destroyed == 0);
    sluice_model_free(model);
    CHECK(t->destroyed == 1);
  }

  { /* A server; texts of one's own. */
    static sluice_token const before[] = {1}, text[] = {3, 4, 5}, large[] = {table_size}, negative[] = {3, -1};
    sluice_suffix_cache *const cache = remembered(), *made = NULL;
    sluice_model *const model = plain(t, 0), *memory = NULL, *other = NULL;
    sluice_suffix_options options = sluice_suffix_options_init();
    sluice_server* server = NULL;
    sluice_delivery delivery = sluice_delivery_init();
    sluice_request request = sluice_request_init();
    sluice_results* results = NULL;
    double least = 1.5;
    answered answers = {0, 0};
    CHECK(sluice_model_remember(model, cache, NULL, &memory) == SLUICE_OK);
    CHECK(sluice_server_create(memory, blocks, 2, 0, &server) == SLUICE_OK);
    delivery.user = &answers, delivery.done = on_done;
    for (i = 0; i < twice; ++i) {
      uint64_t const zero = 0;
      request.source = &sources[0], request.seed = &zero, request.forget = i % 4 != 0;
      CHECK(sluice_server_submit(server, &request, &delivery, NULL) == SLUICE_OK);
    }
    CHECK(sluice_server_drain(server) == SLUICE_OK);
    CHECK(answers.done == twice && answers.wrong == 0);
    CHECK(sluice_suffix_cache_texts(cache) == twice / 4);
    request.forget = 2;
    REFUSED(sluice_server_submit(server, &request, &delivery, NULL), "forget = 2: must be 0 or 1");
    REFUSED(sluice_decode(memory, blocks, &request, 1, 0, &results), "forget = 2: must be 0 or 1");
    request.forget = 0, request.reserved = 1;
    REFUSED(sluice_decode(memory, blocks, &request, 1, 0, &results), "reserved = 1");
    sluice_server_free(server);

    CHECK(sluice_suffix_cache_insert(cache, before, 1, text, 3) == SLUICE_OK);
    CHECK(sluice_suffix_cache_insert(cache, NULL, 0, NULL, 0) == SLUICE_OK); /* nothing */
    CHECK(sluice_suffix_cache_texts(cache) == twice / 4 + 1);
    REFUSED(sluice_suffix_cache_insert(cache, NULL, 1, text, 3), "before = null");
    REFUSED(sluice_suffix_cache_insert(cache, before, 1, NULL, 3), "decoded = null");
    REFUSED(sluice_suffix_cache_insert(NULL, before, 1, text, 3), "cache = null");
    REFUSED(sluice_suffix_cache_insert(cache, before, 1, negative, 2), "SuffixCache: token = -1: must not be negative");
    REFUSED(sluice_suffix_cache_create(4095, 0, &made), "SuffixCache: tokens = 4095: must be from 4096 to 2147483647");
    REFUSED(sluice_suffix_cache_create(0, 257, &made), "SuffixCache: longest = 257: must be from 1 to 256");
    REFUSED(sluice_suffix_cache_create(0, 0, NULL), "cache = null");
    REFUSED(sluice_suffix_cache_save(cache, NULL), "file = null");
    REFUSED(sluice_suffix_cache_save(NULL, path), "cache = null");
    REFUSED(sluice_suffix_cache_load(cache, NULL), "file = null");
    REFUSED(sluice_suffix_cache_clear(NULL), "cache = null");
    CHECK(sluice_suffix_cache_load(cache, "no/such.suffixes") == SLUICE_FAILED);
    CHECK(strstr(sluice_last_error(), "no/such.suffixes") != NULL);
    CHECK(sluice_suffix_cache_save(cache, "no/such.suffixes") == SLUICE_FAILED);
    { /* A file that is cut is refused, and changes nothing. */
      FILE* const file = fopen(other_path, "wb");
      CHECK(file != NULL && fputs("not a cache", file) >= 0 && fclose(file) == 0);
      CHECK(sluice_suffix_cache_load(cache, other_path) == SLUICE_FAILED);
      CHECK(strstr(sluice_last_error(), other_path) != NULL && sluice_suffix_cache_texts(cache) == twice / 4 + 1);
      CHECK(remove(other_path) == 0);
    }
    CHECK(sluice_suffix_cache_tokens(NULL) == 0 && sluice_suffix_cache_texts(NULL) == 0);
    CHECK(sluice_suffix_cache_bytes(NULL) == 0 && made == NULL);

    REFUSED(sluice_model_remember(NULL, cache, NULL, &other), "model = null");
    REFUSED(sluice_model_remember(model, NULL, NULL, &other), "cache = null");
    REFUSED(sluice_model_remember(model, cache, NULL, NULL), "remembering = null");
    options.shortest = -1;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "shortest = -1: must be at least 1");
    options.shortest = 0, options.samples = -1;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "samples = -1: must be at least 1");
    options.samples = 0, options.factor = -2;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "factor = -2.000000: must be a number above 0");
    options.factor = 0, options.least = &least;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "least = 1.500000: must be from 0 to 1");
    options.least = NULL, options.not_own = 2;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "not_own = 2: must be 0 or 1");
    options.not_own = 0, options.reserved = 3;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "reserved = 3");
    options.size = 1;
    REFUSED(sluice_model_remember(model, cache, &options, &other), "sluice_suffix_options.size = 1");
    CHECK(sluice_suffix_cache_insert(cache, NULL, 0, large, 1) == SLUICE_OK);
    REFUSED(sluice_model_remember(model, cache, NULL, &other),
            "cache.largest_token() = 8: is outside the vocabulary of 8: the cache is of another model");
    CHECK(other == NULL);
    sluice_suffix_cache_free(cache), sluice_suffix_cache_free(NULL);
    sluice_model_free(memory), sluice_model_free(model);
  }
  own_text();
  CHECK(remove(path) == 0);
  sluice_search_free(blocks), sluice_search_free(greedy);
  *its_passed += passed;
  return failures;
}
