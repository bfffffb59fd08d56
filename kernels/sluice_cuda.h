/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice's work on a device for engines in C99, C++17 or whatever calls C: lines of scores and what is asked of them in, the best
 * tokens of each out; the merge of beams; beams that stay on the device; the verification of guessed blocks. docs/cuda.md, "From C",
 * shows how to use it.
 *
 * Each call adds to a stream of yours, and does not wait for the device or copy to the host, but for those that say so. Arrays are the
 * device's, but for what says otherwise; structs that are not in such arrays lie in the host's memory. Functions return a
 * sluice_cuda_status; what failed is in sluice_cuda_last_error(), by thread. No exception leaves the library. Needs no header of CUDA: a
 * stream is a cudaStream_t.
 */
#ifndef SLUICE_CUDA_H
#define SLUICE_CUDA_H

#include "sluice_cuda/beam.h"   /* a beam search that stays on the device */
#include "sluice_cuda/lines.h"  /* scores, queries, candidates; truncation and draws */
#include "sluice_cuda/merge.h"  /* the candidates of a sentence, for a beam search of your own */
#include "sluice_cuda/status.h" /* errors, streams, memory */
#include "sluice_cuda/verify.h" /* blocks of guesses */

#endif
