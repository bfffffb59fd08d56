/* SPDX-License-Identifier: Apache-2.0 */
/* Part of sluice_cuda.h: log-softmax and top-k over lines of scores. */
#ifndef SLUICE_CUDA_LINES_H
#define SLUICE_CUDA_LINES_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_cuda_candidate {
  int32_t token;
  float log_prob; /* natural logarithm; the plain score if the query has `normalise = 0` */
} sluice_cuda_candidate;

/* A change to one token's score: a positive score is divided by `penalty`, a negative one multiplied, then `add` is added. */
typedef struct sluice_cuda_edit {
  int32_t token;
  float add;     /* -INFINITY forbids the token */
  float penalty; /* 1: none; ignored after the softmax, unless sluice_cuda_select::rounded is set */
} sluice_cuda_edit;

enum { SLUICE_CUDA_BEFORE_SOFTMAX = 0, SLUICE_CUDA_AFTER_SOFTMAX = 1 }; /* when edits and `only` act */

/* The query of one line. Its defaults are not zero: begin with sluice_cuda_query_init(). It names its parts of the
 * task's arrays. */
typedef struct sluice_cuda_query {
  int32_t best;      /* tokens to list, in [0, k] */
  int32_t normalise; /* 0: no softmax, raw scores */
  float temperature; /* > 0: scores are divided by it */
  uint8_t stage;     /* SLUICE_CUDA_BEFORE_SOFTMAX, ... */
  uint8_t unused[3];
  int32_t edits, edit_count;   /* edits[edits], ... */
  int32_t probes, probe_count; /* probes[probes], ... */
  int32_t shortlist; /* where its words begin in `masks`: forbids all other tokens before the softmax; -1: none */
  int32_t only;      /* likewise, at `stage` */
} sluice_cuda_query;
/* Sets a query for the best token and its log-probability. */
SLUICE_CUDA_API void sluice_cuda_query_init(sluice_cuda_query* query);

/* The result for one line, except its list. */
typedef struct sluice_cuda_line {
  int32_t count;     /* candidates listed */
  int32_t valid;     /* 0: the line held a NaN or +infinity; the rest is undefined */
  float log_sum_exp; /* of the scores, after temperature and edits before the softmax; 0 if not normalised */
} sluice_cuda_line;

/* Queries that need further passes over a line: truncation, draws, entropy. All zero: nothing. The list holds every
 * token that any of these selects, best first, the lower token on ties; with only noise, in the order of the perturbed
 * values. A line whose list is made here usually needs no other: set sluice_cuda_query::best to 0. */
typedef struct sluice_cuda_select {
  uint64_t noise;   /* not 0: `best` ranks by log_prob + a Gumbel number of (noise, token), so 1 draws a token */
  float mass;       /* the best tokens with this total probability (top-p); in [0, 1], 0: off */
  float within;     /* all tokens at least this times as probable as the best (min-p); in [0, 1], 0: off */
  float typical;    /* tokens with information nearest to the entropy, up to this probability; in [0, 1], 0: off */
  float deviations; /* all tokens at most so many standard deviations below the best (top-n-sigma); 0: off */
  float at_least;   /* all tokens of at least this probability (epsilon); in [0, 1], 0: off */
  int32_t best;     /* this many best tokens (top-k) */
  int32_t entropy;  /* 1: compute it */
  int32_t
      rounded;  /* 1: edits (with penalties) and `only` after the softmax apply to this list and to the line's probes;
                  a penalty applies to the log-probability rounded to float, as on a host. 0: no penalties */
  int32_t room; /* the capacity of the list */
  int32_t unused;
  int64_t first; /* where it begins in sluice_cuda_selection::best */
} sluice_cuda_select;

typedef struct sluice_cuda_selected {
  int32_t count; /* length of the list; if more than `room`, only the first `room` are stored */
  float entropy; /* in nats, after edits and `only` before the softmax; undefined if not asked for */
} sluice_cuda_selected;

/* The further passes of a task. */
typedef struct sluice_cuda_selection {
  sluice_cuda_select const* queries; /* [rows]; null: nothing */
  sluice_cuda_selected* results;     /* [rows] */
  sluice_cuda_candidate* best;       /* the lists, at the places that the queries give */
  int32_t draws;                     /* 0: no line has noise: saves memory */
  int32_t cuts;                      /* 0: all lists are by noise only: likewise */
  int32_t single;                    /* 1: every list is one drawn token (cuts is 0): saves its sort */
  int32_t unused;
} sluice_cuda_selection;
/* Derives a key from `key` for the part numbered `part`, as sluice does on a host: sample `s` at position `p` has the
 * noise sluice_cuda_noise(sluice_cuda_noise(seed, s), p). Never 0. */
SLUICE_CUDA_API uint64_t sluice_cuda_noise(uint64_t key, uint64_t part);

enum { SLUICE_CUDA_FLOAT = 0, SLUICE_CUDA_HALF = 1, SLUICE_CUDA_BFLOAT16 = 2 }; /* types of scores */

/* Lines and their queries; V = columns. Begin with sluice_cuda_task_init(). */
typedef struct sluice_cuda_task {
  size_t size;        /* sizeof(sluice_cuda_task) */
  void const* scores; /* [rows, columns] of `type`, logits; or anything else, with `normalise = 0` */
  int32_t type;       /* SLUICE_CUDA_FLOAT, ... */
  int64_t rows, columns;
  int64_t stride; /* between rows, in scores; 0: columns */
  int32_t k;      /* the largest sluice_cuda_query::best; more than 64 is slower */

  sluice_cuda_query query;          /* for every line; with probes only if there is one line */
  sluice_cuda_query const* queries; /* or one each, [rows], on the device; null: `query` */
  sluice_cuda_edit const* edits;    /* named by queries */
  /* Not 0: each query's edits are in ascending order of tokens (negative ones last), several of one token in the order in
   * which they apply. Long lists are then cheaper. 0: any order. */
  int32_t ascending;
  int32_t const* probes; /* tokens named by queries, whose log-probability is wanted whatever their rank */
  /* [V], ascending: the token of each column, if they are not all tokens; edits, probes and masks name columns. Null: the
   * column itself. */
  int32_t const* tokens;
  uint32_t const* masks; /* sets of tokens, ceil(V / 32) words each: bit t % 32 of word t / 32 for token t */
  float const* bias;     /* [V], 16-byte aligned, followed by 7 zeros; replaces the expander's; null: the expander's */

  /* Answers. */
  sluice_cuda_candidate* best; /* [rows, k]: as many as the line's result says; best first, the lower token on ties */
  float* probe_values;         /* as `probes` */
  sluice_cuda_line* results;   /* [rows] */

  sluice_cuda_selection selection; /* further passes */
} sluice_cuda_task;
/* A task that says its size; everything is null or zero, except k = 1, the query, and selection.draws and cuts, which are
 * 1. */
static inline sluice_cuda_task sluice_cuda_task_init(void) {
  sluice_cuda_task made;
  memset(&made, 0, sizeof made);
  made.size = sizeof made, made.k = 1;
  made.selection.draws = made.selection.cuts = 1;
  sluice_cuda_query_init(&made.query);
  return made;
}

/* How a step's lines are read, and its kernels launched (sluice::cuda::StepOptions). No option changes an answer, and none
 * has been measured on a device yet. */
typedef struct sluice_cuda_step_options {
  size_t size;        /* sizeof(sluice_cuda_step_options) */
  int32_t ring_loads; /* 1: lines without masks by persistent blocks with bulk copies; needs compute capability 9.0 */
  int32_t
      early_starts; /* 1: a kernel behind one of ours starts while that still runs; sm_90 and CUDA 12.3, else as 0 */
  int32_t
      merge_behind_lines; /* 1: of a beam: the block that ends a sentence's last line merges, in sluice_cuda_beam_step() */
  int32_t clusters; /* 1: the 2, 4, 8 or 16 blocks of a line are a cluster; sm_90, else as 0 */
} sluice_cuda_step_options;
SLUICE_CUDA_INITIALISER(sluice_cuda_step_options)

/* Answers tasks. It belongs to the device that is current when it is first used, and to one stream at a time. */
typedef struct sluice_cuda_expander sluice_cuda_expander;
/* bias: added to every line, [count] in host memory, copied; count 0: none. allocator: copied, what it points to must
 * outlive the expander; null: cudaMalloc and cudaFree. step: ring_loads, early_starts and clusters; null: none. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_expander_create(float const* bias, size_t count,
                                                               sluice_cuda_allocator const* allocator,
                                                               sluice_cuda_step_options const* step,
                                                               sluice_cuda_expander** expander);
/* Call it after its work is done. Null is allowed. */
SLUICE_CUDA_API void sluice_cuda_expander_free(sluice_cuda_expander* expander);
/* The bytes that sluice_cuda_expand() needs for this task, or for one that differs only in its pointers. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_workspace_bytes(sluice_cuda_expander* expander,
                                                               sluice_cuda_task const* task, size_t* bytes);
/* Enqueues the task: bias, edits, log-softmax and selection. workspace: `bytes` bytes of device memory, aligned to 256,
 * with any contents, free for other uses once the stream has passed the work; then nothing is allocated, and the stream
 * may be captured in a graph. Null: uses the expander's own workspace, which grows; before a capture, such a task must
 * have run once. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_expand(sluice_cuda_expander* expander, sluice_cuda_task const* task,
                                                      void* workspace, size_t bytes, sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
