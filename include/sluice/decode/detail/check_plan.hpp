// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks that a search's plan can be run: a faulty search must not touch the slots of other sentences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// How long a step's plan was before a sentence added its own.
struct PlanMark {
  std::size_t rows = 0, queries = 0, groups = 0, released = 0;

  static PlanMark of(StepPlan const& step) {
    return {step.rows.size(), step.queries.size(), step.groups.size(), step.released.size()};
  }
  /// Removes what has been added since.
  SLUICE_LAZY void restore(StepPlan& step) const {
    step.rows.resize(rows), step.queries.resize(queries), step.groups.resize(groups), step.released.resize(released);
  }
};

/// The limits of a sentence's plan.
struct PlanRules {
  Slot base = 0;
  std::int32_t slot_count = 1;
  Abilities abilities{};
  std::int32_t vocabulary = 0;
  std::int32_t length = Limits::unlimited;  ///< tokens in a slot, at most
  bool first = false;                       ///< the search's first plan: only slot 0 holds anything
  std::int32_t begun = 0;                   ///< first plan: tokens in slot 0
  std::int32_t const* held{};               ///< [slots], later plans: tokens in each of the search's slots; -1: empty
  std::vector<std::uint8_t>* seen{};        ///< scratch
};

[[noreturn]] inline void bad_plan(Row const& row, Slot base, std::string const& clause) {
  throw std::logic_error("sluice: plan: row " + std::to_string(row.from - base) + " -> " +
                         std::to_string(row.to - base) + ": " + clause);
}

/// How many tokens follow each other in a row, at most.
SLUICE_LAZY std::int64_t deepest(Row const& row) {
  if (row.depths == nullptr) return std::ssize(row.tokens);
  return std::int64_t{*std::max_element(row.depths, row.depths + row.tokens.size())} + 1;
}

/// Checks what has been added since `mark`. Throws std::logic_error naming the clause of Plan::row, Plan::ask or
/// Plan::release that it breaks. O(rows + tokens + slots + probes).
/// \throws NoRoom  for a row after which a slot holds more than the model's can
SLUICE_LAZY void check_plan(StepPlan const& step, PlanMark const& mark, PlanRules const& rules) {
  auto const rows = std::span(step.rows).subspan(mark.rows);
  auto const inside = [&](Slot slot) { return slot >= rules.base && slot - rules.base < rules.slot_count; };
  auto const of = [&] { return " is not one of the search's " + std::to_string(rules.slot_count); };
  auto& seen = *rules.seen;  // [slot]: bit 1: a row continues it; bit 2: a row forks into it
  seen.assign(static_cast<std::size_t>(rules.slot_count), 0);
  auto const at = [&](Slot slot) -> std::uint8_t& { return seen[static_cast<std::size_t>(slot - rules.base)]; };
  std::int64_t lines = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto const& row = rows[i];
    auto const fail = [&](std::string const& clause) { bad_plan(row, rules.base, clause); };
    if (!inside(row.from)) fail("slot " + std::to_string(row.from - rules.base) + of());
    if (!inside(row.to)) fail("slot " + std::to_string(row.to - rules.base) + of());
    if (i > 0 && row.to <= rows[i - 1].to) fail("rows must ascend in `to`");
    if (rules.first && row.from != rules.base) fail("the first plan can continue only slot 0");
    if (row.length < 0) fail("length " + std::to_string(row.length) + " is negative");
    auto const held = rules.first ? rules.begun : rules.held[row.from - rules.base];
    if (held < 0) fail("slot " + std::to_string(row.from - rules.base) + " holds nothing");
    if (row.length > held || (row.length < held && !rules.abilities.roll_back))
      fail("length " + std::to_string(row.length) + ", and slot " + std::to_string(row.from - rules.base) + " holds " +
           std::to_string(held) + " tokens" +
           (row.length > held ? ""
                              : ": the model does not roll back (Abilities::roll_back; a search says so by `needs`)"));
    if (row.tokens.empty()) fail("has no tokens");
    if (row.tokens.size() > 1 && !rules.abilities.blocks)
      fail("has " + std::to_string(row.tokens.size()) + " tokens, and the model takes no blocks (Abilities::blocks)");
    for (auto const token : row.tokens)
      if (token < 0 || token >= rules.vocabulary)
        fail("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(rules.vocabulary));
    if (row.lines < 1 || static_cast<std::size_t>(row.lines) > row.tokens.size())
      fail(std::to_string(row.lines) + " lines of " + std::to_string(row.tokens.size()) +
           " tokens: must be at least 1 and at most one a token");
    if (row.depths != nullptr && !rules.abilities.trees)
      fail("branches, and the model takes no trees (Abilities::trees)");
    for (std::size_t t = 0, most = 0; row.depths != nullptr && t < row.tokens.size(); ++t) {
      if (row.depths[t] < 0 || static_cast<std::size_t>(row.depths[t]) > most)
        fail("token " + std::to_string(t) + " at depth " + std::to_string(row.depths[t]) + ": must be in [0, " +
             std::to_string(most) + "]");
      most = static_cast<std::size_t>(row.depths[t]) + 1;
    }
    if (auto const after = std::int64_t{row.length} + std::ssize(row.tokens);
        after > rules.length && std::int64_t{row.length} + deepest(row) > rules.length)
      throw NoRoom("sluice: a slot would hold " + std::to_string(std::int64_t{row.length} + deepest(row)) +
                   " tokens, and those of the model hold " + std::to_string(rules.length) + " (Limits::length)");
    lines += row.lines;
    at(row.from) |= 1;
    if (row.from != row.to) at(row.to) |= 2;
  }
  for (auto const& row : rows)
    if (at(row.to) == 3) bad_plan(row, rules.base, "another row continues the slot that it forks into");
  auto const asked = step.queries.size() - mark.queries;
  if (static_cast<std::int64_t>(asked) != lines)
    throw std::logic_error("sluice: plan: " + std::to_string(asked) + " calls of ask() for " + std::to_string(lines) +
                           " lines");
  for (auto const& query : std::span(step.queries).subspan(mark.queries))
    for (auto const token : query.probes)
      if (token < 0 || token >= rules.vocabulary)
        throw std::logic_error("sluice: plan: a probe of token " + std::to_string(token) +
                               ", which is outside the vocabulary of " + std::to_string(rules.vocabulary));
  for (auto const slot : std::span(step.released).subspan(mark.released)) {
    auto const fail = [&](std::string const& clause) {
      throw std::logic_error("sluice: plan: released slot " + std::to_string(slot - rules.base) + clause);
    };
    if (!inside(slot)) fail(of());
    if ((at(slot) & 1) != 0) fail(" is one that a row continues");
  }
}

/// For models that are not ragged: throws unless the rows since `mark` have the shape of the step's first row.
SLUICE_LAZY void check_alike(StepPlan const& step, PlanMark const& mark, Slot base) {
  for (auto const& row : std::span(step.rows).subspan(mark.rows)) {
    auto const& first = step.rows.front();
    if (row.length != first.length)
      bad_plan(row, base,
               "length " + std::to_string(row.length) + " beside rows of length " + std::to_string(first.length) +
                   ": the model is not ragged (see Progress::length)");
    if (row.tokens.size() != first.tokens.size())
      bad_plan(row, base,
               std::to_string(row.tokens.size()) + " tokens beside rows of " + std::to_string(first.tokens.size()) +
                   ": the model is not ragged (see Progress::block)");
  }
}

}  // namespace sluice::inline v0::detail
