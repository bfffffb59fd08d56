// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of the filled parts of pages: the arguments and the program of their kernel.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Copies the data of the first `filled` positions of page `from` to page `to`.
struct PageCopy {
  std::int32_t from = 0, to = 0;
  std::int32_t filled = 0;
};

/// Independent copies: none reads what another writes. The pool and the copies are in device memory.
struct PageCopies {
  unsigned char* pool = nullptr;  ///< aligned to 16 bytes
  PageCopy const* copies = nullptr;
  std::int32_t count = 0;
  std::int32_t parts = 1;           ///< blocks for each copy
  std::int32_t planes = 1;          ///< of a page
  std::int64_t plane_bytes = 0;     ///< a multiple of 16
  std::int64_t position_bytes = 0;  ///< in a plane
};

/// Part `number % parts` of copy `number / parts`, 16 bytes at a time; in every plane, the words that the filled part
/// covers.
template <class Block>
SLUICE_DEVICE void copy_pages(Block& block, PageCopies const& task, std::int32_t number) {
  auto const copy = task.copies[number / task.parts];
  auto const words = static_cast<std::uint32_t>((copy.filled * task.position_bytes + 15) / 16);  // per plane
  auto const count = static_cast<std::uint32_t>(task.planes) * words;
  auto const page_bytes = task.planes * task.plane_bytes;
  auto const* const from = task.pool + copy.from * page_bytes;
  auto* const to = task.pool + copy.to * page_bytes;
  auto const first = static_cast<std::uint32_t>(number % task.parts * Block::threads + block.thread());
  auto const step = static_cast<std::uint32_t>(task.parts * Block::threads);
  SLUICE_UNROLL_4
  for (auto i = first; i < count; i += step) {
    auto const at = i / words * task.plane_bytes + std::int64_t{i % words} * 16;
    block.write16(to + at, block.read16(from + at));
  }
}

}  // namespace sluice::inline v0::cuda::detail
