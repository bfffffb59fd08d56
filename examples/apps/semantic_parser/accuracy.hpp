// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many sentences are parsed right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <semantic_parser/data.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace semantic_parser {

/// The n-best lists of the sentences, best first.
using Lists = std::vector<std::vector<std::vector<Token>>>;

/// Logical forms up to what does not matter to their meaning, as the authors of the parser count.
class Forms {
 public:
  explicit Forms(std::vector<std::string> const& words)
      : open_(find(words, "(")), close_(find(words, ")")), and_(find(words, "and")), or_(find(words, "or")) {}

  /// The form with the operands of every "and" and "or" sorted. Before that, missing ")" are added at the end and for
  /// every surplus ")" a token is cut off there. Nothing if the parentheses do not match all the same.
  std::optional<std::vector<Token>> normal(std::vector<Token> tokens) const {
    auto const surplus = std::ranges::count(tokens, close_) - std::ranges::count(tokens, open_);
    if (surplus < 0) tokens.insert(tokens.end(), static_cast<std::size_t>(-surplus), close_);
    else tokens.resize(tokens.size() - static_cast<std::size_t>(surplus));
    std::vector<Parts> levels(1);
    for (auto const token : tokens) {
      if (token == open_) levels.emplace_back();
      else if (token != close_) levels.back().push_back({token});
      else if (levels.size() == 1) return std::nullopt;
      else {
        std::vector<Token> form{open_};
        join(levels.back(), form);
        form.push_back(close_);
        levels.pop_back();
        levels.back().push_back(std::move(form));
      }
    }
    if (levels.size() > 1) return std::nullopt;
    std::vector<Token> form;
    join(levels.back(), form);
    return form;
  }

 private:
  using Parts = std::vector<std::vector<Token>>;  // tokens, or forms in parentheses

  static Token find(std::vector<std::string> const& words, std::string_view word) {
    auto const found = std::ranges::find(words, word);
    return found == words.end() ? -1 : static_cast<Token>(found - words.begin());  // -1: is no token
  }
  void join(Parts& parts, std::vector<Token>& form) const {
    auto const operation = parts.empty() || parts[0].size() != 1 ? -1 : parts[0][0];
    if (operation != -1 && (operation == and_ || operation == or_)) std::sort(parts.begin() + 1, parts.end());
    for (auto const& part : parts) form.insert(form.end(), part.begin(), part.end());
  }

  Token open_, close_, and_, or_;
};

/// Parts of the test set, in [0, 1].
struct Accuracy {
  double exact = 0, exact_oracle = 0;  ///< the first hypothesis, or any of the list, is the reference
  double tree = 0, tree_oracle = 0;    ///< has its normal form
};

inline Accuracy accuracy(Lists const& lists, Data const& data) {
  Forms const forms(data.target_words);
  Accuracy sum;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const& reference = data.test[i].reference;
    auto const form = forms.normal(reference);
    auto const exact = [&](auto const& tokens) { return tokens == reference; };
    auto const tree = [&](auto const& tokens) { return exact(tokens) || (form && forms.normal(tokens) == form); };
    auto const& list = lists[i];
    sum.exact += !list.empty() && exact(list[0]);
    sum.exact_oracle += std::ranges::any_of(list, exact);
    sum.tree += !list.empty() && tree(list[0]);
    sum.tree_oracle += std::ranges::any_of(list, tree);
  }
  auto const count = static_cast<double>(lists.size());
  return {sum.exact / count, sum.exact_oracle / count, sum.tree / count, sum.tree_oracle / count};
}

}  // namespace semantic_parser
