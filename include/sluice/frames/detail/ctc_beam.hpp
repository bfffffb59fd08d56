// SPDX-License-Identifier: Apache-2.0
/// \file
/// The beam of a CtcBeamSearch, and its step from frame to frame.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/alignments.hpp>
#include <sluice/frames/detail/ctc_entry.hpp>
#include <sluice/frames/detail/prefix_tree.hpp>
#include <sluice/frames/detail/text_scores.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The prefixes that a sentence's beam holds after some frames. A prefix is one entry, with the probability of all of its alignments
/// that the beam has not dropped: those that end in a blank, and those that end in its last token. A frame makes of it itself
/// (a blank follows, or its last token goes on) and its children. Only a child that is in the beam already can be reached in two ways,
/// so entries are merged by a look at their parents: no table of candidates is needed.
///
/// A frame costs O(width), and the candidates that have a chance: prefixes in order of score, tokens in order of probability, up to
/// where the beam is full of better ones.
template <LogitsProcessor R, LanguageModelOrWeights L>
class CtcBeam {
 public:
  using Texts = TextScores<R, L>;
  using Entry = CtcEntry;
  static constexpr double impossible = Entry::impossible;

  /// \param viterbi  whether a prefix has the probability of its best alignment alone
  SLUICE_LAZY void begin(R const& rule, L const& model, Sentence const& sentence, std::int32_t slot_count,
                         bool viterbi) {
    tree_.clear(), alignments_.clear();
    viterbi_ = viterbi;
    log_probs_.assign(static_cast<std::size_t>(sentence.vocabulary->size), impossible);
    taken_.assign(log_probs_.size(), -1);
    Entry start;
    start.in_blank = start.total = start.score = start.blank_path.log_prob = 0;
    if constexpr (Texts::any) start.text = texts_.begin(rule, model, sentence, slot_count);
    beam_.assign(1, start);
    tree_.put(PrefixTree::root, 0);
    frame_ = 0;
  }

  std::vector<Entry> const& entries() const { return beam_; }  ///< best first
  PrefixTree const& tree() const { return tree_; }
  Texts& texts() { return texts_; }
  Texts const& texts() const { return texts_; }
  Alignments const& alignments() const { return alignments_; }
  /// What is added if the text of an entry ends here.
  double end(L const& model, Entry const& entry, Token blank) const {
    if constexpr (Texts::any) return static_cast<double>(texts_.end(model, entry.text, blank));
    else return 0;
  }

  /// Takes a frame that has only the blank.
  SLUICE_LAZY void skip(double blank) {
    if (blank == impossible) drop_all();
    for (auto& entry : beam_) {
      entry.blank_path = entry.then_blank(blank), entry.token_path = {};
      entry.total = entry.in_blank = entry.total + blank, entry.in_token = impossible;
      entry.score = entry.total + entry.added;
    }
    ++frame_;
  }

  /// Takes a frame.
  /// \param tokens     those that may stand on it, without the blank, the most probable first; all other ones do not exist here
  /// \param threshold  of the score, below the best prefix; >= 0
  SLUICE_LAZY void advance(R const& rule, L const& model, std::span<Candidate const> tokens, double blank,
                           std::int32_t width, double threshold) {
    for (auto const& [token, log_prob] : tokens)
      log_probs_[static_cast<std::size_t>(token)] = static_cast<double>(log_prob);
    picks_.clear(), steps_.clear();
    best_ = floor_ = impossible;
    width_ = static_cast<std::size_t>(width), threshold_ = threshold;
    list_children();
    for (std::size_t i = 0; i < beam_.size(); ++i) stay(i, blank);
    if (!tokens.empty()) extend(model, tokens);
    select();
    build(rule, model, blank);
    for (auto const& candidate : tokens) log_probs_[static_cast<std::size_t>(candidate.token)] = impossible;
    ++frame_;
    tidy();
  }

 private:
  /// What an entry becomes if it stays.
  struct Stay {
    double in_blank, in_token, total;
    std::int32_t parent;  // in the beam; -1: not there
  };
  /// A candidate: an entry that stays (token -1), or a new child of it.
  struct Pick {
    double score;
    std::int32_t entry;
    Token token;
    bool operator<(Pick const& other) const {  // better
      if (score != other.score) return score > other.score;
      return std::tie(entry, token) < std::tie(other.entry, other.token);
    }
  };

  /// What two sets of alignments have together.
  double merged(double a, double b) const { return viterbi_ ? (std::max)(a, b) : log_of_sum(a, b); }
  double log_prob(Token token) const { return token < 0 ? impossible : log_probs_[static_cast<std::size_t>(token)]; }

  /// Lists the children that each entry has in the beam.
  void list_children() {
    first_child_.assign(beam_.size(), -1), next_child_.resize(beam_.size());
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      auto const parent = tree_.parent(beam_[i].node);
      auto const place = parent == PrefixTree::none ? -1 : tree_.place(parent);
      steps_.push_back({impossible, impossible, impossible, place});
      if (place < 0) continue;
      auto& first = first_child_[static_cast<std::size_t>(place)];
      next_child_[i] = first, first = static_cast<std::int32_t>(i);
    }
  }
  void stay(std::size_t i, double blank) {
    auto const& entry = beam_[i];
    auto& step = steps_[i];
    auto const goes_on = log_prob(entry.last);
    step.in_token = entry.in_token + goes_on;
    if (step.parent >= 0)
      step.in_token = merged(step.in_token, beam_[static_cast<std::size_t>(step.parent)].before(entry.last) + goes_on);
    step.in_blank = entry.total + blank;
    step.total = merged(step.in_blank, step.in_token);
    pick({step.total + entry.added, static_cast<std::int32_t>(i), -1});
  }
  /// Adds the children that are not in the beam yet, as far as they have a chance.
  void extend(L const& model, std::span<Candidate const> tokens) {
    auto const most = static_cast<double>(tokens[0].log_prob);
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      auto const& entry = beam_[i];
      auto rise = 0.0;
      if constexpr (Texts::any) rise = static_cast<double>(texts_.most(entry.text));
      if (entry.score + rise + most < floor_) {
        if constexpr (Texts::any) continue;
        else break;  // the others are worse
      }
      for (auto child = first_child_[i]; child >= 0; child = next_child_[static_cast<std::size_t>(child)])
        taken_[static_cast<std::size_t>(beam_[static_cast<std::size_t>(child)].last)] = stamp_;
      for (auto const& [token, log_prob] : tokens) {
        auto const further = static_cast<double>(log_prob);
        if (entry.score + rise + further < floor_) break;
        if (taken_[static_cast<std::size_t>(token)] == stamp_) continue;
        auto score = entry.before(token) + further + entry.added;
        if constexpr (Texts::any) {
          if (score + rise < floor_) continue;
          score += static_cast<double>(texts_.add(model, entry.text, token));
        }
        pick({score, static_cast<std::int32_t>(i), token});
      }
      ++stamp_;
    }
  }
  void pick(Pick const& one) {
    if (!(one.score > impossible) || one.score < floor_) return;
    best_ = (std::max)(best_, one.score);
    floor_ = (std::max)(floor_, best_ - threshold_);
    picks_.push_back(one);
    if (picks_.size() >= 2 * width_ + 32) cut();
  }
  void cut() {
    if (picks_.size() <= width_) return;
    auto const end = picks_.begin() + static_cast<std::ptrdiff_t>(width_);
    std::nth_element(picks_.begin(), end - 1, picks_.end());
    floor_ = (std::max)(floor_, (end - 1)->score);
    picks_.erase(end, picks_.end());
  }
  /// Keeps the best picks that are within the threshold, best first.
  void select() {
    cut();
    std::sort(picks_.begin(), picks_.end());
    auto const lowest = best_ - threshold_;
    while (!picks_.empty() && picks_.back().score < lowest) picks_.pop_back();
  }

  /// Makes the new beam of the picks.
  SLUICE_LAZY void build(R const& rule, L const& model, double blank) {
    next_.resize(picks_.size());
    stays_.assign(beam_.size(), 0);
    for (std::size_t i = 0; i < picks_.size(); ++i) {
      auto const [score, number, token] = picks_[i];
      auto const& from = beam_[static_cast<std::size_t>(number)];
      auto& to = next_[i];
      if (token < 0) {
        auto const& step = steps_[static_cast<std::size_t>(number)];
        stays_[static_cast<std::size_t>(number)] = 1;
        to = from;
        to.in_blank = step.in_blank, to.in_token = step.in_token, to.total = step.total;
        to.blank_path = from.then_blank(blank);
        keep_token(to, from, step.parent);
      } else {
        to = Entry();
        to.in_token = to.total = from.before(token) + log_prob(token);
        to.added = from.added, to.last = token;
        to.node = tree_.child(from.node, token);
        add_token(to, from);
        if constexpr (Texts::any) {
          to.added += static_cast<double>(texts_.add(model, from.text, token));
          to.text = texts_.make(rule, model, from.text, token, tree_, to.node);
        }
      }
      to.score = score;
    }
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      if (stays_[i] != 0) continue;
      tree_.put(beam_[i].node, -1);
      if constexpr (Texts::any) texts_.drop(beam_[i].text);
    }
    std::swap(beam_, next_);
    for (std::size_t i = 0; i < beam_.size(); ++i) tree_.put(beam_[i].node, static_cast<std::int32_t>(i));
  }
  void drop_all() {
    for (auto const& entry : beam_) {
      tree_.put(entry.node, -1);
      if constexpr (Texts::any) texts_.drop(entry.text);
    }
    beam_.clear();
  }

  /// The last token goes on, or begins on this frame.
  void keep_token(Entry& to, Entry const& from, std::int32_t parent) {
    auto const goes_on = log_prob(from.last);
    to.token_path.log_prob = from.token_path.log_prob + goes_on;
    to.token_path.last.frames.end = frame_ + 1;
    to.token_path.last.peak = (std::max)(to.token_path.last.peak, static_cast<float>(goes_on));
    if (parent < 0) return;
    auto const& other = beam_[static_cast<std::size_t>(parent)];
    auto const& path = other.last == from.last ? other.blank_path : other.better();
    if (path.log_prob + goes_on > to.token_path.log_prob) add_token(to, other);
  }
  /// The last token of `to` begins on this frame, after `from`.
  void add_token(Entry& to, Entry const& from) {
    auto const& path = from.last == to.last ? from.blank_path : from.better();
    auto const its = log_prob(to.last);
    to.token_path.log_prob = path.log_prob + its;
    to.token_path.last = {
        path.last.frames.end == 0 ? -1 : alignments_.add(path.last), {frame_, frame_ + 1}, static_cast<float>(its)};
  }

  /// Drops what no entry needs.
  SLUICE_LAZY void tidy() {
    if (tree_.full()) {
      kept_.clear();
      for (auto const& entry : beam_) kept_.push_back(entry.node);
      tree_.collect(kept_);
      for (std::size_t i = 0; i < beam_.size(); ++i) beam_[i].node = kept_[i];
    }
    if (alignments_.full()) {
      kept_.clear();
      for (auto const& entry : beam_) {
        kept_.push_back(entry.blank_path.last.before);
        kept_.push_back(entry.token_path.last.before);
      }
      alignments_.collect(kept_);
      for (std::size_t i = 0; i < beam_.size(); ++i)
        beam_[i].blank_path.last.before = kept_[2 * i], beam_[i].token_path.last.before = kept_[2 * i + 1];
    }
  }

  PrefixTree tree_;
  Alignments alignments_;
  Texts texts_;
  std::vector<Entry> beam_, next_;  // best first
  std::vector<Stay> steps_;         // [entry]
  std::vector<Pick> picks_;
  std::vector<double> log_probs_;                       // [V]: of this frame's tokens; -infinity: not there
  std::vector<std::int64_t> taken_;                     // [V]: == stamp_: a child that is in the beam
  std::vector<std::int32_t> first_child_, next_child_;  // [entry]
  std::vector<std::uint8_t> stays_;                     // [entry]
  std::vector<std::int32_t> kept_;                      // scratch
  std::int64_t stamp_ = 0;
  std::int32_t frame_ = 0;
  std::size_t width_ = 1;
  bool viterbi_ = false;
  double best_ = 0, floor_ = 0, threshold_ = 0;
};

}  // namespace sluice::inline v0::detail
