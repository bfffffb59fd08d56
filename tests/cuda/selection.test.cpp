// SPDX-License-Identifier: Apache-2.0
// Truncation, draws, entropy and penalties after the softmax; skipped where there is no device.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/device_searches.hpp>
#include <support/random_query.hpp>
#include <support/selection_cases.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using namespace sluice;
using namespace sluice::test;

TEMPLATE_TEST_CASE("every query is answered on a device as double precision does", "[cuda]", float, __half,
                   __nv_bfloat16) {
  if (no_device()) return;
  auto const times = rounds(300);
  for (std::uint64_t seed = 0; seed < times; ++seed) {
    SelectionCase<TestType> lines(seed, seed % 4 == 0 && times == 300 ? 60000 : 1000, 9);
    OnDevice<cuda::detail::Words> const memory(lines.words());
    cuda::LogSoftmaxTopK expander(lines.lines.bias, {}, {.early_starts = seed % 2 > 0}), alone(lines.lines.bias);
    auto const scores = lines.scores(memory.data());
    auto const answer = kept(expander.expand(scores, lines.lines.queries, {}));
    for (std::size_t row = 0; row < lines.lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row << " of " << lines.lines.size);
      lines.check(row, answer[row].view());
      auto one = scores;
      one.data += static_cast<std::ptrdiff_t>(row) * one.stride, one.rows = 1;
      CHECK(same_line(alone.expand(one, std::span(lines.lines.queries).subspan(row, 1), {})[0], answer[row].view()));
    }
  }
}

TEST_CASE("searches that draw find the host's tokens over scores on a device", "[cuda]") {
  if (no_device()) return;
  check_searches_that_draw();
}
