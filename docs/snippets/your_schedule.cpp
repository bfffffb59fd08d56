// SPDX-License-Identifier: Apache-2.0
// The program of docs/schedule.md: a schedule that the library does not have.
#include <sluice/decode/schedule.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// [schedule]
/// Steps the sentences with the shortest sources, up to `max_rows` tokens, so that short ones do not wait for long ones.
/// Each step that a sentence has been alive counts as one source token less, so that a stream of short ones cannot keep a
/// long one waiting for ever.
struct ShortestFirst {
  std::size_t size = 64;       ///< maximum number of live sentences; >= 1
  std::int32_t max_rows = 16;  ///< maximum number of tokens fed in a step; the first sentence always runs; >= 1
  bool ragged = false;         ///< whether rows may differ in length; set by adapt()

  void check() const {
    sluice::require(size >= 1, "size", size, "must be at least 1");
    sluice::require(max_rows >= 1, "max_rows", max_rows, "must be at least 1");
  }
  void adapt(sluice::Abilities const& abilities) { ragged = abilities.ragged; }

  std::size_t admit(std::span<sluice::Live const> live, std::span<std::int32_t const> waiting) const {
    return std::min(size - live.size(), waiting.size());
  }

  void select(std::span<sluice::Live const> live, std::vector<std::int32_t>& chosen) const {
    auto const at = [live](std::int32_t i) -> sluice::Live const& { return live[static_cast<std::size_t>(i)]; };
    std::vector<std::int32_t> order;
    for (std::int32_t i = 0; i < std::ssize(live); ++i) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return at(i).source_length - at(i).age; });

    auto const before = std::ssize(chosen);
    std::int64_t rows = 0;
    for (auto const i : order) {
      if (!ragged && at(i).length != at(order[0]).length) continue;  // rows must have the length of the first
      if (rows > 0 && rows + at(i).rows > max_rows) break;
      rows += at(i).rows;
      chosen.push_back(i);
    }
    std::sort(chosen.begin() + before, chosen.end());
  }
};
// [/schedule]

static_assert(sluice::Schedule<ShortestFirst>);

/// Repeats its source, one token per step.
class Echo {
 public:
  using Source = std::vector<sluice::Token>;
  static constexpr sluice::Abilities abilities{.ragged = true};

  sluice::Vocabulary vocabulary() const { return {.size = 3, .bos = 0, .eos = {1}}; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) source(slots[i]) = sources[i];
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    answer_.assign(rows.size() * 3, -9);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const& all = *source(rows[i].from);
      auto const said = static_cast<std::size_t>(rows[i].length);
      answer_[3 * i + static_cast<std::size_t>(said < all.size() ? all[said] : 1)] = 0;
    }
    return sluice::scores(answer_.data(), std::ssize(rows), 3);
  }

 private:
  Source const*& source(sluice::Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (sources_.size() <= i) sources_.resize(i + 1);
    return sources_[i];
  }
  std::vector<Source const*> sources_;  // [slot]
  std::vector<float> answer_;
};

// [measure]
/// Decodes the sources and prints after how many steps they ended. Returns the outputs.
template <class Schedule>
std::vector<Echo::Source> run(std::string const& name, std::vector<Echo::Source> const& sources, Schedule schedule) {
  Echo model;
  sluice::Decoder decoder(model, sluice::Greedy{}, schedule);
  for (auto const& source : sources) decoder.submit({.source = source});
  std::vector<Echo::Source> outputs(sources.size());
  std::uint64_t sum = 0;
  sluice::Result result;
  while (decoder.step())
    while (decoder.poll(result)) {
      outputs.at(result.id) = result.hypotheses.at(0).tokens;
      sum += decoder.statistics().steps;
    }
  std::cout << name << ": all after " << decoder.statistics().steps << " steps, on average after "
            << sum / sources.size() << '\n';
  return outputs;
}
// [/measure]

}  // namespace

int main() {
  // [use]
  std::vector<std::vector<sluice::Token>> sources;
  for (std::size_t i = 0; i < 48; ++i) sources.emplace_back(1 + i * 29 % 40, 2);  // of 1 to 40 tokens

  auto const oldest = run("oldest first", sources, sluice::Streaming{.size = 48, .refill_below = 1, .max_rows = 8});
  auto const shortest = run("shortest first", sources, ShortestFirst{.size = 48, .max_rows = 8});
  if (oldest != shortest) throw std::logic_error("a schedule changed a result");
  // [/use]
  return 0;
}
