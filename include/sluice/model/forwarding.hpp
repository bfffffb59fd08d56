// SPDX-License-Identifier: Apache-2.0
/// \file
/// What wrappers of a model pass on as it is.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace sluice::inline v0::detail {

/// A model that is another model. Refers to it; it must outlive this.
template <Model M>
class Forwarding {
 public:
  using Source = typename M::Source;
  static constexpr Abilities abilities = sluice::abilities<M>();

  explicit Forwarding(M& model) : model_(model) {}

  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return sluice::limits(std::as_const(model_)); }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }

 protected:
  M& model_;
};

}  // namespace sluice::inline v0::detail
