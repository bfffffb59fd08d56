// SPDX-License-Identifier: Apache-2.0
/// \file
/// One sentence of a Blockwise without a decoder, with a plain account of its expected drafts, plans and results. Trees
/// of guesses, their rows and the rules are taken from the library.
#pragma once

#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>
#include <support/told_blocks.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

/// One sentence of a Blockwise, in terms of tokens.
template <class A>
struct BlockAccount {
  static constexpr bool draws = Blockwise<A>::draws;
  static constexpr float impossible = -std::numeric_limits<float>::infinity();
  using Tree = detail::GuessTree;
  using Rows = detail::TreeRows;

  Blockwise<A> const& search;
  ToldBlocks const& told;
  std::mt19937_64& random;
  typename Blockwise<A>::State& state;
  SeenBlocks& seen;
  std::int32_t min, max;
  std::vector<Token> tokens{}, pending{told.sentence.last}, guesses{};
  std::vector<float> log_probs{};
  std::vector<std::int32_t> blocks{};
  DraftTree drafted{};
  detail::AdaptiveBlock adapting{};
  std::int32_t held = told.sentence.held, wanted = 0;
  bool first = true, ended = false, stuck = false;
  Rows::Place place{-1, 0};

  std::int32_t size() const { return static_cast<std::int32_t>(told.prefix.size() + tokens.size()); }
  bool is_end(Token token) const { return token == 1 && !told.vocabulary.eos.empty(); }
  std::int32_t below(std::int32_t n) const {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  }

  /// The number of guesses on one path that there is room for: the token after them is the last.
  std::int32_t most() const {
    auto room = std::max(0, std::min(search.block - 1, max - size() - 1));
    if (search.branches == 1 && search.nodes > 0) room = std::min(room, search.nodes);
    return room;
  }
  /// A tree's share of its guesses, rounded up.
  std::int32_t most_nodes(std::int32_t count) const {
    if (search.branches == 1) return count;
    if (search.nodes == 0 || search.block == 1) return count * search.branches;
    auto const levels = search.block - 1;
    return (search.nodes * count) / levels + ((search.nodes * count) % levels != 0 ? 1 : 0);
  }
  Tree tree() const {
    Tree tree;
    tree.build(guesses, drafted.parents,
               {.depth = most(), .nodes = most_nodes(most()), .leaves = search.branches, .vocabulary = 9});
    return tree;
  }
  Rows::Shape shape() const {
    return {.trees = told.sentence.abilities.trees, .alike = !told.sentence.abilities.ragged};
  }

  /// Requests guesses, and makes some.
  void draft() {
    if (below(3) == 0) static_cast<void>(search.progress(state));  // it may be called at any time
    std::vector<double> costs(16), rates(16);                      // as a decoder may have measured them
    for (auto& one : costs) one = std::array{-1.0, 0.0, 0.02, 0.3}[static_cast<std::size_t>(below(4))];
    for (auto& one : rates) one = 0.25 * below(5);
    Draft draft{.slot = 20, .measure = below(3) == 0 ? below(6) : -1};
    if (below(4) != 0) draft.costs = costs, draft.rates = rates;
    auto const some = search.draft(state, draft);
    auto const round = adapting.round();
    CHECK((draft.verified == round.verified && draft.right == round.right && draft.most == most()));
    adapting.begin_round();
    auto cost = search.cost > 0 ? search.cost : 0.25;
    wanted = most();
    if (search.adaptive) {
      adapting.set_cost(cost);
      if (search.cost > 0 || draft.costs.empty()) {
        wanted = adapting.best(most());
      } else {
        wanted = adapting.best(most(), costs, rates);
        if (draft.measure >= 0) wanted = std::min(draft.measure, most()), ++seen.measured;
        auto const g = static_cast<std::size_t>(std::max(wanted, 1));
        if (costs[g - 1] >= 0) cost = costs[g - 1] / static_cast<double>(g);
      }
    }
    adapting.ask(wanted);
    CHECK(some == (wanted > 0));
    CHECK(draft.count == wanted);
    CHECK((draft.length == held && std::ranges::equal(draft.pending, pending)));
    CHECK((draft.seed == told.sentence.seed && draft.position == size()));
    REQUIRE((draft.tokens != nullptr && draft.tokens->empty()));
    auto const trees = search.branches > 1 || draws;
    REQUIRE((draft.tree != nullptr) == trees);
    if (trees) {
      CHECK((draft.tree->nodes == most_nodes(wanted) && draft.tree->leaves == search.branches));
      CHECK((draft.tree->draws == draws && draft.tree->cost == (search.adaptive ? cost : 0)));
      CHECK((draft.tree->parents.empty() && draft.tree->drawn.empty() && draft.tree->candidates.empty()));
      CHECK(draft.seen == (place.slot < 0 ? -1 : 20 + place.slot));
      if (place.slot >= 0) CHECK(draft.seen_line == place.line);
    }
    if (!some) return;
    make_guesses(random, below(8) == 0 ? 0 : below(search.block * search.branches + 2), trees, draws, guesses, drafted);
    *draft.tokens = guesses;
    if (trees)
      draft.tree->parents = drafted.parents, draft.tree->drawn = drafted.drawn,
      draft.tree->candidates = drafted.candidates;
  }

  /// Compares the plan and the progress with the expected ones, and answers.
  bool step() {
    auto const now = tree();
    if (guesses.size() > 1) adapting.count_guesses(now.size() - 1, wanted);
    if constexpr (draws) A::drop_nonsense(drafted, 9);
    std::vector<std::vector<Token>> names(now.size());
    std::vector<std::vector<std::int32_t>> followers(now.size());
    auto const looks = below(3) != 0;
    auto const progress = looks ? search.progress(state) : Progress{};
    StepPlan wants, expects;
    Plan plan(wants, 0), expected(expects, 0);
    search.plan(state, plan);
    Rows rows;
    std::array<Edit, 3> const bans{Edit::forbid(0), Edit::forbid(8), Edit::forbid(1)};
    auto const allowed = [&](Token token, std::size_t node) {
      return token > 0 && token < 8 && !(is_end(token) && size() + now.depth(node) < min);
    };
    rows.plan(expected, now, held, pending, shape(), [&](std::size_t node) {
      auto const position = size() + now.depth(node);
      Query q{.edits = std::span(bans).first(position < min && !told.vocabulary.eos.empty() ? 3 : 2)};
      search.accept.ask(q, told.sentence.seed, position, 9);
      if constexpr (draws) {
        now.draws(node, followers[node]);
        A::name(followers[node], guesses, drafted, names[node]);
        A::ask(q, names[node]);
      } else if (!A::lossless) {
        q.probes = now.kid_tokens(node);
      }
      return q;
    });
    auto const fed = static_cast<std::int32_t>(Rows::tokens(now, pending.size(), shape()));
    if (looks) CHECK((progress.length == held && progress.width == 1 && progress.rows == fed));
    if (looks) CHECK(progress.block == static_cast<std::int32_t>(Rows::longest(now, pending.size(), shape())));
    check_same_plans(wants, expects);
    seen.forked += wants.rows.size() - 1;
    std::vector<Expansion::Entry> entries(wants.queries.size());
    std::vector<Candidate> best;
    std::vector<float> probes;
    for (std::size_t node = 0; node < now.size(); ++node) {
      auto const& query = wants.queries[rows.line(node)];
      auto& entry = entries[rows.line(node)];
      entry.best = best.size(), entry.probes = probes.size();
      auto const kids = now.kid_tokens(node);
      std::vector<Token> order;
      if (!kids.empty() && below(3) != 0) order.push_back(kids[random() % kids.size()]);
      while (order.size() < 7) order.push_back(1 + below(7));
      if (draws) order = {2, 3, 4, 5, 6, 7, 1};  // one without a name must be among them
      std::vector<Token> listed;
      for (auto const token : order)
        if (allowed(token, node) && std::ranges::find(listed, token) == listed.end() && std::ssize(listed) < query.best)
          listed.push_back(token);
      if (below(50) == 0) listed.clear();
      for (auto const token : listed) best.push_back({token, -0.5f - static_cast<float>(best.size()) / 8});
      for (auto const token : query.probes)
        probes.push_back(allowed(token, node) && below(9) != 0 ? -0.25f * static_cast<float>(1 + below(8)) - 1
                                                               : impossible);
      entry.best_count = listed.size(), entry.probe_count = query.probes.size();
    }
    Expansion const answer(entries, best, probes);
    auto const over = search.advance(state, answer);
    tell(now, rows, answer, names, followers);
    CHECK(over == ended);
    return over;
  }

  /// Computes the expected result of a round.
  void tell(Tree const& now, Rows const& rows, Expansion const& answer, std::vector<std::vector<Token>> const& names,
            std::vector<std::vector<std::int32_t>> const& followers) {
    held += static_cast<std::int32_t>(pending.size());
    pending.clear();
    std::int32_t settled = first ? 0 : 1;
    std::size_t node = 0;
    std::vector<Candidate> scratch;
    for (;;) {
      auto const line = answer[rows.line(node)];
      place = first ? Rows::Place{-1, 0} : rows.place(node);
      auto const kids = now.kid_tokens(node);
      Candidate own{};
      if constexpr (draws) {
        typename A::Scratch memory;
        own = search.accept.choose(line, names[node], followers[node], guesses, drafted, told.sentence.seed, size(),
                                   memory);
      } else {
        own = search.accept.own(line, told.sentence.seed, size(), scratch);
      }
      std::vector<std::size_t> right, possible;  // among the children
      for (std::size_t i = 0; i < kids.size(); ++i) {
        if (A::lossless ? kids[i] == own.token : search.accept.accepts(line, own, kids[i])) right.push_back(i);
        if (A::lossless || line.probes[i] > impossible) possible.push_back(i);
      }
      auto const is_possible = [&](std::size_t i) { return std::ranges::find(possible, i) != possible.end(); };
      if (!kids.empty()) adapting.count(!right.empty() || std::ranges::find(kids, own.token) != kids.end(), node == 0);
      auto kept = static_cast<std::size_t>(std::ranges::find(kids, own.token) - kids.begin());
      if (kept == kids.size())
        for (auto const i : right)
          if (kept == kids.size() && is_possible(i)) kept = i;
      if (kept == kids.size() && !kids.empty()) {
        if (settled < search.minimum && !is_end(kids[0]) && is_possible(0)) kept = 0, ++seen.forced;
        else ++seen.lost;
      }
      first = false;
      if (kept == kids.size()) {
        if (settled > 0) blocks.push_back(settled);
        guesses.clear(), drafted.clear();
        if (own.token < 0) ended = stuck = true;
        else if (add(own), pending.push_back(own.token); ended) blocks.push_back(1);
        return;
      }
      ++settled, ++seen.kept;
      node = static_cast<std::size_t>(now.kids(node)[kept]);
      if (pending.empty() && node <= now.first_path()) ++held;
      else pending.push_back(kids[kept]);
      add({kids[kept], A::lossless ? own.log_prob : line.probes[kept]});
      if (ended) return blocks.push_back(settled);
    }
  }
  void add(Candidate token) {
    tokens.push_back(token.token), log_probs.push_back(token.log_prob);
    ended = is_end(token.token) || size() == max;
  }

  void check(Result& result) {
    std::vector<Token> settled{7, 7, 7};
    search.settled(state, settled);
    CHECK(settled == tokens);
    result.failure = Failure::none;  // set by the decoding loop
    search.finish(state, result);
    REQUIRE(result.ok() == !stuck);
    REQUIRE(result.hypotheses.size() == (stuck ? 0 : 1));
    auto const end = !tokens.empty() && is_end(tokens.back()), full = size() == max;
    ++(end ? seen.ended : full ? seen.full : stuck ? seen.stuck : seen.left);
    if (stuck) return;
    auto const& h = result.hypotheses[0];
    CHECK((h.tokens == tokens && h.log_probs == log_probs && h.blocks == blocks));
    auto log_prob = told.before;
    for (auto const x : log_probs) log_prob += static_cast<double>(x);
    CHECK((h.log_prob == log_prob && h.score == log_prob));
    CHECK(h.finished == (end || (full && max > 0 && told.vocabulary.eos.empty())));
  }
};

}  // namespace sluice::test
