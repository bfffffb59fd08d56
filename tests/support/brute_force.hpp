// SPDX-License-Identifier: Apache-2.0
/// \file
/// Every sequence of a small table, best first: the reference for searches that are wide enough.
#pragma once

#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

/// One sequence, in double precision.
struct Sequence {
  std::vector<Token> tokens;
  double log_prob = 0;
  double score = 0;
  bool finished = false;
};

/// Which sequences to enumerate.
struct Universe {
  std::int32_t minimum = 0;            ///< eos only after so many tokens
  std::int32_t maximum = 6;            ///< tokens, eos included; where nothing else ends them, sequences end here
  bool must_finish = true;             ///< at the maximum only eos is allowed; false: sequences may be cut there
  std::vector<Token> prompt{};         ///< context after bos
  std::vector<Token> prefix{};         ///< every sequence begins with these
  bool masked_before_softmax = false;  ///< a forbidden eos leaves its probability to the others
};

/// All sequences of the table under `seed`, their log-probabilities summed up in double; score = log_prob.
inline std::vector<Sequence> all_sequences(Table const& table, std::uint64_t seed, Universe const& universe) {
  std::vector<Sequence> found;
  std::vector<Token> context = universe.prompt;
  std::vector<Token> tokens;
  auto const ends_only = universe.must_finish && !table.endless();
  std::function<void(double)> extend = [&](double log_prob) {
    auto const size = static_cast<std::int32_t>(tokens.size());
    if (size == universe.maximum) {
      if (!ends_only) found.push_back({tokens, log_prob, log_prob, table.endless()});
      return;
    }
    std::vector<double> line(static_cast<std::size_t>(table.size));
    table.log_probs(seed, context, line);
    auto const in_prefix = tokens.size() < universe.prefix.size();
    auto const no_end = !in_prefix && size < universe.minimum && !(ends_only && size + 1 == universe.maximum);
    if (no_end && universe.masked_before_softmax) {
      double rest = 0;
      for (Token v = 0; v < table.size; ++v)
        if (!table.ends(v)) rest += std::exp(line[static_cast<std::size_t>(v)]);
      for (auto& x : line) x -= std::log(rest);
    }
    for (Token v = 0; v < table.size; ++v) {
      if (!table.possible(v)) continue;
      if (in_prefix ? v != universe.prefix[tokens.size()] : no_end && table.ends(v)) continue;
      if (!in_prefix && ends_only && size + 1 == universe.maximum && !table.ends(v)) continue;
      auto const total = log_prob + line[static_cast<std::size_t>(v)];
      tokens.push_back(v), context.push_back(v);
      if (table.ends(v) && !in_prefix) found.push_back({tokens, total, total, true});
      else extend(total);
      tokens.pop_back(), context.pop_back();
    }
  };
  extend(0);
  return found;
}

/// All outputs of up to `most` tokens, which end with an eos, of a model whose log-probabilities after `tokens` (without bos) are
/// `line(tokens)`; score = log_prob.
template <class Line>
std::vector<Sequence> every_sequence(Vocabulary const& vocabulary, std::int32_t most, Line const& line) {
  std::vector<Sequence> found;
  std::vector<Token> tokens;
  std::function<void(double)> extend = [&](double log_prob) {
    auto const log_probs = line(std::span<Token const>(tokens));
    auto const last = static_cast<std::int32_t>(tokens.size()) + 1 == most;
    for (Token v = 0; v < vocabulary.size; ++v) {
      auto const ends = vocabulary.ends(v);
      if (std::count(vocabulary.never.begin(), vocabulary.never.end(), v) > 0 || (last && !ends)) continue;
      auto const total = log_prob + log_probs[static_cast<std::size_t>(v)];
      tokens.push_back(v);
      if (ends) found.push_back({tokens, total, total, true});
      else extend(total);
      tokens.pop_back();
    }
  };
  extend(0);
  return found;
}

/// The `count` best by `score(sequence)`; ties by token.
template <class Score>
std::vector<Sequence> n_best(std::vector<Sequence> all, std::size_t count, Score score) {
  for (auto& s : all) s.score = score(s);
  std::sort(all.begin(), all.end(), [](Sequence const& a, Sequence const& b) {
    return a.score != b.score ? a.score > b.score : a.tokens < b.tokens;
  });
  if (all.size() > count) all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  return all;
}

/// The log-probability of `tokens` after `prompt` (bos left out).
inline double log_prob(Table const& table, std::uint64_t seed, std::vector<Token> prompt,
                       std::span<Token const> tokens) {
  std::vector<double> line(static_cast<std::size_t>(table.size));
  double total = 0;
  for (auto t : tokens) {
    table.log_probs(seed, prompt, line);
    total += line[static_cast<std::size_t>(t)], prompt.push_back(t);
  }
  return total;
}

/// For messages: "3 5 2".
inline std::string text(std::span<Token const> tokens) {
  std::string result;
  for (auto t : tokens) result.append(result.empty() ? "" : " ").append(std::to_string(t));
  return result;
}

}  // namespace sluice::test
