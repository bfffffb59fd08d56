// SPDX-License-Identifier: Apache-2.0
// A decoder over a model whose scores are on the device; skipped where there is none.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/device_table.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a beam search over scores on a device finds what one over the host's finds", "[cuda]") {
  if (no_device()) return;
  std::vector<std::uint64_t> sources(40);
  std::iota(sources.begin(), sources.end(), std::uint64_t{1});
  Table const table{.size = 300, .eos_slope = 1};
  BeamSearch const search{.width = 5, .length = {.max = 20}};
  TableModel<> reference(table);
  auto const expected = decode(reference, sources, search, Streaming{.size = 8});
  DeviceTable model(table);
  // [decode]
  auto const results = decode(model, sources, search, Streaming{.size = 8}, cuda::LogSoftmaxTopK());
  // [/decode]
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(!results[i].hypotheses.empty());
    CHECK(results[i].hypotheses[0].tokens == expected[i].hypotheses[0].tokens);
    CHECK_THAT(results[i].hypotheses[0].score, WithinAbs(expected[i].hypotheses[0].score, 1e-4));
  }
}
