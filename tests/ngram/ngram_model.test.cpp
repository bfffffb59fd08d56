// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/language_model.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>
#include <support/naive_ngrams.hpp>
#include <support/times.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

NGramTable table_of(NaiveNGrams const& naive) {
  std::istringstream stream(naive.arpa());
  return read_arpa(stream);
}

/// What tokens stand for; "" for <unk>.
Words spellings(NGramTable const& table) {
  Words all;
  for (Word word = 0; word < table.size(); ++word) all.emplace_back(table.spelling(word));
  return all;
}

/// Natural log p of every token after `tokens`, which follow bos.
std::vector<double> naive_line(NaiveNGrams const& naive, Words const& words, std::span<Token const> tokens) {
  Words context{"<s>"};
  for (auto const token : tokens) context.push_back(words[static_cast<std::size_t>(token)]);
  std::vector<double> line;
  for (auto const& word : words) line.push_back(naive.log_prob(context, word) * std::numbers::ln10);
  return line;
}

}  // namespace

TEST_CASE("every search finds in an n-gram model what it finds among all outputs", "[ngram]") {
  for (std::uint64_t seed = 0; seed < times(60u); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto const naive = random_ngrams(random, 1 + random() % 4, 2 + random() % 3, random() % 40);
    auto const table = table_of(naive);
    NGramModel model(table);
    auto const words = spellings(table);
    auto const all = every_sequence(model.vocabulary(), 4,
                                    [&](std::span<Token const> tokens) { return naive_line(naive, words, tokens); });
    auto const best = n_best(all, 3, [](Sequence const& one) { return one.log_prob; });
    Checked checked(model, {.every = 3, .rows = 2, .tolerance = 0});
    using Requests = std::vector<Request<std::monostate, ExactSearch>>;
    auto const exact = decode(checked, Requests(1), ExactSearch{.n_best = 3, .length = {.max = 4}}).at(0);
    check_n_best(exact, best);
    BeamSearch const beam{.width = 200, .n_best = 3, .length = {.max = 4}, .penalty = {.alpha = 0}};
    check_n_best(decode(checked, std::vector<std::monostate>(2), beam).at(1), best);
    auto const greedy = decode(checked, std::vector<std::monostate>(1), Greedy{.length = {.max = 4}}).at(0);
    REQUIRE(greedy.ok());
    auto const& tokens = greedy.hypotheses.at(0).tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto const line = naive_line(naive, words, std::span(tokens).first(i));
      auto const own = line[static_cast<std::size_t>(tokens[i])];
      CHECK_THAT(static_cast<double>(greedy.hypotheses[0].log_probs[i]), WithinAbs(own, 1e-5));
      for (Token v = 0; v < model.vocabulary().size && i + 1 < 4; ++v)
        if (v != table.begin() && v != table.unknown()) CHECK(line[static_cast<std::size_t>(v)] <= own + 1e-5);
    }
    using Scored = Request<std::monostate, ForcedScore>;
    auto const scored = decode(checked, std::vector<Scored>{{.prefix = best.at(0).tokens}}, ForcedScore{}).at(0);
    CHECK_THAT(scored.hypotheses.at(0).log_prob, WithinAbs(best[0].log_prob, 1e-4));
    CHECK(checked.violations().empty());
  }
}

TEST_CASE("tokens may be other than words: unknown, several for one word, several ends", "[ngram]") {
  std::mt19937_64 random(8);
  for (std::size_t round = 0; round < times(50u); ++round) {
    auto const naive = random_ngrams(random, 1 + random() % 4, 6, random() % 60);
    auto const table = table_of(naive);
    Words const words{"w3", "", "</s>", "w0", "w3", "", "</s>", "w5"};
    std::vector<Word> numbers;
    for (auto const& word : words) numbers.push_back(word.empty() ? -1 : table.word(word));
    numbers[2] = numbers[6] = 0;  // eos: whatever stands here
    // Token 1 is bos, and unknown otherwise.
    NGramModel model(table, {.size = 8, .bos = 1, .eos = {2, 6}}, numbers, {.unknown = -0.5});
    std::vector<Token> tokens{1};
    for (auto n = random() % 6; n > 0; --n)
      tokens.push_back(static_cast<Token>(std::vector{0, 3, 4, 5, 7}[random() % 5]));
    auto expected = naive_line(naive, words, std::span(tokens).subspan(1));
    expected[1] -= 0.5, expected[5] -= 0.5;
    CHECK(difference(line_after(model, {}, tokens), expected, 1e-5) == -1);
  }
}

TEST_CASE("as a language model of texts it adds what its lines say, weighted", "[ngram]") {
  FusionWeights const weights{.weight = 0.7, .bonus = 0.25, .unknown = -0.5};
  Vocabulary const labels{.size = 8, .bos = 1, .eos = {2}}, texts{.size = 8, .bos = 1, .eos = {1}};
  std::vector<Word> const numbers{3, -1, 0, 4, 3, -1, 5, 6};
  std::mt19937_64 random(12);
  for (std::size_t round = 0; round < times(20u); ++round) {
    auto const table = table_of(random_ngrams(random, 1 + random() % 4, 6, random() % 60));
    NGramModel<> model(table, labels, numbers, weights);
    NGramModel<> const beside(table, numbers, weights);  // of frames alone
    auto state = beside.initial({.vocabulary = &texts});
    std::vector<Token> tokens{1};
    for (std::size_t i = 0; i < 5; ++i) {
      auto const line = line_after(model, {}, tokens);
      CHECK(beside.end(state) == Approx(0.7 * line[2]).margin(1e-5));
      for (Token const token : {0, 3, 4, 5, 6, 7}) {
        CHECK(beside.score(state, token) == Approx(0.7 * line[static_cast<std::size_t>(token)] + 0.25).margin(1e-5));
        CHECK(model.score(state, token) == beside.score(state, token));
      }
      tokens.push_back(std::vector{0, 3, 4, 5, 6, 7}[random() % 6]);
      state = beside.next(state, tokens.back());
    }
  }
  NGramModel<> none, frames_alone(table_of(random_ngrams(random, 2, 3, 5)), {1, 2});
  CHECK(none.initial({.vocabulary = &texts}).context == 0);
  CHECK(none.score({}, 3) + none.end({}) + none.most({}) == 0);
  for (auto* one : {&none, &frames_alone})
    CHECK(thrown([&] { decode(*one, std::vector<std::monostate>(1), Greedy{}); }).find("vocabulary.size = 0") !=
          std::string::npos);
}

TEST_CASE("rows of an n-gram model may branch", "[ngram]") {
  std::mt19937_64 random(9);
  auto const naive = random_ngrams(random, 3, 6, 60);
  NGramModel model(table_of(naive));
  auto const begin = model.vocabulary().bos;
  std::monostate const none;
  auto const* source = &none;
  Slot const slot = 2;
  model.start({&source, 1}, {&slot, 1});
  std::vector<Token> const tokens{begin, 3, 4, 5, 6, 3}, after{7};
  std::vector<std::int32_t> const depths{0, 1, 2, 2, 1, 2};
  Row const row{slot, slot, 0, tokens, 6, depths.data()};
  auto const answer = model.step({&row, 1});
  std::vector<std::vector<Token>> const paths{{begin},       {begin, 3}, {begin, 3, 4},
                                              {begin, 3, 5}, {begin, 6}, {begin, 6, 3}};
  NGramModel other(table_of(naive));
  REQUIRE(answer.rows == 6);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto const line = answer[static_cast<std::ptrdiff_t>(i)];
    CHECK(difference({line.begin(), line.end()}, line_after(other, {}, paths[i]), 0) == -1);
  }
  Row const next{slot, slot, 3, after};  // the first path is left
  auto const line = model.step({&next, 1})[0];
  CHECK(difference({line.begin(), line.end()}, line_after(other, {}, {begin, 3, 4, 7}), 0) == -1);
}

TEST_CASE("an n-gram model drafts for another, whose output stays the same", "[ngram]") {
  std::mt19937_64 random(10);
  NaiveNGrams const naive = random_ngrams(random, 3, 9, 80);
  auto const table = table_of(naive);
  Table const other{.size = 12, .order = 2};
  std::vector<Word> words(12);
  for (auto& word : words) word = static_cast<Word>(random() % static_cast<std::size_t>(table.size()));
  TableModel<everything> model(other), alone(other);
  NGramModel<std::uint64_t> draft(table, model.vocabulary(), words);
  Speculated drafted(model, DraftModel(draft));
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5};
  auto const expected = decode(alone, sources, Greedy{.length = {.max = 20}});
  auto const results = decode(drafted, sources, Blockwise<>{.block = 4, .length = {.max = 20}});
  for (std::size_t i = 0; i < sources.size(); ++i)
    CHECK(results[i].hypotheses.at(0).tokens == expected[i].hypotheses.at(0).tokens);
}

TEST_CASE("n-grams are fused line by line as they are in whole steps", "[ngram]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = table_of(random_ngrams(random, 1 + random() % 4, 12, 100));
    TableModel<everything> one({.size = 15, .scale = 4}), other({.size = 15, .scale = 4});
    std::vector<Word> words;
    for (Token v = 0; v < 15; ++v) words.push_back(static_cast<Word>(random() % 15));
    NGramModel<> grams(table, one.vocabulary(), words);
    AnyModel<std::monostate> whole{NGramModel<>(table, one.vocabulary(), words)};
    Fused fused(one, grams, {.weight = 0.7});
    Fused same(other, whole, {.weight = 0.7});
    std::vector<std::uint64_t> const sources{seed, seed + 1, seed + 2};
    BeamSearch const beam{.width = 3, .n_best = 3, .length = {.max = 8}};
    auto const results = decode(fused, sources, beam), expected = decode(same, sources, beam);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
      for (std::size_t k = 0; k < results[i].hypotheses.size(); ++k) {
        CHECK(results[i].hypotheses[k].tokens == expected[i].hypotheses[k].tokens);
        CHECK(results[i].hypotheses[k].log_probs == expected[i].hypotheses[k].log_probs);
      }
    }
  }
}

TEST_CASE("an n-gram model refuses tokens and words that do not fit", "[ngram]") {
  std::mt19937_64 random(11);
  auto const table = table_of(random_ngrams(random, 2, 3, 5));
  Vocabulary const two{.size = 2, .bos = 0, .eos = {1}};
  CHECK(thrown([&] { NGramModel<>(table, two, {1}); }) ==
        "sluice: NGramModel: words.size() = 1: must be that of the vocabulary, 2");
  CHECK(thrown([&] { NGramModel<>(table, two, {1, 6}); }) == "sluice: NGramModel: word = 6: the table has 6");
  CHECK(thrown([&] {
          NGramModel<>(table, two, {1, 1}, {.unknown = no_number});
        }).find("sluice: weights.unknown = ") == 0);
  CHECK(thrown([&] {
          NGramModel<>(table, {.size = 2, .bos = 2}, {1, 1});
        }) == "sluice: vocabulary.bos = 2: is outside the vocabulary");
}
