// SPDX-License-Identifier: Apache-2.0
// Length limits against integer arithmetic, penalties against their documented formulas.
#include <sluice/search/length.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto infinite = std::numeric_limits<double>::infinity();
constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The limits in integers, with factors in quarters; nullopt if they must be refused.
std::optional<std::pair<std::int64_t, std::int64_t>> bounds_in_integers(LengthLimits const& limits,
                                                                        Sentence const& sentence) {
  auto const quarters = [&](double factor) { return (std::llround(4 * factor) * sentence.source_length + 3) / 4; };
  auto const by_source = limits.min_factor > 0 || limits.max_factor > 0;
  auto const prompt = std::ssize(sentence.prompt), prefix = std::ssize(sentence.prefix);
  std::int64_t const room = sentence.limits.length;
  if ((by_source && sentence.source_length < 0) || prompt > room) return {};
  if (limits.max == LengthLimits::unlimited && limits.max_factor == 0 && room == Limits::unlimited) return {};
  std::int64_t low = limits.min, high = limits.max;
  if (limits.min_factor > 0) low = std::max<std::int64_t>(low, quarters(limits.min_factor));
  if (limits.max_factor > 0) high = std::min<std::int64_t>(high, quarters(limits.max_factor) + limits.extra);
  if (room != Limits::unlimited) high = std::min<std::int64_t>(high, room - prompt + 1);
  low = std::min(low, high);
  if (prefix > 0 && prefix >= high) return {};
  return std::pair(low, high);
}

}  // namespace

TEST_CASE("bounds of a length are what integers say", "[length]") {
  std::mt19937_64 random(1);
  std::array<int, 2> seen{};
  std::vector<Token> const tokens(20, 3);
  auto const one_of = [&](auto... x) { return std::array{x...}[random() % sizeof...(x)]; };
  for (int round = 0; round < 20000; ++round) {
    auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
    LengthLimits const limits{.min = below(12),
                              .max = one_of(below(12), 256, LengthLimits::unlimited),
                              .min_factor = one_of(0.0, below(8) / 4.0, 1e12),
                              .max_factor = one_of(0.0, below(12) / 4.0),
                              .extra = below(4)};
    Sentence const sentence{.prompt = std::span(tokens).first(random() % 6),
                            .prefix = std::span(tokens).first(random() % 2 == 0 ? 0 : random() % 8),
                            .source_length = below(9) - 1,
                            .limits = {.length = one_of(below(12), 400, Limits::unlimited, Limits::unlimited)}};
    auto plain = limits;
    if (limits.min_factor == 1e12) plain.min_factor = 1e9;  // more than any maximum
    INFO("min " << limits.min << ", max " << limits.max << ", factors " << limits.min_factor << " " << limits.max_factor
                << " + " << limits.extra << ", source " << sentence.source_length << ", prompt "
                << sentence.prompt.size() << ", prefix " << sentence.prefix.size() << ", room "
                << sentence.limits.length);
    if (limits.min > limits.max) {
      CHECK_THROWS_AS(limits.check(), std::invalid_argument);
      continue;
    }
    CHECK_NOTHROW(limits.check());
    auto const expected = bounds_in_integers(plain, sentence);
    ++seen[expected.has_value()];
    if (!expected) {
      CHECK_THROWS_AS(limits.of(sentence), std::invalid_argument);
      continue;
    }
    auto const found = limits.of(sentence);
    CHECK(found.min == std::min<std::int64_t>(expected->first, 1'000'000'000));
    CHECK(found.max == expected->second);
  }
  CHECK((seen[0] > 2000 && seen[1] > 9000));
}

TEST_CASE("an output has 256 tokens at most, and is ranked by its mean, where nothing else is said", "[length]") {
  LengthLimits const limits;
  CHECK(
      (limits.min == 0 && limits.max == 256 && limits.min_factor == 0 && limits.max_factor == 0 && limits.extra == 0));
  LengthPenalty const penalty;
  CHECK((penalty.kind == LengthPenalty::Kind::average && penalty.alpha == 1 && penalty.beta == 5));
  CHECK((penalty.word_penalty == 0 && penalty.divisor(4) == 4));
}

TEST_CASE("limits and penalties refuse what is no number in their range", "[length]") {
  CHECK_NOTHROW(LengthLimits{.max = 0}.check());
  for (auto const& bad :
       {LengthLimits{.min = -1}, LengthLimits{.max = -1}, LengthLimits{.extra = -1}, LengthLimits{.min_factor = -0.5},
        LengthLimits{.min_factor = infinite}, LengthLimits{.min = 257}, LengthLimits{.min = 3, .max = 2},
        LengthLimits{.max_factor = -0.5}, LengthLimits{.max_factor = infinite}})
    CHECK_THROWS_AS(bad.check(), std::invalid_argument);
  CHECK_NOTHROW(LengthPenalty{.alpha = -1, .beta = -0.5, .word_penalty = -1}.check());
  for (auto const bad : {infinite, -infinite, not_a_number}) {
    CHECK_THROWS_AS(LengthPenalty{.alpha = bad}.check(), std::invalid_argument);
    CHECK_THROWS_AS(LengthPenalty{.beta = bad}.check(), std::invalid_argument);
    CHECK_THROWS_AS(LengthPenalty{.word_penalty = bad}.check(), std::invalid_argument);
  }
  CHECK_THROWS_AS(LengthPenalty{.beta = -1}.check(), std::invalid_argument);
}

TEST_CASE("penalties are their formulas, and bounds the highest that can come", "[length]") {
  std::mt19937_64 random(2);
  auto const part = [&] { return static_cast<double>(random() % 1000) / 1000; };
  for (int round = 0; round < 3000; ++round) {
    LengthPenalty penalty{.kind = static_cast<LengthPenalty::Kind>(random() % 3), .beta = 6 * part() - 0.9};
    penalty.alpha = static_cast<double>(random() % 7) / 2 - 1;
    if (random() % 2 == 0) penalty.word_penalty = part() - 0.5;
    auto const formula = [&](double log_prob, std::int32_t length) {
      auto const n = static_cast<double>(std::max(length, 1)), beta = penalty.beta;
      auto const sum = log_prob - penalty.word_penalty * length;
      switch (penalty.kind) {
        case LengthPenalty::Kind::none: return sum;
        case LengthPenalty::Kind::average: return sum / std::pow(n, penalty.alpha);
        default: return sum / std::pow((beta + n) / (beta + 1), penalty.alpha);
      }
    };
    auto const log_prob = -9 * part();
    auto const from = static_cast<std::int32_t>(random() % 6), to = from + static_cast<std::int32_t>(random() % 6);
    auto highest = -infinite;
    for (auto length = from; length <= to; ++length) {
      CHECK_THAT(penalty.score(log_prob, length), WithinAbs(formula(log_prob, length), 1e-9));
      highest = std::max(highest, formula(log_prob, length));
    }
    // Over a range, the word penalty and the divisor are bounded separately: exact where only one of them changes.
    auto const bound = penalty.bound(log_prob, from, to);
    auto const one_changes =
        penalty.word_penalty == 0 || penalty.alpha == 0 || penalty.kind == LengthPenalty::Kind::none;
    CHECK(bound >= highest - 1e-9);
    if (one_changes || from == to) CHECK_THAT(bound, WithinAbs(highest, 1e-9));
  }
}
