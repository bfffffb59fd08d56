// SPDX-License-Identifier: Apache-2.0
/// \file
/// A union of token lists, and queries translated to its indices.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A union of tokens. Allocates nothing once warm.
class ActiveTokens {
 public:
  void begin(std::int32_t vocabulary_size) {
    words_.assign((static_cast<std::size_t>(vocabulary_size) + 63) / 64, 0);
    size_ = vocabulary_size;
  }
  /// Adds a token; ignores tokens outside the vocabulary.
  void insert(Token token) {
    if (token < 0 || token >= size_) return;
    words_[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(token) % 64);
  }
  void insert(std::span<Token const> tokens) {
    for (auto const token : tokens) insert(token);
  }
  /// Adds all of `tokens` that are in the vocabulary.
  void insert(TokenSet const& tokens) {
    auto const words = tokens.words();
    for (std::size_t i = 0; i < (std::min)(words.size(), words_.size()); ++i) words_[i] |= words[i];
    if (size_ % 64 != 0) words_.back() &= (std::uint64_t{1} << (size_ % 64)) - 1;
  }
  bool contains(Token token) const {
    auto const place = static_cast<std::size_t>(static_cast<std::uint32_t>(token));
    return place / 64 < words_.size() && (words_[place / 64] >> (place % 64) & 1) != 0;
  }
  std::int32_t count() const {
    std::int32_t sum = 0;
    for (auto const word : words_) sum += std::popcount(word);
    return sum;
  }

  /// Appends the union, ascending.
  void append_to(std::vector<Token>& tokens) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (auto word = words_[i]; word != 0; word &= word - 1)
        tokens.push_back(static_cast<Token>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
  }

 private:
  std::int32_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

/// Translates queries to indices in a list of active tokens. Allocates nothing once warm.
class ActiveQueries {
 public:
  /// The queries with tokens replaced by indices in `tokens` (ascending), and without `only`; valid until the next
  /// call. An inactive token has no index: its edits are dropped, and its probes get index -1.
  std::span<Query const> translate(std::span<Query const> queries, std::span<Token const> tokens) {
    std::size_t probes = 0, edits = 0;
    for (auto const& query : queries) probes += query.probes.size(), edits += query.edits.size();
    // Spans refer to these, so they must not reallocate.
    probes_.clear(), edits_.clear(), queries_.clear();
    probes_.reserve(probes), edits_.reserve(edits);
    auto const place = [&](Token token) {
      auto const at = std::lower_bound(tokens.begin(), tokens.end(), token);
      return at != tokens.end() && *at == token ? static_cast<Token>(at - tokens.begin()) : -1;
    };
    for (auto const& query : queries) {
      auto& to = queries_.emplace_back(query);
      auto const first_probe = probes_.size(), first_edit = edits_.size();
      for (auto const token : query.probes) probes_.push_back(place(token));
      for (auto const& edit : query.edits)
        if (auto const at = place(edit.token); at >= 0) edits_.push_back({at, edit.add, edit.penalty});
      to.probes = std::span<Token const>(probes_).subspan(first_probe);
      to.edits = std::span<Edit const>(edits_).subspan(first_edit);
      to.sorted = {}, to.only = to.shortlist = nullptr;
    }
    return queries_;
  }

 private:
  std::vector<Token> probes_;
  std::vector<Edit> edits_;
  std::vector<Query> queries_;
};

}  // namespace sluice::inline v0::detail
