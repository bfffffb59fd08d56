// SPDX-License-Identifier: Apache-2.0
// cuda::LogSoftmaxTopK as a decoder uses it, on an emulated device and a runtime in the host's memory (support/host_cuda).
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_memory.hpp>
#include <support/device_query.hpp>
#include <support/device_table.hpp>
#include <support/emulated_launches.hpp>
#include <support/line_cases.hpp>
#include <support/line_reference.hpp>
#include <support/random_query.hpp>
#include <support/table_model.hpp>

#include <algorithm>
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
    LineCase<cuda::detail::Float32> lines(seed, 9000, 3);
    lines.tokens.clear();
    std::vector<cuda::detail::Words> memory((lines.memory.size() + 3) / 4);
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

TEST_CASE("cuda log_softmax_top_k finds the same, bit for bit, through rings: lines, tiles, lines with masks",
          "[cuda]") {
  auto const same = [](Expansion const& a, Expansion const& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t row = 0; row < a.size(); ++row) {
      CHECK(a[row].valid == b[row].valid);
      CHECK(a[row].log_sum_exp == b[row].log_sum_exp);
      CHECK(std::equal(a[row].best.begin(), a[row].best.end(), b[row].best.begin(), b[row].best.end()));
      CHECK(std::equal(a[row].probes.begin(), a[row].probes.end(), b[row].probes.begin(), b[row].probes.end()));
    }
  };
  std::size_t const rows = 3, size = 20001;
  std::vector<cuda::detail::Words> memory((rows * size + 7) / 4);
  for (std::size_t i = 0; i < 4 * memory.size(); ++i)
    memory[i / 4].word[i % 4] = static_cast<std::uint32_t>(0x3f800000u + hash_mix(i + 1) % 0x800000u);
  auto const* const data = reinterpret_cast<float const*>(memory.data());
  TokenSet few(size);
  for (Token token = 0; token < 20001; token += 3) few.insert(token);
  for (auto const first : {std::size_t{0}, std::size_t{1}}) {
    auto const scores = cuda::scores<float>(data + first, rows, size);
    for (auto const masked : {false, true}) {
      std::vector<Query> queries(rows, Query{.best = 30});
      queries[1].best = 0;
      if (masked) queries[2].only = &few;
      // [ring]
      cuda::LogSoftmaxTopK direct, ring({}, {}, {.loads = cuda::Loads::ring});
      // [/ring]
      auto const answer = direct.expand(scores, queries, {});
      auto const rings = device_use.ring_launches;
      same(ring.expand(scores, queries, {}), answer);
      CHECK(device_use.ring_launches == rings + (masked ? 0 : 1));
      queries.assign(rows, Query{.best = 1});
      auto const best = direct.expand(scores, queries, {});
      same(ring.expand(scores, queries, {}), best);
    }
  }

  // Tiles, of which the last is not full.
  auto const scores = cuda::scores<float>(data, rows, size);
  constexpr auto width = 2 * cuda::LogSoftmaxTopK::tile_columns<float>();
  std::vector<cuda::detail::Words> tile(rows * static_cast<std::size_t>(width) / 4);
  auto* const to = reinterpret_cast<float*>(tile.data());
  std::vector<std::vector<Candidate>> found;
  for (auto const loads : {cuda::Loads::direct, cuda::Loads::ring}) {
    std::vector<Candidate> best(rows * 20);
    std::vector<cuda::LineResult> results(rows);
    cuda::LineTask<float> task;
    task.scores = scores, task.k = task.query.best = 20;
    task.best = best.data(), task.results = results.data();
    cuda::LogSoftmaxTopK expander({}, {}, {.loads = loads});
    auto const launches = device_use.line_launches, rings = device_use.ring_launches;
    expander.enqueue_tiles(task, MatrixView<float>{to, rows, width, width}, nullptr,
                           [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
                             HostCuda::get().add([=] {
                               for (std::size_t row = 0; row < rows; ++row)
                                 std::copy_n(data + row * size + static_cast<std::size_t>(begin), count,
                                             to + row * static_cast<std::size_t>(width));
                             });
                           });
    cuda::check(cudaStreamSynchronize(nullptr), "tiles");
    CHECK(device_use.line_launches == launches + 3);
    CHECK(device_use.ring_launches == rings + (loads == cuda::Loads::ring ? 3 : 0));
    for (auto const& result : results) CHECK(result.count == 20);
    found.push_back(best);
  }
  CHECK(found[0] == found[1]);
}

TEST_CASE("clusters find the same, bit for bit, and take as much memory as a task of its size", "[cuda]") {
  std::size_t launches = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    std::size_t const rows = 1 + below(random, 3), size = 1 + below(random, 40000);
    std::vector<cuda::detail::Words> memory((rows * size + 3) / 4);
    for (std::size_t i = 0; i < 4 * memory.size(); ++i)
      memory[i / 4].word[i % 4] = static_cast<std::uint32_t>(0x3f800000u + hash_mix(i + seed) % 0x800000u);
    auto const scores = cuda::scores<float>(reinterpret_cast<float const*>(memory.data()), rows, size);
    Queries const asked(random, rows, size, seed % 3 == 0 ? 1 : 64);
    auto const& queries = asked.queries;
    cuda::LogSoftmaxTopK tickets, clusters({}, {}, {.early_starts = seed % 2 == 0, .clusters = true});
    auto const expected = tickets.expand(scores, queries, {});
    auto const before = device_use;
    auto const got = clusters.expand(scores, queries, {});
    launches += device_use.cluster_launches - before.cluster_launches;
    for (std::size_t row = 0; row < rows; ++row) CHECK(same_line(got[row], expected[row]));
    if (device_use.cluster_launches > before.cluster_launches) {
      CHECK(clusters.workspace() == tickets.workspace());
      HostCuda::get().code_version = 80;  // older code, as ever
      cuda::LogSoftmaxTopK older({}, {}, {.clusters = true});
      auto const again = older.expand(scores, queries, {});
      for (std::size_t row = 0; row < rows; ++row) CHECK(same_line(again[row], expected[row]));
      CHECK(device_use.cluster_launches == before.cluster_launches + 1);
      HostCuda::get().code_version = 90;
    }
  }
  CHECK(launches > 2);
}

TEST_CASE("rings are refused where the device has none", "[cuda]") {
  std::vector<cuda::detail::Words> memory(10);
  auto const scores = cuda::scores<float>(reinterpret_cast<float const*>(memory.data()), 1, 40);
  std::vector<Query> const queries(1, Query{.best = 3});
  cuda::LogSoftmaxTopK ring({}, {}, {.loads = cuda::Loads::ring});
  auto const blocks = std::exchange(HostCuda::get().ring_blocks, 0);
  CHECK_THROWS_WITH(ring.expand(scores, queries, {}),
                    Catch::Contains("Loads::ring: needs a device of compute capability 9.0"));
  HostCuda::get().ring_blocks = blocks;
  CHECK(ring.expand(scores, queries, {}).size() == 1);
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
  std::vector<cuda::detail::Words> memory(8 * size / 4);
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
