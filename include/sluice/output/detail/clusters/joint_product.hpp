// SPDX-License-Identifier: Apache-2.0
/// \file
/// One product for the active tokens of all sentences of a step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/detail/clusters/cluster_unions.hpp>
#include <sluice/output/detail/projection/active_tokens.hpp>
#include <sluice/output/detail/projection/subset_projection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Gathers the weights of all unions' tokens once, multiplies all lines with them, and copies to each line its own
/// logits. Allocates nothing once warm.
class JointProduct {
 public:
  /// Whether this is cheaper than gathering for each part. Does not affect results.
  bool pays(ClusterUnions const& unions, std::int32_t vocabulary_size) {
    // Costs in products of one row: gathering and packing one weight; the least rows per block.
    constexpr std::size_t gathering = 20, few = 4;
    std::size_t lines = 0, apart = 0, count = 0, written = 0;
    active_.begin(vocabulary_size);
    for (auto const& part : unions.parts()) {
      if (part.full) continue;
      active_.insert(unions.tokens_of(part));
      lines += part.lines, written += part.lines * part.size, ++count;
      apart += part.size * (gathering + (std::max)(part.lines, few));
    }
    // Bounds the memory for the lines' own logits.
    constexpr std::size_t most = std::size_t{1} << 24;
    if (count < 2 || written > most) return false;
    if (static_cast<std::size_t>(active_.count()) * (gathering + lines) >= apart) return false;
    joint_.clear();
    active_.append_to(joint_);
    return true;
  }

  /// The logits of each line's own tokens, line after line of the parts that are not projected in full; valid until the
  /// next call. Call it after pays().
  float* multiply(ClusterUnions const& unions, SubsetProjection& projection, Hidden<float> const& hidden) {
    auto const tokens = unions.tokens();
    auto const d = static_cast<std::size_t>(hidden.columns);
    vectors_.clear(), places_.resize(tokens.size()), cursors_.clear();
    if (place_of_.empty()) place_of_.resize(static_cast<std::size_t>(projection.vocabulary_size()));
    for (std::size_t i = 0; i < joint_.size(); ++i)
      place_of_[static_cast<std::size_t>(joint_[i])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < tokens.size(); ++i) places_[i] = place_of_[static_cast<std::size_t>(tokens[i])];
    std::size_t size = 0;
    for (auto const& part : unions.parts()) {
      cursors_.push_back(part.begin);
      if (part.full) continue;
      for (std::size_t i = 0; i < part.lines; ++i) {
        auto const vector = hidden[static_cast<std::ptrdiff_t>(part.first + i)];
        vectors_.insert(vectors_.end(), vector.begin(), vector.end());
      }
      size += part.lines * part.size;
    }
    if (logits_.size() < size) logits_.resize(size);

    auto const lines = static_cast<std::ptrdiff_t>(vectors_.size() / d);
    auto const width = (std::min)(ProjectionPass::tile_width(lines), std::ssize(joint_));
    if (std::ssize(tile_) < lines * width) tile_.resize(static_cast<std::size_t>(lines * width));
    projection.begin({vectors_.data(), lines, hidden.columns, hidden.columns});
    for (std::ptrdiff_t first = 0; first < std::ssize(joint_); first += width) {
      auto const count = (std::min)(width, std::ssize(joint_) - first);
      projection.multiply(std::span(joint_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                          {tile_.data(), lines, count, width});
      deal_out(unions.parts(), first, first + count, width);
    }
    return logits_.data();
  }

 private:
  /// Copies the logits that lines want from the tile of joint_'s tokens first .. last - 1.
  void deal_out(std::span<UnionPart const> parts, std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t width) {
    auto const* row = tile_.data();
    auto* to = logits_.data();
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& part = parts[p];
      if (part.full) continue;
      auto const begin = cursors_[p];
      auto end = begin;
      while (end < part.begin + part.size && places_[end] < last) ++end;
      cursors_[p] = end;
      for (std::size_t line = 0; line < part.lines; ++line, row += width, to += part.size)
        for (auto i = begin; i < end; ++i) to[i - part.begin] = row[places_[i] - first];
    }
  }

  ActiveTokens active_;
  std::vector<Token> joint_;                     // all tokens of the unions
  std::vector<std::int32_t> places_, place_of_;  // of the unions' tokens in joint_; by token
  std::vector<std::size_t> cursors_;             // by part
  AlignedVector<float> vectors_, tile_, logits_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
