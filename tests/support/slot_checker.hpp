// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model wrapper that enforces the contract of slots and additional promises of searches, and counts requests.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_contract.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// Counts of what a model was asked to do.
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

/// What may differ between searches.
struct SlotRules {
  std::size_t slots = std::numeric_limits<std::size_t>::max();  ///< maximum number held at once: sentences x width
  bool first_child_in_place = true;                             ///< a slot is forked only if it is also continued in
                                                                ///< place
};

/// Owns an `M`, claims the abilities it is told to claim, and checks every call before passing it on. A violation
/// throws std::logic_error and is kept in violations(): a test ends with `REQUIRE(model.report().empty())`. The claims
/// are known only at run time, so one decoder serves all of them. `sluice::Checked` is the version for users; it also
/// checks the model.
template <Model M>
class CheckedModel : public sluice::detail::EncodedOf<M> {
 public:
  using Source = typename M::Source;
  using Wrapped = M;

  CheckedModel(M model, Abilities claimed, SlotRules const& rules = {})
      : model_(std::move(model)), contract_(terms(model_, claimed)), rules_(rules) {
    if (!sluice::abilities(std::as_const(model_)).include(claimed))
      throw std::invalid_argument("CheckedModel: the model cannot do what is claimed");
  }

  Abilities abilities() const { return contract_.terms().abilities; }
  bool encodes() const { return sluice::encodes(model_); }
  bool proposes() const { return sluice::proposes(model_); }
  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return sluice::limits(model_); }
  std::int32_t source_length(Source const& source) const { return sluice::source_length(model_, source); }
  M& model() { return model_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    ++counters_.starts;
    contract_.check_start(sources.size(), "sources", slots), contract_.check_sources(sources);
    model_.start(sources, slots);
    begun(slots);
  }
  template <class Encoded>
    requires EncodingModel<M>
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    ++counters_.starts;
    contract_.check_start(items.size(), "items", slots);
    model_.start(encoded, items, slots);
    begun(slots);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> { return model_.encode(sources); }

  void propose(std::span<Draft const> drafts) requires ProposingModel<M> {
    contract_.check_drafts(drafts);
    model_.propose(drafts);
  }

  auto step(std::span<Row const> rows) {
    sluice::detail::SlotContract::Step step(contract_, rows);
    if (rules_.first_child_in_place) in_place(rows);
    auto answer = model_.step(rows);
    count(rows);
    step.done();
    enough();
    return answer;
  }

  void release(std::span<Slot const> slots) {
    contract_.release(slots);
    counters_.released += slots.size();
    if constexpr (ReleasingModel<M>) model_.release(slots);
  }

  Counters const& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }
  std::vector<std::string> const& violations() const { return contract_.violations(); }
  std::size_t held() const { return contract_.held().size(); }
  void rules(SlotRules const& rules) { rules_ = rules; }

  /// The violations, and the slots that were never released; empty at the end of a correct test.
  std::string report() const { return contract_.report(); }

 private:
  static sluice::detail::SlotContract::Terms terms(M const& model, Abilities claimed) {
    Vocabulary const vocabulary = model.vocabulary();
    return {.vocabulary = vocabulary.size, .limits = sluice::limits(model), .abilities = claimed};
  }

  void begun(std::span<Slot const> slots) {
    contract_.started(slots);
    counters_.sources += slots.size();
    enough();
  }
  void enough() {
    counters_.most_slots = std::max(counters_.most_slots, held());
    if (held() > rules_.slots)
      contract_.refuse("slots",
                       contract_.count(held(), "slots are held, ") + std::to_string(rules_.slots) + " are allowed");
  }

  void in_place(std::span<Row const> rows) {
    std::set<Slot> going_on;
    for (auto const& row : rows)
      if (row.from == row.to) going_on.insert(row.to);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!going_on.contains(rows[i].from))
        contract_.refuse("forks", contract_.name(i, rows[i]) + ": a fork of slot " + std::to_string(rows[i].from) +
                                      ", which no row continues in place");
  }

  void count(std::span<Row const> rows) {
    ++counters_.steps;
    counters_.rows += rows.size();
    counters_.most_rows = std::max(counters_.most_rows, rows.size());
    for (auto const& row : rows) {
      auto const length = static_cast<std::size_t>(row.length);
      if (length < contract_.held().at(row.from).size()) ++counters_.roll_backs;
      if (row.from != row.to) ++counters_.forks;
      counters_.lines += static_cast<std::size_t>(row.lines);
      counters_.tokens += row.tokens.size();
      counters_.longest = std::max(counters_.longest, length + row.tokens.size());
    }
  }

  M model_;
  sluice::detail::SlotContract contract_;
  SlotRules rules_;
  Counters counters_{};
};

/// The same with the claims as part of the type.
template <Model M, Abilities A = sluice::abilities<M>()>
class SlotChecker : public CheckedModel<M> {
  static_assert(sluice::abilities<M>().include(A));

 public:
  static constexpr Abilities abilities = A;

  explicit SlotChecker(M model = M{}, SlotRules const& rules = {}) : CheckedModel<M>(std::move(model), A, rules) {}
};

}  // namespace sluice::test
