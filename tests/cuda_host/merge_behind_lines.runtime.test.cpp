// SPDX-License-Identifier: Apache-2.0
// The merge behind the last line of a group, against the merge as a launch of its own, on an emulated device.
#include <sluice/core/query.hpp>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/line/detail/line_plan.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/emulated_launches.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto nowhere = -std::numeric_limits<float>::infinity();

/// Random groups of lines, some of them empty (all -infinity, or nothing listed) or with a NaN, many with ties.
struct MergeBehindCase {
  MergeBehindCase(std::uint64_t seed, std::size_t most_rows, std::size_t size, std::int32_t most_lines)
      : columns(size) {
    std::mt19937_64 random(seed);
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    auto const width = static_cast<std::int32_t>(1 + below(static_cast<std::size_t>(most_lines)));
    auto const k = static_cast<std::int32_t>(2 + below(below(3) == 0 ? 63 : 8));
    std::size_t left = 1 + below(most_rows);
    while (left > 0) {
      auto const lines = std::min(left, 1 + below(static_cast<std::size_t>(width)));
      groups.push_back({.lines = static_cast<std::int32_t>(lines),
                        .keep = static_cast<std::int32_t>(1 + below(below(4) == 0 ? 64 : 6))});
      if (below(6) == 0) groups.back().keep = 0;  // stays whole
      if (below(6) == 0) groups.push_back({.lines = 0, .keep = 3});
      left -= lines;
      for (std::size_t i = 0; i < lines; ++i) {
        auto& query = queries.emplace_back();
        query.best = below(8) == 0 ? 0 : static_cast<std::int32_t>(1 + below(static_cast<std::size_t>(k)));
        query.base = -static_cast<double>(below(5)), query.rank = static_cast<std::int32_t>(below(lines));
        query.probes = probes;
      }
    }
    queries.front().best = k;
    groups.front().keep = std::max(groups.front().keep, 1);
    auto const levels = below(2) == 0 ? 6.0f : 4096.0f;
    scores.resize(queries.size() * size);
    for (auto& x : scores) x = static_cast<float>(below(static_cast<std::size_t>(levels))) * 8 / levels;
    for (std::size_t row = 0; row < queries.size(); ++row) {
      auto const line = scores.begin() + static_cast<std::ptrdiff_t>(row * size);
      if (below(8) == 0) std::fill_n(line, size, nowhere);
      if (below(8) == 0) line[static_cast<std::ptrdiff_t>(below(size))] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  std::size_t columns;
  std::vector<Token> probes{1, 40};
  std::vector<Query> queries;
  std::vector<Group> groups;
  std::vector<float> scores;
};

/// A launch of lines with a merge behind it, run with faults.
class MergeBehindRun {
 public:
  explicit MergeBehindRun(std::uint64_t seed) : seed_(seed), random_(seed) {
    for (auto& x : scores_) x = static_cast<float>(random_() % 64) / 8;
  }
  /// How many blocks merged, what is kept, and the results told; `faults` of the device.
  std::vector<std::int32_t> answer(DeviceFaults faults) {
    using Memory = cuda::detail::MergeBehindMemory<cuda::detail::line_threads, cuda::detail::SmallMerge>;
    using Block = EmulatedDevice<cuda::detail::line_threads>::Block;
    cuda::LineTask<float> task;
    task.scores = {scores_.data(), rows, size, size};
    task.k = task.query.best = k;
    std::vector<Candidate> best(rows * k, Candidate{-3, 7});
    std::vector<cuda::LineResult> results(rows, cuda::LineResult{1, 1, 0}), told(rows);
    std::vector<cuda::Kept> kept(keep + 2 * k, cuda::Kept{-1, -1, 0});
    std::vector<unsigned> tickets(2);
    task.best = best.data(), task.results = results.data();
    auto const launch = cuda::detail::LinePlan<float>(task, 1).launch(nullptr, nullptr);
    REQUIRE(launch.splits == 1);  // so that lines need neither fence nor ticket
    std::array<cuda::MergeGroup, 2> const groups{{{0, 4, keep, 0}, {4, 2, 0, keep}}};
    std::array<cuda::MergeLine, rows> const lines{{{-1, 2}, {0, 0}, {-0.5, 1}, {-2, 3}, {0, 4}, {0, 5}}};
    std::array<std::int32_t, rows> const group_of{0, 0, 0, 0, 1, 1};
    cuda::detail::MergeBehindLaunch behind;
    behind.merge.best = best.data(), behind.merge.results = results.data(), behind.merge.k = k;
    behind.merge.groups = groups.data(), behind.merge.group_count = 2, behind.merge.lines = lines.data();
    behind.merge.widest = 4, behind.merge.longest = keep;
    behind.merge.kept = kept.data(), behind.merge.told = told.data();
    behind.group_of = group_of.data(), behind.tickets = tickets.data();
    auto& device = emulated_device<cuda::detail::line_threads>();
    device.uneven = true;
    auto merges = 0;
    device.run<Memory>(rows, 3, seed_, faults, [&](Block& block, Memory& memory, int number) {
      cuda::detail::MergingBlock<cuda::detail::Float32, cuda::detail::SmallMerge, Block> program(block, memory, launch,
                                                                                                 behind, number, 0);
      if (program.run() && block.thread() == 0) ++merges;
    });
    failed = device.failure() != "" || tickets != std::vector<unsigned>(2);
    std::vector<std::int32_t> all{
        merges};  // whoever merges too early is overwritten by who does not, but there are too many
    for (auto const& x : kept) all.insert(all.end(), {x.parent, x.token, std::bit_cast<std::int32_t>(x.log_prob)});
    for (auto const& x : told) all.insert(all.end(), {x.count, x.valid, std::bit_cast<std::int32_t>(x.log_sum_exp)});
    return all;
  }
  bool failed = false;

 private:
  static constexpr int rows = 6, size = 200, k = 5, keep = 9;
  std::uint64_t seed_;
  std::mt19937_64 random_;
  alignas(16) std::array<float, rows * size> scores_{};
};

}  // namespace

TEST_CASE("a merge behind lines keeps what a launch of its own keeps, bit for bit", "[cuda]") {
  auto const& use = HostCuda::get().use;
  std::size_t behind = 0, split = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    auto const wide = seed % 4 == 0;
    MergeBehindCase const one(seed, wide ? 3 : 16, wide ? 36000 : 60, 16);
    OnDevice<float> const memory(one.scores);
    auto const scores = cuda::scores<float>(memory.data(), static_cast<std::ptrdiff_t>(one.queries.size()),
                                            static_cast<std::ptrdiff_t>(one.columns));
    auto const mapped = seed % 3 > 0;
    cuda::LogSoftmaxTopK apart({}, {}, {.mapped_answers = mapped});
    cuda::LogSoftmaxTopK together({}, {}, {.mapped_answers = mapped, .merge_behind_lines = true});
    for (int round = 0; round < (seed % 5 == 0 ? 2 : 1); ++round) {  // tickets are zero again
      INFO("seed " << seed << ", round " << round << ", " << one.queries.size() << " lines");
      auto const before = use;
      auto const expected = kept(apart.expand(scores, one.queries, one.groups));
      auto const merges = use.merge_launches - before.merge_launches;
      auto const answer = together.expand(scores, one.queries, one.groups);
      CHECK(use.line_launches == before.line_launches + 2);
      CHECK(use.merge_launches == before.merge_launches + merges);
      behind += merges, split += wide ? merges : 0;
      REQUIRE(answer.size() == expected.size());
      for (std::size_t i = 0; i < answer.size(); ++i) CHECK(same_line(answer[i], expected[i].view()));
    }
  }
  CHECK(behind > 15);
  CHECK(split > 2);
}

TEST_CASE("fence, ticket and barriers of the merge behind lines are missed", "[cuda]") {
  auto const missed = [](DeviceFaults faults) {
    for (std::uint64_t seed = 1; seed < 120; ++seed) {
      MergeBehindRun run(seed);
      auto const expected = run.answer({});
      CHECK_FALSE(run.failed);
      CHECK(expected.front() == 2);
      CHECK(run.answer({}) == expected);
      if (run.answer(faults) != expected || run.failed) return true;
    }
    return false;
  };
  CHECK(missed({.no_fence = true}));
  CHECK(missed({.no_ticket = true}));
  for (auto const barrier : {cuda::detail::Barrier::told, cuda::detail::Barrier::joined}) {
    INFO("barrier " << static_cast<int>(barrier));
    CHECK(missed({.skipped = barrier}));
    emulated_device<cuda::detail::line_threads>() = {};  // forgets what went wrong
  }
}
