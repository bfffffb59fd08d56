// SPDX-License-Identifier: Apache-2.0
/// \file
/// A paged KV cache on a device: keys and values of many hypotheses, in pages that forks share.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/page_books.cuh>
#include <sluice/cuda/cache/detail/page_copies.cuh>
#include <sluice/cuda/cache/page_view.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/upload.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/model/paged_cache.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace sluice::inline v0::cuda {

inline constexpr int page_threads = 256;  ///< per block

namespace detail {

/// One launch. Defined in page_kernel.cuh, which needs nvcc (see instances.cuh).
/// \throws Error  of CUDA
template <int threads>
void launch_page_copies(PageCopies const& task, cudaStream_t stream);

}  // namespace detail

/// The CUDA counterpart of sluice::PagedCache: the host keeps the same page table (PageTable), the pages are in device
/// memory. A step sends the pages of the rows' slots to the device and makes the necessary copies: the filled part of a
/// last page that two slots append to, all in one launch. Attention reads and writes through a PageView.
///
/// All memory is allocated at once at fixed addresses: a graph that holds the model's step with view() stays valid. An
/// object belongs to the device that was current when it was constructed, and to one stream at a time.
/// \tparam T  type of the elements, which the cache only moves
template <class T>
class PagedCache {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  /// \throws std::invalid_argument  if an option is out of range
  /// \throws Error                  of CUDA, including out of memory
  explicit PagedCache(PagedCacheOptions const& options) : options_(options), books_(options, sizeof(T)) {
    auto const rows = static_cast<std::size_t>(options.max_rows);
    lengths_at_ = parts_.add<std::int32_t>(rows), copies_at_ = parts_.add<detail::PageCopy>(rows);
    told_ = told_memory_.get(parts_.size());

    auto const stride = books_.table().pages_of(options.max_length);
    auto const entries = rows * static_cast<std::size_t>(stride);
    view_.table = table_ = static_cast<std::int32_t*>(table_memory_.get(entries * sizeof(std::int32_t)));
    auto const bytes = static_cast<std::size_t>(options.max_pages) * options.page_size() * sizeof(T);
    view_.pool = static_cast<T*>(pool_.get(bytes, true));  // so that unwritten memory holds no NaN
    view_.lengths = detail::part<std::int32_t>(told_, lengths_at_);
    view_.stride = stride;
    view_.positions = options.positions_per_page, view_.planes = options.planes;
    view_.size = static_cast<std::int64_t>(options.elements_per_position) / options.planes;
  }

  std::int32_t length(Slot slot) const { return books_.table().length(slot); }
  PagedCacheUse const& use() const { return books_.table().use(); }

  /// Applies the rows, and makes view() describe them: row i of it is rows[i], including its new positions. Enqueues
  /// two or three copies to the device and at most one launch; does not wait, unless the device is four steps behind.
  /// Call it before a graph, not within its capture. O(pages of the rows).
  /// \throws std::invalid_argument  for rows that break the rules of Row, are too many or too long; then nothing has
  ///                                changed
  /// \throws std::length_error      if all pages are in use; then the slots of the rows are undefined and must be
  ///                            released
  /// \throws Error                  of CUDA
  void step(std::span<Row const> rows, cudaStream_t stream) {
    detail::Upload::refuse_capture(stream);
    books_.step(rows);
    view_.rows = static_cast<std::int32_t>(rows.size());
    if (rows.empty()) return;
    tell(stream);
    if (!books_.copies().empty()) detail::launch_page_copies<page_threads>(copies(), stream);
  }

  /// Valid for the rows of the last step, once the stream has reached it.
  PageView<T> view() const { return view_; }

  /// Empties the slots; their pages may be reused from the next step on.
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) books_.release(slot);
  }

 private:
  /// Sends the step's tables to the device.
  void tell(cudaStream_t stream) {
    auto const pages = books_.pages();
    auto const lengths = books_.lengths();
    auto const copies = books_.copies();
    auto const told = copies_at_ + copies.size_bytes();
    auto* const host = upload_.begin(parts_.size() + pages.size_bytes(), stream);
    std::ranges::copy(lengths, detail::part<std::int32_t>(host, lengths_at_));
    std::ranges::copy(copies, detail::part<detail::PageCopy>(host, copies_at_));
    std::ranges::copy(pages, detail::part<std::int32_t>(host, parts_.size()));
    check(cudaMemcpyAsync(told_, host, told, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    auto const width = books_.width() * sizeof(std::int32_t);
    check(cudaMemcpy2DAsync(table_, static_cast<std::size_t>(view_.stride) * sizeof(std::int32_t),
                            detail::part<std::int32_t>(host, parts_.size()), width, width, lengths.size(),
                            cudaMemcpyHostToDevice, stream),
          "cudaMemcpy2DAsync");
    upload_.sent(stream);
  }

  detail::PageCopies copies() const {
    detail::PageCopies task;
    task.pool = reinterpret_cast<unsigned char*>(view_.pool);
    task.copies = detail::part<detail::PageCopy>(told_, copies_at_);
    task.count = static_cast<std::int32_t>(books_.copies().size());
    task.planes = options_.planes;
    task.position_bytes = view_.size * static_cast<std::int64_t>(sizeof(T));
    task.plane_bytes = task.position_bytes * options_.positions_per_page;
    auto const loads = std::int64_t{4} * 16 * page_threads;  // four per thread
    auto const parts = (task.planes * task.plane_bytes + loads - 1) / loads;
    task.parts = static_cast<std::int32_t>(std::min<std::int64_t>(parts, 256));
    return task;
  }

  PagedCacheOptions options_;
  detail::PageBooks books_;
  detail::Parts parts_;  // of what is sent: lengths, copies
  std::size_t lengths_at_ = 0, copies_at_ = 0;
  detail::Buffer<detail::Where::device> pool_, table_memory_, told_memory_;
  detail::Upload upload_;
  PageView<T> view_;
  void* told_ = nullptr;
  std::int32_t* table_ = nullptr;
};

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/cache/detail/page_kernel.cuh>
#endif
