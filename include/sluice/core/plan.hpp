// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a search says what it wants run: rows, one query per line, slots it no longer needs.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The plans of all sentences that take part in a step, joined: what goes to the model and to the expander.
struct StepPlan {
  std::vector<Row> rows;
  std::vector<Query> queries;
  std::vector<Group> groups;
  std::vector<Slot> released;

  void clear() { rows.clear(), queries.clear(), groups.clear(), released.clear(); }
};

/// One sentence's part of a step. The search speaks of its own slots, 0 .. slot_count() - 1; the plan adds where the
/// sentence's block of slots begins. The loop looks at every plan before it is run; one that breaks a clause of row(),
/// branch(), ask() or release() ends its sentence, and no other, with Failure::search and a message that names the clause.
template <class = void>
class LazyPlan {
 public:
  LazyPlan(StepPlan& step, Slot base)
      : step_(step), base_(base), row_(step.rows.size()), query_(step.queries.size()), group_(step.groups.size()) {
    step_.groups.push_back({});
  }

  /// Runs `tokens` (at least one; valid until the search is told the answer) after the first `length` tokens of `from`, in
  /// `to`. `from` holds something, and `length` is what it holds; less needs Abilities::roll_back. Rows ascend in `to`, and no row goes on from a slot that another one forks into. `lines` calls of ask() belong to
  /// it, in order, at least one and at most one a token. Several tokens need Abilities::blocks.
  void row(Slot from, Slot to, std::int32_t length, std::span<Token const> tokens, std::int32_t lines = 1) {
    step_.rows.push_back({from + base_, to + base_, length, tokens, lines});
  }
  /// The tokens of the row just planned branch: Row::depths, one for each, valid as they are. Needs Abilities::trees.
  void branch(std::span<std::int32_t const> depths) { step_.rows.back().depths = depths.data(); }
  /// What is wanted of the next line.
  void ask(Query const& query) { step_.queries.push_back(query), ++step_.groups.back().lines; }
  /// Only the sentence's `best` candidates by base + log_prob and, among equals, rank matter (Group::keep).
  void keep(std::int32_t best) { step_.groups.back().keep = best; }
  /// The slot holds nothing that is needed any more. Released before the step's rows are run: none of them goes on from it.
  void release(Slot slot) { step_.released.push_back(slot + base_); }

  /// The first plan only: the log-probabilities of a forced prefix are not wanted, and count as 0.
  void ignore_prefix_scores() { prefix_scored_ = false; }
  bool prefix_scored() const { return prefix_scored_; }

  /// What the request says of all its lines: tokens that it allows (nullptr: all), its direction.
  void restrict_to(TokenSet const* shortlist, std::int32_t direction) {
    if (shortlist != nullptr)
      for (auto& query : queries()) query.shortlist = shortlist;
    for (auto& group : std::span(step_.groups).subspan(group_)) group.direction = direction;
  }

  /// A plan for a search inside this one, whose slot 0 is this one's `first`; its lines follow those planned so far, as a
  /// group of their own.
  LazyPlan part(Slot first) { return {step_, base_ + first}; }

  /// Takes rows of this sentence back, with what was asked of their lines: the i-th where out[i] is not 0. For wrappers of a
  /// search that know the answer. Rows of a search inside this one too, if all plans' rows and questions came in turn.
  /// \param out  [rows().size()]
  void take_back(std::span<std::uint8_t const> out) {
    auto group = group_;
    auto left = step_.groups[group].lines;  // that group's, of rows not yet seen
    auto row = row_, query = query_, line = query_;
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto const one = step_.rows[row_ + i];
      while (left == 0) left = step_.groups[++group].lines;
      left -= one.lines;
      if (out[i] != 0) {
        step_.groups[group].lines -= one.lines, line += static_cast<std::size_t>(one.lines);
        continue;
      }
      step_.rows[row++] = one;
      for (std::int32_t l = 0; l < one.lines; ++l) step_.queries[query++] = step_.queries[line++];
    }
    step_.rows.resize(row), step_.queries.resize(query);
  }

  /// This sentence's rows so far, with the model's slot numbers; base() is its first slot. For wrappers of a search.
  std::span<Row const> rows() const { return std::span(step_.rows).subspan(row_); }
  std::span<Query> queries() { return std::span(step_.queries).subspan(query_); }
  Slot base() const { return base_; }

 private:
  StepPlan& step_;
  Slot base_;
  std::size_t row_, query_, group_;
  bool prefix_scored_ = true;
};
using Plan = LazyPlan<>;

}  // namespace sluice::inline v0
