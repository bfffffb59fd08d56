// SPDX-License-Identifier: Apache-2.0
/// \file
/// When guesses are worth their time, and when to find out.
#pragma once

#include <sluice/language.hpp>

#include <sluice/decode/detail/step_times.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// What the searches of a decoder need to know to guess only as much as pays: what guesses add to a step here, and how often they
/// are right. What is not known yet and may pay is measured.
///
/// Measuring must not cost more than it can bring, so there is an account: the time of each step with guesses, less what the tokens
/// that it settled would have taken one by one. It may exceed three plain steps by half a percent of all time; then nothing is
/// guessed for a while. In large batches a part of the sentences has guesses at first, since one step with guesses for all may take as
/// long as five. Nothing here changes an output: searches that ask for it accept the same tokens, however many are guessed.
class GuessPolicy {
 public:
  static constexpr std::size_t most = StepTimes::most;

  /// After a step, before the searches say what was right in it.
  /// \param seconds  the time of the step, and of making the guesses that it verified
  /// \param guesses  of all sentences
  SLUICE_LAZY void step(double seconds, std::size_t sentences, std::size_t guesses) {
    settle();
    if (sentences > 2 * probed_at_ || 2 * sentences < probed_at_) probes_.fill({}), probed_at_ = sentences;
    if (part_ == 0 || guesses == 0 || guesses > part_ * static_cast<std::size_t>(measure_))
      times_.note(seconds, sentences, guesses);
    else if (auto const plain = times_.plain(sentences); plain > 0) probed(seconds / plain - 1);
    spent_ = seconds, sentences_ = sentences, guesses_ = guesses, asked_ = part_ = 0;
    since_plain_ = guesses == 0 ? 0 : since_plain_ + 1;
    if (++steps_ % 1024 == 0) doubt();
    for (std::size_t g = 1; g <= most; ++g) costs_[g - 1] = times_.added(sentences, g);
    measure_ = choose();
  }

  /// The same after a step that is no measure of time.
  SLUICE_LAZY void pass() {
    settle();
    spent_ = 0, guesses_ = 0, asked_ = 0;
  }

  /// What a sentence says of that step.
  /// \param verified, right  its guesses that were verified, one after the other, and how many of them were right
  /// \param can              the most that it could have next on one path
  SLUICE_LAZY void count(std::int32_t verified, std::int32_t right, std::int32_t can) {
    settled_ += right + 1, ++answered_;
    can_ = (std::max)(can_, (std::min)(static_cast<std::size_t>((std::max)(can, 0)), most));
    for (std::size_t i = 0; i < static_cast<std::size_t>(verified) && i < most; ++i) {
      auto& one = found_[i];
      if (one.tried >= 256) one.tried *= 0.5, one.right *= 0.5;
      ++one.tried, one.right += static_cast<std::int32_t>(i) < right ? 1 : 0;
    }
    auto before = 0.5;
    for (std::size_t i = 0; i < most; ++i)
      rates_[i] = before = found_[i].tried >= 1 ? found_[i].right / found_[i].tried : before;
  }

  /// [g - 1]: what g guesses for each sentence add to a step such as the last, as a fraction of it; < 0: not known.
  std::span<double const> costs() const { return costs_; }
  /// [i]: how many of the guesses after i right ones were right lately, of all sentences.
  std::span<double const> rates() const { return rates_; }
  /// How many guesses the next sentence is to have, to learn what they cost; -1: as many as pay. To be asked once for each.
  std::int32_t measure() { return part_ == 0 || asked_++ < part_ ? measure_ : 0; }

 private:
  static constexpr std::uint64_t plain_every = 128;
  static constexpr double gain = 1.02;  // guesses must promise that much

  struct Found {
    double tried = 0, right = 0;
  };
  /// Steps in which a part of the sentences had so many guesses.
  struct Probe {
    int planned = 0, made = 0;
    double eighth = 0;  // what an eighth of the sentences added
    double least = 0;   // what such guesses for all add at least
  };

  /// Books the step before this one.
  SLUICE_LAZY void settle() {
    auto const plain = times_.plain(sentences_);
    if (guesses_ > 0 && answered_ > 0 && plain > 0) {
      auto const tokens = static_cast<double>(settled_) / static_cast<double>(answered_);  // of each sentence
      auto const each = (guesses_ + sentences_ - 1) / sentences_;
      auto const likely = 2 * plain * (1 + (std::max)(times_.added(sentences_, each), 0.0));
      debt_ = (std::max)(debt_ + (std::min)(spent_, likely) - plain * tokens, -2 * plain);
    }
    if (debt_ > 0) debt_ = (std::max)(debt_ - 0.005 * spent_, 0.0);
    settled_ = answered_ = 0;
  }

  /// A step in which a part of the sentences had guesses took `added` longer, as a fraction of it: if all have them it takes no less. The
  /// first of one guess may be cold, and any may be late because of another program: the lesser of two counts, and half of the sentences
  /// add at most what four eighths add.
  void probed(double added) {
    auto& its = probes_[static_cast<std::size_t>(measure_) - 1];
    if (measure_ == 1) {
      if (its.made == 0) its.eighth = added;
      if (its.made == 1) added = its.eighth = (std::min)(its.eighth, added);
      if (its.made == 2) added = (std::min)(added, 4 * (std::max)(its.eighth, 0.0) + 0.1);
    }
    if (measure_ > 1 || its.made > 0) its.least = (std::max)(its.least, 0.8 * added);
    ++its.made;
  }
  /// How many sentences have g guesses the next time that this is tried; 0: all. Of eight and more at first an eighth, and half before all
  /// have one.
  std::size_t next_part(std::size_t g) {
    auto& its = probes_[g - 1];
    if (sentences_ < 8 || its.made >= (g == 1 ? 3 : 1) || its.planned >= 6) return 0;
    ++its.planned;
    return its.made < 2 ? sentences_ / 8 : sentences_ / 2;
  }

  SLUICE_LAZY std::int32_t choose() {
    auto const plain = times_.plain(sentences_);
    if (plain < 0 || since_plain_ >= plain_every || debt_ > 3 * plain) return 0;
    if (++since_measured_ < 4 || debt_ > 2 * plain) return -1;
    auto best = 1.0, tokens = 1.0, chance = 1.0;  // the most tokens in the time of a plain step, as far as known
    for (std::size_t g = 1; g <= can_; ++g) {
      tokens += chance *= rates_[g - 1];
      if (costs_[g - 1] >= 0) best = (std::max)(best, tokens / (1 + costs_[g - 1]));
    }
    auto cost = 0.0, upper = 1.0;
    tokens = chance = 1;
    for (std::size_t g = 1; g <= can_; ++g) {
      auto const& one = found_[g - 1];
      upper = (std::min)({1.0, (one.right + 1) / (one.tried + 1), one.tried < 1 ? upper : 1.0});
      tokens += chance *= upper;
      auto const known = times_.weight(sentences_, g) >= 3;  // the first steps of a kind are slow
      cost = (std::max)(cost, known ? costs_[g - 1] : probes_[g - 1].least);
      if (tries_[g - 1] >= 6 || (one.tried >= 8 && known)) continue;
      if (tokens / (1 + cost) < gain * best) continue;
      since_measured_ = 0;
      part_ = next_part(g);
      if (part_ == 0) ++tries_[g - 1];
      return static_cast<std::int32_t>(g);
    }
    return -1;
  }

  /// Texts and the load of the machine change: what is known is measured again now and then.
  SLUICE_LAZY void doubt() {
    times_.fade();
    tries_.fill(0), probes_.fill({});
    for (auto& one : found_)
      if (one.tried > 4) one.right *= 4 / one.tried, one.tried = 4;
  }

  StepTimes times_;
  std::array<Found, most> found_{};
  std::array<double, most> costs_{}, rates_{};
  std::array<std::int32_t, most> tries_{};
  std::size_t can_ = 1, sentences_ = 0, guesses_ = 0;
  std::size_t part_ = 0;   // how many sentences are to have guesses in this step; 0: all
  std::size_t asked_ = 0;  // how many were asked
  std::array<Probe, most> probes_{};
  std::size_t probed_at_ = 0;    // sentences
  double spent_ = 0, debt_ = 0;  // seconds
  std::int64_t settled_ = 0, answered_ = 0;
  std::uint64_t steps_ = 0, since_plain_ = 0, since_measured_ = 0;
  std::int32_t measure_ = 0;
};

}  // namespace sluice::inline v0::detail
