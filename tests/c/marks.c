/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"

#include "expected.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLIENT "marks"
#define LAST_ERROR sluice_last_error
#include "check.h"
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_BAD_ARGUMENT && strstr(sluice_last_error(), text) != NULL, #call, __LINE__)

/* A model that babbles for as long as it is asked: its scores depend on the last token. */
enum { words = 60, length = 300 };

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}
static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  size_t i, k;
  int32_t next;
  (void)user;
  for (i = 0; i < count; ++i)
    for (k = rows[i].count - (size_t)rows[i].lines; k < rows[i].count; ++k)
      for (next = 0; next < words; ++next) *scores++ = (float)(((rows[i].tokens[k] + 7) * (next + 3) * 37) % 101) / 33;
  return 0;
}

static sluice_model* babbler(void) {
  sluice_model_functions f = sluice_model_functions_init();
  sluice_model* model = NULL;
  f.vocabulary = words, f.abilities = SLUICE_RAGGED | SLUICE_BLOCKS | SLUICE_ROLL_BACK;
  f.lookup = 3, f.start = start, f.step = step;
  CHECK(sluice_model_create(&f, &model) == SLUICE_OK);
  return model;
}

static sluice_watermark_key* key_of(uint64_t word) {
  sluice_watermark_key* key = NULL;
  CHECK(sluice_watermark_key_create(&word, 1, &key) == SLUICE_OK);
  return key;
}
static sluice_watermark* mark_of(char const* scheme, uint64_t word) {
  sluice_watermark_key* const key = key_of(word);
  sluice_watermark* watermark = NULL;
  CHECK(sluice_watermark_create(scheme, key, &watermark) == SLUICE_OK);
  sluice_watermark_key_free(key);
  if (strcmp(scheme, "sbw") == 0) CHECK(sluice_watermark_set(watermark, "prf", 1) == SLUICE_OK);
  return watermark;
}

/* Decodes one output of `length` tokens. */
static void text_of(sluice_model* model, char const* kind, sluice_watermark const* watermark, sluice_token* text) {
  sluice_search* search = NULL;
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  sluice_result const* result;
  CHECK(sluice_search_create(kind, &search) == SLUICE_OK);
  CHECK(sluice_search_set(search, "max_length", length) == SLUICE_OK);
  CHECK(sluice_search_mark(search, watermark) == SLUICE_OK);
  CHECK(sluice_decode(model, search, &request, 1, 0, &results) == SLUICE_OK);
  result = sluice_results_at(results, 0);
  CHECK(strcmp(result->failure, "none") == 0 && result->count > 0 && result->hypotheses[0].count == length);
  if (result->count > 0 && result->hypotheses[0].count == length)
    memcpy(text, result->hypotheses[0].tokens, length * sizeof *text);
  sluice_results_free(results), sluice_search_free(search);
}

static double p_of(sluice_watermark const* watermark, sluice_token const* text) {
  sluice_watermark_detection const* found = NULL;
  double p = NAN;
  CHECK(sluice_detect_watermark(watermark, text, length, NULL, &found) == SLUICE_OK);
  if (found != NULL) p = found->p_value;
  sluice_watermark_detection_free(found);
  return p;
}

/* What is marked is found by its key, and by no other; what is not marked is not found. */
static void are_found(void) {
  static char const* const schemes[] = {"gumbel", "synthid", "red_green", "sbw"};
  static char const* const kinds[] = {"sample", "greedy", "beam", "stochastic", "blockwise", "particles"};
  sluice_model* const model = babbler();
  size_t s, k;
  for (k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    sluice_token plain[length];
    memset(plain, 0, sizeof plain);
    text_of(model, kinds[k], NULL, plain);
    for (s = 0; s < sizeof schemes / sizeof *schemes; ++s) {
      sluice_watermark *const watermark = mark_of(schemes[s], 2026), *const other = mark_of(schemes[s], 2027);
      sluice_token marked[length];
      memset(marked, 0, sizeof marked);
      if (k > 0 && s < 2) { /* where nothing is drawn, and by a rule */
        sluice_search* search = NULL;
        CHECK(sluice_search_create(kinds[k], &search) == SLUICE_OK);
        REFUSED(sluice_search_mark(search, watermark),
                s == 0 ? "watermark.scheme = gumbel: draws tokens, which a rule cannot: give it to Sample"
                       : "watermark.scheme = synthid: draws tokens, which a rule cannot: give it to Sample");
        sluice_search_free(search);
      } else {
        text_of(model, kinds[k], watermark, marked);
        CHECK(memcmp(marked, plain, sizeof plain) != 0);
        CHECK(p_of(watermark, marked) < 1e-6);
        CHECK(p_of(other, marked) > 1e-3);
        CHECK(p_of(watermark, plain) > 1e-3);
      }
      sluice_watermark_free(watermark), sluice_watermark_free(other);
    }
  }
  { /* Without `gumbel`, seeds vary the text; "none" marks nothing. */
    sluice_watermark* const none = mark_of("none", 1);
    sluice_token plain[length], unmarked[length];
    text_of(model, "sample", NULL, plain), text_of(model, "sample", none, unmarked);
    CHECK(memcmp(plain, unmarked, sizeof plain) == 0);
    sluice_watermark_free(none);
  }
  sluice_model_free(model);
}

/* Every option, mask and window: what C++ finds. */
static void are_scored(void) {
  sluice_model* const model = babbler();
  int way;
  for (way = 0; way < detections; ++way) {
    static char const* const schemes[detections] = {"gumbel", "gumbel", "synthid", "red_green", "sbw", "synthid"};
    sluice_watermark_key* key = NULL;
    sluice_watermark* watermark = NULL;
    sluice_watermark_detection const* found = NULL;
    sluice_detection_options options = sluice_detection_options_init();
    sluice_token text[length];
    uint8_t mask[length];
    int i;
    CHECK(sluice_watermark_key_create(detection_key, way == 5 ? 8 : 1, &key) == SLUICE_OK);
    CHECK(sluice_watermark_create(schemes[way], key, &watermark) == SLUICE_OK);
    sluice_watermark_key_free(key); /* it was copied */
    if (way != 0) CHECK(sluice_watermark_set(watermark, "width", 2) == SLUICE_OK);
    if (way == 1) CHECK(sluice_watermark_set(watermark, "second", 0.25) == SLUICE_OK);
    if (way == 1) CHECK(sluice_watermark_set(watermark, "prf", 2) == SLUICE_OK);
    if (way == 2) CHECK(sluice_watermark_set(watermark, "depth", 7) == SLUICE_OK);
    if (way == 3) CHECK(sluice_watermark_set(watermark, "gamma", 0.5) == SLUICE_OK);
    if (way == 3) CHECK(sluice_watermark_set(watermark, "delta", 0.75) == SLUICE_OK);
    if (way == 4) CHECK(sluice_watermark_set(watermark, "prf", 1) == SLUICE_OK);
    if (way == 5) CHECK(sluice_watermark_set(watermark, "prf", 3) == SLUICE_OK);
    memset(text, 0, sizeof text);
    text_of(model, "sample", watermark, text);
    for (i = 0; i < length; ++i) mask[i] = i < 20 || i % 17 == 0;
    CHECK(sluice_detect_watermark(watermark, text, length, NULL, &found) == SLUICE_OK);
    CHECK(found->masked == 0 && found->windows == NULL && found->window_count == 0);
    CHECK(detection_differs(way, text, length, NULL, 0, found) == 0);
    sluice_watermark_detection_free(found);
    options.mask = mask, options.mask_count = length, options.window = 50;
    CHECK(sluice_detect_watermark(watermark, text, length, &options, &found) == SLUICE_OK);
    CHECK(found->masked == 36 && found->window_count == 11 && found->tokens == length);
    CHECK(found->scored + found->repeated + found->masked == length);
    CHECK(detection_differs(way, text, length, mask, 50, found) == 0);
    sluice_watermark_detection_free(found);
    CHECK(sluice_detect_watermark(watermark, NULL, 0, NULL, &found) == SLUICE_OK);
    CHECK(found->tokens == 0 && found->p_value == 1);
    sluice_watermark_detection_free(found);
    sluice_watermark_free(watermark);
  }
  sluice_model_free(model);
}

/* Keys of words, of bytes and of files are the same; what is wrong with one is said, and nothing of it. */
static void keys(void) {
  static char const path[] = "sluice.test.c.key";
  static uint64_t const word[] = {UINT64_C(0x0123456789abcdef)};
  static unsigned char const bytes[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
  static uint64_t const many[33] = {0};
  sluice_watermark_key* made[4] = {NULL, NULL, NULL, NULL};
  sluice_watermark_key* wrong = NULL;
  sluice_token text[length];
  double p[4];
  size_t i;
  FILE* file;
  CHECK(sluice_watermark_key_create(word, 1, &made[0]) == SLUICE_OK);
  CHECK(sluice_watermark_key_from_bytes(bytes, sizeof bytes, &made[1]) == SLUICE_OK);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("# a key\n0x0123456789abcdef\n", file) >= 0 && fclose(file) == 0);
  CHECK(sluice_watermark_key_open(path, &made[2]) == SLUICE_OK);
  REFUSED(sluice_watermark_key_write_new(path, 1, &wrong), "is there already");
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("81985529216486895 secret", file) >= 0 && fclose(file) == 0);
  REFUSED(sluice_watermark_key_open(path, &wrong), "holds something that is no integer");
  CHECK(strstr(sluice_last_error(), "secret") == NULL && strstr(sluice_last_error(), "8198") == NULL);
  CHECK(remove(path) == 0);
  REFUSED(sluice_watermark_key_open(path, &wrong), "cannot be read");
  REFUSED(sluice_watermark_key_write_new(path, 33, &wrong), "watermark key: words = 33: must be in [1, 32]");
  CHECK(sluice_watermark_key_write_new(path, 2, &made[3]) == SLUICE_OK);
  { /* What it wrote is what it returned. */
    sluice_watermark_key* again = NULL;
    sluice_watermark *one = NULL, *other = NULL;
    sluice_token plain[length];
    for (i = 0; i < length; ++i) plain[i] = (sluice_token)(i * i % 59);
    CHECK(sluice_watermark_key_open(path, &again) == SLUICE_OK);
    CHECK(sluice_watermark_create("gumbel", made[3], &one) == SLUICE_OK);
    CHECK(sluice_watermark_create("gumbel", again, &other) == SLUICE_OK);
    CHECK(p_of(one, plain) == p_of(other, plain));
    sluice_watermark_free(one), sluice_watermark_free(other), sluice_watermark_key_free(again);
  }
  CHECK(remove(path) == 0);
  for (i = 0; i < length; ++i) text[i] = (sluice_token)(i * i % 59);
  for (i = 0; i < 4; ++i) {
    sluice_watermark* watermark = NULL;
    CHECK(sluice_watermark_create("gumbel", made[i], &watermark) == SLUICE_OK);
    p[i] = p_of(watermark, text);
    sluice_watermark_free(watermark);
  }
  CHECK(p[0] == p[1] && p[0] == p[2] && p[0] != p[3]);
  for (i = 0; i < 4; ++i) sluice_watermark_key_free(made[i]);

  REFUSED(sluice_watermark_key_create(many, 33, &wrong), "watermark key: words = 33: must be at most 32");
  REFUSED(sluice_watermark_key_create(NULL, 0, &wrong), "watermark key: words = 0");
  REFUSED(sluice_watermark_key_create(NULL, 1, &wrong), "words = null");
  REFUSED(sluice_watermark_key_create(many, 1, NULL), "key = null");
  REFUSED(sluice_watermark_key_from_bytes(bytes, 7, &wrong), "watermark key: bytes = 7: must be a multiple of 8");
  REFUSED(sluice_watermark_key_from_bytes(bytes, 0, &wrong), "watermark key: bytes = 0");
  REFUSED(sluice_watermark_key_from_bytes(many, sizeof many, &wrong), "words = 33");
  REFUSED(sluice_watermark_key_from_bytes(NULL, 8, &wrong), "bytes = null");
  REFUSED(sluice_watermark_key_open(NULL, &wrong), "file = null");
  REFUSED(sluice_watermark_key_write_new(NULL, 1, &wrong), "file = null");
  CHECK(wrong == NULL);
  sluice_watermark_key_free(NULL);
}

static void wrong(void) {
  static sluice_token const text[] = {1, 2, 3, -4};
  static uint8_t const mask[] = {1, 0};
  sluice_watermark_key *const key = key_of(5), *two = NULL;
  sluice_watermark *watermark = mark_of("gumbel", 5), *none = mark_of("none", 5), *made = NULL;
  sluice_watermark* const green = mark_of("red_green", 5);
  sluice_watermark_detection const* found = NULL;
  sluice_detection_options options = sluice_detection_options_init();
  sluice_model* const model = babbler();
  sluice_search *sample = NULL, *beam = NULL;
  sluice_results* results = NULL;
  sluice_request request = sluice_request_init();
  uint64_t const words_of_two[] = {1, 2};
  REFUSED(sluice_watermark_create("purple", key, &made), "scheme = purple: must be gumbel, synthid, red_green, sbw");
  REFUSED(sluice_watermark_create(NULL, key, &made), "scheme = null");
  CHECK(sluice_watermark_create("gumbel", NULL, &made) == SLUICE_OK);
  REFUSED(sluice_detect_watermark(made, text, 3, NULL, &found),
          "watermark.key = none: is needed to mark and to detect");
  sluice_watermark_free(made), made = NULL;
  REFUSED(sluice_watermark_create("gumbel", key, NULL), "watermark = null");
  REFUSED(sluice_watermark_set(watermark, "scheme", 1), "name = scheme: is no option of a watermark");
  REFUSED(sluice_watermark_set(watermark, "prf", 5), "must be a number from 0 to 4");
  REFUSED(sluice_watermark_set(watermark, "width", 1.5), "width = 1.5");
  REFUSED(sluice_watermark_set(NULL, "width", 2), "watermark = null");
  REFUSED(sluice_watermark_set(watermark, NULL, 2), "name = null");

  /* Combinations, in the words of C++. */
  CHECK(sluice_search_create("sample", &sample) == SLUICE_OK && sluice_search_create("beam", &beam) == SLUICE_OK);
  CHECK(sluice_watermark_set(watermark, "width", 17) == SLUICE_OK);
  REFUSED(sluice_search_mark(sample, watermark), "watermark.width = 17: must be in [1, 16]");
  REFUSED(sluice_detect_watermark(watermark, text, 3, NULL, &found), "watermark.width = 17: must be in [1, 16]");
  CHECK(sluice_watermark_set(watermark, "width", 4) == SLUICE_OK);
  CHECK(sluice_watermark_set(watermark, "prf", 3) == SLUICE_OK);
  REFUSED(sluice_search_mark(sample, watermark), "watermark.prf = synthid_text: is for the scheme synthid");
  CHECK(sluice_watermark_set(watermark, "prf", 0) == SLUICE_OK);
  CHECK(sluice_watermark_key_create(words_of_two, 2, &two) == SLUICE_OK);
  CHECK(sluice_watermark_create("red_green", two, &made) == SLUICE_OK);
  CHECK(sluice_watermark_set(made, "prf", 1) == SLUICE_OK);
  REFUSED(sluice_search_mark(beam, made), "watermark.key: words = 2: must be 1 for the prf philox");
  CHECK(sluice_watermark_set(green, "second", 0.5) == SLUICE_OK);
  REFUSED(sluice_search_mark(beam, green), "watermark.second = 0.500000: is for the scheme gumbel");
  CHECK(sluice_watermark_set(green, "second", 0) == SLUICE_OK);
  REFUSED(sluice_search_mark(NULL, green), "search = null");
  CHECK(sluice_search_set(sample, "samples", 2) == SLUICE_OK);
  CHECK(sluice_search_mark(sample, watermark) == SLUICE_OK);
  REFUSED(sluice_decode(model, sample, &request, 1, 0, &results), "samples = 2: would all be the same");
  CHECK(sluice_watermark_set(watermark, "second", 0.1) == SLUICE_OK); /* of the next search that it is given to */
  REFUSED(sluice_decode(model, sample, &request, 1, 0, &results), "samples = 2: would all be the same");
  CHECK(sluice_search_mark(sample, watermark) == SLUICE_OK);
  CHECK(sluice_decode(model, sample, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(sluice_results_at(results, 0)->count == 2);
  sluice_results_free(results), results = NULL;
  CHECK(sluice_search_set(beam, "early_stopping", 2) == SLUICE_OK);
  CHECK(sluice_search_mark(beam, green) == SLUICE_OK);
  CHECK(sluice_decode(model, beam, &request, 1, 0, &results) == SLUICE_OK);
  CHECK(strcmp(sluice_results_at(results, 0)->failure, "bad_request") == 0);
  CHECK(strstr(sluice_results_at(results, 0)->message, "GreenList, adds to them: stop by another rule") != NULL);
  sluice_results_free(results);

  REFUSED(sluice_detect_watermark(NULL, text, 3, NULL, &found), "watermark = null");
  REFUSED(sluice_detect_watermark(none, text, 3, NULL, &found), "watermark.scheme = none: must say what to look for");
  REFUSED(sluice_detect_watermark(green, NULL, 3, NULL, &found), "tokens = null");
  REFUSED(sluice_detect_watermark(green, text, 3, NULL, NULL), "found = null");
  REFUSED(sluice_detect_watermark(green, text, 4, NULL, &found), "token = -4: must not be negative");
  options.mask = mask, options.mask_count = 2;
  REFUSED(sluice_detect_watermark(green, text, 3, &options, &found), "mask: size = 2: must be that of the text, 3");
  options.mask = NULL;
  REFUSED(sluice_detect_watermark(green, text, 3, &options, &found), "mask = null");
  options.mask_count = 0, options.window = -1;
  REFUSED(sluice_detect_watermark(green, text, 3, &options, &found), "window = -1: must not be negative");
  options.window = 0, options.reserved = 1;
  REFUSED(sluice_detect_watermark(green, text, 3, &options, &found), "reserved = 1");
  options.size = 4;
  REFUSED(sluice_detect_watermark(green, text, 3, &options, &found), "sluice_detection_options.size = 4");
  CHECK(found == NULL);
  sluice_watermark_detection_free(NULL), sluice_watermark_free(NULL);
  sluice_search_free(sample), sluice_search_free(beam), sluice_model_free(model);
  sluice_watermark_free(watermark), sluice_watermark_free(none), sluice_watermark_free(green);
  sluice_watermark_free(made);
  sluice_watermark_key_free(key), sluice_watermark_key_free(two);
}

int marks(int* its_passed) {
  are_found();
  are_scored();
  keys();
  wrong();
  *its_passed += passed;
  return failures;
}
