// SPDX-License-Identifier: Apache-2.0
// Models that cannot hold all tokens of all sentences, long prompts, and prompts that begin alike.
#include <sluice/core/detail/token_tree.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 12, .scale = 6, .eos_bias = -3, .eos_slope = 0.2};

template <class S>
using Prompted = Request<EmptySource, S>;

/// Requests whose prompts are random, some of which begin like others.
template <class S>
std::vector<Prompted<S>> random_requests(std::mt19937_64& random, std::size_t count, std::size_t longest) {
  std::vector<Prompted<S>> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto& prompt = requests[i].prompt;
    if (i > 0 && random() % 3 > 0) {
      auto const& other = requests[random() % i].prompt;
      prompt.assign(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(random() % (other.size() + 1)));
    }
    auto const length = std::max<std::size_t>(prompt.size(), random() % (longest + 1));
    while (prompt.size() < length) prompt.push_back(static_cast<Token>(3 + random() % 9));
    if (random() % 4 == 0) requests[i].prefix.assign(1 + random() % 3, static_cast<Token>(3 + random() % 9));
  }
  return requests;
}

template <class S>
std::vector<Result> unlimited(std::vector<Prompted<S>> const& requests, S const& search) {
  CellModel<everything> model(table, 1 << 20, false);
  return decode(model, requests, search, Batched{.size = 1});
}

/// What each gives alone under the same limit.
template <Abilities A, class S>
std::vector<Result> each_alone(std::vector<Prompted<S>> const& requests, S const& search, std::int64_t cells) {
  std::vector<Result> results;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto one = requests[i];
    if (!one.seed) one.seed = i;
    CellModel<A> model(table, cells, true);
    results.push_back(decode(model, std::vector{one}, search).at(0));
  }
  return results;
}

/// Under whatever limit, schedule and intake: results are those of each alone, the model is never asked for more than it
/// has, and in the end nothing is held.
template <Abilities A, class S>
void fuzz(S const& search, std::uint64_t seed, std::size_t& restarted, std::size_t& failed) {
  std::mt19937_64 random(seed);
  auto const requests = random_requests<S>(random, 24, 40);
  auto const reference = unlimited(requests, search);
  for (auto const cells : {20, 45, 90, 200}) {
    auto const alone = each_alone<A>(requests, search, cells);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      INFO("alone " << i << " in " << cells);
      if (alone[i].ok()) CHECK(identical(alone[i], reference[i]));
      else CHECK(alone[i].failure == Failure::no_room);
      failed += !alone[i].ok();
    }
    for (auto const told : {true, false}) {
      Intake intake{.prompt_chunk = static_cast<std::int32_t>(random() % 3 * 7)};
      if (A.ragged && A.roll_back && random() % 3 > 0) intake.shared_tokens = 1 + static_cast<int>(random() % 100);
      auto const slots = random() % 3 > 0
                             ? Limits::unlimited
                             : static_cast<std::int32_t>(search.slot_count() * (1 + static_cast<int>(random() % 4)));
      INFO("seed " << seed << ", " << cells << " cells, told " << told << ", " << slots << " slots, chunk "
                   << intake.prompt_chunk << ", shared " << intake.shared_tokens);
      CellModel<A> cache(table, cells, told, slots);
      SlotChecker<CellModel<A>, A> model(std::move(cache), {.first_child_in_place = false});
      std::vector<Result> results;
      Statistics statistics;
      auto const take = [&](Result&& result) { results.push_back(std::move(result)); };
      if (random() % 2 == 0)
        statistics =
            decode_each(model, requests, search, take, Batched{.size = 1 + random() % 16}, LogSoftmaxTopK{}, intake);
      else
        statistics = decode_each(model, requests, search, take,
                                 Streaming{.size = 1 + random() % 16,
                                           .refill_below = static_cast<double>(random() % 3) / 2,
                                           .max_rows = static_cast<std::int32_t>(random() % 2 * 9)},
                                 LogSoftmaxTopK{}, intake);
      REQUIRE(results.size() == requests.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("sentence " << i << ": " << results[i].message);
        if (told) {
          CHECK(identical(results[i], alone[i]));
        } else {
          CHECK((results[i].ok() == alone[i].ok() || results[i].failure == Failure::no_room));
          if (results[i].ok()) CHECK(identical(results[i], reference[i]));
        }
      }
      CHECK(model.report() == "");
      if (told) CHECK(model.model().refusals == 0);
      CHECK(model.model().most <= static_cast<std::size_t>(cells));
      restarted += statistics.restarted;
    }
  }
}

}  // namespace

TEST_CASE("a tree of tokens counts what the slots of a model hold", "[cache budget]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < times(60); ++round) {
    Cells cells;
    sluice::detail::TokenTree tree;
    std::vector<std::vector<Token>> held(7);
    std::vector<bool> alive(7);
    for (int step = 0; step < 60; ++step) {
      for (Slot slot = 0; slot < 7; ++slot)
        if (random() % 12 == 0) tree.clear(slot), cells.start(slot), held[static_cast<std::size_t>(slot)].clear();
      // A random step: who is read is not overwritten.
      std::vector<bool> read(7), written(7);
      std::vector<Row> rows;
      std::vector<std::vector<Token>> tokens(7);
      for (Slot to = 0; to < 7; ++to) {
        auto const t = static_cast<std::size_t>(to);
        auto const from = random() % 2 == 0 ? t : random() % 7;
        if (random() % 3 == 0 || (from != t && (read[t] || written[from]))) continue;
        auto const length = random() % 3 == 0 ? random() % (held[from].size() + 1) : held[from].size();
        for (auto n = 1 + random() % 4; n > 0; --n) tokens[t].push_back(static_cast<Token>(random() % 2));
        read[from] = true, written[t] = from != t;
        rows.push_back({static_cast<Slot>(from), to, static_cast<std::int32_t>(length), tokens[t]});
      }
      auto const before = held;
      for (auto const& row : rows) {
        auto& now = held[static_cast<std::size_t>(row.to)];
        now = before[static_cast<std::size_t>(row.from)];
        now.resize(static_cast<std::size_t>(row.length)), now.insert(now.end(), row.tokens.begin(), row.tokens.end());
      }
      tree.apply(rows), cells.apply(rows);
      REQUIRE(tree.used() == static_cast<std::int64_t>(cells.used()));
      std::vector<Token> prompt;
      for (auto n = random() % 30; n > 0; --n) prompt.push_back(static_cast<Token>(random() % 2));
      if (random() % 2 == 0) prompt = held[random() % 7];
      tree.fresh();
      for (Slot slot = 0; slot < 7; ++slot) {
        REQUIRE(tree.length(slot) == static_cast<std::int32_t>(cells.length(slot)));
        REQUIRE(tree.common(slot, prompt) == static_cast<std::int32_t>(cells.common(slot, prompt)));
      }
      std::vector<Slot> all{0, 1, 2, 3, 4, 5, 6};
      REQUIRE(tree.together(all) == tree.used());
    }
    for (Slot slot = 0; slot < 7; ++slot) tree.clear(slot);
    REQUIRE(tree.used() == 0);
  }
}

TEST_CASE("whoever finds no room waits, starts again, or fails alone", "[cache budget]") {
  std::size_t restarted = 0, failed = 0;
  for (std::uint64_t seed = 0; seed < times(6u); ++seed) {
    fuzz<everything>(Greedy{.length = {.max = 30}}, seed, restarted, failed);
    fuzz<everything>(BeamSearch{.width = 3, .length = {.max = 20}}, seed + 100, restarted, failed);
    fuzz<Abilities{}>(BeamSearch{.width = 2, .length = {.max = 20}}, seed + 200, restarted, failed);
    fuzz<Abilities{.ragged = true, .roll_back = true}>(Sample{.samples = 2, .length = {.max = 20}}, seed + 300,
                                                       restarted, failed);
  }
  CHECK(restarted > times(50u));  // else nothing was tried
  CHECK(failed > times(50u));
}

TEST_CASE("a prompt that the model cannot hold is refused, and no other", "[cache budget]") {
  CellModel<everything> model(table, 30, true);
  std::vector<Prompted<Greedy>> requests(3);
  requests[1].prompt.assign(28, 5), requests[1].prefix.assign(3, 5);
  auto const results = decode(model, requests, Greedy{.length = {.max = 10}});
  CHECK(results[0].ok());
  CHECK(results[2].ok());
  CHECK(results[1].failure == Failure::no_room);
  CHECK(results[1].message == "prompt and prefix have 31 tokens, and the model has room for 30");
}

TEST_CASE("a sentence that outgrows the model keeps what it has", "[cache budget]") {
  Table const endless{.size = 12, .has_eos = false};
  for (auto const told : {true, false}) {
    CellModel<everything> model(endless, 30, told);
    auto const results = decode(model, std::vector<EmptySource>(2), Greedy{.length = {.max = 50}});
    for (auto const& result : results) {
      CHECK(result.failure == Failure::no_room);
      CHECK(result.message ==
            (told ? "the model has room for 30 tokens in all its slots: not enough for this sentence alone"
                  : "cells: 31 of 30"));
      REQUIRE(result.hypotheses.size() == 1);
      CHECK(result.hypotheses[0].tokens.size() == 30);  // the last is not fed
    }
  }
}

TEST_CASE("512 cells are enough for 64 requests", "[cache budget]") {
  std::mt19937_64 random(3);
  std::vector<Prompted<BeamSearch>> requests(64);
  for (auto& request : requests) request.prompt.assign(20 + random() % 60, static_cast<Token>(3 + random() % 9));
  BeamSearch const search{.width = 4, .length = {.max = 60}};
  auto const reference = unlimited(requests, search);
  for (auto const told : {true, false}) {
    CellModel<everything> model(table, 512, told);
    auto const results = decode(model, requests, search, Streaming{.size = 64});
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(identical(results[i], reference[i]));
    CHECK(model.most > 400);  // the room is used
  }
}

TEST_CASE("long prompts are fed in pieces beside the steps of others", "[cache budget]") {
  Table const endless{.size = 12, .has_eos = false};
  Greedy const search{.length = {.max = 40}};
  std::vector<Prompted<Greedy>> requests(4);
  for (std::size_t i = 1; i < 4; ++i) requests[i].prompt.assign(100 + i, static_cast<Token>(2 + i));
  for (auto const chunk : {1, 7, 16, 1000}) {
    CellModel<everything> model(endless, 1 << 20, false);
    Decoder decoder(model, search, Streaming{.size = 8, .refill_below = 1}, Intake{.prompt_chunk = chunk});
    decoder.submit(requests[0]);
    decoder.step();
    for (std::size_t i = 1; i < 4; ++i) decoder.submit(requests[i]);
    // Whoever runs gets a token in every step, whatever is fed beside it.
    std::size_t before = 0;
    for (int step = 1; step < 30; ++step) {
      REQUIRE(decoder.step());
      decoder.settled([](std::uint64_t id) { return id == 0; },
                      [&](std::uint64_t, std::span<Token const> tokens) {
                        CHECK(tokens.size() == before + (before == 0 ? 2 : 1));
                        before = tokens.size();
                      });
    }
    CHECK(before == 30);
    CHECK(model.most_in_blocks <= static_cast<std::size_t>(chunk == 1 ? 0 : std::min(chunk, 306)));
  }
}

TEST_CASE("prompts that begin alike are fed once", "[cache budget]") {
  Table const endless{.size = 12, .has_eos = false};
  auto const asked = [](std::size_t i) {
    std::vector<Token> prompt(1000, 4);
    prompt.resize(1050, static_cast<Token>(3 + i));
    return prompt;
  };
  BeamSearch const beam{.width = 3, .length = {.max = 10}};
  auto const expected = [&](std::vector<Prompted<BeamSearch>> const& requests) {
    CellModel<everything> model(endless, 1 << 20, false);
    return decode(model, requests, beam);
  };
  std::vector<Prompted<BeamSearch>> requests(8);
  for (std::size_t i = 0; i < 8; ++i) requests[i].prompt = asked(i == 1 ? 8 : i);
  auto const reference = expected(requests);

  SECTION("of sentences that run beside each other") {
    CellModel<everything> model(endless, 1 << 20, false);
    Decoder decoder(model, beam, Batched{}, Intake{.shared_tokens = 100000});
    for (auto const& request : requests) decoder.submit(request);
    while (decoder.step()) {
    }
    for (Result result; decoder.poll(result);) CHECK(identical(result, reference[result.id]));
    CHECK(decoder.statistics().shared == 7 * 1000);
    CHECK(model.fed == 1000 + 8 * 50 + 8 * 9 * 3);
    CHECK(model.used() > 1000);  // kept for the next
  }
  SECTION("and of those that have ended") {
    CellModel<everything> model(endless, 1 << 20, false);
    {
      Decoder decoder(model, beam, Batched{}, Intake{.shared_tokens = 3000});
      for (auto const& request : requests) {
        auto const id = decoder.submit(request);
        while (decoder.step()) {
        }
        Result result;
        REQUIRE(decoder.poll(result));
        CHECK(identical(result, reference[id]));
        CHECK(model.used() <= 3000);
      }
      CHECK(decoder.statistics().shared == 7 * 1000);
    }
    CHECK(model.used() == 0);
  }
  SECTION("the least recently used go first") {
    CellModel<everything> model(endless, 1 << 20, false);
    Decoder decoder(model, Greedy{.length = {.max = 1}}, Batched{}, Intake{.shared_tokens = 250});
    auto const shares = [&](Token token) {
      auto const before = decoder.statistics().shared;
      std::vector<Token> prompt(101, token);
      decoder.submit({.prompt = prompt});
      while (decoder.step()) {
      }
      return decoder.statistics().shared - before;
    };
    CHECK(shares(3) == 0);
    CHECK(shares(4) == 0);
    CHECK(shares(3) == 100);
    CHECK(shares(5) == 0);  // 4 goes
    CHECK(shares(3) == 100);
    CHECK(shares(4) == 0);
  }
  SECTION("a conversation in one slot") {
    CellModel<everything> model(endless, 1 << 20, true, 1);
    Decoder decoder(model, Greedy{.length = {.max = 20}}, Batched{}, Intake{.shared_tokens = 1 << 20});
    std::vector<Token> said{3, 4, 5, 6, 7, 8, 9, 10, 3};
    for (int turn = 0; turn < 5; ++turn) {
      auto const before = model.fed;
      decoder.submit({.prompt = said});
      while (decoder.step()) {
      }
      Result result;
      REQUIRE(decoder.poll(result));
      REQUIRE(result.ok());
      CHECK(model.fed - before == (turn == 0 ? 9u : 5u) + 19);
      said.insert(said.end(), result.hypotheses[0].tokens.begin(), result.hypotheses[0].tokens.end());
      said.insert(said.end(), {3, 3, 4, 4});
    }
  }
}

TEST_CASE("wrappers of models follow prompts that are shared", "[cache budget]") {
  Table const other{.size = 12, .scale = 3, .order = 1};
  std::uint64_t shared = 0;
  auto const check = [&](auto& model, auto const& search, auto const& requests, std::vector<Result> const& reference) {
    std::vector<Result> results;
    shared += decode_each(
                  model, requests, search, [&](Result&& result) { results.push_back(std::move(result)); },
                  Streaming{.size = 5}, LogSoftmaxTopK{}, Intake{.shared_tokens = 200})
                  .shared;
    REQUIRE(results.size() == reference.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("sentence " << i << ": " << results[i].message);
      REQUIRE(results[i].ok());
      CHECK(results[i].hypotheses[0].tokens == reference[i].hypotheses[0].tokens);
    }
  };
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::mt19937_64 random(seed);
    Greedy const greedy{.length = {.max = 20}};
    auto const requests = random_requests<Greedy>(random, 20, 40);
    auto const reference = unlimited(requests, greedy);
    std::vector<Prompted<Blockwise<>>> guessed(requests.size());
    for (std::size_t i = 0; i < guessed.size(); ++i)
      guessed[i].prompt = requests[i].prompt, guessed[i].prefix = requests[i].prefix;
    Blockwise const blocks{.block = 4, .length = {.max = 20}};
    INFO("seed " << seed);
    CellModel<everything> model(table, 1 << 20, false), draft(other, 1 << 20, false);
    {
      Speculated wrapped(model, DraftModel(draft));
      check(wrapped, blocks, guessed, reference);
    }
    {
      Speculated wrapped(model, PromptLookup());
      check(wrapped, blocks, guessed, reference);
    }
    {
      Checked wrapped(model);
      check(wrapped, greedy, requests, reference);
    }
    CellModel<Abilities{.ragged = true}> uncut(table, 1 << 20, false);
    {
      Restarting wrapped(uncut);
      check(wrapped, greedy, requests, reference);
    }
  }
  CHECK(shared > 1000);  // else nothing was tried
}

TEST_CASE("sharing needs a model that cuts, and sources that say nothing", "[cache budget]") {
  CellModel<Abilities{.ragged = true}> uncut(table, 100, false);
  CHECK_THROWS_MATCHES(
      decode(uncut, std::vector<EmptySource>(1), Greedy{}, Batched{}, LogSoftmaxTopK{}, {.shared_tokens = 5}),
      std::invalid_argument,
      Message("sluice: shared_tokens = 5: the model does not claim `ragged` and `roll_back`: must be 0"));
  TableModel<everything> differs(table);
  CHECK_THROWS_MATCHES(
      decode(differs, std::vector<std::uint64_t>{1}, Greedy{}, Batched{}, LogSoftmaxTopK{}, {.shared_tokens = 5}),
      std::invalid_argument, Message("sluice: shared_tokens = 5: sources differ, their class is not empty: must be 0"));
  CHECK_THROWS_MATCHES(
      decode(differs, std::vector<std::uint64_t>{1}, Greedy{}, Batched{}, LogSoftmaxTopK{}, {.prompt_chunk = -1}),
      std::invalid_argument, Message("sluice: prompt_chunk = -1: must be 0 (no bound) or more"));
}
