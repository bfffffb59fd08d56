// SPDX-License-Identifier: Apache-2.0
// Guesses that go wrong outside the search: who asks for them, or makes them, throws.
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const guessed{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
Greedy const greedy{.length = {.min = 3, .max = 8}};

/// Greedy that would like guesses, every other sentence alone, and has no use for them.
struct Wishful : Greedy {
  bool wishes = true, throws = false;
  bool draft(State&, Draft&) const {
    if (throws) throw std::runtime_error("no wish");
    return wishes;
  }
};

/// A table whose guesses are somebody else's affair.
class Guessed : public TableModel<everything> {
 public:
  explicit Guessed(std::function<void(std::size_t call)> guess = [](std::size_t) {})
      : TableModel<everything>(guessed), guess_(std::move(guess)) {}
  void propose(std::span<Draft const> drafts) {
    asked.emplace_back();
    for (auto const& draft : drafts) asked.back().push_back(draft.slot);
    guess_(asked.size() - 1);
  }
  std::vector<std::vector<Slot>> asked{};

 private:
  std::function<void(std::size_t)> guess_;
};

std::vector<TableRequest<Wishful>> requests(std::size_t count, std::size_t broken = 99) {
  std::vector<TableRequest<Wishful>> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].source = i;
    all[i].search = Wishful{greedy, i % 2 == 0, i == broken};
  }
  return all;
}

/// Results by id; what steps throw is counted.
std::map<std::uint64_t, Result> drained(Guessed& model, std::vector<TableRequest<Wishful>> const& all,
                                        std::size_t& thrown) {
  Decoder decoder(model, Wishful{greedy}, Batched{.size = 4});
  for (auto const& one : all) decoder.submit(one);
  std::map<std::uint64_t, Result> results;
  for (auto more = true; more;) {
    try {
      more = decoder.step();
    } catch (std::runtime_error const&) {
      ++thrown;
    }
    for (Result result; decoder.poll(result);) results[result.id] = result;
  }
  REQUIRE(results.size() == all.size());
  return results;
}

}  // namespace

TEST_CASE("sentences that want guesses are asked for together, and no others", "[guesses]") {
  Guessed model;
  std::size_t thrown = 0;
  auto const results = drained(model, requests(4), thrown);
  for (auto const& [id, result] : results) CHECK(identical(result, run_one(guessed, id, greedy)));
  CHECK(thrown == 0);
  REQUIRE(model.asked.size() > 3);
  CHECK(model.asked[0] == std::vector<Slot>{0, 2});  // behind the first step
}

TEST_CASE("a search whose wish for guesses throws fails alone", "[guesses]") {
  Guessed model;
  std::size_t thrown = 0;
  for (auto const& [id, result] : drained(model, requests(8, 5), thrown)) {
    if (id != 5) CHECK(identical(result, run_one(guessed, id, greedy)));
    else CHECK((result.failure == Failure::search && result.message == "no wish"));
  }
  CHECK(thrown == 0);
}

TEST_CASE("guesses that throw end those who wanted them, and no others", "[guesses]") {
  Guessed model([](std::size_t call) {
    if (call == 1) throw std::runtime_error("no guess");
  });
  std::size_t thrown = 0;
  for (auto const& [id, result] : drained(model, requests(8), thrown)) {
    if (id != 0 && id != 2) CHECK(identical(result, run_one(guessed, id, greedy)));
    else CHECK((result.failure == Failure::model && result.message == "no guess"));
  }
  CHECK(thrown == 1);
}

TEST_CASE("a sentence without room for guesses starts again, and ends where no other runs", "[guesses]") {
  Guessed model([](std::size_t call) {
    if (call == 1) throw NoRoom("no room");
  });
  std::size_t thrown = 0;
  for (auto const& [id, result] : drained(model, requests(4), thrown))
    CHECK(identical(result, run_one(guessed, id, greedy)));
  CHECK(thrown == 0);
  Guessed full([](std::size_t) { throw NoRoom("no room"); });
  auto const alone = drained(full, requests(1), thrown).at(0);
  CHECK(alone.failure == Failure::no_room);
  CHECK(alone.message == "no room");
  REQUIRE(alone.hypotheses.size() == 1);  // what there is
  CHECK(alone.hypotheses[0].tokens.size() == 1);
}
