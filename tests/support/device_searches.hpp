// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sampling searches over scores on a device, emulated or not, and over the host's.
#pragma once

#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_table.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace sluice::test {

/// The results of a search over scores on the device and over the host's.
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

inline void check_searches_that_draw() {
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

}  // namespace sluice::test
