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

template <class M>
struct EncodedOf {};
template <EncodingModel M>
struct EncodedOf<M> {
  using Encoded = typename M::Encoded;
};

/// A model that is another model, which also encodes what the other does. Refers to it; it must outlive this.
template <Model M>
class Forwarding : public EncodedOf<M> {
 public:
  using Source = typename M::Source;
  static constexpr Abilities abilities = sluice::abilities<M>();

  explicit Forwarding(M& model) : model_(model) {}

  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return sluice::limits(std::as_const(model_)); }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> {
    return std::as_const(model_).encode(sources);
  }

 protected:
  M& model_;
};

}  // namespace sluice::inline v0::detail
