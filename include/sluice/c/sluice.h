/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice for C99 and for everything that calls C. docs/c.md shows how to use it.
 *
 * Functions that may fail return a sluice_status; sluice_last_error() says what failed, per thread. No exception leaves
 * the library. Pointers that you pass need to stay valid only during the call, unless stated otherwise. A source is any
 * pointer of yours: your model gets it back, and it must stay valid until its request has its result.
 *
 * Structs that you fill begin with their size: begin with sluice_request_init() and so on, or write
 * `.size = sizeof(sluice_request)`. They may grow at the end in later versions; a program that was compiled with an
 * earlier header keeps working, since members that its struct does not reach have their defaults. sluice_result, sluice_frames_result and
 * sluice_watermark_detection may grow at their ends, too. sluice_row, sluice_draft, sluice_bytes, sluice_tool_event, sluice_hypothesis, sluice_ctc_matrix,
 * sluice_predictor_row, sluice_joiner_row, sluice_frames_word, sluice_frames_hypothesis and sluice_watermark_window never change.
 */
#ifndef SLUICE_C_SLUICE_H
#define SLUICE_C_SLUICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define SLUICE_API
#else
#define SLUICE_API __attribute__((visibility("default")))
#endif

/* sluice_request_init() and so on: a struct that says its size, every other member zero, which is the default. */
#define SLUICE_INITIALISER(type)                                                                                       \
  static inline type type##_init(void) {                                                                               \
    type made;                                                                                                         \
    memset(&made, 0, sizeof(type));                                                                                    \
    made.size = sizeof(type);                                                                                          \
    return made;                                                                                                       \
  }

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

/* The message of the last function that failed in this thread; "" if none did. Valid until the next failure. */
SLUICE_API char const* sluice_last_error(void);
/* The version that the library was built from, for example 0.1.0. */
SLUICE_API char const* sluice_version(void);
/* The version of this interface: it counts up whenever a function or a member is added. A library serves every program
 * whose header says the same or less, unless the name of the library, libsluice.so.1, has changed. */
#define SLUICE_ABI_VERSION 1
SLUICE_API int32_t sluice_abi_version(void);

/* ---- your model ------------------------------------------------------------------------------------------------------------ */

typedef int32_t sluice_token; /* in [0, vocabulary) */

/* One row of a step: continue slot `from` in slot `to`, after its first `length` tokens, with `count` tokens, and
 * answer after each of the last `lines` of them. All forks of a step (from != to) copy first, then every row is cut,
 * then every row appends. */
typedef struct sluice_row {
  int32_t from, to, length, lines;
  sluice_token const* tokens; /* [count], count >= 1; those of all rows of a step lie behind each other */
  size_t count;
} sluice_row;

enum { SLUICE_RAGGED = 1, SLUICE_BLOCKS = 2, SLUICE_ROLL_BACK = 4 }; /* see Abilities in docs/model.md */

/* A sentence of a "blockwise" search whose next tokens you may guess. Each guess follows the one before. A guess that
 * is not a token of the vocabulary is dropped, with all guesses after it. */
typedef struct sluice_draft {
  int32_t slot, length;        /* its slot, whose first `length` tokens stay */
  sluice_token const* pending; /* [pending_count]: chosen since, not yet in the slot */
  size_t pending_count;
  sluice_token* guesses; /* [wanted]: write them here */
  size_t wanted;
  size_t made; /* write their number here, at most `wanted`; 0 before */
} sluice_draft;

/* A model. Set unused members to zero. Functions return 0 for success and anything else for failure. They are called by
 * one thread at a time: the caller of sluice_decode, or the server's own thread. */
typedef struct sluice_model_functions {
  size_t size;               /* sizeof(sluice_model_functions) */
  int32_t vocabulary;        /* number of tokens */
  sluice_token bos;          /* fed first if a request has no prompt */
  sluice_token const* eos;   /* these end an output; copied */
  size_t eos_count;          /* 0: outputs have a fixed length */
  sluice_token const* never; /* never generated; copied */
  size_t never_count;
  int32_t abilities; /* sum of SLUICE_RAGGED and so on; 0: all rows of a step have the same length and one token each */
  int32_t log_probs; /* not 0: `step` writes log-probabilities (natural logarithm); 0: it writes logits */
  int32_t max_slots; /* 0: no limit */
  int32_t max_length; /* tokens in a slot; 0: no limit */
  void* user;         /* passed to each function */
  /* Begin sources[i] in slots[i], which then holds no token. */
  int (*start)(void* user, size_t count, void const* const* sources, int32_t const* slots);
  /* Write the scores of all tokens after each line asked for: [lines of all rows][vocabulary], -INFINITY for impossible
   * tokens. May be null if there is a step_view. */
  int (*step)(void* user, size_t count, sluice_row const* rows, float* scores);
  void (*release)(void* user, size_t count, int32_t const* slots); /* may be null: these slots are no longer needed */
  int32_t (*source_length)(void* user, void const* source);        /* may be null: for limits that are a factor of it */
  void (*destroy)(void* user);                                     /* may be null: called when the model is freed */
  /* may be null: guess the next tokens; called before each step of a "blockwise" search. Guesses never change an
   * output. */
  int (*propose)(void* user, size_t count, sluice_draft* drafts);
  int32_t lookup;   /* n > 0: prompt lookup; guess what followed the last n or fewer tokens earlier, and call
                     `propose` only if there is no match. 0: no lookup */
  int32_t reserved; /* 0 */
  /* may be null: called instead of `step`, for scores that lie somewhere already. Set *scores to the first line and
   * *stride to the distance of lines in floats, at least the vocabulary. They must stay until the next call of start,
   * step_view or destroy. */
  int (*step_view)(void* user, size_t count, sluice_row const* rows, float const** scores, size_t* stride);
} sluice_model_functions;
SLUICE_INITIALISER(sluice_model_functions)

typedef struct sluice_model sluice_model;
/* Copies the table. If it fails, `destroy` is not called. */
SLUICE_API sluice_status sluice_model_create(sluice_model_functions const* functions, sluice_model** model);
/* Call it after the servers that use the model are freed. Null is allowed, as for every free. */
SLUICE_API void sluice_model_free(sluice_model* model);

/* ---- searches -------------------------------------------------------------------------------------------------------------- */

typedef struct sluice_search sluice_search;
/* kind: "greedy", "beam", "diverse" (groups of beams that avoid each other), "sample", "stochastic" (a beam that draws without replacement), "blockwise" (greedy in blocks of guesses:
 * needs a model with SLUICE_BLOCKS and SLUICE_ROLL_BACK) or "particles" (samples with weights, as often as the model has them among those
 * that match the grammar: docs/unbiased.md); "ctc" (for matrices of frames: sluice_ctc_decode), "transducer" or "transducer_greedy" (sluice_transducer_decode). */
SLUICE_API sluice_status sluice_search_create(char const* kind, sluice_search** search);
SLUICE_API void sluice_search_free(sluice_search* search);
/* Sets an option by its C++ name; options that are not set have their defaults. A number stands for a name of an enum,
 * from 0 in the order of the C++ header; 1 and 0 for true and false. docs/c.md has a table.
 * For every kind: min_length, max_length, min_factor, max_factor, extra; repetition_penalty, frequency_penalty,
 * presence_penalty, penalty_window, penalty_prompt (Penalties), no_repeat_ngram, stop_minimum. For greedy and beam: penalty (0 none,
 * 1 average, 2 gnmt), alpha, beta, word_penalty, stage. For greedy: scores. For beam: width, n_best, finished, at_maximum, surplus, prefix_scored,
 * guard_prefix, one_end, candidates, sibling_penalty, stop_at_once; early_stopping (EarlyStopping::Rule), patience, ended_first;
 * absolute_threshold, relative_threshold, relative_local_threshold, max_per_parent, below_finished (Pruning). For diverse: those of beam,
 * of each group, but n_best of all groups together; groups, diversity_penalty, padding. For sample: temperature,
 * top_k, top_p, min_p, typical, top_n_sigma, min_keep, samples, distinct. For stochastic: width, temperature. For
 * blockwise: block, adaptive, cost, branches, nodes. For particles: particles, proposal (0 model, 1 rejection, 2 product), resample_below,
 * tries, looks, temperature, distinct. */
SLUICE_API sluice_status sluice_search_set(sluice_search* search, char const* name, double value);
/* The output must contain this phrase; for kind "beam". Copied. */
SLUICE_API sluice_status sluice_search_demand(sluice_search* search, sluice_token const* tokens, size_t count);
/* The output must not contain this phrase. Copied. */
SLUICE_API sluice_status sluice_search_forbid(sluice_search* search, sluice_token const* tokens, size_t count);

/* Outputs end where this sequence of tokens is complete, which they contain; for every kind of search. Copied. Set
 * "stop_minimum": the number of output tokens from which on a stop counts. Needs a model with an eos. */
SLUICE_API sluice_status sluice_search_stop(sluice_search* search, sluice_token const* tokens, size_t count);
/* Outputs end with the token that completes this string, which may begin and end within tokens. Copied. The model that
 * decodes needs sluice_model_set_bytes. See sluice_search_text. */
SLUICE_API sluice_status sluice_search_stop_text(sluice_search* search, char const* bytes, size_t count);

/* ---- grammars -------------------------------------------------------------------------------------------------------------- */

typedef struct sluice_bytes {
  char const* data; /* [count] */
  size_t count;
} sluice_bytes;
/* The bytes of each token in a text, for all `count` tokens of the vocabulary: empty for control tokens. Copied. Call
 * it before the model is given to a server, and before creating its grammars. Needs a model with an eos. */
SLUICE_API sluice_status sluice_model_set_bytes(sluice_model* model, sluice_bytes const* tokens, size_t count);
/* Names of tokens without bytes (control tokens), for grammars and tool calls that name them: "<|im_end|>" for tokens[i] is names[i]. Copied;
 * behind sluice_model_set_bytes, and before grammars are created. */
SLUICE_API sluice_status sluice_model_set_token_names(sluice_model* model, sluice_token const* tokens,
                                                      sluice_bytes const* names, size_t count);

typedef struct sluice_grammar sluice_grammar;
/* Set unused members to zero. */
typedef struct sluice_grammar_options {
  size_t size;          /* sizeof(sluice_grammar_options) */
  int32_t behind_space; /* 1: a leading space of the output is not part of the text that must match */
  int32_t white_space;  /* for json_schema: at most this many where JSON allows some; 0: compact, -1: any number */
  int32_t longest;      /* 1: forced text is spelt with the longest tokens; 0: with any */
  int32_t reserved;     /* 0 */
  char const* json;     /* for json_schema: a JSON object with members named as those of JsonSchemaOptions (docs/structure.md): {"indent": 2,
                         * "order": "any"}; null: none. Without them, members come in the order of the schema ("order": "schema") and numbers
                         * are plain ("plain_numbers": true) */
  /* For gbnf and lark: rules that the text calls by name and does not define, in whatever notation: grammar_names[i] is grammars[i],
   * with its own options, over any model. [grammar_count]; you may free them behind the call. */
  char const* const* grammar_names;
  sluice_grammar const* const* grammars;
  size_t grammar_count;
  /* For compiled: what sluice_grammar_to_bytes wrote. [byte_count]; copied. */
  char const* bytes;
  size_t byte_count;
} sluice_grammar_options;
SLUICE_INITIALISER(sluice_grammar_options)
/* kind: "gbnf", "lark", "regex", "json_schema", "structural_tag", "tool_calls", or "compiled" (text is null then; bytes are in the options); text: the grammar, in UTF-8. Errors are reported with line and column.
 * For tool_calls it is JSON, with the fields of OpenAI's requests and the name of a format, as vLLM's --tool-call-parser has it:
 * {"format": "hermes", "tools": [...], "tool_choice": "auto", "parallel_tool_calls": true}.
 * `options` may be null. Any number of searches over this model may use it, in all threads; it may outlive the model. */
SLUICE_API sluice_status sluice_grammar_create(sluice_model const* model, char const* kind, char const* text,
                                               sluice_grammar_options const* options, sluice_grammar** grammar);
SLUICE_API void sluice_grammar_free(sluice_grammar* grammar);
/* What a JSON schema holds that was ignored: names that are no keywords, formats that are none. [*count]; they live as long as the grammar. */
SLUICE_API sluice_status sluice_grammar_ignored(sluice_grammar const* grammar, sluice_bytes const** names,
                                                size_t* count);
/* The compiled grammar as bytes, for kind "compiled": reading them takes a fraction of what compiling a large schema does. They hold
 * a version of the format and checksums; options are not part of them, but behind_space is. *size is how many they are; if
 * `capacity` is as much, they are in `bytes`, which may be null with a capacity of 0. */
SLUICE_API sluice_status sluice_grammar_to_bytes(sluice_grammar const* grammar, char* bytes, size_t capacity,
                                                 size_t* size);
/* What rules that are captured (name[capture] in Lark) have matched in a finished output: names[i] is texts[i], [*count], in the
 * order in which they begin, outer ones first. They live until this thread's next call of this. */
SLUICE_API sluice_status sluice_grammar_captures(sluice_grammar const* grammar, sluice_token const* tokens,
                                                 size_t token_count, sluice_bytes const** names,
                                                 sluice_bytes const** texts, size_t* count);
/* Outputs must match this grammar; for every kind of search. "particles" are weighted by it (without one: not at all), all others masked. Null: no grammar. Shared: you may free your handle
 * afterwards. */
SLUICE_API sluice_status sluice_search_obey(sluice_search* search, sluice_grammar const* grammar);

/* ---- calls of tools -------------------------------------------------------------------------------------------------------- */

/* Reads calls from an output while it is written: docs/structure.md#calls-of-tools. */
typedef struct sluice_tool_parser sluice_tool_parser;
typedef struct sluice_tool_event {
  char const*
      kind; /* "content": text for the user; "reasoning"; "begun": a call of the tool `text`; "arguments": more of its JSON; "ended" */
  int32_t call; /* its number, from 0; -1 before the first */
  int32_t reserved;
  char const* text; /* [count]: what is new */
  size_t count;
} sluice_tool_event;
/* format: as for a grammar of kind "tool_calls"; tools: OpenAI's list, JSON, for formats that write no JSON; may be null.
 * reasoning_end: "</think>" where an output begins with what the model thinks, up to that mark, or is all of that if it never comes;
 * null: it does not. With a mark, format may be null: there are no calls. */
SLUICE_API sluice_status sluice_tool_parser_create(char const* format, char const* tools, char const* reasoning_end,
                                                   sluice_tool_parser** parser);
SLUICE_API void sluice_tool_parser_free(sluice_tool_parser* parser);
/* More of the output; of control tokens their names. *event_count events, which live until the parser's next call. What may still become
 * a mark waits. */
SLUICE_API sluice_status sluice_tool_parser_append(sluice_tool_parser* parser, char const* text, size_t count,
                                                   sluice_tool_event const** events, size_t* event_count);
/* What is left at the end of the output. */
SLUICE_API sluice_status sluice_tool_parser_finish(sluice_tool_parser* parser, sluice_tool_event const** events,
                                                   size_t* event_count);

/* ---- boosted phrases ------------------------------------------------------------------------------------------------------- */

/* Phrases that outputs should rather contain: docs/biasing.md. */
typedef struct sluice_bias sluice_bias;
typedef struct sluice_biased_phrase {
  sluice_token const* tokens; /* of all its spellings, one after another; any of them counts as the phrase */
  size_t const* lengths;      /* [spellings] */
  size_t spellings;           /* >= 1 */
  float boost;                /* in nats: what its occurrence adds to the log-probability of an output */
  int32_t per_token;          /* 1: each of its tokens adds that; 0: the whole phrase */
} sluice_biased_phrase;
/* Set unused members to zero. */
typedef struct sluice_bias_options {
  size_t size;      /* sizeof(sluice_bias_options) */
  int32_t matches;  /* Matches: 0 all, 1 longest, 2 first */
  int32_t once;     /* 1: each phrase is paid only the first time that it occurs in an output */
  int32_t lead;     /* beginnings of so many tokens are lent nothing yet */
  int32_t reserved; /* 0 */
} sluice_bias_options;
SLUICE_INITIALISER(sluice_bias_options)
/* `options` may be null. Copied. Any number of searches may use it, in all threads. */
SLUICE_API sluice_status sluice_bias_create(sluice_biased_phrase const* phrases, size_t count,
                                            sluice_bias_options const* options, sluice_bias** bias);
SLUICE_API void sluice_bias_free(sluice_bias* bias);
/* Outputs with these phrases score more; for every kind of search. A beam with early_stopping 2 (exact) refuses it. Null:
 * no phrases. Shared: you may free your handle afterwards. */
SLUICE_API sluice_status sluice_search_prefer(sluice_search* search, sluice_bias const* bias);

/* ---- processors of yours --------------------------------------------------------------------------------------------------- */

/* A logits processor: changes the scores of the next token in place, `scores[vocabulary]`, as in Hugging Face's and vLLM's; -INFINITY
 * forbids a token. They are the model's scores ("sample", or option "stage" 0), or log-probabilities. `tokens` are the output so far, a forced prefix
 * included. Returns 0 for success; anything else ends the request. */
typedef int (*sluice_process)(void* user, sluice_token const* tokens, size_t count, float* scores, size_t vocabulary);
/* Adds a processor, behind those that the search has; all others act before it. It is called by the thread that calls the model. */
SLUICE_API sluice_status sluice_search_process(sluice_search* search, sluice_process process, void* user);

/* A stopping criterion: whether an output is over with its last token. `tokens` as above. Returns 1 or 0; anything else ends the request. */
typedef int (*sluice_over)(void* user, sluice_token const* tokens, size_t count);
/* Outputs end where the function says so; from "stop_minimum" tokens on. sluice_hypothesis.stop counts the functions behind sequences and
 * strings. Beams ask it for candidates, too (option stop_at_once). It is called by the thread that calls the model. */
SLUICE_API sluice_status sluice_search_stop_when(sluice_search* search, sluice_over over, void* user);

/* ---- catalogues ------------------------------------------------------------------------------------------------------------ */

/* The token sequences that an output may be, from 1 to 2^31 - 1 of them: docs/catalogues.md. */
typedef struct sluice_catalogue sluice_catalogue;
/* Maps a file of `build_catalogue`, or of the C++ library, and checks all of it. Processes share its memory; the file
 * must not change. */
SLUICE_API sluice_status sluice_catalogue_open(char const* file, sluice_catalogue** catalogue);
/* A catalogue of `count` different sequences, in any order: the tokens of all sequences concatenated, and the length of
 * each. Copied. */
SLUICE_API sluice_status sluice_catalogue_create(sluice_token const* tokens, size_t const* lengths, size_t count,
                                                 sluice_catalogue** catalogue);
SLUICE_API void sluice_catalogue_free(sluice_catalogue* catalogue);
/* Outputs must be sequences of this catalogue; for every kind of search. Null: no catalogue. Shared: you may free your
 * handle afterwards. */
SLUICE_API sluice_status sluice_search_choose(sluice_search* search, sluice_catalogue const* catalogue);

/* ---- watermarks ------------------------------------------------------------------------------------------------------------ */

/* Marks in outputs, which whoever has the key finds again: docs/watermarks.md. */

/* The secret of a watermark: up to 32 words of 64 bits. No function gives them back, and no message contains them. */
typedef struct sluice_watermark_key sluice_watermark_key;
/* Reads a file of integers, decimal or with 0x: what `watermark key` or sluice_watermark_key_write_new wrote, or an
 * integer of vLLM. */
SLUICE_API sluice_status sluice_watermark_key_open(char const* file, sluice_watermark_key** key);
/* Of words. Copied. */
SLUICE_API sluice_status sluice_watermark_key_create(uint64_t const* words, size_t count, sluice_watermark_key** key);
/* Of bytes: eight for each word, the lowest first. Copied. */
SLUICE_API sluice_status sluice_watermark_key_from_bytes(void const* bytes, size_t count, sluice_watermark_key** key);
/* A new key of so many random words (1 is enough), written to a new file that only its owner may read. */
SLUICE_API sluice_status sluice_watermark_key_write_new(char const* file, size_t words, sluice_watermark_key** key);
SLUICE_API void sluice_watermark_key_free(sluice_watermark_key* key);

/* How tokens are marked: what marks them, and what finds the marks, takes the same. */
typedef struct sluice_watermark sluice_watermark;
/* scheme: "gumbel", "synthid", "red_green" or "sbw"; "none": no marks, and no key. The key is copied. */
SLUICE_API sluice_status sluice_watermark_create(char const* scheme, sluice_watermark_key const* key,
                                                 sluice_watermark** watermark);
SLUICE_API void sluice_watermark_free(sluice_watermark* watermark);
/* Sets an option by its C++ name, as sluice_search_set: prf (0 sluice, 1 philox, 2 hmac_sha256, 3 synthid_text,
 * 4 hugging_face), width, second, gamma, delta, depth. */
SLUICE_API sluice_status sluice_watermark_set(sluice_watermark* watermark, char const* name, double value);
/* Outputs carry these marks. "sample" draws with any scheme, after its samplers; "gumbel" with several samples needs
 * `second`. Every other kind of search takes "red_green" and "sbw", whose green tokens get `delta` more; a beam with
 * early_stopping 2 (exact) refuses them. Null: no marks. Copied. */
SLUICE_API sluice_status sluice_search_mark(sluice_search* search, sluice_watermark const* watermark);

/* Which part of a text to look at. Set unused members to zero. */
typedef struct sluice_detection_options {
  size_t size;         /* sizeof(sluice_detection_options) */
  uint8_t const* mask; /* [mask_count], as many as tokens: not 0: leave out this one (forced, quoted). Null: none */
  size_t mask_count;
  int32_t window;   /* look also at parts of so many tokens, half of it apart; 0: not */
  int32_t reserved; /* 0 */
} sluice_detection_options;
SLUICE_INITIALISER(sluice_detection_options)

/* The score of a part of a text. */
typedef struct sluice_watermark_window {
  int32_t begin, end; /* tokens begin .. end - 1 */
  int32_t scored;     /* as in sluice_watermark_detection */
  int32_t reserved;   /* 0 */
  double score, p_value;
} sluice_watermark_window;

typedef struct sluice_watermark_detection {
  int32_t tokens;   /* in the text */
  int32_t scored;   /* that count */
  int32_t masked;   /* left out as the mask says */
  int32_t repeated; /* left out since their context has occurred before */
  double score;     /* gumbel: sum of -log(1 - number), of mean `scored`; synthid: bits set; else green tokens */
  double expected;  /* its mean in a text without the mark */
  double p_value;   /* the probability of this score or a higher one in a text without the mark */
  sluice_watermark_window const* windows; /* [window_count]; if asked for */
  size_t window_count;
  double windows_p_value; /* the smallest of the windows, times their number: at most 1, and never too small */
} sluice_watermark_detection;
/* Whether a text carries the mark: tokens of the model that wrote it, from the beginning of its output. The p-value is
 * exact. `options` may be null. O(tokens). */
SLUICE_API sluice_status sluice_detect_watermark(sluice_watermark const* watermark, sluice_token const* tokens,
                                                 size_t count, sluice_detection_options const* options,
                                                 sluice_watermark_detection const** found);
SLUICE_API void sluice_watermark_detection_free(sluice_watermark_detection const* found);

/* ---- suffix decoding ------------------------------------------------------------------------------------------------------- */

/* What was decoded before, for guesses from it: docs/blockwise.md#suffix-decoding. Any number of models, in any number of
 * threads, may share one; all functions may be called while they do. */
typedef struct sluice_suffix_cache sluice_suffix_cache;
/* tokens: how many it may hold, at least 4096; then those texts are forgotten that were not used for longest. 0: 10
 * million, of 8.6 bytes each. longest: how many last tokens of a text are compared, 1 to 256; 0: 32. */
SLUICE_API sluice_status sluice_suffix_cache_create(int64_t tokens, int32_t longest, sluice_suffix_cache** cache);
/* Models that guess from it keep what it holds. */
SLUICE_API void sluice_suffix_cache_free(sluice_suffix_cache* cache);
/* Writes a file, which replaces what was there: it may be mapped. It holds outputs and ends of prompts as they are. */
SLUICE_API sluice_status sluice_suffix_cache_save(sluice_suffix_cache* cache, char const* file);
/* Replaces everything by what a file holds, which is mapped and checked; `longest` becomes that of the file. If it
 * fails, nothing changes. */
SLUICE_API sluice_status sluice_suffix_cache_load(sluice_suffix_cache* cache, char const* file);
/* Adds a text of yours; `before`: what precedes it (a prompt). Copied. */
SLUICE_API sluice_status sluice_suffix_cache_insert(sluice_suffix_cache* cache, sluice_token const* before,
                                                    size_t before_count, sluice_token const* decoded, size_t count);
/* Forgets everything. */
SLUICE_API sluice_status sluice_suffix_cache_clear(sluice_suffix_cache* cache);
/* How many tokens (with what precedes texts) and texts it holds, and the bytes that its arrays take; 0 for null. */
SLUICE_API int64_t sluice_suffix_cache_tokens(sluice_suffix_cache const* cache);
SLUICE_API int64_t sluice_suffix_cache_texts(sluice_suffix_cache const* cache);
SLUICE_API int64_t sluice_suffix_cache_bytes(sluice_suffix_cache const* cache);

/* Set unused members to zero. Copied. */
typedef struct sluice_suffix_options {
  size_t size;         /* sizeof(sluice_suffix_options) */
  int32_t shortest;    /* the shortest match, in tokens; 0: 1 */
  int32_t samples;     /* how many places with a match are looked at, at most; 0: 16 */
  double factor;       /* guesses on a path per token of the match, at most; 0: 1 */
  double const* least; /* a guess is made if at least this fraction of what followed begins so; null: 0.1 */
  int32_t not_own;     /* 1: do not look in the request's own prompt and output; 0: do */
  int32_t reserved;    /* 0 */
} sluice_suffix_options;
SLUICE_INITIALISER(sluice_suffix_options)
/* A model that guesses from a cache what comes next, for "blockwise", and stores in it the outputs of all searches
 * (suffix decoding). `propose` and `lookup` of the model are asked where they guess better. `options` may be null.
 * `model` belongs to the new one, and must stay, until that is freed; the cache is shared: you may free your handle
 * afterwards. See `forget` of sluice_request. The new model knows the bytes that `model` had when it was made. */
SLUICE_API sluice_status sluice_model_remember(sluice_model* model, sluice_suffix_cache* cache,
                                               sluice_suffix_options const* options, sluice_model** remembering);

/* ---- language models --------------------------------------------------------------------------------------------------------- */

/* A table of n-grams, which never changes: docs/language-models.md. Its words have numbers from 0. Logarithms are natural. */
typedef struct sluice_ngrams sluice_ngrams;
/* Reads ARPA text, or maps a file of `build_ngram`; its first bytes say which. A mapped file must not change. */
SLUICE_API sluice_status sluice_ngrams_open(char const* file, sluice_ngrams** ngrams);
SLUICE_API void sluice_ngrams_free(sluice_ngrams* ngrams);
/* The number of words, with <s>, </s> and <unk>; 0 for null. */
SLUICE_API int32_t sluice_ngrams_size(sluice_ngrams const* ngrams);
/* words[i]: the number of the word that is spelt so, -1 if there is none. */
SLUICE_API sluice_status sluice_ngrams_find(sluice_ngrams const* ngrams, sluice_bytes const* spellings, size_t count,
                                            int32_t* words);
/* The spelling of a word, valid until the table is freed. */
SLUICE_API sluice_status sluice_ngrams_spelling(sluice_ngrams const* ngrams, int32_t word, sluice_bytes* spelling);
/* log p of a sentence: of its words (-1: one that the table has not) and its end. For rescoring n-best lists. */
SLUICE_API sluice_status sluice_ngrams_score(sluice_ngrams const* ngrams, int32_t const* words, size_t count,
                                             double* log_prob);

/* The tokens of an n-gram model. Set unused members to zero. Copied. */
typedef struct sluice_ngram_options {
  size_t size;             /* sizeof(sluice_ngram_options) */
  int32_t vocabulary;      /* number of tokens; 0: the table's words are the tokens */
  sluice_token bos;        /* begins a sentence */
  sluice_token const* eos; /* score as the end of a sentence */
  size_t eos_count;
  sluice_token const* never; /* never generated */
  size_t never_count;
  int32_t const* words;      /* [vocabulary]: the word that each token stands for; -1: <unk> */
  sluice_bytes const* bytes; /* [vocabulary], instead of `words`: tokens are parts of words, and write this. A word is
                                what stands between spaces; it is scored when it is over */
  double unknown;            /* added to the log-probability of each <unk> */
} sluice_ngram_options;
SLUICE_INITIALISER(sluice_ngram_options)
/* N-grams as a model, which can be decoded or fused; takes any source. `options` may be null. It may outlive the table. */
SLUICE_API sluice_status sluice_ngrams_model(sluice_ngrams const* ngrams, sluice_ngram_options const* options,
                                             sluice_model** model);

/* Set unused members to zero. Copied. */
typedef struct sluice_fused_options {
  size_t size;               /* sizeof(sluice_fused_options) */
  double word_bonus;         /* added for each token of `words` */
  sluice_token const* words; /* tokens of the model that count as words; none: all but eos */
  size_t word_count;
  /* [vocabulary of the model]: the language model's token for each of the model's, -1: none. Null: both have the same
   * vocabulary. */
  sluice_token const* tokens;
  size_t token_count;
  sluice_token const* unknown; /* the language model's token for those that it has not; null: these are impossible */
  double unknown_log_prob;     /* added to the log-probability of each of them */
  int32_t normalise;           /* 1: a softmax of the sum: for sampling */
  int32_t reserved;            /* 0 */
} sluice_fused_options;
SLUICE_INITIALISER(sluice_fused_options)
/* A model whose scores are log p of `model` + weight * log p of `language` + word_bonus * words (shallow fusion). Any
 * model may be the language model; it gets the same sources and slots. Both belong to the fused model, and must stay,
 * until that is freed. `options` may be null. The fused model knows the bytes that `model` had when it was made. */
SLUICE_API sluice_status sluice_model_fuse(sluice_model* model, sluice_model* language, double weight,
                                           sluice_fused_options const* options, sluice_model** fused);

/* ---- CTC ------------------------------------------------------------------------------------------------------------------- */

/* Texts of matrices of frames, which a recogniser has computed: docs/ctc.md. A sluice_ctc knows the labels, and what words and
 * language models say of texts; the options of its beam are a sluice_search of kind "ctc": width, n_best, top_tokens, token_floor,
 * threshold, skip_blank, block, viterbi; silence, nothing, longest (Endpoint). That takes phrases that are forbidden, a bias, a catalogue
 * and a grammar too; of outputs that are texts, whose end the blank stands for. Any number of threads may use both. */
typedef struct sluice_ctc sluice_ctc;
/* Set unused members to zero. Copied. */
typedef struct sluice_ctc_options {
  size_t size;        /* sizeof(sluice_ctc_options) */
  int32_t labels;     /* columns of every matrix: the blank is one of them */
  sluice_token blank; /* means "nothing here" */
  int32_t log_probs;  /* not 0: matrices hold log-probabilities (natural logarithm); 0: logits */
  int32_t reserved;   /* 0 */
  /* [labels]: what each label writes, with spaces between words; that of the blank is not looked at. For grammars, and for n-grams of
   * words without a lexicon. Null: not known */
  sluice_bytes const* texts;
  /* Labels that stand between words. A text's beginning and its end count as the first of them in phrases of a bias: a phrase that
   * begins and ends with it is boosted where it is a whole word. */
  sluice_token const* separators;
  size_t separator_count;
  /* [spellings]: a lexicon. Texts consist of these words; one with several spellings stands here several times. None: any words */
  sluice_bytes const* words;
  sluice_token const* tokens; /* of all spellings, one after another */
  size_t const* lengths;      /* [spellings] */
  size_t spellings;
  sluice_ngrams const* ngrams; /* a language model, of words or of labels; null: none. Shared */
  int32_t const*
      ngram_words; /* [labels], of labels: the word of the table that each one is, -1: <unk>. Null: it is one of words */
  double const* weight; /* of the language model's log-probability; null: 0.3 */
  double bonus;         /* added for each word, or label */
  double unknown;       /* added to the log-probability of each <unk> */
  /* Instead of ngrams: any model as the language model, which is run beside the frames (docs/ctc.md): each new text of a beam is a row, those
   * of all matrices of a step are in one call, and its source is null. SLUICE_RAGGED; its log-probability counts `weight`, its eos is the end
   * of a text, `bonus` is for each label. Must stay. Then one thread at a time uses the sluice_ctc and its streams, and `threads` is not
   * looked at. Null: none */
  sluice_model* model;
  /* [labels]: the model's token for each label, -1: none, which forbids the label; null: the same numbers */
  sluice_token const* model_tokens;
} sluice_ctc_options;
SLUICE_INITIALISER(sluice_ctc_options)
SLUICE_API sluice_status sluice_ctc_create(sluice_ctc_options const* options, sluice_ctc** ctc);
/* After its streams. */
SLUICE_API void sluice_ctc_free(sluice_ctc* ctc);
/* As sluice_grammar_create; needs `texts`. It may outlive the sluice_ctc. */
SLUICE_API sluice_status sluice_ctc_grammar(sluice_ctc const* ctc, char const* kind, char const* text,
                                            sluice_grammar_options const* options, sluice_grammar** grammar);

typedef struct sluice_ctc_matrix {
  float const* scores; /* [frames][stride], of which the first `labels` of each line count */
  size_t frames;
  size_t stride; /* in floats; 0: labels */
} sluice_ctc_matrix;

typedef struct sluice_frames_word {
  int32_t begin, end;             /* its tokens */
  int32_t first_frame, end_frame; /* of its first token, and the one after its last token's */
  int32_t spelling;               /* of the lexicon; -1: there is none, or the text ends within a word */
  float confidence;               /* the geometric mean of its tokens' probabilities at their best frames */
} sluice_frames_word;
typedef struct sluice_frames_hypothesis {
  sluice_token const* tokens; /* [count]: the text, without blanks */
  int32_t const* frames;      /* [2 * count]: of each token the first frame, and the one after its last */
  float const* log_probs;     /* [count]: at the best frame of each */
  size_t count;
  double log_prob, score;          /* docs/ctc.md */
  sluice_frames_word const* words; /* [word_count]; none if neither lexicon nor separators are known */
  size_t word_count;
} sluice_frames_hypothesis;
/* May grow at its end. */
typedef struct sluice_frames_result {
  char const* failure; /* as of sluice_result */
  char const* message;
  sluice_frames_hypothesis const* hypotheses; /* [count], best first */
  size_t count;
  int32_t frames;   /* that it is of */
  int32_t reserved; /* 0 */
} sluice_frames_result;

typedef struct sluice_frames_results sluice_frames_results;
/* Decodes matrices, each by one of so many threads (0: as many as there are processors); they never change a result. Numbers that are
 * probabilities are refused: a row sums to 1. `search` may be null. */
SLUICE_API sluice_status sluice_ctc_decode(sluice_ctc const* ctc, sluice_search const* search,
                                           sluice_ctc_matrix const* matrices, size_t count, size_t threads,
                                           sluice_frames_results** results);
/* In the order of the matrices; valid until the results are freed. Null if the index is too large. */
SLUICE_API sluice_frames_result const* sluice_frames_results_at(sluice_frames_results const* results, size_t index);
SLUICE_API size_t sluice_frames_results_count(sluice_frames_results const* results);
SLUICE_API void sluice_frames_results_free(sluice_frames_results* results);

/* Frames that come while they are decoded; one thread at a time. The result is that of the whole at once, bit for bit. */
typedef struct sluice_ctc_stream sluice_ctc_stream;
SLUICE_API sluice_status sluice_ctc_stream_create(sluice_ctc const* ctc, sluice_search const* search,
                                                  sluice_ctc_stream** stream);
SLUICE_API void sluice_ctc_stream_free(sluice_ctc_stream* stream);
/* Decodes these frames; `frames` may be null. last = 1: nothing more will come. *ended: 1 if the utterance is over, by that or by an
 * endpoint, and has its result; frames that came after an endpoint are kept. `ended` may be null. */
SLUICE_API sluice_status sluice_ctc_stream_append(sluice_ctc_stream* stream, sluice_ctc_matrix const* frames,
                                                  int32_t last, int32_t* ended);
/* The tokens that are certain so far; valid until the next call for this stream. */
SLUICE_API sluice_status sluice_ctc_stream_settled(sluice_ctc_stream* stream, sluice_token const** tokens,
                                                   size_t* count);
/* What was found; refused (SLUICE_REFUSED) before the utterance is over. Valid until the next sluice_ctc_stream_next, or the end. */
SLUICE_API sluice_status sluice_ctc_stream_result(sluice_ctc_stream* stream, sluice_frames_result const** result);
/* Begins another utterance, with the frames that an endpoint has left; they are decoded by the next call of append. */
SLUICE_API sluice_status sluice_ctc_stream_next(sluice_ctc_stream* stream);

/* The likeliest alignment of a text (forced alignment): frames [2 * count] and log_probs [count], each label's mean over its frames, are
 * written. *log_prob is that of the alignment; -INFINITY: there is none, and nothing else is written. */
SLUICE_API sluice_status sluice_ctc_align(sluice_ctc const* ctc, sluice_ctc_matrix const* matrix,
                                          sluice_token const* tokens, size_t count, int32_t* frames, double* log_probs,
                                          double* log_prob);

/* ---- transducers ----------------------------------------------------------------------------------------------------------- */

/* A network of three parts, which you write: docs/transducers.md says what each has to do. */
typedef struct sluice_predictor_row {
  int32_t from, to; /* states: one that an earlier call wrote, or -1 for none, and the new one */
  sluice_token label;
} sluice_predictor_row;
typedef struct sluice_joiner_row {
  int32_t utterance, frame, state;
} sluice_joiner_row;
/* Set unused members to zero. Functions return 0 for success and anything else for failure, and are called by the caller's thread. */
typedef struct sluice_transducer_functions {
  size_t size;                 /* sizeof(sluice_transducer_functions) */
  int32_t labels;              /* the blanks among them */
  sluice_token blank;          /* moves one frame on */
  int32_t const* durations;    /* of a TDT: how many frames each of its durations moves on; copied */
  size_t duration_count;       /* 0: an RNN-T */
  sluice_token const* blanks;  /* of a multi-blank transducer: labels that move on by several frames; copied */
  int32_t const* blank_frames; /* [blank_count]: by how many */
  size_t blank_count;
  int32_t label_frames;                              /* 1: labels move one frame on, too; 0: they stay */
  int32_t log_probs;                                 /* not 0: `join` gives log-probabilities; 0: logits */
  void* user;                                        /* passed to each function */
  int32_t (*frames)(void* user, void const* source); /* how many the joiner will see */
  /* From now on the frames of sources[i] are those of utterances[i]. */
  int (*start)(void* user, size_t count, void const* const* sources, int32_t const* utterances);
  int (*predict)(void* user, size_t count, sluice_predictor_row const* rows);
  /* Set *scores to the first of `count` lines, and *stride to their distance in floats: of the labels, and behind them of the
   * durations of a TDT. They must stay until the next call. */
  int (*join)(void* user, size_t count, sluice_joiner_row const* rows, float const** scores, size_t* stride);
  void (*release)(void* user, size_t count, int32_t const* utterances); /* may be null */
  void (*destroy)(void* user);                                          /* may be null */
} sluice_transducer_functions;
SLUICE_INITIALISER(sluice_transducer_functions)

typedef struct sluice_transducer sluice_transducer;
/* Copies the table. If it fails, `destroy` is not called. */
SLUICE_API sluice_status sluice_transducer_create(sluice_transducer_functions const* functions,
                                                  sluice_transducer** transducer);
SLUICE_API void sluice_transducer_free(sluice_transducer* transducer);
/* Decodes utterances, `batch` (0: 32) of them together, by a search of kind "transducer" (a beam: width, n_best, candidates, most_symbols,
 * most_labels, threshold, within; order: 0 frames, 1 alignment; penalty, alpha, beta, word_penalty; silence, nothing, longest) or
 * "transducer_greedy" (most_symbols, most_labels, candidates). texts: what lexicon and language model say of the same labels; null: nothing.
 * Tokens of results are labels. */
SLUICE_API sluice_status sluice_transducer_decode(sluice_transducer* transducer, sluice_search const* search,
                                                  sluice_ctc const* texts, void const* const* sources, size_t count,
                                                  size_t batch, sluice_frames_results** results);
/* An utterance with frames that come while it is decoded, as with sluice_ctc_stream_create; its functions are those of sluice_ctc_stream, freed
 * before `transducer` and `texts`. sluice_ctc_stream_append, with null as its frames, asks `frames(source)` how many have come; those
 * before the last one that join was asked for may be forgotten (not with order 1), but for what an endpoint leaves: frames have their
 * numbers of the source in all utterances of a stream. One thread at a time uses a transducer and all its streams; any may free one. One that is
 * freed before its end does not call `release`. */
SLUICE_API sluice_status sluice_transducer_stream(sluice_transducer* transducer, sluice_search const* search,
                                                  sluice_ctc const* texts, void const* source,
                                                  sluice_ctc_stream** stream);

/* ---- traces ---------------------------------------------------------------------------------------------------------------- */

/* What a decoder did for one request, step by step: docs/viewer.md. Give it to a request; it is complete, and may be read,
 * given to another request or freed, when that has its result. */
typedef struct sluice_trace sluice_trace;
/* about: what its page says of the request; may be null. Copied. */
SLUICE_API sluice_status sluice_trace_create(char const* about, sluice_trace** trace);
SLUICE_API void sluice_trace_free(sluice_trace* trace);
/* Lines of JSON, and a page for a browser (HTML, complete in itself). Tokens are texts if the model has their bytes, else
 * numbers. Valid until the trace is used again or freed. */
SLUICE_API sluice_status sluice_trace_lines(sluice_trace* trace, sluice_bytes* lines);
SLUICE_API sluice_status sluice_trace_page(sluice_trace* trace, sluice_bytes* page);

/* ---- requests and results -------------------------------------------------------------------------------------------------- */

/* Set unused members to zero. Everything is copied except what the source points to. All requests of an array have the
 * same size. */
typedef struct sluice_request {
  size_t size; /* sizeof(sluice_request) */
  void const* source;
  sluice_token const* prompt; /* fed, not part of the output; none: bos */
  size_t prompt_count;
  sluice_token const* prefix; /* the output begins with these */
  size_t prefix_count;
  sluice_search const* search; /* replaces the call's (or the server's) search, of the same kind; null: that one */
  uint64_t const* seed;        /* for its random numbers; null: the request's number */
  sluice_trace* trace;         /* must stay until its result; one request at a time may have it. Null: none */
  int32_t forget;   /* 1: leave nothing of it in a suffix cache, and guess nothing from one (Request::remember) */
  int32_t reserved; /* 0 */
} sluice_request;
SLUICE_INITIALISER(sluice_request)

typedef struct sluice_hypothesis {
  sluice_token const* tokens; /* [count], including prefix and final eos */
  float const* log_probs;     /* [count] */
  size_t count;
  double log_prob, score;
  int32_t finished;                           /* 1: ended, 0: cut off */
  int32_t constraints_met, constraints_total; /* of demanded phrases */
  int32_t
      stop; /* which stop ended it: those of sluice_search_stop in their order, then those of ..._stop_text; -1: none */
  int32_t const* blocks; /* [block_count], for blockwise: tokens settled in each round */
  size_t block_count;
} sluice_hypothesis;

/* The bytes of an output up to the stop that ended it, or with include_stop = 1 up to its end. Writes at most `room` of
 * them; *count is their number. `search`: the one that found it. */
SLUICE_API sluice_status sluice_search_text(sluice_search const* search, sluice_model const* model,
                                            sluice_hypothesis const* found, int32_t include_stop, char* text,
                                            size_t room, size_t* count);

typedef struct sluice_result {
  uint64_t id;                         /* the request's number, from 0 */
  char const* failure;                 /* "none", or a name of sluice::Failure: "bad_request", "source", "model", ... */
  char const* message;                 /* what failed; "" if nothing did */
  sluice_hypothesis const* hypotheses; /* [count], best first; incomplete if it was cut short */
  size_t count;
  double const* weights; /* [count]: of "particles": what each hypothesis counts; they add up to 1. Else null */
  double log_z,
      log_z_error; /* of "particles": log of the probability that the model's output matches, and its error. Else NaN */
} sluice_result;

typedef struct sluice_results sluice_results;
/* Decodes requests, `batch` (0: 64) of them together; this changes speed, never results. Each request's result reports
 * its own failure, including an error of your model. */
SLUICE_API sluice_status sluice_decode(sluice_model* model, sluice_search const* search, sluice_request const* requests,
                                       size_t count, size_t batch, sluice_results** results);
/* In the order of the requests; valid until the results are freed. Null if the index is too large. */
SLUICE_API sluice_result const* sluice_results_at(sluice_results const* results, size_t index);
SLUICE_API size_t sluice_results_count(sluice_results const* results);
SLUICE_API void sluice_results_free(sluice_results* results);

/* ---- a server -------------------------------------------------------------------------------------------------------------- */

/* Passed with each request to a server. Callbacks run in the server's thread, one at a time; their arguments are valid
 * during the call. They may submit, cancel and close, but must neither drain nor free the server. */
typedef struct sluice_delivery {
  size_t size;                                           /* sizeof(sluice_delivery) */
  void* user;                                            /* passed to both */
  void (*done)(void* user, sluice_result const* result); /* called exactly once */
  /* may be null: called whenever more tokens are settled, with those that are new; the result begins with all of them */
  void (*delta)(void* user, uint64_t id, sluice_token const* tokens, size_t count);
  double seconds; /* time limit: then the request ends with the failure "late" and its output so far; 0: none */
} sluice_delivery;
SLUICE_INITIALISER(sluice_delivery)

typedef struct sluice_server sluice_server;
/* batch: requests decoded together, 0: 64; queue: how many may wait, 0: 1024. Submitting blocks while the queue is
 * full. The search is copied; the model is used until the server is freed. */
SLUICE_API sluice_status sluice_server_create(sluice_model* model, sluice_search const* search, size_t batch,
                                              size_t queue, sluice_server** server);
/* From any thread. `id` may be null. `done` may be called before this function returns, and so before *id is written:
 * in `done`, use the result's id. */
SLUICE_API sluice_status sluice_server_submit(sluice_server* server, sluice_request const* request,
                                              sluice_delivery const* delivery, uint64_t* id);
/* The request ends with the failure "cancelled" and its output so far. */
SLUICE_API sluice_status sluice_server_cancel(sluice_server* server, uint64_t id);
/* Refuses requests from now on; queued requests are still served. */
SLUICE_API sluice_status sluice_server_close(sluice_server* server);
/* Waits until every request has its result. */
SLUICE_API sluice_status sluice_server_drain(sluice_server* server);
/* Cancels all remaining requests; their results are delivered before this returns. */
SLUICE_API void sluice_server_free(sluice_server* server);

#ifdef __cplusplus
}
#endif

#endif
