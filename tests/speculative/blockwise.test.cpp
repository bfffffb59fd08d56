// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/schedule.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/decoding.hpp>
#include <support/guessing.hpp>
#include <support/times.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::array every{Guesses::as_they_are, Guesses::corrupted,    Guesses::none,  Guesses::too_many,
                           Guesses::eos_first,   Guesses::out_of_range, Guesses::random};
constexpr Abilities cached{.blocks = true, .roll_back = true};

/// Runs the requests on a table; guesses come from `draft`, another table.
template <Abilities A, class S, class P>
std::vector<Result> guessed(Table const& table, Table const& draft, Guesses kind,
                            std::vector<TableRequest<S>> const& requests, S const& search, P const& schedule,
                            Counters* counters = nullptr) {
  TableChecker model(TableModel<everything>(table), A);
  TableChecker small(TableModel<everything>(draft), everything);
  Speculated drafted(model, DraftModel(small));
  Guessing guessing(drafted, kind, 7);
  auto results = decode(guessing, requests, search, schedule);
  CHECK(model.report() == "");
  CHECK(small.report() == "");
  if (counters != nullptr) *counters = model.counters();
  return results;
}

template <class S>
std::vector<TableRequest<S>> requests_for(std::mt19937_64& random, Table const& table, std::size_t count) {
  std::vector<TableRequest<S>> requests(count);
  for (auto& request : requests) {
    request.source = random();
    if (random() % 3 == 0)
      for (auto n = random() % 4; n > 0; --n)
        request.prefix.push_back(static_cast<Token>(3 + random() % static_cast<std::uint64_t>(table.size - 3)));
    if (random() % 4 == 0) request.prompt = {bos, 3, 4};
  }
  return requests;
}

/// A model that copies its source: the n-th output token is that of the source.
struct Copier {
  using Source = std::vector<Token>;
  static constexpr Abilities abilities = everything;
  Vocabulary vocabulary() const { return {.size = 50, .bos = bos, .eos = {eos}, .never = {pad, bos}}; }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (of.size() <= static_cast<std::size_t>(slots[i])) of.resize(static_cast<std::size_t>(slots[i]) + 1);
      of[static_cast<std::size_t>(slots[i])] = sources[i];
    }
  }
  Scores<float> step(std::span<Row const> rows) {
    ++steps, answer.clear();
    for (auto const& row : rows)
      for (std::size_t i = row.tokens.size() - static_cast<std::size_t>(row.lines); i < row.tokens.size(); ++i) {
        auto const& source = *of[static_cast<std::size_t>(row.from)];
        auto const n = static_cast<std::size_t>(row.length) + i;  // output tokens so far
        answer.resize(answer.size() + 50, 0.0f);
        answer[answer.size() - 50 + static_cast<std::size_t>(n < source.size() ? source[n] : eos)] = 5;
      }
    return scores(answer.data(), std::ssize(answer) / 50, 50);
  }
  std::vector<Source const*> of;
  std::vector<float> answer;
  std::size_t steps = 0;
};

/// Counts the calls of a proposing model.
template <ProposingModel M>
struct Counting : detail::Forwarding<M> {
  using detail::Forwarding<M>::Forwarding;
  void start(std::span<typename M::Source const* const> sources, std::span<Slot const> slots) {
    this->model_.start(sources, slots);
  }
  decltype(auto) step(std::span<Row const> rows) {
    ++steps;
    return this->model_.step(rows);
  }
  void release(std::span<Slot const> slots) { this->model_.release(slots); }
  void propose(std::span<Draft const> drafts) { this->model_.propose(drafts); }
  std::size_t steps = 0;
};
template <class M>
Counting(M&) -> Counting<M>;

std::int32_t sum(std::vector<std::int32_t> const& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0);
}

}  // namespace

TEST_CASE("exact blocks give greedy's output, whoever guesses, bit for bit", "[blockwise]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < times(150); ++round) {
    auto const table = any_table(random, 13, 6);
    auto const draft = random() % 2 == 0 ? table : any_table(random, 13, 6);
    auto matching = draft;
    matching.size = table.size, matching.has_eos = table.has_eos;
    LengthLimits const length{.min = static_cast<std::int32_t>(random() % 5),
                              .max = static_cast<std::int32_t>(5 + random() % 20)};
    auto const seed = random();
    std::mt19937_64 one(seed), two(seed);
    auto const greedy = run<everything>(table, requests_for<Greedy>(one, table, 12), Greedy{.length = length});
    auto const requests = requests_for<Blockwise<>>(two, table, 12);
    Blockwise<> const search{
        .block = static_cast<std::int32_t>(1 + random() % 9), .length = length, .adaptive = random() % 3 == 0};
    for (auto const kind : every) {
      auto const check = [&](std::vector<Result> const& found) {
        REQUIRE(found.size() == greedy.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(same_outputs(found[i], greedy[i]));
          if (!found[i].ok()) continue;
          auto const& h = found[i].hypotheses.at(0);
          CHECK(sum(h.blocks) == static_cast<std::int32_t>(h.tokens.size() - requests[i].prefix.size()));
          for (auto const block : h.blocks) CHECK((block >= 1 && block <= search.block));
        }
      };
      check(guessed<everything>(table, matching, kind, requests, search, Batched{.size = 1 + random() % 12}));
      check(guessed<everything>(table, matching, kind, requests, search, Streaming{.size = 1 + random() % 7}));
      check(guessed<cached>(table, matching, kind, requests, search, Batched{.size = 5}));
      check(guessed<cached>(table, matching, kind, requests, search, Streaming{.size = 4}));
    }
  }
}

TEST_CASE("blocks and calls are counted as in the paper", "[blockwise]") {
  Table const table{.size = 8, .scale = 4, .eos_bias = -3, .eos_slope = 0.3};
  for (std::uint64_t seed = 0; seed < times(60u); ++seed)
    for (std::int32_t k = 1; k <= 8; ++k) {
      Counters counters;
      Blockwise<> const search{.block = k, .length = {.max = 30}};
      auto const perfect =
          guessed<everything>(table, table, Guesses::as_they_are, {{.source = seed}}, search, Batched{}, &counters)[0];
      auto const& h = perfect.hypotheses.at(0);
      if (!h.finished) continue;  // at the maximum length no guess is requested that could be the last token
      auto const m = static_cast<std::int32_t>(h.tokens.size());
      CHECK(static_cast<std::int32_t>(h.blocks.size()) == (m + k - 1) / k);
      for (std::size_t i = 0; i + 1 < h.blocks.size(); ++i) CHECK(h.blocks[i] == k);
      CHECK(counters.steps <= h.blocks.size() + 1);
      CHECK(counters.steps >= h.blocks.size());
      // A separate draft model that guesses whole blocks: one more call per round, 2 m / k in total.
      TableModel<everything> model(table), other(table);
      Speculated drafted(model, DraftModel(other));
      Guessing apart(drafted, Guesses::as_they_are, 1);
      Counting counting(apart);
      CHECK(identical(decode(counting, std::vector<std::uint64_t>{seed}, search)[0], perfect));
      CHECK(counting.steps == counters.steps);
      CHECK(counting.steps + apart.calls <= static_cast<std::size_t>(2 * ((m + k - 1) / k) + 1));
      auto const hopeless =
          guessed<everything>(table, table, Guesses::none, {{.source = seed}}, search, Batched{}, &counters)[0];
      CHECK(hopeless.hypotheses.at(0).blocks == std::vector<std::int32_t>(static_cast<std::size_t>(m), 1));
      CHECK(counters.steps == static_cast<std::size_t>(m));
    }
}

TEST_CASE("relaxed rules keep what they say, and nothing worse", "[blockwise]") {
  std::mt19937_64 random(2);
  std::size_t not_best = 0;
  for (int round = 0; round < times(120); ++round) {
    auto const table = any_table(random, 13, 6);
    auto const minimum = static_cast<std::int32_t>(1 + random() % 3);
    auto const n = static_cast<std::int32_t>(1 + random() % 4);
    auto const epsilon = static_cast<std::int32_t>(random() % 3);
    LengthLimits const length{.min = 2, .max = 20};
    auto const seed = random();
    auto const check = [&]<class A>(Blockwise<A> const& search, auto const& good) {
      auto const draft = random() % 2 == 0 ? table : Table{.size = table.size, .scale = 3, .has_eos = table.has_eos};
      auto const kind = every[random() % every.size()];
      auto const results =
          guessed<everything>(table, draft, kind, {{.source = seed}, {.source = seed + 1}}, search, Batched{});
      for (std::size_t i = 0; i < 2; ++i) {
        check_result(results[i], table, seed + i);
        auto const& tokens = results[i].hypotheses.at(0).tokens;
        std::vector<double> line(static_cast<std::size_t>(table.size));
        for (std::size_t t = 0; t < tokens.size(); ++t) {
          table.log_probs(seed + i, std::span(tokens).first(t), line);
          if (static_cast<std::int32_t>(t) < length.min && table.has_eos) line[eos] = -INFINITY;
          std::int32_t better = 0;
          Token best = 0;
          for (Token v = 0; v < table.size; ++v) {
            auto const x = line[static_cast<std::size_t>(v)];
            better += x > line[static_cast<std::size_t>(tokens[t])] + 1e-6;
            if (x > line[static_cast<std::size_t>(best)]) best = v;
          }
          not_best += better > 0;
          CHECK(line[static_cast<std::size_t>(tokens[t])] > -INFINITY);
          if (search.minimum == 1) CHECK(good(better, tokens[t], best, line));
        }
      }
    };
    check(Blockwise<acceptance::TopK>{.block = 5, .accept = {n}, .minimum = minimum, .length = length},
          [&](std::int32_t better, Token, Token, auto const&) { return better < n; });
    if (table.levels == 0)
      check(Blockwise<acceptance::Distance>{.block = 5, .accept = {epsilon}, .minimum = minimum, .length = length},
            [&](std::int32_t, Token token, Token best, auto const&) { return std::abs(token - best) <= epsilon; });
  }
  CHECK(not_best > times(100u));
}

TEST_CASE("a distance of 0, and the best 1, are exact; a minimum keeps more", "[blockwise]") {
  Table const table{.size = 12, .scale = 3, .eos_bias = -2, .eos_slope = 0.2, .order = 2};
  Table const draft{.size = 12, .scale = 3, .eos_bias = -2, .eos_slope = 0.2, .order = 1};
  for (std::uint64_t seed = 0; seed < times(80u); ++seed) {
    auto const with = [&]<class A>(Blockwise<A> const& search) {
      return guessed<everything>(table, draft, Guesses::corrupted, {{.source = seed}}, search, Batched{})[0];
    };
    auto const exact = with(Blockwise<>{.block = 4, .length = {.max = 25}});
    CHECK(identical(with(Blockwise<acceptance::Distance>{.block = 4, .accept = {0}, .length = {.max = 25}}), exact));
    CHECK(identical(with(Blockwise<acceptance::TopK>{.block = 4, .accept = {1}, .length = {.max = 25}}), exact));
  }
  Table const endless{.size = 12, .scale = 3, .order = 2, .has_eos = false};
  Table const wrong{.size = 12, .scale = 3, .order = 0, .has_eos = false};
  Blockwise<acceptance::TopK> const search{.block = 4, .accept = {1}, .minimum = 3, .length = {.max = 27}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const result =
        guessed<everything>(endless, wrong, Guesses::as_they_are, {{.source = seed}}, search, Batched{})[0];
    auto const& blocks = result.hypotheses.at(0).blocks;
    for (std::size_t i = 0; i + 2 < blocks.size(); ++i) CHECK(blocks[i] >= 3);
  }
}

TEST_CASE("rules hold in exact blocks", "[blockwise]") {
  Table const table{.size = 7, .scale = 3, .eos_bias = -3, .eos_slope = 0.2, .order = 1};
  using Plain = Processed<Greedy>;
  using Blocks = Processed<Blockwise<>>;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const expected = run_one<everything>(table, seed, Plain{{.length = {.max = 20}}, NoRepeatNgram{2}});
    for (auto const kind : every)
      CHECK(
          same_outputs(guessed<everything>(table, table, kind, {{.source = seed}},
                                           Blocks{{.block = 5, .length = {.max = 20}}, NoRepeatNgram{2}}, Batched{})[0],
                       expected));
  }
}

TEST_CASE("what has been read and written is looked up", "[blockwise]") {
  Copier copier;
  std::mt19937_64 random(3);
  std::vector<std::vector<Token>> sources(40);
  std::size_t tokens = 0;
  for (auto& source : sources)
    for (auto n = 10 + random() % 30; n > 0; --n) source.push_back(static_cast<Token>(3 + random() % 47)), ++tokens;
  auto const unproposed = decode(copier, sources, Greedy{}, Batched{.size = 1});
  auto const calls = std::exchange(copier.steps, 0);
  Speculated lookup(copier, PromptLookup());
  auto const found = decode(lookup, sources, Blockwise<>{.block = 8}, Batched{.size = 1});
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(same_outputs(found[i], unproposed[i]));
  CHECK(calls > 3 * copier.steps);
}

TEST_CASE("a model that cannot roll back is restarted when asked", "[blockwise]") {
  Table const table{.size = 9, .scale = 3, .eos_bias = -2, .eos_slope = 0.2, .order = 2};
  constexpr Abilities forgetful{.ragged = true, .blocks = true};
  std::vector<std::uint64_t> const seeds{1, 2, 3, 4, 5, 6, 7};
  CheckedTable<forgetful> model{TableModel<everything>(table)};
  CheckedTable<everything> small{TableModel<everything>(Table{.size = 9, .scale = 3, .order = 1})};
  Restarting restarting(model);
  Speculated drafted(restarting, DraftModel(small));
  auto const expected = decode(model, seeds, Greedy{.length = {.max = 20}});
  auto const found = decode(drafted, seeds, Blockwise<>{.block = 4, .length = {.max = 20}}, Batched{.size = 3});
  for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
  CHECK(restarting.restarts().slot_count > 0);
  CHECK(model.report() == "");
}

TEST_CASE("the block adapts: hopeless guesses are hardly asked for, right ones always", "[blockwise]") {
  Table const table{.size = 30, .scale = 4, .has_eos = false};
  auto const rate = [&](Guesses kind) {
    Blockwise<> const search{.block = 8, .length = {.max = 400}, .adaptive = true, .cost = 0.3};
    Counters counters;
    auto const result = guessed<everything>(table, table, kind, {{.source = 5}}, search, Batched{}, &counters)[0];
    return std::pair(static_cast<double>(counters.tokens) / 400, static_cast<double>(counters.steps) / 400);
  };
  auto const [bad_tokens, bad_steps] = rate(Guesses::random);
  auto const [good_tokens, good_steps] = rate(Guesses::as_they_are);
  CHECK(bad_tokens < 1.1);
  CHECK(bad_steps > 0.9);
  CHECK(good_steps < 0.2);
  CHECK(good_tokens < 1.1);
}

TEST_CASE("options that make no sense are refused by name", "[blockwise]") {
  auto const refuses = [](auto const& search, std::string const& name) {
    std::string message;
    try {
      search.check();
    } catch (std::invalid_argument const& error) {
      message = error.what();
    }
    INFO(message);
    CHECK(message.find(name) != std::string::npos);
  };
  refuses(Blockwise<>{.block = 0}, "block = 0");
  refuses(Blockwise<>{.block = 4, .minimum = 2}, "minimum = 2");
  refuses(Blockwise<acceptance::Sampling>{.block = 4, .minimum = 2}, "minimum = 2");
  refuses(Blockwise<acceptance::TopK>{.block = 4, .minimum = 5}, "minimum = 5");
  refuses(Blockwise<acceptance::TopK>{.accept = {0}}, "accept.n = 0");
  refuses(Blockwise<acceptance::Distance>{.accept = {-1}}, "accept.epsilon = -1");
  refuses(Blockwise<acceptance::Sampling>{.accept = {{.temperature = 0}}}, "accept.sample.temperature = 0");
  refuses(Blockwise<>{.adaptive = true, .cost = -1}, "cost = -1");
  refuses(Blockwise<acceptance::TopK>{.adaptive = true, .cost = 0}, "cost = 0");
  refuses(Blockwise<acceptance::Rejection>{.adaptive = true, .cost = 0}, "cost = 0");
  refuses(Blockwise<>{.length = {.min = -1}}, "length.min = -1");
}
