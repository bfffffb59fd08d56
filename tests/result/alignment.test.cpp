// SPDX-License-Identifier: Apache-2.0
// Alignments of words from what was attached to tokens.
#include <sluice/core/result.hpp>
#include <sluice/result/alignment.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("attention of tokens becomes an alignment of words", "[alignment]") {
  // "un believ able ." from "in croy able . </s>": three words here, two there, the end of none.
  Hypothesis const hypothesis{.tokens = {5, 6, 7, 8, 2},
                              .attached = {{0.5f, 0.25f, 0.0f, 0.0f, 0.25f},
                                           {0.0f, 0.5f, 0.25f, 0.0f, 0.25f},
                                           {0.0f, 0.0f, 0.0f, 0.0f, 1.0f},
                                           {0.125f, 0.125f, 0.0f, 0.75f, 0.0f},
                                           {}}};
  std::vector<std::int32_t> const source{0, 0, 0, 1, -1}, target{0, 0, 1, 2, -1};
  auto const alignment = align_words(hypothesis, source, target);
  CHECK(alignment == Alignment{{1, 0}, {0, 0}, {0.25f, 0.75f}});
  CHECK(hard_alignment(alignment) == std::vector<AlignedPair>{{0, 0}, {1, 2}});
  CHECK(alignment_above(alignment, 0.25f) == std::vector<AlignedPair>{{0, 0}, {0, 2}, {1, 2}});
  CHECK(to_pharaoh(alignment_above(alignment, 0.25f)) == "0-0 0-2 1-2");
  CHECK(to_pharaoh({{2, 0}, {0, 3}, {0, 1}}) == "0-1 0-3 2-0");
  CHECK(to_pharaoh({}).empty());
}

TEST_CASE("an alignment of words is the sum over tokens, whatever the words", "[alignment]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    auto const words = [&](std::size_t tokens) {  // in order, some belong to none
      std::vector<std::int32_t> all;
      for (std::int32_t word = 0; all.size() < tokens;)
        all.push_back(random() % 5 == 0 ? -1 : random() % 2 == 0 ? word : word++);
      return all;
    };
    auto const source = words(1 + random() % 9), target = words(1 + random() % 9);
    Hypothesis hypothesis{.tokens = std::vector<Token>(target.size(), 3)};
    for (std::size_t i = 0; i < target.size(); ++i) {
      hypothesis.attached.emplace_back();
      for (std::size_t p = 0; p < source.size(); ++p)
        hypothesis.attached.back().push_back(static_cast<float>(random() % 100) / 64);
    }
    auto const alignment = align_words(hypothesis, source, target);
    for (std::size_t i = 0; i < alignment.size(); ++i) {
      std::vector<double> line(alignment[i].size());
      double sum = 0;
      for (std::size_t t = 0; t < target.size(); ++t)
        for (std::size_t p = 0; p < source.size(); ++p)
          if (target[t] == static_cast<std::int32_t>(i) && source[p] >= 0) {
            line[static_cast<std::size_t>(source[p])] += static_cast<double>(hypothesis.attached[t][p]);
            sum += static_cast<double>(hypothesis.attached[t][p]);
          }
      for (std::size_t j = 0; j < line.size(); ++j)
        CHECK(std::abs(static_cast<double>(alignment[i][j]) - (sum > 0 ? line[j] / sum : 0)) < 1e-5);
    }
    for (auto const& [j, i] : hard_alignment(alignment))
      for (auto const share : alignment[i]) CHECK(share <= alignment[i][j]);
  }
}

TEST_CASE("alignments refuse what does not fit", "[alignment]") {
  Hypothesis const hypothesis{.tokens = {5, 2}, .attached = {{1, 0}, {0, 1}}};
  std::vector<std::int32_t> const two{0, 1}, three{0, 1, 2};
  CHECK_THROWS_MATCHES(align_words(hypothesis, two, three), std::invalid_argument,
                       Message("sluice: target_words = 3: is not the number of tokens"));
  CHECK_THROWS_MATCHES(align_words(hypothesis, three, two), std::invalid_argument,
                       Message("sluice: source_words = 3: is not the number of positions that were attached"));
  CHECK_THROWS_MATCHES(align_words({.tokens = {5, 2}}, two, two), std::invalid_argument,
                       Message("sluice: attached = 0: is not the number of tokens"));
  CHECK_THROWS_MATCHES(alignment_above({}, 0), std::invalid_argument,
                       Message("sluice: threshold = 0.000000: must be in (0, 1]"));
}
