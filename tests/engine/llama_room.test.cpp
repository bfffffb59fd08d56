// SPDX-License-Identifier: Apache-2.0
// What becomes of requests when llama.cpp aborts, and when there are fewer cells than they would like.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
using GreedyRequest = Request<std::monostate, Greedy>;

std::vector<GreedyRequest> requests(std::size_t count) {
  std::vector<GreedyRequest> all(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < 4 + i % 5; ++k) all[i].prompt.push_back(static_cast<Token>(6 + (i * 3 + k) % 53));
  return all;
}

}  // namespace

TEST_CASE("a step that is aborted fails its sentences, and no others") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(8, 2048));
  Llama adapter(context.get());
  Greedy const greedy{.length = {.min = 20, .max = 20}};
  auto const expected = decode(adapter, requests(24), greedy, Batched{.size = 8});

  struct Abort {
    int calls = 0, at = 0;
  } abort;
  auto const callback = [](void* data) {
    auto& counted = *static_cast<Abort*>(data);
    return ++counted.calls == counted.at;
  };
  llama_set_abort_callback(context.get(), callback, &abort);
  abort.at = 0;
  decode(adapter, requests(24), greedy, Batched{.size = 8});
  abort = {.calls = 0, .at = abort.calls / 2};  // in the middle
  REQUIRE(abort.at > 0);
  auto const results = decode(adapter, requests(24), greedy, Batched{.size = 8});
  std::size_t failed = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].ok()) {
      CHECK(results[i].hypotheses.at(0).tokens == expected[i].hypotheses.at(0).tokens);
    } else {
      CHECK(results[i].failure == Failure::model);
      CHECK(results[i].message.find("llama_decode was aborted") != std::string::npos);
      ++failed;
    }
  }
  CHECK(failed == 8);  // one batch

  llama_set_abort_callback(context.get(), nullptr, nullptr);
  auto const again = decode(adapter, requests(24), greedy, Batched{.size = 8});
  for (std::size_t i = 0; i < again.size(); ++i)
    CHECK(again[i].hypotheses.at(0).tokens == expected[i].hypotheses.at(0).tokens);
}

TEST_CASE("a step for which there are no cells says so, and leaves other slots alone") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(4, 256));
  Llama adapter(context.get());
  std::monostate const nothing;
  std::array const sources{&nothing, &nothing};
  adapter.start(sources, std::array<Slot, 2>{0, 1});
  Tokens const few{9, 10}, next{8};
  auto const line = [&](Row const& row) {
    auto const answer = adapter.step(std::span(&row, 1));
    return std::vector<float>(answer[0].begin(), answer[0].end());
  };
  auto const first = line({.from = 0, .to = 0, .length = 0, .tokens = few});
  CHECK_THROWS_AS(line({.from = 1, .to = 1, .length = 0, .tokens = Tokens(255, 8)}), NoRoom);
  adapter.release(std::array<Slot, 1>{1});
  adapter.start(std::span(sources).first(1), std::array<Slot, 1>{1});
  // The same but for the order in which cells are summed.
  auto const near = [](std::vector<float> const& a, std::vector<float> const& b) {
    return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) < 1e-3f; });
  };
  CHECK(near(line({.from = 1, .to = 1, .length = 0, .tokens = few}), first));
  auto const second = line({.from = 0, .to = 0, .length = 2, .tokens = next});
  CHECK(near(line({.from = 1, .to = 1, .length = 2, .tokens = next}), second));
  CHECK(!near(first, second));
}

TEST_CASE("64 requests go through a context of 512 cells, and none fails") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(64, 512));
  Llama adapter(context.get());
  REQUIRE(adapter.limits().tokens == 512);
  Greedy const greedy{.length = {.min = 40, .max = 40}};  // each needs 43 to 47 cells, ten at most have them
  auto const count_ok = [](std::vector<Result> const& results) {
    std::size_t ok = 0;
    for (auto const& result : results) {
      INFO(result.message);
      CHECK(result.ok());
      ok += result.ok() && result.hypotheses.at(0).tokens.size() == 40;
    }
    return ok;
  };
  auto const expected = decode(adapter, requests(64), greedy, Batched{.size = 1});
  CHECK(count_ok(expected) == 64);
  auto const check = [&](auto const& schedule, Intake const& intake = {}) {
    auto const results = decode(adapter, requests(64), greedy, schedule, LogSoftmaxTopK{}, intake);
    CHECK(count_ok(results) == 64);
    for (std::size_t i = 0; i < results.size(); ++i)
      CHECK(results[i].hypotheses.at(0).tokens == expected[i].hypotheses.at(0).tokens);
  };
  check(Batched{.size = 64});
  check(Streaming{.size = 64, .refill_below = 1});
  check(Streaming{.size = 64, .refill_below = 1}, {.prompt_chunk = 3});

  BeamSearch const beam{.width = 4, .length = {.max = 30}};
  std::vector<Request<std::monostate, BeamSearch>> beams;
  for (auto const& request : requests(64)) beams.push_back({.prompt = request.prompt});
  std::size_t ok = 0;
  for (auto const& result : decode(adapter, beams, beam, Streaming{.size = 16, .refill_below = 1})) {
    INFO(result.message);
    CHECK(result.ok());
    ok += result.ok();
  }
  CHECK(ok == 64);
}

TEST_CASE("who can never have the cells fails alone, saying so") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(8, 256));
  Llama adapter(context.get());
  auto some = requests(8);
  some[3].prompt.assign(300, 8);
  auto const results = decode(adapter, some, Greedy{.length = {.max = 20}}, Batched{.size = 8});
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(i << ": " << results[i].message);
    CHECK(results[i].ok() == (i != 3));
  }
  CHECK(results[3].message.find("300 tokens") != std::string::npos);
}

TEST_CASE("a beginning that requests share is fed once, and changes nothing") {
  auto const model = draw_llama();
  std::vector<GreedyRequest> some = requests(12);
  Tokens beginning;
  for (int i = 0; i < 100; ++i) beginning.push_back(6 + i * 7 % 53);
  for (auto& request : some) request.prompt.insert(request.prompt.begin(), beginning.begin(), beginning.end());
  Greedy const greedy{.length = {.max = 20}};
  for (auto const swap_after : {-1, 0, 1, 3}) {  // -1: each sequence has cells of its own
    auto params = exact_params(16, 4096);
    params.kv_unified = swap_after >= 0;
    auto const context = make_context(model.get(), params);
    Llama adapter(context.get(), {.swap_after = (std::max)(swap_after, 0)});
    auto const expected = decode(adapter, some, greedy, Batched{.size = 4});
    Decoder decoder(adapter, greedy, Streaming{.size = 4, .refill_below = 1}, {.shared_tokens = 1000});
    for (auto const& request : some) decoder.submit(request);
    while (decoder.step()) {
    }
    std::size_t ended = 0;
    for (Result result; decoder.poll(result); ++ended) {
      INFO(result.message);
      REQUIRE(result.ok());
      CHECK(result.hypotheses.at(0).tokens == expected[result.id].hypotheses.at(0).tokens);
    }
    CHECK(ended == 12);
    CHECK(decoder.statistics().shared >= 11 * 100);  // all but the first found it
    // What is kept of ended requests waits outside the cache once steps have passed it by.
    auto const held = [&] {
      std::int32_t sum = 0;
      for (Slot slot = 0; slot < 16; ++slot) sum += llama_memory_seq_pos_max(llama_get_memory(context.get()), slot) + 1;
      return sum;
    };
    auto const before = held();
    CHECK(before > 100);
    decoder.submit({.prompt = {8, 9, 10}});
    while (decoder.step()) {
    }
    CHECK((swap_after > 0 ? held() < 100 : held() >= before));
    decoder.submit(some[5]);  // and comes back
    while (decoder.step()) {
    }
    for (Result result; decoder.poll(result);)
      if (result.id == 13) CHECK(result.hypotheses.at(0).tokens == expected[5].hypotheses.at(0).tokens);
  }
}
