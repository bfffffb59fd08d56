// SPDX-License-Identifier: Apache-2.0
// What is committed of the outputs of a growing source, worked out by hand.
#include <sluice/result/commitment.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;

Tokens copy(std::span<Token const> tokens) { return {tokens.begin(), tokens.end()}; }

}  // namespace

TEST_CASE("local agreement commits what outputs begin with in common", "[simultaneous]") {
  Commitment commitment(LocalAgreement{.n = 2}, {2});
  CHECK(copy(commitment.update(Tokens{5, 6, 2}, 1)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{5, 7, 8, 2}, 2)) == Tokens{5});
  CHECK(copy(commitment.update(Tokens{5, 7, 8, 9}, 3)) == Tokens{7, 8});
  CHECK(copy(commitment.update(Tokens{5, 7, 8, 2}, 4)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{5, 7, 8, 2}, 5)) == Tokens{});  // the end agrees, but there may be more
  CHECK(commitment.tokens() == Tokens{5, 7, 8});
  CHECK_FALSE(commitment.finished());
  CHECK(copy(commitment.finish(Tokens{5, 7, 8, 4, 2})) == Tokens{4, 2});
  CHECK(commitment.tokens() == Tokens{5, 7, 8, 4, 2});
  CHECK(commitment.finished());
  CHECK_THROWS_AS(commitment.finish(Tokens{5, 7, 8, 4, 2}), std::invalid_argument);

  Commitment three(LocalAgreement{.n = 3});
  CHECK(copy(three.update(Tokens{5, 6, 7}, 1)) == Tokens{});
  CHECK(copy(three.update(Tokens{5, 6, 8}, 2)) == Tokens{});
  CHECK(copy(three.update(Tokens{5, 9}, 3)) == Tokens{5});
  CHECK(copy(three.update(Tokens{5, 9, 3}, 4)) == Tokens{});
  CHECK(copy(three.update(Tokens{5, 9, 4}, 5)) == Tokens{9});

  Commitment eager(LocalAgreement{.n = 1}, {2});
  CHECK(copy(eager.update(Tokens{5, 6, 2}, 1)) == Tokens{5, 6});
  CHECK(copy(eager.update(Tokens{5, 6, 7, 2}, 2)) == Tokens{7});
}

TEST_CASE("hold-n keeps the last tokens back", "[simultaneous]") {
  Commitment commitment(HoldBack{.n = 2}, {2});
  CHECK(copy(commitment.update(Tokens{5}, 1)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{5, 6, 7, 2}, 2)) == Tokens{5});
  CHECK(copy(commitment.update(Tokens{5, 6}, 3)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{5, 8, 9, 10}, 4)) == Tokens{8});
}

TEST_CASE("wait-k commits a unit for each that is read behind the first k", "[simultaneous]") {
  Commitment commitment(WaitK{.k = 3}, {2});
  Tokens const output{5, 6, 7, 8, 2};
  CHECK(copy(commitment.update(output, 1)) == Tokens{});
  CHECK(copy(commitment.update(output, 2)) == Tokens{});
  CHECK(copy(commitment.update(output, 3)) == Tokens{5});
  CHECK(copy(commitment.update(output, 4)) == Tokens{6});
  CHECK(copy(commitment.update(output, 6)) == Tokens{7, 8});
  CHECK(copy(commitment.update(output, 9)) == Tokens{});
  CHECK(copy(commitment.finish(output)) == Tokens{2});

  WaitK const never{.k = std::numeric_limits<std::int32_t>::max()};
  CHECK(never.allowed(1000000) == 0);
  CHECK(WaitK{.k = 1}.allowed(0) == 0);
  CHECK(WaitK{.k = 1}.allowed(1) == 1);
}

TEST_CASE("units are committed as wholes", "[simultaneous]") {
  std::vector<std::size_t> const words{2, 3, 5};
  Commitment agreement(LocalAgreement{.n = 2}, {2});
  agreement.update(Tokens{5, 6, 7, 8, 9, 10, 2}, 1, words);
  CHECK(copy(agreement.update(Tokens{5, 6, 7, 8, 3, 10, 2}, 2, words)) == Tokens{5, 6, 7});
  CHECK(copy(agreement.update(Tokens{5, 6, 7, 8, 3, 4}, 3, words)) == Tokens{8, 3});
  CHECK(copy(agreement.update(Tokens{5, 6, 7, 8, 3, 4}, 3, std::vector<std::size_t>{2})) == Tokens{});

  Commitment wait(WaitK{.k = 1}, {2});
  CHECK(copy(wait.update(Tokens{5, 6, 7, 8, 9, 10, 2}, 1, words)) == Tokens{5, 6});
  CHECK(copy(wait.update(Tokens{5, 6, 7, 8, 9, 10, 2}, 3, words)) == Tokens{7, 8, 9});
  CHECK(copy(wait.update(Tokens{5, 6, 7, 8, 9, 10, 2}, 4, words)) == Tokens{});  // no word is known to end there
}

TEST_CASE("nothing that is committed is taken back", "[simultaneous]") {
  Commitment commitment(LocalAgreement{.n = 1});
  commitment.update(Tokens{5, 6}, 1);
  CHECK_THROWS_AS(commitment.update(Tokens{5}, 2), std::invalid_argument);
  CHECK_THROWS_AS(commitment.update(Tokens{5, 7, 8}, 2), std::invalid_argument);
  CHECK_THROWS_AS(commitment.finish(Tokens{4, 6}), std::invalid_argument);
  CHECK(commitment.tokens() == Tokens{5, 6});
  CHECK_THROWS_AS(commitment.update(Tokens{5, 6, 7}, 2, std::vector<std::size_t>{3, 1}), std::invalid_argument);
  CHECK_THROWS_AS(commitment.update(Tokens{5, 6, 7}, 2, std::vector<std::size_t>{4}), std::invalid_argument);

  CHECK_THROWS_WITH(Commitment(LocalAgreement{.n = 0}), "sluice: n = 0: must be at least 1");
  CHECK_THROWS_WITH(Commitment(HoldBack{.n = -1}), "sluice: n = -1: must not be negative");
  CHECK_THROWS_WITH(Commitment(WaitK{.k = 0}), "sluice: k = 0: must be at least 1");
}

namespace {

/// A policy that asks for more than there is.
struct Greedily {
  std::size_t outputs() const { return 1; }
  std::size_t committable(Readings const&) const { return std::numeric_limits<std::size_t>::max(); }
  void check() const {}
};

}  // namespace

TEST_CASE("a policy of one's own cannot write more than there is, nor an end", "[simultaneous]") {
  Commitment commitment(Greedily{}, {2, 3});
  CHECK(copy(commitment.update(Tokens{}, 1)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{2}, 2)) == Tokens{});
  CHECK(copy(commitment.update(Tokens{5, 2, 6, 3, 2}, 3)) == Tokens{5, 2, 6});  // an end within is none
  CHECK(copy(commitment.update(Tokens{5, 2, 6, 3}, 4)) == Tokens{});
  CHECK(copy(commitment.finish(Tokens{5, 2, 6, 3})) == Tokens{3});
}
