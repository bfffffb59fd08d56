// SPDX-License-Identifier: Apache-2.0
// Drawn guesses under rules, and how a draft draws them.
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/detail/guess_tree.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/branching.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

// The next token depends only on the last one, so each context has its own counts.
Table const drawn_table{.size = 9, .scale = 3, .order = 1, .has_eos = false};
Table const drawn_draft{.size = 9, .scale = 3, .order = 0, .has_eos = false};

/// Allows a few tokens after 5 and 7, all after 4, only one after 8; otherwise it restricts nothing.
struct ByLast {
  using State = Token;
  static bool allows(Token last, Token next) {
    if (last == 8) return next == 4;
    return next >= 3 && ((last != 5 && last != 7) || next == 3 || next == 6 || next == 8);
  }
  State initial(Sentence const&) const { return 3; }
  State next(State, Token token) const { return token; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  std::shared_ptr<TokenSet const> may_follow(State const& last, std::int32_t) const {
    if (last == 3 || last == 6) return nullptr;
    TokenSet set(9);
    for (Token next = 3; next < 9; ++next)
      if (allows(last, next)) set.insert(next);
    return std::make_shared<TokenSet const>(std::move(set));
  }
  void require_possible(State const&, Output const&, std::int32_t) const {}
};

/// Draws with a draft that draws. Checks that what follows each token is distributed as in the model, restricted by
/// `allows(last, next)`, and that nothing else occurs. Returns tokens per block.
template <class S, class F>
double check_drawn(S const& search, F&& allows, std::size_t sentences = 300) {
  CheckedModel<TableModel<with_trees>> model(TableModel<with_trees>(drawn_table), with_trees);
  TableModel<everything> small(drawn_draft);
  Speculated drafted(model, DraftModel(small, {}, acceptance::Rejection{}));
  std::vector<TableRequest<S>> requests(sentences);
  for (std::size_t i = 0; i < sentences; ++i) requests[i] = {.source = 1, .seed = 1000 + i};
  std::vector<std::vector<std::int64_t>> counts(9, std::vector<std::int64_t>(9));
  std::size_t tokens = 0, blocks = 0;
  for (auto const& result : decode(drafted, requests, search, Batched{.size = 100})) {
    auto const& h = result.hypotheses.at(0);
    tokens += h.tokens.size(), blocks += h.blocks.size();
    for (std::size_t i = 1; i < h.tokens.size(); ++i)
      ++counts[static_cast<std::size_t>(h.tokens[i - 1])][static_cast<std::size_t>(h.tokens[i])];
  }
  CHECK(model.report() == "");
  std::size_t cells = 0;
  for (Token last = 3; last < 9; ++last) {
    std::vector<double> probabilities(9);
    drawn_table.log_probs(1, std::vector<Token>{last}, probabilities);
    double sum = 0;
    for (Token next = 0; next < 9; ++next) {
      auto& p = probabilities[static_cast<std::size_t>(next)];
      sum += p = allows(last, next) ? std::exp(p) : 0.0;
    }
    for (auto& p : probabilities) p /= sum;
    INFO("after " << last);
    check_distribution(counts[static_cast<std::size_t>(last)], probabilities, 0);
    cells += chi_squared(counts[static_cast<std::size_t>(last)], probabilities).cells;
  }
  CHECK(cells > 15);
  return static_cast<double>(tokens) / static_cast<double>(blocks);
}

/// What a draft draws after the start of a sentence.
struct DrawnGuesses {
  std::vector<Token> tokens{};
  DraftTree tree{};
  std::size_t calls = 0;  // of the draft model

  /// \param scale  of the draft: the larger, the more often sequences agree
  DrawnGuesses(double scale, std::uint64_t source, std::int32_t depth, DraftTree const& wanted) : tree(wanted) {
    TableModel<with_trees> model(drawn_table);
    using Small = CheckedModel<TableModel<everything>>;
    Small small(TableModel<everything>({.size = 9, .scale = scale, .has_eos = false}), everything);
    Speculated drafted(model, DraftModel(small, LogSoftmaxTopK{}, acceptance::Rejection{}));
    auto const* const pointer = &source;
    Slot const slot = 0;
    drafted.start(std::span(&pointer, 1), std::span(&slot, 1));
    std::array const pending{bos};
    Draft const draft{.pending = pending, .count = depth, .tokens = &tokens, .seed = source, .tree = &tree};
    drafted.propose(std::span(&draft, 1));
    calls = small.counters().steps;
  }
};

Blockwise<acceptance::Rejection> drawing(std::int32_t branches) {
  return {.block = 4, .length = {.max = 60}, .branches = branches};
}

}  // namespace

TEST_CASE("drawn guesses under a restricting rule: outputs are distributed as the model under it", "[blockwise]") {
  using Narrowed = Processed<Blockwise<acceptance::Rejection>>;
  auto const chain = check_drawn(Narrowed{drawing(1), ByLast{}}, ByLast::allows);
  auto const tree = check_drawn(Narrowed{drawing(4), ByLast{}}, ByLast::allows);
  CHECK(tree > chain);
}

TEST_CASE("rules around rules hold for drawn guesses", "[blockwise]") {
  using Twice = Processed<Processed<Blockwise<acceptance::Rejection>>>;
  for (std::int32_t const branches : {1, 3})
    check_drawn(Twice{Processed{drawing(branches), ForbidTokens{{3}}}, ForbidTokens{{8}}},
                [](Token, Token next) { return next > 3 && next < 8; });
}

TEST_CASE("every drawn guess is verified, also behind guesses that agree", "[blockwise]") {
  constexpr std::int32_t depth = 4, leaves = 3;
  std::size_t merged = 0;
  for (std::uint64_t source = 0; source < 20; ++source) {
    DrawnGuesses const drawn(6, source, depth, {.nodes = depth * leaves, .leaves = leaves, .draws = true});
    REQUIRE(std::ssize(drawn.tokens) == depth * leaves);
    detail::GuessTree tree;
    tree.build(drawn.tokens, drawn.tree.parents,
               {.depth = depth, .nodes = depth * leaves, .leaves = leaves, .vocabulary = 9});
    std::vector<std::int32_t> guesses;
    std::size_t kept = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) tree.draws(node, guesses), kept += guesses.size();
    CHECK(kept == drawn.tokens.size());
    merged += drawn.tokens.size() + 1 - tree.size();
  }
  CHECK(merged > 20);
}

TEST_CASE("a draft draws no more guesses than the search takes", "[blockwise]") {
  for (std::int32_t nodes = 1; nodes <= 14; ++nodes) {
    DrawnGuesses const drawn(3, 7, 4, {.nodes = nodes, .leaves = 3, .draws = true});
    auto const most = std::min(nodes, 12);
    CHECK(std::ssize(drawn.tokens) == most);
    CHECK(drawn.tree.parents.size() == drawn.tokens.size());
    CHECK(drawn.tree.drawn.size() == drawn.tokens.size());
    CHECK(static_cast<std::int32_t>(drawn.calls) == (most + 2) / 3);  // one for each level started
  }
}

TEST_CASE("drawn guesses that are cut short leave outputs distributed as the model", "[blockwise]") {
  for (std::int32_t const nodes : {2, 5}) {
    auto search = drawing(3);
    search.nodes = nodes;
    check_drawn(
        search, [](Token, Token next) { return next >= 3; }, 200);
  }
}

namespace {

bool all_identical(std::vector<Result> const& a, std::vector<Result> const& b) {
  return std::ranges::equal(a, b, [](Result const& x, Result const& y) { return identical(x, y); });
}

}  // namespace

TEST_CASE("drawn outputs of adaptive blocks depend on the seed alone", "[blockwise]") {
  std::vector<TableRequest<Blockwise<acceptance::Rejection>>> requests(16);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i] = {.source = 1, .seed = 500 + i};
  for (std::int32_t const branches : {1, 3}) {
    auto search = drawing(branches);
    search.adaptive = true;
    auto const outputs = [&](std::size_t batch) {
      TableModel<with_trees> model(drawn_table);
      TableModel<everything> small(drawn_draft);
      Speculated drafted(model, DraftModel(small, {}, acceptance::Rejection{}));
      return decode(drafted, requests, search, Batched{.size = batch});
    };
    auto const alone = outputs(1);
    CHECK(all_identical(outputs(5), alone));
    CHECK(all_identical(outputs(16), alone));
  }
}

namespace {

/// Reports that its guesses were drawn from invalid tokens.
struct FromNowhere : TableModel<with_trees> {
  Token odd;
  explicit FromNowhere(Token token) : TableModel<with_trees>(drawn_table), odd(token) {}
  void propose(std::span<Draft const> drafts) const {
    for (auto const& draft : drafts) {
      draft.tokens->push_back(4), draft.tree->parents.push_back(-1);
      draft.tree->drawn.push_back({0, 2}), draft.tree->candidates = {{4, -0.7F}, {odd, -0.7F}};
    }
  }
};

}  // namespace

TEST_CASE("a guess drawn from what is no token counts as one of which no distribution is told", "[blockwise]") {
  struct Silent : FromNowhere {
    Silent() : FromNowhere(-1) {}
    void propose(std::span<Draft const> drafts) const {
      for (auto const& draft : drafts) draft.tokens->push_back(4), draft.tree->parents.push_back(-1);
    }
  };
  std::vector<TableRequest<Blockwise<acceptance::Rejection>>> requests(8);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i] = {.source = 1, .seed = 500 + i};
  Silent silent;
  auto const expected = decode(silent, requests, drawing(1));
  for (Token const odd : {-1, 9, 100000}) {
    FromNowhere model(odd);
    CHECK(all_identical(decode(model, requests, drawing(1)), expected));
  }
}
