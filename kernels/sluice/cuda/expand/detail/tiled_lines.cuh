// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines that are computed and read tile by tile.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/cuda/device/detail/side_stream.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_task.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// \param chunk  a tile's width is a multiple of it
/// \throws std::invalid_argument  unless these are valid arguments of LogSoftmaxTopK::enqueue_tiles()
template <class T>
void check_tile(LineTask<T> const& task, MatrixView<T> tile, std::ptrdiff_t apart, std::ptrdiff_t chunk) {
  require(tile.columns >= chunk && tile.columns % chunk == 0 && tile.rows == task.scores.rows,
          "LogSoftmaxTopK: tile.columns", tile.columns, "must be a multiple of tile_columns(), with all rows");
  require(reinterpret_cast<std::uintptr_t>(tile.data) % 16 == 0 &&
              static_cast<std::size_t>(tile.stride) * sizeof(T) % 16 == 0,
          "LogSoftmaxTopK: tile.stride", tile.stride, "must be a multiple of 16 bytes, as the address");
  require(apart >= 0 && static_cast<std::size_t>(apart) * sizeof(T) % 16 == 0, "LogSoftmaxTopK: apart", apart,
          "must be a multiple of 16 bytes");
  require(task.k <= most_listed, "LogSoftmaxTopK: k", task.k, "must be at most 64 where lines are made in tiles");
}

/// Alternately enqueues products and the kernels that read them; see LogSoftmaxTopK::enqueue_tiles().
/// \param lines  of whole lines in the tile
template <class Format, class T, class Product>
void tiled_lines(LineLaunch<Format> lines, MatrixView<T> tile, std::ptrdiff_t apart, std::ptrdiff_t chunk,
                 SideStream& beside, cudaStream_t stream, Product&& product) {
  auto const make = [&](std::ptrdiff_t first, std::ptrdiff_t count, T* to) {  // also says how the next kernel may start
    if constexpr (std::is_same_v<decltype(product(first, count, to)), Start>) return product(first, count, to);
    else return product(first, count, to), Start::after;
  };
  std::ptrdiff_t const size = lines.size;
  if (size <= tile.columns) {
    auto const start = make(0, size, tile.data);
    return launch_lines(lines, stream, start);
  }
  auto const of_block = lines.chunks * chunk, width = tile.columns / of_block * of_block;
  auto const* const scores = lines.scores;
  try {
    std::size_t number = 0;
    for (std::ptrdiff_t first = 0; first < size; first += width, ++number) {
      auto const count = (std::min)(width, size - first);
      auto const turn = number % 2;
      auto const from = turn == 0 ? 0 : apart;
      if (apart > 0 && number >= 2) beside.join(stream, turn);  // its lines have been read
      auto const start = make(first, count, tile.data + from);
      lines.scores = scores + from - first;
      lines.first_split = static_cast<std::int32_t>(first / of_block);
      lines.tile_splits = static_cast<std::int32_t>((count + of_block - 1) / of_block);
      launch_lines(lines, apart > 0 ? beside.fork(stream) : stream, apart > 0 ? Start::after : start);
      if (apart > 0) beside.mark(turn);
    }
    if (apart > 0) beside.join(stream, (number - 1) % 2);
  } catch (...) {  // missing blocks would stall the next lines
    if (apart > 0) beside.abandon(stream);
    auto const bytes = static_cast<std::size_t>(lines.rows) * sizeof(unsigned);
    static_cast<void>(cudaMemsetAsync(lines.tickets, 0, bytes, stream));
    throw;
  }
}

}  // namespace sluice::inline v0::cuda::detail
