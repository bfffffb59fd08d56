// SPDX-License-Identifier: Apache-2.0
/// \file
/// A transducer whose lines are a hash of utterance, frame and labels, and all of its alignments.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/transducer.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// An utterance of so many frames.
struct Utterance {
  std::uint64_t seed = 0;
  std::int32_t frames = 0;
};

/// Logits in [0, scale) of V labels and of the durations; `context`: how many last labels matter, -1: all (recurrent).
struct HashedLines {
  TransducerTokens tokens{};
  double scale = 4;
  std::int32_t context = -1;
  float blank_logit = 0;            ///< added to blank
  bool no_blank = false;            ///< blank is impossible
  std::int32_t levels = 0;          ///< > 0: so many distinct logits
  std::vector<Token> impossible{};  ///< labels
  bool pairs = false;               ///< the tokens of a TDT add up to one, although blank with duration 0 is none

  std::size_t columns() const { return static_cast<std::size_t>(tokens.labels) + tokens.durations.size(); }
  void logits(Utterance const& utterance, std::int32_t frame, std::span<Token const> labels,
              std::span<float> out) const {
    auto key = hash_mix(utterance.seed * 31 + static_cast<std::uint64_t>(frame) + 0x9E3779B97F4A7C15u);
    auto const known = context < 0 ? labels.size() : std::min(labels.size(), static_cast<std::size_t>(context));
    for (auto const label : labels.last(known))
      key = hash_mix(key ^ (static_cast<std::uint64_t>(label + 1) * 0x9E3779B97F4A7C15u));
    for (std::size_t v = 0; v < out.size(); ++v) {
      auto uniform = static_cast<double>(hash_mix(key ^ ((v + 1) * 0xD1B54A32D192ED03u)) >> 40) / 16777216.0;
      if (levels > 0) uniform = std::floor(uniform * levels) / levels;
      out[v] = static_cast<float>(scale * uniform);
    }
    auto& blank = out[static_cast<std::size_t>(tokens.blank)];
    blank += blank_logit;
    if (no_blank) blank = -std::numeric_limits<float>::infinity();
    for (auto const label : impossible) out[static_cast<std::size_t>(label)] = -std::numeric_limits<float>::infinity();
  }
  /// The log-probability of every token, in double precision.
  std::vector<double> log_probs(Utterance const& utterance, std::int32_t frame, std::span<Token const> labels) const {
    std::vector<float> line(columns());
    logits(utterance, frame, labels, line);
    auto const sum = [&](std::size_t first, std::size_t last) {
      double all = 0;
      for (auto i = first; i < last; ++i) all += std::exp(static_cast<double>(line[i]));
      return std::log(all);
    };
    auto const v = static_cast<std::size_t>(tokens.labels);
    auto const of_label = sum(0, v), of_duration = tokens.durations.empty() ? 0 : sum(v, line.size());
    std::vector<double> all;
    for (Token token = 0; token < tokens.size(); ++token) {
      auto const label = static_cast<std::size_t>(tokens.label(token));
      auto log_prob = static_cast<double>(line[label]) - of_label;
      if (!tokens.durations.empty()) {
        log_prob += static_cast<double>(line[v + static_cast<std::size_t>(token) / v]) - of_duration;
        if (tokens.label(token) == tokens.blank && tokens.frames(token) == 0)
          log_prob = -std::numeric_limits<double>::infinity();
      }
      all.push_back(log_prob);
    }
    double of_all = 0;
    for (auto const log_prob : all) of_all += std::exp(log_prob);
    for (auto& log_prob : all) log_prob -= pairs ? std::log(of_all) : 0;
    return all;
  }
};

/// The same as a network. A state is a list of labels; states that were never written, or are read in the call that
/// writes them, throw.
class HashedNetwork {
 public:
  using Source = Utterance;
  explicit HashedNetwork(HashedLines lines) : lines_(std::move(lines)) {}

  TransducerTokens tokens() const { return lines_.tokens; }
  std::int32_t frames(Utterance const& utterance) const { return utterance.frames; }

  void start(std::span<Utterance const* const> sources, std::span<std::int32_t const> utterances) {
    for (auto const* source : sources)
      if (source->seed == refused) throw std::runtime_error("refused");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const at = static_cast<std::size_t>(utterances[i]);
      if (at >= sources_.size()) sources_.resize(at + 1);
      if (sources_[at] != nullptr) throw std::logic_error("an utterance's number is in use");
      sources_[at] = sources[i], ++live;
    }
  }
  void release(std::span<std::int32_t const> utterances) {
    for (auto const one : utterances) sources_[static_cast<std::size_t>(one)] = nullptr, --live;
  }
  void predict(std::span<PredictorRow const> rows) {
    ++predictions, predicted += rows.size();
    std::vector<std::vector<Token>> made;
    for (auto const& row : rows) {
      made.emplace_back();
      if (row.from < 0) continue;
      if (lines_.tokens.is_blank(row.label)) throw std::logic_error("a blank in predict");
      made.back() = states_.at(static_cast<std::size_t>(row.from));
      for (auto const& other : rows)
        if (other.to == row.from) throw std::logic_error("a state is read in the call that writes it");
      made.back().push_back(row.label);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const at = static_cast<std::size_t>(rows[i].to);
      if (at >= states_.size()) states_.resize(at + 1);
      states_[at] = made[i];
    }
  }
  Scores<float> join(std::span<JoinerRow const> rows) {
    ++joins, joined += rows.size();
    auto const columns = lines_.columns();
    out_.resize(rows.size() * columns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const* source = sources_.at(static_cast<std::size_t>(rows[i].utterance));
      if (source == nullptr || rows[i].frame >= source->frames) throw std::logic_error("no such frame");
      lines_.logits(*source, rows[i].frame, states_.at(static_cast<std::size_t>(rows[i].state)),
                    std::span(out_).subspan(i * columns, columns));
    }
    return scores(out_.data(), std::ssize(rows), static_cast<std::ptrdiff_t>(columns));
  }

  static constexpr std::uint64_t refused = 666;
  std::size_t predictions = 0, predicted = 0, joins = 0, joined = 0;
  std::int32_t live = 0;  ///< utterances

 private:
  HashedLines lines_;
  std::vector<Utterance const*> sources_;
  std::vector<std::vector<Token>> states_;
  std::vector<float> out_;
};

/// One output, summed over its alignments in double precision.
struct Labelling {
  std::vector<Token> labels;
  double log_prob = -std::numeric_limits<double>::infinity();
  double best = -std::numeric_limits<double>::infinity();  ///< of its likeliest alignment
  std::vector<FrameRange> frames;                          ///< of that
};

/// Which alignments exist. Labels that stand on a frame count there whether they move on or not: so NeMo's GreedyTDTInfer counts them
/// (read 2026-11-27: `symbols_added` grows with each token, and `need_loop and symbols_added < max_symbols` goes on).
struct AlignmentLimits {
  std::int32_t most_symbols = 1000;         ///< labels at one frame
  std::int32_t most_labels = 1000;          ///< labels in all
  std::int32_t most_labels_a_frame = 1000;  ///< so many times the frames up to there
};

/// Enumerates every alignment; returns the outputs, the most probable first. `extra(labels)` is added to the score of
/// each.
template <class Extra>
std::vector<Labelling> all_labellings(HashedLines const& lines, Utterance const& utterance,
                                      AlignmentLimits const& limits, Extra const& extra) {
  std::map<std::vector<Token>, Labelling> found;
  std::vector<Token> labels;
  std::vector<FrameRange> frames;
  auto const& tokens = lines.tokens;
  auto const visit = [&](auto const& self, std::int32_t frame, std::int32_t symbols, double log_prob) -> void {
    if (frame >= utterance.frames) {
      auto& one = found[labels];
      one.labels = labels;
      auto const most = std::max(one.log_prob, log_prob), least = std::min(one.log_prob, log_prob);
      one.log_prob = most + std::log1p(std::exp(least - most));
      if (log_prob > one.best) one.best = log_prob, one.frames = frames;
      return;
    }
    auto const line = lines.log_probs(utterance, frame, labels);
    for (Token token = 0; token < tokens.size(); ++token) {
      auto const log_probs = line[static_cast<std::size_t>(token)];
      auto const moved = tokens.frames(token);
      if (!(log_probs > -std::numeric_limits<double>::infinity())) continue;
      if (tokens.is_blank(tokens.label(token))) {
        self(self, frame + moved, 0, log_prob + log_probs);
        continue;
      }
      if (symbols >= limits.most_symbols) continue;
      auto const count = static_cast<std::int32_t>(labels.size());
      if (count >= limits.most_labels || count >= limits.most_labels_a_frame * (frame + 1)) continue;
      labels.push_back(tokens.label(token));
      frames.push_back({frame, std::min(frame + std::max(1, moved), utterance.frames)});
      self(self, frame + moved, moved > 0 ? 0 : symbols + 1, log_prob + log_probs);
      labels.pop_back(), frames.pop_back();
    }
  };
  visit(visit, 0, 0, 0);
  std::vector<Labelling> all;
  for (auto& [key, one] : found) {
    one.log_prob += extra(one.labels);
    if (one.log_prob > -std::numeric_limits<double>::infinity()) all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.labels < b.labels;
  });
  return all;
}

}  // namespace sluice::test
