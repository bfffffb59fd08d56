// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Model concept, which users implement.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
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
SLUICE_NAMES(remember)
SLUICE_NAMES(attachments)
SLUICE_NAMES(growth)

namespace sluice::inline v0 {

// clang-format off
/// A sequence model as the decoder sees it: numbered slots, each holding the state of one hypothesis.
///
///  - `Source`: what one sentence is decoded from (a token list, an image, nothing);
///  - `vocabulary()`: constant over the life of the model;
///  - `start(sources, slots)`: afterwards slot `slots[i]` holds the start of `*sources[i]`, without any token. The sources
///    live until their sentence ends. If it throws, all these slots are free again;
///  - `step(rows)`: runs the rows (see Row) and returns one line per line asked for, in row order, valid until the
///    next step: `Scores<T>`, `Hidden<T>`, or a type for which the user has an Expander.
///
/// A slot that no row names stays as it is until a row names it or it is released. start only gets free slots. If step throws,
/// the content of its rows' slots is unspecified, and release must accept such slots. release must not throw; if it does, the
/// exception is dropped.
/// Optional members: `abilities`, `limits()`, `release(slots)`, `encode`, `source_length(source)`, `propose`,
/// `remember(decoded)`, `attachments()`, `growth(source)`; a member with one of these names and another signature is a compile error.
///
/// Semantic requirement: a line depends on its slot's source and tokens only, so that the batch never changes a result. (A model
/// whose numerics depend on the batch works too; then the numbers depend on the batch, and only the search does not.)
template <class M>
concept Model = requires(M& model, std::span<typename M::Source const* const> sources,
                         std::span<Slot const> slot_numbers, std::span<Row const> rows) {
  { model.vocabulary() } -> std::convertible_to<Vocabulary>;
  model.start(sources, slot_numbers);
  model.step(rows);
} && !std::is_void_v<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// The type that a model's step returns.
template <Model M>
using Answer = std::remove_cvref_t<decltype(std::declval<M&>().step(std::declval<std::span<Row const>>()))>;

/// A model that is told which slots are no longer needed (to free memory).
template <class M>
concept ReleasingModel = Model<M> && requires(M& model, std::span<Slot const> slot_numbers) { model.release(slot_numbers); };

/// A model whose encoder can run apart from the decoder, in another thread: `encode` is const and touches no slot;
/// `start(encoded, items, slots)` puts sentence `items[i]` of one encoded batch into `slots[i]`. It may be called again after
/// an exception (its own, or of another model of an ensemble): do not change what is encoded.
/// `encode` may run in one thread while other members run in another. The sources may be gone after the call: what is encoded
/// must not refer to them.
template <class M>
concept EncodingModel = Model<M> &&
  requires(M& model, M const& same, std::span<typename M::Source const* const> sources, typename M::Encoded& encoded,
           std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    { same.encode(sources) } -> std::same_as<typename M::Encoded>;
    model.start(encoded, items, slot_numbers);
  };

/// How much of a source is there.
struct SourceGrowth {
  std::int32_t length = -1;  ///< -1: unknown
  bool over = true;          ///< nothing more will come
};

/// A model whose sources grow while they are decoded: `growth(source)` is const. For Decoder::append it also has `append(source,
/// more...)`, which adds to a source. Both are called between steps, by the thread that steps. Only searches that wait for more
/// (see Search) take a source that is not over.
template <class M>
concept GrowingModel = Model<M> && requires(M const& model, typename M::Source const& source) {
  { model.growth(source) } -> std::same_as<SourceGrowth>;
};

/// A tree of guesses: the search sets what it wants, and the model fills in the rest, besides Draft::tokens. More probable
/// siblings come first; a guess comes after its parent.
struct DraftTree {
  std::int32_t nodes = 0;   ///< guesses in all, at most; Draft::count bounds the length of a path
  std::int32_t leaves = 1;  ///< paths, at most. The sentence has that many slots, from Draft::slot on
  double cost = 0;          ///< of a guess, as a fraction of a step. > 0: guesses that do not pay need not be made
  bool draws = false;       ///< siblings must be drawn independently from one distribution; `drawn` tells it
  /// [guess]: its parent; -1: Draft::pending. Guesses beyond its end follow the guess before them.
  std::vector<std::int32_t> parents{};
  /// A part of `candidates`.
  struct Range {
    std::int32_t first = 0, count = 0;
  };
  std::vector<Range> drawn{};            ///< [guess], draws: the part of `candidates` that it was drawn from
  std::vector<Candidate> candidates{};  ///< in proportion to their probabilities in each part; others have 0

  void clear() { parents.clear(), drawn.clear(), candidates.clear(); }
};

/// Asks the model to guess the next tokens of a sentence (speculative decoding, see Blockwise).
struct Draft {
  Slot slot = 0;
  std::int32_t length = 0;           ///< tokens of the slot that are kept
  std::span<Token const> pending{};  ///< chosen since, not yet in the slot
  std::int32_t count = 0;            ///< guesses wanted, at most
  std::vector<Token>* tokens = nullptr;  ///< where they are appended
  std::uint64_t seed = 0;                ///< of the sentence: drawing with it gives the draws of Sample
  std::int32_t position = 0;             ///< of the first token to be guessed, in the output
  /// [g - 1]: what g guesses for each sentence add to a step, as a fraction of it; < 0: not known. Empty: nothing is known.
  std::span<double const> costs{};
  std::span<double const> rates{};  ///< [i]: how many of the guesses after i right ones were right lately, of all sentences
  std::int32_t measure = -1;        ///< >= 0: guess so many, if an output does not depend on it, to learn that
  /// What a search answers: the guesses of its last round that were verified, one after the other; how many of them were right;
  /// how many it could have next on one path.
  std::int32_t verified = 0, right = 0, most = 0;
  DraftTree* tree = nullptr;  ///< not null: guesses may branch
  /// The line from which the last token of `pending` was chosen: line `seen_line` of the last row that went to slot `seen`.
  /// -1: the line after the first `length` tokens of `slot`.
  Slot seen = -1;
  std::int32_t seen_line = 0;
  bool remember = true;  ///< Request::remember; false: do not guess from what other requests left
};

/// A model that guesses tokens ahead: `propose` is called once a step, for all sentences in it that want guesses.
template <class M>
concept ProposingModel = Model<M> && requires(M& model, std::span<Draft const> drafts) { model.propose(drafts); };

/// What was decoded for a sentence that has just ended without a failure.
struct Decoded {
  Slot slot = 0;                    ///< its first, which still holds its source
  std::span<Token const> prompt{};  ///< as fed; never empty
  std::span<Token const> output{};  ///< the tokens of the best hypothesis, forced prefix and final eos included
};

/// A model that remembers what was decoded, to guess from it later (SuffixDecoding): `remember` is called when a sentence ends,
/// before its slots are released, unless its request has Request::remember = false. If it throws, the exception is dropped: no
/// result depends on it.
template <class M>
concept RememberingModel = Model<M> && requires(M& model, Decoded const& decoded) { model.remember(decoded); };

/// Small data that a model attaches to the lines of a step: attention over the source, the number of a frame.
struct Attachments {
  MatrixView<float const> values{};         ///< [lines of the step, widest line]; no rows: nothing is attached
  std::span<std::int32_t const> widths{};  ///< [lines]: how many numbers each has; empty: all columns
};

/// A model that attaches data to lines. `attachments` is called after every step; what it returns is valid until the next. Any
/// search works: the decoder keeps the attachments of all lines of a sentence until it ends, and returns them in
/// Hypothesis::attached.
template <class M>
concept AttachingModel = Model<M> && requires(M& model) {
  { model.attachments() } -> std::convertible_to<Attachments>;
};
// clang-format on

namespace detail {

/// Whether the abilities of M are known at compile time: `static constexpr Abilities abilities`, or no member of that name.
template <class M>
concept KnownAbilities = !names_abilities<M>() || requires {
  typename std::bool_constant<M::abilities.ragged>;
};

}  // namespace detail

/// The abilities that M claims at compile time; none if it has no such member.
template <detail::KnownAbilities M>
consteval Abilities abilities() {
  if constexpr (requires { M::abilities; }) return M::abilities;
  else return {};
}

/// The abilities that a model claims, at compile time (`static constexpr Abilities abilities`) or at run time
/// (`Abilities abilities() const`; constant over the life of the model).
template <class M>
constexpr Abilities abilities(M const& model) {
  if constexpr (requires {
                  { model.abilities() } -> std::convertible_to<Abilities>;
                })
    return model.abilities();
  else {
    static_assert(detail::KnownAbilities<M>,
                  "sluice: `abilities` of a model must be a static constexpr Abilities, or a const "
                  "function that returns them");
    return sluice::abilities<M>();
  }
}

/// The model's limits; none if it has no limits().
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

/// The length of a source, for limits that are a multiple of it: `model.source_length(source)`, else `source.size()`, else
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

/// Whether sources can be encoded ahead. A model that knows it only at run time has `bool encodes() const`.
template <Model M>
bool encodes(M const& model) {
  if constexpr (requires {
                  { model.encodes() } -> std::convertible_to<bool>;
                })
    return EncodingModel<M> && model.encodes();
  else return EncodingModel<M>;
}

/// Whether the model guesses. A model that knows it only at run time has `bool proposes() const`.
template <Model M>
bool proposes(M const& model) {
  if constexpr (requires {
                  { model.proposes() } -> std::convertible_to<bool>;
                })
    return ProposingModel<M> && model.proposes();
  else return ProposingModel<M>;
}

namespace detail {

// clang-format off
template <class M>
concept HasSource = requires { typename M::Source; };
template <class M>
concept HasVocabulary = requires(M& model) {
  { model.vocabulary() } -> std::convertible_to<Vocabulary>;
};
template <class M>
concept HasStart = requires(M& model, std::span<typename M::Source const* const> sources, std::span<Slot const> slot_numbers) {
  model.start(sources, slot_numbers);
};
template <class M>
concept HasStep = requires(M& model, std::span<Row const> rows) { model.step(rows); };
// clang-format on

/// The compile error for a class that is no Model: what it lacks first.
template <class M>
consteval bool refuse_model() {
  constexpr auto is = Model<M>;
  if constexpr (std::is_const_v<M>)
    static_assert(is, "sluice: the model is const, and start() and step() of a model change it: pass one that is not");
  else if constexpr (!HasSource<M>)
    static_assert(is, "sluice: a model must have a public type `Source`, what one output is decoded from: write "
                      "`using Source = std::monostate;` if that is nothing");
  else if constexpr (!HasVocabulary<M>)
    static_assert(
        is, "sluice: a model must have `sluice::Vocabulary vocabulary() const`, and this has no public one of that "
            "signature");
  else if constexpr (!HasStart<M>)
    static_assert(
        is,
        "sluice: a model must have `void start(std::span<Source const* const> sources, std::span<sluice::Slot const> "
        "slots)`, and this has no public one of that signature");
  else if constexpr (!HasStep<M>)
    static_assert(
        is,
        "sluice: a model must have `sluice::Scores<float> step(std::span<sluice::Row const> rows)`, and this has no "
        "public one of that signature");
  else static_assert(is, "sluice: step() of a model must return scores, such as `sluice::Scores<float>`");
  return true;
}

/// Stands where a Model is deduced, and says what the class lacks.
template <class M>
struct NoModel {
  static_assert(refuse_model<M>());
  using Source = int;
  Vocabulary vocabulary() const { return {}; }
  void start(std::span<int const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};

/// Compile errors for members that have the name of an optional member and another signature: they would never be called.
template <Model M>
consteval bool model_names() {
  static_assert(ReleasingModel<M> || !stray_release<M>(),
                "sluice: a model's `release` must take a std::span<Slot const>");
  static_assert(ProposingModel<M> || !stray_propose<M>(),
                "sluice: a model's `propose` must take a std::span<Draft const>");
  static_assert(RememberingModel<M> || !stray_remember<M>(),
                "sluice: a model's `remember` must take a sluice::Decoded const&");
  static_assert(AttachingModel<M> || !stray_attachments<M>(),
                "sluice: a model's `attachments` must take nothing and return sluice::Attachments");
  static_assert(!GrowingModel<M> || !EncodingModel<M>,
                "sluice: sources that grow cannot be encoded ahead: a model has `growth` or `encode`");
  static_assert(GrowingModel<M> || !stray_growth<M>(),
                "sluice: a model's `growth` must be const, take a Source and return sluice::SourceGrowth");
  static_assert(
      EncodingModel<M> || !stray_encode<M>(),
      "sluice: a model's `encode` must be const, take a std::span<Source const* const> and return the model's "
      "type Encoded, of which start(encoded, std::span<int32_t const>, std::span<Slot const>) starts some");
  return true;
}

/// The abilities of M, if known at compile time.
template <class M>
consteval Abilities known_abilities() {
  if constexpr (detail::KnownAbilities<M>) return abilities<M>();
  else return {};
}

/// The abilities that a wrapper claims: a static member if known at compile time, else a function.
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
