// SPDX-License-Identifier: Apache-2.0
/// \file
/// What wrappers of a model pass on unchanged.
#pragma once

#include <sluice/language.hpp>

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

/// Forwards everything to another model, including encoding ahead. Refers to that model, which must outlive it.
///
/// \tparam A  the abilities that it claims at compile time, if those of M are known then
template <Model M, Abilities A = known_abilities<M>()>
class Forwarding : public EncodedOf<M>, public Claim<detail::KnownAbilities<M>, A> {
  using Claimed = Claim<detail::KnownAbilities<M>, A>;

 public:
  using Source = typename M::Source;
  using Wrapped = M;  ///< see core/named.hpp

  explicit Forwarding(M& model) : Forwarding(model, sluice::abilities(std::as_const(model))) {}
  Forwarding(M& model, Abilities claimed) : Claimed(claimed), model_(model) {}

  bool encodes() const { return sluice::encodes(std::as_const(model_)); }
  bool proposes() const { return sluice::proposes(std::as_const(model_)); }

  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  /// Of a transducer: what its tokens mean.
  decltype(auto) tokens() const requires requires(M const& model) { model.tokens(); }
  { return std::as_const(model_).tokens(); }
  Limits limits() const { return sluice::limits(std::as_const(model_)); }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> {
    return std::as_const(model_).encode(sources);
  }
  SourceGrowth growth(Source const& source) const requires GrowingModel<M> {
    return std::as_const(model_).growth(source);
  }
  template <class... More>
    requires requires(M& model, Source& source, More const&... more) { model.append(source, more...); }
  void append(Source& source, More const&... more) { model_.append(source, more...); }
  void remember(Decoded const& decoded) requires RememberingModel<M> { model_.remember(decoded); }
  Attachments attachments() requires AttachingModel<M> { return model_.attachments(); }

 protected:
  M& model_;
};

}  // namespace sluice::inline v0::detail
