/* SPDX-License-Identifier: Apache-2.0 */
/* Of the client in C: beams that stay on the device find what sluice::BeamSearch finds, to the last bit. */
#include "cuda_cases.h"
#include "cuda_engine.h"

#include <sluice_cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT "cuda_beams"
#include "cuda_tools.h"

/* ---- random cases ---- */

static int32_t const ends[] = {2, 4}, specials[] = {0, 1}; /* the engine has 2 for an end, too */

static beam_case make_case(int32_t round) {
  beam_case made;
  sluice_cuda_beam_options* const options = &made.options;
  int32_t const width = 1 + below(5);
  int32_t i, n;
  made.preset = round % 3, made.length_penalty = made.preset == 1 && below(3) == 0 ? 0 : 0.5 * (double)below(4);
  memset(options, 0x55, sizeof *options), options->size = sizeof *options;
  CHECK(sluice_cuda_beam_options_preset(options, made.preset, width, made.length_penalty) == SLUICE_CUDA_OK);
  CHECK(options->width == width && options->n_best == 1 && options->vocabulary == 0 && options->eos == NULL);
  options->vocabulary = 7 + below(12), options->eos = ends, options->eos_count = below(8) == 0 ? 0 : 1 + below(2);
  options->never = specials, options->never_count = 2, options->log_probs = below(4) == 0;
  options->max_length = 2 + below(9), options->n_best = 1 + below(width);
  if (below(3) == 0) options->min_length = below(5);
  if (options->min_length > options->max_length) options->min_length = options->max_length;
  if (below(5) == 0) options->max_factor = 0.5, options->extra = 2, options->longest = options->max_length;
  if (below(5) == 0) options->min_factor = 0.3;
  if (below(4) == 0) options->penalty = SLUICE_CUDA_PENALTY_GNMT, options->beta = 1 + below(5);
  if (below(4) == 0) options->patience = 0.5 + below(3);
  if (below(6) == 0) options->stop = SLUICE_CUDA_STOP_EXACT;
  if (made.preset == 2 && below(2)) options->stop = below(2) ? SLUICE_CUDA_STOP_COUNT : SLUICE_CUDA_STOP_NEVER_EARLY;
  if (below(8) == 0) options->stop = SLUICE_CUDA_STOP_COUNT, options->stop_finished = options->n_best + below(3);
  if (below(6) == 0) options->surplus = 1 - options->surplus;
  if (below(6) == 0) options->candidates = 2 * width + below(4);
  if (below(5) == 0) options->at_maximum = below(2) ? SLUICE_CUDA_BEST_UNFINISHED : SLUICE_CUDA_DROP;
  if (below(6) == 0) options->stage = 1 - options->stage;
  if (below(4) == 0) options->slot_length = 6 + below(4);
  made.request_count = 2 + below(5), made.requests = NEW(beam_request, made.request_count);
  for (i = 0; i < made.request_count; ++i) {
    beam_request* const request = &made.requests[i];
    request->source = engine_source((uint64_t)round * 100 + (uint64_t)i);
    request->prompt_count = 1 + (below(3) == 0), request->prompt[0] = 1, request->prompt[1] = 3;
    if (below(3) == 0 && options->max_factor == 0) request->prefix_count = 1 + (options->max_length > 4 && below(2));
    for (n = 0; n < request->prefix_count; ++n) request->prefix[n] = 5 + below(options->vocabulary - 5);
  }
  return made;
}

/* ---- an engine's loop ---- */

static int check_result(beam_case const* one, int32_t request, sluice_cuda_beam* beam, int32_t number) {
  sluice_cuda_results* results = NULL;
  int different = 1;
  CHECK(sluice_cuda_beam_collect(beam, number, 1, device_stream(), &results) == SLUICE_CUDA_OK);
  CHECK(sluice_cuda_results_at(results, 1) == NULL);
  if (results != NULL) different = beam_differs(one, request, sluice_cuda_results_at(results, 0));
  sluice_cuda_results_free(results);
  return different;
}

static void begin(engine* e, sluice_cuda_beam* beam, int32_t width, int32_t number, beam_request const* request) {
  sluice_cuda_sentence sentence;
  int32_t fed[4], n, count = 0;
  for (n = 0; n < request->prompt_count; ++n) fed[count++] = request->prompt[n];
  for (n = 0; n < request->prefix_count; ++n) fed[count++] = request->prefix[n];
  engine_start(e, number * width, request->source);
  for (n = 0; n + 1 < count; ++n) engine_feed(e, number * width, fed[n]);
  sentence.last = fed[count - 1], sentence.held = count - 1, sentence.prefix = request->prefix_count;
  sentence.source_length = beam_source_length(request->source), sentence.prefix_log_prob = request->prefix_log_prob;
  CHECK(sluice_cuda_beam_begin(beam, number, 1, &sentence, device_stream()) == SLUICE_CUDA_OK);
}

/* All sentences of a case, `places` at a time. */
static void search(beam_case* one, int32_t places, int lends, int merges) {
  sluice_cuda_beam_options* const options = &one->options;
  int32_t const width = options->width;
  engine e = engine_new(places * width, options->vocabulary);
  sluice_cuda_stream const stream = device_stream();
  sluice_cuda_expander* expander = NULL;
  sluice_cuda_beam* beam = NULL;
  sluice_cuda_rows rows = sluice_cuda_rows_init();
  sluice_cuda_task task = sluice_cuda_task_init();
  sluice_cuda_step_options step = sluice_cuda_step_options_init();
  int32_t *const who = NEW(int32_t, places), *const running = NEW(int32_t, places);
  int32_t number, next = 0, left = 0, there = 0, steps, different = 0;
  void* workspace = NULL;
  size_t bytes = 0, allocations;
  options->sentences = places;
  beam_expect(one);
  step.early_starts = lends, step.merge_behind_lines = merges, step.clusters = lends;
  CHECK(sluice_cuda_expander_create(NULL, 0, NULL, &step, &expander) == SLUICE_CUDA_OK);
  CHECK(sluice_cuda_beam_create(options, NULL, &step, &beam) == SLUICE_CUDA_OK);
  if (beam == NULL) return;
  CHECK(sluice_cuda_beam_rows(beam, &rows) == SLUICE_CUDA_OK && rows.count == places * width);
  CHECK(sluice_cuda_beam_task(beam, &task) == SLUICE_CUDA_OK && task.rows == rows.count);
  task.scores = e.scores_there;
  CHECK(sluice_cuda_workspace_bytes(expander, &task, &bytes) == SLUICE_CUDA_OK);
  if (lends) workspace = device_new(NULL, bytes + 1);
  for (number = 0; number < places; ++number) who[number] = -1;
  for (steps = 0; steps < 200; ++steps) {
    int again, some = 0;
    do {
      again = 0;
      CHECK(sluice_cuda_beam_running(beam, running, stream) == SLUICE_CUDA_OK);
      for (number = 0; number < places; ++number) {
        if (running[number]) continue;
        if (who[number] >= 0) different += check_result(one, who[number], beam, number);
        who[number] = -1;
        if (next == one->request_count) continue;
        begin(&e, beam, width, number, &one->requests[who[number] = next++]);
        again = 1;
      }
    } while (again);
    for (number = 0; number < places; ++number) some += running[number];
    CHECK(sluice_cuda_beam_remaining(beam, &left, stream) == SLUICE_CUDA_OK && left == some);
    device_get(rows.remaining, &there, sizeof there);
    CHECK(there == left);
    if (left == 0) break;
    CHECK(engine_step(&e, &rows));
    allocations = device_allocations();
    if (steps % 2) {
      CHECK(sluice_cuda_beam_step(beam, expander, &task, workspace, lends ? bytes + 1 : 0, stream) == SLUICE_CUDA_OK);
    } else {
      CHECK(sluice_cuda_expand(expander, &task, workspace, lends ? bytes + 1 : 0, stream) == SLUICE_CUDA_OK);
      CHECK(sluice_cuda_beam_advance(beam, stream) == SLUICE_CUDA_OK);
    }
    CHECK(!lends || device_allocations() == allocations);
  }
  CHECK(steps < 200 && next == one->request_count);
  CHECK(different == 0);
  sluice_cuda_beam_free(beam), sluice_cuda_expander_free(expander);
  device_delete(workspace), engine_free(&e), free(who), free(running);
}

/* ---- what docs/cuda.md shows ---- */

/* Ends the program where a call has failed. */
static void must(sluice_cuda_status status) {
  if (status == SLUICE_CUDA_OK) return;
  fprintf(stderr, "%s\n", sluice_cuda_last_error());
  exit(1);
}

static void shown(void) {
  enum { places = 3, words = 15 };
  int32_t const eos = 2, bos = 1;
  sluice_cuda_stream const stream = device_stream();
  engine model = engine_new(places * 4, words);
  float* const logits = model.scores_there;
  sluice_cuda_expander* expander = NULL;
  beam_case one;
  beam_request requests[places];
  int32_t i, different = 0;
  memset(requests, 0, sizeof requests);
  for (i = 0; i < places; ++i) {
    requests[i].source = engine_source((uint64_t)i), requests[i].prompt_count = 1, requests[i].prompt[0] = bos;
    engine_start(&model, i * 4, requests[i].source);
  }
  must(sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander));
  /* clang-format off */
  // [beam]
  sluice_cuda_beam_options options = sluice_cuda_beam_options_init();
  must(sluice_cuda_beam_options_preset(&options, SLUICE_CUDA_FAIRSEQ, 4, 1));  // width 4, length penalty 1
  options.vocabulary = words, options.eos = &eos, options.eos_count = 1;
  options.sentences = places, options.max_length = 12;
  sluice_cuda_beam* beam = NULL;
  must(sluice_cuda_beam_create(&options, NULL, NULL, &beam));
  sluice_cuda_sentence const sentences[places] = {{.last = bos}, {.last = bos}, {.last = bos}};
  must(sluice_cuda_beam_begin(beam, 0, places, sentences, stream));

  sluice_cuda_rows rows = sluice_cuda_rows_init();  // on the device: what to feed, and from which slot each row goes on
  must(sluice_cuda_beam_rows(beam, &rows));
  sluice_cuda_task task = sluice_cuda_task_init();
  must(sluice_cuda_beam_task(beam, &task));
  task.scores = logits, task.type = SLUICE_CUDA_FLOAT;  // [places * 4, words], where the model leaves them
  // [/beam]
  // [steps]
  for (int32_t left = places; left > 0;) {
    engine_step(&model, &rows);  // yours
    must(sluice_cuda_beam_step(beam, expander, &task, NULL, 0, stream));  // three launches
    must(sluice_cuda_beam_remaining(beam, &left, stream));  // waits; every few steps will do
  }
  sluice_cuda_results* results = NULL;
  must(sluice_cuda_beam_collect(beam, 0, places, stream, &results));
  for (i = 0; i < places; ++i) {
    sluice_cuda_result const* const result = sluice_cuda_results_at(results, (size_t)i);
    if (result->count > 0) printf("%g: %d tokens\n", result->hypotheses[0].score, (int)result->hypotheses[0].count);
  }
  // [/steps]
  /* clang-format on */
  one.preset = SLUICE_CUDA_FAIRSEQ, one.length_penalty = 1, one.options = options;
  one.requests = requests, one.request_count = places;
  beam_expect(&one);
  for (i = 0; i < places; ++i) different += beam_differs(&one, i, sluice_cuda_results_at(results, (size_t)i));
  CHECK(different == 0 && sluice_cuda_results_at(results, places) == NULL);
  sluice_cuda_results_free(results), sluice_cuda_beam_free(beam), sluice_cuda_expander_free(expander);
  engine_free(&model);
}

void beams(int* passed_checks, int* failed_checks) {
  int32_t round;
  beam_yield found;
  device_hurries(1); /* lines have tests of their own */
  for (round = 0; round < 150; ++round) {
    beam_case one = make_case(round);
    int const merges = round % 15 == 8; /* in the lines' own blocks */
    device_hurries(!merges);
    search(&one, 1 + below(3), round % 2, merges);
    free(one.requests);
  }
  device_hurries(1);
  found = beam_yields(); /* worth it */
  CHECK(found.hypotheses > 300 && found.unfinished > 50 && found.failed > 5 && found.prefixed > 20);
  shown();
  beam_refusals(passed_checks, failed_checks);
  device_hurries(0);
  *passed_checks += passed, *failed_checks += failures;
}
