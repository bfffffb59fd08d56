/* SPDX-License-Identifier: Apache-2.0 */
/* Of sluice_cuda.h: the candidates of every sentence that a beam search looks at. */
#ifndef SLUICE_CUDA_MERGE_H
#define SLUICE_CUDA_MERGE_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A hypothesis, and where its candidates are listed. */
typedef struct sluice_cuda_merge_line {
  double base; /* its log-probability; that of a candidate is base + log_prob, in double precision */
  int32_t row; /* of `best` */
} sluice_cuda_merge_line;

/* The hypotheses of one sentence. */
typedef struct sluice_cuda_merge_group {
  int32_t first, lines; /* its part of `lines`, best first: so equals are ordered */
  int32_t keep;         /* so many of all its candidates; 0: all of them, as they are */
  int32_t kept;         /* where its part of `kept` begins */
} sluice_cuda_merge_group;

/* A candidate that is kept. */
typedef struct sluice_cuda_kept {
  int32_t parent; /* its line of the group */
  int32_t token;
  float log_prob; /* of the token alone */
} sluice_cuda_kept;

/* The candidates of each sentence that a beam search looks at, of the lists that sluice_cuda_expand() leaves. What is not needed is
 * null or zero. */
typedef struct sluice_cuda_merge {
  sluice_cuda_candidate const* best; /* [rows, k] */
  sluice_cuda_line const* results;   /* [rows] */
  int32_t k;                         /* in [1, 64] */
  sluice_cuda_merge_group const* groups;
  int32_t group_count;
  sluice_cuda_merge_line const* lines;
  int32_t widest;      /* the largest `lines` of a group, or more; at most 128 */
  int32_t longest;     /* the largest `keep`, or more; at most 256 */
  int32_t const* ends; /* tokens that end a hypothesis; only `places` looks at them */
  int32_t end_count;

  /* Answers. Of a group with keep > 0: so many, or as many as there are, best first; else line by line, k each. */
  sluice_cuda_kept* kept;
  double* totals; /* as `kept`, or null: base + log_prob */
  /* As `kept`, or null; only where keep > 0. Of a candidate that goes on: how many better ones do, its place in the next beam. Of one
   * that ends: ~(how many better ones end). */
  int32_t* places;
} sluice_cuda_merge;
/* One launch; it needs no memory. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_merge_beams(sluice_cuda_merge const* merge, sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
