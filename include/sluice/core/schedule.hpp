// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Schedule concept: who is admitted, and who steps.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

SLUICE_NAMES(adapt)

namespace sluice::inline v0 {

/// A sentence that is being decoded, as a schedule sees it.
struct Live {
  std::int32_t length = 0;  ///< tokens that its slots hold
  std::int32_t width = 1;   ///< hypotheses, ended ones that the beam still carries included
  std::int32_t rows = 1;    ///< tokens that it would feed next, and the ended hypotheses that it carries
  std::int32_t block = 1;   ///< tokens in each row that it would plan next
  std::int32_t age = 0;     ///< steps of the decoder since it was admitted, whether or not it took part
  std::int64_t turn = 0;    ///< its place, ascending, in a list to whose front move those that take part in a step,
                            ///< in their order there, and to whose end come those that are admitted
  std::int32_t source_length = 0;  ///< -1: unknown
};

// clang-format off
/// Two pure functions. A schedule changes when sentences are run, never what comes out.
///
///  - `admit(live, waiting)`: how many of the waiting sentences (their source lengths, in order) join those alive (oldest
///    first) now; asked before every step, again after each admission, until it says 0. Where nobody is alive and nobody will come,
///    it must let somebody in.
///    Who waits may be a part of all: if it takes all it sees, it is shown more, if there are more, and asked again;
///  - `select(live, chosen)`: appends the indices of those that take part in the next step, ascending, none twice; at least
///    one if any are alive. Where the model is not `ragged` the decoder runs those of one length, the shortest chosen, that
///    feed as many tokens a row as the first of them;
///  - `adapt(abilities)`, optional, called once, before anything else: what the model can;
///  - `check()`, optional: throws std::invalid_argument for options that make no sense.
///
/// The compiler refuses an `adapt` or `check` of another signature. A schedule that throws, or breaks a clause, ends what decode()
/// or a Server has left with Failure::schedule.
template <class S>
concept Schedule = requires(S const& schedule, std::span<Live const> live, std::span<std::int32_t const> waiting,
                            std::vector<std::int32_t>& chosen) {
  { schedule.admit(live, waiting) } -> std::convertible_to<std::size_t>;
  schedule.select(live, chosen);
};
// clang-format on

namespace detail {

template <class S>
concept AdaptingSchedule = requires(S& schedule, Abilities const& abilities) {
  schedule.adapt(abilities);
};
template <class S>
concept CheckedSchedule = requires(S const& schedule) {
  schedule.check();
};

/// Refuses members that have a name the library looks for, and another signature: they would never be called.
template <Schedule S>
consteval bool schedule_names() {
  static_assert(AdaptingSchedule<S> || !stray_adapt<S>(), "sluice: a schedule's `adapt` must take an Abilities const&");
  static_assert(CheckedSchedule<S> || !stray_check<S>(),
                "sluice: check() of a schedule must be const and take nothing");
  return true;
}

}  // namespace detail

}  // namespace sluice::inline v0
