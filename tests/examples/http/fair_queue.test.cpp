// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>

#include <cstddef>
#include <http/fair_queue.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Piece {
  std::size_t claim, piece;
  bool express;
};

/// Requests of some clients, what is at work, and the rules that hold after each event.
struct World {
  serve::FairQueue::Room room;
  serve::FairQueue queue{room};
  std::vector<std::unique_ptr<serve::FairQueue::Claim>> claims{};
  std::vector<std::size_t> begun{};
  std::vector<Piece> running{};

  void enter(std::string client, std::size_t count, std::size_t weight, double cost) {
    auto const number = claims.size();
    begun.push_back(0);
    claims.push_back(std::make_unique<serve::FairQueue::Claim>());
    auto& claim = *claims.back();
    claim.client = std::move(client), claim.count = count, claim.weight = weight, claim.cost = cost;
    claim.start = [this, number](std::size_t piece, bool express) {
      CHECK(piece == begun[number]++);
      running.push_back({number, piece, express});
    };
    queue.enter(claim);
  }

  void end(std::size_t which) {
    auto const one = running[which];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
    queue.done(*claims[one.claim], one.piece);
  }

  void check() const {
    struct Held {
      std::size_t large = 0, express = 0, pieces = 0;
    };
    std::map<std::string, Held> held;
    std::size_t large = 0, express = 0;
    for (auto const& one : running) {
      auto const& claim = *claims[one.claim];
      auto& mine = held[claim.client];
      if (one.express) {
        CHECK(claim.count * claim.weight <= room.express);
        mine.express += claim.weight, ++express;
      } else {
        mine.large += claim.weight, ++mine.pieces, ++large;
      }
    }
    CHECK(large <= room.pieces);
    CHECK(express <= room.pieces);
    for (auto const& [name, mine] : held) {
      CHECK(mine.express <= room.express);
      CHECK((mine.large <= room.share || mine.pieces == 1));
    }
    // No client waits for whose every request there is room.
    std::map<std::string, bool> blocked;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (begun[i] == claims[i]->count) continue;
      auto const& mine = held[claims[i]->client];
      auto const fits = large < room.pieces && (mine.large == 0 || mine.large + claims[i]->weight <= room.share);
      auto& any = blocked[claims[i]->client];
      any = any || !fits;
    }
    for (auto const& [name, any] : blocked) CHECK(any);
  }
};

}  // namespace

TEST_CASE("rooms and shares of the fair queue hold after every event, and everything begins", "[fair_queue]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto const below = [&random](std::size_t most) { return random() % most; };
    World world{.room = {.pieces = 1 + below(8), .share = 1 + below(6), .express = below(2) * below(9)}};
    for (int event = 0; event < 60; ++event) {
      if (world.running.empty() || below(2) == 0)
        world.enter(std::string(1, static_cast<char>('a' + below(3))), below(5), 1 + below(8),
                    1.0 + static_cast<double>(below(9)));
      else world.end(below(world.running.size()));
      world.check();
    }
    while (!world.running.empty()) world.end(below(world.running.size())), world.check();
    for (std::size_t i = 0; i < world.claims.size(); ++i) CHECK(world.begun[i] == world.claims[i]->count);
  }
}

TEST_CASE("a small request begins at once beside whatever others have", "[fair_queue]") {
  World world{.room = {.pieces = 128, .share = 64, .express = 24}};
  for (int i = 0; i < 3; ++i) world.enter("large", 64, 64, 64 * 500);
  for (int i = 0; i < 200; ++i) world.enter("many", 1, 1, 20);
  auto const before = world.running.size();
  CHECK(before ==
        1 + 64 + 24);  // one large sentence; of many small ones the share in the large room, and all of the other
  world.enter("lone", 1, 5, 100);
  REQUIRE(world.running.size() == before + 1);
  CHECK(world.running.back().express);
}

TEST_CASE("small requests of one client share the two rooms evenly", "[fair_queue]") {
  World world{.room = {.pieces = 128, .share = 64, .express = 24}};
  for (int i = 0; i < 16; ++i) world.enter("one", 1, 1, 20);
  std::size_t express = 0;
  for (auto const& one : world.running) express += one.express ? 1 : 0;
  CHECK(world.running.size() == 16);
  CHECK(express >= 8);
  CHECK(express <= 9);
}
