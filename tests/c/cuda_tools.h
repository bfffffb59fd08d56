/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client in C have in common. Before it is included, CLIENT is the name of the part. */
#ifndef TESTS_C_CUDA_TOOLS_H
#define TESTS_C_CUDA_TOOLS_H

#include "cuda_cases.h"

#include <sluice_cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LAST_ERROR sluice_cuda_last_error
#include "check.h"
/* A call that is refused, with a message that holds `text`. */
#define REFUSED(call, text)                                                                                            \
  check((call) == SLUICE_CUDA_BAD_ARGUMENT && sluice_cuda_last_code() == 0 &&                                          \
            strstr(sluice_cuda_last_error(), text) != NULL,                                                            \
        #call, __LINE__)

/* ---- random numbers, memory ---- */

static uint64_t state = 1;
static inline uint32_t drawn(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}
static inline int32_t below(int32_t n) { return (int32_t)(drawn() % (uint32_t)n); }
static inline float uniform(float low, float high) {
  return low + (high - low) * (float)(drawn() >> 7) / (float)(1 << 24);
}

static inline void* taken(size_t bytes) {
  void* const memory = calloc(bytes == 0 ? 1 : bytes, 1);
  if (memory == NULL) exit(2);
  return memory;
}
/* [count] of a type, in the host's memory. */
#define NEW(type, count) ((type*)taken(sizeof(type) * (size_t)(count)))
/* The same on the device. */
#define THERE(from, count) device_new(from, sizeof *(from) * (size_t)(count))

#endif
