// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prompt lookup: guesses by looking up the last tokens in the source and the output.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/tree_budget.hpp>
#include <sluice/speculative/speculated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// A proposer that guesses what followed the same words earlier: prompt lookup, or n-gram speculation. For outputs that
/// repeat their source (restored case and punctuation, corrections, summaries, code) or themselves. The longest suffix
/// of the output that occurs earlier decides. Among equally long matches, the one in the source nearest to the output's
/// position wins, then the latest in the output. For a search that takes trees, the continuations of all matches form one
/// trie: longer matches first, equal ones in the order above, until it holds as many paths and guesses as the search takes.
///
/// A guess costs O(longest * (source + output)).
class PromptLookup {
 public:
  /// How far it looks.
  struct Options {
    std::int32_t longest = 3;   ///< the longest match, in tokens
    std::int32_t shortest = 1;  ///< the shortest match; >= 1
    bool source = true;         ///< also search the source, if it is a list of tokens of the same vocabulary

    void check() const {
      require(shortest >= 1, "lookup.shortest", shortest, "must be at least 1");
      require(longest >= shortest, "lookup.longest", longest, "must be at least lookup.shortest");
    }
  };

  PromptLookup() : PromptLookup(Options{}) {}
  /// \throws std::invalid_argument  for options that make no sense
  explicit PromptLookup(Options const& options) : options_(options) { options_.check(); }

  SLUICE_LAZY void propose(std::span<Draft const> drafts, SlotTexts const& texts) {
    for (auto const& draft : drafts) guess(draft, texts);
  }

 private:
  SLUICE_LAZY void guess(Draft const& draft, SlotTexts const& texts) {
    text_.clear();
    texts.append(draft, text_);
    std::span<Token const> const text = text_;
    auto const source = options_.source ? texts.source(draft.slot) : std::span<Token const>();
    auto const most = (std::min)(static_cast<std::size_t>(options_.longest), text.size());
    if (draft.tree != nullptr && draft.tree->leaves > 1) {
      budget_.reset(draft.tree->nodes, draft.tree->leaves);
      for_each_place(text, source, most, [&](std::span<Token const> next) { return insert(next, draft); });
    } else {
      for_each_place(text, source, most, [&](std::span<Token const> next) { return take(next, draft), false; });
    }
  }

  /// Calls f with what follows every place where the last words, at most `most` of them, occur, each place once: longer
  /// matches first, and among these the source before the text. Stops when f returns false.
  template <class F>
  void for_each_place(std::span<Token const> text, std::span<Token const> source, std::size_t most, F&& f) {
    for (auto n = most; n >= static_cast<std::size_t>(options_.shortest); --n) {
      auto const end = text.last(n);
      auto const at = [&](std::span<Token const> where, std::size_t i) {
        auto const longer = n < most && i > 0 && where[i - 1] == text[text.size() - n - 1];  // has been reported
        return !longer && std::equal(end.begin(), end.end(), where.begin() + static_cast<std::ptrdiff_t>(i));
      };
      places_.clear();
      for (std::size_t i = 0; i + n < source.size(); ++i)
        if (at(source, i)) places_.push_back(i + n);
      auto const distance = [&](std::size_t i) { return i > text.size() ? i - text.size() : text.size() - i; };
      std::ranges::sort(places_, [&](std::size_t x, std::size_t y) {
        return distance(x) != distance(y) ? distance(x) < distance(y) : x < y;
      });
      for (auto const i : places_)
        if (!f(source.subspan(i))) return;
      for (auto i = text.size() - n; i-- > 0;)
        if (at(text, i) && !f(text.subspan(i + n))) return;
    }
  }
  /// Adds to the trie the part of a path that it lacks; false if it is full.
  SLUICE_LAZY bool insert(std::span<Token const> path, Draft const& draft) {
    auto& tokens = *draft.tokens;
    auto& parents = draft.tree->parents;
    std::int32_t parent = -1;
    auto inside = true;  // the path has been in the trie so far
    for (std::size_t depth = 0; depth < path.size() && depth < static_cast<std::size_t>((std::max)(draft.count, 0));
         ++depth) {
      std::size_t i = 0;
      while (inside && i < tokens.size() && (parents[i] != parent || tokens[i] != path[depth])) ++i;
      if (!inside || i == tokens.size()) {
        if (budget_.over()) return false;
        if (!budget_.admit(parent)) return true;  // a later path may still extend one that is in the trie
        inside = false, i = tokens.size();
        tokens.push_back(path[depth]), parents.push_back(parent);
      }
      parent = static_cast<std::int32_t>(i);
    }
    return true;
  }

  static void take(std::span<Token const> next, Draft const& draft) {
    auto const count = (std::min)(next.size(), static_cast<std::size_t>((std::max)(draft.count, 0)));
    draft.tokens->insert(draft.tokens->end(), next.begin(), next.begin() + static_cast<std::ptrdiff_t>(count));
  }

  Options options_;
  std::vector<Token> text_;
  std::vector<std::size_t> places_;  // in the source
  detail::TreeBudget budget_;
};

}  // namespace sluice::inline v0
