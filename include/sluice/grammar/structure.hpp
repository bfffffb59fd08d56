// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structured decoding: outputs that match a grammar, for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {
class TokenMasks;
}

/// Which tokens may spell text that is certain (for example a member's name, where a schema allows only one).
enum class CertainText : std::uint8_t {
  any,      ///< any tokens that spell it: the model chooses
  longest,  ///< always the longest token, as long as no token extends beyond the certain text: so its tokens are
            ///< certain too
};

/// Options of a Structure.
struct StructureOptions {
  /// Approximate memory for the grammar states reached by outputs, in bytes. When half of it is used, new sentences
  /// start with fresh memory while others continue in the old; a sentence that alone needs more ends with an error.
  std::size_t memory = std::size_t{64} << 20;
  std::int32_t masks = 1024;  ///< number of token masks to keep, of V / 8 bytes each, of each of two kinds; >= 1
  /// How many stacks, of calls that have not returned, one place of the grammar may have at once. An unambiguous grammar
  /// has few; of an ambiguous one each step takes time by their square. A sentence that needs more ends with an error; >= 1
  std::int32_t ambiguity = 20'000;
  CertainText certain = CertainText::any;
  /// Precomputes masks that otherwise take up to some milliseconds when an output first reaches a place where almost any
  /// token is allowed. Not for grammars with large counts: the last places of a count each need a mask
  /// of their own.
  bool eager = false;
};

/// Outputs match a grammar: a logits processor for any search. Tokens that would violate it, or after which it
/// could not be completed within the search's maximum length, are forbidden. eos is allowed only where the text is
/// complete, so no output ends incomplete, not even at the maximum length. A request that cannot be completed from the
/// start is refused, and so is a forced prefix that violates the grammar. The text is that of the output's tokens,
/// prefix included; control tokens other than eos are not allowed in it.
///
/// The number of tokens that an output still needs is exact for small vocabularies. For large ones it is the number for
/// the shortest text, so an output may be steered to its end sooner than necessary, but never too late. See
/// docs/structure.md.
///
/// States and their masks are cached for all sentences, in all copies and threads. Threads wait for each other only
/// while a new state is added, and for a mask that another is making.
class Structure {
 public:
  /// A value of a few words. Equal states have the same continuations.
  struct State {
    std::shared_ptr<detail::TokenMasks> masks;
    std::int32_t state = 0;
    friend bool operator==(State const&, State const&) = default;
  };

  /// Allows everything.
  Structure() = default;
  bool trivial() const { return data_ == nullptr; }
  /// \param tokens  of the vocabulary with which the search will run; shared by all grammars of a model
  /// \throws std::invalid_argument  for invalid options, or if there are no tokens
  /// \throws std::length_error  if `options.eager` takes more than `options.memory`
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY Structure(Grammar grammar, TokenTrie tokens, StructureOptions const& options = {})
      : data_(make(std::move(grammar), std::move(tokens), options)) {}

  /// \throws std::invalid_argument  if the tokens belong to another vocabulary
  SLUICE_LAZY State initial(Sentence const& sentence) const;
  /// The state before the first token, for the vocabulary of the tokens.
  SLUICE_LAZY State start() const;
  SLUICE_LAZY State next(State const& state, Token token) const;
  void edit(State const&, Output const&, std::vector<Edit>&) const {}

  /// The tokens that may follow; null: all. Valid as long as the pointer is held.
  /// \param left  how many tokens may follow, the end included
  SLUICE_LAZY std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const;

  /// Whether the output matches so far.
  bool alive(State const& state) const { return state.masks == nullptr || state.state != dead; }
  /// Whether the output may end here, or has ended.
  SLUICE_LAZY bool complete(State const& state) const;

  /// What rules that are captured ([capture] in Lark) have matched in a finished output: names and texts, in the order in which
  /// they begin, outer ones first. A rule that matched several times is there as often; one with an empty text is not. What is
  /// ignored behind a rule (%ignore), and its suffix=, are left out. Of several readings, that one counts in which, from the left
  /// to the right, the longest rule that can stand at a place stands there.
  /// Parses the output again (Earley 1970): O(bytes) for most grammars, their square or cube for ambiguous ones.
  /// \param tokens  an output, with or without its end
  /// \throws std::invalid_argument  for one that is not complete
  /// \throws std::length_error  if its readings do not fit into memory
  SLUICE_LAZY std::vector<std::pair<std::string, std::string>> captures(std::span<Token const> tokens) const;

  /// \throws std::invalid_argument  if no output can begin with this: for a prefix that violates the grammar, a maximum
  ///     length within which nothing can be completed, or tokens that cannot spell what the grammar requires
  SLUICE_LAZY void require_possible(State const& state, Output const& output, std::int32_t left) const;

  /// The number of places of the grammar, and of states reached so far.
  SLUICE_LAZY std::pair<std::int32_t, std::int32_t> sizes() const;

 private:
  static constexpr std::int32_t dead = 0;  // of State

  struct Data;
  SLUICE_LAZY static std::shared_ptr<Data> make(Grammar grammar, TokenTrie tokens, StructureOptions const& options);

  std::shared_ptr<Data> data_;
};

SLUICE_FUNCTION_IN_LIBRARY(Structure::State Structure::initial<void>(Sentence const&) const)
SLUICE_FUNCTION_IN_LIBRARY(Structure::State Structure::start<void>() const)
SLUICE_FUNCTION_IN_LIBRARY(Structure::State Structure::next<void>(Structure::State const&, Token) const)
SLUICE_FUNCTION_IN_LIBRARY(std::shared_ptr<TokenSet const> Structure::may_follow<void>(Structure::State const&,
                                                                                       std::int32_t) const)
SLUICE_FUNCTION_IN_LIBRARY(bool Structure::complete<void>(Structure::State const&) const)
SLUICE_FUNCTION_IN_LIBRARY(
    std::vector<std::pair<std::string, std::string>> Structure::captures<void>(std::span<Token const>) const)
SLUICE_FUNCTION_IN_LIBRARY(void Structure::require_possible<void>(Structure::State const&, Output const&, std::int32_t)
                               const)
SLUICE_FUNCTION_IN_LIBRARY(std::pair<std::int32_t, std::int32_t> Structure::sizes<void>() const)
SLUICE_FUNCTION_IN_LIBRARY(std::shared_ptr<Structure::Data> Structure::make<void>(Grammar, TokenTrie,
                                                                                  StructureOptions const&))

}  // namespace sluice::inline v0

#ifndef SLUICE_COMPILED
#include <sluice/grammar/detail/structure_definition.hpp>
#endif
