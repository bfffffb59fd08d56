// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whose memory on the device is used.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>

namespace sluice::inline v0::cuda {

/// Where memory on the device comes from, and goes back to. Nothing given: cudaMalloc and cudaFree. What is given must
/// outlive the objects that it was given to. They ask while they have not seen their largest task, keep what they have got
/// to their end, and never ask while their stream is captured.
struct Allocator {
  /// So many bytes of the current device, at a multiple of 256; nullptr: there are none. No work that is queued may use them
  /// but in the stream that the object is called with; for what a constructor takes, none at all.
  void* (*allocate)(void* context, std::size_t bytes) = nullptr;
  /// Takes back what allocate() has given. Work that uses it may still be in a stream.
  void (*release)(void* context, void* memory, std::size_t bytes) = nullptr;
  void* context = nullptr;  ///< given to both
};

}  // namespace sluice::inline v0::cuda
