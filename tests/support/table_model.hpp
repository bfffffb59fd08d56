// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model whose distributions are a hash of the source and the tokens so far: random, but the same on every machine.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

inline constexpr Token pad = 0, bos = 1, eos = 2;  ///< of every table; the ordinary tokens begin at 3

/// The finaliser of SplitMix64, reimplemented so that the tests do not rely on the library's.
constexpr std::uint64_t hash_mix(std::uint64_t z) {
  z ^= z >> 30, z *= 0xBF58476D1CE4E5B9u;
  z ^= z >> 27, z *= 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// The properties of a table.
struct Table {
  std::int32_t size = 8;                         ///< V; tokens 3 .. V - 1 are ordinary
  double scale = 8;                              ///< logits lie in [0, scale)
  double eos_bias = -1;                          ///< added to eos
  double eos_slope = 0.5;                        ///< and this for every token so far
  std::int32_t order = -1;                       ///< number of last tokens that matter; -1: all
  bool has_eos = true;                           ///< false: eos is as impossible as pad and bos
  std::int32_t levels = 0;                       ///< > 0: number of distinct logits, so that there are ties
  Token second_eos = -1;                         ///< >= 3: this one ends a sentence too
  bool (*broken)(std::uint64_t seed) = nullptr;  ///< sentences whose lines are NaN from the third token on

  bool possible(Token token) const { return token > eos || (token == eos && has_eos); }
  bool ends(Token token) const { return (token == eos && has_eos) || (token == second_eos && token >= 0); }
  bool endless() const { return !has_eos && second_eos < 0; }

  /// The logits after `context` (no start symbol in it), shape [size]; pad and bos are -infinity.
  void logits(std::uint64_t seed, std::span<Token const> context, std::span<double> out) const {
    auto key = hash_mix(seed + 0x9E3779B97F4A7C15u);
    auto const known = order < 0 ? context.size() : std::min(context.size(), static_cast<std::size_t>(order));
    for (auto t : context.last(known)) key = hash_mix(key ^ (static_cast<std::uint64_t>(t + 1) * 0x9E3779B97F4A7C15u));
    for (Token v = 0; v < size; ++v) {
      auto& x = out[static_cast<std::size_t>(v)];
      x = -std::numeric_limits<double>::infinity();
      if (!possible(v)) continue;
      auto const bits = hash_mix(key ^ (static_cast<std::uint64_t>(v + 1) * 0xD1B54A32D192ED03u)) >> 40;
      auto uniform = static_cast<double>(bits) / 16777216.0;
      if (levels > 0) uniform = std::floor(uniform * levels) / levels;
      x = scale * uniform;
      if (v == eos) x += eos_bias + eos_slope * static_cast<double>(context.size());
    }
    if (broken != nullptr && broken(seed) && context.size() > 1) out.back() = std::nan("");
  }

  /// The same, normalised: natural logarithms of probabilities.
  void log_probs(std::uint64_t seed, std::span<Token const> context, std::span<double> out) const {
    logits(seed, context, out);
    double sum = 0;
    for (auto x : out) sum += std::exp(x);
    for (auto& x : out) x -= std::log(sum);
  }
};

/// How a TableModel presents its table.
struct TableOptions {
  Kind kind = Kind::logits;         ///< or the normalised ones
  bool impossible = true;           ///< false: pad and bos get a score above all others, so that only Vocabulary::never
                                    ///< excludes them (and, with logits, they take their share of the probability)
  bool never = true;                ///< whether Vocabulary::never holds pad and bos
  Limits limits{};                  ///< of the model
  std::int32_t length_modulus = 0;  ///< > 0: source s has length 1 + s % this; 0: lengths are unknown
};

/// A table as a model: `Source` is a seed. The first token of a slot is the start symbol if it is bos, and not part of
/// the context. Does not allocate after its slots have held their longest sequences once.
template <Abilities A = Abilities{}, class T = float>
class TableModel {
 public:
  using Source = std::uint64_t;
  static constexpr Abilities abilities = A;

  explicit TableModel(Table const& table = {}, TableOptions const& options = {}) : table_(table), options_(options) {
    vocabulary_.size = table_.size;
    vocabulary_.bos = bos;
    for (Token v = 0; v < table_.size; ++v)
      if (table_.ends(v)) vocabulary_.eos.push_back(v);
    if (options_.never) vocabulary_.never = {pad, bos};
    line_.resize(static_cast<std::size_t>(table_.size));
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return options_.limits; }
  std::int32_t source_length(Source const& source) const {
    if (options_.length_modulus <= 0) return -1;
    return static_cast<std::int32_t>(1 + source % static_cast<std::uint64_t>(options_.length_modulus));
  }
  Table const& table() const { return table_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto& held = at(slots[i]);
      held.seed = *sources[i], held.tokens.clear();
    }
  }

  Scores<T> step(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        at(std::max(row.from, row.to));  // grow first: references must stay valid
        auto& to = at(row.to);
        auto const& from = at(row.from);
        to.seed = from.seed, to.tokens.assign(from.tokens.begin(), from.tokens.end());
      }
    scores_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto& held = at(row.to);
      held.tokens.erase(held.tokens.begin() + row.length, held.tokens.end());
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        held.tokens.resize(static_cast<std::size_t>(row.length + row.depth(i)));
        held.tokens.push_back(row.tokens[i]);
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size()) answer(held), ++lines;
      }
      if (row.depths == nullptr) continue;
      held.tokens.resize(static_cast<std::size_t>(row.length));
      for (std::size_t i = 0; i < row.tokens.size() && row.depths[i] == static_cast<std::int32_t>(i); ++i)
        held.tokens.push_back(row.tokens[i]);
    }
    return scores(scores_.data(), lines, table_.size, options_.kind);
  }

  /// Reserves room for a number of slots, tokens per slot, and lines per step.
  void reserve(std::size_t slots, std::size_t length, std::size_t lines) {
    if (held_.size() < slots) held_.resize(slots);
    for (auto& held : held_) held.tokens.reserve(length);
    scores_.reserve(lines * static_cast<std::size_t>(table_.size));
  }

 private:
  struct Held {
    std::uint64_t seed = 0;
    std::vector<Token> tokens;
  };

  Held& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= held_.size()) held_.resize(i + 1);
    return held_[i];
  }

  void answer(Held const& held) {
    auto context = std::span<Token const>(held.tokens);
    if (!context.empty() && context.front() == bos) context = context.subspan(1);
    if (options_.kind == Kind::logits) table_.logits(held.seed, context, line_);
    else table_.log_probs(held.seed, context, line_);
    if (!options_.impossible) {
      auto const best = *std::max_element(line_.begin(), line_.end());
      line_[pad] = best + 1, line_[bos] = best + 0.5;
    }
    for (auto x : line_) scores_.push_back(static_cast<T>(x));
  }

  Table table_;
  TableOptions options_;
  Vocabulary vocabulary_;
  std::vector<Held> held_;
  std::vector<double> line_;
  std::vector<T> scores_;
};

}  // namespace sluice::test
