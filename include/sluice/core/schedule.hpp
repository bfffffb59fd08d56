// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Schedule concept: which requests are admitted, and which sentences step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// A running sentence, as a schedule sees it.
struct Live {
  std::int32_t length = 0;  ///< tokens that its slots hold
  std::int32_t width = 1;   ///< hypotheses, ended ones that the beam still carries included
  std::int32_t rows = 1;    ///< tokens that it would feed next, and the ended hypotheses that it carries
  std::int32_t block = 1;   ///< tokens in each row that it would plan next
  std::int32_t age = 0;     ///< steps of the decoder since it was admitted, whether it took part or not
  std::int64_t turn = 0;    ///< its place in a list, lowest first. The sentences of a step move to its front, in their
                            ///< order; admitted sentences are added at its end
  std::int32_t source_length = 0;  ///< -1: unknown
};

// clang-format off
/// Two pure functions. A schedule changes when sentences are run, never their results.
///
///  - `admit(live, waiting)`: how many of the waiting sentences (their source lengths, in order) join the running ones (oldest
///    first) now. Called before every step, and again after each admission, until it returns 0. If none runs and no more
///    requests will come, it must admit at least one. `waiting` may be a part of the queue: if it takes all that it sees, it
///    is called again with more, if there are more;
///  - `select(live, chosen)`: appends the indices of the sentences of the next step, ascending, none twice; at least one if
///    any runs. If the model is not `ragged`, the decoder runs only the chosen sentences of the shortest length that feed as many
///    tokens a row as the first of them;
///  - `adapt(abilities)`, optional, called once, before anything else, with the model's abilities;
///  - `check()`, optional: throws std::invalid_argument for options that make no sense.
///
/// An `adapt` or `check` of another signature is a compile error. If a schedule throws or breaks a clause, all that decode() or a
/// Server has left ends with Failure::schedule.
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

/// Compile errors for members that have the name of an optional member and another signature: they would never be called.
template <Schedule S>
consteval bool schedule_names() {
  static_assert(AdaptingSchedule<S> || !stray_adapt<S>(), "sluice: a schedule's `adapt` must take an Abilities const&");
  static_assert(CheckedSchedule<S> || !stray_check<S>(),
                "sluice: check() of a schedule must be const and take nothing");
  return true;
}

}  // namespace detail

}  // namespace sluice::inline v0
