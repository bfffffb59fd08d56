// SPDX-License-Identifier: Apache-2.0
/// \file
/// Any schedule: those of the library, one that does as it likes, and one that breaks its contract.
#pragma once

#include <sluice/decode/schedule.hpp>

#include <fuzz/decoder/bytes.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice::test {

struct AnySchedule {
  enum class Kind : std::uint8_t { batched, streaming, whimsical };
  enum class Misdeed : std::uint8_t {
    none,
    admit_throws,
    admits_none,
    select_throws,
    chooses_none,
    chooses_strangers,
    chooses_twice,
    chooses_backwards
  };
  static constexpr std::int32_t misdeeds = 8;

  Kind kind = Kind::batched;
  Batched batched{};
  Streaming streaming{};
  /// Of the next call; and what it has decided so far, which its whims hang on.
  std::shared_ptr<Misdeed> next = std::make_shared<Misdeed>();
  std::shared_ptr<std::uint64_t> whim = std::make_shared<std::uint64_t>(1);
  /// How often it has chosen what must be refused.
  std::shared_ptr<std::uint64_t> wrong = std::make_shared<std::uint64_t>(0);

  void check() const { batched.check(), streaming.check(); }
  void adapt(Abilities const& abilities) { streaming.adapt(abilities); }

  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    if (take(Misdeed::admit_throws)) throw std::runtime_error("admit is broken");
    if (take(Misdeed::admits_none)) return 0;
    switch (kind) {
      case Kind::batched: return batched.admit(live, waiting);
      case Kind::streaming: return streaming.admit(live, waiting);
      case Kind::whimsical: break;
    }
    return live.empty() ? 1 + draw(3) : draw(3);
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    if (take(Misdeed::select_throws)) throw std::runtime_error("select is broken");
    if (take(Misdeed::chooses_none)) return static_cast<void>(++*wrong);
    if (take(Misdeed::chooses_strangers)) return ++*wrong, chosen.push_back(static_cast<std::int32_t>(live.size()));
    choose(live, chosen);
    if (take(Misdeed::chooses_twice)) return twice(chosen, draw(chosen.size()));
    if (chosen.size() > 1 && take(Misdeed::chooses_backwards)) ++*wrong, std::swap(chosen.front(), chosen.back());
  }

 private:
  void choose(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    switch (kind) {
      case Kind::batched: return batched.select(live, chosen);
      case Kind::streaming: return streaming.select(live, chosen);
      case Kind::whimsical: break;
    }
    auto const surely = live.empty() ? 0 : draw(live.size());
    for (std::size_t i = 0; i < live.size(); ++i)
      if (i == surely || draw(2) == 0) chosen.push_back(static_cast<std::int32_t>(i));
    if (draw(16) == 0) twice(chosen, draw(chosen.size()));
  }
  void twice(std::vector<std::int32_t>& chosen, std::size_t which) const {
    ++*wrong;
    chosen.insert(chosen.begin() + static_cast<std::ptrdiff_t>(which), chosen[which]);
  }
  bool take(Misdeed misdeed) const {
    if (*next != misdeed) return false;
    *next = Misdeed::none;
    return true;
  }
  std::size_t draw(std::size_t n) const {
    *whim = hash_mix(*whim + 0x9E3779B97F4A7C15u);
    return static_cast<std::size_t>(*whim >> 32) % n;
  }
};

inline AnySchedule draw_schedule(Bytes& bytes) {
  AnySchedule schedule;
  schedule.kind = bytes.one_of<AnySchedule::Kind>(3);
  schedule.batched.size = static_cast<std::size_t>(bytes.between(1, 6));
  schedule.streaming.size = schedule.batched.size;
  schedule.streaming.refill_below = bytes.pick({1.0 / 6, 1.0, 0.5, 0.0});
  schedule.streaming.order = bytes.one_of<Streaming::Order>(3);
  schedule.streaming.max_rows = bytes.pick({0, 0, 1, 5});
  schedule.streaming.drain_after = bytes.pick({500, 0, 1, 4});
  if (bytes.chance(4)) schedule.streaming.refill.sentences = static_cast<std::size_t>(bytes.below(4));
  else if (bytes.chance(4)) schedule.streaming.refill.source_tokens = bytes.below(12);
  *schedule.whim = bytes.byte();
  return schedule;
}

}  // namespace sluice::test
