// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Model concept: what a user brings.
#pragma once

#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// A sequence model as the decoder sees it: numbered slots, each holding the state of one hypothesis.
///
///  - `Source`: what one sentence is decoded from (a token list, an image, nothing);
///  - `vocabulary()`: constant over the life of the model;
///  - `start(sources, slots)`: slot `slots[i]` now holds the start of `*sources[i]`, without any token. The sources live
///    until their sentence ends. If it throws, all these slots are free again;
///  - `step(rows)`: does what the rows say (see Row) and returns one line per line asked, in row order, valid until the
///    next step: `Scores<T>`, `Hidden<T>`, or a type for which the user has an Expander.
///
/// A slot that no row names stays as it is until it is named, overwritten as a `to`, or released; start only gets free
/// slots. If step throws, its rows' slots hold anything or nothing, and release must bear it. release must not throw.
/// Found, never demanded: `abilities`, `limits()`, `release(slots)`, `encode`, `source_length(source)`, `propose`.
///
/// Semantic requirements: a line depends on its slot's source and tokens only, so that a batch never changes a result.
/// (A model whose numerics depend on the batch works; then only the search, not the numbers, is batch-independent.)
template <class M>
concept Model = requires(M& model, std::span<typename M::Source const* const> sources,
                         std::span<Slot const> slots, std::span<Row const> rows) {
  { model.vocabulary() } -> std::convertible_to<Vocabulary>;
  model.start(sources, slots);
  model.step(rows);
} && !std::is_void_v<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// What a model's step returns.
template <Model M>
using Answer = std::remove_cvref_t<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// A model that wants to know which slots are no longer needed (to free memory).
template <class M>
concept ReleasingModel = Model<M> && requires(M& model, std::span<Slot const> slots) { model.release(slots); };

/// A model whose encoder can run apart from the decoder, in another thread: `encode` is const and touches no slot;
/// `start(encoded, items, slots)` puts sentence `items[i]` of one encoded batch into `slots[i]`, again if that, or
/// the start of another model beside this one, throws: leave what is encoded as it is.
/// `encode` may run in one thread beside all other members in another. The sources live as long as its call: what is
/// encoded must not refer to them.
template <class M>
concept EncodingModel = Model<M> &&
  requires(M& model, M const& same, std::span<typename M::Source const* const> sources, typename M::Encoded& encoded,
           std::span<std::int32_t const> items, std::span<Slot const> slots) {
    { same.encode(sources) } -> std::same_as<typename M::Encoded>;
    model.start(encoded, items, slots);
  };

/// A sentence that would like its next tokens guessed (blockwise decoding).
struct Draft {
  Slot slot = 0;
  std::int32_t length = 0;           ///< tokens of the slot that stay
  std::span<Token const> pending{};  ///< chosen since, not yet in the slot
  std::int32_t count = 0;            ///< guesses wanted, at most
  std::vector<Token>* tokens = nullptr;  ///< where they are appended
  std::uint64_t seed = 0;                ///< of the sentence: who draws with it draws what Sample does
  std::int32_t position = 0;             ///< of the first token to be guessed, in the output
  double added = -1;     ///< what a guess adds to a step, as a part of it, for each sentence; < 0: not known
  bool explore = false;  ///< now and then a guess is wanted to learn that
};

/// A model that guesses tokens ahead: `propose` is asked once a step, for all sentences that take part.
template <class M>
concept ProposingModel = Model<M> && requires(M& model, std::span<Draft const> drafts) { model.propose(drafts); };
// clang-format on

/// The abilities that M claims; none where it says nothing.
template <class M>
consteval Abilities abilities() {
  if constexpr (requires { M::abilities; }) return M::abilities;
  else return {};
}

/// The model's limits; none where it says nothing.
template <class M>
Limits limits(M const& model) {
  static_assert(
      requires { model.limits(); } || !requires(M & m) { m.limits(); }, "sluice: limits() of a model must be const");
  if constexpr (requires { model.limits(); }) return model.limits();
  else return {};
}

/// How long a source is, for limits that are a factor of it: `model.source_length(source)`, else `source.size()`, else
/// -1 (unknown).
template <Model M>
std::int32_t source_length(M const& model, typename M::Source const& source) {
  static_assert(
      requires { model.source_length(source); } || !requires(M & m) { m.source_length(source); },
      "sluice: source_length(source) of a model must be const");
  if constexpr (requires { model.source_length(source); }) return model.source_length(source);
  else if constexpr (requires { source.size(); }) return static_cast<std::int32_t>(source.size());
  else return -1;
}

}  // namespace sluice::inline v0
