// SPDX-License-Identifier: Apache-2.0
/// \file
/// One line of scores, read in groups of 16 bytes wherever it begins in memory.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/rounding.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/line/detail/line_edits.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// A range of a line's groups of 16 bytes; empty if `begin` is not below `end`.
struct GroupRange {
  std::uint32_t begin = 0, end = 0;
};

/// Groups are counted from the line's first score, so that an answer does not depend on the line's address. If the
/// address is not a multiple of 16, a group is assembled from two loads.
/// \tparam masked  false: queries have no masks, and no code handles them
template <class Format, bool masked = true>
class LineReader {
 public:
  using Bits = typename Format::Bits;
  static constexpr int wide = Format::wide;

  SLUICE_DEVICE LineReader(LineLaunch<Format> const& launch, std::int32_t row)
      : launch_(launch), data_(launch.scores + row * launch.stride), row_(row) {
    auto const& query = launch.query(row);
    edited_ = query.edit_count > 0, after_ = query.stage == Stage::after_softmax;
    if constexpr (masked) masked_ = query.shortlist >= 0 || query.only >= 0;
    scale_ = 1 / query.temperature;
    lead_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data_) % 16);
  }

  /// Whether the line's scores are those in memory, for the softmax and for the selection.
  SLUICE_DEVICE bool plain() const { return !edited_ && !masked_ && scale_ == 1.0f && launch_.bias == nullptr; }
  SLUICE_DEVICE bool edited() const { return edited_; }
  /// Whether rank() changes the result of scores() for an edited group.
  SLUICE_DEVICE bool edited_after() const { return after_; }
  /// The same for any group.
  SLUICE_DEVICE bool masked_after() const { return masked && masked_ && after_; }
  /// All edits of the line; in ascending order if the launch says so.
  SLUICE_DEVICE Edit const* edits() const { return launch_.edits + query().edits; }
  SLUICE_DEVICE EditRange all_edits() const { return {0, query().edit_count}; }

  /// Whether load() can load all of these groups.
  SLUICE_DEVICE bool inside(std::uint32_t first, std::uint32_t last) const {
    auto const bytes = static_cast<std::uint64_t>(size()) * sizeof(Bits);
    return std::uint64_t{last} * 16 + (lead_ == 0 ? 16 : 32 - lead_) <= bytes && (lead_ == 0 || first > 0);
  }

  /// Groups first, first + step, ..., all inside().
  template <int count, class Block>
  SLUICE_DEVICE void load(Block& block, std::uint32_t first, std::uint32_t step, Words (&words)[count]) const {
    auto const* const at = reinterpret_cast<unsigned char const*>(data_) + std::uint64_t{first} * 16 - lead_;
    if (lead_ == 0) {
      SLUICE_UNROLL
      for (unsigned i = 0; i < count; ++i) words[i] = block.read16(at + std::uint64_t{i} * step * 16);
    } else {
      SLUICE_UNROLL
      for (unsigned i = 0; i < count; ++i) {
        auto const* const low = at + std::uint64_t{i} * step * 16;
        words[i] = cut(block.read16(low), block.read16(low + 16));
      }
    }
  }

  /// Any group; -infinity beyond the line's end.
  template <class Block>
  SLUICE_DEVICE Words load_any(Block& block, std::uint32_t group) const {
    if (!inside(group, group)) return load_ragged(block, group);
    Words words[1];
    load(block, group, 0, words);
    return words[0];
  }
  /// The same, score by score.
  template <class Block>
  SLUICE_DEVICE Words load_ragged(Block& block, std::uint32_t group) const {
    Words words;
    SLUICE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      words.word[i] = 0;
      SLUICE_UNROLL
      for (std::uint32_t c = 0; c < wide / 4; ++c) {
        auto const place = group * wide + i * (wide / 4) + c;
        auto const bits = place < size() ? block.read(data_ + place) : Format::minus_infinity;
        words.word[i] |= static_cast<std::uint32_t>(bits) << (16 * c);
      }
    }
    return words;
  }

  /// The groups for which inside() holds.
  SLUICE_DEVICE GroupRange whole() const {
    auto const units = (static_cast<std::uint64_t>(size()) * sizeof(Bits) + lead_) / 16;
    if (lead_ == 0) return {0, static_cast<std::uint32_t>(units)};
    return {1, units > 0 ? static_cast<std::uint32_t>(units - 1) : 0};
  }
  /// The address from which copies of group 0 and all following groups are aligned.
  SLUICE_DEVICE unsigned char const* aligned() const { return reinterpret_cast<unsigned char const*>(data_) - lead_; }
  /// The bytes of such a copy beyond its groups.
  SLUICE_DEVICE std::uint32_t copied_besides() const { return lead_ == 0 ? 0 : 16; }
  /// Reads a group from such a copy.
  template <class Block>
  SLUICE_DEVICE Words lift(Block& block, unsigned char const* from) const {
    return lead_ == 0 ? block.read_stage(from) : cut(block.read_stage(from), block.read_stage(from + 16));
  }

  /// A group's scores as seen by the softmax.
  /// \param edits  those that may apply to the group
  template <class Block>
  SLUICE_DEVICE void scores(Block& block, Words const& words, std::uint32_t group, EditRange edits,
                            float (&x)[wide]) const {
    auto const first = group * wide;
    unpack<Format>(words, x);
    if (launch_.bias != nullptr && first < size()) {
      SLUICE_UNROLL
      for (int c = 0; c < wide; c += 4) {
        auto const bias = block.read16(launch_.bias + first + c);
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i) x[c + i] = rounded_sum(x[c + i], Float32::value(bias.word[i]));
      }
      // Beyond the end the bias is 0, so those scores are still -infinity.
    }
    if (edits.some() && !after_) apply(block, first, edits, x);
    if (masked && masked_) mask(after_ ? -1 : query().only, query().shortlist, first, x);
    if (scale_ != 1.0f) {
      SLUICE_UNROLL
      for (int c = 0; c < wide; ++c) x[c] = rounded_product(x[c], scale_);
    }
  }

  /// A group's scores as seen by the selection.
  template <class Block>
  SLUICE_DEVICE void rank(Block& block, std::uint32_t group, EditRange edits, float (&x)[wide]) const {
    if (edits.some() && after_) apply(block, group * wide, edits, x);
    if (masked_after()) mask(query().only, -1, group * wide, x);
  }

  /// One score as seen by the selection, at any place; -infinity beyond the end.
  template <class Block>
  SLUICE_DEVICE float ranked(Block& block, std::uint32_t place) const {
    if (place >= size() || (masked && masked_ && !allowed(place))) return minus_infinity;
    auto const x = unmasked(block, place);
    return after_ ? change(block, place, x) : x;
  }
  /// One score as seen by the softmax.
  template <class Block>
  SLUICE_DEVICE float softmax_score(Block& block, std::uint32_t place) const {
    if (place >= size()) return minus_infinity;
    auto const held = word(after_ ? -1 : query().only, place) & word(query().shortlist, place);
    return (held >> (place % 32) & 1u) != 0 ? unmasked(block, place) : minus_infinity;
  }

  /// rank() and ranked() on top of the softmax's scores, with penalties: the counterpart of sluice::changed.
  /// \param norm  converts scores to log-probabilities and back
  template <class Block, class Norm>
  SLUICE_DEVICE void rank_penalised(Block& block, std::uint32_t group, Norm const& norm, float (&x)[wide]) const {
    if (edited_) apply(block, group * wide, all_edits(), x, norm);
    if (masked_after()) mask(query().only, -1, group * wide, x);
  }
  template <class Block, class Norm>
  SLUICE_DEVICE float penalised(Block& block, std::uint32_t place, Norm const& norm, float x) const {
    if (place >= size() || (word(query().only, place) >> (place % 32) & 1u) == 0) return minus_infinity;
    return change(block, place, x, norm);
  }

 private:
  // Registers are scarce: rarely used values are read again.
  SLUICE_DEVICE std::uint32_t size() const { return static_cast<std::uint32_t>(launch_.size); }
  SLUICE_DEVICE LineQuery const& query() const { return launch_.query(row_); }

  /// 16 of 32 bytes, starting at the lead.
  SLUICE_DEVICE Words cut(Words const& low, Words const& high) const {
    std::uint32_t w[8];
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) w[i] = low.word[i], w[4 + i] = high.word[i];
    if ((lead_ & 4) != 0) {
      SLUICE_UNROLL
      for (int i = 0; i < 7; ++i) w[i] = w[i + 1];
    }
    if ((lead_ & 8) != 0) {
      SLUICE_UNROLL
      for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
    }
    Words result;
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) result.word[i] = (lead_ & 2) != 0 ? w[i] >> 16 | w[i + 1] << 16 : w[i];
    return result;
  }

  /// The mask word that contains a place's bit; all ones without a mask.
  SLUICE_DEVICE std::uint32_t word(std::int32_t mask, std::uint32_t place) const {
    return mask < 0 ? ~std::uint32_t{0} : launch_.masks[mask + static_cast<std::int64_t>(place / 32)];
  }
  SLUICE_DEVICE bool allowed(std::uint32_t place) const {
    return ((word(query().only, place) & word(query().shortlist, place)) >> (place % 32) & 1u) != 0;
  }

  /// Sets scores of a group that one of the masks lacks to -infinity; a score that makes the line invalid stays.
  SLUICE_DEVICE void mask(std::int32_t one, std::int32_t other, std::uint32_t first, float (&x)[wide]) const {
    if (first >= size()) return;
    auto const held = (word(one, first) & word(other, first)) >> (first % 32);  // a group's bits are in one word
    SLUICE_UNROLL
    for (int c = 0; c < wide; ++c)
      if ((held >> c & 1u) == 0 && x[c] < plus_infinity) x[c] = minus_infinity;
  }

  /// Converts one score before the softmax.
  template <class Block>
  SLUICE_DEVICE float unmasked(Block& block, std::uint32_t place) const {
    auto x = Format::value(block.read(data_ + place));
    if (launch_.bias != nullptr) x = rounded_sum(x, launch_.bias[place]);
    if (!after_) x = change(block, place, x);
    return rounded_product(x, scale_);
  }

  /// If no penalties apply after the softmax.
  struct NoNorm {};

  static SLUICE_DEVICE float penalty(Edit const& edit, float x) {
    return x > 0 ? x / edit.penalty : rounded_product(x, edit.penalty);
  }
  SLUICE_DEVICE float change(Edit const& edit, float x, NoNorm) const {
    if (after_) return bounded_sum(x, edit.add);
    if (edit.penalty != 1.0f) x = penalty(edit, x);
    return rounded_sum(x, edit.add);
  }
  template <class Norm>
  SLUICE_DEVICE float change(Edit const& edit, float x, Norm const& norm) const {
    if (edit.penalty == 1.0f) return bounded_sum(x, edit.add);
    return norm.score(rounded_sum(penalty(edit, norm.rounded(x)), edit.add));
  }

  /// The first edit of a place or of a later one.
  template <class Block>
  SLUICE_DEVICE std::int32_t seek(Block& block, EditRange edits, std::uint32_t place) const {
    return launch_.ascending != 0 ? first_edit(block, this->edits(), edits, place) : edits.begin;
  }

  /// Applies all edits of one token, in their order.
  template <class Block, class Norm = NoNorm>
  SLUICE_DEVICE float change(Block& block, std::uint32_t place, float x, Norm const& norm = {}) const {
    auto const* const edits = this->edits();
    auto const range = all_edits();
    SLUICE_ROLLED
    for (auto i = seek(block, range, place); i < range.end; ++i) {
      if (edited_place(block, edits, i) == place) x = change(edits[i], x, norm);
      else if (launch_.ascending != 0) break;
    }
    return x;
  }

  /// Applies all edits of a group's tokens, in their order; what lies beyond the end is unchanged.
  template <class Block, class Norm = NoNorm>
  SLUICE_DEVICE void apply(Block& block, std::uint32_t first, EditRange range, float (&x)[wide],
                           Norm const& norm = {}) const {
    auto const* const edits = this->edits();
    SLUICE_ROLLED
    for (auto i = seek(block, range, first); i < range.end; ++i) {
      auto const place = edited_place(block, edits, i), at = place - first;
      if (at >= wide || place >= size()) {
        if (launch_.ascending != 0) break;
        continue;
      }
      auto value = x[0];
      SLUICE_UNROLL
      for (std::uint32_t c = 1; c < wide; ++c) value = c == at ? x[c] : value;
      value = change(edits[i], value, norm);
      SLUICE_UNROLL
      for (std::uint32_t c = 0; c < wide; ++c) x[c] = c == at ? value : x[c];
    }
  }

  LineLaunch<Format> const& launch_;
  Bits const* data_;
  std::int32_t row_;
  float scale_;                           // 1 / temperature
  bool edited_, masked_ = false, after_;  // after_: edits apply after the softmax
  std::uint32_t lead_;                    // the line's address modulo 16
};

}  // namespace sluice::inline v0::cuda::detail
