// SPDX-License-Identifier: Apache-2.0
// The device's merge of beams, run on an emulated device.
#include <sluice/cuda/expand/detail/merge_plan.cuh>
#include <sluice/cuda/merge/detail/merge_block.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/emulated_device.hpp>
#include <support/merge_cases.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Small = cuda::detail::MergeMemory<16, 64>;
using Large = cuda::detail::MergeMemory<128, 256>;

template <class Memory, int threads>
void merge(EmulatedDevice<threads>& device, cuda::MergeLaunch const& launch, std::uint64_t seed,
           DeviceFaults faults = {}) {
  using Block = typename EmulatedDevice<threads>::Block;
  device.template run<Memory>(launch.group_count, 1 + static_cast<int>(seed % 3), seed, faults,
                              [&](Block& block, Memory& memory, int number) {
                                cuda::detail::MergeBlock<Memory, Block>(block, memory, launch, number).run();
                              });
}

template <class Memory, int threads>
void check_cases(std::uint64_t first, std::uint64_t count, std::size_t most_lines, std::size_t most_kept,
                 std::size_t most_listed) {
  EmulatedDevice<threads> device;
  for (auto seed = first; seed < first + count; ++seed) {
    MergeCase lists(seed, most_lines, most_kept, most_listed, 4);
    auto const expected = lists.merged();
    INFO("seed " << seed << ", " << lists.groups.size() << " groups, up to " << lists.widest << " lines of " << lists.k
                 << ", " << lists.longest << " kept");
    merge<Memory>(device, lists.launch(), seed);
    REQUIRE(device.failure() == "");
    CHECK(lists.same(expected));

    // Totals and places are written for those who ask.
    MergeCase plain(seed, most_lines, most_kept, most_listed, 4);
    auto launch = plain.launch();
    launch.totals = nullptr, launch.places = nullptr;
    merge<Memory>(device, launch, seed + 1);
    plain.totals = expected.totals, plain.places = expected.places;
    CHECK(plain.same(expected));
  }
}

}  // namespace

TEST_CASE("the device's merge keeps the best candidates of every sentence, in the host's order", "[cuda]") {
  check_cases<Small, 32>(0, 400, 16, 64, 20);
  check_cases<Small, 32>(1000, 60, 16, 64, 64);
  check_cases<Large, 64>(2000, 60, 40, 100, 45);
  check_cases<Large, 256>(3000, 6, 128, 256, 64);
}

TEST_CASE("the device's merge does not judge a list by its head", "[cuda]") {
  // The three best are 10, 9 and 8; the rank of its head alone would forbid the list of 9 a second place.
  MergeCase lists(0, 1, 1, 1, 1);
  lists.k = 2;
  lists.best = {{1, 10}, {2, 0}, {3, 9}, {4, 8}};
  lists.results = {{2, 1, 0}, {2, 1, 0}};
  lists.lines = {{0, 0}, {0, 1}};
  lists.groups = {{0, 2, 3, 0}};
  lists.ends = {3};
  lists.kept.assign(3, MergeCase::untouched), lists.totals.assign(3, 0), lists.places.assign(3, 0);
  EmulatedDevice<32> device;
  merge<Small>(device, lists.launch(), 1);
  CHECK(lists.totals == std::vector<double>{10, 9, 8});
  CHECK(lists.kept[2].parent == 1);
  CHECK(lists.kept[2].token == 4);
  CHECK(lists.places == std::vector<std::int32_t>{0, ~0, 1});
}

TEST_CASE("every barrier of the device's merge is missed", "[cuda]") {
  EmulatedDevice<64> device;
  for (auto const barrier :
       {cuda::detail::Barrier::staged, cuda::detail::Barrier::selected, cuda::detail::Barrier::ended}) {
    INFO("barrier " << static_cast<int>(barrier));
    device = {};
    auto missed = false;
    for (std::uint64_t seed = 0; seed < 100 && !missed; ++seed) {
      MergeCase lists(seed, 16, 64, 20, 2);
      auto const expected = lists.merged();
      merge<Small>(device, lists.launch(), seed, {.skipped = barrier});
      missed = !lists.same(expected) || device.failure() != "";
    }
    CHECK(missed);
    CHECK(device.has_seen(barrier));
  }
}

namespace {

/// How an expander serves groups that ask to keep some of their candidates.
enum class Serves { whole_lists, cut_lists, merged_lists };

/// The host's LogSoftmaxTopK, with the merge of the emulated device behind it.
class Merging {
 public:
  struct Counters {
    std::size_t merges = 0, left_out = 0, largest = 0;
  };
  Merging(Serves serves, std::shared_ptr<Counters> counters) : serves_(serves), counters_(std::move(counters)) {}

  Expansion expand(Scores<float> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    if (serves_ == Serves::cut_lists) return expander_.expand(scores, queries, groups);
    auto const lists = expander_.expand(scores, queries, {});
    if (serves_ == Serves::whole_lists) return lists;
    std::int32_t k = 1;
    for (auto const& query : queries) k = std::max(k, query.best);
    plan_.build(queries, groups, k, Large::lines, Large::kept);
    if (!plan_.merges()) return lists;

    best_.assign(queries.size() * static_cast<std::size_t>(k), {-1, 1e9f});
    results_.clear(), probes_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const line = lists[i];
      std::ranges::copy(line.best, best_.begin() + static_cast<std::ptrdiff_t>(i * static_cast<std::size_t>(k)));
      results_.push_back({static_cast<std::int32_t>(line.best.size()), line.valid ? 1 : 0, line.log_sum_exp});
      probes_.insert(probes_.end(), line.probes.begin(), line.probes.end());
      probes_.resize(probes_.size() + queries[i].probes.size() - line.probes.size());
    }
    kept_.assign(plan_.kept() + 1, MergeCase::untouched);
    cuda::MergeLaunch launch;
    launch.best = best_.data(), launch.results = results_.data(), launch.k = k;
    launch.groups = plan_.groups().data(), launch.group_count = static_cast<std::int32_t>(plan_.groups().size());
    launch.lines = plan_.lines().data(), launch.widest = plan_.widest(), launch.longest = plan_.longest();
    launch.kept = kept_.data();
    if (launch.widest <= Small::lines && launch.longest <= Small::kept) merge<Small>(warp_, launch, ++seed_);
    else merge<Large>(block_, launch, ++seed_);
    REQUIRE(warp_.failure() + block_.failure() == "");
    REQUIRE(kept_.back().parent == MergeCase::untouched.parent);

    merged_.clear();
    plan_.read(queries, results_.data(), probes_.data(), kept_.data(), merged_);
    ++counters_->merges;
    counters_->largest = std::max(counters_->largest, static_cast<std::size_t>(launch.longest));
    auto const answer = merged_.answer(queries, groups);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const some = answer[i], all = lists[i];
      REQUIRE(some.best.size() <= all.best.size());
      CHECK(std::equal(some.best.begin(), some.best.end(), all.best.begin()));
      CHECK(std::equal(some.probes.begin(), some.probes.end(), all.probes.begin(), all.probes.end()));
      CHECK((some.valid == all.valid && some.log_sum_exp == all.log_sum_exp));
      counters_->left_out += all.best.size() - some.best.size();
    }
    return answer;
  }

 private:
  Serves serves_;
  std::shared_ptr<Counters> counters_;
  LogSoftmaxTopK expander_;
  cuda::detail::MergePlan plan_;
  LineLists merged_;
  EmulatedDevice<32> warp_;
  EmulatedDevice<64> block_;
  std::vector<Candidate> best_;
  std::vector<cuda::LineResult> results_;
  std::vector<float> probes_;
  std::vector<cuda::Kept> kept_;
  std::uint64_t seed_ = 0;
};

/// The same search over whole lists, lists cut on the host, and merged lists. Returns what was merged.
template <class S>
Merging::Counters check_search(Table const& table, S const& search, std::size_t sentences, std::size_t size) {
  std::vector<std::uint64_t> sources(sentences);
  std::iota(sources.begin(), sources.end(), std::uint64_t{1});
  auto const counters = std::make_shared<Merging::Counters>();
  auto const run = [&](Serves serves) {
    TableModel<everything> model(table);
    return decode(model, sources, search, Streaming{.size = size}, Merging(serves, counters));
  };
  auto const expected = run(Serves::whole_lists);
  for (auto const serves : {Serves::cut_lists, Serves::merged_lists}) {
    auto const results = run(serves);
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("sentence " << i << ", lists " << static_cast<int>(serves));
      CHECK(identical(results[i], expected[i]));
    }
  }
  return *counters;
}

}  // namespace

TEST_CASE("every kind of beam search finds the same, bit for bit, in lists merged on the device", "[cuda]") {
  using namespace presets;
  auto const with = [](BeamSearch search, auto const& change) {
    search.n_best = search.width, search.length.max = 9;
    change(search);
    return search;
  };
  auto const as_it_is = [](BeamSearch&) {};
  std::vector<BeamSearch> searches;
  for (std::int32_t const width : {1, 2, 5, 12}) {
    for (auto const& search : {fairseq(width), ctranslate2(width), ctranslate2(width, 0), huggingface(width),
                               huggingface(width, 2, EarlyStopping::Rule::never_early), sockeye(width),
                               marian(width, 1), varstream(width), varstream(width, 3, 2)})
      searches.push_back(with(search, as_it_is));
    searches.push_back(with(fairseq(width), [](auto& s) { s.length.min = 4, s.candidates = 2 * s.width + 3; }));
    searches.push_back(with(fairseq(width), [](auto& s) { s.early_stopping.rule = EarlyStopping::Rule::exact; }));
    searches.push_back(with(fairseq(width), [](auto& s) { s.pruning.relative_threshold = 0.1; }));
    searches.push_back(with(fairseq(width), [](auto& s) { s.pruning.relative_local_threshold = 0.02; }));  // no merge
  }
  std::size_t merges = 0, left_out = 0;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    Table table{.size = 14, .scale = 4, .eos_bias = 0, .eos_slope = 0.3};
    table.levels = static_cast<std::int32_t>(i % 3 == 0 ? 0 : 1 + i % 4);
    table.order = static_cast<std::int32_t>(i % 4) - 1;
    if (i % 5 == 0) table.second_eos = 5;
    INFO("search " << i << ", width " << searches[i].width);
    auto const counters = check_search(table, searches[i], 6, i % 2 == 0 ? 4 : 30);
    merges += counters.merges, left_out += counters.left_out;
  }
  CHECK(merges > 200);
  CHECK(left_out > 1000);
}

TEST_CASE("wide beams are merged by a whole block, and wider ones not at all", "[cuda]") {
  Table const table{.size = 150, .scale = 6, .levels = 40};
  auto search = presets::fairseq(50);
  search.n_best = 50, search.length.max = 4;
  auto const counters = check_search(table, search, 2, 30);
  CHECK(counters.merges > 0);
  CHECK(counters.left_out > 0);
  CHECK(counters.largest == 100);
  search.width = search.n_best = 130;
  CHECK(check_search(table, search, 1, 200).merges == 0);
}

TEST_CASE("diverse beams find the same in lists of which the first group's are merged on the device", "[cuda]") {
  for (std::int32_t const levels : {0, 3}) {
    DiverseBeamSearch search{.search = presets::fairseq(4), .groups = 2, .penalty = 0.5, .n_best = 8};
    search.search.n_best = 4, search.search.length.max = 8;
    auto const counters = check_search({.size = 14, .scale = 4, .levels = levels}, search, 5, 30);
    CHECK(counters.merges > 0);
    CHECK(counters.left_out > 0);
  }
}

TEST_CASE("a merge plan refuses groups that do not add up", "[cuda]") {
  cuda::detail::MergePlan plan;
  std::vector<Query> const queries(4, Query{.best = 3});
  std::vector<Group> const more{{.lines = 3, .keep = 2}, {.lines = 2}}, fewer{{.lines = 3, .keep = 2}};
  CHECK_THROWS_AS(plan.build(queries, more, 3, 128, 256), std::invalid_argument);
  CHECK_THROWS_AS(plan.build(queries, fewer, 3, 128, 256), std::invalid_argument);
  CHECK_NOTHROW(plan.build(queries, {}, 3, 128, 256));
  CHECK_FALSE(plan.merges());
}

TEST_CASE("a merge plan leaves whole what is small or too large to merge", "[cuda]") {
  cuda::detail::MergePlan plan;
  auto const merges = [&](std::int32_t lines, std::int32_t best, std::int32_t keep) {
    std::vector<Query> const queries(static_cast<std::size_t>(lines), Query{.best = best});
    std::vector<Group> const groups{{.lines = lines, .keep = keep}};
    plan.build(queries, groups, std::max(best, 1), 16, 64);
    return plan.merges();
  };
  CHECK(merges(16, 30, 64));
  CHECK_FALSE(merges(17, 30, 64));
  CHECK_FALSE(merges(16, 30, 65));
  CHECK_FALSE(merges(16, 30, 0));
  CHECK(merges(5, 6, 19));
  CHECK_FALSE(merges(5, 6, 20));  // 20 Kept are as large as 30 Candidates
  CHECK_FALSE(merges(5, 0, 10));
}
