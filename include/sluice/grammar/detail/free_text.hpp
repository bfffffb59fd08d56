// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts in which some strings do not occur, or end them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Finds strings in texts, all at once (Aho and Corasick 1975). A text is over where the first string occurs.
class FreeText {
 public:
  /// \param ends   strings of which the first that occurs ends the text; none empty
  /// \param never  strings that do not occur; none empty
  SLUICE_LAZY FreeText(std::vector<std::string> const& ends, std::vector<std::string> const& never) {
    nodes_.emplace_back();
    for (std::size_t i = 0; i < ends.size(); ++i) nodes_[add(ends[i])].ends.push_back(i);
    for (auto const& one : never) nodes_[add(one)].never = true;
    std::vector<std::size_t> open;
    open.reserve(nodes_.size());
    for (auto const& [c, to] : nodes_[0].next) open.push_back(to);
    for (std::size_t i = 0; i < open.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const node = open[i];
      for (auto const& [c, to] : nodes_[node].next) {
        nodes_[to].back = go(nodes_[node].back, c);
        open.push_back(to);
      }
      auto const& suffix = nodes_[nodes_[node].back];
      nodes_[node].never = nodes_[node].never || suffix.never;
      nodes_[node].ends.insert(nodes_[node].ends.end(), suffix.ends.begin(), suffix.ends.end());
    }
  }

  /// The texts in which none of the strings occurs.
  SLUICE_LAZY TextAutomaton without() const { return texts(none); }
  /// The texts that this one ends, with it.
  SLUICE_LAZY TextAutomaton until(std::size_t end) const { return texts(end); }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Node {
    std::map<char32_t, std::size_t> next{};
    std::size_t back = 0;  // the longest other beginning that ends here, too
    std::vector<std::size_t> ends{};
    bool never = false;
  };

  SLUICE_LAZY std::size_t add(std::string_view text) {
    std::size_t at = 0;
    for (auto const c : decoded(text)) {
      auto const [it, fresh] = nodes_[at].next.try_emplace(c, nodes_.size());
      at = it->second;
      if (fresh) nodes_.emplace_back(), TextAutomaton::check(nodes_.size());
      letters_.push_back(c);
    }
    std::sort(letters_.begin(), letters_.end());
    letters_.erase(std::unique(letters_.begin(), letters_.end()), letters_.end());
    return at;
  }
  SLUICE_LAZY std::size_t go(std::size_t node, char32_t c) const {
    for (;; node = nodes_[node].back) {
      if (auto const it = nodes_[node].next.find(c); it != nodes_[node].next.end()) return it->second;
      if (node == 0) return 0;
    }
  }

  SLUICE_LAZY TextAutomaton texts(std::size_t end) const {
    std::vector<std::int32_t> number(nodes_.size(), -1);
    std::int32_t count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].never && nodes_[i].ends.empty()) number[i] = count++;
    TextAutomaton out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (number[i] < 0) continue;
      TextAutomaton::State state{{}, end == none};
      char32_t next = 0;
      for (auto const c : letters_) {
        if (c > next) TextAutomaton::join(state.edges, {next, c - 1, 0});
        next = c + 1;
        auto const to = go(i, c);
        auto const& ends = nodes_[to].ends;
        if (number[to] >= 0) TextAutomaton::join(state.edges, {c, c, number[to]});
        else if (!nodes_[to].never && std::find(ends.begin(), ends.end(), end) != ends.end())
          TextAutomaton::join(state.edges, {c, c, count});
      }
      if (next <= last_character) TextAutomaton::join(state.edges, {next, last_character, 0});
      out.states.push_back(std::move(state));
    }
    if (end != none) out.states.push_back({{}, true});
    return std::move(out).trimmed().minimal();
  }

  std::vector<Node> nodes_;
  std::vector<char32_t> letters_;  // sorted
};

}  // namespace sluice::inline v0::detail
