// SPDX-License-Identifier: Apache-2.0
// What the servers' Retold tells of outputs: the model's own numbers, whatever the search, which does not notice.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <http/retold.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 12, .scale = 6, .eos_bias = -3, .eos_slope = 0.2};

/// Against the table's own line behind `context`.
void check_told(serve::Told const& told, Token token, std::uint64_t seed, std::vector<Token> const& context,
                std::size_t count) {
  std::vector<double> line(static_cast<std::size_t>(table.size));
  table.log_probs(seed, context, line);
  CHECK(told.log_prob == Approx(line[static_cast<std::size_t>(token)]).margin(1e-5));
  std::vector<Token> order;
  for (Token v = 0; v < table.size; ++v)
    if (table.possible(v)) order.push_back(v);
  std::sort(order.begin(), order.end(), [&](Token a, Token b) {
    auto const x = line[static_cast<std::size_t>(a)], y = line[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  order.resize(std::min(order.size(), count));
  REQUIRE(told.best.size() == order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(told.best[i].token == order[i]);
    CHECK(told.best[i].log_prob == Approx(line[static_cast<std::size_t>(order[i])]).margin(1e-5));
  }
}

void check_notes(serve::Notes const& notes, Result const& result, std::uint64_t seed, std::vector<Token> context,
                 std::size_t count) {
  REQUIRE(notes.hypotheses.size() == result.hypotheses.size());
  auto const prompt = context.size();
  for (std::size_t i = 0; i < notes.hypotheses.size(); ++i) {
    auto const& tokens = result.hypotheses[i].tokens;
    REQUIRE(notes.hypotheses[i].size() == tokens.size());
    context.resize(prompt);
    for (std::size_t j = 0; j < tokens.size(); ++j) {
      check_told(notes.hypotheses[i][j], tokens[j], seed, context, count);
      context.push_back(tokens[j]);
    }
  }
}

template <class S>
serve::Retold<S> told_of(S const& search, std::int32_t best) {
  serve::Retold<S> retold(search);
  retold.best = best, retold.notes = std::make_shared<serve::Notes>();
  return retold;
}

/// Sentences, some of which are told of, beside each other.
template <class S, class P>
void check_search(Abilities claimed, S const& search, P const& schedule) {
  constexpr std::uint64_t count = 9;
  std::vector<TableRequest<S>> bare;
  std::vector<TableRequest<serve::Retold<S>>> requests;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    bare.push_back({.source = seed});
    auto const best = static_cast<std::int32_t>(seed % 3) * 2;
    requests.push_back({.source = seed, .search = seed % 4 == 3 ? serve::Retold<S>(search) : told_of(search, best)});
  }
  auto const expected = run(claimed, table, bare, search);
  auto const results = run(claimed, table, requests, serve::Retold<S>(search), schedule);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    INFO("sentence " << seed);
    CHECK(identical(results[seed], expected[seed]));
    auto const& one = *requests[seed].search;
    if (one.notes) check_notes(*one.notes, results[seed], seed, {}, static_cast<std::size_t>(one.best));
  }
}

template <class S>
void check_search(S const& search) {
  check_search(plain, search, Batched{});
  check_search(everything, search, Batched{});
  check_search(Abilities{.ragged = true}, search, Streaming{.size = 3, .refill_below = 1});
  check_search(everything, search, Streaming{.size = 3, .refill_below = 1});
}

LengthLimits const length{.max = 40};

/// Notes how many lines its largest step asks for where it tells.
struct Watched : serve::Retold<Sample> {
  using Retold::Retold;
  std::shared_ptr<std::size_t> most = std::make_shared<std::size_t>(0);

  void plan(State& s, Plan& plan) const {
    Retold::plan(s, plan);
    if (s.phase == Phase::telling) *most = std::max(*most, plan.queries().size());
  }
};

}  // namespace

TEST_CASE("retold: a step has 32 lines, or one of each hypothesis") {
  for (auto const& [samples, most] : {std::pair{1, 32}, {5, 30}, {12, 24}, {40, 40}}) {
    INFO(samples << " samples");
    Table const endless{.size = 12, .scale = 6, .eos_bias = -60};
    Watched search{Sample{.temperature = 1, .samples = samples, .length = {.max = 60}}};
    search.notes = std::make_shared<serve::Notes>();
    std::vector<TableRequest<Watched>> requests(1, {.source = 1, .search = search});
    auto const results = run(everything, endless, requests, search);
    CHECK(*search.most == static_cast<std::size_t>(most));
    REQUIRE(results[0].hypotheses.size() == static_cast<std::size_t>(samples));
    CHECK(search.notes->hypotheses.back().size() == results[0].hypotheses.back().tokens.size());
  }
}

TEST_CASE("retold: outputs of any search, none of which is another for it") {
  check_search(Greedy{.length = length});
  check_search(Sample{.temperature = 1.5f, .samples = 3, .length = length});
  check_search(BeamSearch{.width = 4, .n_best = 3, .length = length});
}

TEST_CASE("retold: no rule and no truncation shows in what is told") {
  check_search(Sample{.temperature = 0.5f, .top_k = 2, .samples = 2, .length = length});
  check_search(Processed(Greedy{.length = length}, TokenBias{{{5, -100.0f}, {7, 3.0f}}}));
}

TEST_CASE("retold: prompts, those that begin alike too") {
  std::vector<Token> const beginning{bos, 4, 9, 3, 3, 7, 5, 11, 4, 6};
  for (auto const shared : {std::int64_t{0}, std::int64_t{200}})
    for (auto const echo : {false, true})
      for (auto const ends : {false, true}) {
        if (ends && !echo) continue;
        INFO("shared " << shared << ", echo " << echo << ", ends " << ends);
        CellModel<everything> model(table, 1 << 20, true, 64);
        using Search = serve::Retold<BeamSearch>;
        BeamSearch const beam{.width = 3, .n_best = 2, .length = {.max = 12}};
        std::vector<Request<EmptySource, Search>> requests;
        std::vector<std::vector<Token>> prompts;
        for (Token last = 3; last < 12; ++last) {
          auto const prompt = prompts.emplace_back([&] {
            auto tokens = beginning;
            tokens.resize(4 + static_cast<std::size_t>(last) % 7), tokens.push_back(last % 2 == 0 ? 4 : last);
            return tokens;
          }());
          auto& request = requests.emplace_back();
          request.search = told_of(beam, 3), request.prompt = prompt;
          request.search->ends = ends;
          if (echo) request.search->prompt.assign(prompt.begin() + 1, prompt.end()), request.prompt.resize(1);
        }
        auto const results = decode(model, requests, Search(beam), Streaming{.size = 2, .refill_below = 1},
                                    LogSoftmaxTopK{}, Intake{.shared_tokens = shared});
        CHECK(model.used() == 0);
        for (std::size_t i = 0; i < results.size(); ++i) {
          INFO("prompt " << i);
          REQUIRE(results[i].ok());
          auto const& prompt = prompts[i];
          std::vector<Token> const context(prompt.begin() + 1, prompt.end());
          auto const& notes = *requests[i].search->notes;
          if (ends) {
            CHECK(results[i].hypotheses.size() == 1);
            CHECK(results[i].hypotheses.at(0).tokens.empty());
          } else {
            CellModel<everything> alone(table, 1 << 20, true, 64);
            CHECK(identical(results[i], [&] {
              auto one = decode(alone, std::vector{Request<EmptySource, BeamSearch>{.prompt = prompt}}, beam).at(0);
              one.id = i;
              return one;
            }()));
            check_notes(notes, results[i], 17, context, 3);
          }
          REQUIRE(notes.prompt.size() == (echo ? context.size() : 0));
          for (std::size_t j = 0; j < notes.prompt.size(); ++j)
            check_told(notes.prompt[j], context[j], 17,
                       {context.begin(), context.begin() + static_cast<std::ptrdiff_t>(j)}, 3);
        }
      }
}
