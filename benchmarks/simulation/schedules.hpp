// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedules by name.
#pragma once

#include <sluice/decode/schedule.hpp>

#include "files.hpp"
#include "simulate.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace simulation {

/// Settings shared by all schedules of a run.
struct Sizes {
  std::size_t size = 128;                ///< sentences alive at most
  std::size_t window = 0;                ///< requests sorted together; 0 = as they come
  std::optional<double> refill_below{};  ///< replaces the names' values
  std::int32_t max_rows = 0;             ///< Streaming::max_rows
};

/// The names that to_plan knows, and their meaning.
inline constexpr char const* schedule_names = "batched, streaming (the library's default), var-stream (shortest only, "
                                              "1/6), fifo (oldest first, 1/6), top-up (oldest "
                                              "first, 1/2), continuous (oldest first, 1)";

/// NAME, or NAME/WINDOW.
inline NamedSchedule to_plan(std::string const& text, Sizes const& sizes) {
  using Order = sluice::Streaming::Order;
  auto const slash = text.find('/');
  auto const name = text.substr(0, slash);
  NamedSchedule plan{.name = text, .schedule = sluice::Batched{sizes.size}, .window = sizes.window};
  if (slash != std::string::npos)
    plan.window = static_cast<std::size_t>(to_number(text.substr(slash + 1), "--schedule: " + text, 0, 1e9));
  if (name == "batched") return plan;
  sluice::Streaming streaming{.size = sizes.size, .max_rows = sizes.max_rows};
  if (name == "var-stream") streaming.order = Order::shortest_only;
  else if (name == "fifo") streaming.order = Order::oldest_first;
  else if (name == "top-up") streaming.order = Order::oldest_first, streaming.refill_below = 0.5;
  else if (name == "continuous") streaming.order = Order::oldest_first, streaming.refill_below = 1;
  else if (name != "streaming") throw InputError("--schedule: '" + name + "' is not one of " + schedule_names);
  if (sizes.refill_below) streaming.refill_below = *sizes.refill_below;
  plan.schedule = streaming;
  return plan;
}

/// A list separated by commas.
inline std::vector<NamedSchedule> to_plans(std::string const& list, Sizes const& sizes) {
  std::vector<NamedSchedule> plans;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) plans.push_back(to_plan(name, sizes));
  if (plans.empty()) throw InputError("--schedule: '' names no schedule");
  return plans;
}

}  // namespace simulation
