// SPDX-License-Identifier: Apache-2.0
// Random plans, most of them of one sentence among others: what check_plan() lets through is what the contract allows.
#include <sluice/core/plan.hpp>
#include <sluice/decode/detail/check_plan.hpp>
#include <sluice/decode/detail/typed.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using detail::PlanMark;
using detail::PlanRules;

namespace {

/// A step's plan in which the last sentence's is nearly right.
struct Drawn {
  explicit Drawn(std::uint64_t seed) : random(seed) {
    rules = {.base = below(6),
             .slot_count = 1 + below(4),
             .abilities = {.ragged = below(2) == 0, .blocks = below(3) > 0, .trees = below(2) == 0},
             .vocabulary = 1 + below(5),
             .first = below(6) == 0,
             .begun = below(2),
             .seen = &seen};
    rules.abilities.roll_back = below(2) == 0;
    for (auto slot = 0; slot < rules.slot_count; ++slot) held.push_back(rare() ? -1 : below(3));
    rules.held = held.data();
    // Others, whom nothing is said of: they may be as wrong as they like.
    for (auto n = below(3); n > 0; --n) step.rows.push_back({-7, 99, below(3), tokens.emplace_back(1 + below(2), -5)});
    for (auto n = below(3); n > 0; --n) step.queries.push_back({.probes = tokens.emplace_back(1, -5)});
    for (auto n = below(3); n > 0; --n) step.released.push_back(-7);
    mark = PlanMark::of(step);
    std::int32_t lines = 0;
    for (Slot to = rules.base; to < rules.base + rules.slot_count; ++to) {
      if (below(2) == 0) continue;
      auto const from = below(2) == 0 ? to : rules.base + below(rules.slot_count);
      row(rules.first ? rules.base : from, to + (rare() ? below(3) - 1 : 0));
      lines += step.rows.back().lines;
    }
    if (rare() && step.rows.size() > mark.rows + 1) std::swap(step.rows.back(), step.rows[mark.rows]);
    if (rare()) lines += below(3) - 1;
    for (; lines > 0; --lines) {
      auto& probes = tokens.emplace_back();
      for (auto n = below(3); n > 0; --n) probes.push_back(token());
      step.queries.push_back({.probes = probes});
    }
    for (auto n = below(3); n > 0; --n) {
      auto const slot = rules.base + (rare() ? below(rules.slot_count + 2) - 1 : below(rules.slot_count));
      auto const read = std::ranges::any_of(std::span(step.rows).subspan(mark.rows),
                                            [slot](Row const& row) { return row.from == slot; });
      if (!read || rare()) step.released.push_back(slot);
    }
  }

  std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)); }
  bool rare() { return below(25) == 0; }
  Token token() { return rare() ? (below(2) == 0 ? -1 : rules.vocabulary) : below(rules.vocabulary); }

  void row(Slot from, Slot to) {
    if (rare()) from = rules.base + below(rules.slot_count + 2) - 1;
    auto& list = tokens.emplace_back();
    auto const most = rules.abilities.blocks || rare() ? 4 : 1;
    for (auto n = rare() ? 0 : 1 + below(most); n > 0; --n) list.push_back(token());
    auto const inside = from >= rules.base && from < rules.base + rules.slot_count;
    auto const holds = rules.first ? rules.begun : inside ? held[static_cast<std::size_t>(from - rules.base)] : 0;
    auto const shorter = rules.abilities.roll_back || rare() ? below(2) : 0;
    Row one{from, to, rare() ? below(5) - 1 : std::max(holds - shorter, 0), list,
            1 + below(std::max<std::int32_t>(1, size_of(list)))};
    if (rare()) one.lines = below(2) == 0 ? 0 : size_of(list) + 1;
    if (rules.abilities.trees ? below(2) == 0 : rare()) {
      auto& depth = depths.emplace_back();
      for (std::size_t i = 0; i < list.size(); ++i) {
        auto const deepest = i == 0 ? 0 : depth.back() + 1;
        depth.push_back(rare() ? (below(2) == 0 ? -1 : deepest + 1) : below(deepest + 1));
      }
      one.depths = depth.data();
    }
    step.rows.push_back(one);
  }
  static std::int32_t size_of(std::vector<Token> const& list) { return static_cast<std::int32_t>(list.size()); }

  std::mt19937_64 random;
  PlanRules rules;
  StepPlan step;
  PlanMark mark;
  std::deque<std::vector<Token>> tokens;
  std::deque<std::vector<std::int32_t>> depths;
  std::vector<std::uint8_t> seen;
  std::vector<std::int32_t> held;
};

/// The contract, clause by clause (Plan::row, Plan::ask, Plan::release, Row::depths).
bool allowed(Drawn const& d) {
  auto const rows = std::span(d.step.rows).subspan(d.mark.rows);
  auto const own = [&](Slot slot) { return slot >= d.rules.base && slot <= d.rules.base + d.rules.slot_count - 1; };
  auto const known = [&](Token token) { return token >= 0 && token <= d.rules.vocabulary - 1; };
  std::size_t lines = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto const& row = rows[i];
    auto const count = row.tokens.size();
    if (!own(row.from) || !own(row.to) || row.length < 0 || count == 0) return false;
    if (d.rules.first && row.from != d.rules.base) return false;
    auto const held = d.rules.first ? d.rules.begun : d.held[static_cast<std::size_t>(row.from - d.rules.base)];
    if (d.rules.abilities.roll_back ? row.length > held : row.length != held) return false;
    if (count > 1 && !d.rules.abilities.blocks) return false;
    if (!std::ranges::all_of(row.tokens, known)) return false;
    if (row.lines < 1 || row.lines > static_cast<std::int32_t>(count)) return false;
    if (row.depths != nullptr) {
      if (!d.rules.abilities.trees || row.depths[0] != 0) return false;
      for (std::size_t t = 1; t < count; ++t)
        if (row.depths[t] < 0 || row.depths[t] - row.depths[t - 1] > 1) return false;
    }
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (j < i && rows[j].to >= row.to) return false;
      if (row.from != row.to && rows[j].from == row.to) return false;  // forked into, and read
    }
    lines += static_cast<std::size_t>(row.lines);
  }
  if (d.step.queries.size() - d.mark.queries != lines) return false;
  for (auto const& query : std::span(d.step.queries).subspan(d.mark.queries))
    if (!std::ranges::all_of(query.probes, known)) return false;
  return std::ranges::all_of(std::span(d.step.released).subspan(d.mark.released), [&](Slot slot) {
    return own(slot) && std::ranges::none_of(rows, [slot](Row const& row) { return row.from == slot; });
  });
}

/// What is thrown, without the name of the library; nothing where nothing is.
template <class F>
std::string thrown(F&& f) {
  try {
    f();
  } catch (std::logic_error const& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a plan is let through where it keeps to every clause, and only there", "[misbehaviour]") {
  std::size_t good = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Drawn d(seed);
    auto const expected = allowed(d);
    auto const said = thrown([&] { detail::check_plan(d.step, d.mark, d.rules); });
    INFO("seed " << seed << ": " << said);
    if (said.empty() != expected) CHECK(said.empty() == expected);
    good += expected ? 1 : 0;
    auto const rows = std::span(d.step.rows).subspan(d.mark.rows);
    auto const& first = d.step.rows;
    auto const alike = std::ranges::all_of(rows, [&](Row const& row) {
      return row.length == first[0].length && row.tokens.size() == first[0].tokens.size();
    });
    auto const ragged = thrown([&] { detail::check_alike(d.step, d.mark, d.rules.base); });
    if (ragged.empty() != alike) CHECK(ragged.empty() == alike);
    d.mark.restore(d.step);
    auto const now = PlanMark::of(d.step);
    auto const restored = now.rows == d.mark.rows && now.queries == d.mark.queries && now.groups == d.mark.groups &&
                          now.released == d.mark.released;
    if (!restored) CHECK(restored);
  }
  CHECK(good > 5000);
  CHECK(good < 15'000);
}

TEST_CASE("attachments are of as many lines as were asked for, and as wide as they say", "[misbehaviour]") {
  std::vector<float> const numbers(100);
  for (std::size_t lines = 0; lines < 4; ++lines)
    for (std::ptrdiff_t rows = 0; rows < 4; ++rows)
      for (std::size_t count = 0; count < 4; ++count)
        for (std::int32_t width = -1; width < 5; ++width) {
          std::vector<std::int32_t> widths(count, 2);
          if (count > 0) widths.back() = width;
          Attachments const attached{{numbers.data(), rows, 3, 3}, widths};
          auto const fits = static_cast<std::size_t>(rows) == lines && (count == 0 || count == lines) &&
                            (count == 0 || (width >= 0 && width <= 3));
          INFO(lines << " lines, " << rows << " rows, " << count << " widths, the last " << width);
          CHECK(thrown([&] { detail::check_attachments(attached, lines); }).empty() == (rows == 0 || fits));
        }
}

TEST_CASE("an answer has a line for every question, and a score for every token", "[misbehaviour]") {
  std::vector<float> const numbers(100);
  for (std::ptrdiff_t rows = 0; rows < 4; ++rows)
    for (std::ptrdiff_t columns = 3; columns < 6; ++columns) {
      INFO(rows << " rows of " << columns);
      auto const answer = scores(numbers.data(), rows, columns);
      CHECK(thrown([&] { detail::check_answer(answer, 2, 4); }).empty() == (rows == 2 && columns == 4));
      auto const vectors = hidden(numbers.data(), rows, columns);
      CHECK(thrown([&] { detail::check_answer(vectors, 2, 4); }).empty() == (rows == 2));
    }
}
