// SPDX-License-Identifier: Apache-2.0
// Processed around a search that plans random blocks, trees, forks and cuts: what is run, requested and answered, against
// the rules applied to the tokens themselves.
#include <sluice/processor/processed.hpp>

#include <support/catch.hpp>
#include <support/hashed_rules.hpp>
#include <support/scripted_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto impossible = -std::numeric_limits<float>::infinity();

LogitsProcessorList const all_of_them(Editing<1>{}, Restricting<21>{}, Stopping<30>{}, Editing<2>{}, Restricting<22>{},
                                      Stopping<40>{});

/// The tokens allowed after an output; `said` is false if there is no restriction.
std::vector<bool> allowed(std::vector<Token> const& output, std::int32_t left, bool& said) {
  std::vector<bool> all(9, true);
  auto const state = Following::of(output);
  said = false;
  for (auto const& set : {Restricting<21>{}.may_follow(state, left), Restricting<22>{}.may_follow(state, left)}) {
    if (set == nullptr) continue;
    said = true;
    for (Token token = 0; token < 9; ++token)
      all[static_cast<std::size_t>(token)] = all[static_cast<std::size_t>(token)] && set->contains(token);
  }
  return all;
}

Script::Asked random_question(std::mt19937_64& random, Vocabulary const& vocabulary) {
  Script::Asked asked;
  auto const token = [&] { return static_cast<Token>(random() % 9); };
  asked.query = {.base = -static_cast<double>(random() % 9),
                 .rank = static_cast<std::int32_t>(random() % 5),
                 .best = static_cast<std::int32_t>(random() % 2 == 0 ? 0 : 1 + random() % 4),
                 .within = random() % 3 == 0 ? 0.5f : 0,
                 .stage = random() % 2 == 0 ? Stage::before_softmax : Stage::after_softmax,
                 .temperature = 0.5f,
                 .entropy = random() % 2 == 0,
                 .label = static_cast<std::int32_t>(random() % 3),
                 .noise = random() % 3};
  while (random() % 3 != 0) asked.probes.push_back(token());
  while (random() % 2 == 0) asked.edits.push_back({token(), -1.0f});
  if (random() % 4 == 0)
    for (auto const eos : vocabulary.eos) asked.edits.push_back(Edit::forbid(eos));
  if (random() % 6 == 0) asked.edits.push_back(Edit::forbid(token()));
  asked.restricted = random() % 2 == 0;
  for (Token t = 0; t < 9; ++t)
    if (random() % 2 == 0) asked.only.insert(t);
  return asked;
}

Script::Told random_answer(std::mt19937_64& random, Query const& query) {
  Script::Told told{.log_sum_exp = static_cast<float>(random() % 9), .entropy = 2, .valid = random() % 8 != 0};
  for (auto n = query.lists() ? random() % 4 : 0; n > 0; --n)
    told.best.push_back({static_cast<Token>(random() % 9), -static_cast<float>(random() % 9)});
  for (std::size_t i = 0; i < query.probes.size(); ++i) told.probes.push_back(-static_cast<float>(random() % 9));
  return told;
}

bool same(std::span<Edit const> a, std::vector<Edit> const& b) {
  return std::ranges::equal(a, b, [](Edit const& x, Edit const& y) {
    return x.token == y.token && x.add == y.add && x.penalty == y.penalty;
  });
}

template <bool Back, bool Takes, bool Chooses>
void check_plans(std::uint64_t seed, int rounds) {
  using Inner = Scripted<Back, Takes, Chooses>;
  std::mt19937_64 random(seed);
  Script script;
  Processed<Inner> const search{Inner{&script, {.max = 20}}, all_of_them};
  typename Processed<Inner>::State state;
  std::size_t taken_back = 0, over_and_run = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    INFO("round " << round);
    Vocabulary vocabulary{.size = 9, .bos = 0, .eos = {1}, .never = {0}};
    if (random() % 2 == 0) vocabulary.eos.push_back(7);
    if (random() % 3 == 0) vocabulary.never.push_back(1);
    auto end = vocabulary.eos.back();
    auto any_end = true;
    if (vocabulary.never.size() == 1) end = 1;
    else any_end = vocabulary.eos.size() > 1;
    std::vector<Token> prompt{0}, prefix, text;
    while (random() % 2 == 0) prompt.push_back(static_cast<Token>(2 + random() % 6));
    while (random() % 2 == 0 && prefix.size() < 5) prefix.push_back(static_cast<Token>(2 + random() % 5));
    text = prompt;
    if (!Takes) text.insert(text.end(), prefix.begin(), prefix.end());
    Sentence const sentence{.vocabulary = &vocabulary,
                            .prompt = prompt,
                            .prefix = prefix,
                            .last = text.back(),
                            .held = static_cast<std::int32_t>(text.size()) - 1};
    if (!Takes) {
      auto const left = 20 - static_cast<std::int32_t>(prefix.size());
      auto const at = Following::of(prefix);
      if (Restricting<21>::impossible_prefix(at, left) || Restricting<22>::impossible_prefix(at, left)) {
        CHECK_THROWS_AS(search.begin(state, sentence), std::invalid_argument);
        ++refused;
        continue;
      }
    }
    search.begin(state, sentence);
    SlotContents held{{0, {text.begin(), text.end() - 1}}};
    for (auto steps = 1 + random() % 5; steps > 0; --steps) {
      script.rows = random_rows(random, held, true);
      for (auto& row : script.rows)
        for (auto n = 1 + random() % row.tokens.size(); n > 0; --n)
          row.lines.push_back(random_question(random, vocabulary));
      StepPlan step;
      step.queries.emplace_back(), step.rows.push_back({.from = 0, .to = 0, .length = 0, .tokens = {}});
      step.groups.push_back({.lines = 1});  // another search's
      Slot const base = 4;
      Plan plan(step, base);
      search.plan(state, plan);

      // The rules applied to each line's tokens.
      auto const output_of = [&](Script::Planned const& row, std::size_t line) {
        auto tokens = tokens_behind(held, row, row.tokens.size() - row.lines.size() + line);
        tokens.erase(tokens.begin(),
                     tokens.begin() + static_cast<std::ptrdiff_t>(std::min(prompt.size(), tokens.size())));
        return tokens;
      };
      std::vector<std::vector<bool>> over(script.rows.size());
      for (std::size_t r = 0; r < script.rows.size(); ++r)
        for (std::size_t l = 0; l < script.rows[r].lines.size(); ++l) {
          auto const output = output_of(script.rows[r], l);
          auto const forbidden = any_end && std::ranges::any_of(script.rows[r].lines[l].edits, [&](Edit const& e) {
                                   return e.token == end && e.add == impossible;
                                 });
          over[r].push_back(!Takes && output.size() > prefix.size() && hashed_stop(output) >= 0 && !forbidden);
        }
      auto const all_over = [&](std::size_t r) { return std::ranges::all_of(over[r], std::identity{}); };
      std::vector<Script::Told> expected, answers;
      std::size_t run = 0, asked = 0;
      for (std::size_t r = 0; r < script.rows.size(); ++r) {
        auto const& row = script.rows[r];
        auto out = all_over(r) && !Back;
        for (std::size_t other = 0; other < script.rows.size(); ++other)
          if (row.from == row.to && script.rows[other].from == row.from && !all_over(other)) out = false;
        if (!out) {
          REQUIRE(plan.rows().size() > run);
          auto const& found = plan.rows()[run++];
          CHECK((found.from == row.from + base && found.to == row.to + base && found.length == row.length));
          CHECK((std::ranges::equal(found.tokens, row.tokens) &&
                 found.lines == static_cast<std::int32_t>(row.lines.size())));
        }
        taken_back += out;
        for (std::size_t l = 0; l < row.lines.size(); ++l) {
          auto const& line = row.lines[l];
          Script::Told certain;
          if (line.query.lists()) certain.best = {{end, 0}};
          for (auto const token : line.probes) certain.probes.push_back(token == end ? 0 : impossible);
          expected.push_back(certain);
          if (out) continue;
          REQUIRE(plan.queries().size() > asked);
          auto const& query = plan.queries()[asked++];
          answers.push_back(random_answer(random, query));
          CHECK((query.base == line.query.base && query.rank == line.query.rank && query.stage == line.query.stage));
          CHECK((query.label == line.query.label && query.noise == line.query.noise));
          if (over[r][l]) {
            ++over_and_run;
            CHECK((query.best == 0 && !query.lists() && query.probes.empty() && query.only == nullptr &&
                   !query.normalise));
            CHECK((!query.entropy && query.temperature == 1 && same(query.edits, line.edits)));
            continue;
          }
          expected.back() = answers.back();
          CHECK((query.best == line.query.best && query.within == line.query.within && query.normalise));
          CHECK((query.temperature == line.query.temperature && query.entropy == line.query.entropy));
          CHECK(std::ranges::equal(query.probes, line.probes));
          auto const output = output_of(row, l);
          std::vector<Edit> edits;
          if (line.query.lists()) {
            Editing<1>{}.edit(Following::of(output), {output, 0, vocabulary}, edits);
            Editing<2>{}.edit(Following::of(output), {output, 0, vocabulary}, edits);
          }
          if (!Chooses)
            std::erase_if(edits, [&](Edit const& e) { return std::ranges::count(line.probes, e.token) > 0; });
          edits.insert(edits.end(), line.edits.begin(), line.edits.end());
          CHECK(same(query.edits, edits));
          bool said = false;
          auto const may = allowed(output, 20 - static_cast<std::int32_t>(output.size()), said);
          REQUIRE((query.only != nullptr) == (said || line.restricted));
          for (Token token = 0; token < 9 && query.only != nullptr; ++token)
            CHECK(query.only->contains(token) ==
                  (may[static_cast<std::size_t>(token)] && (!line.restricted || line.only.contains(token))));
        }
      }
      CHECK((plan.rows().size() == run && plan.queries().size() == asked));
      CHECK((step.rows.size() == run + 1 && step.groups.size() == 2 && step.groups[0].lines == 1));
      CHECK(step.groups[1].lines == static_cast<std::int32_t>(asked));
      std::vector<Candidate> best{{8, 8}};  // another search's
      std::vector<float> probes{8, 8};
      std::vector<Expansion::Entry> entries;
      for (auto const& one : answers) {
        entries.push_back(
            {best.size(), probes.size(), one.best.size(), one.probes.size(), one.log_sum_exp, one.entropy, one.valid});
        best.insert(best.end(), one.best.begin(), one.best.end());
        probes.insert(probes.end(), one.probes.begin(), one.probes.end());
      }
      search.advance(state, Expansion(entries, best, probes));
      REQUIRE(script.told.size() == expected.size());
      CHECK(script.told == expected);
      held = contents_after(held, script.rows);
    }
  }
  CHECK((taken_back > 200) == (!Back && !Takes));
  CHECK((over_and_run > 100) == !Takes);
  CHECK((refused > 10) == !Takes);
}

}  // namespace

TEST_CASE("a search under rules runs, asks and is told what the rules say of its tokens", "[rules]") {
  check_plans<false, false, false>(1, 700);
  check_plans<true, false, true>(2, 700);
  check_plans<false, true, false>(3, 300);
}
