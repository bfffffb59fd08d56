/* SPDX-License-Identifier: Apache-2.0 */
/* Part of sluice_cuda.h: which guesses of a block are accepted. */
#ifndef SLUICE_CUDA_VERIFY_H
#define SLUICE_CUDA_VERIFY_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which guesses are accepted. */
enum {
  SLUICE_CUDA_EXACT = 0,   /* the line's best token */
  SLUICE_CUDA_TOP_K = 1,   /* the n best */
  SLUICE_CUDA_DISTANCE = 2 /* at most n away from the best, as numbers */
};

/* The result for a sentence's block. */
typedef struct sluice_cuda_verdict {
  int32_t kept;     /* guesses that stay in the model's slot */
  int32_t count;    /* tokens that the output grows by: those, and the model's own, unless the sentence ends before */
  int32_t tried;    /* guesses looked at, */
  int32_t right;    /* and how many of them the rule accepted */
  int32_t finished; /* 1: the last token is an end of sentence */
  int32_t valid;    /* 0: a line held a NaN or +infinity; all else is 0 */
} sluice_cuda_verdict;

/* Line i of a sentence is the model's prediction for guess i; the line after the last guess gives the model's own
 * token. Begin with sluice_cuda_verification_init(). */
typedef struct sluice_cuda_verification {
  size_t size; /* sizeof(sluice_cuda_verification) */
  int32_t sentences;
  int32_t block;                     /* the most lines of a sentence: one more than guesses */
  sluice_cuda_candidate const* best; /* [lines, k], of sluice_cuda_expand() */
  sluice_cuda_line const* results;   /* [lines] */
  int32_t k;                         /* in [1, 64] */
  float const* guess_log_probs;      /* [lines]: probes of the guesses; needed for DISTANCE, or minimum > 1 */
  int32_t const* first_lines;        /* [sentences]; null: sentence * block */
  int32_t const* guesses;            /* guess i of sentence s at s * guess_stride + i; one that is no token ends them */
  int32_t guess_stride;
  int32_t const* guess_counts; /* [sentences], at most block - 1; null: so many each */
  int32_t accept;              /* SLUICE_CUDA_EXACT, ... */
  int32_t n;                   /* of TOP_K, in [1, k]; of DISTANCE, >= 0 */
  int32_t minimum;             /* tokens kept whatever the rule says; 0 or 1: none */
  int32_t vocabulary;          /* 0: any token is one */
  int32_t const* eos;
  int32_t eos_count;

  sluice_cuda_candidate* tokens; /* answers, [sentences, block]: what the output grows by */
  sluice_cuda_verdict* verdicts; /* [sentences] */
} sluice_cuda_verification;
SLUICE_CUDA_INITIALISER(sluice_cuda_verification)
/* One launch; uses no memory of its own. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_verify(sluice_cuda_verification const* verification,
                                                      sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
