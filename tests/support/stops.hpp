// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stops found by plain search, in vocabularies of short strings.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace sluice::test {

/// The position of a text's first stop.
struct FirstStop {
  std::int32_t stop = -1;          ///< its index; -1: none
  std::size_t tokens = 0;          ///< up to its end
  std::size_t begin = 0, end = 0;  ///< bytes
};

/// The first stop that ends after the first `prefix` tokens, with at least `minimum` tokens in total, found by checking
/// every position.
inline FirstStop first_stop(StopOptions const& stops, std::span<Token const> tokens, std::size_t prefix,
                            std::size_t minimum) {
  auto const all = stops.bytes.text(tokens);
  std::size_t before = 0;
  for (std::size_t n = 1; n <= tokens.size(); ++n) {
    auto const now = before + stops.bytes.bytes(tokens[n - 1]).size();
    std::tuple<std::size_t, std::size_t, std::int32_t> best{all.size() + 1, 0, -1};  // end, begin, index
    for (std::size_t i = 0; i < stops.strings.size(); ++i) {
      auto const& string = stops.strings[i];
      for (std::size_t end = std::max(before + 1, string.size()); end <= now; ++end)
        if (all.compare(end - string.size(), string.size(), string) == 0)
          best = std::min(best, {end, end - string.size(), static_cast<std::int32_t>(stops.tokens.size() + i)});
    }
    std::size_t longest = 0;  // length of the longest sequence
    if (std::get<2>(best) < 0)
      for (std::size_t i = 0; i < stops.tokens.size(); ++i) {
        auto const& phrase = stops.tokens[i];
        if (phrase.size() > n || !std::ranges::equal(phrase, tokens.subspan(n - phrase.size(), phrase.size())))
          continue;
        if (phrase.size() <= longest) continue;
        longest = phrase.size();
        best = {now, stops.bytes.text(tokens.first(n - longest)).size(), static_cast<std::int32_t>(i)};
      }
    if (std::get<2>(best) >= 0 && n > prefix && n >= minimum)
      return {std::get<2>(best), n, std::get<1>(best), std::get<0>(best)};
    before = now;
  }
  return {};
}

inline std::string random_string(std::mt19937_64& random, std::size_t longest) {
  std::string out;
  for (auto n = 1 + random() % longest; n > 0; --n) out += "abc"[random() % 3];
  return out;
}

/// A vocabulary for a table: eos and control tokens have no bytes, the others are short strings; one ordinary token has
/// no bytes either.
inline TokenBytes random_bytes(std::mt19937_64& random, Table const& table) {
  std::vector<std::string> tokens(static_cast<std::size_t>(table.size));
  for (std::size_t i = 3; i < tokens.size(); ++i) tokens[i] = random_string(random, 3);
  if (tokens.size() > 6) tokens[4].clear();
  return TokenBytes(tokens);
}

/// One to four stops.
inline StopOptions random_stops(std::mt19937_64& random, Table const& table) {
  StopOptions stops{.bytes = random_bytes(random, table)};
  for (auto n = 1 + random() % 4; n > 0; --n) {
    if (random() % 3 > 0) {
      stops.strings.push_back(random_string(random, 5));
      continue;
    }
    auto& phrase = stops.tokens.emplace_back();
    for (auto length = 1 + random() % 3; length > 0; --length)
      phrase.push_back(static_cast<Token>(3 + random() % static_cast<std::uint64_t>(table.size - 3)));
  }
  stops.minimum = static_cast<std::int32_t>(random() % 4 == 0 ? random() % 5 : 0);
  return stops;
}

/// Checks that a result's outputs end at their first stop, or contain none, and have the table's numbers.
inline void check_stopped(Result const& result, StopSequences const& rule, Table const& table, std::uint64_t seed,
                          std::vector<Token> const& prefix = {}, std::size_t minimum = 0) {
  auto const& stops = rule.stops();
  for (auto const& h : result.hypotheses) {
    INFO(text(h.tokens));
    auto const expected =
        first_stop(stops, h.tokens, prefix.size(), std::max(minimum, static_cast<std::size_t>(stops.minimum)));
    CHECK(h.stop == expected.stop);
    CHECK(h.log_probs.size() == h.tokens.size());
    CHECK(std::abs(h.log_prob - log_prob(table, seed, {}, h.tokens)) < 1e-4);
    auto const all = stops.bytes.text(h.tokens);
    if (expected.stop < 0) {
      CHECK(rule.text(h) == all);
      CHECK(rule.tokens(h).size() == h.tokens.size());
      continue;
    }
    CHECK(h.finished);
    CHECK(expected.tokens == h.tokens.size());
    CHECK(rule.text(h) == all.substr(0, expected.begin));
    CHECK(rule.text(h, IncludeStop::yes) == all.substr(0, expected.end));
    auto const kept = rule.tokens(h);
    CHECK(stops.bytes.text(kept).size() <= expected.begin);
    auto const more = stops.bytes.text(std::span(h.tokens).first(kept.size() + 1)).size();
    auto const by_string = h.stop >= static_cast<std::int32_t>(stops.tokens.size());
    CHECK((by_string ? more > expected.begin : more >= expected.begin));
  }
}

}  // namespace sluice::test
