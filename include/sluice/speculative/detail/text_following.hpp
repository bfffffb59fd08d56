// SPDX-License-Identifier: Apache-2.0
/// \file
/// A wrapper of a model that knows each slot's text: the source, if it is a list of tokens, and what the slot holds.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// What a model has encoded, and its sources.
template <class M>
struct EncodedWithSources {
  using Encoded = void;
};
template <EncodingModel M>
struct EncodedWithSources<M> {
  struct Encoded {
    typename M::Encoded encoded;
    std::vector<std::vector<Token>> sources;
  };
};

/// Refers to the model, which must outlive it. Allocates nothing once every slot has had its longest source and sequence.
template <Model M>
class TextFollowing : public Forwarding<M> {
  using Base = Forwarding<M>;

 public:
  using Source = typename M::Source;
  using Encoded = typename EncodedWithSources<M>::Encoded;  ///< void unless the model encodes

  explicit TextFollowing(M& model) : Base(model) {}

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    for (std::size_t i = 0; i < slot_numbers.size(); ++i) {
      held_.clear(slot_numbers[i]);
      read(*sources[i], source_of(slot_numbers[i]));
    }
    this->model_.start(sources, slot_numbers);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> {
    Encoded result{Base::encode(sources), std::vector<std::vector<Token>>(sources.size())};
    for (std::size_t i = 0; i < sources.size(); ++i) read(*sources[i], result.sources[i]);
    return result;
  }
  template <class Batch>
    requires EncodingModel<M>
  void start(Batch& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    for (std::size_t i = 0; i < slot_numbers.size(); ++i) {
      held_.clear(slot_numbers[i]);
      source_of(slot_numbers[i]) = encoded.sources[static_cast<std::size_t>(items[i])];
    }
    this->model_.start(encoded.encoded, items, slot_numbers);
  }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) held_.clear(slot);
    detail::release(this->model_, slot_numbers);
  }
  decltype(auto) step(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        source_of((std::max)(row.from, row.to));  // grow first, so that references stay valid
        auto const& from = source_of(row.from);
        source_of(row.to).assign(from.begin(), from.end());
      }
    held_.apply(rows);
    return this->model_.step(rows);
  }

 protected:
  /// The tokens of the slot's source; none if sources are not lists of tokens.
  std::vector<Token>& source_of(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1);
    return sources_[i];
  }
  /// The first `length` tokens that the slot holds.
  std::span<Token const> held(Slot slot, std::int32_t length) const {
    return held_[slot].first(static_cast<std::size_t>(length));
  }

 private:
  static void read(Source const& source, std::vector<Token>& tokens) {
    tokens.clear();
    if constexpr (std::convertible_to<Source const&, std::span<Token const>>) {
      std::span<Token const> const all = source;
      tokens.assign(all.begin(), all.end());
    }
  }

  SlotTokens held_;
  std::vector<std::vector<Token>> sources_;  // [slot]
};

}  // namespace sluice::inline v0::detail
