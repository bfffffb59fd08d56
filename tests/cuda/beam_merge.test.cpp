// SPDX-License-Identifier: Apache-2.0
// The merge of beams on a device; skipped where there is none. What the kernel computes is tested without one:
// unit/cuda_host/beam_merge.
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_memory.hpp>
#include <support/device_table.hpp>
#include <support/merge_cases.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A case on the device.
class OnDeviceMerge {
 public:
  explicit OnDeviceMerge(MergeCase const& lists)
      : lists_(lists),
        best_(lists.best),
        results_(lists.results),
        groups_(lists.groups),
        lines_(lists.lines),
        ends_(lists.ends),
        kept_(lists.kept),
        totals_(lists.totals),
        places_(lists.places) {}

  cuda::MergeLaunch launch() {
    // [launch]
    cuda::MergeLaunch merge;
    merge.best = best_.data(), merge.results = results_.data(), merge.k = lists_.k;  // of a LineTask
    merge.groups = groups_.data(), merge.group_count = static_cast<std::int32_t>(lists_.groups.size());
    merge.lines = lines_.data(), merge.widest = lists_.widest, merge.longest = lists_.longest;
    merge.ends = ends_.data(), merge.end_count = static_cast<std::int32_t>(lists_.ends.size());
    merge.kept = kept_.data(), merge.totals = totals_.data(), merge.places = places_.data();
    // [/launch]
    return merge;
  }
  MergeCase answer() const {
    auto answer = lists_;
    answer.kept = kept_.get(), answer.totals = totals_.get(), answer.places = places_.get();
    return answer;
  }
  void forget() { kept_.set(lists_.kept), totals_.set(lists_.totals), places_.set(lists_.places); }

 private:
  MergeCase lists_;
  OnDevice<Candidate> best_;
  OnDevice<cuda::LineResult> results_;
  OnDevice<cuda::MergeGroup> groups_;
  OnDevice<cuda::MergeLine> lines_;
  OnDevice<Token> ends_;
  OnDevice<cuda::Kept> kept_;
  OnDevice<double> totals_;
  OnDevice<std::int32_t> places_;
};

void check_cases(std::uint64_t first, std::uint64_t count, std::size_t most_lines, std::size_t most_kept,
                 std::size_t most_groups) {
  for (auto seed = first; seed < first + rounds(count); ++seed) {
    MergeCase const lists(seed, most_lines, most_kept, 64, most_groups);
    INFO("seed " << seed << ", " << lists.groups.size() << " groups, up to " << lists.widest << " lines of " << lists.k
                 << ", " << lists.longest << " kept");
    OnDeviceMerge memory(lists);
    cudaStream_t const stream = nullptr;
    auto const merge = memory.launch();
    // [merge]
    cuda::merge_beams(merge, stream);
    // [/merge]
    cuda::check(cudaDeviceSynchronize(), "merge");
    CHECK(memory.answer().same(lists.merged()));
  }
}

/// Complete lists, whatever groups ask for.
struct WholeLists {
  cuda::LogSoftmaxTopK expander{{}, {}, {.mapped_answers = false}};
  Expansion expand(cuda::Scores<float> const& scores, std::span<Query const> queries, std::span<Group const>) {
    return expander.expand(scores, queries, {});
  }
};

}  // namespace

TEST_CASE("cuda merge_beams keeps the best candidates of every sentence, in the host's order", "[cuda]") {
  if (no_device()) return;
  check_cases(0, 400, 16, 64, 40);
  check_cases(1000, 100, 128, 256, 20);
}

TEST_CASE("cuda merge_beams in a graph says the same a thousand times", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  MergeCase const small(1, 16, 64, 20, 200), large(2, 128, 256, 64, 100);
  OnDeviceMerge first(small), second(large);
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  cuda::merge_beams(first.launch(), stream);
  cuda::merge_beams(second.launch(), stream);
  cudaGraph_t graph = nullptr;
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  auto const times = rounds(1000);
  for (std::uint64_t i = 1; i <= times; ++i) {
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    if (i % 100 != 0 && i != times) continue;
    cuda::check(cudaStreamSynchronize(stream), "graph");
    CHECK(first.answer().same(small.merged()));
    CHECK(second.answer().same(large.merged()));
    first.forget(), second.forget();
  }
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("a decoder finds the same, bit for bit, in lists merged on the device and in whole ones", "[cuda]") {
  if (no_device()) return;
  std::vector<std::uint64_t> sources(rounds(30));
  std::iota(sources.begin(), sources.end(), std::uint64_t{1});
  std::vector<BeamSearch> searches;
  for (std::int32_t const width : {1, 5, 12, 50})
    for (auto const& search : {presets::fairseq(width), presets::ctranslate2(width), presets::huggingface(width),
                               presets::sockeye(width), presets::marian(width, 1), presets::varstream(width)})
      searches.push_back(search);
  auto const apart = rounds(24) < 24 ? 11u : 1u;
  for (std::size_t i = 0; i < searches.size(); i += apart) {
    auto& search = searches[i];
    search.n_best = search.width, search.length.max = 12;
    Table table{.size = 300, .scale = 6, .eos_bias = 2, .eos_slope = 0.5};
    table.levels = i % 2 == 0 ? 0 : 50;
    table.order = i % 3 == 0 ? 1 : -1;
    DeviceTable model(table);
    auto const whole = decode(model, sources, search, Streaming{.size = 64}, WholeLists());
    for (auto const& step : {cuda::StepOptions{.mapped_answers = false}, cuda::StepOptions{.early_starts = true},
                             cuda::StepOptions{.early_starts = true, .merge_behind_lines = true}}) {
      auto const merged = decode(model, sources, search, Streaming{.size = 64}, cuda::LogSoftmaxTopK({}, {}, step));
      REQUIRE(merged.size() == whole.size());
      for (std::size_t j = 0; j < whole.size(); ++j) {
        INFO("search " << i << ", width " << search.width << ", sentence " << j);
        CHECK(identical(merged[j], whole[j]));
      }
    }
  }
}
