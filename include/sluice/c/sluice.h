/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice for C99 and for everything that calls C. docs/c.md shows how to use it.
 *
 * Functions that may fail return a sluice_status; what failed is in sluice_last_error(), by thread. No exception leaves the
 * library. Pointers are valid for the call that they are given to, unless something else is said. Sources are yours: any pointer,
 * which your model gets back, and which must stay valid until its request has its result.
 */
#ifndef SLUICE_C_SLUICE_H
#define SLUICE_C_SLUICE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SLUICE_API
#else
#define SLUICE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

typedef int32_t sluice_status;
enum {
  SLUICE_OK = 0,
  SLUICE_BAD_ARGUMENT = 1, /* the message names it */
  SLUICE_REFUSED = 2,      /* a server's queue is full, or it has closed */
  SLUICE_FAILED = 3        /* anything else: no memory, no thread */
};

/* What the last function that failed in this thread has to say; "" if none did. Valid until the next one fails. */
SLUICE_API char const* sluice_last_error(void);
/* The version that the library was built from, as 0.1.0. */
SLUICE_API char const* sluice_version(void);

/* ---- your model ------------------------------------------------------------------------------------------------------------ */

typedef int32_t sluice_token; /* in [0, vocabulary) */

/* One line of work: continue slot `from` in slot `to`, after its first `length` tokens, with `count` tokens, and answer after
 * each of the last `lines` of them. All forks of a step (from != to) copy first, then every row is cut, then every row appends. */
typedef struct sluice_row {
  int32_t from, to, length, lines;
  sluice_token const* tokens; /* [count], count >= 1 */
  size_t count;
} sluice_row;

enum { SLUICE_RAGGED = 1, SLUICE_BLOCKS = 2, SLUICE_ROLL_BACK = 4 }; /* see Abilities in docs/model.md */

/* A sentence of a "blockwise" search whose next tokens you may guess. Each guess follows the one before; those that are no tokens of the
 * vocabulary are dropped, with all behind them. */
typedef struct sluice_draft {
  int32_t slot, length;        /* its slot, whose first `length` tokens stay */
  sluice_token const* pending; /* [pending_count]: chosen since, not in the slot yet */
  size_t pending_count;
  sluice_token* guesses; /* [wanted], to be written */
  size_t wanted;
  size_t made; /* to be written: how many there are, at most `wanted`; 0 before */
} sluice_draft;

/* A model. Set what you do not know to zero. Functions return 0, or anything else for a failure; they are called by one thread at
 * a time: that of sluice_decode, or a server's own. */
typedef struct sluice_model_functions {
  int32_t vocabulary;        /* how many tokens there are */
  sluice_token bos;          /* fed first where a request brings no prompt */
  sluice_token const* eos;   /* these end an output; copied */
  size_t eos_count;          /* 0: outputs have a fixed length */
  sluice_token const* never; /* never generated; copied */
  size_t never_count;
  int32_t
      abilities; /* SLUICE_RAGGED and so on, added up; 0: every row of a step has the same length and brings one token */
  int32_t
      log_probs; /* not 0: what step writes are log-probabilities (natural), else anything that a softmax makes such */
  int32_t max_slots;  /* 0: any number */
  int32_t max_length; /* tokens in a slot; 0: any number */
  void* user;         /* given to each function */
  /* Begin sources[i] in slots[i], with no token in it. */
  int (*start)(void* user, size_t count, void const* const* sources, int32_t const* slots);
  /* Write the scores of all tokens behind each line asked: [lines of all rows][vocabulary], -INFINITY for what is impossible. */
  int (*step)(void* user, size_t count, sluice_row const* rows, float* scores);
  void (*release)(void* user, size_t count, int32_t const* slots); /* may be null: these slots are needed no longer */
  int32_t (*source_length)(void* user, void const* source);        /* may be null: of limits that are a factor of it */
  void (*destroy)(void* user);                                     /* may be null: the model is freed */
  /* may be null: guess what comes next, asked before each step of a "blockwise" search. No guess changes an output. */
  int (*propose)(void* user, size_t count, sluice_draft* drafts);
  int32_t
      lookup; /* n > 0: what came behind the last n, or fewer, tokens before is guessed, and `propose` asked only where there is
                     nothing. 0: no such guesses */
} sluice_model_functions;

typedef struct sluice_model sluice_model;
/* Copies the table. Where it fails, `destroy` is not called. */
SLUICE_API sluice_status sluice_model_create(sluice_model_functions const* functions, sluice_model** model);
/* Not before the servers that use it. Null is fine, as for every free. */
SLUICE_API void sluice_model_free(sluice_model* model);

/* ---- searches -------------------------------------------------------------------------------------------------------------- */

typedef struct sluice_search sluice_search;
/* kind: "greedy", "beam", "sample", "stochastic" (a beam that draws without replacement) or "blockwise" (greedy in blocks of guesses:
 * needs a model with SLUICE_BLOCKS and SLUICE_ROLL_BACK). */
SLUICE_API sluice_status sluice_search_create(char const* kind, sluice_search** search);
SLUICE_API void sluice_search_free(sluice_search* search);
/* Options, by the names that they have in C++; those that are not set have their defaults. Of each kind: min_length, max_length,
 * min_factor, max_factor, extra. Of greedy and beam: alpha, beta, word_penalty, and penalty (0 none, 1 average, 2 gnmt). Of beam:
 * width, n_best, patience. Of sample: temperature, top_k, top_p, min_p, typical, samples, distinct. Of stochastic: width, temperature.
 * Of blockwise: block, adaptive, cost, branches, nodes. */
SLUICE_API sluice_status sluice_search_set(sluice_search* search, char const* name, double value);
/* The output must hold this phrase; of beam. Copied. */
SLUICE_API sluice_status sluice_search_demand(sluice_search* search, sluice_token const* tokens, size_t count);
/* The output must not hold this phrase. Copied. */
SLUICE_API sluice_status sluice_search_forbid(sluice_search* search, sluice_token const* tokens, size_t count);

/* ---- grammars -------------------------------------------------------------------------------------------------------------- */

typedef struct sluice_bytes {
  char const* data; /* [count] */
  size_t count;
} sluice_bytes;
/* What each of `count` tokens, all of the vocabulary, is as bytes in a text: nothing for control tokens. Copied. Before the model is
 * given to a server, and before its grammars. Needs a model with an eos. */
SLUICE_API sluice_status sluice_model_set_bytes(sluice_model* model, sluice_bytes const* tokens, size_t count);

typedef struct sluice_grammar sluice_grammar;
/* Set what you do not need to zero. */
typedef struct sluice_grammar_options {
  int32_t behind_space; /* 1: a space at the beginning of the output is not a part of the text that is judged */
  int32_t
      white_space; /* of json_schema: so many characters of it wherever JSON allows some; 0: compact, -1: any number */
  int32_t longest; /* 1: text that is certain is spelt with the longest tokens; 0: with any */
} sluice_grammar_options;
/* kind: "gbnf", "regex" or "json_schema"; text: it, in UTF-8. What is wrong with it is said, with line and column. `options` may be null.
 * For searches over this model, as many as there are, in all threads; it outlives the model. */
SLUICE_API sluice_status sluice_grammar_create(sluice_model const* model, char const* kind, char const* text,
                                               sluice_grammar_options const* options, sluice_grammar** grammar);
SLUICE_API void sluice_grammar_free(sluice_grammar* grammar);
/* Outputs obey this grammar: of each kind of search. Null: none. Shared: it may be freed afterwards. */
SLUICE_API sluice_status sluice_search_obey(sluice_search* search, sluice_grammar const* grammar);

/* ---- catalogues ------------------------------------------------------------------------------------------------------------ */

/* Sequences of tokens, one of which an output has to be, from one to 2^31 - 1: docs/catalogues.md. */
typedef struct sluice_catalogue sluice_catalogue;
/* Maps a file of `build_catalogue`, or of C++, and looks at all of it. Processes share its memory; it must not be changed. */
SLUICE_API sluice_status sluice_catalogue_open(char const* file, sluice_catalogue** catalogue);
/* Of `count` sequences, in any order, none twice: the tokens of all behind each other, and how many each has. Copied. */
SLUICE_API sluice_status sluice_catalogue_create(sluice_token const* tokens, size_t const* lengths, size_t count,
                                                 sluice_catalogue** catalogue);
SLUICE_API void sluice_catalogue_free(sluice_catalogue* catalogue);
/* Outputs are sequences of this catalogue: of each kind of search. Null: of none. Shared: it may be freed afterwards. */
SLUICE_API sluice_status sluice_search_choose(sluice_search* search, sluice_catalogue const* catalogue);

/* ---- requests and results -------------------------------------------------------------------------------------------------- */

/* Set what you do not need to zero. All of it is copied, but for what the source points to. */
typedef struct sluice_request {
  void const* source;
  sluice_token const* prompt; /* fed, not part of the output; none: bos */
  size_t prompt_count;
  sluice_token const* prefix; /* the output begins with these */
  size_t prefix_count;
  sluice_search const* search; /* in place of the call's (or the server's), of the same kind; null: that one */
  uint64_t const* seed;        /* of its random numbers; null: the request's number */
} sluice_request;

typedef struct sluice_hypothesis {
  sluice_token const* tokens; /* [count], prefix and final eos included */
  float const* log_probs;     /* [count] */
  size_t count;
  double log_prob, score;
  int32_t finished;                           /* 1: ended, 0: cut off */
  int32_t constraints_met, constraints_total; /* of demanded phrases */
  int32_t const* blocks;                      /* [block_count], of blockwise: tokens settled in each round */
  size_t block_count;
} sluice_hypothesis;

typedef struct sluice_result {
  uint64_t id;                         /* the request's number, from 0 */
  char const* failure;                 /* "none", or as sluice::Failure has it: "bad_request", "source", "model", ... */
  char const* message;                 /* what failed; "" if nothing did */
  sluice_hypothesis const* hypotheses; /* [count], best first; so far, if it broke off */
  size_t count;
} sluice_result;

typedef struct sluice_results sluice_results;
/* Decodes requests, `batch` (0: 64) together: that changes speed, never results. What happens to a single request, an error of your
 * model included, is in its result. */
SLUICE_API sluice_status sluice_decode(sluice_model* model, sluice_search const* search, sluice_request const* requests,
                                       size_t count, size_t batch, sluice_results** results);
/* In the order of the requests; valid until the results are freed. Null for an index that is too large. */
SLUICE_API sluice_result const* sluice_results_at(sluice_results const* results, size_t index);
SLUICE_API size_t sluice_results_count(sluice_results const* results);
SLUICE_API void sluice_results_free(sluice_results* results);

/* ---- a server -------------------------------------------------------------------------------------------------------------- */

/* What goes with a request of a server. Callbacks run in the server's thread, one at a time; what they are given is valid during
 * the call. They may submit, cancel and close, but neither drain nor free the server. */
typedef struct sluice_delivery {
  void* user;                                            /* given to both */
  void (*done)(void* user, sluice_result const* result); /* called exactly once */
  /* may be null: all that is certain, whenever that is more */
  void (*settled)(void* user, uint64_t id, sluice_token const* tokens, size_t count);
  double seconds; /* after these the result is what there is, with the failure "late"; 0: never */
} sluice_delivery;

typedef struct sluice_server sluice_server;
/* batch: requests decoded together, 0: 64; queue: how many may wait, 0: 1024. Submitting waits while the queue is full. The search is
 * copied, the model is used until the server is freed. */
SLUICE_API sluice_status sluice_server_create(sluice_model* model, sluice_search const* search, size_t batch,
                                              size_t queue, sluice_server** server);
/* From any thread. `id` may be null. `done` may be called before this has returned, and so before *id is written: there, take the id
 * of the result. */
SLUICE_API sluice_status sluice_server_submit(sluice_server* server, sluice_request const* request,
                                              sluice_delivery const* delivery, uint64_t* id);
/* The request ends with the failure "cancelled", and what there is. */
SLUICE_API sluice_status sluice_server_cancel(sluice_server* server, uint64_t id);
/* Refuses requests from now on; those queued are served. */
SLUICE_API sluice_status sluice_server_close(sluice_server* server);
/* Waits until every request has its result. */
SLUICE_API sluice_status sluice_server_drain(sluice_server* server);
/* What is left is cancelled, and delivered before this returns. */
SLUICE_API void sluice_server_free(sluice_server* server);

#ifdef __cplusplus
}
#endif

#endif
