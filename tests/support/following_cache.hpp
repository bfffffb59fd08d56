// SPDX-License-Identifier: Apache-2.0
/// \file
/// A CacheIndirection that follows the steps of a DeviceBeam.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/cache/cache_indirection.cuh>
#include <sluice/cuda/cache/indirection_view.cuh>

#include <support/catch.hpp>
#include <support/device_beam_cases.hpp>
#include <support/device_beam_driver.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::test {

/// A cache that is updated by a beam's moves at every step; its contents are compared with copied tokens.
class FollowingCache {
 public:
  FollowingCache(std::int32_t slots, std::int32_t width, std::int32_t positions)
      : positions_(positions),
        cache_({.slot_count = slots, .positions = positions, .width = width}),
        memory_(static_cast<std::size_t>(slots * positions), -7),
        held_(static_cast<std::size_t>(slots)) {}

  /// \returns whether every slot holds the right tokens
  bool step(cuda::BeamRows const& rows) {
    cudaStream_t const stream = nullptr;
    // [cache]
    cache_.enqueue(rows.moves, positions_, stream);
    // [/cache]
    auto const tokens = read_back(rows.tokens, rows.count);
    auto const moves = read_back(rows.moves, rows.count);
    auto const table = read_back(cache_.view().table, static_cast<std::int32_t>(memory_.size()));
    cuda::IndirectionView const view{table.data(), positions_};
    auto const before = held_;
    for (std::size_t slot = 0; slot < moves.size(); ++slot) {
      auto const& move = moves[slot];
      if (!move.named()) continue;
      auto const& from = before[static_cast<std::size_t>(move.from)];
      held_[slot].assign(from.begin(), from.begin() + move.length);
      if (move.count == 0) continue;
      held_[slot].push_back(tokens[slot]);
      if (view.owner(static_cast<Slot>(slot), move.length) < 0) return false;
      memory_[static_cast<std::size_t>(view.cell(static_cast<Slot>(slot), move.length))] = tokens[slot];
    }
    for (std::size_t slot = 0; slot < held_.size(); ++slot)
      for (std::int32_t position = 0; position < positions_; ++position) {
        auto const owner = view.owner(static_cast<Slot>(slot), position);
        if ((owner >= 0) != (position < std::ssize(held_[slot]))) return false;
        if (owner < 0) continue;
        auto const cell = static_cast<std::size_t>(view.cell(static_cast<Slot>(slot), position));
        if (memory_[cell] != held_[slot][static_cast<std::size_t>(position)]) return false;
      }
    return true;
  }

 private:
  std::int32_t positions_;
  cuda::CacheIndirection cache_;
  std::vector<Token> memory_;
  std::vector<std::vector<Token>> held_;  // [slot]
};

/// Checks that a cache can follow the beam of a case, without its prompts and prefixes.
inline void check_following(BeamCase one) {
  for (auto& request : one.requests) request.prompt.clear(), request.prefix.clear();
  auto const expected = one.on_host();
  auto const width = one.search.width;
  BeamDriver driver(one, 2, expected);
  FollowingCache cache(2 * width, width, std::max(one.search.length.max, 1));
  auto follows = true;
  auto const found =
      driver.run([&](cuda::DeviceBeam& beam, cuda::LogSoftmaxTopK& expander, cuda::Scores<float> const& scores) {
        follows = follows && cache.step(beam.rows());
        beam.enqueue_step(expander, scores);
      });
  CHECK(follows);
  check_beams(one, found, expected);
}

}  // namespace sluice::test
