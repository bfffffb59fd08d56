// SPDX-License-Identifier: Apache-2.0
/// \file
/// LexicalShortlist: a vocabulary shortlist of the tokens that a sentence's translation may need.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// One line of a table of lexical translations, such as fast_align's or Marian's lex.s2t.
struct LexicalEntry {
  Token source = 0, target = 0;
  float probability = 0;  ///< of the target token, given the source token
};

/// Vocabulary shortlists from a lexical translation table (Jean et al. 2015; Marian's --shortlist FILE first best): the
/// `first` tokens of the vocabulary, which must be ordered by frequency, and the `best` translations of every source
/// token.
class LexicalShortlist {
 public:
  /// \param source_size, target_size  of the vocabularies
  /// \throws std::invalid_argument  for tokens outside the vocabularies, an invalid probability, or a negative number
  template <class = void>
  LexicalShortlist(std::span<LexicalEntry const> table, std::int32_t source_size, std::int32_t target_size,
                   std::int32_t first = 100, std::int32_t best = 100)
      : target_size_(target_size), always_((std::max)(target_size, 0)) {
    require(target_size >= 0, "LexicalShortlist: target_size", target_size, "must not be negative");
    require(source_size >= 0, "LexicalShortlist: source_size", source_size, "must not be negative");
    begin_.resize(static_cast<std::size_t>(source_size) + 1);
    require(first >= 0, "LexicalShortlist: first", first, "must not be negative");
    require(best >= 0, "LexicalShortlist: best", best, "must not be negative");
    for (Token token = 0; token < (std::min)(first, target_size); ++token) always_.insert(token);
    std::vector<LexicalEntry> entries(table.begin(), table.end());
    for (auto const& e : entries) {
      require(e.source >= 0 && e.source < source_size, "LexicalShortlist: source token", e.source,
              "is outside the vocabulary of " + std::to_string(source_size));
      require(e.target >= 0 && e.target < target_size, "LexicalShortlist: target token", e.target,
              "is outside the vocabulary of " + std::to_string(target_size));
      require(e.probability >= 0 && e.probability <= 1, "LexicalShortlist: probability", e.probability,
              "must be in [0, 1]");
    }
    std::sort(entries.begin(), entries.end(), [](LexicalEntry const& a, LexicalEntry const& b) {
      if (a.source != b.source) return a.source < b.source;
      return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
    });
    auto next = entries.begin();
    for (Token source = 0; source < source_size; ++source) {
      for (std::int32_t taken = 0; next != entries.end() && next->source == source; ++next)
        if (taken++ < best) targets_.push_back(next->target);
      begin_[static_cast<std::size_t>(source) + 1] = targets_.size();
    }
  }

  /// The tokens for one sentence. Source tokens outside the vocabulary have no translations.
  template <class = void>
  TokenSet operator()(std::span<Token const> source) const {
    auto tokens = always_;
    for (auto const token : source)
      if (token >= 0 && static_cast<std::size_t>(token) + 1 < begin_.size()) {
        auto const i = static_cast<std::size_t>(token);
        tokens.insert(std::span(targets_).subspan(begin_[i], begin_[i + 1] - begin_[i]));
      }
    return tokens;
  }
  std::int32_t vocabulary_size() const { return target_size_; }

 private:
  std::int32_t target_size_;
  TokenSet always_;
  std::vector<std::size_t> begin_;  // [source_size + 1], into targets_
  std::vector<Token> targets_;
};

}  // namespace sluice::inline v0
