// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Model concept: what a user brings.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

SLUICE_NAMES(abilities)
SLUICE_NAMES(limits)
SLUICE_NAMES(release)
SLUICE_NAMES(encode)
SLUICE_NAMES(source_length)
SLUICE_NAMES(propose)
SLUICE_NAMES(attachments)

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
/// slots. If step throws, its rows' slots hold anything or nothing, and release must bear it. release must not throw; what
/// it throws all the same is dropped.
/// Found, never demanded: `abilities`, `limits()`, `release(slots)`, `encode`, `source_length(source)`, `propose`,
/// `attachments()`; the compiler refuses what has one of these names and another signature.
///
/// Semantic requirements: a line depends on its slot's source and tokens only, so that a batch never changes a result.
/// (A model whose numerics depend on the batch works; then only the search, not the numbers, is batch-independent.)
template <class M>
concept Model = requires(M& model, std::span<typename M::Source const* const> sources,
                         std::span<Slot const> slot_numbers, std::span<Row const> rows) {
  { model.vocabulary() } -> std::convertible_to<Vocabulary>;
  model.start(sources, slot_numbers);
  model.step(rows);
} && !std::is_void_v<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// What a model's step returns.
template <Model M>
using Answer = std::remove_cvref_t<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// A model that wants to know which slots are no longer needed (to free memory).
template <class M>
concept ReleasingModel = Model<M> && requires(M& model, std::span<Slot const> slot_numbers) { model.release(slot_numbers); };

/// A model whose encoder can run apart from the decoder, in another thread: `encode` is const and touches no slot;
/// `start(encoded, items, slots)` puts sentence `items[i]` of one encoded batch into `slots[i]`, again if that, or
/// the start of another model beside this one, throws: leave what is encoded as it is.
/// `encode` may run in one thread beside all other members in another. The sources live as long as its call: what is
/// encoded must not refer to them.
template <class M>
concept EncodingModel = Model<M> &&
  requires(M& model, M const& same, std::span<typename M::Source const* const> sources, typename M::Encoded& encoded,
           std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    { same.encode(sources) } -> std::same_as<typename M::Encoded>;
    model.start(encoded, items, slot_numbers);
  };

/// Guesses that branch: what a search that takes a tree of them asks for, and who guesses fills in beside Draft::tokens.
/// Of siblings the more probable ones come first; a guess comes behind the one that it follows.
struct DraftTree {
  std::int32_t nodes = 0;   ///< guesses in all, at most; Draft::count bounds those of a path
  std::int32_t leaves = 1;  ///< paths, at most. The sentence has as many slots, from Draft::slot on
  double cost = 0;          ///< of a guess, as a part of a step: > 0: those that are not worth it need not be made
  bool draws = false;       ///< siblings are to be drawn independently of one distribution, which `drawn` tells
  /// [guess]: which guess it follows; -1: Draft::pending. Where it ends too early: the one before.
  std::vector<std::int32_t> parents{};
  struct Range {
    std::int32_t first = 0, count = 0;
  };
  std::vector<Range> drawn{};            ///< [guess], draws: the part of `candidates` that it was drawn from
  std::vector<Candidate> candidates{};  ///< in proportion to their probabilities in each part; others have none

  void clear() { parents.clear(), drawn.clear(), candidates.clear(); }
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
  DraftTree* tree = nullptr;  ///< not null: guesses may branch
  /// Where the model answered what pending's last token was chosen from: line `seen_line` of the last row that went to slot
  /// `seen`. -1: behind the first `length` tokens of `slot`.
  Slot seen = -1;
  std::int32_t seen_line = 0;
};

/// A model that guesses tokens ahead: `propose` is asked once a step, for all sentences that take part.
template <class M>
concept ProposingModel = Model<M> && requires(M& model, std::span<Draft const> drafts) { model.propose(drafts); };

/// Small things that a model attaches to the lines of a step: attention over the source, the number of a frame.
struct Attachments {
  MatrixView<float const> values{};         ///< [lines of the step, the widest]; no rows: nothing is attached
  std::span<std::int32_t const> widths{};  ///< [lines]: how many numbers each has; empty: all columns
};

/// A model that attaches things to lines. Asked after every step; valid until the next. They come back in
/// Hypothesis::attached, whatever the search: a decoder keeps those of all lines of a sentence until it ends.
template <class M>
concept AttachingModel = Model<M> && requires(M& model) {
  { model.attachments() } -> std::convertible_to<Attachments>;
};
// clang-format on

/// Whether the compiler knows what M can do: `static constexpr Abilities abilities`, or none of that name.
template <class M>
concept KnownAbilities = !detail::names_abilities<M>() || requires {
  typename std::bool_constant<M::abilities.ragged>;
};

/// The abilities that M claims; none where it says nothing. Only where the compiler knows.
template <KnownAbilities M>
consteval Abilities abilities() {
  if constexpr (requires { M::abilities; }) return M::abilities;
  else return {};
}

/// The abilities that a model claims, be it when it is compiled (`static constexpr Abilities abilities`) or when it is
/// loaded (`Abilities abilities() const`; the same over the life of the model).
template <class M>
constexpr Abilities abilities(M const& model) {
  if constexpr (requires {
                  { model.abilities() } -> std::convertible_to<Abilities>;
                })
    return model.abilities();
  else {
    static_assert(KnownAbilities<M>, "sluice: `abilities` of a model must be a static constexpr Abilities, or a const "
                                     "function that returns them");
    return sluice::abilities<M>();
  }
}

/// The model's limits; none where it says nothing.
template <class M>
Limits limits(M const& model) {
  if constexpr (requires {
                  { model.limits() } -> std::convertible_to<Limits>;
                })
    return model.limits();
  else {
    static_assert(!detail::stray_limits<M>(), "sluice: limits() of a model must be const, and return Limits");
    return {};
  }
}

/// How long a source is, for limits that are a factor of it: `model.source_length(source)`, else `source.size()`, else
/// -1 (unknown).
template <Model M>
std::int32_t source_length(M const& model, typename M::Source const& source) {
  if constexpr (requires {
                  { model.source_length(source) } -> std::convertible_to<std::int32_t>;
                })
    return model.source_length(source);
  else {
    static_assert(!detail::stray_source_length<M>(),
                  "sluice: source_length(source) of a model must be const, take a Source and return an int32_t");
    if constexpr (requires { source.size(); }) return static_cast<std::int32_t>(source.size());
    else return -1;
  }
}

/// Whether sentences can be encoded ahead. A model that learns it when it is loaded has `bool encodes() const`.
template <Model M>
bool encodes(M const& model) {
  if constexpr (requires {
                  { model.encodes() } -> std::convertible_to<bool>;
                })
    return EncodingModel<M> && model.encodes();
  else return EncodingModel<M>;
}

/// Whether the model guesses. A model that learns it when it is loaded has `bool proposes() const`.
template <Model M>
bool proposes(M const& model) {
  if constexpr (requires {
                  { model.proposes() } -> std::convertible_to<bool>;
                })
    return ProposingModel<M> && model.proposes();
  else return ProposingModel<M>;
}

namespace detail {

/// Refuses members that have a name the library looks for, and another signature: they would never be called.
template <Model M>
consteval bool model_names() {
  static_assert(ReleasingModel<M> || !stray_release<M>(),
                "sluice: a model's `release` must take a std::span<Slot const>");
  static_assert(ProposingModel<M> || !stray_propose<M>(),
                "sluice: a model's `propose` must take a std::span<Draft const>");
  static_assert(AttachingModel<M> || !stray_attachments<M>(),
                "sluice: a model's `attachments` must take nothing and return sluice::Attachments");
  static_assert(
      EncodingModel<M> || !stray_encode<M>(),
      "sluice: a model's `encode` must be const, take a std::span<Source const* const> and return the model's "
      "type Encoded, of which start(encoded, std::span<int32_t const>, std::span<Slot const>) starts some");
  return true;
}

/// What the compiler knows of M's abilities.
template <class M>
consteval Abilities known_abilities() {
  if constexpr (KnownAbilities<M>) return abilities<M>();
  else return {};
}

/// What a wrapper claims: a member where the compiler knows it, else a function.
template <bool Known, Abilities A>
struct Claim {
  explicit constexpr Claim(Abilities) {}
  static constexpr Abilities abilities = A;
};
template <Abilities A>
struct Claim<false, A> {
  explicit Claim(Abilities learnt) : learnt_(learnt) {}
  Abilities abilities() const { return learnt_; }

 private:
  Abilities learnt_;
};

}  // namespace detail

}  // namespace sluice::inline v0
