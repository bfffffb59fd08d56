// SPDX-License-Identifier: Apache-2.0
// What is kept of sentences that have ended, and who may join those alive, against lists and numbered cells.
#include <sluice/decode/detail/cache_budget.hpp>
#include <sluice/decode/schedule.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Notes which slots it is told to release, and can do nothing else.
struct Releasing final : detail::AnyModelSide {
  void release(std::span<Slot const> slots) override { released.insert(released.end(), slots.begin(), slots.end()); }
  std::int32_t source_length(void const*) const override { return -1; }
  SourceGrowth growth(void const*) const override { return {}; }
  void start(std::span<void const* const>, std::span<Slot const>) override { no(); }
  Expansion step(StepPlan const&, detail::ExtraQueries const*, Statistics::Seconds&, detail::AnyStopwatch&) override {
    no();
  }
  void propose(std::span<Draft const>) override { no(); }
  void remember(Decoded const&) override { no(); }
  Attachments attachments(std::size_t) override { no(); }
  std::shared_ptr<void> encode(std::span<void const* const>) const override { no(); }
  void start(void*, std::span<std::int32_t const>, std::span<Slot const>) override { no(); }
  [[noreturn]] static void no() { throw std::logic_error("this must not be called"); }

  std::vector<Slot> released;
};

/// Who is kept, by the rules: one slot of a sentence, the longest; nothing that another kept slot holds anyway, nothing
/// short; together no more than so many tokens, and the least recently used go first.
struct Kept {
  Cells cells{};
  std::int64_t shared = 0;
  std::vector<Slot> slots{}, released{};

  void drop(Slot slot) { cells.release(slot), released.push_back(slot); }
  void leave(Slot first, std::int32_t size, bool keep) {
    auto best = first;
    for (auto slot = first; slot < first + size; ++slot)
      if (cells.length(slot) > cells.length(best)) best = slot;
    auto const covered = std::ranges::any_of(slots, [&](Slot one) { return cells.within(best, one); });
    auto const stays = keep && shared > 0 && cells.length(best) >= 8 && !covered;
    for (auto slot = first; slot < first + size; ++slot)
      if (!stays || slot != best) drop(slot);
    if (!stays) return;
    for (auto i = slots.size(); i-- > 0;)
      if (cells.within(slots[i], best)) forget(i);
    slots.push_back(best);
    while (static_cast<std::int64_t>(cells.used(slots)) > shared) forget(0);
  }
  void forget(std::size_t i) {
    auto const slot = slots[i];
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(i));
    drop(slot);
  }
};

}  // namespace

TEST_CASE("of sentences that have ended one slot is kept, as long as there is room for it", "[cache budget]") {
  std::size_t kept_ones = 0, forgotten = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed);
    auto const below = [&](std::int32_t n) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
    };
    Releasing model;
    if (seed % 2 == 0) model.limits.tokens = 500;
    Kept kept{.shared = seed % 5 == 4 ? 0 : 20 + below(60)};
    detail::CacheBudget cache(model, {.shared_tokens = kept.shared});
    CHECK(cache.caches_prefixes() == (kept.shared > 0));
    CHECK(cache.limited() == (seed % 2 == 0));
    if (!cache.caches_prefixes() && !cache.limited()) continue;  // it follows nothing
    std::map<Slot, std::int32_t> blocks;
    std::deque<std::vector<Token>> fed;
    for (int i = 0; i < 60; ++i) {
      INFO("seed " << seed << ", " << i << ", shared " << kept.shared);
      auto const size = 1 + below(3);
      auto const base = *cache.slot_blocks.take(size);
      blocks[base] = size;
      std::vector<Row> rows;
      // Goes on from a kept slot, or from nothing; then forks.
      if (!kept.slots.empty() && below(2) == 0) {
        auto const from = kept.slots[static_cast<std::size_t>(below(static_cast<std::int32_t>(kept.slots.size())))];
        auto const length = static_cast<std::int32_t>(kept.cells.length(from));
        rows.push_back({from, base, below(3) == 0 ? below(length + 1) : length,
                        fed.emplace_back(static_cast<std::size_t>(1 + below(6)), 3)});
        cache.touch(from);
        auto const at = std::ranges::find(kept.slots, from);
        std::rotate(at, at + 1, kept.slots.end());
      } else {
        cache.slot_blocks.start(base), kept.cells.start(base);
        rows.push_back({base, base, 0, fed.emplace_back(static_cast<std::size_t>(1 + below(20)), 3)});
      }
      auto const apply = [&] { cache.slot_blocks.follow(rows), cache.slot_blocks.hold(rows), kept.cells.apply(rows); };
      apply();
      auto const length = static_cast<std::int32_t>(kept.cells.length(base));
      rows.clear();
      for (auto slot = base; slot < base + size; ++slot)
        if (slot == base || below(3) > 0)
          rows.push_back({base, slot, length, fed.emplace_back(static_cast<std::size_t>(1 + below(4)), 3)});
      apply();
      if (cache.limited()) CHECK(cache.free_tokens() == 500 - static_cast<std::int64_t>(kept.cells.used()));
      else CHECK(cache.free_tokens() == Limits{}.tokens);
      model.released.clear(), kept.released.clear();
      auto const ended = std::next(blocks.begin(), below(static_cast<std::int32_t>(blocks.size())));
      if (below(3) > 0) {
        auto const keep = below(4) > 0;
        cache.give_back(ended->first, ended->second, keep), kept.leave(ended->first, ended->second, keep);
        blocks.erase(ended);
      } else if (below(3) == 0) {
        auto const spared = kept.slots.empty() || below(2) == 0 ? std::optional<Slot>{} : kept.slots.front();
        std::size_t at = 0;
        while (at < kept.slots.size() && kept.slots[at] == spared) ++at;
        CHECK(cache.evict(spared) == (at < kept.slots.size()));
        if (at < kept.slots.size()) kept.forget(at);
      } else if (!kept.slots.empty() && below(3) == 0) {
        auto const slot = kept.slots.front();
        CHECK(cache.take_over(slot));
        CHECK_FALSE(cache.take_over(slot));
        kept.slots.erase(kept.slots.begin());
        blocks[slot] = 1;
      }
      REQUIRE(std::ranges::equal(cache.kept(), kept.slots));
      // What never held anything is not told of.
      std::ranges::sort(model.released), std::ranges::sort(kept.released);
      CHECK(std::ranges::includes(kept.released, model.released));
      CHECK(cache.slot_blocks.tree().used() == static_cast<std::int64_t>(kept.cells.used()));
      kept_ones += kept.slots.size(), forgotten += kept.released.size();
    }
    while (cache.evict()) {
    }
    CHECK(cache.kept().empty());
  }
  CHECK(kept_ones > 1000);
  CHECK(forgotten > 1000);
}

TEST_CASE("who was sent back is let in again when somebody has ended, one more each time", "[cache budget]") {
  Releasing model;
  detail::CacheBudget cache(model, {});
  for (std::size_t const alive : {0u, 1u, 1000u}) CHECK(cache.can_admit(alive));
  cache.stop_admission();
  CHECK(cache.can_admit(0));
  CHECK_FALSE(cache.can_admit(1));
  cache.resume_admission();
  CHECK(cache.can_admit(1000));  // no limit was given
  auto const most = [&] {
    std::size_t alive = 0;
    while (cache.can_admit(alive)) ++alive;
    return alive;
  };
  cache.halve_running(13);
  CHECK(most() == 1);  // closed
  cache.resume_admission();
  CHECK(most() == 7);
  cache.resume_admission();
  CHECK(most() == 8);
  cache.halve_running(1);
  cache.resume_admission();
  CHECK(most() == 2);
  cache.halve_running(4);
  cache.resume_admission();
  CHECK(most() == 3);
}
