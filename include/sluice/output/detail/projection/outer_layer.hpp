// SPDX-License-Identifier: Apache-2.0
/// \file
/// What output layers share that are built around another one.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice::inline v0::detail {

/// An output layer around another one, whose sizes are its own.
template <class Projection>
class OuterLayer {
 public:
  std::int32_t vocabulary_size() const { return projection_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_.hidden_size(); }
  /// Bytes held besides the given weights; shared by copies.
  std::size_t bytes() const { return projection_.bytes(); }

 protected:
  explicit OuterLayer(Projection projection) : projection_(std::move(projection)) {}

  Projection projection_;
};

}  // namespace sluice::inline v0::detail
