// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blockwise parallel decoding (speculative decoding): guess several tokens, verify them in one call, keep the right
/// ones.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/single_output.hpp>
#include <sluice/search/length.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/detail/adaptive_block.hpp>
#include <sluice/speculative/detail/guess_tree.hpp>
#include <sluice/speculative/detail/marked_acceptance.hpp>
#include <sluice/speculative/detail/tree_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Predict, verify, accept (Stern, Shazeer and Uszkoreit 2018). Every round feeds the model, as one row, its own last
/// token followed by a proposer's guesses, and looks at all lines. Guesses are kept up to the first that the rule
/// rejects; the model's own token takes its place. The KV cache is rolled back by the next row's length. One model call
/// per round, for any number of sentences; each sentence has its own accepted length.
///
/// The model brings proposers (Speculated: DraftModel, DraftHeads, PromptLookup, SuffixDecoding), or has `propose`
/// itself. Without one this is greedy decoding (or sampling) in steps of one token. Guesses outside the vocabulary,
/// or beyond the number requested, are dropped, along with all that follow them.
///
/// `block` counts as in the paper: the model's own token plus block - 1 guesses. A round settles 1 to `block` tokens;
/// see Hypothesis::blocks.
///
/// Guesses may form a tree (`branches` > 1; SpecInfer: Miao et al. 2024; Medusa: Cai et al. 2024; EAGLE-2: Li et al.
/// 2024): the rule then walks down the tree to the child that the model itself chooses. The whole tree is verified in
/// one call: as one row where the model takes trees, otherwise with a fork for each path. If the accepted path is not
/// the first, its tokens are fed again in the next round, before the guesses. With a rule that draws (acceptance::Rejection), the
/// proposer is asked to draw its guesses.
template <Acceptance A = acceptance::Exact>
struct Blockwise {
  static constexpr bool draws = requires { requires A::draws; };  ///< whether guesses are to be drawn
  static constexpr bool marks = detail::MarkingAcceptance<A>;     ///< whether the rule takes a Watermark

  std::int32_t block = 4;  ///< maximum number of tokens verified in a round on one path; >= 1; 1: no guesses
  A accept{};
  std::int32_t minimum =
      1;  ///< tokens of a block that are kept regardless of the rule, if they are possible and eos is not among them;
          ///< >= 1. More than 1 is not lossless, and is refused where the rule is
  LengthLimits length{};
  bool adaptive = false;  ///< choose the block size of each round, up to `block`, by how many of this sentence's
                          ///< guesses have been right so far
  /// adaptive: the cost of drafting and verifying one guess per sentence, as a fraction of a step; > 0, or 0: the
  /// decoder measures it at run time. A rule that is relaxed, or draws, needs a fixed value, since its output depends
  /// on the block sizes.
  double cost = A::lossless && !draws ? 0 : 0.25;
  std::int32_t branches = 1;  ///< maximum number of paths of guesses per round; >= 1. The sentence has as many slots
  std::int32_t nodes = 0;     ///< maximum number of guesses per round, in a tree or a chain; 0: (block - 1) * branches

  static constexpr Abilities needs{.blocks = true, .roll_back = true};
  static constexpr bool chooses_probes = draws;  ///< processors edit the probes

  struct State : detail::SingleOutput {  // the last token is not in the slot yet
    std::vector<Token> guesses;          // for the tokens that follow
    DraftTree drafted;                   // how they branch
    mutable detail::GuessTree tree;      // the valid part of the guesses
    mutable bool built = false;          // whether the tree matches the guesses
    detail::TreeRows rows;               // of the round
    detail::TreeRows::Shape shape;
    std::vector<Token> pending;  // chosen, but not in the slot yet: more than one only after a path that was not the
                                 // first
    std::vector<std::vector<Token>> names;  // [node], draws: the tokens it probes
    std::vector<std::int32_t> drawn;        // scratch
    std::vector<std::int32_t> blocks;       // tokens settled in each round
    std::vector<Candidate> scratch;         // of the rule
    [[no_unique_address]] detail::ScratchOf<A> own_scratch;
    [[no_unique_address]] detail::MarksOf<A> marks;
    std::uint64_t seed = 0;
    detail::AdaptiveBlock adapting;
    std::int32_t held = 0;           // tokens in the slot that remain
    std::int32_t wanted = 0;         // guesses on one path, this round
    detail::TreeRows::Place seen{};  // the line that the last token was chosen from
    bool first = true;               // no answer yet
  };

  void check() const {
    require(block >= 1, "block", block, "must be at least 1");
    require(minimum >= 1 && minimum <= block, "minimum", minimum, "must be between 1 and the block");
    require(
        minimum == 1 || !A::lossless, "minimum", minimum,
        "keeps tokens that the model would not have given: choose acceptance::TopK or acceptance::Distance to say so");
    require(cost >= 0 && std::isfinite(cost), "cost", cost, "must be a number >= 0");
    require(cost > 0 || (A::lossless && !draws), "cost", cost,
            "must be given: what a rule keeps that is relaxed, or draws, would depend on the time");
    detail::require_slots("branches", branches);
    require(nodes >= 0, "nodes", nodes, "must not be negative");
    accept.check(), length.check();
  }
  std::int32_t slot_count() const { return branches; }

  void begin(State& s, Sentence const& sentence) const {
    s.begin(sentence, length);
    s.seed = sentence.seed;
    s.shape = {.trees = sentence.abilities.trees, .alike = !sentence.abilities.ragged};
    s.guesses.clear(), s.blocks.clear(), s.drafted.clear();
    s.adapting.reset(), s.built = false;
    s.pending.assign(1, sentence.last), s.held = sentence.held;
    if constexpr (marks) {
      s.marks.marker = detail::marker_of(accept);
      s.marks.text.assign(sentence.prefix.begin(), sentence.prefix.end());
    }
    s.first = true;
  }

  void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    build(s);
    if (s.guesses.size() > 1) s.adapting.count_guesses(s.tree.size() - 1, s.wanted);
    if constexpr (draws) name(s);
    s.rows.plan(plan, s.tree, s.held, s.pending, s.shape, [&](std::size_t node) {
      auto q = query(s, s.size() + s.tree.depth(node));
      // A guess may be accepted although it is not among the best, so its log-probability is needed.
      if constexpr (draws) A::ask(q, s.names[node]);
      else if (!A::lossless) q.probes = s.tree.kid_tokens(node);
      if constexpr (marks)
        if (s.marks.marker.on())
          detail::ask_marked(accept, q, s.marks.marker, mark(s, text_to(s, node), s.tree.depth(node)),
                             s.vocabulary->size);
      return q;
    });
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    s.held += static_cast<std::int32_t>(s.pending.size());
    s.pending.clear();
    auto const opening = std::exchange(s.first, false);
    std::int32_t settled = opening ? 0 : 1;  // the last token, the model's own
    auto const first_path = s.tree.first_path();
    for (std::size_t node = 0;; ++settled) {
      auto const line = answer[s.rows.line(node)];
      // The decoding loop decides what the first round's row begins with: it may be the whole prefix.
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
        return true;
      }
    }
  }

  bool draft(State& s, Draft& draft) const {
    s.built = false;
    if (s.ended) return false;
    auto const [verified, right] = s.adapting.round();
    draft.verified = verified, draft.right = right, draft.most = most(s);
    s.adapting.begin_round();
    auto const count = wanted(s, draft);
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
    if (auto* const h = s.write(result)) h->blocks = s.blocks;
  }

 private:
  Query query(State const& s, std::int32_t position) const {
    Query q{.edits = s.edits(position)};
    accept.ask(q, s.seed, position, s.vocabulary->size);
    return q;
  }
  /// The output up to a node of the guesses, prefix included.
  std::span<Token const> text_to(State& s, std::size_t node) const requires marks {
    auto& path = s.marks.path;
    path = s.marks.text;
    auto const depth = static_cast<std::size_t>(s.tree.depth(node));
    path.resize(path.size() + depth);
    for (auto i = path.size(); node != 0; node = s.tree.parent(node)) path[--i] = s.tree.token(node);
    return path;
  }
  /// The mark of the token after `text`, which is `ahead` guesses longer than the output.
  detail::Mark mark(State const& s, std::span<Token const> text, std::int32_t ahead) const requires marks {
    return detail::mark_of(accept, s.marks.marker, text, s.seed, s.size() + ahead);
  }
  /// The model's own choice after the output.
  Candidate own(State& s, Line const& line) const {
    if constexpr (marks)
      if (s.marks.marker.on())
        return detail::own_marked(accept, line, s.seed, s.size(), s.scratch, s.marks.marker, mark(s, s.marks.text, 0),
                                  s.marks.weights);
    return accept.own(line, s.seed, s.size(), s.scratch);
  }
  /// Appends a token to the output.
  bool keep(State& s, Candidate token) const {
    if constexpr (marks)
      if (s.marks.marker.on()) s.marks.text.push_back(token.token);
    return s.keep(token);
  }

  static bool is_eos(State const& s, Token token) { return s.vocabulary->ends(token); }

  std::int32_t most(State const& s) const {
    auto const most = (std::max)(0, (std::min)(block - 1, s.bounds.max - s.size() - 1));
    return branches == 1 && nodes > 0 ? (std::min)(most, nodes) : most;
  }
  /// The number of guesses on one path for the next round.
  std::int32_t wanted(State& s, Draft const& draft) const {
    auto const most = this->most(s);
    auto const measured = cost == 0 && !draft.costs.empty() && !draft.rates.empty();
    s.adapting.set_cost(cost > 0 ? cost : 0.25);
    if (!adaptive) return most;
    if (!measured) return s.adapting.best(most);
    auto const count =
        draft.measure >= 0 ? (std::min)(draft.measure, most) : s.adapting.best(most, draft.costs, draft.rates);
    auto const place = (std::min)(static_cast<std::size_t>((std::max)(count, 1)), draft.costs.size()) - 1;
    if (draft.costs[place] >= 0) s.adapting.set_cost(draft.costs[place] / static_cast<double>(place + 1));
    return count;
  }
  /// The maximum number of guesses, for `count` on one path.
  std::int32_t most_nodes(std::int32_t count) const {
    if (branches == 1) return count;
    if (nodes == 0 || block <= 1) return count * branches;
    return static_cast<std::int32_t>((static_cast<std::int64_t>(nodes) * count + block - 2) / (block - 1));
  }

  /// Builds the tree from the valid guesses.
  void build(State const& s) const {
    auto const most = this->most(s);
    s.tree.build(s.guesses, s.drafted.parents,
                 {.depth = most, .nodes = most_nodes(most), .leaves = branches, .vocabulary = s.vocabulary->size});
    s.built = true;
  }

  /// Lists the tokens whose probabilities decide whether guesses are accepted.
  void name(State& s) const {
    A::drop_nonsense(s.drafted, s.vocabulary->size);
    if (s.names.size() < s.tree.size()) s.names.resize(s.tree.size());
    for (std::size_t node = 0; node < s.tree.size(); ++node) {
      s.tree.draws(node, s.drawn);
      A::name(s.drawn, s.guesses, s.drafted, s.names[node]);
    }
  }

  struct Choice {
    std::int32_t kid;  // the accepted child of the node, or -1: the token is the model's own
    Candidate token;
  };
  /// Chooses the token that follows a node.
  Choice choose(State& s, Line const& line, std::size_t node, std::int32_t settled) const {
    auto const kids = s.tree.kid_tokens(node);
    auto const place = [&](Token token) {
      auto const found = std::find(kids.begin(), kids.end(), token);
      return found == kids.end() ? -1 : static_cast<std::int32_t>(found - kids.begin());
    };
    Candidate own;
    if constexpr (draws) {
      s.tree.draws(node, s.drawn);
      std::uint64_t marked = 0;
      if constexpr (marks)
        if (s.marks.marker.on())
          if (auto const its = mark(s, s.marks.text, 0); its.marked) marked = its.place.noise;
      own = accept.choose(line, s.names[node], s.drawn, s.guesses, s.drafted, s.seed, s.size(), s.own_scratch, marked);
    } else own = this->own(s, line);
    if (kids.empty()) return {-1, own};
    auto kept = place(own.token);  // the model's own token comes before other acceptable ones
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

  /// Ends a round with the model's own token.
  bool take(State& s, Candidate own) const {
    s.guesses.clear(), s.drafted.clear(), s.built = false;
    if (own.token < 0) return s.ended = true;
    s.pending.push_back(own.token);
    if (keep(s, own)) s.blocks.push_back(1);
    return s.ended;
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(Blockwise<acceptance::Exact>)
