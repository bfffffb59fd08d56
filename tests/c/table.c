/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <math.h>
#include <string.h>

static sluice_token const ends[] = {2}, no_words[] = {0, 1};

static uint64_t mix(uint64_t z) {
  z ^= z >> 30, z *= UINT64_C(0xBF58476D1CE4E5B9);
  z ^= z >> 27, z *= UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Every number on the way is a multiple of 2^-21 and exact, so that compilers cannot differ. */
static void logits(uint64_t seed, sluice_token const* context, int32_t count, float* out) {
  uint64_t key = mix(seed + UINT64_C(0x9E3779B97F4A7C15));
  int32_t i;
  for (i = 0; i < count; ++i) key = mix(key ^ ((uint64_t)(context[i] + 1) * UINT64_C(0x9E3779B97F4A7C15)));
  for (i = 0; i < table_size; ++i) {
    uint64_t const bits = mix(key ^ ((uint64_t)(i + 1) * UINT64_C(0xD1B54A32D192ED03))) >> 40;
    double x = 8 * ((double)bits / 16777216.0);
    if (i == 2) x += -1 + 0.5 * (double)count;
    out[i] = i < 2 ? -INFINITY : (float)x;
  }
}

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  table* const t = user;
  size_t i;
  if (t->fails_start != 0) return t->fails_start;
  for (i = 0; i < count; ++i) {
    uint64_t const* const seed = sources[i];
    t->seed[slots[i]] = *seed;
    t->count[slots[i]] = 0;
  }
  return 0;
}

static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  table* const t = user;
  size_t i, k;
  if (t->fails_step != 0) return t->fails_step;
  for (i = 0; i < count; ++i) {
    sluice_row const* const row = &rows[i];
    if (row->from == row->to) continue;
    t->seed[row->to] = t->seed[row->from];
    t->count[row->to] = t->count[row->from];
    memcpy(t->tokens[row->to], t->tokens[row->from], sizeof t->tokens[0]);
  }
  for (i = 0; i < count; ++i) {
    sluice_row const* const row = &rows[i];
    sluice_token* const held = t->tokens[row->to];
    int32_t* const n = &t->count[row->to];
    *n = row->length;
    for (k = 0; k < row->count; ++k) {
      int32_t skip;
      if (*n >= table_length) return 99;
      held[(*n)++] = row->tokens[k];
      if (k + (size_t)row->lines < row->count) continue;
      skip = held[0] == 1; /* the start symbol */
      logits(t->seed[row->to], held + skip, *n - skip, scores);
      scores += table_size;
    }
  }
  return 0;
}

/* The most probable tokens, but for every fourth. */
static int propose(void* user, size_t count, sluice_draft* drafts) {
  table* const t = user;
  size_t i;
  if (t->fails_propose != 0) return t->fails_propose;
  for (i = 0; i < count; ++i) {
    sluice_draft* const draft = &drafts[i];
    sluice_token context[table_length];
    int32_t n = draft->length;
    memcpy(context, t->tokens[draft->slot], (size_t)n * sizeof *context);
    memcpy(context + n, draft->pending, draft->pending_count * sizeof *context);
    n += (int32_t)draft->pending_count;
    for (; draft->made < draft->wanted && n < table_length; ++draft->made, ++n) {
      int32_t const skip = context[0] == 1;
      float scores[table_size];
      int32_t token, best = 2;
      logits(t->seed[draft->slot], context + skip, n - skip, scores);
      for (token = 3; token < table_size; ++token)
        if (scores[token] > scores[best]) best = token;
      if (++t->guessed % 4 == 0) best = 3 + (best + 1) % 5;
      context[n] = draft->guesses[draft->made] = best;
    }
    if (t->too_many != 0) draft->made = draft->wanted + 1;
  }
  return 0;
}

static void release(void* user, size_t count, int32_t const* slots) {
  table* const t = user;
  (void)slots;
  t->released += (int)count;
}
static void destroy(void* user) { ++((table*)user)->destroyed; }

sluice_model_functions table_functions(table* t, int32_t abilities) {
  sluice_model_functions f = sluice_model_functions_init();
  memset(t, 0, sizeof *t);
  f.vocabulary = table_size, f.bos = 1;
  f.eos = ends, f.eos_count = 1;
  f.never = no_words, f.never_count = 2;
  f.abilities = abilities, f.max_slots = table_slots, f.max_length = table_length;
  f.user = t;
  f.start = start, f.step = step, f.release = release, f.destroy = destroy, f.propose = propose;
  return f;
}
