// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/exact_search.hpp>

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

/// What tokens write: 0 pads, 1 begins, 2 ends.
std::vector<std::string> const pieces{"", "", "", " w", " w1", "0", "1", " ", "x 0", " 1 w0 "};
Vocabulary const vocabulary{.size = 10, .bos = 1, .eos = {2}, .never = {0, 1}};
constexpr double unknown = -0.75;

/// log p of the words that tokens write, and of their end if they have one.
double naive(NaiveNGrams const& grams, std::span<Token const> tokens) {
  std::string text;
  bool ended = false;
  for (auto const token : tokens) text += pieces[static_cast<std::size_t>(token)], ended = ended || token == 2;
  std::istringstream stream(text);
  Words context{"<s>"};
  double sum = 0;
  for (std::string word; stream >> word; context.push_back(word)) {
    sum += grams.log_prob(context, word) * std::numbers::ln10;
    if (!grams.entries.contains({word})) sum += unknown;
  }
  return ended ? sum + grams.log_prob(context, "</s>") * std::numbers::ln10 : sum;
}

NGramTable table_of(NaiveNGrams const& grams) {
  std::istringstream stream(grams.arpa());
  return read_arpa(stream);
}

}  // namespace

TEST_CASE("tokens that are parts of words score as the words do, once all is over", "[ngram]") {
  for (std::uint64_t seed = 0; seed < times(20u); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto const grams = random_ngrams(random, 1 + random() % 3, 1 + random() % 12, 60);  // w0, w1, w10, ...
    WordModel<> model(table_of(grams), vocabulary, TokenBytes(pieces), {.unknown = unknown});
    Checked checked(model, {.every = 2, .rows = 2, .tolerance = 1e-5});
    std::vector<Sequence> all;
    auto const none = [](std::span<Token const>) { return std::vector<double>(10); };
    for (auto& one : every_sequence(vocabulary, 4, none)) {
      one.log_prob = one.score = naive(grams, one.tokens);
      all.push_back(one);
    }
    auto const best = n_best(all, 5, [](Sequence const& one) { return one.log_prob; });
    BeamSearch const beam{.width = 1000,
                          .n_best = 5,
                          .length = {.max = 4},
                          .penalty = {.alpha = 0},
                          .early_stopping = {.finished = 1000000}};
    auto const result = decode(checked, std::vector<std::monostate>(1), beam).at(0);
    REQUIRE(result.hypotheses.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {  // several ways to write one text score the same
      CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(best[i].log_prob, 1e-4));
      CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(naive(grams, result.hypotheses[i].tokens), 1e-4));
    }
    CHECK(checked.violations().empty());
  }
}

TEST_CASE("a word is charged while it grows, and corrected when it is over", "[ngram]") {
  NaiveNGrams grams{.order = 2};
  grams.entries = {{{"<s>"}, {-99, -0.5}}, {{"</s>"}, {-1, 0}}, {{"<unk>"}, {-3, 0}},
                   {{"w0"}, {-1.5, 0}},    {{"w1"}, {-0.5, 0}}, {{"<s>", "w0"}, {-0.25, 0}}};
  WordModel<> model(table_of(grams), vocabulary, TokenBytes(pieces), {.unknown = unknown});
  auto const score = [&](std::vector<Token> tokens, Token next) {
    tokens.insert(tokens.begin(), 1);
    return line_after(model, {}, tokens)[static_cast<std::size_t>(next)] / std::numbers::ln10;
  };
  auto const own = unknown / std::numbers::ln10;
  CHECK_THAT(score({}, 3), WithinAbs(-0.5, 1e-6));                       // " w": w1 is the likeliest that begins so
  CHECK_THAT(score({3}, 6), WithinAbs(0, 1e-6));                         // it is w1 so far
  CHECK_THAT(score({3}, 5), WithinAbs(-1, 1e-6));                        // it is w0
  CHECK_THAT(score({3, 5}, 7), WithinAbs(1.25, 1e-6));                   // over: w0 was likely here
  CHECK_THAT(score({3, 6}, 7), WithinAbs(-0.5, 1e-6));                   // over: w1 after <s>
  CHECK_THAT(score({3, 5}, 5), WithinAbs(-1.5 + own, 1e-6));             // w00 is none of them
  CHECK_THAT(score({3}, 2), WithinAbs(-0.5 - 3 + own + 0.5 - 1, 1e-6));  // "w" neither
  CHECK_THAT(score({3, 5}, 4), WithinAbs(1.25 - 0.5, 1e-6));
}

TEST_CASE("as a language model of texts it adds what its lines say, weighted, and a bonus for each word", "[ngram]") {
  std::mt19937_64 random(3);
  auto const table = table_of(random_ngrams(random, 2, 12, 60));
  WordModel<> model(table, vocabulary, TokenBytes(pieces), {.unknown = unknown});
  WordModel<> const beside(table, TokenBytes(pieces), {.weight = 0.5, .bonus = 2, .unknown = unknown});
  auto state = beside.initial({.vocabulary = &vocabulary});
  std::vector<Token> tokens{1};
  for (Token const next : {3, 5, 7, 4, 8, 9, 6}) {
    auto const line = line_after(model, {}, tokens);
    auto const& before = pieces[static_cast<std::size_t>(tokens.back())];
    auto const open = tokens.size() > 1 && before.back() != ' ';
    CHECK(beside.end(state) == Approx(0.5 * line[2] + (open ? 2 : 0)).margin(1e-5));
    for (Token token = 3; token < 10; ++token) {
      auto const& text = pieces[static_cast<std::size_t>(token)];
      auto const ended = (open && text.find(' ') != std::string::npos ? 1 : 0) + (text == "x 0" && !open ? 1 : 0) +
                         (text == " 1 w0 " ? 2 : 0);
      INFO(tokens.size() << " tokens, then '" << text << "'");
      CHECK(beside.score(state, token) == Approx(0.5 * line[static_cast<std::size_t>(token)] + 2 * ended).margin(1e-5));
    }
    tokens.push_back(next), state = beside.next(state, next);
  }
}

TEST_CASE("words are fused with a model of parts of words", "[ngram]") {
  for (std::uint64_t seed = 0; seed < times(12u); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto const grams = random_ngrams(random, 2, 6, 30);
    Table const table{.size = 10, .scale = 3, .eos_bias = 0};
    TableModel<everything> model(table);
    WordModel<> words(table_of(grams), vocabulary, TokenBytes(pieces), {.unknown = unknown});
    Fused fused(model, words, {.weight = 0.4});
    auto all = every_sequence(vocabulary, 4, [&](std::span<Token const> tokens) {
      std::vector<double> line(10);
      table.log_probs(seed, tokens, line);
      return line;
    });
    auto const best =
        n_best(all, 3, [&](Sequence const& one) { return one.log_prob + 0.4 * naive(grams, one.tokens); });
    BeamSearch const beam{.width = 1000,
                          .n_best = 3,
                          .length = {.max = 4},
                          .penalty = {.alpha = 0},
                          .early_stopping = {.finished = 1000000}};
    check_n_best(decode(fused, std::vector<std::uint64_t>{seed}, beam).at(0), best);
    // A word may turn out likelier than charged: no proof.
    auto const refused =
        thrown([&] { decode(fused, std::vector<std::uint64_t>{seed}, ExactSearch{.length = {.max = 4}}); });
    CHECK(refused.find("sluice: limits().log_prob = inf: scores of this model may rise") == 0);
    CHECK(refused.find("WordModel") != std::string::npos);
  }
}

TEST_CASE("a model of words refuses what does not fit", "[ngram]") {
  std::mt19937_64 random(1);
  auto const table = table_of(random_ngrams(random, 2, 3, 5));
  CHECK(thrown([&] { WordModel<>(table, {.size = 9, .bos = 1, .eos = {2}}, TokenBytes(pieces)); }) ==
        "sluice: WordModel: bytes.size() = 10: must be that of the vocabulary, 9");
  CHECK(thrown([&] {
          WordModel<>(table, vocabulary, TokenBytes(pieces), {.unknown = infinity});
        }).find("sluice: weights.unknown = ") == 0);
}
