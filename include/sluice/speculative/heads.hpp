// SPDX-License-Identifier: Apache-2.0
/// \file
/// Guesses by heads over the model's own hidden vectors, as Medusa's: the heads of blockwise parallel decoding, and the shape of a
/// tree of guesses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/speculative/detail/tree_budget.hpp>
#include <sluice/speculative/speculated.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Heads of one hidden layer with a residual connection over a decoder's output (Stern, Shazeer and Uszkoreit 2018,
/// section 6): z_i = h + W2_i relu(W1_i h + b1_i) + b2_i; the model's own output layer turns z_i into scores. Head 0
/// guesses the token after the model's own next token. The next token itself comes from the unchanged model, without a
/// head.
class ResidualHeads {
 public:
  /// One head. \throws std::invalid_argument  if the shapes do not fit
  struct Head {
    PackedMatrix up, down;  // [inner, d] and [d, inner]
  };

  ResidualHeads() = default;
  SLUICE_LAZY explicit ResidualHeads(std::vector<Head> heads) : heads_(std::move(heads)) {
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      auto const& [up, down] = heads_[i];
      auto const name = "ResidualHeads: heads[" + std::to_string(i) + "]";
      require(up.inputs() == heads_[0].up.inputs(), name + ".up.inputs", up.inputs(), "must be that of the first");
      require(down.outputs() == up.inputs(), name + ".down.outputs", down.outputs(), "must be up.inputs");
      require(down.inputs() == up.outputs(), name + ".down.inputs", down.inputs(), "must be up.outputs");
    }
  }

  std::int32_t size() const { return static_cast<std::int32_t>(heads_.size()); }
  SLUICE_LAZY std::ptrdiff_t hidden_size() const { return heads_.empty() ? 0 : heads_[0].up.inputs(); }

  /// z = head `i` of h, both [n, d]; they must not overlap. Allocates nothing once warm.
  SLUICE_LAZY void apply(std::int32_t i, MatrixView<float const> h, MatrixView<float> z) {
    auto const& [up, down] = heads_[static_cast<std::size_t>(i)];
    auto const inner = up.outputs();
    if (inner_.size() < static_cast<std::size_t>(h.rows * inner))
      inner_.resize(static_cast<std::size_t>(h.rows * inner));
    MatrixView<float> const middle{inner_.data(), h.rows, inner, inner};
    up.multiply(h, middle, {.relu = true});
    for (std::ptrdiff_t row = 0; row < h.rows; ++row) std::copy(h[row].begin(), h[row].end(), z[row].begin());
    down.multiply({middle.data, middle.rows, middle.columns, middle.stride}, z, {.add = true});
  }

 private:
  std::vector<Head> heads_;
  std::vector<float> inner_;
};

/// A tree over guesses that are made independently for each place, as Medusa heads make them. A node is the rank-th
/// best guess for its place (its depth), whatever it follows. Nodes are in order of worth: the first n nodes form a
/// tree too.
struct TreeShape {
  /// One guess of the tree.
  struct Node {
    std::int32_t parent;  ///< a node before it; -1: the root
    std::int32_t depth;   ///< 0: the first place
    std::int32_t rank;    ///< 0: the best
    friend bool operator==(Node const&, Node const&) = default;
  };
  std::vector<Node> nodes{};

  /// The tree of all `paths`. Each path lists the ranks of its guesses from the first place on, as in Medusa's
  /// `medusa_choices`; prefixes of a path need not be listed.
  /// \throws std::invalid_argument  for a negative rank
  SLUICE_LAZY static TreeShape of(std::vector<std::vector<std::int32_t>> const& paths);

  /// `widths[i]` guesses behind each node at place i - 1: {4, 2, 1} has 4 + 8 + 8 nodes.
  /// \throws std::invalid_argument  for a width below 1
  SLUICE_LAZY static TreeShape full(std::span<std::int32_t const> widths);

  /// The `nodes` nodes that are most often right, by Medusa's greedy construction (Cai et al. 2024, section 2.3.3). It
  /// takes the probability that a path is right to be the product of its guesses' accuracies.
  /// \param accuracy  [place][rank]: how often that guess is right; a list ends where nothing is known
  /// \param leaves    the most paths
  /// \throws std::invalid_argument  for a number outside [0, 1]
  SLUICE_LAZY static TreeShape learn(std::span<std::vector<double> const> accuracy, std::int32_t nodes,
                                     std::int32_t leaves);

  SLUICE_LAZY std::int32_t leaves() const {
    std::vector<bool> inner(nodes.size());
    for (auto const& node : nodes)
      if (node.parent >= 0) inner[static_cast<std::size_t>(node.parent)] = true;
    return static_cast<std::int32_t>(std::count(inner.begin(), inner.end(), false));
  }
  std::int32_t depth() const {
    std::int32_t most = 0;
    for (auto const& node : nodes) most = (std::max)(most, node.depth + 1);
    return most;
  }
};

namespace detail {

/// Grows a tree best first: adds the node with the most probable path among those whose parent and better siblings are
/// in it.
class TreeGrowth {
 public:
  struct Bounds {
    std::int32_t depth = 0, nodes = 0, leaves = 1;
    double cost = 0;  ///< cost of a node, as a share of a step; > 0: stops when the next node is not worth it
  };

  /// \param log_prob  log_prob(depth, rank), at most 0; < -1e30 if there is no such guess
  template <class F>
  std::vector<TreeShape::Node> const& grow(Bounds const& bounds, F&& log_prob) {
    nodes_.clear(), heap_.clear();
    budget_.reset(bounds.nodes, bounds.leaves, bounds.cost);
    auto const add = [&](std::int32_t parent, std::int32_t depth, std::int32_t rank, double before) {
      if (depth >= bounds.depth) return;
      auto const own = static_cast<double>(log_prob(depth, rank));
      if (!(own > -1e30)) return;
      heap_.push_back({before + own, before, {parent, depth, rank}});
      std::ranges::push_heap(heap_, worse<>);
    };
    add(-1, 0, 0, 0);
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, worse<>);
      auto const [path, before, node] = heap_.back();
      heap_.pop_back();
      auto const chance = std::exp(path);
      if (budget_.over(chance)) break;
      if (!budget_.admit(node.parent, chance)) continue;
      nodes_.push_back(node);
      add(node.parent, node.depth, node.rank + 1, before);
      add(static_cast<std::int32_t>(nodes_.size()) - 1, node.depth + 1, 0, path);
    }
    return nodes_;
  }

 private:
  struct Waiting {
    double path, before;  // log-probability with it, and without it
    TreeShape::Node node;
  };
  SLUICE_LAZY static bool worse(Waiting const& a, Waiting const& b) {
    if (a.path != b.path) return a.path < b.path;
    return std::pair(a.node.depth, a.node.rank) > std::pair(b.node.depth, b.node.rank);
  }
  std::vector<Waiting> heap_;
  std::vector<TreeShape::Node> nodes_;
  TreeBudget budget_;
};

}  // namespace detail

template <class Void>
TreeShape TreeShape::of(std::vector<std::vector<std::int32_t>> const& paths) {
  TreeShape shape;
  for (auto const& path : paths) {
    std::int32_t parent = -1;
    for (std::size_t i = 0; i < path.size(); ++i) {
      require(path[i] >= 0, "TreeShape: rank", path[i], "must not be negative");
      Node const node{parent, static_cast<std::int32_t>(i), path[i]};
      auto const found = std::find(shape.nodes.begin(), shape.nodes.end(), node);
      parent = static_cast<std::int32_t>(found - shape.nodes.begin());
      if (found == shape.nodes.end()) shape.nodes.push_back(node);
    }
  }
  return shape;
}

template <class Void>
TreeShape TreeShape::full(std::span<std::int32_t const> widths) {
  TreeShape shape;
  std::size_t begin = 0, end = 0;
  for (std::size_t depth = 0; depth < widths.size(); ++depth) {
    require(widths[depth] >= 1, "TreeShape: width", widths[depth], "must be at least 1");
    auto const add = [&](std::int32_t parent) {
      for (std::int32_t rank = 0; rank < widths[depth]; ++rank)
        shape.nodes.push_back({parent, static_cast<std::int32_t>(depth), rank});
    };
    if (depth == 0) add(-1);
    for (auto parent = begin; parent < end; ++parent) add(static_cast<std::int32_t>(parent));
    begin = end, end = shape.nodes.size();
  }
  return shape;
}

template <class Void>
TreeShape TreeShape::learn(std::span<std::vector<double> const> accuracy, std::int32_t nodes, std::int32_t leaves) {
  for (auto const& place : accuracy)
    for (auto const x : place) require(x >= 0 && x <= 1, "TreeShape: accuracy", x, "must be in [0, 1]");
  detail::TreeGrowth growth;
  return {growth.grow({static_cast<std::int32_t>(accuracy.size()), nodes, leaves, 0},
                      [&](std::int32_t depth, std::int32_t rank) {
                        auto const& place = accuracy[static_cast<std::size_t>(depth)];
                        auto const i = static_cast<std::size_t>(rank);
                        return i < place.size() && place[i] > 0 ? std::log(place[i]) : -1e31;
                      })};
}

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

/// How DraftHeads make trees for a search that takes them.
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

/// A proposer of heads over the model's own hidden vectors (Stern, Shazeer and Uszkoreit 2018), for a model that answers
/// Hidden<float>. They guess from the hidden vector at the last token that stays, which the model's own step has already
/// computed. Guessing costs the heads and one pass of the output layer for all sentences and heads together, and no call
/// of the model.
///
/// `E` expands hidden vectors, as in the decoder: DenseProjection. An int8 or clustered projection guesses nearly as
/// well for less, since verification corrects it. It has no guess for a sentence whose last line has not been seen yet.
///
/// Refers to the heads, which must outlive it.
template <ProposalHeads H, class E>
class DraftHeads {
  static_assert(Expander<E, Hidden<float>>, "sluice: E does not expand hidden vectors");

 public:
  /// \throws std::invalid_argument  for trees that make no sense
  DraftHeads(H& heads, E expander, HeadTrees trees = {})
      : heads_(heads), expander_(std::move(expander)), trees_(std::move(trees)) {
    trees_.check();
  }

  /// \throws std::invalid_argument  for a projection of another vocabulary
  void bind(Vocabulary const& vocabulary) {
    if constexpr (requires { expander_.vocabulary_size(); })
      require(expander_.vocabulary_size() == vocabulary.size, "DraftHeads: projection.vocabulary_size()",
              expander_.vocabulary_size(), "must be that of the model, " + std::to_string(vocabulary.size));
    never_.clear();
    for (auto const token : vocabulary.never) never_.push_back(Edit::forbid(token));
  }
  void start(std::span<Slot const> slot_numbers) { forget(slot_numbers); }
  void release(std::span<Slot const> slot_numbers) { forget(slot_numbers); }

  template <class A>
  void observe(std::span<Row const> rows, A const& answer) {
    static_assert(std::same_as<A, Hidden<float>>, "sluice: DraftHeads want a model that answers Hidden<float>");
    columns_ = answer.columns;
    std::ptrdiff_t line = 0;
    for (auto const& row : rows) {
      auto& seen = at(row.to);
      seen.first = row.length + static_cast<std::int32_t>(row.tokens.size()) - row.lines;
      seen.vectors.clear();
      for (std::int32_t i = 0; i < row.lines; ++i, ++line)
        seen.vectors.insert(seen.vectors.end(), answer[line].begin(), answer[line].end());
    }
  }

  void propose(std::span<Draft const> drafts) {
    who_.clear(), hidden_.clear();
    std::int32_t most = 0;
    for (auto const& draft : drafts) {
      auto const& seen = at(draft.seen >= 0 ? draft.seen : draft.slot);
      // At the last token that stays, or where the search says that the last token was chosen.
      auto const line = draft.seen >= 0 ? draft.seen_line : draft.length - 1 - seen.first;
      if (line < 0 || static_cast<std::ptrdiff_t>(seen.vectors.size()) < (line + 1) * columns_) continue;
      auto const* const vector = seen.vectors.data() + line * columns_;
      hidden_.insert(hidden_.end(), vector, vector + columns_);
      who_.push_back(&draft);
      most = (std::max)(most, std::min<std::int32_t>(draft.count, heads_.size()));
    }
    if (most > 0) guess(most);
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
  std::vector<float> hidden_, made_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
};

}  // namespace sluice::inline v0
