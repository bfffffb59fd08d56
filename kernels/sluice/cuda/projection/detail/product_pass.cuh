// SPDX-License-Identifier: Apache-2.0
/// \file
/// Answers queries from logits that are computed tile by tile and stay in the L2 cache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/side_stream.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

namespace sluice::inline v0::cuda::detail {

/// The part of an output layer after the product: LogSoftmaxTopK reads a tile of logits (some lines, some thousand
/// columns) while it is in the L2 cache; then the next tile overwrites it.
class ProductPass {
 public:
  /// \param tile_bytes  of a tile; 0: a third of the device's L2 cache (an estimate, not measured)
  /// \param allocator   for device memory
  /// \param step        only its `two_tiles` is used
  explicit ProductPass(std::size_t tile_bytes = 0, Allocator const& allocator = {}, StepOptions const& step = {})
      : tile_bytes_(tile_bytes), tile_(allocator), two_tiles_(step.two_tiles) {}

  /// Enqueues what answers a task. product(line, column, to) enqueues a kernel that writes the logits of lines line ..
  /// line + to.rows - 1 and columns column .. column + to.columns - 1 to `to`, whose rows begin at multiples of 16
  /// bytes, and returns how the next kernel may start. If k is more than 64, or lines need further passes, whole lines
  /// are computed, several at a time.
  /// \param task  its scores have rows and columns, and no memory
  /// \tparam Logit  how logits are stored: float, __half or __nv_bfloat16
  template <class Logit, class Product>
  void enqueue(LogSoftmaxTopK& output, LineTask<Logit> task, cudaStream_t stream, Product&& product) {
    auto const rows = task.scores.rows, columns = task.scores.columns;
    if (rows == 0) return;
    output.check_device();  // before memory is allocated there
    constexpr auto chunk = LogSoftmaxTopK::tile_columns<Logit>();
    auto const chunks = (columns + chunk - 1) / chunk;
    auto const whole = task.k > most_listed || task.selection.queries != nullptr;
    auto const numbers =
        whole ? std::ptrdiff_t{1} << 26 : tile_bytes() / std::ptrdiff_t{sizeof(Logit)} / (two_tiles_ ? 2 : 1);
    auto const most = std::clamp<std::ptrdiff_t>(numbers / (whole ? chunks * chunk : chunk), 1, rows);
    auto const width = (whole ? chunks : std::clamp<std::ptrdiff_t>(numbers / most / chunk, 1, chunks)) * chunk;
    auto const apart = two_tiles_ && width < columns && !whole ? most * width : std::ptrdiff_t{0};
    auto* const memory =
        static_cast<Logit*>(tile_.get(static_cast<std::size_t>(most * width + apart) * sizeof(Logit), stream));
    task.scores = {nullptr, rows, columns, 0};
    for (std::ptrdiff_t line = 0; line < rows; line += most) {
      auto const count = (std::min)(most, rows - line);
      auto some = rows_of(task, line, count);
      some.scores.data = memory, some.scores.stride = width;
      if (whole) {
        auto const start = product(line, std::ptrdiff_t{0}, MatrixView<Logit>{memory, count, columns, width});
        output.enqueue(some, stream, start);
      } else {
        output.enqueue_tiles(some, MatrixView<Logit>{memory, count, width, width}, apart, beside_, stream,
                             [&](std::ptrdiff_t column, std::ptrdiff_t used, Logit* tile) {
                               return product(line, column, MatrixView<Logit>{tile, count, used, width});
                             });
      }
    }
  }

  /// Bytes of device memory in use.
  std::size_t workspace() const { return tile_.size(); }

 private:
  std::ptrdiff_t tile_bytes() {
    if (tile_bytes_ == 0) {
      int device = 0, bytes = 0;
      check(cudaGetDevice(&device), "cudaGetDevice");
      check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
      tile_bytes_ = static_cast<std::size_t>((std::max)(bytes, 1 << 20)) / 3;
    }
    return static_cast<std::ptrdiff_t>(tile_bytes_);
  }

  std::size_t tile_bytes_;
  Buffer<Where::device> tile_;
  bool two_tiles_;
  SideStream beside_;
};

}  // namespace sluice::inline v0::cuda::detail
