// SPDX-License-Identifier: Apache-2.0
// Penalties and Dry against their definitions, restated.
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;
using LookingBack = LogitsProcessorList;

Text random_text(std::mt19937_64& random, std::size_t most, Token kinds) {
  Text text;
  for (auto i = random() % (most + 1); i > 0; --i)
    text.push_back(3 + static_cast<Token>(random() % static_cast<std::size_t>(kinds)));
  return text;
}

/// The last `window` tokens of prompt and output.
Text window_of(Text prompt, Text const& output, bool with_prompt, std::int32_t window) {
  if (!with_prompt) prompt.clear();
  prompt.insert(prompt.end(), output.begin(), output.end());
  if (window >= 0 && std::ssize(prompt) > window) prompt.erase(prompt.begin(), prompt.end() - window);
  return prompt;
}

bool stands_at(Text const& text, std::size_t at, Text const& part) {
  return at + part.size() <= text.size() && std::equal(part.begin(), part.end(), text.begin() + static_cast<long>(at));
}

/// What DRY subtracts from each token: for every position before the last, the length of the match between the text up
/// to there and the end of the text.
std::map<Token, double> expected_dry(Dry const& dry, Text const& text, std::vector<Text> const& breakers) {
  std::map<Token, double> penalties;
  auto const n = text.size(), allowed = static_cast<std::size_t>(dry.allowed_length);
  if (dry.multiplier == 0 || n <= allowed) return penalties;
  auto limit = n;
  for (auto at = n; at-- > 0 && limit == n;)  // the last position where a breaker begins; of several there, the longest
    for (auto const& breaker : breakers)
      if (stands_at(text, at, breaker)) limit = std::min(limit, n - at - breaker.size());
  if (limit < allowed) return penalties;
  std::map<Token, std::size_t> longest;
  for (std::size_t next = 1; next < n; ++next) {
    std::size_t length = 0;
    while (length < next && text[next - 1 - length] == text[n - 1 - length]) ++length;
    length = std::min(length, limit);
    if (length < allowed) continue;
    auto const [found, fresh] = longest.emplace(text[next], length);
    if (!fresh) found->second = std::max(found->second, length);
  }
  for (auto const& [token, length] : longest) {
    if (std::ranges::find(breakers, Text{token}) != breakers.end()) continue;
    penalties[token] = static_cast<double>(dry.multiplier) *
                       std::pow(static_cast<double>(dry.base), static_cast<double>(length - allowed));
  }
  return penalties;
}

std::vector<Edit> edits_of(auto const& rule, Text const& prompt, Text const& output, Vocabulary const& vocabulary) {
  std::vector<Edit> edits{{.token = 1, .add = 9}};  // another rule's edit
  rule.edit(rule.initial({.vocabulary = &vocabulary, .prompt = prompt}), {output, 0, vocabulary}, edits);
  REQUIRE(edits.at(0).add == 9);
  edits.erase(edits.begin());
  return edits;
}

}  // namespace

TEST_CASE("penalties count the tokens of a window", "[penalties]") {
  Vocabulary const vocabulary{.size = 20};
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    auto const prompt = random_text(random, 20, 6), output = random_text(random, 30, 6);
    Penalties const rule{.repetition = 1.25f,
                         .frequency = 0.5f,
                         .presence = -0.25f,
                         .window = static_cast<std::int32_t>(random() % 40) - 1,
                         .prompt = random() % 2 == 0};
    rule.check();
    std::map<Token, float> counts;
    for (auto const token : window_of(prompt, output, rule.prompt, rule.window)) ++counts[token];
    auto const edits = edits_of(rule, prompt, output, vocabulary);
    REQUIRE(edits.size() == counts.size());
    for (auto const& edit : edits) {
      CHECK(edit.add == -(counts.at(edit.token) * 0.5f - 0.25f));
      CHECK(edit.penalty == 1.25f);
    }
    std::set<Token> const written(output.begin(), output.end());
    auto const repeated = edits_of(RepetitionPenalty{1.5f}, prompt, output, vocabulary);
    REQUIRE(repeated.size() == written.size());
    for (auto const& edit : repeated) CHECK((edit.add == 0 && edit.penalty == 1.5f && written.contains(edit.token)));
  }
  CHECK(edits_of(Penalties{}, {3, 4}, {5}, vocabulary).empty());
  CHECK(edits_of(Penalties{.presence = 1, .window = 0}, {3, 4}, {5}, vocabulary).empty());
}

TEST_CASE("DRY finds every repetition, no longer than since the last breaker", "[dry]") {
  Vocabulary const vocabulary{.size = 20};
  std::mt19937_64 random(2);
  std::size_t some = 0;
  for (int round = 0; round < 20000; ++round) {
    auto const kinds = 1 + static_cast<Token>(random() % 4);
    auto const prompt = random_text(random, 20, kinds), output = random_text(random, 40, kinds);
    std::vector<Text> breakers;
    for (auto i = random() % 3; i > 0; --i) {
      auto const breaker = random_text(random, 4, 5);
      if (!breaker.empty()) breakers.push_back(breaker);
    }
    Dry const rule{.multiplier = 0.5f,
                   .base = 1.5f,
                   .allowed_length = static_cast<std::int32_t>(random() % 5),
                   .window = static_cast<std::int32_t>(random() % 60) - 1,
                   .prompt = random() % 2 == 0,
                   .breakers = SequenceBreakers(breakers)};
    rule.check();
    auto const text = window_of(prompt, output, rule.prompt, rule.window);
    auto const expected = expected_dry(rule, text, breakers);
    auto const edits = edits_of(rule, prompt, output, vocabulary);
    INFO("round " << round);
    REQUIRE(edits.size() == expected.size());
    for (auto const& edit : edits) {
      CHECK(edit.penalty == 1);
      auto const penalty = expected.at(edit.token);
      CHECK_THAT(static_cast<double>(-edit.add), WithinRel(penalty, 1e-6));
    }
    some += !edits.empty();
  }
  CHECK(some > 5000);
  // The penalty stops growing before a float would overflow.
  Text const same(400, 5);
  auto const edits = edits_of(Dry{.multiplier = 0.5f, .base = 2, .window = -1}, {}, same, vocabulary);
  REQUIRE(edits.size() == 1);
  CHECK(std::isfinite(edits[0].add));
  CHECK(edits[0].add < -1e37f);
}

TEST_CASE("breakers are found in the tokens' text, over several tokens too", "[dry]") {
  std::vector<std::string> const texts{"", "ab", "b", ":", "x:", "c\n", "bc", "c", "xab"};
  TokenBytes const bytes{texts};
  auto const one_by_one = [](std::string_view rest) {
    Text tokens;
    for (auto const c : rest) tokens.push_back(c == 'b' ? 2 : c == 'c' ? 7 : 0);
    return tokens;
  };
  std::vector<std::string> const wanted{":", "abc"};
  auto const found = SequenceBreakers::from_text(bytes, wanted, one_by_one);
  auto const behind = [&](Text const& text, std::size_t i) {
    return found.behind(detail::RecentTokens({}, text, -1), i);
  };
  CHECK(found.contains(3));
  CHECK(found.contains(4));
  CHECK_FALSE(found.contains(1));
  CHECK(behind({5, 1, 7, 6}, 2) == 1);  // "ab" "c"
  CHECK(behind({8, 7}, 1) == 0);        // "xab" "c"
  CHECK(behind({1, 6}, 1) == -1);       // not how "c" is spelled
  CHECK(behind({1, 7, 5, 5}, 3) == 2);
  CHECK(behind({1}, 0) == -1);
  CHECK_THROWS_AS(SequenceBreakers::from_text(bytes, std::vector<std::string>{""}, one_by_one), std::invalid_argument);
  CHECK_THROWS_AS(SequenceBreakers(std::vector<Text>{{}}), std::invalid_argument);
  CHECK_THROWS_AS(SequenceBreakers(std::vector<Text>{{4, -1}}), std::invalid_argument);
}

TEST_CASE("rules that look back act alike in every search, batch and schedule", "[penalties][dry]") {
  Table const table{.size = 9, .scale = 3, .eos_bias = -2, .eos_slope = 0.1, .order = 1};
  auto const check = [&](auto const& search) {
    using Both = Processed<std::remove_cvref_t<decltype(search)>>;
    std::vector<TableRequest<Both>> requests;
    std::vector<Result> alone;
    std::mt19937_64 random(5);
    for (std::uint64_t i = 0; i < 30; ++i) {
      TableRequest<Both> request{.source = i % 5, .prompt = random_text(random, 6, 4), .seed = i};
      if (i % 3 == 0) request.prefix = {4, 5};
      request.search =
          Both{search, LookingBack(Penalties{.frequency = 0.3f, .window = static_cast<std::int32_t>(i % 9)},
                                   Dry{.multiplier = 0.5f * static_cast<float>(i % 3), .allowed_length = 1})};
      requests.push_back(request);
      alone.push_back(run(plain, table, std::vector{request}, Both{}).at(0));
      REQUIRE(alone.back().ok());
    }
    auto const batched = run(everything, table, requests, Both{}, Batched{7});
    auto const streamed = run(everything, table, requests, Both{}, Streaming{.size = 5});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CHECK(identical(batched[i], alone[i]));
      CHECK(identical(streamed[i], alone[i]));
    }
  };
  LengthLimits const length{.max = 25};
  check(Greedy{.length = length});
  check(Sample{.top_p = 0.9f, .samples = 3, .length = length});
  check(BeamSearch{.width = 3, .length = length});
}

TEST_CASE("a greedy text without end is freed from its loop by DRY", "[dry]") {
  Table const table{.size = 9, .scale = 3, .order = 1, .has_eos = false};
  auto const repeats = [](Text const& tokens) {  // of four tokens
    std::size_t count = 0;
    for (std::size_t i = 4; i + 4 <= tokens.size(); ++i)
      count +=
          std::search(tokens.begin(), tokens.begin() + static_cast<long>(i) + 3, tokens.begin() + static_cast<long>(i),
                      tokens.begin() + static_cast<long>(i) + 4) != tokens.begin() + static_cast<long>(i) + 3;
    return count;
  };
  Greedy const search{.length = {.max = 40}, .stage = Stage::before_softmax};
  auto const usual = run_one(table, 1, search).hypotheses.at(0).tokens;
  using Both = Processed<Greedy>;
  auto const dry = run_one(table, 1, Both{search, Dry{.multiplier = 4, .window = -1}}).hypotheses.at(0).tokens;
  CHECK(repeats(usual) > 30);
  CHECK(repeats(dry) < 10);
}

TEST_CASE("rules that look back refuse options that make no sense", "[penalties][dry]") {
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(Penalties{.repetition = 0}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Penalties{.frequency = nan}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Penalties{.presence = nan}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Penalties{.window = -2}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Dry{.multiplier = -1}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Dry{.base = 0.5f}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Dry{.allowed_length = -1}.check(), std::invalid_argument);
  CHECK_THROWS_AS(Dry{.window = -2}.check(), std::invalid_argument);
}
