// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/threads.md.
#include <sluice/sluice.hpp>

#include "typist.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

// [pool]
/// A decoder in each thread. Each takes the next words as it needs them, so that all end at about the same time.
std::vector<sluice::Result> decode(std::vector<std::string> const& words, std::size_t threads) {
  std::vector<sluice::Result> results(words.size());
  std::atomic<std::size_t> next = 0;
  auto const work = [&] {
    Typist model;  // has slots of its own; weights would be shared, and constant
    sluice::Decoder decoder(model, sluice::Greedy{}, sluice::Streaming{.size = 8, .refill_below = 1},
                            Typist::keyboard());
    std::unordered_map<std::uint64_t, std::size_t> places;
    for (auto more = true; more || decoder.waiting() + decoder.running() > 0;) {
      while (more && decoder.waiting() < 8) {
        auto const i = next++;
        more = i < words.size();
        if (more) places.emplace(decoder.submit({.source = words[i]}), i);
      }
      decoder.step();
      for (sluice::Result result; decoder.poll(result); result = {})
        results[places.extract(result.id).mapped()] = std::move(result);  // no lock: each has a place of its own
    }
  };
  std::vector<std::jthread> pool;
  for (std::size_t i = 0; i < threads; ++i) pool.emplace_back(work);
  pool.clear();  // joins
  return results;
}
// [/pool]

}  // namespace

int main() {
  std::vector<std::string> words;
  for (auto const* const word : {"one", "two", "three", "four", "five", "six", "seven"})
    for (auto i = 0; i < 20; ++i) words.push_back(word);
  // [call]
  auto const alone = decode(words, 1), together = decode(words, 4);
  auto const same = [](sluice::Result const& a, sluice::Result const& b) {
    return a.hypotheses.at(0).tokens == b.hypotheses.at(0).tokens &&
           a.hypotheses.at(0).score == b.hypotheses.at(0).score;
  };
  std::cout << together.size() << " words, "
            << (std::ranges::equal(alone, together, same) ? "the same in one thread and in four\n" : "others\n");
  // [/call]
  return std::ranges::equal(alone, together, same) ? 0 : 1;
}
