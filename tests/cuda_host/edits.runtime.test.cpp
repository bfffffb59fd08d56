// SPDX-License-Identifier: Apache-2.0
// Many edits of a line: what they cost, and that they are those of the host.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/line/edit_order.cuh>
#include <sluice/cuda/projection/detail/union_terms.cuh>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/emulated_launches.hpp>
#include <support/line_reference.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Of random tokens, some of them twice or outside [0, size).
std::vector<Edit> random_edits(std::mt19937_64& random, std::size_t count, std::size_t size) {
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < count; ++i) {
    auto token = static_cast<Token>(below(random, size));
    if (!edits.empty() && below(random, 8) == 0) token = edits[below(random, edits.size())].token;
    if (below(random, 30) == 0) token = below(random, 2) == 0 ? -1 - token : static_cast<Token>(size) + token;
    auto const add = below(random, 5) == 0 ? cuda::detail::minus_infinity : static_cast<float>(below(random, 7)) - 3;
    edits.push_back({token, add, below(random, 2) == 0 ? 1.3f : 1});
  }
  return edits;
}

/// One line that is asked for its best 40 after edits, in memory as a device's.
struct EditedLine {
  EditedLine(std::uint64_t seed, std::size_t size, std::size_t count)
      : random(seed), scores(size), best(40), results(1) {
    x = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 3);
    scores.set(x);
    edits = random_edits(random, count, size);
  }
  /// The answers of the device, and how many looks at edits it took.
  std::uint64_t run(bool ascending, Stage stage, std::vector<Candidate>& list) {
    auto there = edits;
    if (ascending) cuda::EditOrder().copy(edits, there.data());
    OnDevice<Edit> const memory(there);
    cuda::LineTask<float> task;
    auto const size = static_cast<std::ptrdiff_t>(x.size());
    task.scores = {scores.data(), 1, size, size};
    task.k = task.query.best = 40, task.query.normalise = 0, task.query.stage = stage;
    task.query.edit_count = static_cast<std::int32_t>(there.size());
    task.edits = memory.data(), task.ascending = ascending;
    task.best = best.data(), task.results = results.data();
    auto& looks = emulated_device<cuda::detail::line_threads>().tokens_read;
    auto const before = looks;
    cuda::LogSoftmaxTopK expander;
    expander.enqueue(task, nullptr);
    cuda::check(cudaStreamSynchronize(nullptr), "wait");
    list = best.get();
    list.resize(static_cast<std::size_t>(results.get()[0].count));
    return looks - before;
  }
  std::mt19937_64 random;
  OnDevice<float> scores;
  OnDevice<Candidate> best;
  OnDevice<cuda::LineResult> results;
  std::vector<float> x;
  std::vector<Edit> edits;
};

}  // namespace

TEST_CASE("edits are put in order as a stable sort puts them", "[cuda]") {
  std::mt19937_64 random(1);
  cuda::EditOrder order;
  for (int round = 0; round < 60; ++round) {
    auto const edits = random_edits(random, below(random, 300), round % 3 == 0 ? 20 : 1 << (round % 31));
    std::vector<Edit> got(edits.size()), expected = edits;
    order.copy(edits, got.data());
    std::stable_sort(expected.begin(), expected.end(), [](Edit const& a, Edit const& b) {
      return static_cast<std::uint32_t>(a.token) < static_cast<std::uint32_t>(b.token);
    });
    CHECK(std::equal(got.begin(), got.end(), expected.begin(), [](Edit const& a, Edit const& b) {
      return a.token == b.token && same_bits(a.add, b.add) && a.penalty == b.penalty;
    }));
  }
}

TEST_CASE("thousands of edits give the host's bits, each for a few looks, in order or not", "[cuda]") {
  plain_lines = false;
  auto const* const wide = std::getenv("SLUICE_EDITS");  // a line of so many scores: the figures in docs/cuda.md
  auto const size = wide != nullptr ? static_cast<std::size_t>(std::strtoull(wide, nullptr, 10)) : 9000;
  for (auto const stage : {Stage::before_softmax, Stage::after_softmax})
    for (std::size_t const count : {std::size_t{60}, std::size_t{2000}}) {
      EditedLine line(count, size, count);
      if (stage == Stage::after_softmax)
        for (auto& edit : line.edits) edit.penalty = 1;  // one pass
      Query const query{.best = 40, .edits = line.edits, .stage = stage, .normalise = false};
      LogSoftmaxTopK host;
      auto const expected = host.expand(scores(line.x.data(), 1, static_cast<std::ptrdiff_t>(size)), {&query, 1}, {});
      std::vector<Candidate> ordered, unordered;
      auto const few = line.run(true, stage, ordered), many = line.run(false, stage, unordered);
      INFO(count << " edits, " << few << " looks in order, " << many << " in any");
      REQUIRE(ordered.size() == expected[0].best.size());
      for (std::size_t i = 0; i < ordered.size(); ++i) {
        CHECK(ordered[i].token == expected[0].best[i].token);
        CHECK(same_bits(ordered[i].log_prob, expected[0].best[i].log_prob));
        CHECK(unordered[i].token == ordered[i].token);
        CHECK(same_bits(unordered[i].log_prob, ordered[i].log_prob));
      }
      // Each is marked, its group finds it in so many halves, comes to the next one, and is perhaps listed; blocks find theirs.
      std::uint64_t halves = 1;
      while (std::size_t{1} << halves <= count) ++halves;
      auto const blocks = (size + 4095) / 4096;
      CHECK(few <= count * (3 + halves) + blocks * 3 * 64 + 128 * (halves + 3));
      CHECK(few * (count > 1000 ? 40 : 2) < many);
      if (wide != nullptr)
        WARN(count << " edits of " << size << " scores: " << few << " looks in order, " << many << " in any");
    }
}

TEST_CASE("edits of tokens without a place change nothing, and leave the others in order", "[cuda]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<Token> tokens;
    for (Token t = 0; t < 60; ++t)
      if (below(random, 3) == 0) tokens.push_back(t);
    auto const edits = random_edits(random, 50, 60);
    std::vector<Edit> in(edits.size()), placed(edits.size());
    cuda::EditOrder().copy(edits, in.data());
    cuda::detail::PlaceLaunch launch;
    launch.tokens = tokens.data(), launch.count = static_cast<std::int32_t>(tokens.size());
    launch.edit_count = static_cast<std::int32_t>(in.size());
    launch.edits = in.data(), launch.placed_edits = placed.data();
    std::vector<std::vector<Edit>> of_token(60), of_place(tokens.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      cuda::detail::place_one(launch, static_cast<std::int32_t>(i));
      auto const place = placed[i].token;
      REQUIRE((place >= 0 && place <= launch.count));
      if (i > 0) CHECK(placed[i - 1].token <= place);
      if (place == launch.count) continue;
      if (same_bits(placed[i].add, -0.0f) && placed[i].penalty == 1) continue;
      of_place[static_cast<std::size_t>(place)].push_back(placed[i]);
    }
    for (auto const& edit : edits)
      if (edit.token >= 0 && edit.token < 60) of_token[static_cast<std::size_t>(edit.token)].push_back(edit);
    for (std::size_t p = 0; p < tokens.size(); ++p) {
      auto const& expected = of_token[static_cast<std::size_t>(tokens[p])];
      REQUIRE(of_place[p].size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(of_place[p][i].add == expected[i].add);
        CHECK(of_place[p][i].penalty == expected[i].penalty);
      }
    }
  }
}
