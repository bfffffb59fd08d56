// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search over the alignments of a transducer, and greedy decoding of them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/frames/detail/alignment_beam.hpp>
#include <sluice/frames/detail/label_rules.hpp>
#include <sluice/frames/detail/label_tree.hpp>
#include <sluice/frames/detail/text_scores.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Takes the best token of a transducer (Transducer: RNN-T, TDT, multi-blank) at every step, until the alignment has
/// passed the last frame, or an Endpoint is reached (ties: the lower token). One slot (with FusionWeights, three), one row
/// of one token a step, a step for each frame and each label.
///
/// `log_prob` is that of the one alignment, with its blanks; Hypothesis::log_probs and `frames` are its labels'. Rule,
/// language model, requests and frames that come while they are decoded: see TransducerBeam. An output that the rule
/// does not let end where the frames end is returned all the same, and not `finished`.
/// \tparam R  a LogitsProcessor
/// \tparam L  a language model, as for TransducerBeam
template <LogitsProcessor R = NoRule, detail::LanguageModelOrWeights L = NoRule>
struct TransducerGreedy {
  TransducerTokens tokens{};       ///< of the model; nothing: those that it names (model.tokens())
  std::int32_t most_symbols = 10;  ///< labels at one frame, at most; then only blanks may follow. >= 1
  std::int32_t most_labels = 0;    ///< labels of an output, at most; 0: no other bound
  std::int32_t candidates = 8;     ///< labels of a line to which a language model is applied; >= 1
  Endpoint endpoint{};             ///< where an utterance ends, although frames go on
  R rule{};
  L language_model{};

  static constexpr Abilities needs{.ragged = true};
  static constexpr bool takes_processors = false;  ///< its tokens are those of alignments: see `rule`

  struct State {
    detail::LabelRules<R> rules;
    std::vector<typename R::State> rule;  // [1]
    detail::TextScores<NoRule, L> texts;
    std::int32_t text = -1;  // of the output
    Hypothesis output;
    SourceGrowth whole;                    // of a source that does not grow
    SourceGrowth const* growth = nullptr;  // of one that does
    Token last = 0;
    std::int32_t held = 0, frame = 0, symbols = 0;
    std::int32_t taken = 0;            // frames that are over
    bool over = false, stuck = false;  // no frame is left; no token is possible
    bool ended = false;
  };

  template <class M>
  void adapt(M const& model) {
    if constexpr (requires {
                    { model.tokens() } -> std::convertible_to<TransducerTokens>;
                  })
      tokens.adapt(model.tokens());
  }
  void check() const {
    tokens.check();
    require(most_symbols >= 1, "most_symbols", most_symbols, "must be at least 1");
    require(most_labels >= 0, "most_labels", most_labels, "must be 0 (no bound) or more");
    require(candidates >= 1, "candidates", candidates, "must be at least 1");
    endpoint.check(), detail::check_processor(rule);
    if constexpr (requires { language_model.check(); }) language_model.check();
  }
  std::int32_t slot_count() const { return in_rows ? 3 : 1; }
  /// The blanks, and each label with every duration.
  void insert_into(TokenSet& set) const { detail::insert_alignments(tokens, set); }

  void begin(State& s, Sentence const& sentence) const {
    detail::require_frames(sentence, tokens);
    s.rule.assign(1, s.rules.begin(rule, tokens, sentence));
    if constexpr (modelled) {
      auto text = sentence;
      text.vocabulary = &s.rules.vocabulary();
      s.text = s.texts.begin({}, language_model, text, slot_count());
    }
    s.output = {};
    s.whole = {sentence.source_length, true}, s.growth = sentence.growth;
    s.last = sentence.last, s.held = sentence.held, s.frame = s.symbols = s.taken = 0;
    s.over = s.stuck = s.ended = false;
  }

  void plan(State& s, Plan& plan) const {
    if (reads(s)) {
      plan.row(0, 0, s.held, {&s.last, 1});
      auto const& labels = s.output.tokens;
      auto const full = s.symbols >= most_symbols || (most_labels > 0 && std::ssize(labels) >= most_labels) ||
                        s.rules.stop(rule, s.rule.front(), labels) >= 0;
      s.rules.begin_lines(1);
      s.rules.ask(plan, rule, s.rule.front(), labels, {.best = full ? 0 : listed()});
    }
    if constexpr (in_rows) s.texts.rows().plan(plan);
  }

  bool advance(State& s, Expansion const& answer) const {
    auto const lines = reads(s) ? std::size_t{1} : 0;
    if constexpr (in_rows) s.texts.take_lines(language_model, answer.window(lines, answer.size() - lines));
    if (lines > 0) take(s, answer[0]);
    else s.over = true;
    if (s.stuck) return s.ended = true;
    if (!s.over || rows_wait(s)) return false;
    end(s);
    return s.ended = true;
  }

  /// Whether the frames that have come do not suffice to go on.
  bool waits(State const& s) const {
    return limit(s) == unlimited && !s.over && s.growth->length - s.frame <= tokens.most_frames();
  }
  Progress progress(State const& s) const {
    auto rows = reads(s) ? 1 : 0;
    if constexpr (in_rows) rows += s.texts.rows().size();
    return {s.held, 1, rows};
  }
  void settled(State& s, std::vector<Token>& labels) const { labels = s.output.tokens; }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    result.frames = s.taken;
    if (s.stuck)
      result.fail(Failure::no_token_left,
                  "no token can follow at frame " + std::to_string(s.frame) +
                      ": every blank is impossible (most_symbols = " + std::to_string(most_symbols) + ")");
    auto& h = result.hypotheses.emplace_back(s.output);
    h.score = s.output.log_prob;
    h.stop = s.rules.stop(rule, s.rule.front(), s.output.tokens);
    if (s.ended && !s.stuck)
      for (auto& range : h.frames) range.end = (std::min)(range.end, s.taken);
  }

 private:
  static constexpr bool modelled = detail::TextScores<NoRule, L>::modelled;
  static constexpr bool in_rows = detail::TextScores<NoRule, L>::in_rows;
  static constexpr auto unlimited = (std::numeric_limits<std::int32_t>::max)();
  static constexpr double never = -std::numeric_limits<double>::infinity();

  /// What there is to a text here.
  struct Length {
    std::int32_t depth(std::int32_t length) const { return length; }
  };

  /// Labels listed: only a language model may prefer another than the first.
  std::int32_t listed() const { return modelled ? candidates : 1; }
  /// The number of frames, if it is known.
  static std::int32_t limit(State const& s) {
    auto const& grown = s.growth != nullptr ? *s.growth : s.whole;
    return grown.over ? grown.length : unlimited;
  }
  static bool reads(State const& s) { return !s.over && limit(s) > 0; }
  static bool rows_wait(State const& s) {
    if constexpr (in_rows) return s.texts.rows().waits();
    else return false;
  }

  /// Chooses a token.
  void take(State& s, Line const& line) const {
    ++s.held;
    Candidate best{-1, -std::numeric_limits<float>::infinity()};
    auto most = never;
    auto const offer = [&](Candidate one, double log_prob) {
      if (log_prob > most || (log_prob == most && one.token < best.token)) best = one, most = log_prob;
    };
    auto const blanks = s.rules.blanks();
    for (std::size_t b = 0; b < blanks.size(); ++b)
      offer({blanks[b], line.probes[b]}, static_cast<double>(line.probes[b]));
    for (auto const& one : line.best) {
      auto const label = tokens.label(one.token);
      if (tokens.is_blank(label)) continue;
      auto const log_prob = one.log_prob + s.rules.all(0);
      auto added = 0.0;
      if constexpr (modelled) added = static_cast<double>(s.texts.add(language_model, s.text, label));
      offer({one.token, log_prob}, static_cast<double>(log_prob) + added);
    }
    if (most > never) move(s, best, most);
    else s.stuck = true, s.taken = s.frame;
  }
  void move(State& s, Candidate const& taken, double log_prob) const {
    auto const frames = tokens.frames(taken.token);
    auto const label = tokens.label(taken.token);
    s.output.log_prob += log_prob, s.last = taken.token;
    if (!tokens.is_blank(label)) {
      s.output.tokens.push_back(label), s.output.log_probs.push_back(taken.log_prob);
      s.output.frames.push_back({s.frame, (std::min)(s.frame + (std::max)(1, frames), limit(s))});
      s.rule.front() = rule.next(s.rule.front(), label);
      if constexpr (modelled) {
        auto const before = s.text;
        s.text = s.texts.make({}, language_model, before, label, Length(),
                              static_cast<std::int32_t>(s.output.tokens.size()));
        s.texts.drop(before);
      }
    }
    s.frame += frames, s.symbols = frames > 0 ? 0 : s.symbols + 1;
    count_frames(s);
  }
  /// Counts the frames that are over, up to an endpoint.
  void count_frames(State& s) const {
    auto const last = s.output.frames.empty() ? 0 : s.output.frames.back().end;
    while (s.taken < (std::min)(s.frame, limit(s)) && !s.over)
      s.over = ++s.taken == limit(s) || (endpoint.on() && endpoint.reached(s.taken, last));
  }
  void end(State& s) const {
    auto added = s.rules.end(rule, s.rule.front(), s.output.tokens);
    if constexpr (modelled) added += static_cast<double>(s.texts.end(language_model, s.text, tokens.blank));
    s.output.finished = added > never;
    if (s.output.finished) s.output.log_prob += added;
  }
};

/// Which hypotheses of a TransducerBeam are compared with each other.
enum class TransducerOrder : std::uint8_t {
  frames,     ///< those at the same frame (time-synchronous; Graves 2012): about two steps a frame
  alignment,  ///< those of equally many frames and labels together (ALSD; Saon et al. 2020): a step for each of them
};

/// Finds the most probable outputs of a transducer (Transducer: RNN-T, TDT, multi-blank). Hypotheses of equal labels at
/// equal frames are one, and its probability is the sum of theirs. So `log_prob` is the logarithm of the sum over all
/// alignments that were kept; if `width` and `candidates` exclude nothing, that is the probability of the output.
///
/// An output ends when its alignment has passed the last frame, or at an Endpoint. Blanks are no part of it, and
/// invisible to rule and language model: both see outputs, of the vocabulary TransducerTokens::outputs(), where the
/// blank stands for the end. Request::processors are refused: they would see alignments.
///
/// Frames may come while they are decoded (Decoder::append). The result is that of the whole at once, bit for bit: a
/// frame is read once so many frames have come after it as a token moves on at most (TransducerTokens::most_frames():
/// 1 for an RNN-T), or nothing more will come. Memory grows with the outputs, not with the frames.
///
/// Hypothesis::log_probs and `frames` are of the output's likeliest alignment: the log-probability of each label where
/// it was written (so they do not add up to log_prob, which has blanks and other alignments too), and the frames that
/// it lasts, at least one. log_prob and score hold what rule and language model add. Result::frames says how many
/// frames it is of. A request can have no prompt and no prefix; Request::confidence tells nothing of use. A step has up
/// to `width` rows of one token, and costs O(width * candidates * log).
/// \tparam R  a LogitsProcessor, for example Bias or Structure
/// \tparam L  a LanguageModel: NGramModel, WordModel, LexiconNGrams, one of your own; or FusionWeights for a WithLanguageModel
template <LogitsProcessor R = NoRule, detail::LanguageModelOrWeights L = NoRule>
struct TransducerBeam {
  TransducerTokens tokens{};  ///< of the model; nothing: those that it names (model.tokens())
  std::int32_t width = 10;    ///< hypotheses kept at a frame; >= 1
  std::int32_t n_best = 1;    ///< hypotheses returned; in [1, width]
  /// Labels (with durations) of a line that are considered, the likeliest ones; 0: as many as `width`.
  std::int32_t candidates = 0;
  /// Labels at one frame, at most; then only blanks may follow. TransducerOrder::alignment: so many times the frames up
  /// to there in all. >= 1
  std::int32_t most_symbols = 10;
  std::int32_t most_labels = 0;  ///< labels of an output, at most; 0: no other bound
  /// Hypotheses so much less probable (natural logarithm) than the best they are compared with are dropped; > 0.
  double threshold = std::numeric_limits<double>::infinity();
  /// Labels so much less probable than the line's best token are not considered (modified AES: gamma); > 0.
  double within = std::numeric_limits<double>::infinity();
  TransducerOrder order = TransducerOrder::frames;
  Endpoint endpoint{};  ///< where an utterance ends, although frames go on; not with TransducerOrder::alignment
  R rule{};
  L language_model{};
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
  static constexpr bool takes_processors = false;  ///< its tokens are those of alignments: see `rule`

  struct State {
    detail::LabelTree<detail::LabelData<R>> outputs;
    detail::AlignmentBeam beam;
    detail::LabelRules<R> rules;
    detail::TextScores<NoRule, L> texts;
    std::vector<std::int32_t> texted;      // nodes with a text
    std::int64_t now = 0;                  // counts what asked for texts
    std::vector<Token> labels;             // scratch
    std::vector<detail::Aligned> staying;  // candidates for the same clock
    std::vector<std::int32_t> nodes;       // scratch
    SourceGrowth whole;                    // of a source that does not grow
    SourceGrowth const* growth = nullptr;  // of one that does
    std::int32_t taken = 0;                // frames that are over
    std::int32_t stuck = 0;                // the last frame at which hypotheses were
    bool ended = false;
  };

  template <class M>
  void adapt(M const& model) {
    if constexpr (requires {
                    { model.tokens() } -> std::convertible_to<TransducerTokens>;
                  })
      tokens.adapt(model.tokens());
  }
  void check() const {
    tokens.check();
    detail::require_slots("width", width, in_rows ? 2 * std::int64_t{span()} + 5 : std::int64_t{span()} + 1);
    require(n_best >= 1 && n_best <= width, "n_best", n_best, "must be between 1 and the width");
    require(candidates >= 0, "candidates", candidates, "must be 0 (the width) or more");
    require(most_symbols >= 1, "most_symbols", most_symbols, "must be at least 1");
    require(most_labels >= 0, "most_labels", most_labels, "must be 0 (no bound) or more");
    require(threshold > 0, "threshold", threshold, "must be more than 0");
    require(within > 0, "within", within, "must be more than 0");
    endpoint.check();
    require(!endpoint.on() || order == TransducerOrder::frames, "endpoint", "on",
            "needs TransducerOrder::frames: in the order of alignments there is no moment at which a frame is over");
    penalty.check(), detail::check_processor(rule);
    if constexpr (requires { language_model.check(); }) language_model.check();
  }
  std::int32_t slot_count() const { return frame_slots() + (in_rows ? width * (span() + 4) : 0); }
  /// The blanks, and each label with every duration.
  void insert_into(TokenSet& set) const { detail::insert_alignments(tokens, set); }

  void begin(State& s, Sentence const& sentence) const {
    detail::require_frames(sentence, tokens);
    s.whole = {sentence.source_length, true}, s.growth = sentence.growth;
    s.taken = s.stuck = 0, s.ended = false;
    s.outputs.clear({.rule = s.rules.begin(rule, tokens, sentence)});
    if constexpr (modelled) {
      auto text = sentence;
      text.vocabulary = &s.rules.vocabulary();
      s.outputs.data(Tree::root).text = s.texts.begin({}, language_model, text, slot_count(), frame_slots());
      s.texted.assign(1, Tree::root);
    }
    s.beam.begin(width, threshold, span(), frame_slots());
    s.beam.hold(0, sentence.held);
    s.beam.wait(0, {.node = Tree::root, .token = sentence.last});
    s.beam.next(), ready(s);
  }

  void plan(State& s, Plan& plan) const {
    if (limit(s) > 0) {
      auto const& active = s.beam.active();
      s.rules.begin_lines(active.size());
      for (std::size_t i = 0; i < active.size(); ++i) {
        auto const& one = active[i];
        if constexpr (!detail::LabelRules<R>::none) s.outputs.spell(one.node, s.labels);
        s.beam.plan_row(plan, one);
        s.rules.ask(plan, rule, s.outputs.data(one.node).rule, s.labels,
                    {.best = full(s, one) ? 0 : listed(), .base = one.total, .rank = static_cast<std::int32_t>(i)});
      }
    }
    if constexpr (in_rows) s.texts.rows().plan(plan);
  }

  bool advance(State& s, Expansion const& answer) const {
    auto const lines = limit(s) > 0 ? s.beam.active().size() : 0;
    if constexpr (in_rows) {
      s.texts.take_lines(language_model, answer.window(lines, answer.size() - lines));
      end_known(s);
    }
    if (lines > 0) expand(s, answer);
    else if (!s.beam.active().empty()) end(s, s.beam.active().front());
    s.beam.prune(), s.beam.next();
    if (lines > 0) count_frames(s);
    ready(s);
    return s.ended = s.beam.active().empty() && s.beam.ending().empty();
  }

  /// Whether the frames that have come do not suffice to go on.
  bool waits(State const& s) const {
    if (limit(s) != unlimited) return false;
    std::int32_t last = 0;
    for (auto const& one : s.beam.active()) last = (std::max)(last, one.frame);
    return !s.beam.active().empty() && s.growth->length - last <= tokens.most_frames();
  }
  Progress progress(State const& s) const {
    auto const width_now = (std::max)(static_cast<std::int32_t>(s.beam.active().size()), 1);
    auto rows = static_cast<std::int32_t>(s.beam.active().size());
    if constexpr (in_rows) rows += s.texts.rows().size();
    return {s.beam.longest(), width_now, rows};
  }
  /// The longest common beginning of all hypotheses.
  void settled(State& s, std::vector<Token>& labels) const {
    s.nodes.clear();
    auto const take = [&](detail::Aligned const& one) { s.nodes.push_back(one.node >= 0 ? one.node : one.parent); };
    s.beam.for_each_open(take);
    for (auto const& one : s.beam.over()) take(one);
    s.outputs.spell(s.outputs.common(s.nodes), labels);
  }

  void finish(State& s, Result& result) const {
    result.hypotheses.clear();
    result.frames = s.taken;
    auto all = s.beam.over();
    if (!s.ended) {
      s.beam.for_each_open([&](detail::Aligned const& one) { all.push_back(one); });
    } else if (all.empty()) {
      result.fail(Failure::no_token_left, "no alignment leaves frame " + std::to_string(s.stuck) +
                                              ": every blank was impossible (most_symbols = " +
                                              std::to_string(most_symbols) + "), or the rule allows no end");
      return;
    }
    std::vector<Hypothesis> found;
    for (auto& one : all) {
      auto const node = enter(s, one);
      auto& h = found.emplace_back();
      s.outputs.spell(node, h.tokens);
      s.beam.write(one, h.tokens.size(), h);
      if (s.ended)
        for (auto& range : h.frames) range.end = (std::min)(range.end, s.taken);
      h.log_prob = one.total, h.finished = one.over;
      h.score = penalty.score(h.log_prob, s.outputs.depth(node));
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
  using Tree = detail::LabelTree<detail::LabelData<R>>;
  static constexpr bool modelled = detail::TextScores<NoRule, L>::modelled;
  static constexpr bool in_rows = detail::TextScores<NoRule, L>::in_rows;
  static constexpr auto unlimited = (std::numeric_limits<std::int32_t>::max)();

  /// How far ahead of the clock a token may take a hypothesis.
  std::int32_t span() const {
    if (order == TransducerOrder::frames) return tokens.most_frames();
    if (!tokens.durations.empty()) return tokens.most_frames() + 1;
    return (std::max)(tokens.most_frames(), tokens.label_frames + 1);
  }
  std::int32_t frame_slots() const { return width * (span() + (order == TransducerOrder::frames ? 1 : 0)); }
  std::int32_t listed() const { return candidates > 0 ? candidates : width; }

  static SourceGrowth const& grown(State const& s) { return s.growth != nullptr ? *s.growth : s.whole; }
  /// The number of frames, if it is known.
  static std::int32_t limit(State const& s) { return grown(s).over ? grown(s).length : unlimited; }

  /// Whether a hypothesis has all the labels it may have.
  bool full(State const& s, detail::Aligned const& one) const {
    auto const labels = s.outputs.depth(one.node);
    auto const most = order == TransducerOrder::frames ? one.symbols >= most_symbols
                                                       : labels >= std::int64_t{most_symbols} * (one.frame + 1);
    return most || (most_labels > 0 && labels >= most_labels) ||
           s.rules.stop(rule, s.outputs.data(one.node).rule, s.labels) >= 0;
  }

  /// Gives a hypothesis its node.
  std::int32_t enter(State& s, detail::Aligned& one) const {
    if (one.node < 0) one.node = s.outputs.find(one.parent, one.label);
    if (one.node < 0) {
      auto const& state = s.outputs.data(one.parent).rule;
      one.node = s.outputs.add(one.parent, one.label, {.rule = rule.next(state, one.label)});
    }
    s.beam.settle(one);
    return one.node;
  }
  /// Gives a node its text.
  std::int32_t text_of(State& s, std::int32_t node) const {
    auto const text = s.outputs.data(node).text;
    if (text >= 0) return text;
    auto const from = s.outputs.data(s.outputs.parent(node)).text;
    auto const made = s.texts.make({}, language_model, from, s.outputs.label(node), s.outputs, node);
    s.outputs.data(node).text = made, s.texted.push_back(node);
    return made;
  }
  /// Drops the texts that no hypothesis needs. One without a text needs that of its parent.
  void drop_texts(State& s) const {
    ++s.now;
    s.beam.for_each_open([&](detail::Aligned const& one) {
      auto const own = one.node >= 0 && s.outputs.data(one.node).text >= 0;
      s.outputs.data(own ? one.node : one.parent).needed = s.now;
    });
    std::erase_if(s.texted, [&](std::int32_t node) {
      auto& data = s.outputs.data(node);
      if (data.needed == s.now) return false;
      s.texts.drop(data.text), data.text = -1;
      return true;
    });
    if constexpr (in_rows) s.texts.rows().free();
  }
  /// Prepares the next plan.
  void ready(State& s) const {
    if constexpr (modelled) {
      drop_texts(s);
      for (auto& one : s.beam.ending()) text_of(s, one.node);
    }
    s.beam.place();
    for (auto& one : s.beam.active()) {
      enter(s, one);
      if constexpr (modelled) text_of(s, one.node);
    }
    s.beam.tidy();
    if (s.outputs.full()) tidy(s);
  }
  /// Drops outputs that no hypothesis needs.
  void tidy(State& s) const {
    s.nodes.clear();
    auto const keep = [&](detail::Aligned const& one) { s.nodes.push_back(one.node >= 0 ? one.node : one.parent); };
    s.beam.for_each_open(keep);
    for (auto const& one : s.beam.over()) keep(one);
    auto const open = s.nodes.size();
    s.nodes.insert(s.nodes.end(), s.texted.begin(), s.texted.end());
    s.outputs.collect(s.nodes);
    std::copy(s.nodes.begin() + static_cast<std::ptrdiff_t>(open), s.nodes.end(), s.texted.begin());
    std::size_t i = 0;
    auto const put = [&](detail::Aligned& one) {
      auto const node = s.nodes[i++];
      if (one.node >= 0) one.node = node, one.parent = s.outputs.parent(node);
      else one.parent = node;
    };
    s.beam.for_each_open(put);
    for (auto& one : s.beam.over()) put(one);
  }

  /// Ends a hypothesis that has passed the last frame.
  void end(State& s, detail::Aligned one) const {
    enter(s, one), one.over = true;
    if constexpr (!detail::LabelRules<R>::none) s.outputs.spell(one.node, s.labels);
    auto const added = s.rules.end(rule, s.outputs.data(one.node).rule, s.labels);
    one.total += added, one.best += added;
    if (!(one.total > -std::numeric_limits<double>::infinity())) return;
    if constexpr (in_rows) {
      auto const text = s.outputs.data(one.node).text;
      if (text < 0 || !s.texts.known(text)) return s.beam.ending().push_back(one);
    }
    end_text(s, one);
  }
  /// Adds what the language model says of the end.
  void end_text(State& s, detail::Aligned one) const {
    if constexpr (modelled) {
      auto const added = static_cast<double>(s.texts.end(language_model, text_of(s, one.node), tokens.blank));
      one.total += added, one.best += added;
    }
    if (one.total > -std::numeric_limits<double>::infinity()) s.beam.over().push_back(one);
  }
  /// The same for those whose lines have come.
  void end_known(State& s) const {
    for (auto const& one : s.beam.ending()) end_text(s, one);
    s.beam.ending().clear();
  }
  /// Counts the frames that are over, and ends all hypotheses if one of them is an endpoint.
  void count_frames(State& s) const {
    auto const goes_on = !s.beam.active().empty();
    auto const before = s.taken;
    if (!goes_on && s.beam.over().empty() && s.beam.ending().empty()) s.taken = s.stuck;
    else if (!goes_on) s.taken = limit(s);
    else s.taken = order == TransducerOrder::frames ? s.beam.clock() : s.stuck;
    if (!endpoint.on()) return;
    auto const reached = reached_endpoint(s, before);
    if (reached < 0) return;
    s.taken = reached;
    for (auto const& one : s.beam.active()) end(s, one);
    s.beam.active().clear();
    s.beam.empty_waiting([&](detail::Aligned const& one) { end(s, one); });
    s.beam.prune();
  }
  /// The first frame after `before` that is an endpoint, if it is over, and the sound does not end with it; -1: none.
  std::int32_t reached_endpoint(State& s, std::int32_t before) const {
    detail::Aligned const* best = nullptr;
    auto const look = [&](detail::Aligned const& one) {
      if (best == nullptr || one.total > best->total) best = &one;
    };
    s.beam.for_each_open(look);
    for (auto const& one : s.beam.over()) look(one);
    if (best == nullptr) return -1;
    auto const last = s.beam.last_end(*best);
    for (auto frame = before + 1; frame <= s.taken && frame < limit(s); ++frame)
      if (endpoint.reached(frame, last)) return frame;
    return -1;
  }

  void expand(State& s, Expansion const& answer) const {
    s.beam.fed(), s.staying.clear();
    auto const& active = s.beam.active();
    s.stuck = active.front().frame;
    for (std::size_t i = 0; i < active.size(); ++i) expand(s, active[i], answer[i], s.rules.all(i));
    s.beam.prune();
    if (s.staying.empty()) return;
    auto const bar = s.beam.bar();
    for (auto const& one : s.staying)
      if (one.total > bar) s.beam.wait(s.beam.clock(), one);
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
    auto left = listed();  // without blanks, the list has more
    for (auto const& candidate : line.best) {
      auto const label = tokens.label(candidate.token);
      auto const log_prob = candidate.log_prob + all;
      if (tokens.is_blank(label) || left-- <= 0 || static_cast<double>(log_prob) < static_cast<double>(top) - within)
        continue;
      auto child = one;
      child.parent = one.node, child.label = label, child.node = s.outputs.find(one.node, label), child.writes = true;
      auto const end = one.frame + (std::max)(1, tokens.frames(candidate.token));
      child.last = {.frames = {one.frame, (std::min)(end, limit(s))}, .peak = log_prob};
      auto added = 0.0;
      if constexpr (modelled)
        added = static_cast<double>(s.texts.add(language_model, s.outputs.data(one.node).text, label));
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
    if (child.frame >= limit(s)) return end(s, child);
    if (order == TransducerOrder::frames) {
      if (frames == 0) s.staying.push_back(child);
      else s.beam.wait(child.frame, child);
    } else {
      s.beam.wait(child.frame + s.outputs.depth(child.parent < 0 ? 0 : child.parent) + (child.parent < 0 ? 0 : 1),
                  child);
    }
  }
};

}  // namespace sluice::inline v0
