// SPDX-License-Identifier: Apache-2.0
/// \file
/// Guesses by heads over the model's own hidden vectors, as Medusa's.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/tree_budget.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/tree_shape.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// Heads that guess: there are `size()` of them; `apply(i, h, z)` makes head i's hidden vectors z [n, d] from the
/// model's hidden vectors h [n, d]. Head 0 guesses the token after the model's own next token. ResidualHeads is an
/// example.
template <class H>
concept ProposalHeads = requires(H& heads, std::int32_t i, MatrixView<float const> h, MatrixView<float> z) {
  { heads.size() } -> std::convertible_to<std::int32_t>;
  heads.apply(i, h, z);
};
// clang-format on

/// How WithHeads makes trees for a search that takes them.
struct HeadTrees {
  std::int32_t best = 4;  ///< guesses considered per head; >= 1
  /// A given tree (Medusa's), cut down to the guesses and paths that the search takes. Without nodes, the tree is
  /// chosen by confidence: the paths that are most probable according to the heads (the tree that EAGLE-2 would choose:
  /// Li et al. 2024), and, if the search is adaptive, none that is not worth its time.
  TreeShape shape{};

  void check() const {
    require(best >= 1, "trees.best", best, "must be at least 1");
    for (std::size_t i = 0; i < shape.nodes.size(); ++i) {
      auto const [parent, depth, rank] = shape.nodes[i];
      require(parent >= -1 && parent < static_cast<std::int32_t>(i), "trees.shape: parent", parent,
              "must be a node before node " + std::to_string(i) + ", or -1");
      auto const place = parent < 0 ? 0 : shape.nodes[static_cast<std::size_t>(parent)].depth + 1;
      require(depth == place, "trees.shape: depth", depth, "must be " + std::to_string(place) + " for this parent");
      require(rank >= 0 && rank < best, "trees.shape: rank", rank,
              "must be at least 0 and below trees.best, " + std::to_string(best));
    }
  }
};

/// A model of hidden vectors with heads that make its guesses (Stern, Shazeer and Uszkoreit 2018). They guess from the
/// hidden vector at the last token that stays, which the model's own step has already computed. Guessing costs the
/// heads and one pass of the output layer for all sentences and heads together, and no call of the model.
///
/// `E` expands hidden vectors, as in the decoder: DenseProjection. An int8 or clustered projection guesses nearly as
/// well for less, since verification corrects it. A sentence whose last line has not been seen yet is passed to the
/// model's own `propose`, if it has one.
///
/// Refers to the model and the heads, which must outlive it. Has the model's abilities.
template <Model M, ProposalHeads H, class E>
class WithHeads : public detail::Forwarding<M> {
  using Base = detail::Forwarding<M>;
  static_assert(std::same_as<Answer<M>, Hidden<float>>, "sluice: WithHeads wants a model that answers Hidden<float>");
  static_assert(Expander<E, Hidden<float>>, "sluice: E does not expand hidden vectors");

 public:
  using Source = typename M::Source;

  /// \throws std::invalid_argument  for a projection of another vocabulary, or trees that make no sense
  WithHeads(M& model, H& heads, E expander, HeadTrees trees = {})
      : Base(model), heads_(heads), expander_(std::move(expander)), trees_(std::move(trees)) {
    trees_.check();
    Vocabulary const vocabulary = model.vocabulary();
    if constexpr (requires { expander_.vocabulary_size(); })
      require(expander_.vocabulary_size() == vocabulary.size, "WithHeads: projection.vocabulary_size()",
              expander_.vocabulary_size(), "must be that of the model, " + std::to_string(vocabulary.size));
    for (auto const token : vocabulary.never) never_.push_back(Edit::forbid(token));
  }

  bool proposes() const { return true; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    forget(slot_numbers);
    this->model_.start(sources, slot_numbers);
  }
  template <class Encoded>
    requires EncodingModel<M>
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    forget(slot_numbers);
    this->model_.start(encoded, items, slot_numbers);
  }
  void release(std::span<Slot const> slot_numbers) {
    forget(slot_numbers);
    detail::release(this->model_, slot_numbers);
  }

  Hidden<float> step(std::span<Row const> rows) {
    auto const answer = this->model_.step(rows);
    columns_ = answer.columns;
    std::ptrdiff_t line = 0;
    for (auto const& row : rows) {
      auto& seen = at(row.to);
      seen.first = row.length + static_cast<std::int32_t>(row.tokens.size()) - row.lines;
      seen.vectors.clear();
      for (std::int32_t i = 0; i < row.lines; ++i, ++line)
        seen.vectors.insert(seen.vectors.end(), answer[line].begin(), answer[line].end());
    }
    return answer;
  }

  void propose(std::span<Draft const> drafts) {
    others_.clear(), who_.clear(), hidden_.clear();
    std::int32_t most = 0;
    for (auto const& draft : drafts) {
      auto const& seen = at(draft.seen >= 0 ? draft.seen : draft.slot);
      // At the last token that stays, or where the search says that the last token was chosen.
      auto const line = draft.seen >= 0 ? draft.seen_line : draft.length - 1 - seen.first;
      if (line < 0 || static_cast<std::ptrdiff_t>(seen.vectors.size()) < (line + 1) * columns_) {
        others_.push_back(draft);
        continue;
      }
      auto const* const vector = seen.vectors.data() + line * columns_;
      hidden_.insert(hidden_.end(), vector, vector + columns_);
      who_.push_back(&draft);
      most = (std::max)(most, std::min<std::int32_t>(draft.count, heads_.size()));
    }
    if (most > 0) guess(most);
    if constexpr (ProposingModel<M>)
      if (!others_.empty() && sluice::proposes(std::as_const(this->model_)))
        this->model_.propose(std::span<Draft const>(others_));
  }

 private:
  struct Seen {
    std::int32_t first = 0;      // the token at which the first vector is
    std::vector<float> vectors;  // of the last row
  };

  Seen& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= seen_.size()) seen_.resize(i + 1);
    return seen_[i];
  }
  void forget(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) at(slot).vectors.clear();
  }

  void guess(std::int32_t heads) {
    auto const n = std::ssize(who_);
    auto const lines = static_cast<std::size_t>(n * heads);
    made_.resize(lines * static_cast<std::size_t>(columns_));
    for (std::int32_t i = 0; i < heads; ++i)
      heads_.apply(i, {hidden_.data(), n, columns_, columns_},
                   {made_.data() + i * n * columns_, n, columns_, columns_});
    auto const trees = std::ranges::any_of(who_, [](Draft const* draft) { return branches(*draft); });
    queries_.assign(lines, Query{.best = trees ? trees_.best : 1,
                                 .edits = never_,
                                 .stage = Stage::after_softmax,
                                 .normalise = trees && trees_.shape.nodes.empty()});
    groups_.assign(lines, Group{.lines = 1});
    auto const answer =
        expander_.expand(sluice::hidden(made_.data(), std::ssize(queries_), columns_), queries_, groups_);
    for (std::ptrdiff_t s = 0; s < n; ++s) {
      auto const& draft = *who_[static_cast<std::size_t>(s)];
      auto const place = [&](std::int32_t i) { return answer[static_cast<std::size_t>(i * n + s)].best; };
      if (branches(draft)) {
        branch(draft, heads, place);
        continue;
      }
      for (std::int32_t i = 0; i < (std::min)(heads, draft.count); ++i) {
        auto const best = place(i);
        if (best.empty()) break;
        draft.tokens->push_back(best[0].token);
      }
    }
  }

  static bool branches(Draft const& draft) { return draft.tree != nullptr && draft.tree->leaves > 1; }

  /// Builds a tree from what place(head) lists, best first.
  template <class F>
  void branch(Draft const& draft, std::int32_t heads, F&& place) {
    auto& tree = *draft.tree;
    auto const depth = (std::min)(heads, draft.count);
    auto const* nodes = &trees_.shape.nodes;
    if (nodes->empty())
      nodes = &growth_.grow({depth, tree.nodes, tree.leaves, tree.cost}, [&](std::int32_t i, std::int32_t rank) {
        auto const best = place(i);
        auto const r = static_cast<std::size_t>(rank);
        return rank < trees_.best && r < best.size() ? static_cast<double>(best[r].log_prob) : -1e31;
      });
    made_as_.assign(nodes->size(), -2);
    budget_.reset(tree.nodes, tree.leaves);
    for (std::size_t i = 0; i < nodes->size() && !budget_.over(); ++i) {
      auto const& node = (*nodes)[i];
      auto const behind = node.parent < 0 ? -1 : made_as_[static_cast<std::size_t>(node.parent)];
      if (behind == -2 || node.depth >= depth || place(node.depth).size() <= static_cast<std::size_t>(node.rank))
        continue;
      if (!budget_.admit(behind)) continue;
      made_as_[i] = budget_.size() - 1;
      draft.tokens->push_back(place(node.depth)[static_cast<std::size_t>(node.rank)].token);
      tree.parents.push_back(behind);
    }
  }

  H& heads_;
  E expander_;
  HeadTrees trees_;
  detail::TreeGrowth growth_;
  detail::TreeBudget budget_;
  std::vector<std::int32_t> made_as_;  // [node of a shape]: which guess; -2: none
  std::vector<Edit> never_;
  std::ptrdiff_t columns_ = 0;
  std::vector<Seen> seen_;         // [slot]
  std::vector<Draft const*> who_;  // drafts that heads guess for
  std::vector<Draft> others_;
  std::vector<float> hidden_, made_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
};

}  // namespace sluice::inline v0
