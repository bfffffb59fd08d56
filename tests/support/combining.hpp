// SPDX-License-Identifier: Apache-2.0
/// \file
/// Parts for tests of models built from other models.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <support/slot_checker.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Always gives the same line.
template <class T = float>
struct FixedModel {
  using Source = std::uint64_t;
  std::vector<T> line{};
  Kind kind = Kind::logits;
  std::vector<T> answer{};

  Vocabulary vocabulary() const { return {.size = static_cast<std::int32_t>(line.size()), .bos = 0}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<T> step(std::span<Row const> rows) {
    answer.clear();
    for (auto const& row : rows)
      for (std::int32_t i = 0; i < row.lines; ++i) answer.insert(answer.end(), line.begin(), line.end());
    auto const columns = std::ssize(line);
    return scores(answer.data(), std::ssize(answer) / columns, columns, kind);
  }
};

/// A table that fails to start one source.
template <Abilities A = Abilities{}>
struct FailingTable : TableModel<A> {
  using Source = std::uint64_t;
  Source bad = 0;
  FailingTable(Table const& table, Source which) : TableModel<A>(table), bad(which) {}
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (auto const* source : sources)
      if (*source == bad) throw std::runtime_error("cannot encode source " + std::to_string(bad));
    TableModel<A>::start(sources, slots);
  }
};

/// The log-probabilities of one line of scores, in double.
template <class T>
std::vector<double> normalised(std::vector<T> const& line) {
  double top = -infinity, sum = 0;
  for (auto x : line) top = std::max(top, static_cast<double>(x));
  std::vector<double> result(line.begin(), line.end());
  if (top == -infinity) return result;
  for (auto x : result) sum += std::exp(x - top);
  for (auto& x : result) x -= top + std::log(sum);
  return result;
}

/// Starts `source` in slot 0 and returns the line after `tokens`, fed one by one; then releases the slot.
template <class M>
std::vector<double> line_after(M& model, typename M::Source const& source, std::vector<Token> const& tokens) {
  Slot const slot = 0;
  auto const* pointer = &source;
  model.start(std::span(&pointer, 1), std::span(&slot, 1));
  std::vector<double> line;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Row const row{0, 0, static_cast<std::int32_t>(i), std::span(tokens).subspan(i, 1)};
    auto const answer = model.step(std::span(&row, 1));
    auto const last = answer[0];
    line.assign(last.begin(), last.end());
  }
  if constexpr (ReleasingModel<M>) model.release(std::span(&slot, 1));
  return line;
}

/// The first entry where two lines differ by more than tolerance * (1 + |expected|); -1 if there is none. NaN equals
/// NaN.
inline std::ptrdiff_t difference(std::vector<double> const& line, std::vector<double> const& expected,
                                 double tolerance) {
  if (line.size() != expected.size()) return 0;
  for (std::size_t v = 0; v < line.size(); ++v) {
    if (line[v] == expected[v] || (std::isnan(line[v]) && std::isnan(expected[v]))) continue;
    if (!(std::abs(line[v] - expected[v]) <= tolerance * (1 + std::abs(expected[v]))))
      return static_cast<std::ptrdiff_t>(v);
  }
  return -1;
}

/// The message that f throws; empty if it does not throw.
inline std::string thrown(std::function<void()> const& f) {
  try {
    f();
  } catch (std::exception const& e) {
    return e.what();
  }
  return {};
}

}  // namespace sluice::test
