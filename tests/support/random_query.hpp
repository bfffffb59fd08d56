// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random lines and queries, and bit-for-bit comparison of answers.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

/// A number below n.
inline std::size_t below(std::mt19937_64& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

inline std::vector<float> normal_numbers(std::mt19937_64& random, std::ptrdiff_t count, double deviation = 1) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (auto& x : result) x = static_cast<float>(normal(random));
  return result;
}

/// Which fields a RandomQuery may fill.
struct QueryFields {
  bool selection = true;  ///< mass, within, typical, deviations, at_least, noise, entropy
  bool edits = true, only = true, probes = true, after = true;
};

/// A random query about `size` tokens, and the memory that it refers to. Most fields usually keep their defaults.
struct RandomQuery {
  RandomQuery(std::mt19937_64& random, std::size_t size, QueryFields const& fields = {}) {
    auto const one_of = [&](std::size_t n) { return below(random, n) == 0; };
    auto const part = [&] { return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53); };
    auto const token = [&] { return static_cast<Token>(below(random, size)); };
    auto const some = [&](std::size_t most) { return one_of(12) ? 30 + below(random, 50) : 1 + below(random, most); };
    query.best = static_cast<std::int32_t>(one_of(5)    ? 0
                                           : one_of(12) ? below(random, size + 3)
                                                        : 1 + below(random, 12));
    query.base = -static_cast<double>(part());
    if (fields.selection) {
      if (one_of(6)) query.mass = part();
      if (one_of(6)) query.within = part() * part();
      if (one_of(6)) query.typical = part();
      if (one_of(8)) query.deviations = 3 * part();
      if (one_of(8)) query.at_least = part() * part();
      if (one_of(5)) query.noise = random() | 1;
      query.entropy = one_of(5);
    }
    if (fields.probes && one_of(2)) {
      for (auto i = some(5); i > 0; --i) probes.push_back(token());
      if (one_of(2)) probes.push_back(probes.front());
    }
    if (fields.edits && one_of(2)) {
      for (auto i = some(5); i > 0; --i)
        edits.push_back({token(),
                         one_of(3)   ? -std::numeric_limits<float>::infinity()
                         : one_of(2) ? 0
                                     : 6 * part() - 3,
                         one_of(2) ? 1 : 0.5f + part()});
      if (one_of(2)) edits.push_back(edits.front());
    }
    if (fields.after && one_of(2)) query.stage = Stage::after_softmax;
    if (fields.only && one_of(4)) {
      auto const share = 1 + below(random, 6);
      for (std::size_t v = 0; v < size; ++v)
        if (one_of(share)) only.insert(static_cast<Token>(v));
      query.only = &only;
    }
    if (one_of(4)) query.temperature = 0.25f + 2 * part();
    if (one_of(8)) query.normalise = false, query.mass = query.typical = query.at_least = 0, query.entropy = false;
    query.probes = probes, query.edits = edits;
  }
  RandomQuery(RandomQuery const&) = delete;
  RandomQuery& operator=(RandomQuery const&) = delete;

  Query query{};
  std::vector<Token> probes;
  std::vector<Edit> edits;
  TokenSet only;
};

inline bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

inline bool same_line(Line const& a, Line const& b) {
  auto same = a.valid == b.valid && same_bits(a.log_sum_exp, b.log_sum_exp) && same_bits(a.entropy, b.entropy) &&
              a.best.size() == b.best.size() && a.probes.size() == b.probes.size();
  for (std::size_t i = 0; same && i < a.best.size(); ++i)
    same = a.best[i].token == b.best[i].token && same_bits(a.best[i].log_prob, b.best[i].log_prob);
  for (std::size_t i = 0; same && i < a.probes.size(); ++i) same = same_bits(a.probes[i], b.probes[i]);
  return same;
}

/// A copy of a line that outlives its expander's next call.
struct KeptLine {
  explicit KeptLine(Line const& line)
      : line_(line), best_(line.best.begin(), line.best.end()), probes_(line.probes.begin(), line.probes.end()) {}
  Line view() const {
    auto line = line_;
    line.best = best_, line.probes = probes_;
    return line;
  }

 private:
  Line line_;
  std::vector<Candidate> best_;
  std::vector<float> probes_;
};

inline std::vector<KeptLine> kept(Expansion const& expansion) {
  std::vector<KeptLine> lines;
  for (std::size_t i = 0; i < expansion.size(); ++i) lines.emplace_back(expansion[i]);
  return lines;
}

/// A line with values around the ends of chunks and blocks; some lines have ties and impossible tokens there.
inline std::vector<float> drawn_line(std::mt19937_64& random, std::uint64_t seed) {
  auto const sizes = std::array<std::size_t, 10>{1, 40, 63, 64, 65, 1023, 1024, 1025, 3000, 5000};
  auto const long_ones = std::array<std::size_t, 5>{32767, 32768, 32769, 33792, 65536};
  auto const size = seed % 25 == 0 ? long_ones[seed / 25 % long_ones.size()] : sizes[seed % sizes.size()];
  auto line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 3);
  if (below(random, 3) == 0)
    for (auto& x : line) x = std::round(x) + 0.0f;
  if (below(random, 3) == 0)
    for (auto& x : line) x = below(random, 3) == 0 ? -std::numeric_limits<float>::infinity() : x;
  return line;
}

/// Scores a few floats apart, in any order, and one that is so much better that the log-probabilities of the others
/// round to few distinct values.
inline std::vector<float> near_ties(std::mt19937_64& random, std::size_t size) {
  auto const bases = std::array<float, 6>{0.1f, 5, 1e-6f, 1e-30f, -3, 0.5f};
  auto const base = bases[below(random, bases.size())];
  auto const apart = 1 + below(random, 40);
  std::vector<float> line(size);
  for (auto& x : line) {
    x = base;
    for (auto n = below(random, apart); n > 0; --n) x = std::nextafter(x, 10.0f);
  }
  if (below(random, 2) == 0) line[below(random, size)] = base + 9;
  return line;
}

/// near_ties() with edits after the softmax, bans or additions, and the order in which they must be listed.
struct NearTies {
  explicit NearTies(std::uint64_t seed) : random(seed) {
    constexpr auto none = -std::numeric_limits<float>::infinity();
    auto const size = 3 + below(random, 400);
    line = near_ties(random, size);
    for (auto n = seed % 3 == 0 ? 100 : 1 + below(random, 4); n > 0; --n)
      edits.push_back(Edit::forbid(static_cast<Token>(below(random, size))));
    if (seed % 4 == 1)
      for (auto& edit : edits) edit.add = 0.25f * static_cast<float>(below(random, 5)) - 0.5f;
    if (seed % 4 == 2)
      for (std::size_t v = 0; v < size; v += 1 + below(random, 3)) only.insert(static_cast<Token>(v));
    query = {.best = static_cast<std::int32_t>(1 + below(random, size)),
             .edits = edits,
             .stage = Stage::after_softmax,
             .only = seed % 4 == 2 ? &only : nullptr};
    if (seed % 5 == 1) query.typical = 0.5f;
    if (seed % 5 == 2) query.mass = 0.5f;
    edited = line;
    for (auto const& edit : edits) edited[static_cast<std::size_t>(edit.token)] += edit.add;
    for (std::size_t v = 0; v < size; ++v) {
      if (query.only != nullptr && !only.contains(static_cast<Token>(v))) edited[v] = none;
      if (edited[v] > none) order.push_back(static_cast<Token>(v));
    }
    std::ranges::stable_sort(order, std::greater(), [&](Token v) { return score(v); });
  }
  NearTies(NearTies const&) = delete;
  NearTies& operator=(NearTies const&) = delete;

  float score(Token token) const { return edited[static_cast<std::size_t>(token)]; }
  /// Whether a list has the best in order, optionally followed by others in order.
  bool holds(std::span<Candidate const> best) const {
    auto const least = std::min(order.size(), static_cast<std::size_t>(query.best));
    auto at = order.begin();
    for (std::size_t i = 0; i < best.size(); ++i) {
      auto const found = std::find(at, order.end(), best[i].token);
      if (found == order.end() || (i < least && found != at)) return false;
      if (i > 0 && best[i].log_prob > best[i - 1].log_prob) return false;
      at = found + 1;
    }
    return best.size() >= least;
  }
  /// The number of adjacent list entries whose log-probabilities rounding has made equal.
  std::size_t rounded(std::span<Candidate const> best) const {
    std::size_t count = 0;
    for (std::size_t i = 1; i < best.size(); ++i)
      count += best[i].log_prob == best[i - 1].log_prob && score(best[i].token) < score(best[i - 1].token) ? 1 : 0;
    return count;
  }

  std::mt19937_64 random;
  std::vector<float> line, edited;
  TokenSet only;
  std::vector<Edit> edits;
  Query query;
  std::vector<Token> order;
};

}  // namespace sluice::test
