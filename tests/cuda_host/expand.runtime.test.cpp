// SPDX-License-Identifier: Apache-2.0
// cuda::LogSoftmaxTopK as a decoder uses it, on an emulated device and a runtime in the host's memory (support/host_cuda).
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/beam/presets.hpp>

#define SLUICE_EMULATED_DEVICE  // of device_memory.hpp, memory alone
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_memory.hpp>
#include <support/device_table.hpp>
#include <support/emulated_launches.hpp>
#include <support/line_cases.hpp>
#include <support/random_query.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

DeviceUse const& device_use = HostCuda::get().use;

/// Whole lists, or merged ones, copied or written to the host's memory; every step counted.
struct Counting {
  bool whole, mapped = true;
  cuda::LogSoftmaxTopK expander{{}, {}, {.mapped_answers = mapped, .early_starts = mapped}};
  Expansion expand(cuda::Scores<float> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    auto const before = device_use;
    auto const answer = expander.expand(scores, queries, whole ? std::span<Group const>{} : groups);
    CHECK(device_use.copies_there == before.copies_there + 1);
    CHECK(device_use.copies_back == before.copies_back + (mapped ? 0 : 1));
    CHECK((device_use.bytes_told > before.bytes_told) == mapped);
    auto const merges = device_use.merge_launches - before.merge_launches;
    CHECK(device_use.early_starts == before.early_starts + (mapped ? merges : 0));
    CHECK(device_use.wrong_starts == 0);
    if (device_use.allocations == before.allocations) CHECK(device_use.waits == before.waits + 1);
    CHECK(device_use.line_launches == before.line_launches + 1);
    CHECK(device_use.merge_launches <= before.merge_launches + (whole ? 0u : 1u));
    return answer;
  }
};

}  // namespace

TEST_CASE("cuda log_softmax_top_k's expand answers as double precision does, on an emulated device", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    LineCase<cuda::Float32> lines(seed, 9000, 3);
    lines.tokens.clear();
    std::vector<cuda::Words> memory((lines.memory.size() + 3) / 4);
    std::memcpy(memory.data(), lines.memory.data(), lines.memory.size() * sizeof(float));
    cuda::Scores<float> scores;
    scores.data = reinterpret_cast<float const*>(lines.lines(reinterpret_cast<std::uint32_t const*>(memory.data())));
    scores.rows = static_cast<std::ptrdiff_t>(lines.rows), scores.columns = static_cast<std::ptrdiff_t>(lines.size);
    scores.stride = static_cast<std::ptrdiff_t>(lines.stride);
    cuda::LogSoftmaxTopK expander(lines.bias);
    auto const answer = expander.expand(scores, lines.queries, {});
    REQUIRE(answer.size() == lines.rows);
    for (std::size_t row = 0; row < lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row);
      lines.check(row, answer[row]);
    }
  }
}

TEST_CASE("a step is one copy there and at most one back, merged or not, and finds the same", "[cuda]") {
  std::vector<std::uint64_t> sources(3);
  std::iota(sources.begin(), sources.end(), std::uint64_t{1});
  std::vector<BeamSearch> searches{presets::fairseq(5), presets::varstream(12), presets::sockeye(20)};
  for (auto& search : searches) {
    search.n_best = search.width, search.length.max = 4;
    Table const table{.size = 120, .scale = 5, .eos_bias = 2, .levels = 30};
    DeviceTable model(table);
    auto const run = [&](bool whole, bool mapped) {
      auto const before = device_use;
      auto results = decode(model, sources, search, Streaming{.size = 40}, Counting{whole, mapped});
      CHECK((device_use.merge_launches > before.merge_launches) != whole);
      auto const copied = device_use.bytes_back - before.bytes_back, told = device_use.bytes_told - before.bytes_told;
      CHECK((mapped ? copied : told) == 0);
      return std::pair(std::move(results), copied + told);
    };
    auto const [expected, all] = run(true, false);
    for (auto const mapped : {false, true}) {
      auto const [merged, few] = run(false, mapped);
      auto const [whole, many] = run(true, mapped);
      CHECK(few < many);
      CHECK(many <= all);
      REQUIRE(merged.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(identical(merged[i], expected[i]));
        CHECK(identical(whole[i], expected[i]));
      }
    }
  }
}

TEST_CASE("large answers are copied, and so is what kernels look at again", "[cuda]") {
  std::size_t const size = 300, rows = 150;
  std::vector<float> x(rows * size);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(hash_mix(i + 1) % 4096) / 256;
  OnDevice<float> const memory(x);
  cuda::LogSoftmaxTopK copying({}, {}, {.mapped_answers = false}), expander;
  auto const run = [&](std::size_t lines, Query const& query, bool mapped) {
    std::vector<Token> const probes{3, 299};
    std::vector<Query> queries(lines, query);
    for (auto& one : queries) one.probes = probes;
    auto const scores = cuda::scores<float>(memory.data(), static_cast<std::ptrdiff_t>(lines), size);
    auto const expected = kept(copying.expand(scores, queries, {}));
    auto const before = device_use;
    auto const answer = expander.expand(scores, queries, {});
    CHECK(device_use.copies_back == before.copies_back + (mapped ? 0 : 1));
    CHECK((device_use.bytes_told > before.bytes_told) == mapped);
    for (std::size_t i = 0; i < lines; ++i) CHECK(same_line(answer[i], expected[i].view()));
  };
  plain_lines = true;
  run(100, {.best = 60}, true);
  run(150, {.best = 60}, false);  // 72,000 bytes and more
  plain_lines = false;
  run(3, {.best = 64}, true);
  run(3, {.best = 65}, false);
  run(3, {.best = 5, .entropy = true}, false);
  run(3, {.best = 5, .mass = 0.5f}, false);
}

TEST_CASE("want of memory that kernels can write is an error, and the next step goes on", "[cuda]") {
  OnDevice<float> const memory(std::vector<float>{1, 3, 2, 0});
  auto const scores = cuda::scores<float>(memory.data(), 1, 4);
  std::vector<Query> const queries(1, Query{.best = 2});
  cuda::LogSoftmaxTopK expander;
  HostCuda::get().no_page_locked = true;
  CHECK_THROWS_AS(expander.expand(scores, queries, {}), cuda::Error);
  HostCuda::get().no_page_locked = false;
  CHECK(expander.expand(scores, queries, {})[0].best[0].token == 1);
}

TEST_CASE("cuda log_softmax_top_k allocates nothing on the device once warm", "[cuda]") {
  std::size_t const size = 500;
  std::vector<cuda::Words> memory(8 * size / 4);
  for (std::size_t i = 0; i < memory.size(); ++i)
    for (auto& word : memory[i].word) word = static_cast<std::uint32_t>(0x3f800000u + hash_mix(i + 1) % 0x800000u);
  auto const scores = cuda::scores<float>(reinterpret_cast<float const*>(memory.data()), 8, size);
  std::vector<Query> queries(8, Query{.best = 30});
  std::vector<Group> groups{{.lines = 3, .keep = 20}, {.lines = 5, .keep = 31}};
  cuda::LogSoftmaxTopK expander;
  auto const run = [&] {
    auto const answer = expander.expand(scores, queries, groups);
    std::size_t listed = 0;
    for (std::size_t i = 0; i < answer.size(); ++i) listed += answer[i].best.size();
    return listed;
  };
  CHECK(run() == 51);
  auto const warm = device_use.allocations;
  CHECK(run() == 51);
  groups = {{.lines = 8}};
  CHECK(run() == 240);
  CHECK(device_use.allocations == warm);
}
