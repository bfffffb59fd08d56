// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/model.md: an engine as a model, and a test that compares batches.
#include <sluice/core/search.hpp>
#include <sluice/sluice.hpp>

#include "engines.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace {

// [dense]
/// An engine that keeps all rows in one dense state and takes one token per row, all at the same position, so it claims
/// no abilities. Slots of equal length share a state; its row i belongs to slot slots[i].
class Dense {
 public:
  using Source = std::vector<sluice::Token>;

  sluice::Vocabulary vocabulary() const {
    return {.size = engine::vocabulary_size, .bos = engine::bos, .eos = {engine::eos}, .never = {engine::bos}};
  }

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    release(slots);
    std::vector<Source> batch;
    for (auto const* source : sources) batch.push_back(*source);
    join(0, {engine::encode(batch), {slots.begin(), slots.end()}});
  }

  /// Drops states in which no slot is left. Released rows of other states are dropped when those are next gathered.
  void release(std::span<sluice::Slot const> slots) {
    for (auto& [length, cohort] : cohorts_)
      for (auto& slot : cohort.slots)
        if (std::ranges::find(slots, slot) != slots.end()) slot = unused;
    std::erase_if(cohorts_, [](auto const& one) { return dead(one.second); });
  }

  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    auto const length = rows[0].length;  // the same for all rows
    auto node = cohorts_.extract(length);
    auto const& before = node.mapped();
    std::vector<std::int64_t> parents, tokens;
    std::vector<sluice::Slot> children;
    for (auto const& row : rows) {
      parents.push_back(std::ranges::find(before.slots, row.from) - before.slots.begin());
      tokens.push_back(row.tokens[0]);
      children.push_back(row.to);
    }
    auto state = gather(before, parents);

    // Slots that take no part in this step keep what they hold; what the children's slots held is dropped.
    std::vector<std::int64_t> others;
    std::vector<sluice::Slot> resting;
    for (std::size_t i = 0; i < before.slots.size(); ++i)
      if (auto const slot = before.slots[i]; slot != unused && std::ranges::find(children, slot) == children.end())
        others.push_back(static_cast<std::int64_t>(i)), resting.push_back(slot);
    if (!others.empty()) join(length, {gather(before, others), resting});
    release(children);

    logits_ = engine::decode(state, length, tokens);
    join(length + 1, {std::move(state), std::move(children)});
    return sluice::scores(logits_.data(), std::ssize(rows), engine::vocabulary_size);
  }

 private:
  static constexpr sluice::Slot unused = -1;
  struct Cohort {
    engine::State state;
    std::vector<sluice::Slot> slots;
  };

  static bool dead(Cohort const& cohort) {
    return std::ranges::all_of(cohort.slots, [](sluice::Slot slot) { return slot == unused; });
  }

  /// Returns the state without selecting rows if every row stays in its place.
  static engine::State gather(Cohort const& cohort, std::vector<std::int64_t> const& rows) {
    auto in_place = rows.size() == cohort.slots.size();
    for (std::size_t i = 0; i < rows.size(); ++i) in_place = in_place && rows[i] == static_cast<std::int64_t>(i);
    return in_place ? cohort.state : engine::select(cohort.state, rows);
  }

  void join(std::int32_t length, Cohort cohort) {
    auto& there = cohorts_[length];
    if (dead(there)) {
      there = std::move(cohort);
    } else {
      // Each memory is as wide as the longest source in its batch.
      auto const width = std::max(engine::width(there.state), engine::width(cohort.state));
      there.state = engine::concatenate(engine::pad(there.state, width), engine::pad(cohort.state, width));
      there.slots.insert(there.slots.end(), cohort.slots.begin(), cohort.slots.end());
    }
  }

  std::map<std::int32_t, Cohort> cohorts_;  // by length
  std::vector<float> logits_;               // of the last step
};
// [/dense]

// [compare]
/// Decodes the same requests one by one and `batch` at a time, in batches and with sentences that join while others run.
/// Returns how many results differ in any way.
template <sluice::Model M, class Requests, sluice::Search S>
int differences(M& model, Requests const& requests, S const& search, std::size_t batch) {
  auto const alone = sluice::decode(model, requests, search, sluice::Batched{.size = 1});
  auto const same = [](sluice::Hypothesis const& a, sluice::Hypothesis const& b) {
    return a.tokens == b.tokens && a.log_probs == b.log_probs && a.score == b.score && a.finished == b.finished;
  };
  int different = 0;
  auto const compare = [&](std::vector<sluice::Result> const& together) {
    for (std::size_t i = 0; i < alone.size(); ++i)
      different += alone[i].failure != together[i].failure ||
                   !std::ranges::equal(alone[i].hypotheses, together[i].hypotheses, same);
  };
  compare(sluice::decode(model, requests, search, sluice::Batched{.size = batch}));
  compare(sluice::decode(model, requests, search, sluice::Streaming{.size = batch, .refill_below = 1}));
  return different;
}
// [/compare]

template <class Source>
auto make_requests() {
  std::vector<sluice::Request<Source, sluice::BeamSearch>> requests(20);
  for (int i = 0; i < 20; ++i) {
    auto& request = requests[static_cast<std::size_t>(i)];
    if constexpr (requires { request.source.push_back(0); })
      for (int k = 0; k <= i * 3 % 7; ++k) request.source.push_back(i + k);
    request.prompt = {0, 2 + i % 5};
    if (i % 3 == 0) request.prompt.push_back(4);
    if (i % 4 == 0) request.prefix = {3, 2 + i % 7};
    if (i % 5 == 0) request.search = sluice::BeamSearch{.width = 2, .length{.max = 4 + i}};
  }
  return requests;
}

}  // namespace

int main() {
  sluice::BeamSearch const search{.width = 3, .n_best = 3, .length{.max = 12}};
  Dense dense;
  auto const wrong = differences(dense, make_requests<std::vector<sluice::Token>>(), search, 7);
  std::cout << wrong << " results depend on the batch\n";
  return wrong;
}
