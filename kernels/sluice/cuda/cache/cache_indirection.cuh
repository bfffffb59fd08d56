// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cache indirection: reorders beams without copying their keys and values, by a table of which slot's memory holds
/// each position.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/indirection_books.cuh>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/cache/indirection_view.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/detail/upload.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::cuda {

inline constexpr int indirection_threads = 256;  ///< per block

namespace detail {

/// One launch. Defined in indirection_kernel.cuh, which needs nvcc (see instances.cuh).
/// \throws Error  of CUDA
template <int threads>
void launch_indirection(IndirectionLaunch const& launch, cudaStream_t stream);

}  // namespace detail

/// For a model whose KV cache has one piece of memory per slot, [slots, positions, ...]. Data there never moves: a fork
/// copies 4 bytes per position of a table, and attention looks up which slot's memory to read (IndirectionView). After
/// step(), new keys and values go where the table says: to the slot's own memory, except at positions that a roll-back
/// has cut off but a fork still refers to.
///
/// A step is one copy to the device and one launch over the positions in use. The table changes in place, at a fixed
/// address: a graph that holds the model's step with its view stays valid.
///
/// An object belongs to the device that was current when it was constructed, and to one stream at a time.
class CacheIndirection {
 public:
  /// \throws std::invalid_argument  if an option is out of range
  /// \throws Error                  of CUDA
  explicit CacheIndirection(CacheIndirectionOptions const& options) : options_(options), books_(options) {
    auto const slot_count = static_cast<std::size_t>(options.slot_count);
    auto const bytes = slot_count * static_cast<std::size_t>(options.positions) * sizeof(Slot);
    table_ = static_cast<Slot*>(table_memory_.get(bytes));
    detail::fill_now(table_, 0xff, bytes);  // IndirectionView::none
    steps_ = static_cast<SlotStep*>(steps_memory_.get(slot_count * sizeof(SlotStep)));
  }

  std::int32_t length(Slot slot) const { return books_.length(slot); }
  IndirectionView view() const { return {table_, options_.positions}; }

  /// Applies the rows: afterwards view() knows all positions of their slots, including the new ones. Enqueues work and
  /// does not wait, unless the device is four steps behind. Call it before a graph, not within its capture.
  /// \throws std::invalid_argument  for rows that break the rules of Row, need more positions than there are, or fork
  ///                                across groups; then nothing has changed
  /// \throws Error                  of CUDA
  void step(std::span<Row const> rows, cudaStream_t stream) {
    detail::Upload::refuse_capture(stream);
    books_.step(rows);
    auto const active = books_.active();
    if (active == 0) return books_.done();
    auto const steps = books_.steps();
    auto* const from = static_cast<SlotStep*>(upload_.begin(steps.size_bytes(), stream));
    std::ranges::copy(steps, from);
    check(cudaMemcpyAsync(steps_, from, steps.size_bytes(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    upload_.sent(stream);
    enqueue(steps_, active, stream);
    books_.done();
  }

  /// Empties the slots; their memory may be reused from the next step on.
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) books_.release(slot);
  }

  /// For callers that decide on the device and keep track of lengths: does what step() does, for [slots] steps in
  /// device memory. No named slot may have more than `active` positions, before or after. The steps must obey the rules
  /// for rows (see Row) and stay within their groups; this is not checked. One launch and nothing else, so it may be
  /// captured in a graph. Do not mix with step() and release().
  /// \throws std::invalid_argument  if `active` is not in [0, positions]
  /// \throws Error                  of CUDA
  void enqueue(SlotStep const* steps, std::int32_t active, cudaStream_t stream) {
    require(active >= 0 && active <= options_.positions, "CacheIndirection: active", active,
            "must be in [0, positions]");
    if (active == 0) return;
    detail::IndirectionLaunch launch;
    launch.table = table_, launch.steps = steps;
    launch.slot_count = options_.slot_count, launch.positions = options_.positions;
    launch.width = options_.width, launch.active = active;
    detail::launch_indirection<indirection_threads>(launch, stream);
  }

 private:
  CacheIndirectionOptions options_;
  detail::IndirectionBooks books_;
  detail::Buffer<detail::Where::device> table_memory_, steps_memory_;
  detail::Upload upload_;
  Slot* table_ = nullptr;
  SlotStep* steps_ = nullptr;
};

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/cache/detail/indirection_kernel.cuh>
#endif
