// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search over the alignments of a transducer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/frames/transducer_tokens.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/frames/detail/alignment_beam.hpp>
#include <sluice/search/frames/detail/label_rules.hpp>
#include <sluice/search/frames/detail/label_tree.hpp>
#include <sluice/search/frames/label_scorer.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Which hypotheses of a TransducerBeam are compared with each other.
enum class TransducerOrder : std::uint8_t {
  frames,     ///< those at the same frame (time-synchronous; Graves 2012): about two steps a frame
  alignment,  ///< those of equally many frames and labels together (ALSD; Saon et al. 2020): a step for each of them
};

/// Finds the most probable outputs of a transducer (Transducer: RNN-T, TDT, multi-blank). Hypotheses of equal labels at
/// equal frames are one, and its probability is the sum of theirs. So `log_prob` is the logarithm of the sum over all
/// alignments that were kept; if `width` and `candidates` exclude nothing, that is the probability of the output.
///
/// An output ends when its alignment has passed the last frame. Blanks are no part of it, and invisible to rule and
/// language model: `rule` is any Rule over TransducerTokens::outputs(), whose eos stands for the end. Do not wrap the
/// search in Ruled, which would see alignments.
///
/// Hypothesis::log_probs and `frames` are of the output's likeliest alignment: the log-probability of each label where
/// it was written (so they do not add up to log_prob, which has blanks and other alignments too), and the frames that
/// it lasts, at least one. log_prob and score hold what rule and language model add. A request can have no prompt and
/// no prefix; Request::confidence tells nothing of use. A step has up to `width` rows of one token, and costs
/// O(width * candidates * log).
/// \tparam R  a Rule, for example Bias or Structure
/// \tparam L  a LabelScorer, for example NGramLabels
template <Rule R = Rules<>, LabelScorer L = NoLabelScorer>
struct TransducerBeam {
  TransducerTokens tokens{};  ///< of the model: model.tokens()
  std::int32_t width = 10;    ///< hypotheses kept at a frame; >= 1
  std::int32_t n_best = 1;    ///< hypotheses returned; in [1, width]
  /// Labels (with durations) of a line that are considered, the likeliest ones; 0: as many as `width`.
  std::int32_t candidates = 0;
  /// Labels at one frame, at most; then only what moves on may follow. TransducerOrder::alignment: so many times the
  /// frames in all. >= 1
  std::int32_t most_symbols = 10;
  std::int32_t most_labels = 0;  ///< labels of an output, at most; 0: no other bound
  /// Hypotheses so much less probable (natural logarithm) than the best they are compared with are dropped; > 0.
  double threshold = std::numeric_limits<double>::infinity();
  /// Labels so much less probable than the line's best token are not considered (modified AES: gamma); > 0.
  double within = std::numeric_limits<double>::infinity();
  TransducerOrder order = TransducerOrder::frames;
  R rule{};
  L language{};
  double language_weight = 0.3;                              ///< of the language model's log-probabilities
  double label_bonus = 0;                                    ///< added for each label
  LengthPenalty penalty{.kind = LengthPenalty::Kind::none};  ///< for the score: labels count

  /// The modified adaptive expansion search of Kim et al. (2020), as NeMo has it: `steps` labels a frame at most,
  /// `width + beta` labels of a line, and those within `gamma` of its best token.
  static TransducerBeam adaptive(TransducerTokens const& tokens, std::int32_t width, std::int32_t steps = 2,
                                 std::int32_t beta = 2, double gamma = 2.3) {
    TransducerBeam made;
    made.tokens = tokens, made.width = width, made.candidates = width + beta;
    made.most_symbols = steps, made.within = gamma;
    return made;
  }

  static constexpr Abilities needs{.ragged = true};

  struct State {
    detail::LabelTree<detail::LabelData<R, L>> outputs;
    detail::AlignmentBeam beam;
    detail::LabelRules<R> rules;
    std::vector<Token> labels;             // scratch
    std::vector<detail::Aligned> staying;  // candidates for the same clock
    std::vector<std::int32_t> nodes;
    std::int32_t frames = 0, most_labels = 0;
    bool ended = false;
    std::int32_t stuck = -1;  // the last frame at which hypotheses were
  };

  void check() const {
    tokens.check();
    require(width >= 1, "width", width, "must be at least 1");
    require(n_best >= 1 && n_best <= width, "n_best", n_best, "must be between 1 and the width");
    require(candidates >= 0, "candidates", candidates, "must be 0 (the width) or more");
    require(most_symbols >= 1, "most_symbols", most_symbols, "must be at least 1");
    require(most_labels >= 0, "most_labels", most_labels, "must be 0 (no bound) or more");
    require(threshold > 0, "threshold", threshold, "must be more than 0");
    require(within > 0, "within", within, "must be more than 0");
    require(std::isfinite(language_weight), "language_weight", language_weight, "must be a number");
    require(std::isfinite(label_bonus), "label_bonus", label_bonus, "must be a number");
    penalty.check(), detail::check_rule(rule);
  }
  std::int32_t slot_count() const { return width * (span() + (order == TransducerOrder::frames ? 1 : 0)); }

  void begin(State& s, Sentence const& sentence) const {
    detail::require_frames(sentence, tokens);
    s.frames = sentence.source_length, s.ended = false, s.stuck = -1;
    s.most_labels = most_labels > 0 ? most_labels : (std::numeric_limits<std::int32_t>::max)();
    if (order == TransducerOrder::alignment)
      s.most_labels = static_cast<std::int32_t>(
          (std::min)(std::int64_t{s.most_labels}, std::int64_t{most_symbols} * std::int64_t{s.frames}));
    s.outputs.clear({s.rules.begin(rule, tokens, sentence), language.start()});
    s.beam.begin(width, threshold, span(), slot_count());
    detail::Aligned first{.node = Tree::root, .token = sentence.last};
    s.beam.hold(0, sentence.held);
    if (s.frames == 0) {
      end(s, first);
    } else {
      s.beam.wait(0, first);
      s.beam.next();
    }
  }

  void plan(State& s, Plan& plan) const {
    if (s.frames == 0) return;
    s.beam.place();
    auto& active = s.beam.active();
    s.rules.begin_lines(active.size());
    for (std::size_t i = 0; i < active.size(); ++i) {
      auto& one = active[i];
      enter(s, one);
      if constexpr (!detail::LabelRules<R>::none) s.outputs.write(one.node, s.labels);
      auto const& data = s.outputs.data(one.node);
      auto const full = s.outputs.length(one.node) >= s.most_labels || s.rules.stop(rule, data.rule, s.labels) >= 0;
      auto const capped = order == TransducerOrder::frames && one.symbols >= most_symbols;
      s.beam.plan_row(plan, one);
      s.rules.ask(plan, rule, data.rule, s.labels,
                  {.best = full             ? 0
                           : candidates > 0 ? candidates
                                            : width,
                   .moving = capped,
                   .base = one.total,
                   .rank = static_cast<std::int32_t>(i)});
    }
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.frames == 0) return s.ended = true;
    s.beam.fed(), s.staying.clear();
    auto const& active = s.beam.active();
    s.stuck = active.front().frame;
    for (std::size_t i = 0; i < active.size(); ++i) expand(s, active[i], answer[i], s.rules.all(i));
    s.beam.prune();
    if (!s.staying.empty()) {
      auto const bar = s.beam.bar();
      for (auto const& one : s.staying)
        if (one.total > bar) s.beam.wait(s.beam.clock(), one);
      s.beam.prune();
    }
    return s.ended = !s.beam.next();
  }

  Progress progress(State const& s) const {
    auto const rows = static_cast<std::int32_t>(s.beam.active().size());
    return {s.beam.longest(), (std::max)(rows, 1), rows};
  }
  /// The longest common beginning of all hypotheses.
  void settled(State& s, std::vector<Token>& labels) const {
    s.nodes.clear();
    auto const take = [&](detail::Aligned const& one) { s.nodes.push_back(one.node >= 0 ? one.node : one.parent); };
    s.beam.for_each_waiting(take);
    for (auto const& one : s.beam.active()) take(one);
    for (auto const& one : s.beam.over()) take(one);
    s.outputs.write(s.outputs.common(s.nodes), labels);
  }

  void finish(State& s, Result& result) const {
    result.hypotheses.clear();
    auto all = s.beam.over();
    if (!s.ended) {
      all.insert(all.end(), s.beam.active().begin(), s.beam.active().end());
      s.beam.for_each_waiting([&](detail::Aligned const& one) { all.push_back(one); });
    } else if (all.empty()) {
      result.fail(Failure::no_token_left,
                  "no alignment leaves frame " + std::to_string(s.stuck) + " of " + std::to_string(s.frames) +
                      ": every blank was impossible (most_symbols = " + std::to_string(most_symbols) +
                      "), or the rule allows no end");
      return;
    }
    std::vector<Hypothesis> found;
    for (auto& one : all) {
      auto const node = enter(s, one);
      auto& h = found.emplace_back();
      s.outputs.write(node, h.tokens);
      s.beam.write(one, h.tokens.size(), h);
      h.log_prob = one.total, h.finished = one.frame >= s.frames;
      h.score = penalty.score(h.log_prob, s.outputs.length(node));
      h.stop = s.rules.stop(rule, s.outputs.data(node).rule, h.tokens);
    }
    auto const better = [](auto const& a, auto const& b) {
      return a.score != b.score ? a.score > b.score : a.tokens < b.tokens;
    };
    std::sort(found.begin(), found.end(), better);
    for (auto& h : found) {
      if (static_cast<std::int32_t>(result.hypotheses.size()) == n_best) break;
      auto const same = [&](auto const& other) {
        return other.tokens == h.tokens;
      };  // an interrupted search: at another frame
      if (std::none_of(result.hypotheses.begin(), result.hypotheses.end(), same))
        result.hypotheses.push_back(std::move(h));
    }
  }

 private:
  using Tree = detail::LabelTree<detail::LabelData<R, L>>;

  /// How far ahead of the clock a token may take a hypothesis.
  std::int32_t span() const {
    if (order == TransducerOrder::frames) return tokens.most_frames();
    if (!tokens.durations.empty()) return tokens.most_frames() + 1;
    return (std::max)(tokens.most_frames(), tokens.label_frames + 1);
  }

  detail::LabelData<R, L> after(State const& s, std::int32_t node, Token label) const {
    auto data = s.outputs.data(node);
    data.rule = rule.next(std::as_const(data.rule), label);
    language.advance(data.language, label);
    return data;
  }
  /// Gives a hypothesis its node.
  std::int32_t enter(State& s, detail::Aligned& one) const {
    if (one.node < 0) one.node = s.outputs.find(one.parent, one.label);
    if (one.node < 0) one.node = s.outputs.add(one.parent, one.label, after(s, one.parent, one.label));
    s.beam.settle(one);
    return one.node;
  }

  /// Adds a hypothesis that has passed the last frame.
  void end(State& s, detail::Aligned one) const {
    enter(s, one);
    auto const& data = s.outputs.data(one.node);
    auto const added = s.rules.end(rule, data.rule, s.outputs.length(one.node) == 0) +
                       language_weight * static_cast<double>(language.end(data.language));
    one.total += added, one.best += added;
    if (one.total > -std::numeric_limits<double>::infinity()) s.beam.over().push_back(one);
  }

  void expand(State& s, detail::Aligned const& one, Line const& line, float all) const {
    auto top = -std::numeric_limits<float>::infinity();
    auto const blanks = s.rules.blanks();
    for (std::size_t b = 0; b < blanks.size(); ++b) {
      auto const log_prob = line.probes[b];
      top = (std::max)(top, log_prob);
      auto child = one;
      child.parent = s.outputs.parent(one.node), child.label = s.outputs.label(one.node);
      move(s, child, blanks[b], static_cast<double>(log_prob));
    }
    for (auto const& one_of : line.best)
      if (!tokens.is_blank(tokens.label(one_of.token))) top = (std::max)(top, one_of.log_prob + all);
    auto left = candidates > 0 ? candidates : width;  // without blanks, the list has more
    for (auto const& candidate : line.best) {
      auto const label = tokens.label(candidate.token);
      auto const log_prob = candidate.log_prob + all;
      if (tokens.is_blank(label) || left-- <= 0 || static_cast<double>(log_prob) < static_cast<double>(top) - within)
        continue;
      auto child = one;
      child.parent = one.node, child.label = label, child.node = s.outputs.find(one.node, label), child.writes = true;
      auto const frames = (std::max)(1, tokens.frames(candidate.token));
      child.last = {.log_prob = log_prob, .frames = {one.frame, (std::min)(one.frame + frames, s.frames)}};
      auto language_state = s.outputs.data(one.node).language;
      auto const added = language_weight * static_cast<double>(language.advance(language_state, label)) + label_bonus;
      move(s, child, candidate.token, static_cast<double>(log_prob) + added);
    }
  }
  /// A child takes its token.
  void move(State& s, detail::Aligned& child, Token token, double log_prob) const {
    child.total += log_prob, child.best += log_prob;
    if (!(child.total > -std::numeric_limits<double>::infinity())) return;
    auto const frames = tokens.frames(token);
    child.token = token, child.frame += frames;
    child.symbols = frames > 0 ? 0 : child.symbols + 1;
    if (child.frame >= s.frames) return end(s, child);
    if (order == TransducerOrder::frames) {
      if (frames == 0) s.staying.push_back(child);
      else s.beam.wait(child.frame, child);
    } else {
      s.beam.wait(child.frame + s.outputs.length(child.parent < 0 ? 0 : child.parent) + (child.parent < 0 ? 0 : 1),
                  child);
    }
  }
};

}  // namespace sluice::inline v0
