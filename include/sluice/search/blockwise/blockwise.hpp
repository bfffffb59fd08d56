// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blockwise parallel decoding: guess several tokens, verify them in one call, keep those that are right.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/blockwise/acceptance_rules.hpp>
#include <sluice/search/blockwise/detail/adaptive_block.hpp>
#include <sluice/search/blockwise/detail/guess_tree.hpp>
#include <sluice/search/blockwise/detail/tree_rows.hpp>
#include <sluice/search/blockwise/rejection.hpp>
#include <sluice/search/common/bans.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/prefix.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Predict, verify, accept (Stern, Shazeer and Uszkoreit 2018). Every round feeds the model its own last token and the
/// guesses of a proposer behind it, as one row, and looks at all of its lines: guesses are kept up to the first that the
/// rule does not accept, there the model's own token takes its place. The cache is rolled back by the next row's length. One
/// model call a round, for any number of sentences, each with its own accepted length.
///
/// Who guesses is a wrapper of the model: WithHeads, WithDraft, WithLookup, or any model with `propose`. Without one this
/// is greedy decoding (or sampling) in steps of one token. Guesses that are no tokens of the vocabulary, or more than were
/// asked for, are dropped, with all behind them.
///
/// `block` counts as the paper does: the model's own token and block - 1 guesses. A round settles 1 to `block` tokens; see
/// Hypothesis::blocks.
///
/// Guesses may branch (`branches` > 1; SpecInfer: Miao et al. 2024; Medusa: Cai et al. 2024; EAGLE-2: Li et al. 2024): the rule
/// then goes down a tree of them, to the child that is the model's own choice. All of it is verified in one call: as one row
/// where the model takes trees, else as a fork for each path. What of a path that is not the first was kept is fed again in the
/// next round, before its guesses. With a rule that draws (Rejection) who guesses is asked to draw.
template <Acceptance A = Exact>
struct Blockwise {
  static constexpr bool draws = requires { requires A::draws; };  ///< whether guesses are to be drawn

  std::int32_t block = 4;  ///< tokens verified in a round at most, in a row; >= 1; 1: no guesses
  A accept{};
  std::int32_t minimum =
      1;  ///< tokens of a block that are kept whatever the rule says, if they are possible and eos is not
          ///< among them; >= 1. More than 1 is not lossless, and refused where the rule is
  LengthLimits length{};
  bool adaptive = false;  ///< choose the block of each round, up to `block`, by how many guesses of this sentence have
                          ///< been right so far
  /// adaptive: what a guess for each sentence, made and verified, adds to a step, as a part of it; > 0, or 0: the decoder
  /// measures it as it goes. A rule that is relaxed, or draws, must be told, since its output depends on the blocks.
  double cost = A::lossless && !draws ? 0 : 0.25;
  std::int32_t branches = 1;  ///< paths of guesses in a round, at most; >= 1. The sentence has as many slots
  std::int32_t nodes = 0;     ///< guesses in a round, at most, of a tree or a chain; 0: (block - 1) * branches

  static constexpr Abilities needs{.blocks = true, .roll_back = true};
  static constexpr bool chooses_probes = draws;  ///< rules (Ruled) act on what is asked for by name

  struct State {
    Bans bans;
    Prefix prefix;
    std::vector<Token> tokens;  // generated; the last is not in the slot yet
    std::vector<float> log_probs;
    std::vector<Token> guesses;      // of what follows
    DraftTree drafted;               // how they branch
    mutable detail::GuessTree tree;  // what of them makes sense
    mutable bool built = false;      // the tree is that of the guesses
    detail::TreeRows rows;           // of the round
    detail::TreeRows::Shape shape;
    std::vector<Token> pending;  // chosen, not in the slot yet: more than one only behind a path that was not the first
    std::vector<std::vector<Token>> names;  // [node], draws: tokens that it asks for
    std::vector<std::int32_t> drawn;        // scratch
    std::vector<std::int32_t> blocks;       // settled in each round
    std::vector<Candidate> scratch;         // of the rule
    [[no_unique_address]] detail::ScratchOf<A> own_scratch;
    Vocabulary const* vocabulary = nullptr;
    LengthLimits::Bounds bounds{};
    std::uint64_t seed = 0;
    detail::AdaptiveBlock adapting;
    std::int32_t held = 0;                               // tokens in the slot that stay
    std::int32_t wanted = 0;                             // guesses in a row, this round
    detail::TreeRows::Place seen{};                      // of the line that the last token was chosen from
    bool first = true, finished = false, ended = false;  // first: nothing has been told

    /// Of the output so far.
    std::int32_t size() const { return prefix.size() + static_cast<std::int32_t>(tokens.size()); }
  };

  void check() const {
    require(block >= 1, "block", block, "must be at least 1");
    require(minimum >= 1 && minimum <= block, "minimum", minimum, "must be between 1 and the block");
    require(minimum == 1 || !A::lossless, "minimum", minimum,
            "keeps tokens that the model would not have given: choose TopK or Distance to say so");
    require(cost >= 0 && std::isfinite(cost), "cost", cost, "must be a number >= 0");
    require(cost > 0 || (A::lossless && !draws), "cost", cost,
            "must be given: what a rule keeps that is relaxed, or draws, would depend on the time");
    require(branches >= 1, "branches", branches, "must be at least 1");
    require(nodes >= 0, "nodes", nodes, "must not be negative");
    accept.check(), length.check();
  }
  std::int32_t slot_count() const { return branches; }

  void begin(State& s, Sentence const& sentence) const {
    s.bounds = length.of(sentence);
    s.bans.reset(*sentence.vocabulary);
    s.prefix = Prefix(sentence);
    s.vocabulary = sentence.vocabulary, s.seed = sentence.seed;
    s.shape = {.trees = sentence.abilities.trees, .alike = !sentence.abilities.ragged};
    s.tokens.clear(), s.log_probs.clear(), s.guesses.clear(), s.blocks.clear(), s.drafted.clear();
    s.adapting.reset(), s.built = false;
    s.pending.assign(1, sentence.last), s.held = sentence.held;
    s.first = true, s.finished = s.ended = false;
  }

  void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    build(s);
    if (s.guesses.size() > 1) s.adapting.count_guesses(s.tree.size() - 1, s.wanted);
    if constexpr (draws) name(s);
    s.rows.plan(plan, s.tree, s.held, s.pending, s.shape, [&](std::size_t node) {
      auto q = query(s, s.size() + s.tree.depth(node));
      // Of a guess that may be kept although it is not among the best, the log-probability is wanted.
      if constexpr (draws) A::ask(q, s.names[node]);
      else if (!A::lossless) q.probes = s.tree.kid_tokens(node);
      return q;
    });
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    s.held += static_cast<std::int32_t>(s.pending.size());
    s.pending.clear();
    auto const opening = std::exchange(s.first, false);
    std::int32_t settled = opening ? 0 : 1;  // the last token, which was the model's own
    auto const first_path = s.tree.first_path();
    for (std::size_t node = 0;; ++settled) {
      auto const line = answer[s.rows.line(node)];
      // What the row of the first round begins with is the loop's affair: it may be the whole prefix.
      s.seen = opening ? detail::TreeRows::Place{} : s.rows.place(node);
      auto const [kid, token] = choose(s, line, node, settled);
      if (kid < 0) {
        if (settled > 0) s.blocks.push_back(settled);
        return take(s, token);
      }
      node = static_cast<std::size_t>(s.tree.kids(node)[static_cast<std::size_t>(kid)]);
      if (node <= first_path) ++s.held;
      else s.pending.push_back(token.token);
      if (keep(s, token)) {
        s.blocks.push_back(settled + 1);
        return s.ended = true;
      }
    }
  }

  /// How many guesses in a row the next round wants.
  std::int32_t wanted(State const& s) const {
    auto const most = this->most(s);
    return adaptive ? s.adapting.best(most) : most;
  }

  bool draft(State& s, Draft& draft) const {
    s.built = false;
    if (s.ended) return false;
    s.adapting.set_cost(cost > 0 ? cost : draft.added >= 0 ? draft.added : 0.25);
    auto count = wanted(s);
    if (adaptive && cost == 0 && draft.explore) count = (std::max)(count, (std::min)(1, most(s)));
    s.adapting.ask(count), s.wanted = count;
    if (branches > 1 || draws) {
      s.drafted.nodes = most_nodes(count), s.drafted.leaves = branches, s.drafted.draws = draws;
      s.drafted.cost = adaptive ? s.adapting.cost() : 0;
      draft.tree = &s.drafted;
      if (s.seen.slot >= 0) draft.seen = draft.slot + s.seen.slot, draft.seen_line = s.seen.line;
    }
    draft.length = s.held, draft.pending = s.pending, draft.count = count;
    draft.tokens = &s.guesses, draft.seed = s.seed, draft.position = s.size();
    return count > 0;
  }

  Progress progress(State const& s) const {
    if (!s.built) build(s);
    auto const pending = s.pending.size();
    return {s.held, 1, static_cast<std::int32_t>(detail::TreeRows::tokens(s.tree, pending, s.shape)),
            static_cast<std::int32_t>(detail::TreeRows::longest(s.tree, pending, s.shape))};
  }

  void settled(State& s, std::vector<Token>& tokens) const { tokens = s.tokens; }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (s.ended && !s.finished && s.size() < s.bounds.max)
      return result.fail(Failure::no_token_left, "every token was impossible");
    auto& h = result.hypotheses.emplace_back();
    h.tokens = s.tokens, h.log_probs = s.log_probs, h.finished = s.finished, h.blocks = s.blocks;
    h.log_prob = s.prefix.log_prob();
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = h.log_prob;
  }

 private:
  Query query(State const& s, std::int32_t position) const {
    Query q{.edits = s.bans.edits(position < s.bounds.min)};
    accept.ask(q, s.seed, position, s.vocabulary->size);
    return q;
  }
  static bool is_eos(State const& s, Token token) { return s.vocabulary->ends(token); }

  std::int32_t most(State const& s) const {
    auto const most = (std::max)(0, (std::min)(block - 1, s.bounds.max - s.size() - 1));
    return branches == 1 && nodes > 0 ? (std::min)(most, nodes) : most;
  }
  /// Guesses, if so many are wanted in a row.
  std::int32_t most_nodes(std::int32_t count) const {
    if (branches == 1) return count;
    if (nodes == 0 || block <= 1) return count * branches;
    return static_cast<std::int32_t>((static_cast<std::int64_t>(nodes) * count + block - 2) / (block - 1));
  }

  /// Takes what makes sense of the guesses.
  void build(State const& s) const {
    auto const most = this->most(s);
    s.tree.build(s.guesses, s.drafted.parents,
                 {.depth = most, .nodes = most_nodes(most), .leaves = branches, .vocabulary = s.vocabulary->size});
    s.built = true;
  }

  /// The tokens whose probabilities decide about guesses.
  void name(State& s) const {
    A::drop_nonsense(s.drafted, s.vocabulary->size);
    if (s.names.size() < s.tree.size()) s.names.resize(s.tree.size());
    for (std::size_t node = 0; node < s.tree.size(); ++node) {
      s.tree.draws(node, s.drawn);
      A::name(s.drawn, s.guesses, s.drafted, s.names[node]);
    }
  }

  struct Choice {
    std::int32_t kid;  // the child of the node that is kept, or -1: the token is the model's own
    Candidate token;
  };
  /// What comes behind a node.
  Choice choose(State& s, Line const& line, std::size_t node, std::int32_t settled) const {
    auto const kids = s.tree.kid_tokens(node);
    auto const place = [&](Token token) {
      auto const found = std::find(kids.begin(), kids.end(), token);
      return found == kids.end() ? -1 : static_cast<std::int32_t>(found - kids.begin());
    };
    Candidate own;
    if constexpr (draws) {
      s.tree.draws(node, s.drawn);
      own = accept.choose(line, s.names[node], s.drawn, s.guesses, s.drafted, s.seed, s.size(), s.own_scratch);
    } else own = accept.own(line, s.seed, s.size(), s.scratch);
    if (kids.empty()) return {-1, own};
    auto kept = place(own.token);  // the model's own before others that may stand in its place
    auto const possible = [&](std::int32_t i) {
      return A::lossless || line.probes[static_cast<std::size_t>(i)] > -std::numeric_limits<float>::infinity();
    };
    auto right = kept >= 0;
    for (std::int32_t i = 0; !A::lossless && kept < 0 && i < std::ssize(kids); ++i) {
      if (!accept.accepts(line, own, kids[static_cast<std::size_t>(i)])) continue;
      right = true;
      if (possible(i)) kept = i;
    }
    s.adapting.count(right, node == 0);
    if (kept < 0 && settled < minimum && !is_eos(s, kids[0]) && possible(0)) kept = 0;
    if (kept < 0) return {-1, own};
    auto const i = static_cast<std::size_t>(kept);
    return {kept, {kids[i], A::lossless ? own.log_prob : line.probes[i]}};
  }

  /// One token more; whether the sentence is over.
  bool keep(State& s, Candidate token) const {
    s.tokens.push_back(token.token), s.log_probs.push_back(token.log_prob);
    s.finished = is_eos(s, token.token);
    auto const full = s.size() >= s.bounds.max;
    if (full && s.vocabulary->eos.empty()) s.finished = true;
    return s.finished || full;
  }
  /// The model's own token, with which a round ends.
  bool take(State& s, Candidate own) const {
    s.guesses.clear(), s.drafted.clear(), s.built = false;
    if (own.token < 0) return s.ended = true;
    s.pending.push_back(own.token);
    if (keep(s, own)) {
      s.blocks.push_back(1);
      return s.ended = true;
    }
    return false;
  }
};

}  // namespace sluice::inline v0
