// SPDX-License-Identifier: Apache-2.0
// StochasticBeam without a decoder: every plan and every result against the paper's formulas, with one state and one
// result for all sentences.
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>
#include <support/sampled_sentence.hpp>
#include <support/slot_follower.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// The expected state of a hypothesis.
struct Account {
  std::vector<Token> tokens{};
  std::vector<float> log_probs{};
  double log_prob = 0, value = 0;
  bool ended = false, finished = false;
};

std::vector<Token> beginning_of_all(std::vector<Account> const& all) {
  auto tokens = all.empty() ? std::vector<Token>{} : all[0].tokens;
  for (auto const& one : all)
    tokens.erase(std::mismatch(tokens.begin(), tokens.end(), one.tokens.begin(), one.tokens.end()).first, tokens.end());
  return tokens;
}

}  // namespace

TEST_CASE("stochastic_beam plans and draws as told, whatever its state and result held before", "[stochastic_beam]") {
  StochasticBeam::State state;
  Result result;
  std::mt19937_64 random(1);
  std::array<int, 3> seen{};
  for (int round = 0; round < 1500; ++round) {
    SampledSentence const told(random);
    auto const& [vocabulary, prompt, prefix, text, before, max] = told;
    auto const forced = told.forced();
    StochasticBeam const search{.width = static_cast<std::int32_t>(1 + random() % 5),
                                .temperature = static_cast<float>(1 + random() % 3) / 2,
                                .length = {.min = std::min(static_cast<std::int32_t>(random() % 5), max), .max = max}};
    auto const width = static_cast<std::size_t>(search.width);
    auto const min = std::min(search.length.min, max);
    auto const sentence = told.sentence(random());
    INFO("round " << round << ", width " << width << ", prefix " << forced << ", min " << min << ", max " << max);
    CHECK(search.slot_count() == search.width);
    search.begin(state, sentence);
    CHECK(state.history.size() == 0);  // nothing is kept of the previous sentence
    std::vector<Account> all(1);
    SlotFollower slots({text.begin(), text.end() - 1});
    std::set<std::uint64_t> keys;
    auto position = forced;
    auto ended = false;
    for (auto most = 1 + random() % 8; most > 0 && !ended; --most) {
      auto const progress = search.progress(state);
      CHECK(progress.length == sentence.held + position - forced);
      CHECK(progress.width == static_cast<std::int32_t>(all.size()));
      std::vector<Token> settled{7, 7, 7};
      search.settled(state, settled);
      CHECK(settled == beginning_of_all(all));

      StepPlan step;
      Plan plan(step, 0);
      search.plan(state, plan);
      auto const lines = slots.step(step);
      REQUIRE(lines.size() == step.queries.size());
      std::map<std::vector<Token>, std::size_t> line_of;
      for (std::size_t l = 0; l < lines.size(); ++l) CHECK(line_of.emplace(lines[l], l).second);
      auto const alive = static_cast<std::size_t>(std::ranges::count(all, false, &Account::ended));
      REQUIRE(lines.size() == (max > 0 ? alive : 0));
      if (max > 0) CHECK(slots.held() == alive);
      std::vector<std::vector<Candidate>> lists(lines.size());
      for (std::size_t l = 0; l < lines.size(); ++l) {
        auto const& query = step.queries[l];
        CHECK((query.best == search.width && !query.selects() && query.temperature == search.temperature));
        CHECK((query.normalise && query.probes.empty()));
        CHECK((query.noise != 0 && keys.insert(query.noise).second));  // different for every hypothesis
        std::vector<Token> forbidden, expected = vocabulary.never;
        if (position < min) expected.insert(expected.end(), vocabulary.eos.begin(), vocabulary.eos.end());
        for (auto const& edit : query.edits) forbidden.push_back(edit.token);
        CHECK(forbidden == expected);
        std::vector<Token> tokens{2, 3, 4, 5, 6, 7};
        if (position >= min) tokens.push_back(1);
        std::shuffle(tokens.begin(), tokens.end(), random);
        tokens.resize(random() % 8 == 0 ? 0 : std::min(tokens.size(), width));
        for (auto const token : tokens) lists[l].push_back({token, -static_cast<float>(random() % 64) / 8});
      }

      // The expected next beam. The root's own value uses noise of its own; the first answer reveals it.
      std::vector<Account> next;
      std::size_t root = 0;
      for (auto const& one : all) {
        auto context = text;
        context.insert(context.end(), one.tokens.begin(), one.tokens.end());
        if (one.ended || max == 0) {
          next.push_back(one);
          continue;
        }
        REQUIRE(line_of.contains(context));
        auto const l = line_of.at(context);
        auto const first = position == forced;
        std::vector<double> perturbed;
        for (auto const c : lists[l])
          perturbed.push_back((first ? before : one.log_prob) + static_cast<double>(c.log_prob) +
                              gumbel(step.queries[l].noise, c.token));
        for (std::size_t i = 0; i < perturbed.size(); ++i) {
          auto const c = lists[l][i];
          auto const largest = *std::ranges::max_element(perturbed);
          if (first && perturbed[i] == largest) root = next.size();
          auto& child = next.emplace_back(one);
          child.tokens.push_back(c.token), child.log_probs.push_back(c.log_prob);
          child.log_prob = (first ? before : one.log_prob) + static_cast<double>(c.log_prob);
          auto const full = position + 1 == max;
          child.finished = vocabulary.ends(c.token) || (full && vocabulary.eos.empty());
          child.ended = child.finished || full;
          child.value =
              first ? perturbed[i] : -std::log(std::exp(-one.value) - std::exp(-largest) + std::exp(-perturbed[i]));
        }
      }
      std::vector<Candidate> best;
      std::vector<Expansion::Entry> entries;
      for (auto const& list : lists) {
        entries.push_back({.best = best.size(), .best_count = list.size()});
        best.insert(best.end(), list.begin(), list.end());
      }
      ended = search.advance(state, Expansion(entries, best, {}));
      result.failure = Failure::none;  // set by the decoding loop
      search.finish(state, result);
      if (position == forced && !next.empty() && max > 0) {
        auto const value = result.hypotheses.at(0).score, largest = next[root].value;
        for (Token token = 0; token < 9; ++token) CHECK(value - before != gumbel(step.queries[0].noise, token));
        for (auto& child : next)
          child.value = -std::log(std::exp(-value) - std::exp(-largest) + std::exp(-child.value));
      }
      position += max > 0;
      std::ranges::sort(next, std::ranges::greater{}, &Account::value);
      if (next.size() > width) next.resize(width);
      all = std::move(next);
      CHECK(ended == (max == 0 || std::ranges::all_of(all, &Account::ended)));
      CHECK((result.failure == Failure::no_token_left) == all.empty());
      REQUIRE(result.hypotheses.size() == all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto const& h = result.hypotheses[i];
        auto const& e = all[i];
        CHECK((h.tokens == e.tokens && h.log_probs == e.log_probs && h.finished == e.finished));
        if (max == 0) continue;
        CHECK_THAT(h.log_prob, WithinAbs(e.log_prob, 1e-9));
        CHECK_THAT(h.score, WithinAbs(e.value, 1e-6));
        all[i].value = h.score;  // rounding errors do not accumulate
      }
    }
    ++seen[all.empty() ? 0 : ended ? 1 : 2];
  }
  for (auto const count : seen) CHECK(count > 50);
}

TEST_CASE("stochastic_beam takes equally good children in the order of their list", "[stochastic_beam]") {
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const prompt{0};
  for (auto const& tokens : {std::vector<Token>{5, 3, 4}, std::vector<Token>{3, 4, 5}}) {
    StochasticBeam const search{.width = 2};
    StochasticBeam::State state;
    search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt});
    StepPlan step;
    Plan plan(step, 0);
    search.plan(state, plan);
    std::vector<Candidate> list;
    for (auto const token : tokens) list.push_back({token, -1e30f});  // adding noise does not change it
    std::vector<Expansion::Entry> const entries{{.best_count = 3}};
    search.advance(state, Expansion(entries, list, {}));
    Result result;
    search.finish(state, result);
    REQUIRE(result.hypotheses.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(result.hypotheses[i].tokens == std::vector<Token>{tokens[i]});
  }
}
