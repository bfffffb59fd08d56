/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLIENT "frames"
#define LAST_ERROR sluice_last_error
#include "check.h"
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_BAD_ARGUMENT && strstr(sluice_last_error(), text) != NULL, #call, __LINE__)

enum { matrices_of = 6 };
static float numbers[matrices_of][ctc_frames * ctc_size];
static sluice_bytes texts[ctc_size];

/* Frames of different lengths; log-probabilities if asked for. */
static void fill(int log_probs, sluice_ctc_matrix* matrices) {
  uint32_t state = 7;
  int m, i, f;
  for (m = 0; m < matrices_of; ++m) {
    for (i = 0; i < ctc_frames * ctc_size; ++i) {
      state = state * 1664525u + 1013904223u;
      numbers[m][i] = (float)(state >> 8) / 3000000.0f;
    }
    for (f = 0; log_probs && f < ctc_frames; ++f) {
      float* const line = &numbers[m][f * ctc_size];
      double sum = 0;
      for (i = 0; i < ctc_size; ++i) sum += exp((double)line[i]);
      for (i = 0; i < ctc_size; ++i) line[i] = (float)((double)line[i] - log(sum));
    }
    matrices[m].scores = numbers[m], matrices[m].frames = (size_t)(ctc_frames - m),
    matrices[m].stride = m % 2 * ctc_size;
  }
}

static sluice_ngrams* ngrams(void) {
  static char const path[] = "sluice.test.c.frames.arpa";
  FILE* const file = fopen(path, "w");
  sluice_ngrams* made = NULL;
  CHECK(file != NULL && fputs(ctc_arpa, file) >= 0 && fclose(file) == 0);
  CHECK(sluice_ngrams_open(path, &made) == SLUICE_OK);
  CHECK(remove(path) == 0);
  return made;
}

static sluice_ctc* ctc_of(int way) {
  static sluice_bytes const words[] = {{"ab", 2}, {"a", 1}, {"cb", 2}, {"ab", 2}};
  static sluice_token const tokens[] = {1, 2, 1, 3, 2, 1, 3}, space = 4;
  static size_t const lengths[] = {2, 1, 2, 2};
  static double const weight = 0.5;
  sluice_ctc_options options = sluice_ctc_options_init();
  sluice_ngrams* const table = way >= ctc_words && way <= ctc_labels ? ngrams() : NULL;
  int32_t of_labels[ctc_size];
  sluice_ctc* ctc = NULL;
  options.labels = ctc_size, options.log_probs = way == ctc_pruned;
  options.separators = &space, options.separator_count = 1;
  if (way == ctc_any_words || way == ctc_grammar) options.texts = texts;
  if (way == ctc_lexicon || way == ctc_words)
    options.words = words, options.tokens = tokens, options.lengths = lengths, options.spellings = 4;
  options.ngrams = table;
  if (way == ctc_words || way == ctc_any_words) options.weight = &weight, options.bonus = 0.25, options.unknown = -1;
  if (way == ctc_labels) {
    sluice_bytes const spellings[] = {{"", 0}, {"a", 1}, {"ab", 2}, {"no", 2}, {"cb", 2}};
    CHECK(sluice_ngrams_find(table, spellings, ctc_size, of_labels) == SLUICE_OK);
    options.ngram_words = of_labels;
  }
  CHECK(sluice_ctc_create(&options, &ctc) == SLUICE_OK);
  sluice_ngrams_free(table);
  return ctc;
}

static sluice_search* ctc_search(int way, sluice_ctc* ctc) {
  sluice_search* search = NULL;
  CHECK(sluice_search_create("ctc", &search) == SLUICE_OK);
  CHECK(sluice_search_set(search, "width", 12) == SLUICE_OK);
  CHECK(sluice_search_set(search, "n_best", 3) == SLUICE_OK);
  if (way == ctc_pruned) {
    CHECK(sluice_search_set(search, "top_tokens", 3) == SLUICE_OK);
    CHECK(sluice_search_set(search, "token_floor", -9) == SLUICE_OK);
    CHECK(sluice_search_set(search, "threshold", 8) == SLUICE_OK);
    CHECK(sluice_search_set(search, "skip_blank", 0.9) == SLUICE_OK);
    CHECK(sluice_search_set(search, "viterbi", 1) == SLUICE_OK);
  }
  if (way == ctc_biased) {
    static sluice_token const tokens[] = {1, 3, 3, 3};
    static size_t const lengths[] = {2, 2};
    sluice_biased_phrase const phrase = {tokens, lengths, 2, 2.5f, 0};
    sluice_bias* bias = NULL;
    CHECK(sluice_bias_create(&phrase, 1, NULL, &bias) == SLUICE_OK);
    CHECK(sluice_search_prefer(search, bias) == SLUICE_OK);
    sluice_bias_free(bias);
  }
  if (way == ctc_grammar) {
    sluice_grammar* grammar = NULL;
    CHECK(sluice_ctc_grammar(ctc, "regex", ctc_regex, NULL, &grammar) == SLUICE_OK);
    CHECK(sluice_search_obey(search, grammar) == SLUICE_OK);
    sluice_grammar_free(grammar);
  }
  return search;
}

/* The words of a result lie between its separators, and of a lexicon they are its. */
static void right_words(int way, sluice_frames_result const* result) {
  size_t h, w, covered;
  for (h = 0; h < result->count; ++h) {
    sluice_frames_hypothesis const* const found = &result->hypotheses[h];
    covered = 0;
    for (w = 0; w < found->word_count; ++w) {
      sluice_frames_word const* const word = &found->words[w];
      CHECK(word->begin < word->end && word->first_frame == found->frames[2 * word->begin]);
      CHECK(word->end_frame == found->frames[2 * word->end - 1] && word->confidence > 0 && word->confidence <= 1);
      CHECK((word->spelling >= 0) == (way == ctc_lexicon || way == ctc_words));
      covered += (size_t)(word->end - word->begin);
    }
    for (w = 0; w < found->count; ++w) covered += found->tokens[w] == 4;
    CHECK(covered == found->count);
  }
}

/* The same, cut into pieces of `piece` frames. */
static void streams(int way, sluice_ctc* ctc, sluice_search* search, sluice_ctc_matrix const* matrix, size_t piece) {
  sluice_ctc_stream* stream = NULL;
  sluice_frames_result const* result = NULL;
  sluice_token const* settled = NULL;
  sluice_token before[ctc_frames];
  size_t at, count = 0;
  int32_t ended = 1;
  CHECK(sluice_ctc_stream_create(ctc, search, &stream) == SLUICE_OK);
  CHECK(sluice_ctc_stream_result(stream, &result) == SLUICE_REFUSED);
  for (at = 0; at < matrix->frames; at += piece) {
    sluice_ctc_matrix part = *matrix;
    part.scores += at * ctc_size, part.frames = matrix->frames - at < piece ? matrix->frames - at : piece;
    CHECK(sluice_ctc_stream_append(stream, &part, 0, &ended) == SLUICE_OK && ended == 0);
    CHECK(sluice_ctc_stream_settled(stream, &settled, &count) == SLUICE_OK && count <= ctc_frames);
  }
  if (count > 0) memcpy(before, settled, count * sizeof *before);
  CHECK(sluice_ctc_stream_append(stream, NULL, 1, &ended) == SLUICE_OK && ended == 1);
  CHECK(sluice_ctc_stream_result(stream, &result) == SLUICE_OK);
  CHECK(ctc_differs(way, matrix->scores, matrix->frames, result) == 0);
  CHECK(result->count > 0 && memcmp(before, result->hypotheses[0].tokens, count * sizeof *before) == 0);
  CHECK(sluice_ctc_stream_next(stream) == SLUICE_REFUSED);
  sluice_ctc_stream_free(stream);
}

/* Utterances of at most five frames: each is what its frames alone would be. */
static void ends_by_itself(sluice_ctc_matrix const* matrix, int32_t all_came) {
  sluice_ctc* const ctc = ctc_of(ctc_plain);
  sluice_search* const search = ctc_search(ctc_plain, ctc);
  sluice_ctc_stream* stream = NULL;
  sluice_frames_result const* result = NULL;
  size_t at = 0;
  int32_t ended = 0;
  CHECK(sluice_search_set(search, "longest", 5) == SLUICE_OK);
  CHECK(sluice_ctc_stream_create(ctc, search, &stream) == SLUICE_OK);
  CHECK(sluice_ctc_stream_append(stream, matrix, all_came, &ended) == SLUICE_OK);
  for (; at + 5 <= matrix->frames; at += 5) {
    CHECK(ended == 1 && sluice_ctc_stream_result(stream, &result) == SLUICE_OK && result->frames == 5);
    CHECK(ctc_differs(ctc_plain, matrix->scores + at * ctc_size, 5, result) == 0);
    CHECK(sluice_ctc_stream_next(stream) == SLUICE_OK);
    CHECK(sluice_ctc_stream_append(stream, NULL, 0, &ended) == SLUICE_OK);
  }
  if (!all_came) CHECK(ended == 0 && sluice_ctc_stream_append(stream, NULL, 1, &ended) == SLUICE_OK);
  CHECK(ended == 1);
  CHECK(sluice_ctc_stream_result(stream, &result) == SLUICE_OK);
  CHECK(ctc_differs(ctc_plain, matrix->scores + at * ctc_size, matrix->frames - at, result) == 0);
  REFUSED(sluice_ctc_stream_append(stream, matrix, 0, &ended), "nothing may come after the last");
  sluice_ctc_stream_free(stream);
  sluice_search_free(search);
  sluice_ctc_free(ctc);
}

static void aligns(sluice_ctc_matrix const* matrix) {
  static sluice_token const tokens[] = {1, 2, 2, 4, 3}, wrong = 0;
  sluice_ctc* const ctc = ctc_of(ctc_plain);
  int32_t ranges[10];
  double log_probs[5], log_prob = 0;
  CHECK(sluice_ctc_align(ctc, matrix, tokens, 5, ranges, log_probs, &log_prob) == SLUICE_OK);
  CHECK(ctc_alignment_differs(matrix->scores, matrix->frames, tokens, 5, ranges, log_probs, log_prob) == 0);
  REFUSED(sluice_ctc_align(ctc, matrix, &wrong, 1, ranges, log_probs, &log_prob), "blank");
  sluice_ctc_free(ctc);
}

static void refuses(sluice_ctc_matrix* matrices) {
  static float const probabilities[2 * ctc_size] = {0.5f, 0.25f, 0.25f, 0, 0, 0.125f, 0.125f, 0.25f, 0.25f, 0.25f};
  sluice_ctc_options options = sluice_ctc_options_init();
  sluice_ctc* ctc = NULL;
  sluice_frames_results* results = NULL;
  sluice_search *search = NULL, *other = NULL;
  sluice_ctc_matrix matrix;
  matrix.scores = probabilities, matrix.frames = 2, matrix.stride = 0;
  REFUSED(sluice_ctc_create(&options, &ctc), "size = 0");
  options.labels = ctc_size, options.blank = ctc_size;
  REFUSED(sluice_ctc_create(&options, &ctc), "blank = 5");
  options.blank = 0, options.separators = &options.blank, options.separator_count = 1;
  REFUSED(sluice_ctc_create(&options, &ctc), "separators = 0");
  options.separator_count = 0, options.size = 1;
  REFUSED(sluice_ctc_create(&options, &ctc), "sluice_ctc_options.size = 1");
  options = sluice_ctc_options_init(), options.labels = ctc_size;
  CHECK(sluice_ctc_create(&options, &ctc) == SLUICE_OK);
  REFUSED(sluice_ctc_decode(ctc, NULL, &matrix, 1, 0, &results), "are probabilities");
  matrices[1].stride = 4;
  REFUSED(sluice_ctc_decode(ctc, NULL, matrices, 2, 0, &results), "matrices[1].stride = 4");
  matrices[1].stride = 0;
  CHECK(sluice_search_create("greedy", &other) == SLUICE_OK && sluice_search_create("ctc", &search) == SLUICE_OK);
  REFUSED(sluice_ctc_decode(ctc, other, matrices, 1, 0, &results), "must be of kind ctc");
  CHECK(sluice_search_set(search, "repetition_penalty", 1.5) == SLUICE_OK);
  REFUSED(sluice_ctc_decode(ctc, search, matrices, 1, 0, &results), "penalties");
  matrix = matrices[0], matrix.frames = 0;
  CHECK(sluice_ctc_decode(ctc, NULL, &matrix, 1, 0, &results) == SLUICE_OK &&
        sluice_frames_results_count(results) == 1);
  CHECK(strcmp(sluice_frames_results_at(results, 0)->failure, "bad_request") == 0);
  CHECK(sluice_frames_results_at(results, 1) == NULL);
  sluice_frames_results_free(results);
  sluice_search_free(search), sluice_search_free(other);
  sluice_ctc_free(ctc);
}

/* A network over the table of frames.h. */
typedef struct parts {
  uint32_t sources[64];
  sluice_token before[transducer_states], last[transducer_states];
  float lines[64 * (transducer_labels + 3)];
  int columns, released, destroyed, broken;
  int32_t come, asked; /* of a stream: frames that have come; the last that join was asked for */
} parts;

static int32_t frames_of(void* user, void const* source) {
  parts const* const p = user;
  return p->come >= 0 ? p->come : transducer_frames(*(uint32_t const*)source);
}
static int start(void* user, size_t count, void const* const* sources, int32_t const* utterances) {
  parts* const p = user;
  size_t i;
  for (i = 0; i < count; ++i) p->sources[utterances[i]] = *(uint32_t const*)sources[i];
  return 0;
}
static int predict(void* user, size_t count, sluice_predictor_row const* rows) {
  parts* const p = user;
  size_t i;
  for (i = 0; i < count; ++i) {
    p->before[rows[i].to] = rows[i].from < 0 ? 0 : p->last[rows[i].from];
    p->last[rows[i].to] = rows[i].label;
  }
  return 0;
}
static int join(void* user, size_t count, sluice_joiner_row const* rows, float const** scores, size_t* stride) {
  parts* const p = user;
  size_t i;
  int column;
  if (p->broken != 0) return p->broken;
  for (i = 0; i < count; ++i)
    if (rows[i].frame > p->asked) p->asked = rows[i].frame;
  for (i = 0; i < count && i < 64; ++i)
    for (column = 0; column < p->columns; ++column)
      p->lines[i * (size_t)p->columns + (size_t)column] = transducer_logit(
          p->sources[rows[i].utterance], rows[i].frame, p->before[rows[i].state], p->last[rows[i].state], column);
  *scores = p->lines, *stride = (size_t)p->columns;
  return 0;
}
static void release(void* user, size_t count, int32_t const* utterances) {
  (void)utterances;
  ((parts*)user)->released += (int)count;
}
static void destroy(void* user) { ++((parts*)user)->destroyed; }

static sluice_transducer_functions network_of(parts* p, int way) {
  sluice_transducer_functions functions = sluice_transducer_functions_init();
  memset(p, 0, sizeof *p);
  p->come = -1;
  p->columns = transducer_labels + (way == of_durations ? 3 : 0);
  functions.labels = transducer_labels, functions.user = p;
  if (way == of_durations) functions.durations = transducer_durations, functions.duration_count = 3;
  functions.frames = frames_of, functions.start = start, functions.predict = predict, functions.join = join;
  functions.release = release, functions.destroy = destroy;
  return functions;
}

static sluice_search* transducer_search_of(int way) {
  sluice_search* search = NULL;
  CHECK(sluice_search_create(way == of_greedy ? "transducer_greedy" : "transducer", &search) == SLUICE_OK);
  if (way == of_greedy) {
    CHECK(sluice_search_set(search, "most_symbols", 3) == SLUICE_OK);
    return search;
  }
  CHECK(sluice_search_set(search, "width", 5) == SLUICE_OK && sluice_search_set(search, "n_best", 3) == SLUICE_OK);
  if (way == of_alignments) CHECK(sluice_search_set(search, "order", 1) == SLUICE_OK);
  if (way == of_durations)
    CHECK(sluice_search_set(search, "threshold", 6) == SLUICE_OK &&
          sluice_search_set(search, "within", 5) == SLUICE_OK);
  if (way == of_boosted) {
    static sluice_token const tokens[] = {1, 3};
    static size_t const length = 2;
    sluice_biased_phrase const phrase = {tokens, &length, 1, 2.5f, 0};
    sluice_bias* bias = NULL;
    CHECK(sluice_bias_create(&phrase, 1, NULL, &bias) == SLUICE_OK);
    CHECK(sluice_search_prefer(search, bias) == SLUICE_OK);
    sluice_bias_free(bias);
  }
  return search;
}

/* Two streams of one source in turns, the second one frame behind: the result is that of the whole. */
static void transducer_streams(int way, sluice_transducer* transducer, sluice_search* search, uint32_t source,
                               parts* p) {
  sluice_ctc_stream* streams[2] = {NULL, NULL};
  sluice_frames_result const* result = NULL;
  sluice_ctc_matrix matrix;
  int32_t const all = transducer_frames(source);
  int32_t ended = 0;
  int i;
  for (i = 0; i < 2; ++i) CHECK(sluice_transducer_stream(transducer, search, NULL, &source, &streams[i]) == SLUICE_OK);
  for (p->come = 0; p->come < all; ++p->come) {
    p->asked = 0;
    for (i = 0; i < 2; ++i) CHECK(sluice_ctc_stream_append(streams[i], NULL, 0, &ended) == SLUICE_OK && ended == 0);
    CHECK(p->asked <= p->come);
  }
  CHECK(sluice_ctc_stream_result(streams[0], &result) == SLUICE_REFUSED);
  matrix.scores = numbers[0], matrix.frames = 1, matrix.stride = transducer_labels;
  REFUSED(sluice_ctc_stream_append(streams[0], &matrix, 0, &ended), "has its frames");
  p->come = 1;
  REFUSED(sluice_ctc_stream_append(streams[0], NULL, 0, &ended), "must not be less than before");
  p->come = all;
  for (i = 0; i < 2; ++i) {
    CHECK(sluice_ctc_stream_append(streams[i], NULL, 1, &ended) == SLUICE_OK && ended == 1);
    CHECK(sluice_ctc_stream_result(streams[i], &result) == SLUICE_OK);
    CHECK(transducer_differs(way, source, result) == 0);
    CHECK(sluice_ctc_stream_next(streams[i]) == SLUICE_REFUSED);
    sluice_ctc_stream_free(streams[i]);
  }
  p->come = -1;
}

static void transduces(void) {
  enum { utterances = 9 };
  static uint32_t const sources[utterances] = {3, 1, 4, 1, 5, 9, 2, 6, 8};
  static parts p;
  void const* pointers[utterances];
  int way;
  size_t i, batch;
  for (i = 0; i < utterances; ++i) pointers[i] = &sources[i];
  for (way = 0; way < transducer_ways; ++way) {
    sluice_transducer_functions functions = network_of(&p, way);
    sluice_transducer* transducer = NULL;
    sluice_search* const search = transducer_search_of(way);
    sluice_frames_results* results = NULL;
    CHECK(sluice_transducer_create(&functions, &transducer) == SLUICE_OK);
    for (batch = 0; batch < 5; batch += 2) {
      CHECK(sluice_transducer_decode(transducer, search, NULL, pointers, utterances, batch, &results) == SLUICE_OK);
      CHECK(sluice_frames_results_count(results) == utterances);
      for (i = 0; i < sluice_frames_results_count(results); ++i)
        CHECK(transducer_differs(way, sources[i], sluice_frames_results_at(results, i)) == 0);
      sluice_frames_results_free(results);
    }
    CHECK(p.released > 0);
    transducer_streams(way, transducer, search, sources[5], &p);
    p.broken = 7;
    CHECK(sluice_transducer_decode(transducer, search, NULL, pointers, 1, 0, &results) == SLUICE_OK);
    CHECK(strcmp(sluice_frames_results_at(results, 0)->failure, "model") == 0);
    CHECK(strstr(sluice_frames_results_at(results, 0)->message, "the model's join returned 7") != NULL);
    sluice_frames_results_free(results);
    CHECK(p.destroyed == 0);
    sluice_transducer_free(transducer);
    CHECK(p.destroyed == 1);
    functions.join = NULL;
    REFUSED(sluice_transducer_create(&functions, &transducer), "join = null");
    functions.join = join, functions.blank = transducer_labels;
    REFUSED(sluice_transducer_create(&functions, &transducer), "tokens.blank = 4");
    sluice_search_free(search);
  }
}

/* A language model that finds all of its tokens equally likely. */
typedef struct language {
  float line[64 * 7];
  int calls, lines;
} language;
static int begin_texts(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  size_t i;
  (void)user, (void)slots;
  for (i = 0; i < count; ++i)
    if (sources[i] != NULL) return 1;
  return 0;
}
static int go_on(void* user, size_t count, sluice_row const* rows, float* scores) {
  language* const its = user;
  (void)rows;
  memset(scores, 0, count * 7 * sizeof *scores);
  ++its->calls, its->lines += (int)count;
  return 0;
}

/* With one bonus a label that is what a label costs, all texts score less by what their end costs. */
static void beside_a_model(sluice_ctc_matrix const* matrices) {
  static language its;
  static double const weight = 0.5;
  static sluice_token const none = 0, tokens[ctc_size] = {-1, 6, 2, 1, 5}, wrong[ctc_size] = {-1, 6, 2, 1, 7};
  double const cost = log(7.0) * 0.5;
  sluice_model_functions functions = sluice_model_functions_init();
  sluice_ctc_options options = sluice_ctc_options_init();
  sluice_model* model = NULL;
  sluice_ctc* const alone = ctc_of(ctc_plain);
  sluice_ctc* ctc = NULL;
  sluice_search* const search = ctc_search(ctc_plain, alone);
  sluice_frames_results *plain = NULL, *found = NULL;
  sluice_ctc_stream* stream = NULL;
  sluice_frames_result const* streamed = NULL;
  size_t i, k;
  functions.vocabulary = 7, functions.eos = &none, functions.eos_count = 1, functions.user = &its;
  functions.start = begin_texts, functions.step = go_on;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  options.labels = ctc_size, options.weight = &weight, options.bonus = cost;
  options.model = model, options.model_tokens = tokens;
  REFUSED(sluice_ctc_create(&options, &ctc), "not ragged");
  sluice_model_free(model);
  functions.abilities = SLUICE_RAGGED;
  CHECK(sluice_model_create(&functions, &model) == SLUICE_OK);
  options.model = model, options.model_tokens = wrong;
  REFUSED(sluice_ctc_create(&options, &ctc), "model_tokens[4] = 7");
  options.model_tokens = tokens;
  CHECK(sluice_ctc_create(&options, &ctc) == SLUICE_OK);
  CHECK(sluice_ctc_decode(alone, search, matrices, matrices_of, 1, &plain) == SLUICE_OK);
  CHECK(sluice_ctc_decode(ctc, search, matrices, matrices_of, 1, &found) == SLUICE_OK);
  CHECK(its.calls > 0 && its.calls <= 2 * ctc_frames && its.lines > 3 * its.calls);
  CHECK(sluice_ctc_stream_create(ctc, search, &stream) == SLUICE_OK);
  CHECK(sluice_ctc_stream_append(stream, &matrices[0], 1, NULL) == SLUICE_OK);
  CHECK(sluice_ctc_stream_result(stream, &streamed) == SLUICE_OK);
  for (i = 0; i < matrices_of; ++i) {
    sluice_frames_result const* const a = sluice_frames_results_at(plain, i);
    sluice_frames_result const* const b = sluice_frames_results_at(found, i);
    CHECK(a->count == b->count && a->count == 3);
    for (k = 0; k < a->count; ++k) {
      sluice_frames_hypothesis const *const x = &a->hypotheses[k], *const y = &b->hypotheses[k];
      CHECK(x->count == y->count && memcmp(x->tokens, y->tokens, x->count * sizeof *x->tokens) == 0);
      CHECK(fabs(y->score - (x->score - cost)) < 1e-4);
      CHECK(i > 0 || (streamed->hypotheses[k].score == y->score && streamed->hypotheses[k].count == y->count));
    }
  }
  sluice_ctc_stream_free(stream);
  sluice_frames_results_free(plain), sluice_frames_results_free(found);
  sluice_search_free(search), sluice_ctc_free(ctc), sluice_ctc_free(alone), sluice_model_free(model);
}

int frames(int* all_passed) {
  sluice_ctc_matrix matrices[matrices_of];
  int way;
  size_t i, threads;
  for (i = 0; i < ctc_size; ++i) texts[i].data = ctc_texts[i], texts[i].count = strlen(ctc_texts[i]);
  for (way = 0; way < ctc_ways; ++way) {
    sluice_ctc* const ctc = ctc_of(way);
    sluice_search* const search = ctc_search(way, ctc);
    fill(way == ctc_pruned, matrices);
    for (threads = 0; threads < 4; ++threads) {
      sluice_frames_results* results = NULL;
      CHECK(sluice_ctc_decode(ctc, search, matrices, matrices_of, threads, &results) == SLUICE_OK);
      CHECK(sluice_frames_results_count(results) == matrices_of);
      for (i = 0; i < sluice_frames_results_count(results); ++i) {
        CHECK(ctc_differs(way, matrices[i].scores, matrices[i].frames, sluice_frames_results_at(results, i)) == 0);
        right_words(way, sluice_frames_results_at(results, i));
      }
      sluice_frames_results_free(results);
    }
    for (i = 0; i < matrices_of; ++i) streams(way, ctc, search, &matrices[i], i + 1);
    sluice_search_free(search);
    sluice_ctc_free(ctc);
  }
  fill(0, matrices);
  ends_by_itself(&matrices[0], 0);
  ends_by_itself(&matrices[0], 1);
  aligns(&matrices[0]);
  refuses(matrices);
  beside_a_model(matrices);
  transduces();
  *all_passed += passed;
  return failures;
}
