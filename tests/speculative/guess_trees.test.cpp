// SPDX-License-Identifier: Apache-2.0
// The parts of blocks without a model: trees of guesses and their rows, against plain accounts.
#include <sluice/core/plan.hpp>
#include <sluice/speculative/detail/guess_tree.hpp>
#include <sluice/speculative/detail/tree_rows.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

using detail::GuessTree;
using detail::TreeRows;
using Path = std::vector<Token>;

/// Guesses as paths from the last token.
struct PlainTree {
  std::vector<std::optional<Path>> taken;  // [guess]
  std::vector<Path> nodes{{}};             // preorder, siblings in the order in which they were guessed

  PlainTree(std::vector<Token> const& tokens, std::vector<std::int32_t> const& parents, GuessTree::Bounds const& bounds)
      : taken(tokens.size()) {
    std::map<std::int32_t, int> children;  // of a guess; -1: of the last token
    std::int32_t count = 0, paths = 0;
    std::vector<Path> found;
    for (std::int32_t i = 0; i < std::min(bounds.nodes, static_cast<std::int32_t>(tokens.size())); ++i) {
      auto const at = static_cast<std::size_t>(i);
      auto const parent = at < parents.size() ? parents[at] : i - 1;
      if (parent < -1 || parent >= i || (parent >= 0 && !taken[static_cast<std::size_t>(parent)])) continue;
      auto path = parent < 0 ? Path{} : *taken[static_cast<std::size_t>(parent)];
      path.push_back(tokens[at]);
      if (std::ssize(path) > bounds.depth || tokens[at] < 0 || tokens[at] >= bounds.vocabulary) continue;
      auto const opens = count == 0 || children[parent] > 0;
      if (count == bounds.nodes || (opens && paths == bounds.leaves)) continue;
      ++count, paths += opens, ++children[parent], taken[at] = path;
      if (std::ranges::find(found, path) == found.end()) found.push_back(path);
    }
    add(Path{}, found);
  }

  std::vector<std::size_t> kids(std::size_t node) const {
    std::vector<std::size_t> kids;
    for (std::size_t i = 1; i < nodes.size(); ++i)
      if (Path(nodes[i].begin(), nodes[i].end() - 1) == nodes[node]) kids.push_back(i);
    return kids;
  }
  std::vector<std::size_t> leaves() const {
    std::vector<std::size_t> leaves;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (kids(i).empty()) leaves.push_back(i);
    return leaves;
  }

 private:
  void add(Path const& path, std::vector<Path> const& found) {
    for (auto const& one : found)
      if (one.size() == path.size() + 1 && std::equal(path.begin(), path.end(), one.begin()))
        nodes.push_back(one), add(one, found);
  }
};

/// Valid and invalid guesses, and what a tree may keep of them.
struct Guessed {
  std::vector<Token> tokens;
  std::vector<std::int32_t> parents;
  GuessTree::Bounds bounds;

  explicit Guessed(std::mt19937_64& random) {
    auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
    bounds = {.depth = below(6), .nodes = below(18), .leaves = 1 + below(6), .vocabulary = 5};
    auto const wild = below(4) == 0;
    for (auto n = below(18); n > 0; --n) {
      auto const i = static_cast<std::int32_t>(tokens.size());
      tokens.push_back(wild && below(8) == 0 ? (below(2) == 0 ? -1 : 5) : below(5));
      parents.push_back(wild && below(6) == 0 ? below(2) == 0 ? -2 : i + below(3)
                        : below(3) == 0 ? i - 1
                                              : below(static_cast<std::uint64_t>(i) + 1) - 1);
    }
    if (below(4) == 0) parents.resize(static_cast<std::size_t>(below(parents.size() + 1)));
  }
};

template <class T>
std::vector<T> list(std::span<T const> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

TEST_CASE("a tree of guesses holds what makes sense of them, in preorder", "[guess_trees]") {
  std::mt19937_64 random(1);
  GuessTree tree;  // one object for all cases
  std::size_t branched = 0, merged = 0;
  for (int round = 0; round < 4000; ++round) {
    Guessed const guessed(random);
    PlainTree const plain(guessed.tokens, guessed.parents, guessed.bounds);
    tree.build(guessed.tokens, guessed.parents, guessed.bounds);
    INFO("round " << round);
    REQUIRE(tree.size() == plain.nodes.size());
    for (std::size_t node = 0; node < tree.size(); ++node) {
      auto const& path = plain.nodes[node];
      CHECK(tree.depth(node) == std::ssize(path));
      if (node > 0) {
        CHECK(tree.token(node) == path.back());
        CHECK(plain.nodes.at(tree.parent(node)) == Path(path.begin(), path.end() - 1));
      }
      auto const kids = plain.kids(node);
      CHECK(tree.leaf(node) == kids.empty());
      CHECK(std::ranges::equal(tree.kids(node), kids, [](auto a, auto b) { return static_cast<std::size_t>(a) == b; }));
      std::vector<Token> tokens;
      for (auto const kid : kids) tokens.push_back(plain.nodes[kid].back());
      CHECK(list(tree.kid_tokens(node)) == tokens);
      std::vector<std::int32_t> drawn{7}, expected;
      for (std::size_t i = 0; i < plain.taken.size(); ++i)
        if (plain.taken[i] && Path(plain.taken[i]->begin(), plain.taken[i]->end() - 1) == path)
          expected.push_back(static_cast<std::int32_t>(i));
      tree.draws(node, drawn);
      CHECK(drawn == expected);
      merged += drawn.size() > tokens.size();
      for (auto const guess : drawn)
        CHECK(plain.nodes.at(tree.node_of(guess)) == *plain.taken[static_cast<std::size_t>(guess)]);
    }
    auto const leaves = plain.leaves();
    CHECK(tree.leaves() == leaves.size());
    CHECK(tree.chain() == (leaves.size() == 1));
    CHECK(tree.first_path() == leaves.front());
    branched += leaves.size() > 2;
  }
  CHECK(branched > 500);
  CHECK(merged > 100);
}

TEST_CASE("rows feed every path of a tree, and ask about each of its nodes once", "[guess_trees]") {
  std::mt19937_64 random(2);
  std::size_t forks = 0, filled = 0;
  TreeRows used;
  for (int round = 0; round < 2000; ++round) {
    Guessed const guessed(random);
    GuessTree tree;
    tree.build(guessed.tokens, guessed.parents, guessed.bounds);
    PlainTree const plain(guessed.tokens, guessed.parents, guessed.bounds);
    auto const leaves = plain.leaves();
    std::vector<Token> pending;
    for (auto n = 1 + random() % 3; n > 0; --n) pending.push_back(static_cast<Token>(50 + n));
    TreeRows::Shape const shape{.trees = random() % 2 == 0, .alike = random() % 2 == 0};
    auto const held = static_cast<std::int32_t>(random() % 9);
    TreeRows fresh;
    auto& rows = random() % 2 == 0 ? fresh : used;
    StepPlan step;
    Plan plan(step, 0);
    rows.plan(plan, tree, held, pending, shape,
              [&](std::size_t node) { return Query{.best = 1 + static_cast<std::int32_t>(node)}; });
    INFO("round " << round << ", trees " << shape.trees << ", alike " << shape.alike);
    // What must be fed, row by row: tokens, their nodes, their depths.
    auto const one = shape.trees || leaves.size() == 1;
    std::size_t deepest = 0, together = 0, longest = 0;
    for (auto const& path : plain.nodes) deepest = std::max(deepest, path.size());
    REQUIRE(step.rows.size() == (one ? 1 : leaves.size()));
    REQUIRE(step.groups.size() == 1);
    CHECK(step.groups[0].lines == std::ssize(step.queries));
    std::size_t query = 0, node = 0;
    for (std::size_t r = 0; r < step.rows.size(); ++r) {
      auto const& row = step.rows[r];
      CHECK((row.from == 0 && row.to == static_cast<Slot>(r) && row.length == held));
      if (r > 0) CHECK(row.tokens.data() == step.rows[r - 1].tokens.data() + step.rows[r - 1].tokens.size());
      auto expected = pending;
      if (one) {
        for (std::size_t i = 1; i < plain.nodes.size(); ++i) expected.push_back(plain.nodes[i].back());
      } else {
        auto const& path = plain.nodes[leaves[r]];
        expected.insert(expected.end(), path.begin(), path.end());
      }
      auto const last = one ? plain.nodes.size() : leaves[r] + 1;
      auto const size = expected.size();
      if (!one && shape.alike) expected.resize(pending.size() + deepest, expected.back());
      CHECK(list(row.tokens) == expected);
      CHECK(row.lines == static_cast<std::int32_t>(last - node + expected.size() - size));
      filled += expected.size() - size;
      CHECK((row.depths != nullptr) == (leaves.size() > 1 && one));
      for (std::size_t i = 0; row.depths != nullptr && i < row.tokens.size(); ++i)
        CHECK(row.depths[i] ==
              static_cast<std::int32_t>(
                  i < pending.size() ? i : pending.size() - 1 + plain.nodes[i - pending.size() + 1].size()));
      for (std::int32_t line = 0; node < last; ++node, ++line, ++query) {
        CHECK(rows.line(node) == query);
        CHECK((rows.place(node).slot == static_cast<Slot>(r) && rows.place(node).line == line));
        CHECK(step.queries.at(query).best == 1 + static_cast<std::int32_t>(node));
      }
      for (auto fill = size; fill < expected.size(); ++fill, ++query)
        CHECK((step.queries.at(query).best == 0 && !step.queries[query].normalise));
      together += row.tokens.size(), longest = std::max(longest, row.tokens.size());
    }
    CHECK(query == step.queries.size());
    CHECK(node == plain.nodes.size());
    CHECK(TreeRows::tokens(tree, pending.size(), shape) == together);
    CHECK(TreeRows::longest(tree, pending.size(), shape) == longest);
    forks += step.rows.size() - 1;
  }
  CHECK(forks > 500);
  CHECK(filled > 100);
}
