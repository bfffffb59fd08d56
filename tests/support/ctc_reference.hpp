// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTC as the definition has it (Graves et al. 2006, section 3.1: a path's equal neighbours joined, then blanks dropped): every alignment is
/// enumerated; and a prefix beam search over a table of prefixes (Hannun et al. 2014, algorithm 1, without the language model's word ends).
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace sluice::test {

/// Random frames, and their log-probabilities.
struct RandomFrames {
  std::int32_t count = 0, size = 0;
  std::vector<float> log_probs;  // [frames, V]

  RandomFrames(std::uint64_t seed, std::int32_t frames, std::int32_t labels, float sharpness = 3)
      : count(frames), size(labels) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, sharpness);
    for (std::int32_t frame = 0; frame < frames; ++frame) {
      std::vector<double> line;
      double sum = 0;
      for (std::int32_t v = 0; v < labels; ++v) line.push_back(double(normal(random))), sum += std::exp(line.back());
      for (auto const x : line) log_probs.push_back(float(x - std::log(sum)));
    }
  }
  MatrixView<float const> view() const { return {log_probs.data(), count, size, size}; }
  std::span<float const> line(std::int32_t frame) const {
    return std::span(log_probs).subspan(std::size_t(frame * size), std::size_t(size));
  }
};

/// What is known of a text.
struct CtcText {
  double probability = 0;  // of all alignments
  double best = 0;         // of the best
  std::vector<FrameRange> frames{};
};
using CtcTexts = std::map<std::vector<Token>, CtcText>;

/// All texts, by going through all V^frames alignments.
inline CtcTexts all_texts(RandomFrames const& frames, Token blank) {
  CtcTexts texts;
  std::vector<Token> labels(std::size_t(frames.count), 0);
  while (true) {
    double probability = 1;
    std::vector<Token> text;
    std::vector<FrameRange> ranges;
    auto before = blank;
    for (std::int32_t i = 0; i < frames.count; ++i) {
      auto const label = labels[std::size_t(i)];
      probability *= std::exp(double(frames.line(i)[std::size_t(label)]));
      if (label != blank && label != before) text.push_back(label), ranges.push_back({i, i + 1});
      else if (label != blank) ranges.back().end = i + 1;
      before = label;
    }
    auto& known = texts[text];
    known.probability += probability;
    if (probability > known.best) known.best = probability, known.frames = ranges;
    std::size_t digit = 0;
    while (digit < labels.size() && ++labels[digit] == frames.size) labels[digit++] = 0;
    if (digit == labels.size()) return texts;
  }
}

/// What a step of the plain beam may leave out.
struct PlainCtc {
  std::int32_t width = 32, top_tokens = 0;
  double token_floor = -std::numeric_limits<double>::infinity();
  double threshold = std::numeric_limits<double>::infinity();
  double skip_blank = 2;
  /// What is added to a prefix when a token follows.
  std::function<double(std::vector<Token> const&, Token)> add = [](auto const&, Token) { return 0.0; };
};

/// A prefix beam search over a map of prefixes, in probabilities of long double: (score, prefix, log-probability), best first.
struct PlainCtcText {
  double score, log_prob;
  std::vector<Token> text;
};
inline std::vector<PlainCtcText> plain_ctc(RandomFrames const& frames, Token blank, PlainCtc const& options) {
  struct Sums {
    long double blank = 0, token = 0;
    double added = 0;
    double score() const { return double(std::log(blank + token)) + added; }
  };
  std::map<std::vector<Token>, Sums> beam;
  beam[{}].blank = 1;
  double log_scale = 0;  // of what is divided out, so that long texts do not underflow
  for (std::int32_t i = 0; i < frames.count; ++i) {
    auto const line = frames.line(i);
    std::vector<Token> order;
    for (Token v = 0; v < frames.size; ++v)
      if (v != blank) order.push_back(v);
    std::sort(order.begin(), order.end(), [&](Token a, Token b) {
      auto const x = line[std::size_t(a)], y = line[std::size_t(b)];
      return x != y ? x > y : a < b;
    });
    if (options.top_tokens > 0 && std::ssize(order) > options.top_tokens) order.resize(std::size_t(options.top_tokens));
    auto const best = *std::max_element(line.begin(), line.end());
    std::erase_if(order, [&](Token v) {
      return double(line[std::size_t(v)]) < options.token_floor && line[std::size_t(v)] < best;
    });
    if (std::exp(double(line[std::size_t(blank)])) >= options.skip_blank) order.clear();
    std::map<std::vector<Token>, Sums> next;
    for (auto const& [prefix, sums] : beam) {
      auto const total = sums.blank + sums.token;
      auto& same = next[prefix];
      same.added = sums.added;
      same.blank += total * std::exp((long double)(line[std::size_t(blank)]));
      for (auto const v : order) {
        auto const p = std::exp((long double)(line[std::size_t(v)]));
        auto const repeats = !prefix.empty() && prefix.back() == v;
        if (repeats) next[prefix].token += sums.token * p;
        auto longer = prefix;
        longer.push_back(v);
        auto const added = options.add(prefix, v);
        if (added == -std::numeric_limits<double>::infinity()) continue;
        auto& child = next[longer];
        child.token += (repeats ? sums.blank : total) * p;
        child.added = sums.added + added;
      }
    }
    std::vector<std::pair<double, std::vector<Token>>> ranked;
    for (auto const& [prefix, sums] : next)
      if (sums.blank + sums.token > 0) ranked.emplace_back(-sums.score(), prefix);
    std::sort(ranked.begin(), ranked.end());
    beam.clear();
    auto const skipped = order.empty() && options.skip_blank <= 1;
    for (std::size_t k = 0; k < ranked.size() && k < std::size_t(options.width); ++k)
      if (skipped || ranked[k].first <= ranked[0].first + options.threshold)
        beam[ranked[k].second] = next[ranked[k].second];
    long double scale = 0;
    for (auto const& [prefix, sums] : beam) scale = (std::max)(scale, sums.blank + sums.token);
    for (auto& [prefix, sums] : beam) sums.blank /= scale, sums.token /= scale;
    log_scale += double(std::log(scale));
  }
  std::vector<PlainCtcText> texts;
  for (auto const& [prefix, sums] : beam) {
    auto const end = options.add(prefix, blank);
    if (end == -std::numeric_limits<double>::infinity()) continue;
    texts.push_back({sums.score() + end + log_scale, double(std::log(sums.blank + sums.token)) + log_scale, prefix});
  }
  std::sort(texts.begin(), texts.end(), [](auto const& a, auto const& b) { return a.score > b.score; });
  return texts;
}

}  // namespace sluice::test
