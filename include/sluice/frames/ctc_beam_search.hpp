// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prefix beam search for CTC.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/frames/detail/ctc_beam.hpp>
#include <sluice/frames/detail/frames_ahead.hpp>
#include <sluice/frames/detail/text_scores.hpp>
#include <sluice/frames/frame_stream.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Connectionist temporal classification: the most probable texts of a model that scores frames (CtcFrames), each with the probability
/// of all of its alignments together (prefix beam search, Hannun et al. 2014, "First-Pass Large Vocabulary Continuous Speech
/// Recognition using Bi-Directional Recurrent DNNs"; Graves 2012). A text is the labels of the frames, equal neighbours joined and
/// blanks dropped.
///
/// Of a Hypothesis, `log_prob` is the sum over the alignments that the beam has kept, at full width that over all (with `viterbi`,
/// that of the best one); `score` adds what rule and language model give; `frames` has the frames of each token on the best alignment,
/// and `log_probs` the log-probability of each token at its best frame, as its confidence: unlike elsewhere they do not add up to
/// log_prob.
///
/// A frame costs O(width * log width), and the candidates that have a chance; nothing is allocated once warm. The memory grows with the
/// text, not with the frames. Rows of up to `block` frames where the model takes blocks. There is neither a prompt nor a forced prefix.
///
/// \tparam R  a LogitsProcessor that the texts keep, as Bias, Forbidden, Structure, InCatalogue, or several as Rules. It sees tokens without
///            blanks, and the blank as eos, where it says whether a text may end (ctc_text_vocabulary). What it adds is added once a
///            token, not once a frame. Not one that ends outputs, and not one that multiplies scores
/// \tparam L  a LanguageModel: NGramModel, WordModel, LexiconNGrams, one of your own; or FusionWeights for a WithLanguageModel
template <LogitsProcessor R = NoRule, detail::LanguageModelOrWeights L = NoRule>
struct CtcBeamSearch {
  std::int32_t width = 32;       ///< prefixes kept at every frame; >= 1
  std::int32_t n_best = 1;       ///< hypotheses returned, at most; in [1, width]
  std::int32_t top_tokens = 64;  ///< labels that may stand on a frame: the most probable, and the blank; 0: all
  /// Labels less probable than this on a frame do not stand there (pyctcdecode: token_min_logp), except for the best. A log-probability;
  /// -infinity: no limit
  float token_floor = -std::numeric_limits<float>::infinity();
  /// A prefix that scores so much less than the best is dropped (beam_prune_logp, beam threshold). >= 0; infinity: none is
  double threshold = std::numeric_limits<double>::infinity();
  /// Frames on which the blank has at least this probability are taken as blanks alone, which costs next to nothing. Over 1: none
  double skip_blank = 2;
  Token blank = -1;         ///< -1: the vocabulary's bos
  std::int32_t block = 64;  ///< frames in a row of the model, at most; >= 1
  Endpoint endpoint{};      ///< where an utterance ends, although frames go on
  bool viterbi =
      false;  ///< a text counts as its best alignment alone, not as all together (flashlight: without log_add)
  R rule{};
  L language_model{};

  struct State {
    detail::CtcBeam<R, L> beam;
    detail::FramesAhead ahead;                    // with a language model in rows
    Vocabulary vocabulary;                        // as the texts see it
    std::vector<Token> fed;                       // [block]
    std::vector<std::uint8_t> never;              // [V]: the blank, and tokens that are not generated
    std::vector<Candidate> tokens;                // of a frame
    std::vector<detail::PrefixTree::Node> nodes;  // scratch
    Token blank = 0;
    SourceGrowth whole;                    // of a source that does not grow
    SourceGrowth const* growth = nullptr;  // of one that does
    std::int32_t read = 0, taken = 0;      // frames that were read, and that have been taken
    std::int32_t block = 1;
    std::int32_t listed = 0;    // best tokens asked for
    std::int32_t starved = -1;  // the frame that left no prefix
    bool ended = false;
  };

  static constexpr bool takes_prefix = true;       // none is taken
  static constexpr bool takes_processors = false;  ///< its tokens are labels of frames: see `rule`

  SLUICE_LAZY void check() const {
    detail::require_slots("width", width, in_rows ? 3 : 1);
    require(n_best >= 1 && n_best <= width, "n_best", n_best, "must be between 1 and the width");
    require(top_tokens >= 0, "top_tokens", top_tokens, "must not be negative");
    require(!std::isnan(token_floor) && token_floor <= 0, "token_floor", token_floor, "must be a log-probability");
    require(threshold >= 0, "threshold", threshold, "must be a number >= 0");
    require(skip_blank > 0, "skip_blank", skip_blank, "must be a number > 0");
    require(blank >= -1, "blank", blank, "must be a token, or -1");
    require(block >= 1, "block", block, "must be at least 1");
    endpoint.check();
    detail::check_processor(rule);
    if constexpr (requires { language_model.check(); }) language_model.check();
  }
  std::int32_t slot_count() const { return in_rows ? 1 + 2 * width : 1; }
  /// The blank: without it no text has frames between its labels.
  void insert_into(State const& s, TokenSet& set) const { set.insert(s.blank); }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    auto const size = sentence.vocabulary->size;
    s.blank = blank >= 0 ? blank : sentence.vocabulary->bos;
    require(s.blank < size, "blank", s.blank, "is outside the vocabulary of " + std::to_string(size));
    auto const grows = sentence.growth != nullptr;
    require(grows || sentence.source_length != -1, "source_length", sentence.source_length,
            "a search over frames must know their number: the model needs a source_length(source)");
    require(grows || sentence.source_length >= 1, "frames", sentence.source_length, "there must be at least one");
    if (sentence.source_length > sentence.limits.length)
      throw NoRoom("sluice: frames = " + std::to_string(sentence.source_length) + ": those of the model hold " +
                   std::to_string(sentence.limits.length) + " in a slot (Limits::length)");
    require(sentence.prompt.size() == 1, "prompt", std::to_string(sentence.prompt.size()) + " tokens",
            "a search over frames takes no prompt");
    require(!sentence.confident, "confidence", "asked for",
            "a search over frames has none for its tokens: Hypothesis::log_probs has each label's");
    require(!in_rows || s.blank == sentence.vocabulary->bos, "blank", s.blank,
            "must be that of the model beside the language model, " + std::to_string(sentence.vocabulary->bos));
    require(sentence.prefix.empty(), "prefix", std::to_string(sentence.prefix.size()) + " tokens",
            "a search over frames takes no forced prefix");
    s.whole.length = sentence.source_length, s.growth = sentence.growth;
    s.read = s.taken = 0, s.starved = -1, s.ended = false;
    constexpr std::int32_t most = 4096;  // of a source that grows, so that a block of any size takes no memory
    s.block = (std::min)(sentence.abilities.blocks && sentence.abilities.ragged ? block : 1,
                         grows ? most : sentence.source_length);
    s.ahead.clear();
    s.fed.assign(static_cast<std::size_t>(s.block), s.blank);
    s.fed[0] = sentence.last;
    s.listed = top_tokens == 0 || top_tokens >= size ? size : top_tokens + 1;
    s.vocabulary = *sentence.vocabulary;
    s.vocabulary.bos = s.blank, s.vocabulary.eos.assign(1, s.blank);
    s.never.assign(static_cast<std::size_t>(size), 0);
    s.never[static_cast<std::size_t>(s.blank)] = 1;
    for (auto const token : s.vocabulary.never) s.never[static_cast<std::size_t>(token)] = 1;
    std::erase(s.vocabulary.never, s.blank);
    auto text = sentence;
    text.vocabulary = &s.vocabulary;
    s.beam.begin(rule, language_model, text, slot_count(), viterbi);
  }
  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    auto const count = next(s);
    if (count > 0) plan.row(0, 0, s.read, std::span<Token const>(s.fed).first(static_cast<std::size_t>(count)), count);
    for (std::int32_t i = 0; i < count; ++i)
      plan.ask({.best = s.listed, .probes = {&s.blank, 1}, .stage = Stage::after_softmax});
    if constexpr (in_rows) s.beam.texts().rows().plan(plan);
  }
  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    s.fed[0] = s.blank;
    auto const count = static_cast<std::size_t>(next(s));
    s.read += static_cast<std::int32_t>(count);
    if constexpr (in_rows) {
      s.ahead.keep(answer.window(0, count));
      s.beam.texts().take_lines(language_model, answer.window(count, answer.size() - count));
      while (!s.ahead.empty() && !s.beam.texts().rows().waits())
        if (take(s, s.ahead.next())) return true;
    } else {
      for (std::size_t i = 0; i < count; ++i)
        if (take(s, answer[i])) return true;
    }
    return s.ended = grown(s).over && s.taken == grown(s).length && !rows_wait(s);
  }
  /// Whether all frames that have come are taken, and more will come.
  bool waits(State const& s) const { return !grown(s).over && s.taken == grown(s).length && !rows_wait(s); }
  Progress progress(State const& s) const {
    auto const count = next(s);
    auto rows = count;
    if constexpr (in_rows) rows += s.beam.texts().rows().size();
    return {s.read, 1, rows, (std::max)(count, 1)};
  }
  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const {
    tokens.clear();
    auto const& entries = s.beam.entries();
    if (entries.empty()) return;
    auto node = entries[0].node;
    for (auto const& entry : entries) node = s.beam.tree().common(node, entry.node);
    s.beam.tree().spell(node, tokens);
  }
  SLUICE_LAZY void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    result.frames = s.taken;
    auto const complete = s.ended && s.starved < 0;
    std::vector<std::pair<double, std::size_t>> order;
    auto const& entries = s.beam.entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      auto const end = complete ? s.beam.end(language_model, entries[i], s.blank) : 0;
      if (auto const score = entries[i].score + end; score > detail::CtcEntry::impossible)
        order.emplace_back(-score, i);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > static_cast<std::size_t>(n_best)) order.resize(static_cast<std::size_t>(n_best));
    for (auto const& [worse, i] : order) tell(s, entries[i], -worse, complete, result.hypotheses.emplace_back());
    if (grown(s).length == 0) result.fail(Failure::bad_request, "frames: 0: there must be at least one");
    else if (s.starved >= 0)
      result.fail(Failure::no_token_left, "frame " + std::to_string(s.starved) + " leaves no text that is possible");
    else if (order.empty()) result.fail(Failure::no_token_left, "no text in the beam may end where the frames do");
  }

 private:
  static constexpr bool in_rows = detail::TextScores<R, L>::in_rows;

  /// How many frames to read next.
  std::int32_t next(State const& s) const {
    if constexpr (in_rows)
      if (!s.ahead.empty()) return 0;
    return (std::min)(s.block, grown(s).length - s.read);
  }
  static SourceGrowth const& grown(State const& s) { return s.growth != nullptr ? *s.growth : s.whole; }
  static bool rows_wait(State const& s) {
    if constexpr (in_rows) return s.beam.texts().rows().waits();
    else return false;
  }

  /// Takes a frame. Returns whether it leaves nothing.
  bool take(State& s, Line const& line) const {
    auto const blank_log_prob = static_cast<double>(line.probes[0]);
    if (skip_blank <= 1 && std::exp(blank_log_prob) >= skip_blank) {
      s.beam.skip(blank_log_prob);
    } else {
      auto const most = top_tokens == 0 ? line.best.size() : static_cast<std::size_t>(top_tokens);
      s.tokens.clear();
      for (auto const& candidate : line.best) {
        if (s.tokens.size() == most || (candidate.log_prob < token_floor && &candidate != line.best.data())) break;
        if (s.never[static_cast<std::size_t>(candidate.token)] == 0) s.tokens.push_back(candidate);
      }
      s.beam.advance(rule, language_model, s.tokens, blank_log_prob, width, threshold);
    }
    if (s.beam.entries().empty()) return s.starved = s.taken, s.ended = true;
    ++s.taken;
    return s.ended = endpoint.on() && endpoint.reached(s.taken, last_end(s));
  }
  /// The frame after the last token of the best prefix; 0: it has no token.
  static std::int32_t last_end(State const& s) {
    auto const worse = [](detail::CtcEntry const& a, detail::CtcEntry const& b) { return a.score < b.score; };
    auto const best = std::max_element(s.beam.entries().begin(), s.beam.entries().end(), worse);
    return best->better().last.frames.end;
  }
  static void tell(State const& s, detail::CtcEntry const& entry, double score, bool finished, Hypothesis& h) {
    h.log_prob = entry.total, h.score = score, h.finished = finished;
    s.beam.tree().spell(entry.node, h.tokens);
    h.frames.resize(h.tokens.size()), h.log_probs.resize(h.tokens.size());
    auto token = entry.better().last;
    for (auto i = h.tokens.size(); i-- > 0;) {
      h.frames[i] = token.frames, h.log_probs[i] = token.peak;
      if (i > 0) token = s.beam.alignments()[token.before];
    }
  }
};

}  // namespace sluice::inline v0
