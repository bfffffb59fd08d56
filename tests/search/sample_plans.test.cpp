// SPDX-License-Identifier: Apache-2.0
// Sample without a decoder: every plan and every result against a plain account, with one state and one result for all
// sentences.
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/sampled_sentence.hpp>
#include <support/slot_follower.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// The expected state of a sample.
struct Account {
  std::vector<Token> tokens;
  std::vector<float> log_probs;
  bool alive = true, finished = false, lost = false;
  Hypothesis hypothesis(double log_prob) const {
    for (auto const x : log_probs) log_prob += static_cast<double>(x);  // exact
    Hypothesis h;
    h.tokens = tokens, h.log_probs = log_probs, h.log_prob = h.score = log_prob, h.finished = finished;
    return h;
  }
};

/// Some of tokens 1 to 7 (1 ends, if allowed), best first.
std::vector<Candidate> some_candidates(std::mt19937_64& random, std::size_t most, bool end) {
  std::vector<Token> tokens{2, 3, 4, 5, 6, 7};
  if (end) tokens.push_back(1);
  std::shuffle(tokens.begin(), tokens.end(), random);
  tokens.resize(std::min(tokens.size(), most));
  std::vector<Candidate> list;
  for (auto const token : tokens) list.push_back({token, -static_cast<float>(random() % 64) / 8});
  std::sort(list.begin(), list.end(), [](Candidate a, Candidate b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
  });
  return list;
}

/// The token drawn according to the documentation.
Candidate drawn(std::vector<Candidate> const& list, std::uint64_t noise) {
  return *std::max_element(list.begin(), list.end(), [noise](Candidate a, Candidate b) {
    return static_cast<double>(a.log_prob) + gumbel(noise, a.token) <
           static_cast<double>(b.log_prob) + gumbel(noise, b.token);
  });
}

std::vector<Token> beginning_of_all(std::vector<Account> const& all) {
  std::vector<std::vector<Token>> texts;
  for (auto const& one : all)
    if (!one.lost) texts.push_back(one.tokens);
  if (texts.empty()) return {};
  std::size_t n = 0;
  while (std::ranges::all_of(texts, [&](auto const& t) { return n < t.size() && t[n] == texts[0][n]; })) ++n;
  return {texts[0].begin(), texts[0].begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Removes duplicates; best first.
void keep_different(std::vector<Hypothesis>& all) {
  std::vector<Hypothesis> kept;
  for (auto const& h : all)
    if (std::ranges::find(kept, h.tokens, &Hypothesis::tokens) == kept.end()) kept.push_back(h);
  std::sort(kept.begin(), kept.end(), [](auto const& a, auto const& b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.tokens < b.tokens;
  });
  all = std::move(kept);
}

}  // namespace

TEST_CASE("sample plans and draws as told, whatever its state and result held before", "[sample]") {
  Sample::State state;
  Result result;
  std::mt19937_64 random(1);
  std::array<int, 4> seen{};
  for (int round = 0; round < 2000; ++round) {
    SampledSentence const told(random);
    auto const& [vocabulary, prompt, prefix, text, before, max] = told;
    auto const forced = told.forced();
    Sample search{.temperature = static_cast<float>(1 + random() % 3) / 2,
                  .top_k = static_cast<std::int32_t>(random() % 2 == 0 ? 0 : 1 + random() % 4),
                  .samples = static_cast<std::int32_t>(1 + random() % 4),
                  .distinct = random() % 4 == 0,
                  .length = {.min = std::min(static_cast<std::int32_t>(random() % 5), max), .max = max}};
    // More than 1 has no effect here, except that the chain of samplers does everything.
    search.min_keep = std::min(static_cast<std::int32_t>(random() % 3), search.top_k > 0 ? search.top_k : 2);
    auto const min = std::min(search.length.min, max);
    auto const sentence = told.sentence(random());
    INFO("round " << round << ", samples " << search.samples << ", top_k " << search.top_k << ", prefix " << forced
                  << ", min " << min << ", max " << max);
    CHECK(search.slot_count() == search.samples);
    search.begin(state, sentence);
    CHECK(state.history.size() == 0);  // nothing is kept of the previous sentence
    std::vector<Account> all(static_cast<std::size_t>(search.samples));
    SlotFollower slots({text.begin(), text.end() - 1});
    auto position = forced;
    auto ended = false;
    for (auto most = 1 + random() % 8; most > 0 && !ended; --most) {
      auto const first = position == forced;
      std::vector<Token> settled{7, 7, 7};
      search.settled(state, settled);
      CHECK(settled == beginning_of_all(all));
      std::vector<std::size_t> who;  // [line]: the sample; the first line serves all
      for (std::size_t i = 0; i < all.size() && !(first && i > 0); ++i)
        if (all[i].alive) who.push_back(i);
      if (max == 0) who.clear();
      auto const progress = search.progress(state);
      CHECK((progress.length == sentence.held + position - forced && progress.block == 1));
      if (max > 0) CHECK(progress.width == static_cast<std::int32_t>(who.size()));
      CHECK(progress.rows == (first ? 1 : 0));  // 0: as many as hypotheses

      StepPlan step;
      Plan plan(step, 0);
      search.plan(state, plan);
      auto const lines = slots.step(step);
      REQUIRE((lines.size() == who.size() && step.queries.size() == who.size()));
      if (max > 0) CHECK(slots.held() == who.size());
      std::vector<Candidate> best;
      std::vector<Expansion::Entry> entries;
      for (std::size_t l = 0; l < who.size(); ++l) {
        auto context = text;
        context.insert(context.end(), all[who[l]].tokens.begin(), all[who[l]].tokens.end());
        CHECK(lines[l] == context);
        auto const& query = step.queries[l];
        auto const own = Sample::noise(sentence.seed, static_cast<std::int32_t>(who[l]), position);
        CHECK(own == derive(derive(sentence.seed, who[l]), static_cast<std::uint64_t>(position)));
        auto const expander_draws = search.top_k == 0 && (!first || all.size() == 1);
        CHECK((query.best == (search.top_k > 0 ? search.top_k : expander_draws ? 1 : 9) && !query.selects()));
        CHECK(query.noise == (expander_draws ? own : 0));
        CHECK((query.temperature == search.temperature && query.normalise && query.probes.empty()));
        std::vector<Token> forbidden, expected = vocabulary.never;
        if (position < min) expected.insert(expected.end(), vocabulary.eos.begin(), vocabulary.eos.end());
        for (auto const& edit : query.edits) forbidden.push_back(edit.token);
        CHECK(forbidden == expected);

        auto const list = some_candidates(random, random() % 16 == 0 ? 0 : static_cast<std::size_t>(query.best),
                                          position >= min && random() % 3 == 0);
        entries.push_back({.best = best.size(), .best_count = list.size()});
        best.insert(best.end(), list.begin(), list.end());
        for (auto i = first ? 0 : who[l]; i < (first ? all.size() : who[l] + 1); ++i) {
          auto& one = all[i];
          one.alive = !list.empty(), one.lost = list.empty();
          if (one.lost) continue;
          auto const chosen = drawn(list, Sample::noise(sentence.seed, static_cast<std::int32_t>(i), position));
          one.tokens.push_back(chosen.token), one.log_probs.push_back(chosen.log_prob);
          auto const full = position + 1 == max;
          one.finished = vocabulary.ends(chosen.token) || (full && vocabulary.eos.empty());
          one.alive = !one.finished && !full;
        }
      }
      ended = search.advance(state, Expansion(entries, best, {}));
      position += max > 0;
      CHECK(ended == (max == 0 || std::ranges::none_of(all, &Account::alive)));
    }

    std::vector<Token> settled{7, 7, 7};
    search.settled(state, settled);
    CHECK(settled == beginning_of_all(all));
    result.failure = Failure::none;  // set by the decoding loop
    search.finish(state, result);
    std::vector<Hypothesis> expected;
    for (auto const& one : all)
      if (!one.lost) expected.push_back(one.hypothesis(max > 0 ? before : 0));
    if (search.distinct) keep_different(expected);
    CHECK((result.failure == Failure::no_token_left) == expected.empty());
    REQUIRE(result.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto const &h = result.hypotheses[i], &e = expected[i];
      CHECK((h.tokens == e.tokens && h.log_probs == e.log_probs && h.finished == e.finished));
      CHECK((h.log_prob == e.log_prob && h.score == e.score));
    }
    ++seen[expected.empty() ? 0 : !ended ? 1 : expected.size() < all.size() ? 2 : 3];
  }
  for (auto const count : seen) CHECK(count > 40);
}
