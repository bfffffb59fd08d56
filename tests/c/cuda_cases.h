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

int device_missing(void);                                  /* 1 where there is none, having said so */
sluice_cuda_stream device_stream(void);                    /* to work in */
void* device_new(void const* from, size_t bytes);          /* memory there, at a multiple of 256; null: of bytes 0xff */
void device_get(void const* from, void* to, size_t bytes); /* waits for all work */
void device_delete(void* memory);
size_t device_allocations(void); /* so far; 0 where nobody counts */

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
  /* What came back. */
  sluice_cuda_candidate* best;
  sluice_cuda_line* results;
  float* probe_values;
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

#ifdef __cplusplus
}
#endif

#endif
