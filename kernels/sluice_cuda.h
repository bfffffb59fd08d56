/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice's device functions for engines in C99, C++17 or any language that calls C: log-softmax and top-k over lines of
 * scores; the merge of beams; beam search on the device; the verification of guessed blocks. docs/cuda.md, "From C",
 * shows how to use it.
 *
 * Each call enqueues work in a stream of yours, and neither waits for the device nor copies to the host, unless stated
 * otherwise. Arrays are in device memory, unless stated otherwise; structs outside such arrays are in host memory.
 *
 * Structs that are not in arrays begin with their size: begin with sluice_cuda_task_init() and so on. They may grow at
 * the end in later versions; a program that was compiled with an earlier header keeps working, since members that its
 * struct does not reach have their defaults, and are not written. Structs in arrays, and sluice_cuda_query and
 * sluice_cuda_selection in a task, never change.
 *
 * Functions return a sluice_cuda_status; sluice_cuda_last_error() says what failed, per thread. No exception leaves the
 * library. Needs no CUDA header: a stream is a cudaStream_t.
 */
#ifndef SLUICE_CUDA_H
#define SLUICE_CUDA_H

#include "sluice_cuda/beam.h"   /* a beam search that stays on the device */
#include "sluice_cuda/lines.h"  /* scores, queries, candidates; truncation and draws */
#include "sluice_cuda/merge.h"  /* the candidates of a sentence, for a beam search of your own */
#include "sluice_cuda/status.h" /* errors, streams, memory */
#include "sluice_cuda/verify.h" /* blocks of guesses */

#endif
