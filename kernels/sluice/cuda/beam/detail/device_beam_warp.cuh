// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of the warp that advances one sentence of a DeviceBeam by a step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_ended.cuh>
#include <sluice/cuda/beam/detail/device_beam_rows.cuh>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/beam/detail/device_beam_stopping.cuh>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// BeamSearch::advance with FinishedHypotheses::set_aside: assigns candidates to the next beam and to the finished hypotheses,
/// assigns slots to live hypotheses, and decides whether the sentence is over. Every candidate finds its place, which
/// merge_beams has counted, in parallel. Warps are independent.
template <class Block>
class BeamWarp {
  using Memory = BeamWarpMemory;

 public:
  SLUICE_DEVICE BeamWarp(Block& block, Memory& memory, BeamTask const& task, std::int32_t number)
      : block_(block), memory_(memory), task_(task), number_(number), before_(task.state[number]), now_(before_) {}

  SLUICE_DEVICE void run() {
    if (before_.running == 0) return;
    auto const valid = look();
    if (valid && task_.rules.forced(before_.generated, before_.max)) choose_ends();
    else if (valid) choose();
    if (block_.thread() < 2) memory_.stays[block_.thread()] = memory_.first[block_.thread()] = 0;
    block_.sync(Barrier::chosen);
    if (!valid) {
      now_.valid = 0;
      return stop();
    }
    set_aside(block_, memory_, task_, number_, ends_ + joins_, now_);
    block_.sync(Barrier::aside);
    ++now_.generated, ++now_.held, now_.live = next_;
    if (now_.generated >= now_.max || next_ == 0 || BeamStopping(task_, memory_, now_, number_).stops()) return stop();
    find_first();
    block_.sync(Barrier::stayed);
    go_on();
  }

 private:
  /// Counts the candidates; returns whether all lines are valid.
  SLUICE_DEVICE bool look() {
    auto invalid = false;
    for (std::int32_t begin = 0; begin < before_.live; begin += 32) {
      auto const rank = begin + block_.thread();
      auto bad = false;
      if (rank < before_.live) {
        auto const& result = task_.results[line(rank).row];
        listed_ += result.count;
        bad = result.valid == 0;
      }
      invalid = block_.ballot(bad) != 0 || invalid;
    }
    SLUICE_ROLLED
    for (int distance = 16; distance > 0; distance /= 2) listed_ += block_.exchange(listed_, distance);
    return !invalid;
  }

  /// Takes the candidates, best first, while there is room: those that fit into the beam may end, `width` continue.
  SLUICE_DEVICE void choose() {
    auto const& rules = task_.rules;
    auto const* const places = task_.places + first_kept();
    auto limit = listed_ < rules.keep ? listed_ : rules.keep;
    auto const last = before_.generated + 1 >= before_.max;
    if (last && limit > rules.width) limit = rules.width;
    std::int32_t live = 0;
    for (std::int32_t begin = 0; begin < limit; begin += 32) {
      auto const i = begin + block_.thread();
      auto const ends = i < limit && places[i] < 0;
      live += count_bits(block_.ballot(i < limit && !ends));
      ends_ += count_bits(block_.ballot(ends && i < rules.width));
    }
    auto const top = limit > 0 && places[0] < 0 ? 1 : 0;
    now_.top_ended |= top;
    auto room = rules.width;
    if (rules.guard_prefix && before_.prefix > 0 && before_.generated == before_.prefix) {
      room -= ends_ - top;  // places that stay empty
      ends_ = top;
    }
    bound_ends();
    next_ = live < room ? live : room;
    auto const fixed_length = rules.ends == 0;
    if (last && (fixed_length || rules.at_maximum == AtMaximum::truncate)) joins_ = next_;
    else if (last && rules.at_maximum == AtMaximum::best_unfinished) joins_ = next_ > 0 ? 1 : 0;
    for (auto i = block_.thread(); i < limit; i += 32) {
      auto const place = places[i];
      auto const kept = task_.kept[first_kept() + i];
      auto const total = task_.totals[first_kept() + i];
      BeamNode const node{kept.parent, kept.token, kept.log_prob};
      if (place < 0) {
        if (i < rules.width && ~place < ends_) end(~place, total, node, true);
      } else if (place < next_) {
        memory_.next[place] = {total, node, line(kept.parent).row};
        if (place < joins_) end(ends_ + place, total, node, fixed_length);
      }
    }
  }

  /// The last step, in which all hypotheses must end: every hypothesis with every end token, ranked by counting.
  SLUICE_DEVICE void choose_ends() {
    auto const ends = task_.rules.ends;
    auto const count = before_.live * ends;
    for (std::int32_t begin = 0; begin < count; begin += 32) {
      auto const i = begin + block_.thread();
      ends_ += count_bits(block_.ballot(i < count && gain(i) > minus_infinity));
    }
    if (ends_ > task_.rules.width) ends_ = task_.rules.width;
    bound_ends();
    for (auto i = block_.thread(); i < count; i += 32) {
      if (!(gain(i) > minus_infinity)) continue;
      auto const mine = total(i);
      std::int32_t rank = 0;
      SLUICE_ROLLED
      for (std::int32_t other = 0; other < count; ++other) {
        if (!(gain(other) > minus_infinity)) continue;
        auto const theirs = total(other);
        rank += theirs > mine || (theirs == mine && other < i) ? 1 : 0;
      }
      if (rank < ends_) end(rank, mine, {i / ends, task_.end_tokens[i % ends], gain(i)}, true);
    }
  }
  /// The log-probability of hypothesis i / ends followed by end i % ends.
  SLUICE_DEVICE float gain(std::int32_t i) const {
    auto const ends = task_.rules.ends;
    return task_.probe_values[std::int64_t{line(i / ends).row} * ends + i % ends];
  }
  SLUICE_DEVICE double total(std::int32_t i) const {
    return line(i / task_.rules.ends).base + static_cast<double>(gain(i));
  }

  /// Keeps only as many as the rule still needs.
  SLUICE_DEVICE void bound_ends() {
    auto const& rules = task_.rules;
    if (rules.surplus || rules.rule != EarlyStopping::Rule::count) return;
    auto const left = rules.needed > before_.ended ? rules.needed - before_.ended : 0;
    if (ends_ > left) ends_ = left;
  }

  SLUICE_DEVICE void end(std::int32_t at, double log_prob, BeamNode const& last, bool finished) {
    auto const score = log_prob / task_.divisors[before_.generated + 1];
    memory_.out[at] = {log_prob, score, before_.generated - before_.prefix, last, finished ? 1 : 0};
  }

  /// The first child of each parent stays in the parent's slot.
  SLUICE_DEVICE void find_first() {
    auto* const nodes = task_.nodes(number_, before_.generated - before_.prefix);
    for (auto rank = block_.thread(); rank < next_; rank += 32) {
      auto const& mine = memory_.next[rank];
      nodes[rank] = mine.node;
      auto first = true;
      SLUICE_ROLLED
      for (std::int32_t other = 0; other < rank && first; ++other) first = memory_.next[other].from != mine.from;
      if (!first) continue;
      auto const slot = mine.from - task_.first_row(number_);
      memory_.holder[slot] = rank;
      block_.set(&memory_.stays[slot / 32], 1u << (slot % 32));
      block_.set(&memory_.first[rank / 32], 1u << (rank % 32));
    }
  }

  /// Other children take the lowest free slots; every slot finds its hypothesis.
  SLUICE_DEVICE void go_on() {
    auto const first = task_.first_row(number_);
    auto others = next_ - count_bits(memory_.first[0]) - count_bits(memory_.first[1]);
    for (auto slot = block_.thread(); slot < task_.rules.width; slot += 32) {
      auto const free = slot - bits_below(memory_.stays, slot);
      auto rank = -1;
      if (has_bit(memory_.stays, slot)) rank = memory_.holder[slot];
      else if (free < others) rank = place_of_gap(memory_.first, free);
      if (rank < 0) {
        idle_row(task_, first + slot);
        continue;
      }
      auto const& mine = memory_.next[rank];
      live_row(task_, now_, first + slot, mine.from, mine.node.token);
      task_.lines[first + rank] = {mine.log_prob, first + slot};
    }
    write();
  }
  SLUICE_DEVICE static bool has_bit(std::uint32_t const* words, std::int32_t i) {
    return (words[i / 32] >> (i % 32) & 1u) != 0;
  }
  SLUICE_DEVICE static std::int32_t bits_below(std::uint32_t const* words, std::int32_t i) {
    return (i >= 32 ? count_bits(words[0]) : 0) + count_bits(words[i / 32] & low_bits(i % 32));
  }
  /// The position of the n-th zero bit, counted from 0.
  SLUICE_DEVICE static std::int32_t place_of_gap(std::uint32_t const* words, std::int32_t n) {
    std::int32_t i = 0;
    SLUICE_ROLLED
    for (; i < most_beam_width; ++i)
      if (!has_bit(words, i) && n-- == 0) break;
    return i;
  }

  /// The sentence is over; its rows no longer run.
  SLUICE_DEVICE void stop() {
    now_.running = 0;
    for (auto slot = block_.thread(); slot < task_.rules.width; slot += 32)
      idle_row(task_, task_.first_row(number_) + slot);
    if (block_.thread() == 0) block_.add(task_.remaining, -1);
    write();
  }
  SLUICE_DEVICE void write() {
    if (block_.thread() != 0) return;
    task_.state[number_] = now_;
    write_group(task_, now_, number_);
  }

  SLUICE_DEVICE std::int64_t first_kept() const { return std::int64_t{number_} * task_.rules.keep; }
  SLUICE_DEVICE MergeLine const& line(std::int32_t rank) const { return task_.lines[task_.first_row(number_) + rank]; }

  Block& block_;
  Memory& memory_;
  BeamTask const& task_;
  std::int32_t const number_;
  BeamSentence const before_;
  BeamSentence now_;
  std::int32_t listed_ = 0;            // candidates of all lines
  std::int32_t next_ = 0;              // hypotheses that continue,
  std::int32_t ends_ = 0, joins_ = 0;  // that end, that join the finished ones while alive
};

}  // namespace sluice::inline v0::cuda::detail
