/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_engine.h"

#include "cuda_cases.h"

#include <math.h>
#include <sluice_cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- a model: a hash of the source and the tokens so far ---- */

static uint64_t mixed(uint64_t x) {
  x ^= x >> 31, x *= 0x7fb5d329728ea185u;
  x ^= x >> 27, x *= 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}
/* The lowest four bits count tokens. */
enum { counted = 15 };
uint64_t engine_source(uint64_t number) { return mixed(number + 1) & ~(uint64_t)counted; }
uint64_t beam_next(uint64_t before, int32_t token) {
  uint64_t const length = before & counted;
  return (mixed(before + (uint64_t)token + 1) & ~(uint64_t)counted) | (length < counted ? length + 1 : length);
}
float beam_score(uint64_t before, int32_t token) {
  uint64_t const bits = mixed(before ^ (uint64_t)(token + 1) * 0x9e3779b97f4a7c15u);
  if ((before & counted) > 4 && (before >> 4) % 61 == 0 && token == 5) return NAN; /* not in what is forced */
  if (bits % 7 == 0 && token > 2) return -INFINITY;
  return (float)(bits >> 16 & 31) / 8; /* of 32 values: equals are many */
}
int32_t beam_source_length(uint64_t source) { return 1 + (int32_t)((source >> 4) % 9); }

engine engine_new(int32_t slots, int32_t vocabulary) {
  engine made;
  size_t const count = (size_t)slots * (size_t)vocabulary;
  made.slots = slots, made.vocabulary = vocabulary;
  made.states = calloc((size_t)slots, sizeof(uint64_t)), made.before = calloc((size_t)slots, sizeof(uint64_t));
  made.held = calloc((size_t)slots, sizeof(int32_t)), made.held_before = calloc((size_t)slots, sizeof(int32_t)),
  made.tokens = calloc((size_t)slots, sizeof(int32_t));
  made.moves = calloc((size_t)slots, sizeof(sluice_cuda_move)), made.scores = calloc(count, sizeof(float));
  made.scores_there = device_new(NULL, sizeof(float) * count);
  return made;
}
void engine_free(engine* e) {
  free(e->states), free(e->before), free(e->held), free(e->held_before), free(e->tokens), free(e->moves);
  free(e->scores), device_delete(e->scores_there);
}
void engine_feed(engine* e, int32_t slot, int32_t token) {
  e->states[slot] = beam_next(e->states[slot], token);
  ++e->held[slot];
}
void engine_start(engine* e, int32_t slot, uint64_t source) { e->states[slot] = source, e->held[slot] = 0; }
int engine_step(engine* e, sluice_cuda_rows const* rows) {
  int32_t i, v;
  int good = 1;
  device_get(rows->tokens, e->tokens, sizeof(int32_t) * (size_t)e->slots);
  device_get(rows->moves, e->moves, sizeof(sluice_cuda_move) * (size_t)e->slots);
  memcpy(e->before, e->states, sizeof(uint64_t) * (size_t)e->slots);
  memcpy(e->held_before, e->held, sizeof(int32_t) * (size_t)e->slots);
  for (i = 0; i < e->slots; ++i) {
    sluice_cuda_move const* const move = &e->moves[i];
    if (move->count > 0) { /* a beam never goes back */
      good = good && move->count == 1 && move->length == e->held_before[move->from];
      e->states[i] = e->before[move->from], e->held[i] = e->held_before[move->from];
      engine_feed(e, i, e->tokens[i]);
    }
    for (v = 0; v < e->vocabulary; ++v)
      e->scores[i * e->vocabulary + v] = move->count > 0 ? beam_score(e->states[i], v) : NAN;
  }
  device_set(e->scores_there, e->scores, sizeof(float) * (size_t)e->slots * (size_t)e->vocabulary);
  return good;
}
