// SPDX-License-Identifier: Apache-2.0
/// \file
/// A proposer of trees: of any shape, valid or not.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

inline constexpr Abilities with_trees{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

enum class Branches : std::uint8_t {
  best,      ///< a random shape, of a table's best tokens
  mixed,     ///< some of them changed; equal siblings
  nonsense,  ///< any tokens, parents and number of guesses, mostly invalid
  chain,     ///< a tree that does not branch
};

/// A model of a table whose guesses are trees over the best tokens of another table. Guesses depend only on the text.
template <Model M>
class Branching : public detail::Forwarding<M> {
 public:
  using Source = typename M::Source;

  Branching(M& model, Table const& table, Branches kind, std::uint64_t seed)
      : detail::Forwarding<M>(model), table_(table), kind_(kind), seed_(seed) {}

  bool proposes() const { return true; }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) source(slots[i]) = *sources[i], tokens_.clear(slots[i]);
    this->model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) tokens_.clear(slot);
    detail::release(this->model_, slots);
  }
  decltype(auto) step(std::span<Row const> rows) {
    for (auto const& row : rows) {
      auto const from = source(row.from);
      source(row.to) = from;
    }
    tokens_.apply(rows);
    return this->model_.step(rows);
  }

  void propose(std::span<Draft const> drafts) {
    for (auto const& draft : drafts) guess(draft);
  }

 private:
  Source& source(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1);
    return sources_[i];
  }

  void guess(Draft const& draft) {
    auto const held = tokens_[draft.slot].first(static_cast<std::size_t>(draft.length));
    std::vector<Token> text(held.begin(), held.end());
    text.insert(text.end(), draft.pending.begin(), draft.pending.end());
    auto key = seed_;
    for (auto const token : text) key = hash_mix(key ^ static_cast<std::uint64_t>(token + 17));
    std::mt19937_64 random(key);
    text.erase(text.begin());  // the start symbol
    auto const any = [&](std::uint64_t count) { return random() % count; };
    auto& tokens = *draft.tokens;
    auto* parents = draft.tree == nullptr ? nullptr : &draft.tree->parents;
    auto const size = static_cast<std::uint64_t>(table_.size);
    auto const most = parents == nullptr ? draft.count : draft.tree->nodes;
    if (kind_ == Branches::nonsense) {
      for (auto n = any(2 * static_cast<std::uint64_t>(most) + 3); n > 0; --n) {
        tokens.push_back(static_cast<Token>(any(size + 2)) - (any(9) == 0));
        if (parents != nullptr && any(20) != 0)
          parents->push_back(static_cast<std::int32_t>(any(tokens.size() + 2)) - 2);
      }
      return;
    }
    std::vector<double> line(static_cast<std::size_t>(table_.size));
    std::vector<std::int32_t> rank(1);
    std::vector<std::vector<Token>> texts{text};
    auto const chain = parents == nullptr || kind_ == Branches::chain;
    for (std::int32_t i = 0; i < most; ++i) {
      auto const behind = chain ? i : static_cast<std::int32_t>(any(static_cast<std::uint64_t>(i) + 1));
      auto const p = static_cast<std::size_t>(behind);
      table_.log_probs(source(draft.slot), texts[p], line);
      std::vector<Token> order(line.size());
      for (std::size_t v = 0; v < order.size(); ++v) order[v] = static_cast<Token>(v);
      std::ranges::sort(order, [&](Token a, Token b) {
        return line[static_cast<std::size_t>(a)] > line[static_cast<std::size_t>(b)];
      });
      auto token = order[static_cast<std::size_t>(std::min<std::int32_t>(rank[p]++, table_.size - 1))];
      if (kind_ == Branches::mixed && any(3) == 0) token = static_cast<Token>(any(size));
      tokens.push_back(token);
      if (parents != nullptr) parents->push_back(behind - 1);
      texts.push_back(texts[p]), texts.back().push_back(token);
      rank.push_back(0);
    }
  }

  Table table_;
  Branches kind_;
  std::uint64_t seed_;
  detail::SlotTokens tokens_;
  std::vector<Source> sources_;
};

}  // namespace sluice::test
