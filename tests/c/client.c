/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C99 over the C interface: every search finds what C++ finds, and what is wrong is said. */
#include <sluice/c/sluice.h>

#include "expected.h"
#include "frames.h"
#include "grammars.h"
#include "marks.h"
#include "remembers.h"
#include "sizes.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { sentences = 23 };

#define CLIENT "client"
#define LAST_ERROR sluice_last_error
#include "check.h"
/* A call that is refused, with a message that holds `text`. */
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_BAD_ARGUMENT && strstr(sluice_last_error(), text) != NULL, #call, __LINE__)

static sluice_search* made(char const* kind) {
  sluice_search* search = NULL;
  CHECK(sluice_search_create(kind, &search) == SLUICE_OK);
  CHECK(sluice_search_set(search, "max_length", 12) == SLUICE_OK);
  CHECK(sluice_search_set(search, "min_length", 2) == SLUICE_OK);
  if (strcmp(kind, "beam") == 0) {
    CHECK(sluice_search_set(search, "width", 4) == SLUICE_OK);
    CHECK(sluice_search_set(search, "n_best", 3) == SLUICE_OK);
  }
  return search;
}

/* Of the ways of expected.h. */
static int samples(int way) { return way == 2 || way == 11 || way == marked || way == marked_by_tournament; }
static int greedy(int way) {
  return way == 0 || way == 4 || way == 8 || way == penalised || way == biased_once || way == stopped_greedy ||
         way == green_greedy;
}
static int blocks(int way) { return (way >= blocks_guessed && way < engine && way != chosen) || way == green_blocks; }
static int looks_up(int way) { return way == blocks_looked_up || way == blocks_both; }
enum { all_abilities = SLUICE_RAGGED | SLUICE_BLOCKS | SLUICE_ROLL_BACK };

/* A model over the table that knows what its tokens are as bytes. */
static sluice_model* spelling(table* t, int32_t abilities, int way) {
  sluice_model_functions functions = table_functions(t, abilities);
  sluice_bytes bytes[table_size];
  sluice_model* model = NULL;
  int i;
  for (i = 0; i < table_size; ++i) bytes[i].data = table_texts[i], bytes[i].count = strlen(table_texts[i]);
  if (way == blocks_looked_up) functions.propose = NULL;
  if (looks_up(way)) functions.lookup = 2;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  CHECK(sluice_model_set_bytes(model, bytes, table_size) == SLUICE_OK);
  return model;
}

static void obey(sluice_search* search, sluice_model* model, char const* kind, char const* text, int longest) {
  sluice_grammar* grammar = NULL;
  sluice_grammar_options options = sluice_grammar_options_init();
  options.longest = longest;
  CHECK(sluice_grammar_create(model, kind, text, longest ? &options : NULL, &grammar) == SLUICE_OK);
  CHECK(sluice_search_obey(search, grammar) == SLUICE_OK);
  sluice_grammar_free(grammar);
}

static void mark(sluice_search* search, int way) {
  uint64_t const word = 2026;
  sluice_watermark_key* key = NULL;
  sluice_watermark* watermark = NULL;
  CHECK(sluice_watermark_key_create(&word, 1, &key) == SLUICE_OK);
  CHECK(sluice_watermark_create(way == marked                 ? "gumbel"
                                : way == marked_by_tournament ? "synthid"
                                : way == green_greedy         ? "sbw"
                                                              : "red_green",
                                key, &watermark) == SLUICE_OK);
  sluice_watermark_key_free(key);
  if (way == marked) CHECK(sluice_watermark_set(watermark, "second", 0.25) == SLUICE_OK);
  if (way != marked) CHECK(sluice_watermark_set(watermark, "width", 1) == SLUICE_OK);
  if (way == marked_by_tournament || way == green_greedy) CHECK(sluice_watermark_set(watermark, "prf", 1) == SLUICE_OK);
  if (way >= green) {
    CHECK(sluice_watermark_set(watermark, "gamma", 0.5) == SLUICE_OK);
    CHECK(sluice_watermark_set(watermark, "delta", 3) == SLUICE_OK);
  }
  CHECK(sluice_search_mark(search, watermark) == SLUICE_OK);
  sluice_watermark_free(watermark);
}

/* The searches of expected.cpp. */
static sluice_search* search_of(int way, sluice_model* model) {
  static sluice_token const demanded[] = {5, 6, 7}, forbidden[] = {3, 4, 5}, undone[] = {5, 3, 7};
  sluice_search* const search = made(greedy(way)       ? "greedy"
                                     : samples(way)    ? "sample"
                                     : way == drawing  ? "stochastic"
                                     : blocks(way)     ? "blockwise"
                                     : way == weighted ? "particles"
                                                       : "beam");
  if (way == drawing) {
    CHECK(sluice_search_set(search, "width", 3) == SLUICE_OK);
    CHECK(sluice_search_set(search, "temperature", 1.5) == SLUICE_OK);
  }
  if (blocks(way)) CHECK(sluice_search_set(search, "block", 5) == SLUICE_OK);
  if (way == weighted) {
    CHECK(sluice_search_set(search, "temperature", 1.5) == SLUICE_OK);
    CHECK(sluice_search_set(search, "proposal", 2) == SLUICE_OK);
    CHECK(sluice_search_set(search, "resample_below", 0.75) == SLUICE_OK);
  }
  if (way == chosen || way == blocks_chosen) {
    size_t lengths[sizeof item_lengths / sizeof *item_lengths];
    size_t const count = sizeof lengths / sizeof *lengths;
    sluice_catalogue* catalogue = NULL;
    size_t i;
    for (i = 0; i < count; ++i) lengths[i] = item_lengths[i];
    CHECK(sluice_catalogue_create(item_tokens, lengths, count, &catalogue) == SLUICE_OK);
    CHECK(sluice_search_choose(search, catalogue) == SLUICE_OK);
    sluice_catalogue_free(catalogue);
  }
  if (way == biased || way == biased_once) {
    static sluice_token const tokens[] = {3, 4, 5, 6, 3, 7};
    static size_t const lengths[] = {2, 1, 3};
    sluice_biased_phrase const phrases[] = {{tokens, lengths, 2, 2.5f, 0}, {tokens + 3, lengths + 2, 1, 1.5f, 1}};
    sluice_bias_options options = sluice_bias_options_init();
    sluice_bias* bias = NULL;
    options.matches = options.once = options.lead = 1;
    CHECK(sluice_bias_create(phrases, 2, way == biased ? NULL : &options, &bias) == SLUICE_OK);
    CHECK(sluice_search_prefer(search, bias) == SLUICE_OK);
    sluice_bias_free(bias);
  }
  if (samples(way)) {
    CHECK(sluice_search_set(search, "temperature", 1.5) == SLUICE_OK);
    CHECK(sluice_search_set(search, "top_k", 4) == SLUICE_OK);
    CHECK(sluice_search_set(search, "samples", 3) == SLUICE_OK);
  }
  if (way == 3 || way == 10) {
    CHECK(sluice_search_demand(search, demanded, 2) == SLUICE_OK);
    CHECK(sluice_search_demand(search, demanded + 2, 1) == SLUICE_OK);
  }
  if (way == 4 || way == 5) {
    CHECK(sluice_search_forbid(search, forbidden, 1) == SLUICE_OK);
    CHECK(sluice_search_forbid(search, forbidden + 1, 2) == SLUICE_OK);
  }
  if (way == 8 || way == weighted) obey(search, model, "regex", list_regex, 0);
  if (way == 9) {
    CHECK(sluice_search_forbid(search, undone, 2) == SLUICE_OK);
    CHECK(sluice_search_forbid(search, undone + 2, 1) == SLUICE_OK);
  }
  if (way == 9 || way == 10) obey(search, model, "gbnf", nested_gbnf, 0);
  if (way == 11 || way == 12) obey(search, model, "json_schema", numbers_schema, way == 12);
  if (way == engine) { /* presets::huggingface */
    CHECK(sluice_search_set(search, "early_stopping", 3) == SLUICE_OK);
    CHECK(sluice_search_set(search, "at_maximum", 2) == SLUICE_OK);
    CHECK(sluice_search_set(search, "surplus", 1) == SLUICE_OK);
  }
  if (way == penalised) {
    CHECK(sluice_search_set(search, "repetition_penalty", 1.5) == SLUICE_OK);
    CHECK(sluice_search_set(search, "presence_penalty", 0.25) == SLUICE_OK);
    CHECK(sluice_search_set(search, "penalty_window", -1) == SLUICE_OK);
    CHECK(sluice_search_set(search, "penalty_prompt", 0) == SLUICE_OK);
    CHECK(sluice_search_set(search, "no_repeat_ngram", 2) == SLUICE_OK);
  }
  if (way == stopped || way == stopped_greedy) {
    size_t i;
    CHECK(sluice_search_stop(search, stop_tokens, 2) == SLUICE_OK);
    for (i = 0; i < sizeof stop_texts / sizeof *stop_texts; ++i)
      CHECK(sluice_search_stop_text(search, stop_texts[i], strlen(stop_texts[i])) == SLUICE_OK);
    CHECK(sluice_search_stop(search, stop_tokens + 2, 2) == SLUICE_OK);
    if (way == stopped_greedy) CHECK(sluice_search_set(search, "stop_minimum", 5) == SLUICE_OK);
  }
  if (way >= marked) mark(search, way);
  if (way == 7) {
    CHECK(sluice_search_set(search, "penalty", 2) == SLUICE_OK);
    CHECK(sluice_search_set(search, "alpha", 0.6) == SLUICE_OK);
  }
  return search;
}

/* The table's own model, or n-grams beside it; `others` are those that it needs. */
static sluice_model* model_of(table* t, int32_t abilities, int way, sluice_model** others) {
  sluice_model *const model = spelling(t, abilities, way), *sum = NULL;
  others[0] = others[1] = NULL;
  if (way == fused) {
    static char const path[] = "sluice.test.c.arpa";
    static sluice_token const eos[] = {2}, never[] = {0, 1}, bonus[] = {3, 5};
    FILE* const file = fopen(path, "w");
    sluice_ngrams* ngrams = NULL;
    sluice_bytes spellings[table_size];
    int32_t words[table_size];
    sluice_ngram_options options = sluice_ngram_options_init();
    sluice_fused_options how = sluice_fused_options_init();
    int i;
    CHECK(file != NULL && fputs(words_arpa, file) >= 0 && fclose(file) == 0);
    CHECK(sluice_ngrams_open(path, &ngrams) == SLUICE_OK && sluice_ngrams_size(ngrams) == 7);
    CHECK(remove(path) == 0); /* text is read, not mapped */
    for (i = 0; i < table_size; ++i) spellings[i].data = table_words[i], spellings[i].count = strlen(table_words[i]);
    CHECK(sluice_ngrams_find(ngrams, spellings, table_size, words) == SLUICE_OK && words[7] == -1 && words[3] >= 0);
    options.vocabulary = table_size, options.bos = 1, options.eos = eos, options.eos_count = 1;
    options.never = never, options.never_count = 2, options.words = words, options.unknown = -0.5;
    CHECK(sluice_ngrams_model(ngrams, &options, &others[0]) == SLUICE_OK);
    sluice_ngrams_free(ngrams);
    others[1] = model;
    how.word_bonus = 0.125, how.words = bonus, how.word_count = 2;
    CHECK(sluice_model_fuse(model, others[0], 0.75, &how, &sum) == SLUICE_OK);
    return sum;
  }
  return model;
}
static void free_models(sluice_model* model, sluice_model** others) {
  sluice_model_free(model), sluice_model_free(others[1]), sluice_model_free(others[0]);
}

static void make_requests(int way, uint64_t* sources, sluice_request* requests) {
  static sluice_token const prefix[] = {4, 4};
  int i;
  for (i = 0; i < sentences; ++i) {
    requests[i] = sluice_request_init();
    sources[i] = 1000u * (uint64_t)way + (uint64_t)i;
    requests[i].source = &sources[i];
    if (way == 6) requests[i].prefix = prefix, requests[i].prefix_count = 2;
  }
}

static void decodes(table* t, int32_t abilities) {
  static size_t const batches[] = {0, 1, 5};
  int way;
  for (way = 0; way < ways; ++way) {
    uint64_t sources[sentences];
    sluice_request requests[sentences];
    sluice_model* others[2];
    sluice_model* const model = model_of(t, abilities, way, others);
    sluice_search* const search = search_of(way, model);
    size_t b, tokens = 0, rounds = 0;
    make_requests(way, sources, requests);
    if (blocks(way) && abilities != all_abilities) {
      sluice_results* results = NULL;
      REFUSED(sluice_decode(model, search, requests, sentences, 0, &results), "roll_back");
      sluice_search_free(search), sluice_model_free(model);
      continue;
    }
    for (b = 0; b < 3; ++b) {
      sluice_results* results = NULL;
      size_t i;
      CHECK(sluice_decode(model, search, requests, sentences, batches[b], &results) == SLUICE_OK);
      CHECK(sluice_results_count(results) == sentences);
      for (i = 0; i < sentences && i < sluice_results_count(results); ++i) {
        sluice_result const* const result = sluice_results_at(results, i);
        CHECK(result->id == i);
        CHECK(differs(way, sources[i], i, result) == 0);
        if (blocks(way) && result->count > 0) {
          sluice_hypothesis const* const found = result->hypotheses;
          size_t r, settled = 0;
          for (r = 0; r < found->block_count; ++r) settled += (size_t)found->blocks[r];
          CHECK(settled == found->count);
          tokens += found->count, rounds += found->block_count;
        }
      }
      CHECK(sluice_results_at(results, sentences) == NULL);
      sluice_results_free(results);
    }
    if (blocks(way)) CHECK(way == blocks_looked_up ? rounds < tokens : 3 * rounds < 2 * tokens);
    sluice_search_free(search);
    CHECK(t->released > 0);
    CHECK(t->destroyed == 0);
    free_models(model, others);
    CHECK(t->destroyed == 1);
  }
}

/* What a request of the server below is told. */
typedef struct answer {
  int way, done, told, late, differences;
  uint64_t source, seed;
  sluice_token beginning[table_length];
  size_t length;
} answer;

static void on_delta(void* user, uint64_t id, sluice_token const* tokens, size_t count) {
  answer* const a = user;
  (void)id;
  ++a->told;
  a->late += a->done;
  a->late += count == 0 || a->length + count > table_length;
  if (a->late) return;
  memcpy(a->beginning + a->length, tokens, count * sizeof *tokens);
  a->length += count;
}
static void on_done(void* user, sluice_result const* result) {
  answer* const a = user;
  ++a->done;
  a->differences += differs(a->way, a->source, a->seed, result);
  a->differences += result->count > 0 && a->told > 0 &&
                    memcmp(a->beginning, result->hypotheses[0].tokens, a->length * sizeof(sluice_token)) != 0;
}
/* Another request, submitted and withdrawn by the server's own thread, so that nothing comes between. */
typedef struct withdrawal {
  sluice_server* server;
  sluice_request request;
  int first, cancelled, wrong;
} withdrawal;

static void on_withdrawn(void* user, sluice_result const* result) {
  withdrawal* const w = user;
  w->cancelled += strcmp(result->failure, "cancelled") == 0;
}
static void on_first(void* user, sluice_result const* result) {
  withdrawal* const w = user;
  sluice_delivery delivery = sluice_delivery_init();
  uint64_t id = 0;
  delivery.user = w, delivery.done = on_withdrawn;
  w->first += strcmp(result->failure, "none") == 0;
  w->wrong += sluice_server_submit(w->server, &w->request, &delivery, &id) != SLUICE_OK;
  w->wrong += sluice_server_cancel(w->server, id) != SLUICE_OK;
}

static void serves(table* t) {
  sluice_model* model = NULL;
  int way;
  for (way = 0; way < ways; ++way) {
    uint64_t sources[sentences];
    sluice_request requests[sentences];
    answer answers[sentences];
    sluice_search* search;
    sluice_model* others[2];
    model = model_of(t, blocks(way) ? all_abilities : 0, way, others);
    search = search_of(way, model);
    sluice_server* server = NULL;
    int i, settled = 0;
    make_requests(way, sources, requests);
    memset(answers, 0, sizeof answers);
    CHECK(sluice_server_create(model, search, 4, 3, &server) == SLUICE_OK);
    sluice_search_free(search);
    for (i = 0; i < sentences; ++i) {
      sluice_delivery delivery = sluice_delivery_init();
      uint64_t id = 0;
      delivery.user = &answers[i], delivery.done = on_done, delivery.delta = on_delta;
      answers[i].way = way, answers[i].source = sources[i], answers[i].seed = 77;
      requests[i].seed = &answers[i].seed;
      CHECK(sluice_server_submit(server, &requests[i], &delivery, &id) == SLUICE_OK);
      CHECK(id == (uint64_t)i);
    }
    CHECK(sluice_server_close(server) == SLUICE_OK);
    CHECK(sluice_server_drain(server) == SLUICE_OK);
    for (i = 0; i < sentences; ++i) {
      CHECK(answers[i].done == 1);
      CHECK(answers[i].late == 0);
      CHECK(answers[i].differences == 0);
      settled += answers[i].told;
    }
    /* Samples settle nothing, and of some short items nothing is certain before the end. */
    CHECK(samples(way) || way == drawing || way == chosen || settled > 0);
    {
      sluice_delivery delivery = sluice_delivery_init();
      delivery.done = on_done;
      CHECK(sluice_server_submit(server, &requests[0], &delivery, NULL) == SLUICE_REFUSED);
    }
    sluice_server_free(server);
    free_models(model, others);
  }
  model = spelling(t, 0, 0);
  {
    sluice_search* const search = made("greedy");
    sluice_delivery delivery = sluice_delivery_init();
    withdrawal w;
    uint64_t source = 5;
    memset(&w, 0, sizeof w);
    w.request = sluice_request_init();
    w.request.source = &source;
    delivery.user = &w, delivery.done = on_first;
    CHECK(sluice_server_create(model, search, 0, 0, &w.server) == SLUICE_OK);
    CHECK(sluice_server_submit(w.server, &w.request, &delivery, NULL) == SLUICE_OK);
    CHECK(sluice_server_drain(w.server) == SLUICE_OK);
    CHECK(w.first == 1 && w.cancelled == 1 && w.wrong == 0);
    delivery.seconds = -1;
    REFUSED(sluice_server_submit(w.server, &w.request, &delivery, NULL), "seconds");
    delivery.seconds = 0, delivery.done = NULL;
    REFUSED(sluice_server_submit(w.server, &w.request, &delivery, NULL), "done");
    REFUSED(sluice_server_submit(w.server, NULL, &delivery, NULL), "done");
    REFUSED(sluice_server_submit(NULL, &w.request, &delivery, NULL), "done");
    delivery.done = on_first;
    REFUSED(sluice_server_submit(w.server, NULL, &delivery, NULL), "request");
    REFUSED(sluice_server_submit(NULL, &w.request, &delivery, NULL), "server");
    REFUSED(sluice_server_cancel(NULL, 0), "server");
    REFUSED(sluice_server_create(NULL, search, 0, 0, &w.server), "model");
    sluice_server_free(w.server);
    sluice_search_free(search);
  }
  sluice_model_free(model);
}

static void refuses(table* t) {
  sluice_model_functions functions = table_functions(t, 0);
  sluice_model* model = NULL;
  sluice_search *search = NULL, *beam = made("beam");
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  sluice_token const outside[] = {table_size};
  uint64_t source = 1;
  request.source = &source;

  functions.step = NULL;
  REFUSED(sluice_model_create(&functions, &model), "step");
  functions = table_functions(t, 8);
  REFUSED(sluice_model_create(&functions, &model), "abilities = 8");
  functions = table_functions(t, 0), functions.lookup = -1;
  REFUSED(sluice_model_create(&functions, &model), "lookup = -1");
  functions = table_functions(t, 0), functions.vocabulary = 0;
  REFUSED(sluice_model_create(&functions, &model), "vocabulary");
  functions = table_functions(t, 0);
  REFUSED(sluice_model_create(&functions, NULL), "model");
  REFUSED(sluice_model_create(NULL, &model), "functions");
  CHECK(model == NULL && t->destroyed == 0);
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);

  REFUSED(sluice_search_create("bream", &search), "bream");
  REFUSED(sluice_search_create(NULL, &search), "kind");
  CHECK(search == NULL);
  CHECK(sluice_search_create("greedy", &search) == SLUICE_OK);
  REFUSED(sluice_search_set(search, "width", 3), "name = width");
  REFUSED(sluice_search_set(search, "max_length", 2.5), "max_length");
  REFUSED(sluice_search_set(search, "penalty", 3), "penalty");
  REFUSED(sluice_search_set(beam, "at_maximum", 5), "at_maximum = 5");
  REFUSED(sluice_search_set(beam, "early_stopping", -1), "early_stopping = -1");
  REFUSED(sluice_search_set(search, "early_stopping", 1), "name = early_stopping");
  REFUSED(sluice_search_set(NULL, "alpha", 1), "search");
  REFUSED(sluice_search_demand(search, outside, 1), "beam");
  REFUSED(sluice_search_forbid(search, NULL, 1), "tokens");
  REFUSED(sluice_decode(model, NULL, &request, 1, 0, &results), "search");
  REFUSED(sluice_decode(model, search, NULL, 1, 0, &results), "requests");
  CHECK(sluice_search_set(beam, "width", 0) == SLUICE_OK);
  REFUSED(sluice_decode(model, beam, &request, 1, 0, &results), "width = 0");
  request.search = beam;
  REFUSED(sluice_decode(model, search, &request, 1, 0, &results), "kind");
  CHECK(results == NULL);

  /* A search of the request's own; what is wrong with a request, or with a model, is in the result. */
  request.search = search, request.prefix = outside, request.prefix_count = 1;
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "bad_request") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "prefix = 8") != NULL);
  sluice_results_free(results);
  request.prefix_count = 0;
  CHECK(sluice_search_set(search, "max_length", 3) == SLUICE_OK);
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(sluice_results_at(results, 0)->hypotheses[0].count <= 3);
  sluice_results_free(results);
  t->fails_start = 7;
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "source") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "start returned 7") != NULL);
  sluice_results_free(results);
  t->fails_start = 0, t->fails_step = -3;
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "model") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "step returned -3") != NULL);
  sluice_results_free(results);

  CHECK(sluice_decode(model, search, NULL, 0, 0, &results) == SLUICE_OK && sluice_results_count(results) == 0);
  sluice_results_free(results);
  sluice_results_free(NULL), sluice_search_free(NULL), sluice_model_free(NULL), sluice_server_free(NULL);
  sluice_search_free(search), sluice_search_free(beam);
  sluice_model_free(model);
}

/* A grammar that calls others by name, in either notation, gives what the same grammar in one piece gives; and what is refused. */
static void obeys_named(sluice_model* model) {
  char const* const names[] = {"digits", "tail"};
  char const* const defined[] = {"root"};
  sluice_grammar *parts[2] = {NULL, NULL}, *whole[3] = {NULL, NULL, NULL}, *grammar = NULL;
  sluice_grammar const* given[2];
  sluice_grammar const* const none[] = {NULL};
  sluice_grammar_options options = sluice_grammar_options_init();
  sluice_results* results[3] = {NULL, NULL, NULL};
  uint64_t source, zero = 0;
  int i;
  CHECK(sluice_grammar_create(model, "regex", "11?", NULL, &parts[0]) == SLUICE_OK);
  CHECK(sluice_grammar_create(model, "lark", "start: \",\" \"1\"", NULL, &parts[1]) == SLUICE_OK);
  given[0] = parts[0], given[1] = parts[1];
  options.grammar_names = names, options.grammars = given, options.grammar_count = 2;
  CHECK(sluice_grammar_create(model, "regex", "\\[11?(,1)*\\]", NULL, &whole[0]) == SLUICE_OK);
  CHECK(sluice_grammar_create(model, "gbnf", "root ::= \"[\" digits tail* \"]\"", &options, &whole[1]) == SLUICE_OK);
  CHECK(sluice_grammar_create(model, "lark", "start: \"[\" @digits @tail* \"]\"", &options, &whole[2]) == SLUICE_OK);
  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= digits tail numbers", &options, &grammar), "numbers");
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar),
          "grammar_count = 2: must be 0: for gbnf and lark");
  options.grammar_count = 1, options.grammar_names = defined;
  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= \"1\"", &options, &grammar), "root");
  options.grammar_names = names, options.grammars = none;
  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= digits", &options, &grammar), "grammars[0] = null");
  options.grammars = NULL;
  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= digits", &options, &grammar), "grammars = null");
  options.grammars = given, options.grammar_names = NULL;
  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= digits", &options, &grammar), "grammar_names = null");
  sluice_grammar_free(parts[0]), sluice_grammar_free(parts[1]);
  for (source = 0; source < 8; ++source) {
    sluice_hypothesis const* first = NULL;
    for (i = 0; i < 3; ++i) {
      sluice_search* const search = made("greedy");
      sluice_request request = sluice_request_init();
      sluice_hypothesis const* one;
      request.source = &source, request.seed = &zero;
      CHECK(sluice_search_set(search, "max_length", table_length) == SLUICE_OK);
      CHECK(sluice_search_obey(search, whole[i]) == SLUICE_OK);
      CHECK(sluice_decode(model, search, &request, 1, 0, &results[i]) == SLUICE_OK);
      CHECK(sluice_results_at(results[i], 0)->count == 1);
      one = &sluice_results_at(results[i], 0)->hypotheses[0];
      if (i == 0) first = one;
      CHECK(one->count > 0 && one->count == first->count);
      CHECK(memcmp(one->tokens, first->tokens, one->count * sizeof(sluice_token)) == 0);
      sluice_search_free(search);
    }
    for (i = 0; i < 3; ++i) sluice_results_free(results[i]);
  }
  for (i = 0; i < 3; ++i) sluice_grammar_free(whole[i]);
}

/* A grammar as bytes and back, what its rules have matched, and what is refused. */
static void keeps_grammars(sluice_model* model) {
  static sluice_token const output[] = {3, 6, 6, 5, 6, 4}; /* [11,1] */
  size_t const output_count = sizeof output / sizeof *output;
  sluice_grammar *one = NULL, *again = NULL, *none = NULL;
  sluice_grammar_options options = sluice_grammar_options_init();
  sluice_bytes const *names = NULL, *texts = NULL;
  size_t size = 0, count = 9;
  char* bytes;
  CHECK(sluice_grammar_create(model, "lark", "start: \"[\" d (\",\" d)* \"]\"\nd[capture=\"digits\"]: /1+/", NULL,
                              &one) == SLUICE_OK);
  CHECK(sluice_grammar_to_bytes(one, NULL, 0, &size) == SLUICE_OK && size > 64 && size % 64 == 0);
  bytes = (char*)calloc(size, 1);
  CHECK(bytes != NULL);
  CHECK(sluice_grammar_to_bytes(one, bytes, size - 1, &size) == SLUICE_OK && bytes[0] == 0);
  CHECK(sluice_grammar_to_bytes(one, bytes, size, &size) == SLUICE_OK && memcmp(bytes, "SLUICEGR", 8) == 0);
  options.bytes = bytes, options.byte_count = size;
  CHECK(sluice_grammar_create(model, "compiled", NULL, &options, &again) == SLUICE_OK);
  CHECK(sluice_grammar_captures(again, output, output_count, &names, &texts, &count) == SLUICE_OK && count == 2);
  CHECK(names[0].count == 6 && memcmp(names[0].data, "digits", 6) == 0);
  CHECK(texts[0].count == 2 && memcmp(texts[0].data, "11", 2) == 0);
  CHECK(texts[1].count == 1 && memcmp(texts[1].data, "1", 1) == 0);
  REFUSED(sluice_grammar_captures(again, output, 1, &names, &texts, &count),
          "must be a complete output of the grammar");
  REFUSED(sluice_grammar_captures(again, NULL, 1, &names, &texts, &count), "tokens = null");
  REFUSED(sluice_grammar_create(model, "compiled", "x", &options, &none), "text = not null");
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &none), "byte_count");
  REFUSED(sluice_grammar_to_bytes(one, NULL, 1, &size), "bytes = null");
  bytes[70] = (char)(bytes[70] ^ 1);
  CHECK(sluice_grammar_create(model, "compiled", NULL, &options, &none) == SLUICE_FAILED);
  CHECK(strcmp(sluice_last_error(), "grammar: damaged: the checksum is wrong") == 0);
  options.byte_count = 0;
  CHECK(sluice_grammar_create(model, "compiled", NULL, &options, &none) == SLUICE_FAILED);
  free(bytes);
  sluice_grammar_free(one), sluice_grammar_free(again);
}

/* Grammars of requests in one batch, each its own or none; and what is refused. */
static void obeys(table* t) {
  sluice_model* const model = spelling(t, 0, 0);
  sluice_model_functions const functions = table_functions(t, 0);
  sluice_model* silent = NULL;
  sluice_grammar* grammar = NULL;
  sluice_grammar_options options = sluice_grammar_options_init();
  sluice_search *search = made("greedy"), *lists = made("greedy"), *plain = made("greedy");
  sluice_results* results = NULL;
  sluice_request requests[3];
  sluice_result const* result;
  sluice_token const wrong[] = {4};
  sluice_bytes const nothing = {NULL, 3};
  uint64_t source = 7, zero = 0;
  size_t i;
  obeys_named(model);
  keeps_grammars(model);
  obey(lists, model, "regex", list_regex, 0), obey(plain, model, "regex", list_regex, 0);
  CHECK(sluice_search_obey(plain, NULL) == SLUICE_OK);
  for (i = 0; i < 3; ++i) requests[i] = sluice_request_init(), requests[i].source = &source, requests[i].seed = &zero;
  requests[0].search = lists, requests[2].search = plain;
  CHECK(sluice_decode(model, search, requests, 3, 0, &results) == SLUICE_OK);
  CHECK(differs(8, source, 0, sluice_results_at(results, 0)) == 0);
  CHECK(differs(0, source, 0, sluice_results_at(results, 1)) == 0);
  CHECK(differs(0, source, 0, sluice_results_at(results, 2)) == 0);
  result = sluice_results_at(results, 0); /* [1(,1)*], read by hand */
  {
    char text[2 * table_length] = "";
    for (i = 0; i < result->hypotheses[0].count; ++i) strcat(text, table_texts[result->hypotheses[0].tokens[i]]);
    CHECK(strlen(text) % 2 == 1 && text[0] == '[' && text[strlen(text) - 1] == ']');
    for (i = 1; i + 1 < strlen(text); ++i) CHECK(text[i] == (i % 2 == 1 ? '1' : ','));
  }
  sluice_results_free(results);

  /* Outputs that cannot be: a prefix, a length, another model. */
  requests[0].prefix = wrong, requests[0].prefix_count = 1;
  CHECK(sluice_decode(model, search, requests, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "bad_request") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "breaks the grammar") != NULL);
  sluice_results_free(results);
  requests[0].prefix_count = 0;
  CHECK(sluice_search_set(lists, "max_length", 3) == SLUICE_OK);
  CHECK(sluice_decode(model, search, requests, 1, 0, &results) == SLUICE_OK);
  CHECK(strstr(sluice_results_at(results, 0)->message, "needs 3 tokens more") != NULL);
  sluice_results_free(results);

  REFUSED(sluice_grammar_create(model, "gbnf", "root ::= sum\nsum ::= sum \"+\"", NULL, &grammar),
          "line 1, column 1: root: no text");
  REFUSED(sluice_grammar_create(model, "lark", "start: x", NULL, &grammar), "line 1, column 8: x is not defined");
  REFUSED(sluice_grammar_create(model, "regex", "a(b", NULL, &grammar), "pattern, line 1");
  REFUSED(sluice_grammar_create(model, "json_schema", "{\"not\": {}}", NULL, &grammar), "no text obeys");
  REFUSED(sluice_grammar_create(model, "structural_tag", "{\"type\": \"any\"}", NULL, &grammar),
          "type = any: is no format");
  REFUSED(sluice_grammar_create(model, "tool_calls", "[]", NULL, &grammar),
          "tool_calls, line 1, column 1: must be an object");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{}", NULL, &grammar), "format: must be a string");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"x\"}", NULL, &grammar),
          "tool format = x: must be one of");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"n\": 1}", NULL, &grammar),
          "column 27: n: is no field");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"tools\": {}}", NULL, &grammar),
          "tools: must be an array");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"tool_choice\": {}}", NULL, &grammar),
          "tool_choice: must be auto");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"tool_choice\": \"required\"}", NULL,
                                &grammar),
          "a call is required");
  REFUSED(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"parallel_tool_calls\": 1}", NULL,
                                &grammar),
          "parallel_tool_calls: must be true or false");
  REFUSED(sluice_grammar_create(model, "ebnf", "", NULL, &grammar), "kind = ebnf");
  REFUSED(sluice_grammar_create(model, NULL, "", NULL, &grammar), "kind");
  REFUSED(sluice_grammar_create(model, "regex", NULL, NULL, &grammar), "text");
  REFUSED(sluice_grammar_create(model, "regex", "1", NULL, NULL), "grammar");
  REFUSED(sluice_grammar_create(NULL, "regex", "1", NULL, &grammar), "model");
  options.white_space = 1;
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar), "white_space = 1");
  CHECK(sluice_grammar_create(model, "json_schema", "{\"const\": 1}", &options, &grammar) == SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;
  CHECK(sluice_grammar_create(model, "structural_tag", "{\"type\": \"const_string\", \"value\": \"1\"}", NULL,
                              &grammar) == SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;
  CHECK(sluice_grammar_create(model, "lark", "start: start \"1\" | \"1\"", NULL, &grammar) == SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;
  CHECK(sluice_grammar_create(model, "tool_calls", "{\"format\": \"hermes\", \"tools\": null}", NULL, &grammar) ==
        SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;
  options.json = "{}";
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar), "white_space = 1");
  options.white_space = 0;
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar), "json = not null: is for a json_schema");
  options.json = "[]";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json = []: must be a JSON object");
  options.json = "{\"indent\": \"2\"}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json: indent");
  options.json = "{\"tidy\": 1}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json: tidy");
  options.json = "{\"order\": \"none\"}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json: order = none");
  options.json = "{\"escapes\": \"all\"}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json: escapes = all");
  options.json = "{\"item_separator\": \";\"}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "options.item_separator");
  options.json = "{\"limits\": {}}";
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "json = limits");
  options.json =
      "{\"indent\": 2, \"white_space\": 0, \"order\": \"any\", \"escapes\": \"any\", \"plain_numbers\": false, "
      "\"digits\": 9,"
      "\"characters\": 9, \"tidy\": false, \"lenient\": true, \"item_separator\": \",\", \"key_separator\": \": \"}";
  CHECK(sluice_grammar_create(model, "json_schema", "{\"const\": 1, \"uniqueItems\": true}", &options, &grammar) ==
        SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;
  options.json = NULL;
  options.white_space = -2;
  CHECK(sluice_grammar_create(model, "json_schema", "{\"type\": \"null\", \"x-own\": 1}", NULL, &grammar) == SLUICE_OK);
  {
    sluice_bytes const* names = NULL;
    size_t named = 0;
    CHECK(sluice_grammar_ignored(grammar, &names, &named) == SLUICE_OK);
    CHECK(named == 1 && names[0].count == 5 && memcmp(names[0].data, "x-own", 5) == 0);
    REFUSED(sluice_grammar_ignored(NULL, &names, &named), "grammar");
    REFUSED(sluice_grammar_ignored(grammar, &names, NULL), "count");
  }
  sluice_grammar_free(grammar);
  grammar = NULL;
  REFUSED(sluice_grammar_create(model, "json_schema", "{}", &options, &grammar), "white_space = -2");
  options.white_space = 0, options.behind_space = 2;
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar), "behind_space = 2");
  options.behind_space = 0, options.longest = 3;
  REFUSED(sluice_grammar_create(model, "regex", "1", &options, &grammar), "longest = 3");
  CHECK(sluice_model_create(&functions, &silent) == SLUICE_OK);
  REFUSED(sluice_grammar_create(silent, "regex", "1", NULL, &grammar), "sluice_model_set_bytes");
  REFUSED(sluice_model_set_bytes(silent, &nothing, 1), "tokens[0].data");
  REFUSED(sluice_model_set_bytes(silent, NULL, 1), "tokens");
  REFUSED(sluice_model_set_bytes(silent, NULL, 0), "vocabulary has 8 tokens");
  REFUSED(sluice_model_set_bytes(NULL, NULL, 0), "model");
  REFUSED(sluice_search_obey(NULL, NULL), "search");
  CHECK(grammar == NULL);
  sluice_grammar_free(NULL);
  sluice_search_free(search), sluice_search_free(lists), sluice_search_free(plain);
  sluice_model_free(model), sluice_model_free(silent);
}

static sluice_status obeyed_names(sluice_model* model, sluice_grammar** grammar) {
  return sluice_grammar_create(model, "gbnf", "root ::= <open> <pair>{2} \"1\"?", NULL, grammar);
}

/* Tokens by names that the vocabulary has for them. */
static void names(table* t) {
  sluice_model* const model = spelling(t, 0, 0);
  sluice_model_functions const functions = table_functions(t, 0);
  sluice_model* silent = NULL;
  sluice_grammar* grammar = NULL;
  sluice_search* const search = made("greedy");
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  sluice_token const tokens[] = {7, 3};
  sluice_bytes const given[] = {{"<pair>", 6}, {"<open>", 6}};
  sluice_bytes const nothing = {"", 0};
  sluice_token const outside = 8;
  uint64_t source = 7;
  sluice_hypothesis const* found;
  request.source = &source;
  REFUSED(obeyed_names(model, &grammar), "the vocabulary has no token of this name");
  CHECK(sluice_model_set_token_names(model, tokens, given, 2) == SLUICE_OK);
  CHECK(obeyed_names(model, &grammar) == SLUICE_OK);
  CHECK(sluice_search_obey(search, grammar) == SLUICE_OK);
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  found = sluice_results_at(results, 0)->hypotheses;
  CHECK(found->count >= 3 && found->tokens[0] == 3 && found->tokens[1] == 7 && found->tokens[2] == 7);
  REFUSED(sluice_model_set_token_names(NULL, tokens, given, 2), "model");
  REFUSED(sluice_model_set_token_names(model, NULL, given, 2), "tokens");
  REFUSED(sluice_model_set_token_names(model, tokens, NULL, 2), "names");
  REFUSED(sluice_model_set_token_names(model, tokens, &nothing, 1), "names[0]");
  REFUSED(sluice_model_set_token_names(model, &outside, given, 1), "names: <pair> = 8: is outside");
  CHECK(sluice_model_create(&functions, &silent) == SLUICE_OK);
  REFUSED(sluice_model_set_token_names(silent, tokens, given, 2), "sluice_model_set_bytes");
  sluice_results_free(results), sluice_grammar_free(grammar), sluice_search_free(search);
  sluice_model_free(model), sluice_model_free(silent);
}

static int is_event(sluice_tool_event const* event, char const* kind, int32_t call, char const* text) {
  return strcmp(event->kind, kind) == 0 && event->call == call && event->count == strlen(text) &&
         memcmp(event->text, text, event->count) == 0;
}

/* Calls of tools, from a text in pieces. */
static void parses(void) {
  static char const text[] = "Hm.<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  sluice_tool_parser* parser = NULL;
  sluice_tool_event const* events = NULL;
  size_t count = 7;
  REFUSED(sluice_tool_parser_create("chat", NULL, NULL, &parser), "tool format = chat: must be one of llama3_json");
  REFUSED(sluice_tool_parser_create(NULL, NULL, NULL, &parser), "format");
  REFUSED(sluice_tool_parser_create("hermes", NULL, NULL, NULL), "parser");
  REFUSED(sluice_tool_parser_create("hermes", "[", NULL, &parser), "tools, line 1");
  CHECK(sluice_tool_parser_create("hermes", NULL, NULL, &parser) == SLUICE_OK);
  CHECK(sluice_tool_parser_append(parser, text, 8, &events, &count) == SLUICE_OK);
  CHECK(count == 1 && is_event(&events[0], "content", -1, "Hm."));
  CHECK(sluice_tool_parser_append(parser, text + 8, strlen(text) - 8, &events, &count) == SLUICE_OK);
  CHECK(count == 3 && is_event(&events[0], "begun", 0, "now") && is_event(&events[1], "arguments", 0, "{}") &&
        is_event(&events[2], "ended", 0, ""));
  CHECK(sluice_tool_parser_append(parser, NULL, 0, &events, &count) == SLUICE_OK && count == 0);
  CHECK(sluice_tool_parser_append(parser, "<", 1, &events, &count) == SLUICE_OK && count == 0);
  CHECK(sluice_tool_parser_finish(parser, &events, &count) == SLUICE_OK);
  CHECK(count == 1 && strcmp(events[0].kind, "content") == 0 && events[0].count == 1 && events[0].text[0] == '<');
  REFUSED(sluice_tool_parser_append(NULL, text, 1, &events, &count), "parser");
  REFUSED(sluice_tool_parser_append(parser, NULL, 1, &events, &count), "text");
  REFUSED(sluice_tool_parser_append(parser, text, 1, NULL, &count), "events");
  REFUSED(sluice_tool_parser_finish(parser, &events, NULL), "event_count");
  sluice_tool_parser_free(parser), sluice_tool_parser_free(NULL);
  REFUSED(sluice_tool_parser_create("hermes", NULL, "", &parser), "reasoning.end");
  CHECK(sluice_tool_parser_create(NULL, NULL, "</think>", &parser) == SLUICE_OK);
  CHECK(sluice_tool_parser_append(parser, "<think>So</think>\n\nYes", 22, &events, &count) == SLUICE_OK);
  CHECK(count == 2 && is_event(&events[0], "reasoning", -1, "So") && is_event(&events[1], "content", -1, "Yes"));
  sluice_tool_parser_free(parser);
}

/* Forbids what came last; fails behind three tokens, if told so. */
static int no_double(void* user, sluice_token const* tokens, size_t count, float* scores, size_t vocabulary) {
  if (count > 0 && (size_t)tokens[count - 1] < vocabulary) scores[tokens[count - 1]] = -INFINITY;
  return user != NULL && count == 3 ? 17 : 0;
}

/* Processors of the caller's. */
static void processes(table* t) {
  sluice_model_functions const functions = table_functions(t, 0);
  sluice_model* model = NULL;
  sluice_search *const search = made("beam"), *const fails = made("greedy");
  sluice_results* results = NULL;
  uint64_t const source = 1;
  sluice_request request = sluice_request_init();
  sluice_result const* result = NULL;
  size_t i;
  int some = 1;
  request.source = &source;
  REFUSED(sluice_search_process(NULL, no_double, NULL), "search");
  REFUSED(sluice_search_process(search, NULL, NULL), "process = null");
  CHECK(sluice_search_process(search, no_double, NULL) == SLUICE_OK);
  CHECK(sluice_search_process(fails, no_double, &some) == SLUICE_OK);
  CHECK(sluice_search_set(fails, "min_length", 6) == SLUICE_OK &&
        sluice_search_set(fails, "max_length", 9) == SLUICE_OK);
  CHECK(sluice_search_set(search, "min_length", 6) == SLUICE_OK &&
        sluice_search_set(search, "max_length", 9) == SLUICE_OK);
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  CHECK(sluice_decode(model, search, &request, 1, 1, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(result->count > 0 && result->hypotheses[0].count >= 6);
  for (i = 1; i < result->hypotheses[0].count; ++i)
    CHECK(result->hypotheses[0].tokens[i] != result->hypotheses[0].tokens[i - 1]);
  sluice_results_free(results);
  CHECK(sluice_decode(model, fails, &request, 1, 1, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(strcmp(result->failure, "search") == 0 && strcmp(result->message, "the processor returned 17") == 0);
  sluice_results_free(results), sluice_model_free(model);
  sluice_search_free(search), sluice_search_free(fails);
}

static int after_four(void* user, sluice_token const* tokens, size_t count) {
  if (user != NULL && count > 2) return *(int const*)user;
  return tokens[count - 1] == 4;
}

/* Criteria of the caller's, in a beam that asks them of candidates; and groups of beams. */
static void stops_when(table* t) {
  sluice_model_functions const functions = table_functions(t, 0);
  sluice_model* model = NULL;
  sluice_search *const search = made("beam"), *const fails = made("greedy"), *const groups = made("diverse");
  sluice_results* results = NULL;
  uint64_t const source = 1;
  sluice_request request = sluice_request_init();
  sluice_result const* result = NULL;
  sluice_token const never[] = {7, 7, 7, 7};
  size_t i, k, stopped = 0;
  int some = 17;
  request.source = &source;
  REFUSED(sluice_search_stop_when(NULL, after_four, NULL), "search");
  REFUSED(sluice_search_stop_when(search, NULL, NULL), "over = null");
  CHECK(sluice_search_stop_when(search, after_four, NULL) == SLUICE_OK);
  CHECK(sluice_search_stop(search, never, 4) == SLUICE_OK);
  CHECK(sluice_search_set(search, "n_best", 4) == SLUICE_OK &&
        sluice_search_set(search, "min_length", 0) == SLUICE_OK &&
        sluice_search_set(search, "max_length", 9) == SLUICE_OK &&
        sluice_search_set(search, "stop_at_once", 1) == SLUICE_OK);
  CHECK(sluice_search_stop_when(fails, after_four, &some) == SLUICE_OK);
  CHECK(sluice_search_set(fails, "min_length", 6) == SLUICE_OK &&
        sluice_search_set(fails, "max_length", 9) == SLUICE_OK);
  CHECK(sluice_search_set(groups, "width", 2) == SLUICE_OK && sluice_search_set(groups, "groups", 3) == SLUICE_OK &&
        sluice_search_set(groups, "n_best", 6) == SLUICE_OK &&
        sluice_search_set(groups, "max_length", 9) == SLUICE_OK &&
        sluice_search_set(groups, "diversity_penalty", 2) == SLUICE_OK &&
        sluice_search_set(groups, "padding", 0) == SLUICE_OK);
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  CHECK(sluice_decode(model, search, &request, 1, 1, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(result->count > 0);
  for (i = 0; i < result->count; ++i) {
    sluice_hypothesis const* const h = &result->hypotheses[i];
    for (k = 0; k + 1 < h->count; ++k) CHECK(h->tokens[k] != 4);
    CHECK((h->tokens[h->count - 1] == 4) == (h->stop == 1));
    stopped += h->stop == 1;
  }
  CHECK(stopped > 0);
  sluice_results_free(results);
  CHECK(sluice_decode(model, fails, &request, 1, 1, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(strcmp(result->failure, "search") == 0 && strcmp(result->message, "the stopping criterion returned 17") == 0);
  sluice_results_free(results);
  CHECK(sluice_decode(model, groups, &request, 1, 1, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(result->count == 6 && result->hypotheses[0].score >= result->hypotheses[5].score);
  sluice_results_free(results), sluice_model_free(model);
  sluice_search_free(search), sluice_search_free(fails), sluice_search_free(groups);
}

/* What is wrong with boosted phrases. */
static void prefers(void) {
  static sluice_token const tokens[] = {5, 6};
  static size_t const lengths[] = {2, 0};
  sluice_biased_phrase phrase = {tokens, lengths, 1, 1, 0};
  sluice_bias_options options = sluice_bias_options_init();
  sluice_bias* bias = NULL;
  REFUSED(sluice_bias_create(NULL, 1, NULL, &bias), "phrases");
  REFUSED(sluice_bias_create(&phrase, 1, NULL, NULL), "bias");
  REFUSED(sluice_search_prefer(NULL, NULL), "search");
  phrase.spellings = 0;
  REFUSED(sluice_bias_create(&phrase, 1, NULL, &bias), "phrases[0].spellings = []: is empty");
  phrase.spellings = 2;
  REFUSED(sluice_bias_create(&phrase, 1, NULL, &bias), "phrases[0].spellings[1] = []: is empty");
  phrase.spellings = 1, phrase.boost = (float)NAN;
  REFUSED(sluice_bias_create(&phrase, 1, NULL, &bias), "phrases[0].boost = ");
  phrase.boost = 1, phrase.per_token = 2;
  REFUSED(sluice_bias_create(&phrase, 1, NULL, &bias), "phrases[0].per_token = 2");
  phrase.per_token = 0, options.matches = 3;
  REFUSED(sluice_bias_create(&phrase, 1, &options, &bias), "matches = 3");
  options.matches = 0, options.lead = -1;
  REFUSED(sluice_bias_create(&phrase, 1, &options, &bias), "lead = -1");
  options.lead = 0, options.size = 1;
  REFUSED(sluice_bias_create(&phrase, 1, &options, &bias), "sluice_bias_options.size = 1");
  CHECK(bias == NULL);
  sluice_bias_free(NULL);
}

/* Stops: the text, and what is wrong. */
static void stops(table* t) {
  sluice_model_functions const functions = table_functions(t, 0);
  sluice_model *const model = spelling(t, 0, 0), *silent = NULL;
  sluice_search* const search = made("greedy");
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  static sluice_token const tokens[] = {3, 4, 6, 7};
  sluice_hypothesis found;
  char text[16];
  size_t count = 0;
  memset(&found, 0, sizeof found);
  REFUSED(sluice_search_stop(search, tokens, 0), "tokens = []");
  REFUSED(sluice_search_stop(search, NULL, 1), "tokens");
  REFUSED(sluice_search_stop(NULL, tokens, 1), "search");
  REFUSED(sluice_search_stop_text(search, "", 0), "bytes");
  REFUSED(sluice_search_stop_text(search, NULL, 1), "bytes");
  REFUSED(sluice_search_stop_text(NULL, "a", 1), "search");
  CHECK(sluice_search_stop_text(search, "]1", 2) == SLUICE_OK);
  CHECK(sluice_search_stop(search, tokens + 3, 1) == SLUICE_OK);
  CHECK(sluice_model_create(&functions, &silent) == SLUICE_OK);
  REFUSED(sluice_decode(silent, search, &request, 1, 0, &results), "needs sluice_model_set_bytes");
  found.tokens = tokens, found.count = 3, found.stop = 1;
  CHECK(sluice_search_text(search, model, &found, 0, text, sizeof text, &count) == SLUICE_OK);
  CHECK(count == 1 && text[0] == '[');
  CHECK(sluice_search_text(search, model, &found, 1, text, 2, &count) == SLUICE_OK);
  CHECK(count == 3 && memcmp(text, "[]", 2) == 0);
  found.count = 4, found.stop = 0;
  CHECK(sluice_search_text(search, model, &found, 0, NULL, 0, &count) == SLUICE_OK && count == 3);
  found.stop = -1;
  CHECK(sluice_search_text(search, model, &found, 0, text, sizeof text, &count) == SLUICE_OK);
  CHECK(count == 5 && memcmp(text, "[]11,", 5) == 0);
  found.stop = 2;
  REFUSED(sluice_search_text(search, model, &found, 0, text, sizeof text, &count), "is none of these 2 stops");
  REFUSED(sluice_search_text(search, silent, &found, 0, text, sizeof text, &count), "needs sluice_model_set_bytes");
  REFUSED(sluice_search_text(search, model, &found, 2, text, sizeof text, &count), "include_stop = 2");
  REFUSED(sluice_search_text(search, model, &found, 0, NULL, 1, &count), "text");
  REFUSED(sluice_search_text(search, model, NULL, 0, text, 1, &count), "found");
  REFUSED(sluice_search_text(search, model, &found, 0, text, 1, NULL), "count");
  CHECK(sluice_search_set(search, "stop_minimum", -1) == SLUICE_OK);
  REFUSED(sluice_decode(model, search, &request, 1, 0, &results), "stops.minimum = -1");
  sluice_search_free(search), sluice_model_free(model), sluice_model_free(silent);
}

/* Traces are those of C++; one request at a time has one. */
static void on_traced(void* user, sluice_result const* result) {
  sluice_bytes* const seen = user;
  (void)result;
  CHECK(sluice_trace_lines((sluice_trace*)(void const*)seen->data, seen) == SLUICE_OK);
}
static void traces(table* t) {
  static int const some[] = {0, 1, 2, 6, 7, drawing, stopped};
  size_t w, i;
  for (w = 0; w < sizeof some / sizeof *some; ++w) {
    uint64_t sources[sentences];
    sluice_request requests[sentences];
    sluice_model* const model = spelling(t, all_abilities, some[w]);
    sluice_search* const search = search_of(some[w], model);
    sluice_trace* trace[2] = {NULL, NULL};
    sluice_results* results = NULL;
    sluice_server* server = NULL;
    sluice_delivery delivery = sluice_delivery_init();
    sluice_bytes lines, page, copied = {NULL, 0};
    char* lines_of_first = NULL;
    make_requests(some[w], sources, requests);
    for (i = 0; i < 2; ++i) CHECK(sluice_trace_create(i == 0 ? "the <first>" : NULL, &trace[i]) == SLUICE_OK);
    requests[2].trace = requests[4].trace = trace[0];
    REFUSED(sluice_decode(model, search, requests, 5, 2, &results), "trace = taken: must be of one request at a time");
    requests[4].trace = trace[1];
    CHECK(sluice_decode(model, search, requests, 5, 1, &results) == SLUICE_OK); /* so in the same slots */
    for (i = 0; i < 5; ++i) CHECK(differs(some[w], sources[i], i, sluice_results_at(results, i)) == 0);
    sluice_results_free(results);
    CHECK(sluice_trace_lines(trace[0], &lines) == SLUICE_OK);
    lines_of_first = malloc(lines.count);
    if (lines_of_first == NULL) exit(2);
    memcpy(lines_of_first, lines.data, lines.count), copied.data = lines_of_first, copied.count = lines.count;
    CHECK(sluice_trace_page(trace[0], &page) == SLUICE_OK);
    CHECK(trace_differs(some[w], sources[2], 2, "the <first>", copied, page) == 0);
    CHECK(sluice_trace_lines(trace[1], &lines) == SLUICE_OK && lines.count > 300);

    /* Again by a server, where it is the request's first number that may differ. */
    CHECK(sluice_server_create(model, search, 0, 0, &server) == SLUICE_OK);
    delivery.user = &lines, delivery.done = on_traced, lines.data = (char const*)(void*)trace[0];
    for (i = 0; i < 2; ++i) {
      sluice_delivery quiet = sluice_delivery_init();
      answer a;
      memset(&a, 0, sizeof a), a.way = some[w], a.source = sources[i], a.seed = i;
      quiet.user = &a, quiet.done = on_done;
      requests[i].seed = &a.seed;
      CHECK(sluice_server_submit(server, &requests[i], &quiet, NULL) == SLUICE_OK);
      CHECK(sluice_server_drain(server) == SLUICE_OK && a.done == 1 && a.differences == 0);
    }
    {
      uint64_t const seed = 2;
      requests[2].seed = &seed;
      CHECK(sluice_server_submit(server, &requests[2], &delivery, NULL) == SLUICE_OK);
      CHECK(sluice_server_drain(server) == SLUICE_OK);
      requests[2].seed = NULL;
    }
    CHECK(lines.count == copied.count && memcmp(lines.data, copied.data, copied.count) == 0);
    sluice_server_free(server);
    free(lines_of_first);
    sluice_trace_free(trace[0]), sluice_trace_free(trace[1]);
    sluice_search_free(search), sluice_model_free(model);
  }
  {
    sluice_bytes lines;
    REFUSED(sluice_trace_create(NULL, NULL), "trace");
    REFUSED(sluice_trace_lines(NULL, &lines), "trace");
    REFUSED(sluice_trace_page(NULL, &lines), "trace");
    sluice_trace_free(NULL);
  }
}

/* What is wrong with language models. */
static void language(table* t) {
  static char const path[] = "sluice.test.c.arpa";
  sluice_model *const model = spelling(t, 0, 0), *made_model = NULL;
  sluice_ngrams* ngrams = NULL;
  sluice_ngram_options options = sluice_ngram_options_init();
  sluice_fused_options how = sluice_fused_options_init();
  sluice_bytes spelling_of = {NULL, 3};
  sluice_token const eos[] = {2}, outside[] = {8};
  int32_t words[table_size] = {0}, word = 7;
  double log_prob = 0;
  FILE* const file = fopen(path, "w");
  CHECK(file != NULL && fputs(words_arpa, file) >= 0 && fclose(file) == 0);
  CHECK(sluice_ngrams_open(path, &ngrams) == SLUICE_OK);
  CHECK(remove(path) == 0);
  REFUSED(sluice_ngrams_open(NULL, &ngrams), "file");
  REFUSED(sluice_ngrams_open(path, NULL), "ngrams");
  {
    sluice_ngrams* other = NULL;
    CHECK(sluice_ngrams_open(path, &other) == SLUICE_FAILED && other == NULL);
    CHECK(strstr(sluice_last_error(), "sluice.test.c.arpa: cannot be opened") != NULL);
  }
  REFUSED(sluice_ngrams_find(ngrams, &spelling_of, 1, words), "spellings[0].data");
  REFUSED(sluice_ngrams_find(ngrams, NULL, 1, words), "spellings");
  REFUSED(sluice_ngrams_find(ngrams, &spelling_of, 1, NULL), "words");
  REFUSED(sluice_ngrams_find(NULL, &spelling_of, 1, words), "ngrams");
  REFUSED(sluice_ngrams_spelling(ngrams, 7, &spelling_of), "word = 7: the table has 7");
  CHECK(sluice_ngrams_spelling(ngrams, 3, &spelling_of) == SLUICE_OK && memcmp(spelling_of.data, "a", 1) == 0);
  REFUSED(sluice_ngrams_score(ngrams, &word, 1, &log_prob), "words = 7: the table has 7");
  REFUSED(sluice_ngrams_score(ngrams, NULL, 1, &log_prob), "words");
  REFUSED(sluice_ngrams_score(ngrams, NULL, 0, NULL), "log_prob");
  CHECK(sluice_ngrams_score(ngrams, NULL, 0, &log_prob) == SLUICE_OK);
  CHECK(fabs(log_prob + 1.6 * log(10)) < 1e-5); /* the end after <s>: -0.4 - 1.2 */
  CHECK(sluice_ngrams_size(NULL) == 0);

  REFUSED(sluice_ngrams_model(NULL, NULL, &made_model), "ngrams");
  REFUSED(sluice_ngrams_model(ngrams, NULL, NULL), "model");
  options.words = words;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "vocabulary = 0");
  options.vocabulary = -1;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "vocabulary = -1");
  options.vocabulary = table_size, options.words = NULL;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "exactly one of them");
  options.words = words, words[5] = 7;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "word = 7");
  words[5] = -1, options.eos_count = 1;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "eos");
  options.eos = eos, options.unknown = NAN;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "unknown");
  options.unknown = 0, options.size = 4;
  REFUSED(sluice_ngrams_model(ngrams, &options, &made_model), "sluice_ngram_options.size = 4");
  CHECK(made_model == NULL);
  options.size = offsetof(sluice_ngram_options, vocabulary); /* nothing but the size: the table's words */
  CHECK(sluice_ngrams_model(ngrams, &options, &made_model) == SLUICE_OK);
  {
    sluice_model* sum = NULL;
    REFUSED(sluice_model_fuse(NULL, made_model, 1, NULL, &sum), "model");
    REFUSED(sluice_model_fuse(model, NULL, 1, NULL, &sum), "language");
    REFUSED(sluice_model_fuse(model, made_model, 1, NULL, NULL), "fused");
    REFUSED(sluice_model_fuse(model, model, 1, NULL, &sum), "must be another model");
    REFUSED(sluice_model_fuse(model, made_model, 1, NULL, &sum), "language model");
    how.words = outside, how.word_count = 1;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "words = 8");
    how.words = NULL;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "words");
    how.word_count = 0, how.normalise = 2;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "normalise = 2");
    how.normalise = 0, how.reserved = 1;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "reserved = 1");
    how.reserved = 0, how.word_bonus = INFINITY;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "word_bonus = inf");
    how.word_bonus = 0;
    REFUSED(sluice_model_fuse(model, made_model, NAN, &how, &sum), "weight = ");
    how.size = 12;
    REFUSED(sluice_model_fuse(model, made_model, 1, &how, &sum), "sluice_fused_options.size = 12");
    CHECK(sum == NULL);
  }
  sluice_ngrams_free(ngrams), sluice_ngrams_free(NULL);
  sluice_model_free(made_model), sluice_model_free(model);
}

/* What is wrong with a catalogue, and with guesses. */
static void chooses(table* t) {
  static sluice_token const tokens[] = {5, 6, 5, 6, -1};
  static size_t const lengths[] = {2, 2, 1}, nothing[] = {0};
  sluice_model* const model = spelling(t, all_abilities, 0);
  sluice_search *search = made("blockwise"), *plain = made("greedy");
  sluice_catalogue* catalogue = NULL;
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  uint64_t source = 3;
  request.source = &source;
  REFUSED(sluice_catalogue_create(tokens, lengths, 2, &catalogue), "is there twice");
  REFUSED(sluice_catalogue_create(tokens + 4, lengths + 2, 1, &catalogue), "must not be negative");
  REFUSED(sluice_catalogue_create(tokens, nothing, 1, &catalogue), "has no tokens");
  REFUSED(sluice_catalogue_create(tokens, lengths, 0, &catalogue), "0 sequences");
  REFUSED(sluice_catalogue_create(NULL, lengths, 1, &catalogue), "tokens");
  REFUSED(sluice_catalogue_create(tokens, NULL, 1, &catalogue), "lengths");
  REFUSED(sluice_catalogue_create(tokens, lengths, 1, NULL), "catalogue");
  REFUSED(sluice_catalogue_open(NULL, &catalogue), "file");
  CHECK(sluice_catalogue_open("no/such.catalogue", &catalogue) == SLUICE_FAILED);
  CHECK(strstr(sluice_last_error(), "no/such.catalogue") != NULL);
  REFUSED(sluice_search_choose(NULL, NULL), "search");
  CHECK(catalogue == NULL);
  sluice_catalogue_free(NULL);

  /* Chosen, and chosen no longer. */
  CHECK(sluice_catalogue_create(tokens, lengths, 1, &catalogue) == SLUICE_OK);
  CHECK(sluice_search_choose(plain, catalogue) == SLUICE_OK);
  CHECK(sluice_decode(model, plain, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(sluice_results_at(results, 0)->hypotheses[0].count == 3);
  CHECK(memcmp(sluice_results_at(results, 0)->hypotheses[0].tokens, tokens, 2 * sizeof *tokens) == 0);
  sluice_results_free(results);
  CHECK(sluice_search_choose(plain, NULL) == SLUICE_OK);
  CHECK(sluice_decode(model, plain, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(differs(0, source, 0, sluice_results_at(results, 0)) == 0);
  sluice_results_free(results);
  sluice_catalogue_free(catalogue);

  t->fails_propose = 5;
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "model") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "propose returned 5") != NULL);
  sluice_results_free(results);
  t->fails_propose = 0, t->too_many = 1;
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strstr(sluice_results_at(results, 0)->message, "made 4 guesses of 3") != NULL);
  sluice_results_free(results);
  t->too_many = 0;
  CHECK(sluice_search_set(search, "block", 0) == SLUICE_OK);
  REFUSED(sluice_decode(model, search, &request, 1, 0, &results), "block = 0");
  sluice_search_free(search), sluice_search_free(plain);
  sluice_model_free(model);
}

int main(void) {
  table* const t = malloc(sizeof *t);
  if (t == NULL) return 2;
  CHECK(strcmp(sluice_last_error(), "") == 0);
  CHECK(strcmp(sluice_version(), expected_version()) == 0);
  decodes(t, 0);
  decodes(t, all_abilities);
  serves(t);
  refuses(t);
  obeys(t);
  names(t);
  parses();
  processes(t);
  stops_when(t);
  prefers();
  chooses(t);
  stops(t);
  traces(t);
  language(t);
  failures += marks(&passed);
  failures += remembers(t, &passed);
  failures += frames(&passed);
  failures += sizes(t, &passed);
  free(t);
  printf("%d passed, %d failed\n", passed, failures);
  return failures == 0 ? 0 : 1;
}
