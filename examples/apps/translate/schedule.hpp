// SPDX-License-Identifier: Apache-2.0
/// \file
/// The schedules that --schedule names, behind one type: searches are compiled once for all of them.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/decode/schedule.hpp>

#include <translate/options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace translate {

class Schedule {
 public:
  using Any = std::variant<sluice::Batched, sluice::Streaming>;

  explicit Schedule(Any schedule) : schedule_(std::move(schedule)) {}

  static Schedule named(Options const& options) {
    if (options.schedule == ScheduleName::batched) return Schedule(sluice::Batched{.size = options.batch});
    return Schedule(sluice::Streaming{.size = options.batch,
                                      .refill_below = options.refill_below,
                                      .order = options.order,
                                      .max_rows = options.max_rows,
                                      .drain_after = options.drain_after});
  }

  void check() const {
    std::visit([](auto const& schedule) { schedule.check(); }, schedule_);
  }
  void adapt(sluice::Abilities const& abilities) {
    if (auto* const streaming = std::get_if<sluice::Streaming>(&schedule_)) streaming->adapt(abilities);
  }
  std::size_t admit(std::span<sluice::Live const> live, std::span<std::int32_t const> waiting) const {
    return std::visit([&](auto const& schedule) { return schedule.admit(live, waiting); }, schedule_);
  }
  void select(std::span<sluice::Live const> live, std::vector<std::int32_t>& chosen) const {
    std::visit([&](auto const& schedule) { schedule.select(live, chosen); }, schedule_);
  }

 private:
  Any schedule_;
};

}  // namespace translate
