// SPDX-License-Identifier: Apache-2.0
/// \file
/// The plan of a search: rows to run, one query per line, slots that it no longer needs.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {

/// The joined plans of all sentences in a step: the input of the model and of the expander. Read its lists as you read a std::vector.
struct StepPlan {
  detail::Buffer<Row> rows;
  detail::Buffer<Query> queries;
  detail::Buffer<Group> groups;
  detail::Buffer<Slot> released;

  void clear() { rows.clear(), queries.clear(), groups.clear(), released.clear(); }
};

/// One sentence's part of a step. The search numbers its own slots 0 .. slot_count() - 1; the plan adds the first slot of the
/// sentence's block. The loop checks every plan before it is run. A plan that breaks a clause of row(), branch(), ask() or
/// release() ends its sentence, and no other, with Failure::search and a message that names the clause.
class Plan {
 public:
  SLUICE_LAZY Plan(StepPlan& step, Slot base)
      : step_(step), base_(base), row_(step.rows.size()), query_(step.queries.size()), group_(step.groups.size()) {
    step_.groups.push_back({});
  }

  /// Runs `tokens` (at least one; valid until advance()) in slot `to`, after the first `length` tokens of slot `from`. `from` is
  /// not empty, and `length` is what it holds; a smaller `length` needs Abilities::roll_back. Rows ascend in `to`, and no row
  /// continues a slot that another one forks into. The row has `lines` lines, for its last `lines` tokens: at least one, at most
  /// one a token. Call ask() for each, in order. Several tokens need Abilities::blocks.
  SLUICE_LAZY void row(Slot from, Slot to, std::int32_t length, std::span<Token const> tokens, std::int32_t lines = 1) {
    step_.rows.push_back({from + base_, to + base_, length, tokens, lines});
  }
  /// Makes the tokens of the row just planned a tree. `depths`: see Row::depths; must live as long as the tokens. Needs
  /// Abilities::trees.
  SLUICE_LAZY void branch(std::span<std::int32_t const> depths) { step_.rows.back().depths = depths.data(); }
  /// The query for the next line.
  SLUICE_LAZY void ask(Query const& query) { step_.queries.push_back(query), ++step_.groups.back().lines; }
  /// Only the sentence's `best` candidates by base + log_prob and, among equals, rank matter (Group::keep).
  void keep(std::int32_t best) { step_.groups.back().keep = best; }
  /// Releases a slot that is no longer needed. It is released before the step's rows are run, so no row may continue it.
  SLUICE_LAZY void release(Slot slot) { step_.released.push_back(slot + base_); }

  /// For the first plan only: the log-probabilities of a forced prefix are not computed, and count as 0.
  void ignore_prefix_scores() { prefix_scored_ = false; }
  bool prefix_scored() const { return prefix_scored_; }

  /// A plan for an inner search, whose slot 0 is this plan's slot `first`. Its lines follow those planned so far, in a group of
  /// their own.
  Plan part(Slot first) { return {step_, base_ + first}; }

  /// Removes rows of this sentence, with their queries: the i-th if out[i] is not 0. For wrappers of a search that know the
  /// answer. Also removes rows of inner searches, if no plan was added to while another was unfinished.
  /// \param out  [rows().size()]
  SLUICE_LAZY void take_back(std::span<std::uint8_t const> out) {
    auto group = group_;
    auto left = step_.groups[group].lines;  // lines of that group in rows not yet visited
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

  /// This sentence's rows so far, in the model's slot numbers; base() is its first slot. For wrappers of a search.
  SLUICE_LAZY std::span<Row const> rows() const { return std::span(step_.rows).subspan(row_); }
  SLUICE_LAZY std::span<Query> queries() { return std::span(step_.queries).subspan(query_); }
  Slot base() const { return base_; }

 private:
  StepPlan& step_;
  Slot base_;
  std::size_t row_, query_, group_;
  bool prefix_scored_ = true;
};

}  // namespace sluice::inline v0
