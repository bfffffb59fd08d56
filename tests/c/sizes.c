/* SPDX-License-Identifier: Apache-2.0 */
#include "sizes.h"

#include "expected.h"
#include "grammars.h"

#include <string.h>

#define CLIENT "sizes"
#define LAST_ERROR sluice_last_error
#include "check.h"
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_BAD_ARGUMENT && strstr(sluice_last_error(), text) != NULL, #call, __LINE__)

/* Earlier headers, as their programs have them: they end before members that came later. */
typedef struct old_functions {
  size_t size;
  int32_t vocabulary;
  sluice_token bos;
  sluice_token const* eos;
  size_t eos_count;
  sluice_token const* never;
  size_t never_count;
  int32_t abilities, log_probs, max_slots, max_length;
  void* user;
  int (*start)(void* user, size_t count, void const* const* sources, int32_t const* slots);
  int (*step)(void* user, size_t count, sluice_row const* rows, float* scores);
} old_functions;
typedef struct old_request {
  size_t size;
  void const* source;
} old_request;
typedef struct old_delivery {
  size_t size;
  void* user;
  void (*done)(void* user, sluice_result const* result);
} old_delivery;
typedef struct old_options {
  size_t size;
} old_options;

/* Later ones: they go on behind what this library knows. */
typedef struct new_functions {
  sluice_model_functions known;
  void* later;
} new_functions;
typedef struct new_request {
  sluice_request known;
  double later, much_later;
} new_request;
typedef struct new_delivery {
  sluice_delivery known;
  void* later;
} new_delivery;
typedef struct new_options {
  sluice_grammar_options known;
  int64_t later;
} new_options;

enum { requests_of = 5 };

static uint64_t const* sources(void) {
  static uint64_t const all[requests_of] = {3, 1, 4, 15, 9};
  return all;
}

static sluice_search* greedy(void) {
  sluice_search* search = NULL;
  CHECK(sluice_search_create("greedy", &search) == SLUICE_OK);
  CHECK(sluice_search_set(search, "max_length", 12) == SLUICE_OK);
  CHECK(sluice_search_set(search, "min_length", 2) == SLUICE_OK);
  return search;
}

static void right(sluice_results* results) {
  size_t i;
  CHECK(sluice_results_count(results) == requests_of);
  for (i = 0; i < sluice_results_count(results); ++i)
    CHECK(differs(0, sources()[i], i, sluice_results_at(results, i)) == 0);
  sluice_results_free(results);
}

static void on_done(void* user, sluice_result const* result) {
  *(int*)user += differs(0, sources()[0], 0, result) == 0;
}

static void older(table* t) {
  sluice_model_functions const full = table_functions(t, 0);
  old_functions functions;
  old_request requests[requests_of];
  old_delivery delivery;
  old_options options = {sizeof options};
  sluice_model* model = NULL;
  sluice_search* const search = greedy();
  sluice_grammar* grammar = NULL;
  sluice_results* results = NULL;
  sluice_server* server = NULL;
  sluice_bytes bytes[table_size];
  int i, done = 0;
  memcpy(&functions, &full, sizeof functions); /* it is a beginning of the struct of today */
  functions.size = sizeof functions;
  CHECK(sizeof functions < sizeof full);
  CHECK(sluice_model_create((sluice_model_functions const*)&functions, &model) == SLUICE_OK);
  for (i = 0; i < requests_of; ++i) requests[i].size = sizeof *requests, requests[i].source = &sources()[i];
  CHECK(sluice_decode(model, search, (sluice_request const*)requests, requests_of, 2, &results) == SLUICE_OK);
  right(results);
  CHECK(t->released == 0); /* `release` was beyond the struct */

  delivery.size = sizeof delivery, delivery.user = &done, delivery.done = on_done;
  CHECK(sluice_server_create(model, search, 0, 0, &server) == SLUICE_OK);
  CHECK(sluice_server_submit(server, (sluice_request const*)requests, (sluice_delivery const*)&delivery, NULL) ==
        SLUICE_OK);
  CHECK(sluice_server_drain(server) == SLUICE_OK && done == 1);
  sluice_server_free(server);

  for (i = 0; i < table_size; ++i) bytes[i].data = table_texts[i], bytes[i].count = strlen(table_texts[i]);
  CHECK(sluice_model_set_bytes(model, bytes, table_size) == SLUICE_OK);
  CHECK(sluice_grammar_create(model, "regex", "1", (sluice_grammar_options const*)&options, &grammar) == SLUICE_OK);
  sluice_grammar_free(grammar), grammar = NULL;

  /* A size that no header had; requests of several sizes. */
  functions.size = 0;
  REFUSED(sluice_model_create((sluice_model_functions const*)&functions, &model), "sluice_model_functions.size = 0");
  functions.size = sizeof functions - sizeof(void*);
  REFUSED(sluice_model_create((sluice_model_functions const*)&functions, &model), "was never below 88");
  functions.size = sizeof functions + 1;
  REFUSED(sluice_model_create((sluice_model_functions const*)&functions, &model), "size = 89");
  options.size = 4;
  REFUSED(sluice_grammar_create(model, "regex", "1", (sluice_grammar_options const*)&options, &grammar),
          "sluice_grammar_options.size = 4");
  delivery.size = 0;
  REFUSED(sluice_server_submit(NULL, NULL, (sluice_delivery const*)&delivery, NULL), "sluice_delivery.size = 0");
  requests[3].size = sizeof(sluice_request);
  REFUSED(sluice_decode(model, search, (sluice_request const*)requests, requests_of, 2, &results), "requests[3].size");
  requests[0].size = 0;
  REFUSED(sluice_decode(model, search, (sluice_request const*)requests, requests_of, 2, &results),
          "sluice_request.size = 0");
  sluice_search_free(search), sluice_model_free(model);
}

static void newer(table* t) {
  new_functions functions;
  new_request requests[requests_of];
  new_delivery delivery;
  new_options options;
  sluice_model *model = NULL, *other = NULL;
  sluice_search* const search = greedy();
  sluice_grammar* grammar = NULL;
  sluice_results* results = NULL;
  int i;
  memset(&functions, 0, sizeof functions), memset(requests, 0, sizeof requests);
  memset(&delivery, 0, sizeof delivery), memset(&options, 0, sizeof options);
  functions.known = table_functions(t, 0), functions.known.size = sizeof functions;
  CHECK(sluice_model_create(&functions.known, &model) == SLUICE_OK);
  for (i = 0; i < requests_of; ++i) {
    requests[i].known.size = sizeof *requests, requests[i].known.source = &sources()[i];
  }
  CHECK(sluice_decode(model, search, &requests->known, requests_of, 0, &results) == SLUICE_OK);
  right(results);

  functions.later = t;
  REFUSED(sluice_model_create(&functions.known, &other), "members that this library does not know");
  requests[4].much_later = 1;
  REFUSED(sluice_decode(model, search, &requests->known, requests_of, 0, &results), "sluice_request.size");
  delivery.known.size = sizeof delivery, delivery.later = t;
  REFUSED(sluice_server_submit(NULL, NULL, &delivery.known, NULL), "sluice_delivery.size");
  options.known.size = sizeof options, options.later = 1;
  REFUSED(sluice_grammar_create(model, "regex", "1", &options.known, &grammar), "sluice_grammar_options.size");
  CHECK(other == NULL && grammar == NULL);
  sluice_search_free(search), sluice_model_free(model);
}

/* Scores that stay where the model has them: lines with something between them. */
static float lines[table_slots * (table_size + 3)];
static size_t stride;
static float const* first;
static int (*its_step)(void* user, size_t count, sluice_row const* rows, float* scores);

static int step_view(void* user, size_t count, sluice_row const* rows, float const** scores, size_t* its_stride) {
  static float dense[table_slots * table_size];
  size_t i;
  int const answer = its_step(user, count, rows, dense);
  for (i = 0; i < count; ++i) memcpy(lines + i * (table_size + 3), dense + i * table_size, table_size * sizeof *lines);
  *scores = first, *its_stride = stride;
  return answer;
}

static void views(table* t) {
  sluice_model_functions functions = table_functions(t, 0);
  sluice_request requests[requests_of];
  sluice_model* model = NULL;
  sluice_search* const search = greedy();
  sluice_results* results = NULL;
  int i;
  its_step = functions.step, functions.step = NULL, functions.step_view = step_view;
  first = lines, stride = table_size + 3;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  for (i = 0; i < requests_of; ++i) requests[i] = sluice_request_init(), requests[i].source = &sources()[i];
  CHECK(sluice_decode(model, search, requests, requests_of, 0, &results) == SLUICE_OK);
  right(results);
  stride = table_size - 1;
  CHECK(sluice_decode(model, search, requests, 1, 0, &results) == SLUICE_OK);
  CHECK(strstr(sluice_results_at(results, 0)->message, "step_view gave lines 7 apart, of 8 tokens") != NULL);
  sluice_results_free(results);
  first = NULL;
  CHECK(sluice_decode(model, search, requests, 1, 0, &results) == SLUICE_OK);
  CHECK(strstr(sluice_results_at(results, 0)->message, "step_view gave no scores") != NULL);
  sluice_results_free(results);
  t->fails_step = 4;
  CHECK(sluice_decode(model, search, requests, 1, 0, &results) == SLUICE_OK);
  CHECK(strstr(sluice_results_at(results, 0)->message, "step_view returned 4") != NULL);
  sluice_results_free(results);
  sluice_search_free(search), sluice_model_free(model);
}

int sizes(table* t, int* its_passed) {
  CHECK(sluice_abi_version() == SLUICE_ABI_VERSION);
  older(t);
  newer(t);
  views(t);
  *its_passed += passed;
  return failures;
}
