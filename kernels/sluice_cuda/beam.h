/* SPDX-License-Identifier: Apache-2.0 */
/* Part of sluice_cuda.h: a beam search whose beams stay on the device. */
#ifndef SLUICE_CUDA_BEAM_H
#define SLUICE_CUDA_BEAM_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The engine whose beam search is followed. */
enum {
  SLUICE_CUDA_FAIRSEQ = 0,
  SLUICE_CUDA_CTRANSLATE2 = 1,
  SLUICE_CUDA_HUGGINGFACE = 2 /* early_stopping = False; True: stop = SLUICE_CUDA_STOP_COUNT, never: ..._NEVER_EARLY */
};
/* What log-probabilities are divided by. */
enum {
  SLUICE_CUDA_PENALTY_NONE = 0,
  SLUICE_CUDA_PENALTY_AVERAGE = 1, /* length^alpha */
  SLUICE_CUDA_PENALTY_GNMT = 2     /* ((beta + length) / (beta + 1))^alpha */
};
/* When a sentence ends before its beam is empty and before the maximum length. */
enum {
  SLUICE_CUDA_STOP_COUNT = 0,     /* this many hypotheses have ended */
  SLUICE_CUDA_STOP_TOP_ENDED = 1, /* the best candidate of some step was an end, and n_best have ended */
  SLUICE_CUDA_STOP_EXACT = 2,     /* no live hypothesis can still enter the n_best */
  SLUICE_CUDA_STOP_HEURISTIC =
      3, /* the best live hypothesis, scored now, is no better than the worst of the `width` best ended ones */
  SLUICE_CUDA_STOP_NEVER_EARLY = 4 /* the same, scored at the maximum length if alpha > 0 */
};
/* What happens to hypotheses that are live at the maximum length. */
enum {
  SLUICE_CUDA_FORCE_EOS = 0,       /* their last token is an end, at its own log-probability */
  SLUICE_CUDA_TRUNCATE = 2,        /* they join the finished ones, without an end */
  SLUICE_CUDA_BEST_UNFINISHED = 3, /* the best of them joins the finished ones, without an end */
  SLUICE_CUDA_DROP = 4             /* they are dropped */
};
enum { SLUICE_CUDA_UNLIMITED = INT32_MAX }; /* as max_length: until the slot is full */

/* A search, a vocabulary, and the number of sentences. Begin with sluice_cuda_beam_options_init() and
 * sluice_cuda_beam_options_preset(), then set `vocabulary` and `eos`. Lengths are in tokens; lengths of outputs include
 * a forced prefix and the end. */
typedef struct sluice_cuda_beam_options {
  size_t size;        /* sizeof(sluice_cuda_beam_options) */
  int32_t width;      /* the most live hypotheses; width plus eos_count is at most 64 */
  int32_t n_best;     /* the most hypotheses returned */
  int32_t min_length; /* the least number of tokens before an end */
  int32_t max_length; /* of an output */
  double min_factor;  /* > 0: also at least this times the source's length, rounded up */
  double max_factor;  /* > 0: also at most this times the source's length, rounded up, plus */
  int32_t extra;      /* this */
  int32_t penalty;    /* SLUICE_CUDA_PENALTY_NONE, ... */
  double alpha, beta;
  int32_t stop;          /* SLUICE_CUDA_STOP_COUNT, ... */
  int32_t stop_finished; /* for COUNT; 0: patience times width */
  double patience;
  int32_t at_maximum; /* SLUICE_CUDA_FORCE_EOS, ... */
  int32_t
      surplus; /* for COUNT, 1: all that end in the last step count; 0: only as many of the best as are still needed */
  int32_t prefix_scored; /* 1: the log-probabilities of a forced prefix count */
  int32_t guard_prefix;  /* 1: right after a forced prefix, only the best candidate may end */
  int32_t candidates;    /* candidates per sentence and step; 0: as many as keep the beam full */
  int32_t stage; /* SLUICE_CUDA_BEFORE_SOFTMAX, ...: when ends that come too early, and `never`, are forbidden */

  int32_t vocabulary;   /* V */
  int32_t const* eos;   /* these end an output; in host memory, copied; none: outputs have their maximum length */
  int32_t eos_count;    /* their number */
  int32_t const* never; /* these are never generated; likewise */
  int32_t never_count;
  int32_t log_probs;   /* 1: the model gives log-probabilities; 0: logits */
  int32_t slot_length; /* capacity of a slot of the model, including the prompt; 0: no limit */
  int32_t sentences;   /* the most at once */
  int32_t longest;     /* the longest output to allocate memory for; 0: max_length */
} sluice_cuda_beam_options;
SLUICE_CUDA_INITIALISER(sluice_cuda_beam_options)
/* Sets the rules of an engine, for one sentence at a time, in options that say their size. preset: SLUICE_CUDA_FAIRSEQ,
 * ... */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_options_preset(sluice_cuda_beam_options* options, int32_t preset,
                                                                   int32_t width, double length_penalty);

/* sluice::cuda::DeviceBeam: finds the same as sluice's BeamSearch on a host, to the last bit; a step is three launches
 * in every case. It belongs to the device that is current when it is created, and to one stream at a time. */
typedef struct sluice_cuda_beam sluice_cuda_beam;
/* Allocates all the memory that it will ever need: 12 bytes per sentence, hypothesis and token of the longest output,
 * and a few per row. Waits. Refuses options unsupported on a device, naming them. allocator: copied, what it points to
 * must outlive the beam; null: cudaMalloc and cudaFree. step: early_starts and merge_behind_lines; null: neither. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_create(sluice_cuda_beam_options const* options,
                                                           sluice_cuda_allocator const* allocator,
                                                           sluice_cuda_step_options const* step,
                                                           sluice_cuda_beam** beam);
/* Call it after its work is done. Null is allowed. */
SLUICE_CUDA_API void sluice_cuda_beam_free(sluice_cuda_beam* beam);

/* A sentence whose first slot holds its prompt and forced prefix, except the last token of both. */
typedef struct sluice_cuda_sentence {
  int32_t last;           /* that last token: fed next */
  int32_t held;           /* tokens in the slot */
  int32_t prefix;         /* tokens of the two that are the forced prefix of the output */
  int32_t source_length;  /* used if a factor is given */
  double prefix_log_prob; /* of the prefix, if it counts */
} sluice_cuda_sentence;
/* Starts sentences first, first + 1, ..., replacing the old ones, while others continue. sentences: [count], in host
 * memory, copied. A small copy to the device and a launch, not to be captured in a graph; waits only if the device is
 * four of them behind. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_begin(sluice_cuda_beam* beam, int32_t first, int32_t count,
                                                          sluice_cuda_sentence const* sentences,
                                                          sluice_cuda_stream stream);

/* What happens to a slot of the model. */
typedef struct sluice_cuda_move {
  int32_t from;   /* continues from this slot: itself, or a fork; -1: unchanged */
  int32_t length; /* tokens of it to keep */
  int32_t count;  /* tokens after them: 1 is fed; 0: the slot is free, and its scores are ignored */
} sluice_cuda_move;
/* The rows that the model must run next: always all rows, at a fixed address. Row s * width + i is slot i of sentence
 * s. */
typedef struct sluice_cuda_rows {
  size_t size;                   /* sizeof(sluice_cuda_rows): set it before */
  int32_t count;                 /* sentences * width */
  int32_t const* tokens;         /* [count]: to be fed; 0 for free slots */
  sluice_cuda_move const* moves; /* [count]; all forks copy first, then every slot is cut, then it grows */
  int32_t const* remaining;      /* [1]: unfinished sentences */
} sluice_cuda_rows;
SLUICE_CUDA_INITIALISER(sluice_cuda_rows)
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_rows(sluice_cuda_beam const* beam, sluice_cuda_rows* rows);

/* The task for the lines, the same in every step, written to a task that says its size; set `scores`, `type`, `stride` and `bias` yourself. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_task(sluice_cuda_beam const* beam, sluice_cuda_task* task);
/* A step, given the scores of all rows: sluice_cuda_expand(), the merge, and the next step's rows. May be captured in a
 * graph under the rules of sluice_cuda_expand(); the graph serves every later step. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_step(sluice_cuda_beam* beam, sluice_cuda_expander* expander,
                                                         sluice_cuda_task const* task, void* workspace, size_t bytes,
                                                         sluice_cuda_stream stream);
/* The same for lists made from the task in another way: two launches. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_advance(sluice_cuda_beam* beam, sluice_cuda_stream stream);

/* The number of unfinished sentences: copies 4 bytes, and waits. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_remaining(sluice_cuda_beam* beam, int32_t* count,
                                                              sluice_cuda_stream stream);
/* Writes 1 for unfinished sentences, else 0, to running[sentences] in host memory. Copies 44 bytes per sentence, and
 * waits. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_running(sluice_cuda_beam* beam, int32_t* running,
                                                            sluice_cuda_stream stream);

/* In host memory. */
typedef struct sluice_cuda_hypothesis {
  int32_t const* tokens;  /* [count], without the forced prefix, including a final end */
  float const* log_probs; /* [count] */
  size_t count;
  double log_prob, score;
  int32_t finished; /* 1: ended, 0: cut off */
} sluice_cuda_hypothesis;
typedef struct sluice_cuda_result {
  char const* failure; /* "none"; "not_a_number", or "no_token_left": the hypotheses are incomplete */
  char const* message; /* what failed; "" if nothing did */
  sluice_cuda_hypothesis const* hypotheses; /* [count], best first; before the sentence is over, live ones come last */
  size_t count;
} sluice_cuda_result;
typedef struct sluice_cuda_results sluice_cuda_results;
/* The hypotheses of sentences first, ..., first + count - 1. Copies, and waits twice. */
SLUICE_CUDA_API sluice_cuda_status sluice_cuda_beam_collect(sluice_cuda_beam* beam, int32_t first, int32_t count,
                                                            sluice_cuda_stream stream, sluice_cuda_results** results);
/* The result of sentence first + index; valid until the results are freed. Null if the index is too large. */
SLUICE_CUDA_API sluice_cuda_result const* sluice_cuda_results_at(sluice_cuda_results const* results, size_t index);
/* Null is allowed. */
SLUICE_CUDA_API void sluice_cuda_results_free(sluice_cuda_results* results);

#ifdef __cplusplus
}
#endif

#endif
