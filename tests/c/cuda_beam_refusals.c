/* SPDX-License-Identifier: Apache-2.0 */
/* Of the client in C: what beams refuse, before anything is done. */
#include "cuda_cases.h"

#include <math.h>
#include <sluice_cuda.h>
#include <stdint.h>
#include <stdlib.h>

#define CLIENT "cuda_beam_refusals"
#include "cuda_tools.h"

void beam_refusals(int* passed_checks, int* failed_checks) {
  int32_t const ends[] = {2};
  sluice_cuda_beam_options good = sluice_cuda_beam_options_init(), options;
  size_t const short_options = offsetof(sluice_cuda_beam_options, longest);
  size_t const short_task = offsetof(sluice_cuda_task, selection);
  sluice_cuda_beam* beam = NULL;
  sluice_cuda_expander* expander = NULL;
  sluice_cuda_results* results = NULL;
  sluice_cuda_allocator allocator = sluice_cuda_allocator_init();
  sluice_cuda_rows rows = sluice_cuda_rows_init();
  sluice_cuda_task task = sluice_cuda_task_init(), wrong;
  sluice_cuda_sentence const sentence = {1, 1, 0, -1, 0};
  sluice_cuda_sentence bad;
  int32_t const beyond = 99;
  int32_t count = 0;
  float* scores;
  REFUSED(sluice_cuda_beam_options_preset(NULL, 0, 4, 1), "options");
  REFUSED(sluice_cuda_beam_options_preset(&good, 3, 4, 1), "preset = 3");
  REFUSED(sluice_cuda_beam_options_preset(&good, 0, 0, 1), "width = 0");
  CHECK(sluice_cuda_beam_options_preset(&good, SLUICE_CUDA_FAIRSEQ, 4, 1) == SLUICE_CUDA_OK);
  CHECK(good.max_length == 201 && good.sentences == 1 && good.size == sizeof good);
  /* Options of an earlier header get what they have room for. */
  memset(&options, 0x55, sizeof options), options.size = short_options;
  CHECK(sluice_cuda_beam_options_preset(&options, SLUICE_CUDA_FAIRSEQ, 4, 1) == SLUICE_CUDA_OK);
  CHECK(options.size == short_options && options.sentences == 1 && options.longest == 0x55555555);
  options.size = 0;
  REFUSED(sluice_cuda_beam_options_preset(&options, 0, 4, 1), "sluice_cuda_beam_options.size = 0");
  REFUSED(sluice_cuda_beam_create(&options, NULL, NULL, &beam), "sluice_cuda_beam_options.size = 0");
  good.vocabulary = 20, good.eos = ends, good.eos_count = 1, good.max_length = 10, good.sentences = 2;
  good.slot_length = 50;
#define WITHOUT(change, text)                                                                                          \
  options = good;                                                                                                      \
  change;                                                                                                              \
  REFUSED(sluice_cuda_beam_create(&options, NULL, NULL, &beam), text)
  WITHOUT(options.vocabulary = 0, "vocabulary.size = 0");
  WITHOUT(options.width = 0, "width = 0");
  WITHOUT(options.width = 64, "width = 64");
  WITHOUT(options.n_best = 9, "n_best = 9");
  WITHOUT(options.min_length = -1, "length.min = -1");
  WITHOUT(options.max_length = -1, "length.max = -1");
  WITHOUT(options.max_length = SLUICE_CUDA_UNLIMITED, "length = 0");
  WITHOUT(options.max_factor = 2, "length = 0");
  WITHOUT(options.longest = -1, "length = -1");
  WITHOUT(options.penalty = 3, "penalty = 3");
  WITHOUT(options.penalty = -1, "penalty = -1");
  WITHOUT(options.alpha = NAN, "penalty.alpha");
  WITHOUT(options.stop = 5, "stop = 5");
  WITHOUT(options.patience = 0, "early_stopping.patience = 0");
  WITHOUT(options.stop_finished = -1, "early_stopping.finished = -1");
  WITHOUT(options.at_maximum = 1, "at_maximum = 1");
  WITHOUT(options.at_maximum = 5, "at_maximum = 5");
  WITHOUT(options.surplus = 2, "surplus = 2");
  WITHOUT(options.prefix_scored = 2, "prefix_scored = 2");
  WITHOUT(options.guard_prefix = -1, "guard_prefix = -1");
  WITHOUT(options.candidates = 2, "candidates = 2");
  WITHOUT(options.candidates = 257, "candidates = 257");
  WITHOUT(options.stage = 2, "stage = 2");
  WITHOUT(options.eos = &beyond, "vocabulary.eos = 99");
  WITHOUT(options.eos = NULL, "eos");
  WITHOUT(options.eos_count = -1, "eos = -1");
  WITHOUT((options.never = &beyond, options.never_count = 1), "vocabulary.never = 99");
  WITHOUT(options.never_count = 1, "never");
  WITHOUT(options.log_probs = 2, "log_probs = 2");
  WITHOUT(options.slot_length = -1, "slot_length = -1");
  WITHOUT(options.sentences = 0, "sentences = 0");
#undef WITHOUT
  REFUSED(sluice_cuda_beam_create(NULL, NULL, NULL, &beam), "options");
  REFUSED(sluice_cuda_beam_create(&good, NULL, NULL, NULL), "beam");
  REFUSED(sluice_cuda_beam_create(&good, &allocator, NULL, &beam), "allocate");
  CHECK(beam == NULL);
  options = good, options.size = short_options, options.longest = -1; /* which is not looked at */
  CHECK(sluice_cuda_beam_create(&options, NULL, NULL, &beam) == SLUICE_CUDA_OK);
  sluice_cuda_beam_free(beam), beam = NULL;
  CHECK(sluice_cuda_beam_create(&good, NULL, NULL, &beam) == SLUICE_CUDA_OK);
#define REFUSED_BEGIN(change, text)                                                                                    \
  bad = sentence;                                                                                                      \
  change;                                                                                                              \
  REFUSED(sluice_cuda_beam_begin(beam, 0, 1, &bad, NULL), text)
  REFUSED_BEGIN(bad.last = 20, "sentence.last = 20");
  REFUSED_BEGIN(bad.held = -1, "sentence.held = -1");
  REFUSED_BEGIN(bad.held = 50, "sentence.held = 50");
  REFUSED_BEGIN(bad.prefix = -1, "sentence.prefix = -1");
  REFUSED_BEGIN(bad.prefix = 3, "sentence.prefix = 3");
  REFUSED_BEGIN((bad.held = 12, bad.prefix = 10), "10 tokens");
  REFUSED_BEGIN(bad.prefix_log_prob = NAN, "sentence.prefix_log_prob");
#undef REFUSED_BEGIN
  REFUSED(sluice_cuda_beam_begin(NULL, 0, 1, &sentence, NULL), "beam");
  REFUSED(sluice_cuda_beam_begin(beam, 0, 1, NULL, NULL), "sentences");
  REFUSED(sluice_cuda_beam_begin(beam, -1, 1, &sentence, NULL), "first = -1");
  REFUSED(sluice_cuda_beam_begin(beam, 0, -1, &sentence, NULL), "count = -1");
  REFUSED(sluice_cuda_beam_begin(beam, 2, 1, &sentence, NULL), "count = 1");
  CHECK(sluice_cuda_beam_begin(beam, 2, 0, NULL, NULL) == SLUICE_CUDA_OK);
  CHECK(sluice_cuda_beam_remaining(beam, &count, NULL) == SLUICE_CUDA_OK && count == 0); /* nothing was begun */

  REFUSED(sluice_cuda_beam_rows(NULL, &rows), "beam");
  REFUSED(sluice_cuda_beam_rows(beam, NULL), "rows");
  REFUSED(sluice_cuda_beam_task(NULL, &task), "beam");
  REFUSED(sluice_cuda_beam_task(beam, NULL), "task");
  rows.size = 8;
  REFUSED(sluice_cuda_beam_rows(beam, &rows), "sluice_cuda_rows.size = 8");
  wrong = sluice_cuda_task_init(), wrong.size = short_task, wrong.selection.draws = 77;
  CHECK(sluice_cuda_beam_task(beam, &wrong) == SLUICE_CUDA_OK);
  CHECK(wrong.columns == 20 && wrong.size == short_task && wrong.selection.draws == 77);
  wrong.size = 0;
  REFUSED(sluice_cuda_beam_task(beam, &wrong), "sluice_cuda_task.size = 0");
  REFUSED(sluice_cuda_beam_advance(NULL, NULL), "beam");
  REFUSED(sluice_cuda_beam_remaining(NULL, &count, NULL), "beam");
  REFUSED(sluice_cuda_beam_remaining(beam, NULL, NULL), "count");
  REFUSED(sluice_cuda_beam_running(NULL, &count, NULL), "beam");
  REFUSED(sluice_cuda_beam_running(beam, NULL, NULL), "running");
  REFUSED(sluice_cuda_beam_collect(NULL, 0, 1, NULL, &results), "beam");
  REFUSED(sluice_cuda_beam_collect(beam, 0, 1, NULL, NULL), "results");
  REFUSED(sluice_cuda_beam_collect(beam, 0, 3, NULL, &results), "count = 3");
  REFUSED(sluice_cuda_beam_collect(beam, 3, 0, NULL, &results), "first = 3");
  REFUSED(sluice_cuda_beam_collect(beam, 0, 1, NULL, &results), "number = 0"); /* never begun */
  CHECK(results == NULL && sluice_cuda_results_at(NULL, 0) == NULL);

  /* A step looks at all of its arguments before it begins. */
  CHECK(sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander) == SLUICE_CUDA_OK);
  CHECK(sluice_cuda_beam_task(beam, &task) == SLUICE_CUDA_OK);
  REFUSED(sluice_cuda_beam_step(beam, expander, &task, NULL, 0, NULL), "scores");
  scores = device_new(NULL, sizeof(float) * (size_t)(task.rows * task.columns));
  task.scores = scores;
  REFUSED(sluice_cuda_beam_step(NULL, expander, &task, NULL, 0, NULL), "beam");
  REFUSED(sluice_cuda_beam_step(beam, NULL, &task, NULL, 0, NULL), "expander");
  REFUSED(sluice_cuda_beam_step(beam, expander, NULL, NULL, 0, NULL), "task");
#define WITHOUT(change, text)                                                                                          \
  wrong = task;                                                                                                        \
  change;                                                                                                              \
  REFUSED(sluice_cuda_beam_step(beam, expander, &wrong, NULL, 0, NULL), text)
  WITHOUT(wrong.rows = 4, "task.rows = 4");
  WITHOUT(wrong.columns = 19, "task.columns = 19");
  WITHOUT(wrong.k = 1, "task.k = 1");
  WITHOUT(wrong.queries = NULL, "task.queries");
  WITHOUT(wrong.edits = NULL, "task.edits");
  WITHOUT(wrong.probes = NULL, "task.probes");
  WITHOUT(wrong.tokens = task.probes, "task.tokens");
  WITHOUT(wrong.best = NULL, "task.best");
  WITHOUT(wrong.probe_values = NULL, "task.probe_values");
  WITHOUT(wrong.results = NULL, "task.results");
  WITHOUT(wrong.type = 3, "type = 3");
#undef WITHOUT
  sluice_cuda_beam_free(beam), sluice_cuda_beam_free(NULL), sluice_cuda_results_free(NULL);
  sluice_cuda_expander_free(expander), device_delete(scores);
  *passed_checks += passed, *failed_checks += failures;
}
