/* SPDX-License-Identifier: Apache-2.0 */
/* Part of sluice_cuda.h: the merge of every sentence's candidates. */
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

/* Selects the candidates of each sentence that a beam search needs, from the lists that sluice_cuda_expand() writes.
 * Begin with sluice_cuda_merge_init(). */
typedef struct sluice_cuda_merge {
  size_t size;                       /* sizeof(sluice_cuda_merge) */
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

  /* Answers. For a group with keep > 0: `keep` candidates, or as many as there are, best first; else line by line, k
   * each. */
  sluice_cuda_kept* kept;
  double* totals; /* as `kept`, or null: base + log_prob */
  /* As `kept`, or null; only for keep > 0. For a candidate that continues: how many better ones continue, its place in
   * the next beam. For one that ends: ~(how many better ones end). */
  int32_t* places;
} sluice_cuda_merge;
SLUICE_CUDA_INITIALISER(sluice_cuda_merge)
/* One launch; uses no memory of its own. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_merge_beams(sluice_cuda_merge const* merge, sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
