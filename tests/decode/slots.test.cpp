// SPDX-License-Identifier: Apache-2.0
// Slots: which are whose, and which holds the beginning of what another holds.
#include <sluice/core/detail/token_tree.hpp>
#include <sluice/decode/detail/slot_blocks.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Slots one by one.
class Plain {
 public:
  explicit Plain(std::int32_t limit) : limit_(limit) {}

  std::optional<Slot> take(std::int32_t size) {
    for (Slot first = 0; first + size <= limit_; ++first) {
      auto taken = false;
      for (auto slot = first; slot < first + size; ++slot) taken = taken || taken_.contains(slot);
      if (taken) continue;
      for (auto slot = first; slot < first + size; ++slot) taken_.insert(slot);
      return first;
    }
    return std::nullopt;
  }
  void hold(Slot slot) { held_.insert(slot); }
  /// In the order in which they are asked for; each once.
  std::vector<Slot> release(std::vector<Slot> const& slots) {
    std::vector<Slot> told;
    for (auto const slot : slots)
      if (held_.erase(slot) > 0) told.push_back(slot);
    return told;
  }
  std::vector<Slot> give_back(Slot first, std::int32_t size) {
    std::vector<Slot> slots;
    for (auto slot = first; slot < first + size; ++slot) slots.push_back(slot), taken_.erase(slot);
    return release(slots);
  }

 private:
  std::int32_t limit_;
  std::set<Slot> taken_, held_;
};

std::vector<Slot> copied(std::span<Slot const> slots) { return {slots.begin(), slots.end()}; }

}  // namespace

TEST_CASE("blocks of slots are the lowest that fit, and what was held in them is told once", "[slots]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    auto const below = [&](std::int32_t n) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
    };
    auto const limit = 1 + below(30);
    detail::SlotLedger ledger(limit);
    Plain plain(limit);
    std::map<Slot, std::int32_t> blocks;
    for (int i = 0; i < 200; ++i) {
      INFO("seed " << seed << ", " << i << ", limit " << limit);
      if (blocks.empty() || below(2) == 0) {
        auto const size = 1 + below(7);
        auto const first = plain.take(size);
        REQUIRE(ledger.take(size) == first);
        if (first) blocks[*first] = size;
        continue;
      }
      auto const [first, size] = *std::next(blocks.begin(), below(static_cast<std::int32_t>(blocks.size())));
      std::vector<Slot> some;
      for (auto slot = first; slot < first + size; ++slot) {
        if (below(2) == 0) ledger.hold(slot, below(3)), plain.hold(slot);
        if (below(3) == 0) some.push_back(slot);
      }
      REQUIRE(copied(ledger.release(some)) == plain.release(some));
      if (below(2) == 0) {
        REQUIRE(copied(ledger.give_back(first, size)) == plain.give_back(first, size));
        blocks.erase(first);
      } else if (size > 1 && below(2) == 0) {  // all but one
        auto const kept = first + below(size);
        REQUIRE(copied(ledger.give_back(first, kept - first)) == plain.give_back(first, kept - first));
        auto const behind = first + size - kept - 1;
        REQUIRE(copied(ledger.give_back(kept + 1, behind)) == plain.give_back(kept + 1, behind));
        blocks.erase(first), blocks[kept] = 1;
      }
    }
  }
}

TEST_CASE("a tree of tokens knows which slots go on from which, trees of guesses too", "[slots]") {
  std::size_t inside = 0, branched = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::size_t count = 6;
    Cells cells;
    detail::TokenTree tree;
    std::vector<Token> asked(8);
    for (auto& token : asked) token = static_cast<Token>(random() % 2);
    tree.fresh();
    std::vector<std::vector<Token>> tokens(count), kept(count);
    std::vector<std::vector<std::int32_t>> depths(count);
    for (int step = 0; step < 40; ++step) {
      if (random() % 3 == 0) {
        auto const slot = static_cast<Slot>(random() % count);
        tree.clear(slot), cells.start(slot);
      }
      std::vector<Row> rows, cut;
      std::vector<bool> read(count), written(count);
      for (Slot to = 0; to < static_cast<Slot>(count); ++to) {
        auto const t = static_cast<std::size_t>(to);
        auto const from = random() % 2 == 0 ? t : random() % count;
        if (random() % 2 == 0 || written[from] || (from != t && read[t])) continue;
        read[from] = true, written[t] = from != t;
        auto const held = cells.length(static_cast<Slot>(from));
        tokens[t].clear(), depths[t].clear();
        for (auto n = 1 + random() % 4; n > 0; --n) {
          auto const most = depths[t].empty() ? 0 : depths[t].back() + 1;
          tokens[t].push_back(static_cast<Token>(random() % 2));
          depths[t].push_back(random() % 4 == 0 ? 0 : most);
        }
        std::size_t stays = 0;  // the first path
        while (stays < depths[t].size() && depths[t][stays] == static_cast<std::int32_t>(stays)) ++stays;
        kept[t].assign(tokens[t].begin(), tokens[t].begin() + static_cast<std::ptrdiff_t>(stays));
        branched += stays < tokens[t].size() ? 1 : 0;
        auto const length = static_cast<std::int32_t>(random() % 3 == 0 ? random() % (held + 1) : held);
        rows.push_back({static_cast<Slot>(from), to, length, tokens[t], 1, depths[t].data()});
        cut.push_back({static_cast<Slot>(from), to, length, kept[t]});
      }
      tree.apply(rows), cells.apply(cut);
      REQUIRE(tree.used() == static_cast<std::int64_t>(cells.used()));
      for (Slot inner = 0; inner < static_cast<Slot>(count); ++inner) {
        if (seed % 2 == 0)  // asked for the same tokens again and again, whatever has changed
          REQUIRE(tree.common(inner, asked) == static_cast<std::int32_t>(cells.common(inner, asked)));
        REQUIRE(tree.length(inner) == static_cast<std::int32_t>(cells.length(inner)));
        for (Slot outer = 0; outer < static_cast<Slot>(count); ++outer) {
          auto const expected = cells.within(inner, outer);
          INFO("seed " << seed << ", step " << step << ": " << inner << " within " << outer);
          REQUIRE(tree.within(inner, outer) == expected);
          inside += expected && inner != outer && cells.length(inner) > 0 ? 1 : 0;
        }
      }
      if (seed % 2 == 0) continue;
      std::vector<Slot> some;
      for (Slot slot = 0; slot < static_cast<Slot>(count); ++slot)
        if (random() % 2 == 0) some.push_back(slot);
      REQUIRE(tree.together(some) == static_cast<std::int64_t>(cells.used(some)));
    }
  }
  CHECK(inside > 100);  // else nothing was tried
  CHECK(branched > 100);
}
