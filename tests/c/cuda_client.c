/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C99 over the C interface to device code: all of it answers what C++ answers, and what is wrong is said. It runs on a
 * device, and on an emulated one. */
#include "cuda_cases.h"

#include <math.h>
#include <sluice_cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT "cuda_client"
#include "cuda_tools.h"

/* ---- random cases ---- */

enum { most_edits = 5, most_probes = 3, sets = 2 };

/* A score of any type, in its bits: of floats one, of others one with few digits, so that equals are many. */
static void write_score(void* scores, int32_t type, size_t at, float x) {
  float const few = (float)((int)(x * 8)) / 8;
  uint32_t bits;
  memcpy(&bits, type == SLUICE_CUDA_FLOAT ? &x : &few, sizeof bits);
  if (type == SLUICE_CUDA_FLOAT) ((float*)scores)[at] = x;
  if (type == SLUICE_CUDA_BFLOAT16) ((uint16_t*)scores)[at] = (uint16_t)(bits >> 16);
  if (type == SLUICE_CUDA_HALF) {
    uint32_t const exponent = bits >> 23 & 255;
    uint32_t const half = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits >> 13 & 1023);
    ((uint16_t*)scores)[at] = (uint16_t)(bits >> 16 & 0x8000u) | (uint16_t)half;
  }
}

static size_t size_of(int32_t type) { return type == SLUICE_CUDA_FLOAT ? 4 : 2; }

typedef struct memory_of_case {
  lines_case lines;
  void *scores, *queries, *edits, *probes, *tokens, *masks, *best, *results, *probe_values; /* the device's */
  void *selects, *selected, *listed;
} memory_of_case;

/* What takes another look at a line with this query. */
static sluice_cuda_select make_select(sluice_cuda_query* query, sluice_cuda_edit* edits, int32_t columns) {
  sluice_cuda_select made;
  memset(&made, 0, sizeof made);
  made.entropy = below(2), query->normalise = 1;
  if (below(4) == 0) return made; /* without a list */
  if (below(2)) made.noise = sluice_cuda_noise(drawn(), drawn());
  if (below(2)) made.best = 1 + below(below(4) == 0 ? columns : 9);
  if (below(3) == 0) made.mass = uniform(0, 1);
  if (below(4) == 0) made.within = uniform(0.01f, 1);
  if (below(4) == 0) made.typical = uniform(0, 1);
  if (below(4) == 0) made.deviations = uniform(0.5f, 2);
  if (below(4) == 0) made.at_least = uniform(0.001f, 0.1f);
  made.room = below(3) == 0 ? 1 + below(4) : columns;
  query->best = 0;
  if (query->stage == SLUICE_CUDA_AFTER_SOFTMAX && (query->edit_count > 0 || query->only >= 0)) {
    made.rounded = 1;
    edits[query->edits].penalty = uniform(0.5f, 2);
  }
  return made;
}
/* By token, those of one token as they were. */
static void order_edits(sluice_cuda_edit* edits, int32_t count) {
  int32_t i, k;
  for (i = 1; i < count; ++i)
    for (k = i; k > 0 && edits[k].token < edits[k - 1].token; --k) {
      sluice_cuda_edit const moved = edits[k];
      edits[k] = edits[k - 1], edits[k - 1] = moved;
    }
}

static void select_lines(memory_of_case* made, sluice_cuda_query* queries, sluice_cuda_edit* edits) {
  lines_case* const lines = &made->lines;
  sluice_cuda_task* const task = &lines->task;
  int32_t const rows = (int32_t)task->rows;
  sluice_cuda_select* const selects = NEW(sluice_cuda_select, rows);
  int32_t row, draws = 0, cuts = 0;
  for (row = 0; row < rows; ++row) {
    sluice_cuda_select* const select = &selects[row];
    if (row == 0 || below(3)) *select = make_select(&queries[row], edits, (int32_t)task->columns);
    select->first = (int64_t)lines->listed_count, lines->listed_count += (size_t)select->room;
    draws += select->noise != 0, cuts += select->room > 0;
  }
  lines->selects = selects;
  lines->selected = NEW(sluice_cuda_selected, rows), lines->listed = NEW(sluice_cuda_candidate, lines->listed_count);
  task->selection.queries = made->selects = THERE(selects, rows);
  task->selection.results = made->selected = device_new(NULL, sizeof(sluice_cuda_selected) * (size_t)rows);
  task->selection.best = made->listed = device_new(NULL, sizeof(sluice_cuda_candidate) * lines->listed_count);
  if (below(2)) task->selection.draws = draws > 0, task->selection.cuts = cuts > 0;
}

/* Lines with all that a task may name; `plain`: one query for all of them; `selects`: and what else may be asked. */
static memory_of_case* make_lines(int32_t type, int32_t rows, int32_t columns, int32_t k, int plain, int selects) {
  memory_of_case* const made = NEW(memory_of_case, 1);
  lines_case* const lines = &made->lines;
  sluice_cuda_task* const task = &lines->task;
  int32_t const words = (columns + 31) / 32, stride = columns + (plain ? 0 : below(9));
  size_t const count = (size_t)rows * (size_t)stride;
  uint64_t* const scores = NEW(uint64_t, count / 2 + 1);
  sluice_cuda_query* const queries = NEW(sluice_cuda_query, rows);
  sluice_cuda_edit* const edits = NEW(sluice_cuda_edit, rows * most_edits);
  int32_t* const probes = NEW(int32_t, rows * most_probes);
  int32_t* const tokens = NEW(int32_t, columns);
  uint32_t* const masks = NEW(uint32_t, sets * words);
  size_t i;
  int32_t row;
  for (i = 0; i < count; ++i) write_score(scores, type, i, uniform(-9, 9));
  for (i = 0; i < (size_t)columns; ++i) tokens[i] = i == 0 ? below(3) : tokens[i - 1] + 1 + below(2);
  for (i = 0; i < (size_t)(sets * words); ++i) masks[i] = drawn() | (uint32_t)drawn() << 5;
  for (row = 0; row < rows; ++row) {
    sluice_cuda_query* const query = &queries[row];
    sluice_cuda_query_init(query);
    query->best = row == 0 ? k : below(k + 1);
    query->edits = row * most_edits, query->probes = row * most_probes;
    for (i = 0; i < most_edits; ++i) {
      sluice_cuda_edit* const edit = &edits[query->edits + (int32_t)i];
      edit->token = below(columns), edit->add = below(2) ? -INFINITY : uniform(-2, 2), edit->penalty = 1;
    }
    for (i = 0; i < most_probes; ++i) probes[query->probes + (int32_t)i] = below(columns);
    query->probe_count = plain && rows > 1 ? 0 : most_probes; /* lines would write to the same places */
    if (plain) continue;
    query->edit_count = below(most_edits + 1), query->probe_count = below(most_probes + 1);
    query->normalise = below(4) != 0;
    if (below(3) == 0) query->temperature = uniform(0.5f, 2);
    if (below(2)) query->stage = SLUICE_CUDA_AFTER_SOFTMAX;
    else edits[query->edits].penalty = uniform(0.5f, 2);
    if (below(2)) query->only = below(sets) * words;
    if (below(2)) query->shortlist = below(sets) * words;
  }
  *task = sluice_cuda_task_init();
  CHECK(task->selection.queries == NULL && task->selection.draws == 1 && task->selection.cuts == 1);
  CHECK(task->k == 1 && task->query.best == 1 && task->query.normalise == 1 && task->query.temperature == 1);
  CHECK(task->scores == NULL && task->query.shortlist == -1 && task->query.only == -1);
  lines->scores = scores, lines->queries = queries, lines->edits = edits, lines->probes = probes;
  lines->masks = masks, lines->score_count = count, lines->probe_count = (size_t)(rows * most_probes);
  lines->best = NEW(sluice_cuda_candidate, rows * k), lines->results = NEW(sluice_cuda_line, rows);
  lines->probe_values = NEW(float, lines->probe_count);
  task->type = type, task->rows = rows, task->columns = columns, task->stride = plain ? 0 : stride, task->k = k;
  if (selects) select_lines(made, queries, edits);
  task->ascending = below(2); /* the host, and the C++ of expected, take any order */
  if (task->ascending != 0)
    for (row = 0; row < rows; ++row) order_edits(&edits[queries[row].edits], queries[row].edit_count);
  task->query = queries[0];
  task->scores = made->scores = device_new(scores, count * size_of(type));
  task->probes = made->probes = THERE(probes, lines->probe_count);
  task->edits = made->edits = THERE(edits, rows * most_edits);
  made->queries = THERE(queries, rows), made->masks = THERE(masks, sets * words);
  made->tokens = THERE(tokens, columns);
  if (!plain) task->queries = made->queries, task->masks = made->masks;
  if (!plain && below(2)) task->tokens = made->tokens, lines->tokens = tokens;
  else free(tokens);
  task->best = made->best = device_new(NULL, sizeof(sluice_cuda_candidate) * (size_t)(rows * k));
  task->results = made->results = device_new(NULL, sizeof(sluice_cuda_line) * (size_t)rows);
  task->probe_values = made->probe_values = device_new(NULL, sizeof(float) * lines->probe_count);
  return made;
}
/* Waits, and looks. */
static int wrong(memory_of_case* made) {
  lines_case* const lines = &made->lines;
  sluice_cuda_task const* const task = &lines->task;
  device_get(task->best, lines->best, sizeof *lines->best * (size_t)(task->rows * task->k));
  device_get(task->results, lines->results, sizeof *lines->results * (size_t)task->rows);
  device_get(task->probe_values, lines->probe_values, sizeof(float) * lines->probe_count);
  if (lines->selects != NULL) {
    device_get(made->selected, lines->selected, sizeof *lines->selected * (size_t)task->rows);
    device_get(made->listed, lines->listed, sizeof *lines->listed * lines->listed_count);
  }
  return lines_differ(lines);
}
static void free_lines(memory_of_case* made) {
  lines_case* const lines = &made->lines;
  device_delete(made->scores), device_delete(made->queries), device_delete(made->edits), device_delete(made->probes);
  device_delete(made->tokens), device_delete(made->masks), device_delete(made->best), device_delete(made->results);
  device_delete(made->probe_values), device_delete(made->selects), device_delete(made->selected);
  device_delete(made->listed), free((void*)lines->selects), free(lines->selected), free(lines->listed);
  free((void*)lines->scores), free((void*)lines->queries), free((void*)lines->edits), free((void*)lines->probes);
  free((void*)lines->tokens), free((void*)lines->masks), free(lines->best), free(lines->results);
  free(lines->probe_values), free(made);
}

/* ---- what is answered ---- */

static void expands(void) {
  int32_t round;
  for (round = 0; round < 40; ++round) {
    int32_t const type = round % 3, plain = round % 4 == 3;
    int32_t const k = round == 7 || round == 15 ? 90 : 1 + below(round % 5 == 0 ? 64 : 6);
    int32_t const columns = round == 9 ? 60000 : 100 + below(600);
    memory_of_case* const made = make_lines(type, 1 + below(4), columns, k, plain, round >= 24 && !plain);
    lines_case* const lines = &made->lines;
    sluice_cuda_expander* expander = NULL;
    sluice_cuda_step_options step = sluice_cuda_step_options_init();
    float* const bias = NEW(float, columns + 8);
    size_t const bias_count = round % 3 == 1 ? (size_t)columns : 0;
    size_t bytes = 12345, allocations;
    void *workspace, *bias_there = NULL;
    int32_t i;
    for (i = 0; i < columns; ++i) bias[i] = uniform(-2, 2);
    lines->bias = bias_count > 0 || round % 3 == 2 ? bias : NULL;
    if (round % 3 == 2) lines->task.bias = bias_there = THERE(bias, columns + 8);
    step.ring_loads = device_rings() && round % 2, step.early_starts = round % 3 == 2, step.clusters = round % 4 == 2;
    CHECK(sluice_cuda_expander_create(bias_count > 0 ? bias : NULL, bias_count, NULL, &step, &expander) ==
          SLUICE_CUDA_OK);

    /* In the expander's memory, and in ours, in which no more is allocated. */
    CHECK(sluice_cuda_expand(expander, &lines->task, NULL, 0, device_stream()) == SLUICE_CUDA_OK);
    CHECK(wrong(made) == 0);
    CHECK(sluice_cuda_workspace_bytes(expander, &lines->task, &bytes) == SLUICE_CUDA_OK && bytes != 12345);
    workspace = device_new(NULL, bytes + 1);
    allocations = device_allocations();
    CHECK(sluice_cuda_expand(expander, &lines->task, workspace, bytes + 1, device_stream()) == SLUICE_CUDA_OK);
    CHECK(device_allocations() == allocations);
    CHECK(wrong(made) == 0);
    if (bytes > 0) REFUSED(sluice_cuda_expand(expander, &lines->task, workspace, bytes - 1, NULL), "workspace");
    if (round == 9) CHECK(bytes > 0);
    device_delete(workspace);
    device_delete(bias_there);
    free(bias);
    sluice_cuda_expander_free(expander);
    free_lines(made);
  }
}

/* ---- lists: what is merged and verified ---- */

static sluice_cuda_candidate* make_lists(int32_t rows, int32_t k, int32_t vocabulary, sluice_cuda_line* results) {
  sluice_cuda_candidate* const best = NEW(sluice_cuda_candidate, rows * k);
  int32_t row, i;
  for (row = 0; row < rows; ++row) {
    int32_t const first = below(vocabulary);
    float log_prob = -uniform(0, 1);
    results[row].count = below(5) == 0 ? below(k + 1) : k, results[row].valid = 1;
    for (i = 0; i < k; ++i, log_prob -= (float)below(3) / 4)
      best[row * k + i].token = (first + i) % vocabulary, best[row * k + i].log_prob = log_prob;
  }
  return best;
}

static void merges(void) {
  int32_t round, i;
  for (round = 0; round < 12; ++round) {
    enum { groups = 3 };
    int32_t const k = 2 + below(9), vocabulary = 20, rows = 12;
    sluice_cuda_merge_group group[groups];
    sluice_cuda_merge_line line[12];
    sluice_cuda_line results[12];
    int32_t const ends[] = {3, 4};
    sluice_cuda_candidate* const best = make_lists(rows, k, vocabulary, results);
    sluice_cuda_merge* merge;
    merge_case made;
    void* there[8];
    memset(&made, 0, sizeof made);
    merge = &made.merge, *merge = sluice_cuda_merge_init();
    for (i = 0; i < rows; ++i) line[i].row = (i * 5 + round) % rows, line[i].base = -(double)below(8) / 4;
    for (i = 0; i < groups; ++i) {
      group[i].first = i * 4, group[i].lines = 1 + below(4), group[i].keep = i == 2 ? 0 : 1 + below(2 * k);
      group[i].kept = i * 100;
    }
    made.kept_count = 300;
    made.kept = NEW(sluice_cuda_kept, 300), made.totals = NEW(double, 300), made.places = NEW(int32_t, 300);
    made.best = best, made.results = results, made.groups = group, made.lines = line, made.ends = ends;
    merge->best = there[0] = THERE(best, rows * k), merge->results = there[1] = THERE(results, rows), merge->k = k;
    merge->groups = there[2] = THERE(group, groups), merge->group_count = groups;
    merge->lines = there[3] = THERE(line, rows), merge->widest = 4, merge->longest = 2 * k;
    merge->ends = there[4] = THERE(ends, 2), merge->end_count = 2;
    merge->kept = there[5] = device_new(NULL, sizeof(sluice_cuda_kept) * 300);
    if (round % 4 != 0) merge->totals = there[6] = device_new(NULL, sizeof(double) * 300);
    else there[6] = NULL;
    if (round % 4 != 1) merge->places = there[7] = device_new(NULL, sizeof(int32_t) * 300);
    else there[7] = NULL;
    CHECK(sluice_cuda_merge_beams(merge, device_stream()) == SLUICE_CUDA_OK);
    device_get(merge->kept, made.kept, sizeof(sluice_cuda_kept) * 300);
    if (merge->totals != NULL) device_get(merge->totals, made.totals, sizeof(double) * 300);
    if (merge->places != NULL) device_get(merge->places, made.places, sizeof(int32_t) * 300);
    CHECK(merge_differs(&made) == 0);
    for (i = 0; i < 8; ++i) device_delete(there[i]);
    free(best), free(made.kept), free(made.totals), free(made.places);
  }
}

/* Guesses by the exact rule, the plainest way. */
static void verify_plainly(sluice_cuda_candidate const* best, sluice_cuda_line const* results, int32_t k,
                           int32_t const* guesses, int32_t block, int32_t eos, sluice_cuda_verdict* verdict) {
  int32_t i = 0, ended = 0;
  memset(verdict, 0, sizeof *verdict);
  verdict->valid = 1;
  while (i < block - 1 && results[i].count > 0 && best[i * k].token == guesses[i] && !ended) {
    ended = guesses[i] == eos;
    ++i;
  }
  verdict->kept = verdict->right = i, verdict->count = i;
  verdict->tried = i < block - 1 && !ended ? i + 1 : i;
  verdict->finished = ended;
  if (ended || results[i].count == 0) return;
  ++verdict->count;
  verdict->finished = best[i * k].token == eos;
}

static void verifies(void) {
  int32_t round, i;
  int kept = 0, finished = 0;
  for (round = 0; round < 24; ++round) {
    enum { sentences = 5 };
    int32_t const block = 2 + below(6), k = 1 + below(4), vocabulary = 12, lines = sentences * block;
    sluice_cuda_line* const results = NEW(sluice_cuda_line, lines);
    sluice_cuda_candidate* const best = make_lists(lines, k, vocabulary, results);
    int32_t* const guesses = NEW(int32_t, lines);
    float* const log_probs = NEW(float, lines);
    int32_t first[sentences], counts[sentences];
    int32_t const eos[] = {2};
    verification_case made;
    sluice_cuda_verification* task;
    void* there[9];
    memset(&made, 0, sizeof made), memset(there, 0, sizeof there);
    task = &made.task, *task = sluice_cuda_verification_init();
    for (i = 0; i < lines; ++i) {
      guesses[i] = below(4) == 0 ? below(vocabulary) : best[i * k].token;
      log_probs[i] = below(9) == 0 ? -INFINITY : -uniform(0, 3);
    }
    for (i = 0; i < sentences; ++i) first[i] = (sentences - 1 - i) * block, counts[i] = below(block);
    made.token_count = (size_t)lines;
    made.tokens = NEW(sluice_cuda_candidate, lines), made.verdicts = NEW(sluice_cuda_verdict, sentences);
    task->sentences = sentences, task->block = block, task->k = k;
    task->best = there[0] = THERE(best, lines * k), task->results = there[1] = THERE(results, lines);
    task->guesses = there[2] = THERE(guesses, lines), task->guess_stride = block;
    task->eos = there[3] = THERE(eos, 1), task->eos_count = 1;
    task->tokens = there[4] = device_new(NULL, sizeof(sluice_cuda_candidate) * (size_t)lines);
    task->verdicts = there[5] = device_new(NULL, sizeof(sluice_cuda_verdict) * sentences);
    there[6] = THERE(log_probs, lines), there[7] = THERE(first, sentences), there[8] = THERE(counts, sentences);
    task->accept = round % 3;
    if (task->accept == SLUICE_CUDA_TOP_K) task->n = 1 + below(k);
    if (task->accept == SLUICE_CUDA_DISTANCE) task->n = below(3);
    if (task->accept != SLUICE_CUDA_EXACT) task->guess_log_probs = there[6], task->minimum = below(block);
    if (round % 2) task->first_lines = there[7], task->vocabulary = vocabulary - 3;
    if (round % 4 > 1) task->guess_counts = there[8];
    CHECK(sluice_cuda_verify(task, device_stream()) == SLUICE_CUDA_OK);
    device_get(task->tokens, made.tokens, sizeof(sluice_cuda_candidate) * (size_t)lines);
    device_get(task->verdicts, made.verdicts, sizeof(sluice_cuda_verdict) * sentences);
    CHECK(verification_differs(&made) == 0);
    for (i = 0; i < sentences; ++i) {
      kept += made.verdicts[i].kept, finished += made.verdicts[i].finished;
      if (round % 12 == 0) { /* exact, with nothing else */
        sluice_cuda_verdict plain;
        verify_plainly(best + i * block * k, results + i * block, k, guesses + i * block, block, 2, &plain);
        CHECK(memcmp(&plain, &made.verdicts[i], sizeof plain) == 0);
      }
    }
    for (i = 0; i < 9; ++i) device_delete(there[i]);
    free(results), free(best), free(guesses), free(log_probs), free(made.tokens), free(made.verdicts);
  }
  CHECK(kept > 100 && finished > 10); /* worth it */
}

/* ---- the caller's memory, and what is refused ---- */

typedef struct lender {
  size_t lent, back;
  int refuses;
} lender;
static void* lend(void* context, size_t bytes) {
  lender* const l = context;
  if (l->refuses) return NULL;
  l->lent += bytes;
  return device_new(NULL, bytes);
}
static void take_back(void* context, void* memory, size_t bytes) {
  lender* const l = context;
  l->back += bytes;
  device_delete(memory);
}

static void borrows(void) {
  memory_of_case* const made = make_lines(SLUICE_CUDA_FLOAT, 2, 60000, 5, 1, 0);
  sluice_cuda_expander* expander = NULL;
  lender l = {0, 0, 0};
  sluice_cuda_allocator allocator = sluice_cuda_allocator_init();
  sluice_cuda_step_options step = sluice_cuda_step_options_init();
  float bias = 0;
  REFUSED(sluice_cuda_expander_create(NULL, 0, &allocator, NULL, &expander), "allocate");
  allocator.allocate = lend;
  REFUSED(sluice_cuda_expander_create(NULL, 0, &allocator, NULL, &expander), "release");
  allocator.release = take_back, allocator.context = &l;
  CHECK(expander == NULL);
  CHECK(sluice_cuda_expander_create(NULL, 0, &allocator, NULL, &expander) == SLUICE_CUDA_OK);
  CHECK(sluice_cuda_expand(expander, &made->lines.task, NULL, 0, device_stream()) == SLUICE_CUDA_OK);
  CHECK(wrong(made) == 0);
  CHECK(l.lent > 0 && l.back == 0);
  sluice_cuda_expander_free(expander);
  CHECK(l.back == l.lent);

  /* None left: CUDA's own code. */
  l.refuses = 1, expander = NULL;
  CHECK(sluice_cuda_expander_create(&bias, 1, &allocator, NULL, &expander) == SLUICE_CUDA_DEVICE);
  CHECK(expander == NULL && sluice_cuda_last_code() == 2 && strlen(sluice_cuda_last_error()) > 10);
  REFUSED(sluice_cuda_expander_create(NULL, 1, NULL, NULL, &expander), "bias");
  step.ring_loads = 2;
  REFUSED(sluice_cuda_expander_create(NULL, 0, NULL, &step, &expander), "ring_loads = 2");
  step.ring_loads = 0, step.merge_behind_lines = -1;
  REFUSED(sluice_cuda_expander_create(NULL, 0, NULL, &step, &expander), "merge_behind_lines = -1");
  step.merge_behind_lines = 0, step.clusters = 7;
  REFUSED(sluice_cuda_expander_create(NULL, 0, NULL, &step, &expander), "clusters = 7");
  step.size = 4;
  REFUSED(sluice_cuda_expander_create(NULL, 0, NULL, &step, &expander), "sluice_cuda_step_options.size = 4");
  free_lines(made);
}

static void refuses(void) {
  memory_of_case* const made = make_lines(SLUICE_CUDA_HALF, 1, 300, 4, 1, 1);
  sluice_cuda_task const good = made->lines.task;
  sluice_cuda_task task = good;
  sluice_cuda_expander* expander = NULL;
  size_t bytes = 0;
  float const bias[3] = {0, 0, 0};
  char* const space = device_new(NULL, 4096);
  CHECK(sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander) == SLUICE_CUDA_OK);
#define WITHOUT(change, text)                                                                                          \
  task = good;                                                                                                         \
  change;                                                                                                              \
  REFUSED(sluice_cuda_expand(expander, &task, NULL, 0, NULL), text);                                                   \
  REFUSED(sluice_cuda_workspace_bytes(expander, &task, &bytes), text)
  WITHOUT(task.type = 3, "type = 3");
  WITHOUT(task.type = -1, "type = -1");
  WITHOUT(task.rows = -1, "rows = -1");
  WITHOUT(task.columns = 0, "columns = 0");
  WITHOUT(task.k = 0, "k = 0");
  WITHOUT(task.scores = NULL, "scores");
  WITHOUT(task.scores = (char const*)good.scores + 1, "multiple of 2 bytes");
  WITHOUT(task.best = NULL, "best");
  WITHOUT(task.results = NULL, "results");
  WITHOUT(task.bias = (float const*)good.scores + 1, "bias");
  WITHOUT(task.probes = NULL, "probes");
  WITHOUT(task.probe_values = NULL, "probe_values");
  WITHOUT((task.edits = NULL, task.query.edit_count = 1), "edits");
  WITHOUT(task.query.only = 0, "masks");
  WITHOUT(task.query.shortlist = 0, "masks");
  WITHOUT(task.query.best = -1, "query.best = -1");
  WITHOUT(task.query.temperature = 0, "query.temperature");
  WITHOUT(task.query.stage = 2, "query.stage = 2");
  WITHOUT(task.query.edit_count = -1, "query.edit_count");
  WITHOUT(task.query.probe_count = -1, "query.probe_count");
  WITHOUT(task.selection.results = NULL, "selection.results");
  WITHOUT((task.selection.best = NULL, task.selection.draws = 1), "selection.best");
  WITHOUT(task.selection.draws = 2, "selection.draws = 2");
  WITHOUT(task.selection.cuts = -1, "selection.cuts = -1");
  WITHOUT(task.selection.single = 2, "selection.single = 2");
  WITHOUT((task.selection.cuts = 1, task.selection.single = 1), "single");
  WITHOUT(task.selection.queries = (void const*)((char const*)good.selection.queries + 4), "selection.queries");
#undef WITHOUT
  REFUSED(sluice_cuda_expand(NULL, &good, NULL, 0, NULL), "expander");
  REFUSED(sluice_cuda_expand(expander, NULL, NULL, 0, NULL), "task");
  REFUSED(sluice_cuda_expand(expander, &good, NULL, 256, NULL), "workspace");
  REFUSED(sluice_cuda_expand(expander, &good, space + 8, 2048, NULL), "workspace");
  REFUSED(sluice_cuda_workspace_bytes(expander, &good, NULL), "bytes");
  REFUSED(sluice_cuda_workspace_bytes(NULL, &good, &bytes), "expander");
  REFUSED(sluice_cuda_expander_create(NULL, 0, NULL, NULL, NULL), "expander");
  task = good, task.rows = 0, task.scores = NULL, task.best = NULL, task.results = NULL;
  CHECK(sluice_cuda_expand(expander, &task, NULL, 0, NULL) == SLUICE_CUDA_OK);
  sluice_cuda_expander_free(expander), sluice_cuda_expander_free(NULL);
  CHECK(sluice_cuda_expander_create(bias, 3, NULL, NULL, &expander) == SLUICE_CUDA_OK);
  REFUSED(sluice_cuda_expand(expander, &good, NULL, 0, NULL), "bias.size() = 3");
  sluice_cuda_expander_free(expander);
  {
    sluice_cuda_merge merge = sluice_cuda_merge_init();
    REFUSED(sluice_cuda_merge_beams(NULL, NULL), "merge");
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "k = 0");
    merge.k = 2;
    CHECK(sluice_cuda_merge_beams(&merge, NULL) == SLUICE_CUDA_OK); /* of no groups */
    merge.widest = 129;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "widest = 129");
    merge.group_count = 1;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "best");
    merge.best = good.best;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "results");
    merge.results = good.results;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "groups");
    merge.groups = (void const*)good.best;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "lines");
    merge.lines = (void const*)good.best;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "kept");
    merge.kept = (void*)good.best, merge.end_count = 1;
    REFUSED(sluice_cuda_merge_beams(&merge, NULL), "ends");
  }
  {
    sluice_cuda_verification task_of_blocks = sluice_cuda_verification_init();
    REFUSED(sluice_cuda_verify(NULL, NULL), "verification");
    REFUSED(sluice_cuda_verify(&task_of_blocks, NULL), "block = 0");
    task_of_blocks.block = 3, task_of_blocks.k = 1;
    CHECK(sluice_cuda_verify(&task_of_blocks, NULL) == SLUICE_CUDA_OK); /* of no sentences */
    task_of_blocks.sentences = 1;
    REFUSED(sluice_cuda_verify(&task_of_blocks, NULL), "best");
    task_of_blocks.accept = 3;
    REFUSED(sluice_cuda_verify(&task_of_blocks, NULL), "accept = 3");
    task_of_blocks.accept = SLUICE_CUDA_DISTANCE;
    REFUSED(sluice_cuda_verify(&task_of_blocks, NULL), "guess_log_probs");
    task_of_blocks.vocabulary = -1;
    REFUSED(sluice_cuda_verify(&task_of_blocks, NULL), "vocabulary = -1");
  }
  device_delete(space);
  free_lines(made);
}

/* Structs of an earlier header end earlier, those of a later one go on. Nothing is read or written beyond them. */
typedef struct longer_task {
  sluice_cuda_task known;
  void* later;
} longer_task;
typedef struct longer_merge {
  sluice_cuda_merge known;
  int64_t later;
} longer_merge;

static void sizes(void) {
  memory_of_case* const made = make_lines(SLUICE_CUDA_FLOAT, 1, 300, 4, 1, 0);
  size_t const short_task = offsetof(sluice_cuda_task, selection);
  sluice_cuda_task *const older = taken(short_task), whole = made->lines.task;
  sluice_cuda_expander* expander = NULL;
  sluice_cuda_merge merge = sluice_cuda_merge_init();
  sluice_cuda_verification blocks = sluice_cuda_verification_init();
  sluice_cuda_allocator allocator = sluice_cuda_allocator_init();
  longer_task longer;
  longer_merge longer_merge_;
  CHECK(whole.selection.queries == NULL);
  CHECK(sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander) == SLUICE_CUDA_OK);
  memcpy(older, &whole, short_task), older->size = short_task; /* a sanitizer sees what lies behind it */
  CHECK(sluice_cuda_expand(expander, older, NULL, 0, device_stream()) == SLUICE_CUDA_OK);
  CHECK(wrong(made) == 0);
  older->size = short_task - 8;
  REFUSED(sluice_cuda_expand(expander, older, NULL, 0, NULL), "was never below ");
  older->size = 0;
  REFUSED(sluice_cuda_expand(expander, older, NULL, 0, NULL), "sluice_cuda_task.size = 0: must be sizeof(");

  memset(&longer, 0, sizeof longer), longer.known = whole, longer.known.size = sizeof longer;
  CHECK(sluice_cuda_expand(expander, &longer.known, NULL, 0, device_stream()) == SLUICE_CUDA_OK);
  CHECK(wrong(made) == 0);
  longer.later = expander;
  REFUSED(sluice_cuda_expand(expander, &longer.known, NULL, 0, NULL), "members that this library does not know");

  merge.k = 1, merge.size = offsetof(sluice_cuda_merge, totals);
  CHECK(sluice_cuda_merge_beams(&merge, NULL) == SLUICE_CUDA_OK); /* of no groups */
  merge.size = 8;
  REFUSED(sluice_cuda_merge_beams(&merge, NULL), "sluice_cuda_merge.size = 8");
  memset(&longer_merge_, 0, sizeof longer_merge_), longer_merge_.known.k = 1;
  longer_merge_.known.size = sizeof longer_merge_, longer_merge_.later = 1;
  REFUSED(sluice_cuda_merge_beams(&longer_merge_.known, NULL), "sluice_cuda_merge.size");
  blocks.size = 0;
  REFUSED(sluice_cuda_verify(&blocks, NULL), "sluice_cuda_verification.size = 0");
  sluice_cuda_expander_free(expander), expander = NULL;
  allocator.size = 0;
  REFUSED(sluice_cuda_expander_create(NULL, 0, &allocator, NULL, &expander), "sluice_cuda_allocator.size = 0");
  free(older), free_lines(made);
}

/* ---- what docs/cuda.md shows ---- */

static void greedy_step(void) {
  enum { sentences = 4, words = 32000 };
  uint16_t* const numbers = NEW(uint16_t, sentences * words);
  sluice_cuda_candidate tokens[sentences];
  sluice_cuda_candidate* const best = device_new(NULL, sizeof tokens);
  sluice_cuda_line* const results = device_new(NULL, sizeof(sluice_cuda_line) * sentences);
  sluice_cuda_stream const stream = device_stream();
  sluice_cuda_expander* expander = NULL;
  sluice_cuda_status status;
  void *logits, *workspace = NULL;
  size_t i, bytes = 0;
  for (i = 0; i < sentences; ++i) numbers[i * words + 777 * (i + 1)] = 0x4000; /* 2, among zeros */
  logits = THERE(numbers, sentences * words);
  /* clang-format off */
  // [expand]
  sluice_cuda_task task = sluice_cuda_task_init();  // the best token of each line, with its log-probability
  task.scores = logits, task.type = SLUICE_CUDA_HALF;  // where the model left them
  task.rows = sentences, task.columns = words;
  task.best = best, task.results = results;

  status = sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander);
  if (status == SLUICE_CUDA_OK) status = sluice_cuda_workspace_bytes(expander, &task, &bytes);
  if (status == SLUICE_CUDA_OK) workspace = device_new(NULL, bytes);  // cudaMalloc, say
  if (status == SLUICE_CUDA_OK) status = sluice_cuda_expand(expander, &task, workspace, bytes, stream);
  if (status != SLUICE_CUDA_OK) fprintf(stderr, "%s\n", sluice_cuda_last_error());
  // [/expand]
  /* clang-format on */
  CHECK(status == SLUICE_CUDA_OK);
  device_get(best, tokens, sizeof tokens);
  for (i = 0; i < sentences; ++i) {
    CHECK(tokens[i].token == (int32_t)(777 * (i + 1)));
    CHECK(fabs(tokens[i].log_prob - (2 - log(words - 1 + exp(2)))) < 1e-5);
  }
  sluice_cuda_expander_free(expander);
  device_delete(best), device_delete(results), device_delete(logits), device_delete(workspace);
  free(numbers);
}

/* A token of each sentence, drawn on the device. */
static void draw_step(void) {
  enum { sentences = 6, words = 500 };
  float* const numbers = NEW(float, sentences* words);
  sluice_cuda_candidate tokens[sentences];
  sluice_cuda_candidate* const drawn_there = device_new(NULL, sizeof tokens);
  sluice_cuda_candidate* const best = device_new(NULL, sizeof tokens);
  sluice_cuda_line* const results = device_new(NULL, sizeof(sluice_cuda_line) * sentences);
  sluice_cuda_selected* const selected = device_new(NULL, sizeof(sluice_cuda_selected) * sentences);
  sluice_cuda_stream const stream = device_stream();
  sluice_cuda_expander* expander = NULL;
  sluice_cuda_task task = sluice_cuda_task_init();
  uint64_t const seed = 7, position = 3;
  void *logits, *draws_there;
  int32_t i, v;
  for (i = 0; i < sentences * words; ++i) numbers[i] = uniform(-3, 3);
  logits = THERE(numbers, sentences * words);
  CHECK(sluice_cuda_expander_create(NULL, 0, NULL, NULL, &expander) == SLUICE_CUDA_OK);
  task.scores = logits, task.rows = sentences, task.columns = words, task.best = best, task.results = results;
  /* clang-format off */
  // [draw]
  sluice_cuda_select draws[sentences] = {{0}};  // copied to the device
  for (i = 0; i < sentences; ++i) {
    draws[i].noise = sluice_cuda_noise(sluice_cuda_noise(seed, (uint64_t)i), position);
    draws[i].best = 1, draws[i].first = i, draws[i].room = 1;  // a token of line i, to place i
  }
  // [/draw]
  draws_there = THERE(draws, sentences);
  // [drawn]
  task.query.best = 0;  // no other list
  task.selection.queries = draws_there, task.selection.results = selected;
  task.selection.best = drawn_there, task.selection.cuts = 0;  // no list but by noise,
  task.selection.single = 1;  // and of one token
  // [/drawn]
  /* clang-format on */
  CHECK(sluice_cuda_expand(expander, &task, NULL, 0, stream) == SLUICE_CUDA_OK);
  device_get(drawn_there, tokens, sizeof tokens);
  for (i = 0; i < sentences; ++i) { /* the largest of all sums of score and noise */
    double most = -INFINITY;
    int32_t token = -1;
    for (v = 0; v < words; ++v) {
      uint64_t const bits = sluice_cuda_noise(draws[i].noise, (uint64_t)v) >> 12;
      double const sum = (double)numbers[i * words + v] - log(-log(((double)bits + 0.5) / 4503599627370496.0));
      if (sum > most) most = sum, token = v;
    }
    CHECK(tokens[i].token == token);
  }
  sluice_cuda_expander_free(expander);
  device_delete(best), device_delete(results), device_delete(logits), device_delete(draws_there);
  device_delete(selected), device_delete(drawn_there), free(numbers);
}

int main(void) {
  if (device_missing()) return 0;
  CHECK(strcmp(sluice_cuda_last_error(), "") == 0 && sluice_cuda_last_code() == 0);
  CHECK(strncmp(sluice_cuda_version(), "0.", 2) == 0);
  sluice_cuda_query_init(NULL);
  greedy_step();
  draw_step();
  expands();
  merges();
  verifies();
  borrows();
  refuses();
  sizes();
  beams(&passed, &failures);
  printf("%d passed, %d failed\n", passed, failures);
  return failures == 0 ? 0 : 1;
}
