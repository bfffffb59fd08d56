/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda_client.c has in common with cuda_expected.cpp: a device, cases, and what C++ makes of them. */
#ifndef TESTS_C_CUDA_CASES_H
#define TESTS_C_CUDA_CASES_H

#include <sluice_cuda.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device, or the emulated one ---- */

int device_missing(void);                         /* 1 where there is none, having said so */
sluice_cuda_stream device_stream(void);           /* to work in */
void* device_new(void const* from, size_t bytes); /* memory there, at a multiple of 256; null: of bytes 0xff */
void device_set(void* to, void const* from, size_t bytes);
void device_get(void const* from, void* to, size_t bytes); /* waits for all work */
void device_delete(void* memory);
int device_rings(void);           /* whether lines can be read through rings */
size_t device_allocations(void);  /* so far; 0 where nobody counts */
void device_hurries(int whether); /* an emulated one: lines are answered in a plain way */

/* ---- lines ---- */

/* Arrays in the host's memory; those of the task are the device's. */
typedef struct lines_case {
  sluice_cuda_task task;
  uint64_t const* scores; /* any bits */
  size_t score_count;     /* scores that there are */
  sluice_cuda_query const* queries;
  sluice_cuda_edit const* edits;
  int32_t const *probes, *tokens;
  uint32_t const* masks;
  float const* bias;
  size_t probe_count;
  sluice_cuda_select const* selects; /* null: nothing else is asked */
  size_t listed_count;
  /* What came back. */
  sluice_cuda_candidate* best;
  sluice_cuda_line* results;
  float* probe_values;
  sluice_cuda_selected* selected;
  sluice_cuda_candidate* listed;
} lines_case;
/* How many differences there are to what cuda::LogSoftmaxTopK says, bit for bit, and to what sluice::LogSoftmaxTopK says. The
 * expander's bias is that of the case. */
int lines_differ(lines_case const* lines);

/* ---- merges ---- */

typedef struct merge_case {
  sluice_cuda_merge merge;
  sluice_cuda_candidate const* best;
  sluice_cuda_line const* results;
  sluice_cuda_merge_group const* groups;
  sluice_cuda_merge_line const* lines;
  int32_t const* ends;
  size_t kept_count;
  /* What came back. */
  sluice_cuda_kept* kept;
  double* totals;
  int32_t* places;
} merge_case;
/* Differences to cuda::merge_beams, and to a sort of all candidates. */
int merge_differs(merge_case const* merge);

/* ---- verifications ---- */

typedef struct verification_case {
  sluice_cuda_verification task;
  size_t token_count;
  /* What came back. */
  sluice_cuda_candidate* tokens;
  sluice_cuda_verdict* verdicts;
} verification_case;
/* Differences to cuda::verify. */
int verification_differs(verification_case const* verification);

/* ---- beams ---- */

/* A sentence for the engine of cuda_engine.c. */
typedef struct beam_request {
  uint64_t source;
  int32_t prompt[2], prompt_count; /* at least one */
  int32_t prefix[2], prefix_count;
  double prefix_log_prob; /* written by beam_expect() */
} beam_request;
typedef struct beam_case {
  int32_t preset;
  double length_penalty;
  sluice_cuda_beam_options options; /* of the preset, and changed */
  beam_request* requests;
  int32_t request_count;
} beam_case;
/* The model: what is known behind one more token, and its scores, NaN behind some. */
uint64_t beam_next(uint64_t state, int32_t token);
float beam_score(uint64_t state, int32_t token);
int32_t beam_source_length(uint64_t source);
/* Has sluice::BeamSearch decode the case on the host, over lists made on the device. */
void beam_expect(beam_case* beam);
/* Differences of one result, bit for bit, to what that has found. */
int beam_differs(beam_case const* beam, int32_t request, sluice_cuda_result const* result);
/* How many hypotheses it has found that differ from each other in what matters. */
typedef struct beam_yield {
  int hypotheses, unfinished, failed, prefixed;
} beam_yield;
beam_yield beam_yields(void);
/* All that cuda_beams.c checks; adds to what passed and what failed. */
void beams(int* passed_checks, int* failed_checks);
void beam_refusals(int* passed_checks, int* failed_checks);

#ifdef __cplusplus
}
#endif

#endif
