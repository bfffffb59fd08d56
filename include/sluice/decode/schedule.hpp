// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which requests are admitted, and which sentences step: the Schedule concept and the schedules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
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

/// Admits `size` sentences when none is left, and steps all of them. Ended sentences take no more rows.
struct Batched {
  std::size_t size = 64;  ///< sentences; >= 1

  void check() const { require(size >= 1, "size", size, "must be at least 1"); }

  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const>) const { return live.empty() ? size : 0; }

  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) chosen.push_back(static_cast<std::int32_t>(i));
  }
};

/// What a decoder does with requests between submission and admission. Changes speed, never results.
struct Intake {
  /// Sorts each window of so many requests by source length, longest first, so that neighbours have similar lengths
  /// ("maxi-batch"); no request is overtaken by one of a later window. 0 = in order of arrival.
  std::size_t window = 0;
  std::size_t encode_ahead = 0;  ///< sentences that may be encoded and wait to be admitted; 0 = encode on admission.
                                 ///< Needs an EncodingModel
  /// Sentences in one call of Model::encode; 0 = half of encode_ahead with a thread, all of it without.
  std::size_t encode_group = 0;
  bool encoder_thread = true;  ///< encode in a thread of its own, beside Model::step; false: between the steps

  /// Whether a step waits for sentences that the schedule admits and the encoder thread has not finished: then every
  /// run has the same steps. false: while sentences run, only encoded ones join them (Server).
  bool wait_for_encoder = true;

  /// Chunked prefill: the most tokens of prompts and prefixes fed in one step beside the steps of running sentences,
  /// which bounds how long these wait; 0 = no bound. For models that take rows of several tokens beside rows of one
  /// (`ragged`, `blocks`).
  std::int32_t prompt_chunk = 0;
  /// > 0: prefix caching. Common prefixes of prompts are fed once: they are forked from the slots of running sentences
  /// and from this many tokens kept of ended ones. 0 = nothing is shared. Needs a Source that is an empty class
  /// (everything is in the prompt) and `roll_back`.
  std::int64_t shared_tokens = 0;

  /// Sentences in one call of Model::encode.
  std::size_t group() const {
    if (encode_group > 0) return encode_group;
    return encoder_thread ? (encode_ahead + 1) / 2 : encode_ahead;
  }

  /// Throws std::invalid_argument naming the option and its value.
  SLUICE_LAZY void check() const {
    require(encode_group <= encode_ahead, "encode_group", encode_group, "must be at most encode_ahead");
    require(prompt_chunk >= 0, "prompt_chunk", prompt_chunk, "must be 0 (no bound) or more");
    require(shared_tokens >= 0, "shared_tokens", shared_tokens, "must be 0 (nothing is shared) or more");
  }
};

/// Admits new sentences as soon as the batch has shrunk to a given fraction of its size; they start beside those that
/// are already running. Worth it if a step costs little more for many rows than for few.
///
///  - `refill_below = 1`: an ended sentence is replaced at once; 1/2: amun's top-up of half-empty batches ("Faster
///    Neural Machine Translation Inference"); 1/6: VAR-STREAM (Yang et al. 2020, algorithm 1: epsilon); 0: Batched;
///  - `Order::shortest_only` steps only the sentences with the fewest tokens (VAR-STREAM): all rows of a step have one
///    length, which suits models that pad, and models that are not `ragged` need it;
///  - `Order::oldest_first` steps all sentences, oldest first as far as `max_rows` allows (VAR-STR-FIFO, their appendix
///    A.2).
///
/// Both functions cost O(live).
struct Streaming {
  /// Which of the running sentences step.
  enum class Order : std::uint8_t {
    automatic,      ///< oldest_first, or shortest_only if the model is not `ragged`
    oldest_first,   ///< all sentences, in the order of admission, up to max_rows
    shortest_only,  ///< those with the fewest tokens; among them, those that stepped last come first, then the oldest
  };

  /// The size of a refill. By default it fills the batch; the papers' programs work in batches of the input.
  struct Refill {
    std::size_t sentences = 0;  ///< the most sentences at once; 0 = as many as fit
    /// > 0: count in source tokens. A refill takes sentences while they have at most so many together (the first
    /// always), once at most refill_below / (1 - refill_below) of that is still running. Needs known source lengths.
    std::int64_t source_tokens = 0;
  };

  std::size_t size = 64;          ///< the most sentences running; >= 1
  double refill_below = 1.0 / 6;  ///< refill when at most this fraction of `size` is left; in [0, 1]
  Order order = Order::automatic;
  std::int32_t max_rows = 0;  ///< the most tokens fed in one step, including ended hypotheses that beams carry: takes
                              ///< sentences in order until the next does not fit; the first always runs. 0 = no bound
  /// Admits nothing while a running sentence is older than so many steps, so that newcomers cannot starve it; 0 =
  /// never. If all sentences step (oldest_first without max_rows, and a `ragged` model), none can be starved and this
  /// does nothing. Otherwise a sentence that never ends keeps all others out, so give searches a maximum length.
  std::int32_t drain_after = 500;
  Refill refill{};

  /// Throws std::invalid_argument naming the option and its value.
  SLUICE_LAZY void check() const {
    require(size >= 1, "size", size, "must be at least 1");
    require(refill_below >= 0 && refill_below <= 1, "refill_below", refill_below, "must be between 0 and 1");
    require(max_rows >= 0, "max_rows", max_rows, "must be 0 (no bound) or more");
    require(drain_after >= 0, "drain_after", drain_after, "must be 0 (never) or more");
    require(refill.source_tokens >= 0, "refill.source_tokens", refill.source_tokens, "must be 0 (off) or more");
    require(refill.source_tokens == 0 || refill_below < 1, "refill_below", refill_below,
            "must be less than 1 where refills are counted in source tokens");
    require(refill.source_tokens == 0 || refill.sentences == 0, "refill.sentences", refill.sentences,
            "must be 0 where refills are counted in source tokens");
  }

  /// Called by the decoder with the model's abilities.
  SLUICE_LAZY void adapt(Abilities const& abilities) {
    if (order == Order::automatic) order = abilities.ragged ? Order::oldest_first : Order::shortest_only;
    if (order == Order::oldest_first && abilities.ragged && max_rows == 0) drain_after = 0;
  }

  SLUICE_LAZY std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    if (waiting.empty() || live.size() >= size) return 0;
    auto const old = [this](Live const& one) { return one.age > drain_after; };
    if (drain_after > 0 && std::any_of(live.begin(), live.end(), old)) return 0;
    auto const room = size - live.size();
    if (refill.source_tokens > 0) return by_tokens(live, waiting.first((std::min)(room, waiting.size())));
    // Tolerates rounding: a sixth of 12 is 2, whatever 1.0 / 6 is.
    if (static_cast<double>(live.size()) > refill_below * static_cast<double>(size) + 1e-9) return 0;
    return refill.sentences > 0 ? (std::min)(refill.sentences, room) : room;
  }

  SLUICE_LAZY void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    if (live.empty()) return;
    auto const first = static_cast<std::ptrdiff_t>(chosen.size());
    auto least = live.front().length;
    for (auto const& one : live) least = (std::min)(least, one.length);
    for (std::size_t i = 0; i < live.size(); ++i)
      if (order != Order::shortest_only || live[i].length == least) chosen.push_back(static_cast<std::int32_t>(i));
    if (max_rows == 0) return;
    auto const at = [live](std::int32_t i) -> Live const& { return live[static_cast<std::size_t>(i)]; };
    if (order == Order::shortest_only)
      std::sort(chosen.begin() + first, chosen.end(),
                [at](std::int32_t a, std::int32_t b) { return at(a).turn < at(b).turn; });
    std::int64_t rows = 0;
    auto const end = std::find_if(chosen.begin() + first, chosen.end(), [&](std::int32_t i) {
      rows += at(i).rows;
      return rows > max_rows && rows > at(i).rows;
    });
    chosen.erase(end, chosen.end());
    std::sort(chosen.begin() + first, chosen.end());
  }

 private:
  SLUICE_LAZY std::size_t by_tokens(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    std::int64_t alive = 0, taken = 0;
    for (auto const& one : live) alive += (std::max)(one.source_length, 0);
    auto const batch = static_cast<double>(refill.source_tokens);
    if (static_cast<double>(alive) > batch * refill_below / (1 - refill_below) + 1e-9) return 0;
    std::size_t count = 0;
    for (; count < waiting.size(); ++count) {
      taken += (std::max)(waiting[count], 0);
      if (count > 0 && taken > refill.source_tokens) break;
    }
    return count;
  }
};

}  // namespace sluice::inline v0
