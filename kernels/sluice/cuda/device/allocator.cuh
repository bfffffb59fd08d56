// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where device memory comes from.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>

namespace sluice::inline v0::cuda {

/// Allocates and frees device memory. By default cudaMalloc and cudaFree. An allocator must outlive the objects that it
/// is given to. They allocate until they have seen their largest task, keep their memory to the end, and never allocate
/// while their stream is being captured.
struct Allocator {
  /// Returns `bytes` bytes of the current device, aligned to 256; nullptr if there are none. No queued work may use
  /// them except in the stream that the object is called with; for memory that a constructor takes, none at all.
  void* (*allocate)(void* context, std::size_t bytes) = nullptr;
  /// Frees what allocate() returned. Work in a stream may still be using it.
  void (*release)(void* context, void* memory, std::size_t bytes) = nullptr;
  void* context = nullptr;  ///< passed to both
};

}  // namespace sluice::inline v0::cuda
