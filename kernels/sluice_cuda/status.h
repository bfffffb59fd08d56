/* SPDX-License-Identifier: Apache-2.0 */
/* Part of sluice_cuda.h: what all calls have in common. */
#ifndef SLUICE_CUDA_STATUS_H
#define SLUICE_CUDA_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define SLUICE_CUDA_API
#else
#define SLUICE_CUDA_API __attribute__((visibility("default")))
#endif

/* sluice_cuda_merge_init() and so on: a struct that says its size, every other member zero. */
#define SLUICE_CUDA_INITIALISER(type)                                                                                  \
  static inline type type##_init(void) {                                                                               \
    type made;                                                                                                         \
    memset(&made, 0, sizeof(type));                                                                                    \
    made.size = sizeof(type);                                                                                          \
    return made;                                                                                                       \
  }

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t sluice_cuda_status;
enum {
  SLUICE_CUDA_OK = 0,
  SLUICE_CUDA_BAD_ARGUMENT = 1, /* the message names it */
  SLUICE_CUDA_FAILED = 3,       /* anything else: no memory of the host */
  SLUICE_CUDA_DEVICE = 4        /* the CUDA runtime refused: sluice_cuda_last_code() */
};

/* The message of the last function that failed in this thread; "" if none did. Valid until the next failure. */
SLUICE_CUDA_API char const* sluice_cuda_last_error(void);
/* The cudaError_t of the last function that failed in this thread; 0 if the error was not CUDA's, or none failed. */
SLUICE_CUDA_API int32_t sluice_cuda_last_code(void);
/* The version that the library was built from, for example 0.1.0. */
SLUICE_CUDA_API char const* sluice_cuda_version(void);

typedef struct CUstream_st* sluice_cuda_stream; /* cudaStream_t, CUstream */

/* Allocates and frees an object's device memory. No queued work may use allocated memory except in the object's stream;
 * for memory allocated by a function that creates an object, no work at all. */
typedef struct sluice_cuda_allocator {
  size_t size;                                                /* sizeof(sluice_cuda_allocator) */
  void* (*allocate)(void* context, size_t bytes);             /* at a multiple of 256; null: there is none */
  void (*release)(void* context, void* memory, size_t bytes); /* work that uses it may still be in a stream */
  void* context;                                              /* given to both */
} sluice_cuda_allocator;
SLUICE_CUDA_INITIALISER(sluice_cuda_allocator)

#ifdef __cplusplus
}
#endif

#endif
