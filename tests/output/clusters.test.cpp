// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/clusters.hpp>

#include <support/catch.hpp>

#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;

namespace {

/// Two clusters that share token 4, and one without tokens.
Clusters example() {
  return {.hidden_size = 2,
          .vocabulary_size = 10,
          .centroids = {0, 1, 2, 3, 4, 5},
          .begin = {0, 3, 5, 5},
          .tokens = {0, 4, 9, 2, 4}};
}

std::string complaint(std::function<void(Clusters&)> const& spoil) {
  auto clusters = example();
  spoil(clusters);
  try {
    check(clusters);
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("clusters are looked at one by one", "[clusters]") {
  auto const clusters = example();
  check(clusters);
  CHECK(clusters.size() == 3);
  CHECK(std::vector(clusters[0].begin(), clusters[0].end()) == std::vector<Token>{0, 4, 9});
  CHECK(std::vector(clusters[1].begin(), clusters[1].end()) == std::vector<Token>{2, 4});
  CHECK(clusters[2].empty());
  auto const centroid = clusters.centroid(1);
  CHECK(std::vector(centroid.begin(), centroid.end()) == std::vector<float>{2, 3});
  CHECK(Clusters().size() == 0);
}

TEST_CASE("inconsistent clusters are refused by name and value", "[clusters]") {
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(complaint([](Clusters&) {}) == "none");
  CHECK(complaint([](Clusters& c) { c = {}; }) == "sluice: clusters.hidden_size = 0: must be at least 1");
  CHECK(complaint([](Clusters& c) { c.hidden_size = -1; }) == "sluice: clusters.hidden_size = -1: must be at least 1");
  CHECK(complaint([](Clusters& c) { c.vocabulary_size = 0; }) ==
        "sluice: clusters.vocabulary_size = 0: must be at least 1");
  CHECK(complaint([](Clusters& c) { c.begin = {0}; }) == "sluice: clusters.size() = 0: must be at least 1");
  CHECK(complaint([](Clusters& c) { c.begin = {}; }) == "sluice: clusters.size() = -1: must be at least 1");
  for (std::size_t const size : {0u, 4u, 5u, 7u, 8u})
    CHECK(complaint([=](Clusters& c) { c.centroids.resize(size); }) ==
          "sluice: clusters.centroids.size() = " + std::to_string(size) + ": must be size() * hidden_size");
  CHECK(complaint([](Clusters& c) { c.hidden_size = std::numeric_limits<std::ptrdiff_t>::max(); }) ==
        "sluice: clusters.centroids.size() = 6: must be size() * hidden_size");
  CHECK(complaint([=](Clusters& c) { c.centroids[3] = nan; }) == "sluice: clusters.centroids[3] = nan: must be finite");
  CHECK(complaint([](Clusters& c) { c.begin[0] = 1; }) == "sluice: clusters.begin[0] = 1: must be 0");
  CHECK(complaint([](Clusters& c) { c.begin[2] = 2; }) == "sluice: clusters.begin[2] = 2: is less than the one before");
  CHECK(complaint([](Clusters& c) { c.begin[3] = 6; }) == "sluice: clusters.begin.back() = 6: must be tokens.size()");
  CHECK(complaint([](Clusters& c) { c.tokens.pop_back(); }) ==
        "sluice: clusters.begin.back() = 5: must be tokens.size()");
  CHECK(complaint([](Clusters& c) { c.begin[1] = 99; }) ==
        "sluice: clusters.begin[2] = 5: is less than the one before");
  CHECK(complaint([](Clusters& c) { c.tokens[2] = 10; }) ==
        "sluice: clusters.tokens[2] = 10: is outside the vocabulary");
  CHECK(complaint([](Clusters& c) { c.tokens[0] = -1; }) ==
        "sluice: clusters.tokens[0] = -1: is outside the vocabulary");
  for (auto const token : {3, 4})
    CHECK(complaint([=](Clusters& c) { c.tokens[1] = 4, c.tokens[2] = token; }) ==
          "sluice: clusters.tokens[2] = " + std::to_string(token) +
              ": must be more than the one before it in its cluster");
}

TEST_CASE("rounding to bfloat16 is to nearest, ties to even", "[clusters]") {
  auto const bits = [](std::uint32_t x) { return std::bit_cast<float>(x); };
  CHECK(detail::round_to_bfloat16(0) == 0);
  CHECK(detail::round_to_bfloat16(-1.5f) == -1.5f);
  CHECK(detail::round_to_bfloat16(bits(0x3F808000)) == bits(0x3F800000));
  CHECK(detail::round_to_bfloat16(bits(0x3F808001)) == bits(0x3F810000));
  CHECK(detail::round_to_bfloat16(bits(0x3F818000)) == bits(0x3F820000));
  CHECK(detail::round_to_bfloat16(bits(0xBF817FFF)) == bits(0xBF810000));
  CHECK(detail::round_to_bfloat16(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
}
