// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether the calls of a model keep the contract of slots (docs/model.md).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Knows what every slot holds. A call that breaks a clause is recorded and refused with std::logic_error.
class SlotContract {
 public:
  struct Terms {
    std::int32_t vocabulary = 0;
    Limits limits{};
    Abilities abilities{};
  };

  explicit SlotContract(Terms const& terms) : terms_(terms) {}

  [[noreturn]] void refuse(std::string const& clause, std::string const& what) {
    violations_.push_back("sluice: the contract of slots is broken in step " + std::to_string(steps_) + ": " + clause +
                          ": " + what);
    throw std::logic_error(violations_.back());
  }
  static std::string count(std::size_t n, char const* what) { return std::to_string(n) + " " + what; }

  /// Checks a call of start() with this many sources or items.
  void check_start(std::size_t given, char const* what, std::span<Slot const> slot_numbers) {
    if (given != slot_numbers.size()) refuse(start, count(given, what) + " for " + count(slot_numbers.size(), "slots"));
    if (slot_numbers.empty()) refuse(start, "start of nothing");
    std::set<Slot> seen;
    for (auto const slot : slot_numbers) {
      slot_exists(slot, start, "start");
      if (held_.contains(slot)) refuse(start, "slot " + std::to_string(slot) + " is occupied");
      if (!seen.insert(slot).second) refuse(start, "two sources for slot " + std::to_string(slot));
    }
  }
  template <class Source>
  void check_sources(std::span<Source const* const> sources) {
    for (auto const* source : sources)
      if (source == nullptr) refuse(start, "a source is null");
  }
  void started(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) held_[slot].clear(), unsure_.erase(slot);
  }

  /// Checks a step before it runs, and records it when done() says that it has run. If the model throws, the contents
  /// of the rows' slots are unknown.
  class Step {
   public:
    Step(SlotContract& contract, std::span<Row const> rows) : contract_(contract), rows_(rows) {
      try {
        contract_.examine(rows);
      } catch (...) {  // the caller will release forks that were never made
        for (auto const& row : rows)
          if (!contract_.held_.contains(row.to)) contract_.unsure_.insert(row.to);
        throw;
      }
    }
    Step(Step const&) = delete;
    Step& operator=(Step const&) = delete;
    void done() {
      contract_.apply(rows_);
      done_ = true;
    }
    ~Step() {
      if (done_) return;
      for (auto const& row : rows_) contract_.held_.erase(row.to), contract_.unsure_.insert(row.to);
    }

   private:
    SlotContract& contract_;
    std::span<Row const> rows_;
    bool done_ = false;
  };

  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers)
      if (held_.erase(slot) + unsure_.erase(slot) == 0)
        refuse("release", "slot " + std::to_string(slot) + ", which is free");
  }

  void check_drafts(std::span<Draft const> drafts) {
    for (auto const& draft : drafts) {
      auto const& held = occupied(draft.slot, "propose", "a draft");
      if (draft.length < 0 || static_cast<std::size_t>(draft.length) > held.size())
        refuse("propose", "slot " + std::to_string(draft.slot) + " holds " + count(held.size(), "tokens") +
                              ", the draft keeps " + std::to_string(draft.length));
      if (draft.tokens == nullptr) refuse("propose", "a draft has nowhere to go");
      in_vocabulary(draft.pending, "propose", "a draft");
    }
  }

  Terms const& terms() const { return terms_; }
  std::size_t steps() const { return steps_; }  ///< done
  std::vector<std::string> const& violations() const { return violations_; }
  /// [slot]: the tokens that each occupied slot holds.
  std::map<Slot, std::vector<Token>> const& held() const { return held_; }

  /// The violations, and the slots that were never released.
  std::string report() const {
    std::string text;
    for (auto const& violation : violations_) text.append(violation).append("\n");
    for (auto const& [slot, tokens] : held_)
      text.append("slot ").append(std::to_string(slot)).append(" was never released\n");
    return text;
  }

  static std::string name(std::size_t i, Row const& row) {
    return "row " + std::to_string(i) + " {from " + std::to_string(row.from) + ", to " + std::to_string(row.to) +
           ", length " + std::to_string(row.length) + ", " + count(row.tokens.size(), "tokens") + ", " +
           std::to_string(row.lines) + " lines}";
  }

 private:
  static constexpr char const* start = "start";

  std::vector<Token> const& occupied(Slot slot, std::string const& clause, std::string const& who) {
    auto const found = held_.find(slot);
    if (found != held_.end()) return found->second;
    if (unsure_.contains(slot))
      refuse(clause, who + ": what slot " + std::to_string(slot) + " holds is unspecified, since its last step threw");
    refuse(clause, who + ": slot " + std::to_string(slot) + " is free");
  }
  void in_vocabulary(std::span<Token const> tokens, std::string const& clause, std::string const& who) {
    for (auto const token : tokens)
      if (token < 0 || token >= terms_.vocabulary)
        refuse(clause, who + ": token " + std::to_string(token) + " is not in the vocabulary");
  }
  void slot_exists(Slot slot, std::string const& clause, std::string const& who) {
    if (slot < 0 || slot >= terms_.limits.slot_count)
      refuse(clause, who + ": there is no slot " + std::to_string(slot));
  }

  void examine(std::span<Row const> rows) {
    if (rows.empty()) refuse("step", "a step without rows");
    std::set<Slot> read;
    for (auto const& row : rows) read.insert(row.from);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const& row = rows[i];
      auto const who = name(i, row);
      slot_exists(row.from, "clause 2", who), slot_exists(row.to, "clause 3", who);
      if (i > 0 && rows[i - 1].to >= row.to)
        refuse("clause 1",
               who + ": rows must ascend in `to`, the row before goes to " + std::to_string(rows[i - 1].to));
      auto const size = occupied(row.from, "clause 2", who).size();
      if (row.from != row.to && read.contains(row.to))
        refuse("clause 3", who + ": some row of the step reads slot " + std::to_string(row.to));
      examine(row, size, who);
      if (!terms_.abilities.ragged && (row.length != rows[0].length || row.tokens.size() != rows[0].tokens.size()))
        refuse("clause 8",
               who + ": the model is not ragged, and " + name(0, rows[0]) + " differs in length or number of tokens");
    }
  }

  /// A row whose `from` holds `size` tokens.
  void examine(Row const& row, std::size_t size, std::string const& who) {
    auto const holds = who + ": slot " + std::to_string(row.from) + " holds " + count(size, "tokens");
    if (row.length < 0 || static_cast<std::size_t>(row.length) > size) refuse("clause 5", holds);
    if (static_cast<std::size_t>(row.length) != size && !terms_.abilities.roll_back)
      refuse("clause 5", holds + " and the model cannot roll back");
    if (row.tokens.empty()) refuse("clause 6", who + ": no tokens");
    in_vocabulary(row.tokens, "clause 6", who);
    if (row.tokens.size() > 1 && !terms_.abilities.blocks)
      refuse("clause 6", who + ": the model takes one token at a time");
    if (row.lines < 1 || static_cast<std::size_t>(row.lines) > row.tokens.size())
      refuse("clause 7", who + ": lines must be in [1, tokens]");
    examine_depths(row, who);
    std::int32_t longest = 0;
    for (std::size_t i = 0; i < row.tokens.size(); ++i) longest = (std::max)(longest, row.depth(i) + 1);
    auto const most = terms_.limits.length;
    if (row.length > most || most - row.length < longest)
      refuse("limits", who + ": a slot holds " + std::to_string(most) + " tokens at most");
  }

  void examine_depths(Row const& row, std::string const& who) {
    if (row.depths == nullptr) return;
    if (!terms_.abilities.trees) refuse("clause 12", who + ": the model takes no trees");
    for (std::int32_t before = -1; auto const depth : std::span(row.depths, row.tokens.size())) {
      if (depth < 0 || depth > before + 1)
        refuse("clause 12", who + ": depth " + std::to_string(depth) + " behind depth " + std::to_string(before));
      before = depth;
    }
  }

  void apply(std::span<Row const> rows) {
    ++steps_;
    for (auto const& row : rows)
      if (row.from != row.to) held_[row.to] = held_[row.from];
    for (auto const& row : rows) {
      auto& tokens = held_[row.to];
      tokens.erase(tokens.begin() + row.length, tokens.end());
      auto const kept = row.tokens.first(row.kept());
      tokens.insert(tokens.end(), kept.begin(), kept.end());
      unsure_.erase(row.to);
    }
  }

  Terms terms_;
  std::map<Slot, std::vector<Token>> held_;
  std::set<Slot> unsure_;  // named in a step that threw: neither occupied nor free for certain
  std::vector<std::string> violations_;
  std::size_t steps_ = 0;
};

}  // namespace sluice::inline v0::detail
