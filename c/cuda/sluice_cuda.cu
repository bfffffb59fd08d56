// SPDX-License-Identifier: Apache-2.0
// The C interface to device code: kernels/sluice_cuda.h over the headers of sluice::cuda. The one file that has to be compiled, by
// nvcc; tests have the host's compiler read it, with a device that is emulated.

#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/verify/verify.cuh>
#include <sluice/version.hpp>

#include <sluice_cuda.h>
#if defined(__CUDACC__)
#include <sluice/cuda/line/key_sort.cuh>  // other kernels come with what launches them
#endif

#include "guard.hpp"
#include "layout.hpp"
#include "tasks.hpp"

#include <cstddef>
#include <span>

namespace {

namespace device = sluice::c::device;
using device::guarded, device::not_null, sluice::require;

}  // namespace

struct sluice_cuda_expander {
  sluice::cuda::LogSoftmaxTopK expander;
};

extern "C" {

char const* sluice_cuda_last_error(void) { return device::last_error().text.c_str(); }
int32_t sluice_cuda_last_code(void) { return device::last_error().code; }

char const* sluice_cuda_version(void) {
#define SLUICE_TEXT_OF(x) #x
#define SLUICE_TEXT(x) SLUICE_TEXT_OF(x)
  return SLUICE_TEXT(SLUICE_VERSION_MAJOR) "." SLUICE_TEXT(SLUICE_VERSION_MINOR) "." SLUICE_TEXT(SLUICE_VERSION_PATCH);
}

void sluice_cuda_query_init(sluice_cuda_query* query) {
  sluice::cuda::LineQuery const best;
  if (query == nullptr) return;
  *query = {};  // what lies between its members, too
  query->best = best.best, query->normalise = best.normalise, query->temperature = best.temperature;
  query->shortlist = best.shortlist, query->only = best.only;
}
void sluice_cuda_task_init(sluice_cuda_task* task) {
  if (task == nullptr) return;
  *task = {};
  task->k = 1;
  sluice_cuda_query_init(&task->query);
}

sluice_cuda_status sluice_cuda_expander_create(float const* bias, size_t count, sluice_cuda_allocator const* allocator,
                                               sluice_cuda_expander** expander) {
  return guarded([&] {
    auto& made = not_null(expander, "expander");
    require(bias != nullptr || count == 0, "bias", "null", "must be `count` numbers");
    sluice::cuda::Allocator from;
    if (allocator != nullptr) {
      not_null(allocator->allocate, "allocate"), not_null(allocator->release, "release");
      from = {allocator->allocate, allocator->release, allocator->context};
    }
    made = new sluice_cuda_expander{sluice::cuda::LogSoftmaxTopK({bias, count}, from)};
  });
}
void sluice_cuda_expander_free(sluice_cuda_expander* expander) { delete expander; }

sluice_cuda_status sluice_cuda_workspace_bytes(sluice_cuda_expander* expander, sluice_cuda_task const* task,
                                               size_t* bytes) {
  return guarded([&] {
    auto& its = not_null(expander, "expander").expander;
    auto& out = not_null(bytes, "bytes");
    out = device::with_task(not_null(task, "task"), [&](auto const& lines) { return its.workspace_bytes(lines); });
  });
}

sluice_cuda_status sluice_cuda_expand(sluice_cuda_expander* expander, sluice_cuda_task const* task, void* workspace,
                                      size_t bytes, sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(expander, "expander").expander;
    require(workspace != nullptr || bytes == 0, "workspace", "null", "must be `bytes` of the device's memory");
    device::check_address(workspace, 256, "workspace");
    device::with_task(not_null(task, "task"), [&](auto const& lines) {
      if (workspace == nullptr) its.enqueue(lines, stream);
      else its.enqueue(lines, std::span(static_cast<std::byte*>(workspace), bytes), stream);
    });
  });
}

sluice_cuda_status sluice_cuda_merge_beams(sluice_cuda_merge const* merge, sluice_cuda_stream stream) {
  return guarded([&] { sluice::cuda::merge_beams(device::merge_launch(not_null(merge, "merge")), stream); });
}

sluice_cuda_status sluice_cuda_verify(sluice_cuda_verification const* verification, sluice_cuda_stream stream) {
  return guarded([&] { sluice::cuda::verify(device::verification(not_null(verification, "verification")), stream); });
}

}  // extern "C"
