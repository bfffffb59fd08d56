/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice's work on a device for engines in C99, C++17 or whatever calls C: lines of scores and what is asked of them in, the best
 * tokens of each out; the merge of beams; the verification of guessed blocks. docs/cuda.md, "From C", shows how to use it.
 *
 * No call waits for the device or copies to the host: each adds to a stream of yours. Arrays are the device's, but for what says
 * otherwise; structs without pointers to them lie in the host's memory. Functions return a sluice_cuda_status; what failed is in
 * sluice_cuda_last_error(), by thread. No exception leaves the library. Needs no header of CUDA: a stream is a cudaStream_t.
 */
#ifndef SLUICE_CUDA_H
#define SLUICE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SLUICE_CUDA_API
#else
#define SLUICE_CUDA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

typedef int32_t sluice_cuda_status;
enum {
  SLUICE_CUDA_OK = 0,
  SLUICE_CUDA_BAD_ARGUMENT = 1, /* the message names it */
  SLUICE_CUDA_FAILED = 3,       /* anything else: no memory of the host */
  SLUICE_CUDA_DEVICE = 4        /* the CUDA runtime refused: sluice_cuda_last_code() */
};

/* What the last function that failed in this thread has to say; "" if none did. Valid until the next one fails. */
SLUICE_CUDA_API char const* sluice_cuda_last_error(void);
/* The cudaError_t of the last function that failed in this thread; 0 where it was not CUDA that refused, or none failed. */
SLUICE_CUDA_API int32_t sluice_cuda_last_code(void);
/* The version that the library was built from, as 0.1.0. */
SLUICE_CUDA_API char const* sluice_cuda_version(void);

typedef struct CUstream_st* sluice_cuda_stream; /* cudaStream_t, CUstream */

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

typedef struct sluice_cuda_candidate {
  int32_t token;
  float log_prob; /* natural; the plain score where the query says `normalise = 0` */
} sluice_cuda_candidate;

/* A change to one token's score: a positive score is divided by `penalty`, a negative one multiplied, then `add` is added. */
typedef struct sluice_cuda_edit {
  int32_t token;
  float add;     /* -INFINITY forbids the token */
  float penalty; /* 1: none; not looked at after the softmax */
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
  int32_t const* probes; /* tokens which queries name: their log-probability is wanted, whatever their rank */
  /* [V], ascending: the token of each column, where they are not all tokens; edits, probes and masks name columns. Null: itself. */
  int32_t const* tokens;
  uint32_t const* masks; /* sets of tokens, ceil(V / 32) words each: bit t % 32 of word t / 32 for token t */
  float const* bias;     /* [V], 16-byte aligned, with 7 zeros behind it, instead of the expander's; null: that */

  /* Answers. */
  sluice_cuda_candidate* best; /* [rows, k]: as many as the line's result says; best first, of equals the lower token */
  float* probe_values;         /* as `probes` */
  sluice_cuda_line* results;   /* [rows] */
} sluice_cuda_task;
/* Everything null or zero, but for k = 1 and the query. */
SLUICE_CUDA_API void sluice_cuda_task_init(sluice_cuda_task* task);

/* Where an expander's memory on the device comes from, and goes back to. No queued work may use what is given but in the expander's
 * stream; for what sluice_cuda_expander_create() takes, none at all. */
typedef struct sluice_cuda_allocator {
  void* (*allocate)(void* context, size_t bytes);             /* at a multiple of 256; null: there is none */
  void (*release)(void* context, void* memory, size_t bytes); /* work that uses it may still be in a stream */
  void* context;                                              /* given to both */
} sluice_cuda_allocator;

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

/* ---- merging beams --------------------------------------------------------------------------------------------------------- */

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

/* ---- verifying guesses ----------------------------------------------------------------------------------------------------- */

/* Which guesses are kept. */
enum {
  SLUICE_CUDA_EXACT = 0,   /* the line's best token */
  SLUICE_CUDA_TOP_K = 1,   /* the n best */
  SLUICE_CUDA_DISTANCE = 2 /* at most n away from the best, as numbers */
};

/* What becomes of a sentence's block. */
typedef struct sluice_cuda_verdict {
  int32_t kept;     /* guesses that stay in the model's slot */
  int32_t count;    /* tokens that the output grows by: those, and the model's own, unless the sentence ends before */
  int32_t tried;    /* guesses looked at, */
  int32_t right;    /* and how many of them the rule accepted */
  int32_t finished; /* 1: the last token is an end of sentence */
  int32_t valid;    /* 0: a line held a NaN or +infinity; all else is 0 */
} sluice_cuda_verdict;

/* Line i of a sentence says what the model thinks of guess i; the line behind the last guess gives the model's own token. What is not
 * needed is null or zero. */
typedef struct sluice_cuda_verification {
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
/* One launch; it needs no memory. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_verify(sluice_cuda_verification const* verification,
                                                      sluice_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
