// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decodes scripts with a schedule of the library, in virtual time.
#pragma once

#include <sluice/core/noise.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>

#include "cost_model.hpp"
#include "replay.hpp"
#include "script.hpp"
#include "simulated_model.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace simulation {

/// A schedule, with its name in a report.
struct NamedSchedule {
  std::string name{};
  std::variant<sluice::Batched, sluice::Streaming> schedule;
  std::size_t window = 0;  ///< Intake::window
};

/// How requests arrive.
struct Arrivals {
  double rate = 0;  ///< in a virtual second (Poisson); 0 = all are there at the start
  std::uint64_t seed = 1;
};

/// The result of one run.
struct Outcome {
  std::string name{};
  std::uint64_t sentences = 0, tokens = 0, steps = 0, rows = 0, encoder_calls = 0;
  double seconds = 0;                      ///< virtual, from the first request to the last end
  double encoder = 0;                      ///< of these, encoding
  double decoder = 0;                      ///< of these, steps
  double lengths = 0;                      ///< longest row's tokens, summed over steps
  double row_lengths = 0;                  ///< rows times the longest row's tokens, summed over steps
  double wall = 0;                         ///< real seconds that the simulation took
  std::vector<std::uint64_t> occupancy{};  ///< [n]: steps in which n sentences took part
  std::vector<float> latencies{};          ///< of the sentences, from request to end; ascending

  double throughput() const { return static_cast<double>(sentences) / seconds; }
  double rows_per_step() const { return static_cast<double>(rows) / static_cast<double>(steps); }
  /// The share of the steps in which fewer than `n` sentences took part.
  double below(std::size_t n) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < std::min(n, occupancy.size()); ++i) sum += occupancy[i];
    return static_cast<double>(sum) / static_cast<double>(steps);
  }
  /// The latency that the share `part` of the sentences does not exceed.
  double latency(double part) const {
    auto const last = static_cast<double>(latencies.size()) - 1;
    return static_cast<double>(latencies[static_cast<std::size_t>(std::llround(std::max(part * last, 0.0)))]);
  }
};

/// Counts the sentences of a step.
struct CountSentences {
  std::vector<std::uint64_t> steps;  ///< [n]: steps in which n sentences took part

  void planned(sluice::StepPlan const& step) {
    auto const n = step.groups.size();
    if (steps.size() <= n) steps.resize(n + 1);
    ++steps[n];
  }
};

namespace detail {

template <bool Ragged, class Schedule>
Outcome run(Scripts const& scripts, Cost const& cost, NamedSchedule const& plan, Schedule const& schedule,
            Arrivals const& arrivals) {
  SimulatedModel<Ragged> model(cost);
  sluice::Decoder decoder(model, Replay{&scripts, scripts.widest()}, schedule, NoCandidates{}, CountSentences{},
                          sluice::Intake{.window = plan.window});
  auto const count = scripts.size();
  Outcome outcome{.name = plan.name};
  outcome.latencies.reserve(count);
  std::vector<double> came(arrivals.rate > 0 ? count : 0);
  for (std::size_t i = 0; i < came.size(); ++i)
    came[i] =
        (i > 0 ? came[i - 1] : 0.0) - std::log(sluice::uniform(sluice::derive(arrivals.seed, i), 0)) / arrivals.rate;
  // If all requests are there at the start: a queue so large that no schedule notices its limit.
  auto const enough = std::max<std::size_t>({4 * plan.window, 4 * schedule.size, 4096});
  auto const began = std::chrono::steady_clock::now();
  std::size_t submitted = 0;
  sluice::Result result;
  for (;;) {
    if (came.empty())
      for (; submitted < count && decoder.waiting() < enough; ++submitted)
        decoder.submit({.source = &scripts.all[submitted]});
    else
      for (; submitted < count && came[submitted] <= model.now(); ++submitted)
        decoder.submit({.source = &scripts.all[submitted]});
    if (!decoder.step()) {
      if (submitted == count) break;
      model.wait(came[submitted]);
      continue;
    }
    outcome.row_lengths += static_cast<double>(model.load().rows) * model.load().longest;
    while (decoder.poll(result))
      outcome.latencies.push_back(static_cast<float>(model.now() - (came.empty() ? 0 : came[result.id])));
  }
  outcome.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  auto const& s = decoder.statistics();
  outcome.sentences = s.sentences, outcome.steps = s.model_calls, outcome.rows = s.rows;
  outcome.encoder_calls = s.encoder_calls;
  for (auto const& script : scripts.all) outcome.tokens += static_cast<std::uint64_t>(script.output);
  outcome.seconds = model.now(), outcome.encoder = model.encoder(), outcome.decoder = model.decoder();
  outcome.lengths = model.lengths();
  outcome.occupancy = std::move(decoder.trace().steps);
  std::ranges::sort(outcome.latencies);
  return outcome;
}

}  // namespace detail

/// Runs all scripts. If steps are `padded` to the longest row, the model is not `ragged`; an order that the plan
/// requires mixes lengths anyway, and pays for the padding.
inline Outcome simulate(Scripts const& scripts, Cost const& cost, NamedSchedule const& plan,
                        Arrivals const& arrivals = {}) {
  return std::visit(
      [&](auto const& schedule) {
        if constexpr (requires { schedule.order; })
          if (cost.padded && schedule.order == sluice::Streaming::Order::automatic)
            return detail::run<false>(scripts, cost, plan, schedule, arrivals);
        return detail::run<true>(scripts, cost, plan, schedule, arrivals);
      },
      plan.schedule);
}

}  // namespace simulation
