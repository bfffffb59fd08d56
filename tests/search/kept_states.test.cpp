// SPDX-License-Identifier: Apache-2.0
// The assignment of hypotheses to slots, against lists of what every slot holds.
#include <sluice/search/detail/kept_states.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

using namespace sluice;

namespace {

using Tokens = std::vector<Token>;

/// The contents of the slots, and when each was last used.
struct Slots {
  struct Held {
    Tokens tokens;
    std::int32_t node = 0, used = 0;
  };
  std::map<Slot, Held> held;
  std::int32_t count;
  bool roll_back;

  bool pinned(Slot slot) const { return slot == 0 && !roll_back; }
  /// How much of the path to `tokens` a slot already holds.
  std::size_t shared(Slot slot, Tokens const& tokens) const {
    auto const& mine = held.at(slot).tokens;
    auto const same = static_cast<std::size_t>(std::ranges::mismatch(mine, tokens).in1 - mine.begin());
    return roll_back || same == mine.size() ? same : 0;
  }
  /// The slot of a node that continues from `from`: that slot if it is no longer useful, else a free one, else the
  /// least recently used one.
  Slot destination(Slot from, bool from_useful) const {
    if (!from_useful && !pinned(from)) return from;
    std::optional<Slot> oldest;
    for (Slot slot = 0; slot < count; ++slot) {
      if (!held.contains(slot)) return slot;
      if (slot != from && !pinned(slot) && (!oldest || held.at(slot).used < held.at(*oldest).used)) oldest = slot;
    }
    return oldest.value_or(from);
  }
};

}  // namespace

TEST_CASE("a tree in few slots is fed as little as they allow, and keeps what is of use", "[best_first]") {
  std::mt19937_64 random(1);
  detail::KeptStates states;
  std::array<int, 3> seen{};  // counts of rows with one token, more, several in turn
  for (int round = 0; round < 3000; ++round) {
    auto const roll_back = random() % 2 == 0, blocks = random() % 2 == 0;
    auto const count = static_cast<std::int32_t>(2 + random() % 4);
    auto const held = static_cast<std::int32_t>(random() % 4);
    auto const last = static_cast<Token>(random() % 9);
    INFO("round " << round << ", slots " << count << ", roll back " << roll_back << ", blocks " << blocks);
    Tokens const before(static_cast<std::size_t>(held), 8);
    std::vector<Tokens> nodes{before};  // the tokens that lead to each node
    nodes[0].push_back(last);

    std::int32_t clock = 0;
    Slots slots{.held = {{0, {before}}}, .count = count, .roll_back = roll_back};
    // Runs the next node; returns its slot.
    auto const run = [&](Tokens const& all, Slot from, std::size_t from_length) {
      auto tokens = slots.held.at(from).tokens;
      tokens.resize(from_length);
      auto at = from;
      for (;;) {
        auto const next = states.next();
        CHECK((next.from == at && next.length == static_cast<std::int32_t>(tokens.size())));
        CHECK((next.tokens.size() == (blocks ? all.size() - tokens.size() : 1)));
        tokens.insert(tokens.end(), next.tokens.begin(), next.tokens.end());
        at = next.to;
        CHECK(states.last() == (tokens.size() == all.size()));
        if (states.last()) break;
        states.go_on();
      }
      CHECK(tokens == all);
      return at;
    };
    states.reset(count, roll_back, blocks, held, last);
    CHECK(states.released().empty());
    CHECK(run(nodes[0], 0, before.size()) == 0);
    slots.held[0] = {nodes[0], 0, ++clock};

    for (auto steps = random() % 12; steps > 0; --steps) {
      auto const parent = static_cast<std::int32_t>(random() % nodes.size());
      auto const token = static_cast<Token>(random() % 9);
      auto all = nodes[static_cast<std::size_t>(parent)];
      all.push_back(token);
      if (std::ranges::count(nodes, all) > 0) continue;  // each node has only one path
      if (random() % 8 == 0) {
        states.skip(parent, token);
        nodes.push_back(all);
        continue;
      }
      std::vector<bool> useful;
      for (std::size_t i = 0; i < nodes.size(); ++i) useful.push_back(random() % 3 > 0);
      std::size_t most = 0;  // the longest shared path of any slot
      for (auto const& [slot, one] : slots.held) most = std::max(most, slots.shared(slot, all));
      REQUIRE(most > before.size());
      states.add(parent, token, [&](std::int32_t i) { return useful.at(static_cast<std::size_t>(i)); });
      auto const from = states.next().from;
      REQUIRE(slots.held.contains(from));
      CHECK(slots.shared(from, all) == most);
      // Among equally good slots, one that holds nothing else.
      auto const exact = [&](Slot slot) { return slots.held.at(slot).tokens.size() == most; };
      for (auto const& [slot, one] : slots.held)
        if (exact(slot) && slots.shared(slot, all) == most) CHECK(exact(from));
      std::vector<Slot> gone;
      for (auto const& [slot, one] : slots.held)
        if (slot != from && !slots.pinned(slot) && !useful[static_cast<std::size_t>(one.node)]) gone.push_back(slot);
      for (auto const slot : gone) slots.held.erase(slot);
      auto const to = slots.destination(from, useful[static_cast<std::size_t>(slots.held.at(from).node)]);
      std::erase(gone, to);
      CHECK(std::ranges::equal(states.released(), gone));
      states.forget();
      CHECK(states.released().empty());
      slots.held.at(from).used = ++clock;
      CHECK(run(all, from, most) == to);
      slots.held[to] = {all, static_cast<std::int32_t>(nodes.size()), ++clock};
      nodes.push_back(all);
      ++seen[all.size() == most + 1 ? 0 : blocks ? 1 : 2];
    }
  }
  for (auto const number : seen) CHECK(number > 300);
}
