// SPDX-License-Identifier: Apache-2.0
/// \file
/// One way of answering a Shape.
#pragma once

#include <sluice/core/query.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <record.hpp>
#include <string>

namespace sluice::bench {

struct Peer {
  std::string name;
  int launches = 1;
  std::size_t workspace = 0;  ///< bytes
  bool graph = true;          ///< can be captured
  bool exact = false;         ///< of equal scores it lists the lower token first
  std::function<void(void const* scores, cudaStream_t stream)> work{};
};

/// Where a peer reads and writes, in device memory.
struct Place {
  float const* bias = nullptr;  ///< [V] or none
  Candidate* best = nullptr;    ///< [rows, k]
  int processors = 1;
};

/// A sorted list of k in every thread, one block per line. Empty if it is not instantiated for the shape; also below.
std::optional<Peer> online_softmax(Shape const& shape, Place place);
/// Lines in parts.
/// \param twice  lists of 2k, and the beams of a sentence merged by a third launch: the whole scheme
std::optional<Peer> thread_lists(Shape const& shape, Place place, bool twice);

}  // namespace sluice::bench
