// SPDX-License-Identifier: Apache-2.0
/// \file
/// A wrapper of any model that refuses every row which breaks the contract of slots, and counts what is asked of it.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// What was asked of a model.
struct Counters {
  std::size_t starts = 0;   ///< calls of start
  std::size_t sources = 0;  ///< sources started
  std::size_t steps = 0;    ///< calls of step
  std::size_t rows = 0;
  std::size_t lines = 0;       ///< answers
  std::size_t tokens = 0;      ///< tokens fed
  std::size_t forks = 0;       ///< rows with from != to
  std::size_t roll_backs = 0;  ///< rows that cut their slot
  std::size_t released = 0;    ///< slots
  std::size_t most_slots = 0;  ///< held at once
  std::size_t most_rows = 0;   ///< in one step
  std::size_t longest = 0;     ///< tokens in one slot
};

/// What may vary between users of the contract.
struct SlotRules {
  std::size_t slots = std::numeric_limits<std::size_t>::max();  ///< held at once, at most: sentences x width
  bool first_child_in_place = true;                             ///< a slot is forked only where it also goes on itself
};

template <class M>
struct EncodedOf {};
template <EncodingModel M>
struct EncodedOf<M> {
  using Encoded = typename M::Encoded;
};

/// Wraps `M`, claims `A` (which M must be able to do), checks every call before it passes it on. A violation throws
/// std::logic_error and is kept in violations(): a test ends with `REQUIRE(model.report().empty())`.
template <Model M, Abilities A = sluice::abilities<M>()>
class SlotChecker : public EncodedOf<M> {
  static_assert(sluice::abilities<M>().include(A));

 public:
  using Source = typename M::Source;
  using Wrapped = M;
  static constexpr Abilities abilities = A;

  SlotChecker() = default;
  explicit SlotChecker(M model, SlotRules const& rules = {}) : model_(std::move(model)), rules_(rules) {}

  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return sluice::limits(model_); }
  std::int32_t source_length(Source const& source) const { return sluice::source_length(model_, source); }
  M& model() { return model_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    if (sources.size() != slots.size())
      refuse("start brings " + count(sources.size(), "sources") + " for " + count(slots.size(), "slots"));
    for (auto const* source : sources)
      if (source == nullptr) refuse("start brings a source that is null");
    begin(slots);
    model_.start(sources, slots);
    begun(slots);
  }

  template <class Encoded>
    requires EncodingModel<M>
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    if (items.size() != slots.size())
      refuse("start brings " + count(items.size(), "items") + " for " + count(slots.size(), "slots"));
    begin(slots);
    model_.start(encoded, items, slots);
    begun(slots);
  }

  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> { return model_.encode(sources); }

  void propose(std::span<Draft const> drafts) requires ProposingModel<M> {
    for (auto const& draft : drafts) {
      auto const& held = occupied(draft.slot, "propose");
      if (draft.length < 0 || static_cast<std::size_t>(draft.length) > held.size())
        refuse("propose: slot " + std::to_string(draft.slot) + " holds " + count(held.size(), "tokens") +
               ", the draft keeps " + std::to_string(draft.length));
      if (draft.tokens == nullptr) refuse("propose: a draft has nowhere to go");
      vocabulary_holds(draft.pending, "propose");
    }
    model_.propose(drafts);
  }

  auto step(std::span<Row const> rows) {
    check(rows);
    std::vector<Slot> unsure;
    for (auto const& row : rows) unsure.push_back(row.to);
    unsure_ = unsure;  // should the model throw, nobody knows what these slots hold
    auto answer = model_.step(rows);
    unsure_.clear();
    apply(rows);
    return answer;
  }

  void release(std::span<Slot const> slots) {
    for (auto slot : slots) {
      auto const unsure = std::find(unsure_.begin(), unsure_.end(), slot);
      if (held_.erase(slot) == 0 && unsure == unsure_.end())
        refuse("release of slot " + std::to_string(slot) + ", which is free");
      if (unsure != unsure_.end()) unsure_.erase(unsure);
      ++counters_.released;
    }
    if constexpr (ReleasingModel<M>) model_.release(slots);
  }

  Counters const& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }
  std::vector<std::string> const& violations() const { return violations_; }
  std::size_t held() const { return held_.size(); }
  void rules(SlotRules const& rules) { rules_ = rules; }

  /// The violations and the slots that were never released; empty if all is well at the end of a test.
  std::string report() const {
    std::string text;
    for (auto const& violation : violations_) text.append(violation).append("\n");
    for (auto const& [slot, tokens] : held_)
      text.append("slot ").append(std::to_string(slot)).append(" was never released\n");
    return text;
  }

 private:
  [[noreturn]] void refuse(std::string const& what) {
    violations_.push_back("the contract of slots is broken in step " + std::to_string(counters_.steps) + ": " + what);
    throw std::logic_error(violations_.back());
  }
  static std::string count(std::size_t n, char const* what) { return std::to_string(n) + " " + what; }
  static std::string name(std::size_t i, Row const& row) {
    return "row " + std::to_string(i) + " {from " + std::to_string(row.from) + ", to " + std::to_string(row.to) +
           ", length " + std::to_string(row.length) + ", " + count(row.tokens.size(), "tokens") + ", " +
           std::to_string(row.lines) + " lines}";
  }

  std::vector<Token> const& occupied(Slot slot, std::string const& who) {
    auto const found = held_.find(slot);
    if (found == held_.end()) refuse(who + ": slot " + std::to_string(slot) + " is free");
    return found->second;
  }

  void vocabulary_holds(std::span<Token const> tokens, std::string const& who) {
    Vocabulary const vocabulary = model_.vocabulary();
    for (auto token : tokens)
      if (token < 0 || token >= vocabulary.size)
        refuse(who + ": token " + std::to_string(token) + " is not in the vocabulary");
  }

  void slot_exists(Slot slot, std::string const& who) {
    if (slot < 0 || slot >= limits().slots) refuse(who + ": there is no slot " + std::to_string(slot));
  }

  void begin(std::span<Slot const> slots) {
    ++counters_.starts;
    if (slots.empty()) refuse("start of nothing");
    std::set<Slot> seen;
    for (auto slot : slots) {
      slot_exists(slot, "start");
      if (held_.contains(slot)) refuse("start in slot " + std::to_string(slot) + ", which is occupied");
      if (!seen.insert(slot).second) refuse("start of two sources in slot " + std::to_string(slot));
    }
  }
  void begun(std::span<Slot const> slots) {
    counters_.sources += slots.size();
    for (auto slot : slots) held_[slot].clear();
    enough();
  }
  void enough() {
    counters_.most_slots = std::max(counters_.most_slots, held_.size());
    if (held_.size() > rules_.slots)
      refuse(count(held_.size(), "slots are held, ") + std::to_string(rules_.slots) + " are allowed");
  }

  void check(std::span<Row const> rows) {
    if (rows.empty()) refuse("a step without rows");
    std::set<Slot> read, in_place;
    for (auto const& row : rows) {
      read.insert(row.from);
      if (row.from == row.to) in_place.insert(row.to);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const& row = rows[i];
      auto const who = name(i, row);
      slot_exists(row.from, who), slot_exists(row.to, who);
      if (i > 0 && rows[i - 1].to >= row.to)
        refuse(who + ": rows must ascend in `to`, the row before goes to " + std::to_string(rows[i - 1].to));
      auto const& held = occupied(row.from, who);
      auto const size = static_cast<std::int32_t>(held.size());
      if (row.length < 0 || row.length > size)
        refuse(who + ": slot " + std::to_string(row.from) + " holds " + count(held.size(), "tokens"));
      if (row.length != size && !A.roll_back)
        refuse(who + ": slot " + std::to_string(row.from) + " holds " + count(held.size(), "tokens") +
               " and the model cannot roll back");
      if (row.tokens.empty()) refuse(who + ": no tokens");
      vocabulary_holds(row.tokens, who);
      if (row.tokens.size() > 1 && !A.blocks) refuse(who + ": the model takes one token at a time");
      if (row.lines < 1 || static_cast<std::size_t>(row.lines) > row.tokens.size())
        refuse(who + ": lines must be in [1, tokens]");
      if (!A.ragged && (row.length != rows[0].length || row.tokens.size() != rows[0].tokens.size()))
        refuse(who + ": the model is not ragged, and " + name(0, rows[0]) + " differs in length or number of tokens");
      if (row.length > limits().length || static_cast<std::size_t>(limits().length - row.length) < row.tokens.size())
        refuse(who + ": a slot holds " + std::to_string(limits().length) + " tokens at most");
      if (row.from == row.to) continue;
      if (read.contains(row.to)) refuse(who + ": some row of the step reads slot " + std::to_string(row.to));
      if (rules_.first_child_in_place && !in_place.contains(row.from))
        refuse(who + ": a fork of slot " + std::to_string(row.from) + ", which no row continues in place");
    }
  }

  void apply(std::span<Row const> rows) {
    ++counters_.steps;
    counters_.rows += rows.size();
    counters_.most_rows = std::max(counters_.most_rows, rows.size());
    for (auto const& row : rows) {
      auto const size = held_[row.from].size();
      counters_.roll_backs += static_cast<std::size_t>(row.length) < size ? 1 : 0;
      if (row.from != row.to) ++counters_.forks, held_[row.to] = held_[row.from];
    }
    for (auto const& row : rows) {
      auto& held = held_[row.to];
      held.erase(held.begin() + row.length, held.end());
      held.insert(held.end(), row.tokens.begin(), row.tokens.end());
      counters_.lines += static_cast<std::size_t>(row.lines);
      counters_.tokens += row.tokens.size();
      counters_.longest = std::max(counters_.longest, held.size());
    }
    enough();
  }

  M model_{};
  SlotRules rules_{};
  Counters counters_{};
  std::map<Slot, std::vector<Token>> held_;  ///< occupied slots and the tokens they hold
  std::vector<Slot> unsure_;                 ///< of a step that threw: neither occupied nor free for certain
  std::vector<std::string> violations_;
};

}  // namespace sluice::test
