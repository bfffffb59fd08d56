// SPDX-License-Identifier: Apache-2.0
// One cache, many threads that decode, look up, save and forget.
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <support/decoding.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("threads share a cache, and each gets greedy's output", "[suffix_cache]") {
  Table const table{.size = 11, .scale = 5, .eos_bias = -3, .eos_slope = 0.1};
  LengthLimits const length{.max = 25};
  std::vector<std::uint64_t> sources(40);
  std::iota(sources.begin(), sources.end(), 0);
  TableModel<everything> plain_model(table);
  auto const greedy = decode(plain_model, sources, Greedy{.length = length}, Batched{8});
  SuffixCache cache(4096, 6);  // so small that texts are merged and forgotten all the time
  std::atomic<int> running = 4;
  std::atomic<std::size_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      TableModel<everything> model(table);
      Speculated remembering(model, SuffixDecoding(cache));
      for (int round = 0; round < 6; ++round) {
        auto const found = decode(remembering, sources, Blockwise<>{.block = 5, .length = length},
                                  Batched{static_cast<std::size_t>(1 + (thread + round) % 4)});
        for (std::size_t i = 0; i < found.size(); ++i) wrong += same_outputs(found[i], greedy[i]) ? 0 : 1;
      }
      --running;
    });
  threads.emplace_back([&] {
    while (running > 0) {
      std::ostringstream stream;
      cache.write(stream);
      auto const text = std::move(stream).str();
      SuffixCache copy(4096);
      copy.load_bytes(std::as_bytes(std::span(text.data(), text.size())));
      wrong += copy.tokens() <= 4096 && cache.count({}) >= 0 ? 0 : 1;
    }
  });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.tokens() > 1000);
}
