/* SPDX-License-Identifier: Apache-2.0 */
/* An engine for cuda_beams.c: a model whose scores are a hash of the source and the tokens so far, and its slots. */
#ifndef TESTS_C_CUDA_ENGINE_H
#define TESTS_C_CUDA_ENGINE_H

#include <sluice_cuda.h>
#include <stdint.h>

/* What an engine keeps of its slots, in the host's memory. */
typedef struct engine {
  int32_t slots, vocabulary;
  uint64_t *states, *before; /* [slots] */
  int32_t *held, *held_before, *tokens;
  sluice_cuda_move* moves;
  float *scores, *scores_there; /* [slots, vocabulary] */
} engine;

engine engine_new(int32_t slots, int32_t vocabulary);
void engine_free(engine* e);
uint64_t engine_source(uint64_t number);
void engine_start(engine* e, int32_t slot, uint64_t source);
void engine_feed(engine* e, int32_t slot, int32_t token);
/* Runs all rows, as they lie on the device, and leaves their scores there. 0 where a row goes on from what its slot does not hold. */
int engine_step(engine* e, sluice_cuda_rows const* rows);

#endif
