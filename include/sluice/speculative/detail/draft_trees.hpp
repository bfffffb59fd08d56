// SPDX-License-Identifier: Apache-2.0
/// \file
/// Trees of guesses by a draft model: its beam, or sequences sampled from it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/slot_tokens.hpp>
#include <sluice/speculative/detail/tree_budget.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Builds a tree level by level, with one call of the draft model per level. Most probable: the best of all children of
/// the beam's paths continue, and the best of all nodes looked at form the tree (EAGLE-2: Li et al. 2024, section 4).
/// Drawn: as many sequences as the search takes paths, each token sampled from the `names` most probable ones; equal
/// prefixes are merged (SpecInfer: Miao et al. 2024). Paths use the sentence's slots: the first child of each path
/// takes its parent's slot. All slots but the first are free afterwards.
class DraftTrees {
 public:
  static constexpr std::int32_t names = 16;  ///< tokens that a drawn guess can be

  /// \param drafts  by slot, all of them with trees; texts[i]: the tokens that the draft model continues
  /// \param ask     ask(query, draft, n): sets the query for the draft model's line for guess n
  /// \param run     run(rows, queries, groups): the draft model's answer
  /// \param mark    mark(i, path): the noise with which the first sequence of sentence i draws after these guesses; 0: its own
  template <class Ask, class Run, class Mark>
  void grow(std::span<Draft const* const> drafts, std::span<std::vector<Token> const* const> texts,
            SlotTokens const& held, Vocabulary const& vocabulary, Ask&& ask, Run&& run, Mark&& mark) {
    used_.clear();
    trees_.resize((std::max)(trees_.size(), drafts.size()));
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      auto& tree = trees_[i];
      auto const leaves = drafts[i]->tree->leaves;
      tree.pool.clear();
      tree.paths.assign(1, {.slot = drafts[i]->slot, .from = drafts[i]->slot, .sequences = index(leaves)});
      tree.sequences.clear();
      for (std::int32_t j = 0; j < leaves; ++j) tree.sequences.push_back({.number = j});
    }
    for (std::int32_t n = 0;; ++n) {
      rows_.clear(), queries_.clear(), groups_.clear();
      for (std::size_t i = 0; i < drafts.size(); ++i) {
        auto const& draft = *drafts[i];
        if (n >= draft.count || trees_[i].paths.empty()) continue;
        add_rows(trees_[i], draft, *texts[i], held[draft.slot], n);
        groups_.push_back({.lines = static_cast<std::int32_t>(trees_[i].paths.size())});
        for (std::size_t p = 0; p < trees_[i].paths.size(); ++p) {
          Query query;
          ask(query, draft, n);
          query.best = draft.tree->draws ? names : (std::max)(2, draft.tree->leaves);
          query.noise = 0, query.normalise = true;
          queries_.push_back(query);
        }
      }
      if (rows_.empty()) break;
      auto const answer = run(std::span<Row const>(rows_), queries_, groups_);
      std::size_t line = 0;
      for (std::size_t i = 0; i < drafts.size(); ++i)
        if (auto& tree = trees_[i]; n < drafts[i]->count && !tree.paths.empty()) {
          auto const lines = answer.window(line, tree.paths.size());
          line += tree.paths.size();
          if (drafts[i]->tree->draws)
            draw(tree, *drafts[i], lines, n, vocabulary, [&](std::int32_t parent) {
              guessed_.clear();
              for (; parent >= 0; parent = drafts[i]->tree->parents[index(parent)])
                guessed_.push_back((*drafts[i]->tokens)[index(parent)]);
              std::reverse(guessed_.begin(), guessed_.end());
              return mark(i, std::span<Token const>(guessed_));
            });
          else expand(tree, *drafts[i], lines, vocabulary);
        }
    }
    for (std::size_t i = 0; i < drafts.size(); ++i)
      if (!drafts[i]->tree->draws) choose(trees_[i], *drafts[i]);
  }

  /// Slots that the last trees forked into, also if `run` threw. Their contents are no longer needed.
  SLUICE_LAZY std::span<Slot const> forked() {
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    return used_;
  }

 private:
  struct Path {
    Slot slot = 0, from = 0;  // its slot; the slot that it continues
    std::int32_t node = -1;   // its last token: a node of the pool, or a guess
    Token token = 0;
    double log_prob = 0;
    std::size_t first = 0, sequences = 0;  // drawn: the tree's sequences that take this path
  };
  struct Sequence {
    std::int32_t number = 0, guess = -1;  // its last guess
    std::size_t path = 0;                 // among the next level's paths
  };
  struct Node {
    Token token;
    std::int32_t parent;
    double log_prob;  // of the path
  };
  struct Tree {
    std::vector<Path> paths, next;
    std::vector<Node> pool;
    std::vector<Sequence> sequences, next_sequences;  // by path
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY void add_rows(Tree& tree, Draft const& draft, std::span<Token const> text, std::span<Token const> had,
                            std::int32_t n) {
    if (n == 0) {
      auto const same = std::mismatch(had.begin(), had.end(), text.begin(), text.end() - 1).first - had.begin();
      rows_.push_back(
          {draft.slot, draft.slot, static_cast<std::int32_t>(same), text.subspan(static_cast<std::size_t>(same))});
      return;
    }
    std::sort(tree.paths.begin(), tree.paths.end(), [](Path const& a, Path const& b) { return a.slot < b.slot; });
    for (auto const& path : tree.paths) {
      if (path.slot != path.from && path.slot != draft.slot) used_.push_back(path.slot);
      rows_.push_back({path.from, path.slot, static_cast<std::int32_t>(text.size()) + n - 1, {&path.token, 1}});
    }
  }

  SLUICE_LAZY static bool over(Token token, Vocabulary const& vocabulary) { return vocabulary.ends(token); }

  /// Assigns slots to the next level's paths: the first child of each parent keeps the parent's slot.
  SLUICE_LAZY void place(Tree& tree, Draft const& draft) {
    taken_.assign(index(draft.tree->leaves), 0);
    for (auto& path : tree.next) {
      auto& taken = taken_[index(path.from - draft.slot)];
      path.slot = taken != 0 ? -1 : path.from, taken = 1;
    }
    std::int32_t slot = 0;
    for (auto& path : tree.next) {
      if (path.slot >= 0) continue;
      while (taken_[index(slot)] != 0) ++slot;
      taken_[index(slot)] = 1, path.slot = draft.slot + slot;
    }
    std::swap(tree.paths, tree.next);
  }

  SLUICE_LAZY void expand(Tree& tree, Draft const& draft, Expansion const& lines, Vocabulary const& vocabulary) {
    tree.next.clear();
    for (std::size_t p = 0; p < tree.paths.size(); ++p) {
      auto const& path = tree.paths[p];
      for (auto const c : lines[p].best) {
        auto const log_prob = path.log_prob + (std::min)(0.0, static_cast<double>(c.log_prob));
        tree.pool.push_back({c.token, path.node, log_prob});
        if (over(c.token, vocabulary)) continue;
        tree.next.push_back({.from = path.slot,
                             .node = static_cast<std::int32_t>(tree.pool.size()) - 1,
                             .token = c.token,
                             .log_prob = log_prob});
      }
    }
    std::sort(tree.next.begin(), tree.next.end(), [](Path const& a, Path const& b) {
      return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.node < b.node;
    });
    if (std::ssize(tree.next) > draft.tree->leaves) tree.next.resize(index(draft.tree->leaves));
    place(tree, draft);
  }

  /// Chooses the best nodes of the pool, parents before their children.
  SLUICE_LAZY void choose(Tree& tree, Draft const& draft) {
    order_.resize(tree.pool.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::int32_t>(i);
    std::sort(order_.begin(), order_.end(), [&](auto a, auto b) {
      auto const x = tree.pool[index(a)].log_prob, y = tree.pool[index(b)].log_prob;
      return x != y ? x > y : a < b;
    });
    made_.assign(tree.pool.size(), -2);
    budget_.reset(draft.tree->nodes, draft.tree->leaves, draft.tree->cost);
    for (auto const i : order_) {
      auto const& node = tree.pool[index(i)];
      auto const chance = std::exp(node.log_prob);
      if (budget_.over(chance)) break;
      auto const behind = node.parent < 0 ? -1 : made_[index(node.parent)];
      if (behind == -2 || !budget_.admit(behind, chance)) continue;
      made_[index(i)] = budget_.size() - 1;
      draft.tokens->push_back(node.token), draft.tree->parents.push_back(behind);
    }
  }

  template <class Mark>
  void draw(Tree& tree, Draft const& draft, Expansion const& lines, std::int32_t n, Vocabulary const& vocabulary,
            Mark const& mark) {
    auto& made = *draft.tree;
    tree.next.clear(), tree.next_sequences.clear();
    for (std::size_t p = 0; p < tree.paths.size(); ++p) {
      auto const& path = tree.paths[p];
      auto const list = lines[p].best;
      if (list.empty()) continue;
      auto const first = static_cast<std::int32_t>(made.candidates.size());
      made.candidates.insert(made.candidates.end(), list.begin(), list.end());
      auto const begin = tree.next.size();
      drawn_.clear();
      for (std::size_t k = 0; k < path.sequences && std::ssize(*draft.tokens) < made.nodes; ++k) {
        auto const number = tree.sequences[path.first + k].number, parent = tree.sequences[path.first + k].guess;
        auto noise = number == 0 ? mark(parent) : 0;
        if (noise == 0)
          noise = derive(derive(derive(draft.seed, 0xD4AF),
                                static_cast<std::uint64_t>(draft.position) + static_cast<std::uint64_t>(n)),
                         static_cast<std::uint64_t>(number));
        auto const drawn = *std::ranges::max_element(
            list, {}, [&](Candidate c) { return static_cast<double>(c.log_prob) + gumbel(noise, c.token); });
        auto const guess = static_cast<std::int32_t>(draft.tokens->size());
        draft.tokens->push_back(drawn.token), made.parents.push_back(parent);
        made.drawn.push_back({first, static_cast<std::int32_t>(list.size())});
        if (over(drawn.token, vocabulary)) continue;
        auto const same = std::find_if(tree.next.begin() + static_cast<std::ptrdiff_t>(begin), tree.next.end(),
                                       [&](Path const& other) { return other.token == drawn.token; });
        drawn_.push_back({number, guess, static_cast<std::size_t>(same - tree.next.begin())});
        if (same == tree.next.end()) tree.next.push_back({.from = path.slot, .node = guess, .token = drawn.token});
      }
      for (auto to = begin; to < tree.next.size(); ++to) {
        tree.next[to].first = tree.next_sequences.size();
        for (auto const& one : drawn_)
          if (one.path == to) tree.next_sequences.push_back(one);
        tree.next[to].sequences = tree.next_sequences.size() - tree.next[to].first;
      }
    }
    std::swap(tree.sequences, tree.next_sequences);
    if (std::ssize(*draft.tokens) >= made.nodes) tree.next.clear();  // no further guess would be used
    place(tree, draft);
  }

  std::vector<Tree> trees_;
  std::vector<Row> rows_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
  std::vector<Slot> used_;
  std::vector<std::uint8_t> taken_;  // [slot]: by one of the next level's paths
  std::vector<std::int32_t> order_, made_;
  TreeBudget budget_;
  std::vector<Sequence> drawn_;  // behind one path
  std::vector<Token> guessed_;
};

}  // namespace sluice::inline v0::detail
