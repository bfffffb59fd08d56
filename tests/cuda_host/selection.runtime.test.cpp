// SPDX-License-Identifier: Apache-2.0
// Truncation, draws, entropy and penalties after the softmax on an emulated device: every field of Query.
#include <sluice/cuda/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/sample/sample.hpp>
#include <sluice/search/sample/stochastic_beam.hpp>

#define SLUICE_EMULATED_DEVICE  // of device_memory.hpp, memory alone
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_table.hpp>
#include <support/emulated_launches.hpp>
#include <support/random_query.hpp>
#include <support/selection_cases.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// What a search finds over scores on the device and over the host's.
template <class AnySearch>
void check_search(AnySearch const& search, Table const& table) {
  std::vector<std::uint64_t> sources(4);
  std::iota(sources.begin(), sources.end(), std::uint64_t{3});
  TableModel<> reference(table);
  auto const expected = decode(reference, sources, search, Streaming{.size = 3});
  DeviceTable model(table);
  auto const found = decode(model, sources, search, Streaming{.size = 3}, cuda::LogSoftmaxTopK());
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("source " << sources[i] << ": " << cause(found[i]));
    REQUIRE(found[i].hypotheses.size() == expected[i].hypotheses.size());
    for (std::size_t h = 0; h < found[i].hypotheses.size(); ++h) {
      CHECK(found[i].hypotheses[h].tokens == expected[i].hypotheses[h].tokens);
      CHECK_THAT(found[i].hypotheses[h].log_prob, WithinAbs(expected[i].hypotheses[h].log_prob, 1e-4));
    }
  }
}

}  // namespace

TEST_CASE("the numbers behind noise are the host's on a device", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto const noise = derive(7, seed);
    auto const token = static_cast<Token>(mix(seed) % 300000);
    CHECK(cuda::derive_bits(noise, seed) == derive(noise, seed));
    CHECK(cuda::gumbel_number(noise, token) == gumbel(noise, token));
  }
}

TEMPLATE_TEST_CASE("every query is answered as double precision does, on an emulated device", "[cuda]", float,
                   __half, __nv_bfloat16) {
  std::size_t listed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SelectionCase<TestType> lines(seed, seed % 8 == 0 ? 6000 : 300, 4);
    auto const memory = lines.words();
    cuda::LogSoftmaxTopK expander(lines.lines.bias);
    auto const answer = expander.expand(lines.scores(memory.data()), lines.lines.queries, {});
    REQUIRE(answer.size() == lines.lines.rows);
    for (std::size_t row = 0; row < lines.lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row << " of " << lines.lines.size);
      lines.check(row, answer[row]);
      listed += answer[row].best.size();
    }
  }
  CHECK(listed > 1000);
}

TEST_CASE("searches that draw find the host's tokens over scores on a device", "[cuda]") {
  Table const table{.size = 150, .scale = 3, .eos_slope = 0.5};
  LengthLimits const length{.max = 6};
  check_search(Sample{.samples = 2, .length = length}, table);
  check_search(Sample{.temperature = 0.8f, .top_p = 0.7f, .length = length}, table);
  check_search(Sample{.top_k = 5, .samples = 2, .length = length}, table);
  check_search(Sample{.min_p = 0.1f, .length = length}, table);
  check_search(Sample{.typical = 0.6f, .length = length}, table);
  check_search(Sample{.top_n_sigma = 1.5f, .length = length}, table);
  check_search(StochasticBeam{.width = 4, .length = length}, table);
}

TEST_CASE("a line that is looked at again is answered for itself alone, to the last bit", "[cuda]") {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    SelectionCase<float> lines(seed, 700, 5);
    auto const memory = lines.words();
    auto const scores = lines.scores(memory.data());
    cuda::LogSoftmaxTopK together(lines.lines.bias), alone(lines.lines.bias);
    auto const all = kept(together.expand(scores, lines.lines.queries, {}));
    for (std::size_t row = 0; row < lines.lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row);
      auto const at = static_cast<std::ptrdiff_t>(row);
      auto one = scores;
      one.data += at * one.stride, one.rows = 1;
      HostCuda::get().processors = 1 + static_cast<int>(row);
      auto const answer = alone.expand(one, std::span(lines.lines.queries).subspan(row, 1), {});
      CHECK(same_line(answer[0], all[row].view()));
    }
    HostCuda::get().processors = 4;
  }
}

TEST_CASE("lists longer than their room are asked for once more, and never for nothing", "[cuda]") {
  std::size_t const size = 5000;
  std::vector<float> x(2 * size);
  for (std::size_t v = 0; v < x.size(); ++v) x[v] = -static_cast<float>(mix(v + 1) % 1000) / 1000;
  OnDevice<float> const memory(x);
  auto const scores = cuda::scores<float>(memory.data(), 2, static_cast<std::ptrdiff_t>(size));
  cuda::LogSoftmaxTopK expander;
  auto const& use = HostCuda::get().use;
  auto const copies = [&](std::vector<Query> const& queries, std::size_t longest) {
    auto const before = use.copies_back;
    auto const answer = expander.expand(scores, queries, {});
    CHECK(std::max(answer[0].best.size(), answer[1].best.size()) == longest);
    return use.copies_back - before;
  };
  std::vector<Query> const few{{.best = 3}, {.best = 0, .within = 0.99f}}, all{{.best = 3, .mass = 1}, {.best = 2}};
  auto const within = [&] {
    auto const line = std::span(x).subspan(size);
    auto const bar = *std::max_element(line.begin(), line.end()) + std::log(0.99f);
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [&](float y) { return y >= bar; }));
  }();
  CHECK(within > 10);
  CHECK(within < 256);
  CHECK(copies(few, within) == 1);
  CHECK(copies(all, size) == 2);   // no room
  CHECK(copies(few, within) == 1);
  auto const warm = use.allocations;
  CHECK(copies(all, size) == 2);
  CHECK(copies(few, within) == 1);
  CHECK(use.allocations == warm);
  CHECK(copies({{.best = 70}, {.best = 1, .mass = 0.001f}}, 70) == 1);
  CHECK(copies({{.best = 70}, {.best = 70, .noise = 5}}, 70) == 1);
}
