/* SPDX-License-Identifier: Apache-2.0 */
/* Of sluice_cuda.h: lines of scores and what is asked of them in, the best tokens of each out. */
#ifndef SLUICE_CUDA_LINES_H
#define SLUICE_CUDA_LINES_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_cuda_candidate {
  int32_t token;
  float log_prob; /* natural; the plain score where the query says `normalise = 0` */
} sluice_cuda_candidate;

/* A change to one token's score: a positive score is divided by `penalty`, a negative one multiplied, then `add` is added. */
typedef struct sluice_cuda_edit {
  int32_t token;
  float add;     /* -INFINITY forbids the token */
  float penalty; /* 1: none; after the softmax not looked at, unless sluice_cuda_select::rounded says so */
} sluice_cuda_edit;

enum { SLUICE_CUDA_BEFORE_SOFTMAX = 0, SLUICE_CUDA_AFTER_SOFTMAX = 1 }; /* when edits and `only` act */

/* What is asked of one line. Not zero by default: begin with sluice_cuda_query_init(). Of a task's arrays it names its own parts. */
typedef struct sluice_cuda_query {
  int32_t best;      /* tokens to list, in [0, k] */
  int32_t normalise; /* 0: no softmax, scores as they are */
  float temperature; /* > 0: scores are divided by it */
  uint8_t stage;     /* SLUICE_CUDA_BEFORE_SOFTMAX, ... */
  uint8_t unused[3];
  int32_t edits, edit_count;   /* edits[edits], ... */
  int32_t probes, probe_count; /* probes[probes], ... */
  int32_t shortlist; /* where its words begin in `masks`: all else is forbidden, before the softmax; -1: nothing is */
  int32_t only;      /* likewise, at `stage` */
} sluice_cuda_query;
/* The best token, by its log-probability. */
SLUICE_CUDA_API void sluice_cuda_query_init(sluice_cuda_query* query);

/* What becomes of one line beside its list. */
typedef struct sluice_cuda_line {
  int32_t count;     /* candidates listed */
  int32_t valid;     /* 0: it held a NaN or +infinity; all else of it is nothing */
  float log_sum_exp; /* of the scores, after temperature and edits before the softmax; 0 where not normalised */
} sluice_cuda_line;

/* What else is asked of a line: truncation, draws, entropy, which take another look at it. All zero: nothing. Its list holds every token
 * that any of these wants, best first, of equals the lower token; under noise alone as the perturbed values are ordered. A line whose
 * list is made here wants no other: sluice_cuda_query::best of 0. */
typedef struct sluice_cuda_select {
  uint64_t noise;   /* not 0: `best` counts by log_prob + a Gumbel number of (noise, token), so that 1 draws a token */
  float mass;       /* the best tokens until they hold this probability (top-p); in [0, 1], 0: off */
  float within;     /* all tokens at least this times as probable as the best (min-p); in [0, 1], 0: off */
  float typical;    /* those whose information is nearest to the entropy, until they hold this; in [0, 1], 0: off */
  float deviations; /* all whose score is at most so many standard deviations below the best (top-n-sigma); 0: off */
  float at_least;   /* all tokens of at least this probability (epsilon); in [0, 1], 0: off */
  int32_t best;     /* so many best tokens (top-k) */
  int32_t entropy;  /* 1: is wanted */
  int32_t
      rounded; /* 1: edits, their penalties too, and `only` act after the softmax, in this list and in the line's probes; a penalty
                       on the log-probability rounded to float, as sluice does on a host. 0: penalties do not */
  int32_t room; /* of the list: for so many there is memory */
  int32_t unused;
  int64_t first; /* where it begins in sluice_cuda_selection::best */
} sluice_cuda_select;

typedef struct sluice_cuda_selected {
  int32_t count; /* of the list; more than `room`: its first `room` are there */
  float entropy; /* in nats, after edits and `only` before the softmax; for what did not ask, anything */
} sluice_cuda_selected;

/* What else is asked of a task's lines. */
typedef struct sluice_cuda_selection {
  sluice_cuda_select const* queries; /* [rows]; null: nothing */
  sluice_cuda_selected* results;     /* [rows] */
  sluice_cuda_candidate* best;       /* the lists, where the queries say */
  int32_t draws;                     /* 0: no line has noise: a sort less */
  int32_t cuts;                      /* 0: no line has a list but by noise alone: a sort less */
} sluice_cuda_selection;
/* The key of a part of what `key` stands for, as sluice chains them on a host: sample `s` at position `p` has the noise of
 * sluice_cuda_noise(sluice_cuda_noise(seed, s), p). Never 0. */
SLUICE_CUDA_API uint64_t sluice_cuda_noise(uint64_t key, uint64_t part);

enum { SLUICE_CUDA_FLOAT = 0, SLUICE_CUDA_HALF = 1, SLUICE_CUDA_BFLOAT16 = 2 }; /* types of scores */

/* Lines and what is asked of them; V = columns. Begin with sluice_cuda_task_init(). */
typedef struct sluice_cuda_task {
  void const* scores; /* [rows, columns] of `type`, logits; or anything else, with `normalise = 0` */
  int32_t type;       /* SLUICE_CUDA_FLOAT, ... */
  int64_t rows, columns;
  int64_t stride; /* between rows, in scores; 0: columns */
  int32_t k;      /* the largest sluice_cuda_query::best; more than 64: a slower way */

  sluice_cuda_query query;          /* of every line; with probes only where there is one */
  sluice_cuda_query const* queries; /* or one each, [rows], on the device; null: `query` */
  sluice_cuda_edit const* edits;    /* which queries name */
  /* Not 0: each query's edits are in ascending order of tokens (those below 0 last), several of one token in the order in which they
     act. Lists of many cost less then. 0: any order. */
  int32_t ascending;
  int32_t const* probes; /* tokens which queries name: their log-probability is wanted, whatever their rank */
  /* [V], ascending: the token of each column, where they are not all tokens; edits, probes and masks name columns. Null: itself. */
  int32_t const* tokens;
  uint32_t const* masks; /* sets of tokens, ceil(V / 32) words each: bit t % 32 of word t / 32 for token t */
  float const* bias;     /* [V], 16-byte aligned, with 7 zeros behind it, instead of the expander's; null: that */

  /* Answers. */
  sluice_cuda_candidate* best; /* [rows, k]: as many as the line's result says; best first, of equals the lower token */
  float* probe_values;         /* as `probes` */
  sluice_cuda_line* results;   /* [rows] */

  sluice_cuda_selection selection; /* and what else is asked */
} sluice_cuda_task;
/* Everything null or zero, but for k = 1, the query, and selection.draws and cuts, which are 1. */
SLUICE_CUDA_API void sluice_cuda_task_init(sluice_cuda_task* task);

/* Answers tasks. It belongs to the device that is current when it is first used, and to one stream at a time. */
typedef struct sluice_cuda_expander sluice_cuda_expander;
/* bias: added to every line, [count] in the host's memory, copied; 0 of them: none. allocator: copied, what it points to must outlive
 * the expander; null: cudaMalloc and cudaFree. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_expander_create(float const* bias, size_t count,
                                                               sluice_cuda_allocator const* allocator,
                                                               sluice_cuda_expander** expander);
/* Not before its work is done. Null is fine. */
SLUICE_CUDA_API void sluice_cuda_expander_free(sluice_cuda_expander* expander);
/* What sluice_cuda_expand() needs for this task, or for one that differs from it in its pointers alone. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_workspace_bytes(sluice_cuda_expander* expander,
                                                               sluice_cuda_task const* task, size_t* bytes);
/* Adds the task to the stream: bias, edits, softmax and selection. workspace: `bytes` of the device, at a multiple of 256, with any
 * contents, yours again once the stream has come past; nothing is allocated then, and the stream may be captured in a graph. Null:
 * the expander's own, which grows: a capture then needs that such a task has run before. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_expand(sluice_cuda_expander* expander, sluice_cuda_task const* task,
                                                      void* workspace, size_t bytes, sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
