// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/schedule.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <support/chi_squared.hpp>
#include <support/decoding.hpp>
#include <support/guessing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Scheme = WatermarkScheme;
using CheckedGuess = CheckedTable<everything>;
template <class Choice>
using Drafted = Speculated<CheckedGuess, DraftModel<CheckedGuess, LogSoftmaxTopK, Choice>>;

}  // namespace

TEST_CASE("marked blocks are what Sample marks with the same seed, whoever guesses", "[watermark]") {
  std::mt19937_64 random(1);
  std::size_t right = 0, rounds = 0, tokens_greedy = 0, rounds_greedy = 0;
  for (int round = 0; round < 40; ++round) {
    Table const table{.size = 10, .scale = 4, .eos_bias = -2, .eos_slope = 0.1, .order = 2};
    constexpr Scheme schemes[] = {Scheme::gumbel, Scheme::synthid, Scheme::red_green};
    acceptance::Sampling rule{{.temperature = 0.75f,
                               .watermark = {.scheme = schemes[round % 3],
                                             .prf = round % 2 == 0 ? WatermarkPrf::sluice : WatermarkPrf::philox,
                                             .key = WatermarkKey(random()),
                                             .width = static_cast<std::int32_t>(1 + random() % 3)}}};
    if (round % 6 == 0) rule.sample.watermark.second = 0.4f;
    if (random() % 2 == 0) rule.sample.top_k = static_cast<std::int32_t>(2 + random() % 5);
    std::vector<TableRequest<Sample>> plain(6);
    std::vector<TableRequest<Blockwise<acceptance::Sampling>>> requests(6);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      plain[i].source = requests[i].source = random();
      if (i % 2 == 0) plain[i].prefix = requests[i].prefix = {3, 4, 3};
      if (i % 3 == 0) plain[i].prompt = requests[i].prompt = {bos, 5, 6};
    }
    CheckedGuess model{TableModel<everything>(table)}, draft{TableModel<everything>(table)};
    auto const expected = decode(model, plain,
                                 Sample{.temperature = rule.sample.temperature,
                                        .top_k = rule.sample.top_k,
                                        .length = {.max = 20},
                                        .watermark = rule.sample.watermark});
    Blockwise<acceptance::Sampling> const search{
        .block = static_cast<std::int32_t>(1 + random() % 6), .accept = rule, .length = {.max = 20}};
    auto const check = [&](auto& proposing, std::size_t& its_tokens, std::size_t& its_rounds) {
      auto const found = decode(proposing, requests, search, Streaming{.size = 4});
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(same_outputs(found[i], expected[i]));
        its_tokens += found[i].hypotheses.at(0).tokens.size(), its_rounds += found[i].hypotheses[0].blocks.size();
      }
    };
    std::size_t unused = 0;
    Drafted<acceptance::Sampling> twin(model, DraftModel(draft, {}, rule));
    Drafted<acceptance::Exact> greedy(model, DraftModel(draft));
    check(twin, right, rounds);
    check(greedy, tokens_greedy, rounds_greedy);
    Guessing terrible(greedy, Guesses::random, 3);
    check(terrible, unused, unused);
    CHECK(model.report() == "");
    CHECK(draft.report() == "");
  }
  // A draft that marks in the same way is accepted more often than one that takes its best token.
  CHECK(right * rounds_greedy > tokens_greedy * rounds);
}

TEST_CASE("averaged over keys, marks under rejection leave the model's distribution", "[watermark]") {
  Table const table{.size = 6, .scale = 2, .order = 1, .has_eos = false};
  Table const other{.size = 6, .scale = 3, .order = 0, .has_eos = false};
  constexpr std::size_t texts = 12000, length = 4;
  for (auto const branches : {1, 2}) {
    TableModel<everything> model(table), draft(other);
    std::vector<std::int64_t> counts(81);
    // A key for each text, so that texts are independent.
    for (std::size_t k = 0; k < texts; ++k) {
      acceptance::Rejection const rule{
          .watermark = {.scheme = Scheme::gumbel, .key = WatermarkKey(derive(7, k)), .width = 1, .second = 0.3f}};
      Speculated drafted(model, DraftModel(draft, {}, rule));
      std::vector<TableRequest<Blockwise<acceptance::Rejection>>> const requests{{.source = 1, .seed = derive(k, 1)}};
      Blockwise<acceptance::Rejection> const search{
          .block = 3, .accept = rule, .length = {.max = static_cast<std::int32_t>(length)}, .branches = branches};
      for (auto const& result : decode(drafted, requests, search)) {
        std::size_t cell = 0;
        for (auto const token : result.hypotheses.at(0).tokens) cell = cell * 3 + static_cast<std::size_t>(token - 3);
        ++counts[cell];
      }
    }
    std::vector<double> line(6);
    std::vector<double> expected(81);
    for (std::size_t cell = 0; cell < 81; ++cell) {
      std::vector<Token> text;
      for (std::size_t n = 0, rest = cell; n < length; ++n, rest /= 3)
        text.insert(text.begin(), static_cast<Token>(3 + rest % 3));
      double p = 1;
      for (std::size_t n = 0; n < length; ++n) {
        table.log_probs(1, std::span(text).first(n), line);
        p *= std::exp(line[static_cast<std::size_t>(text[n])]);
      }
      expected[cell] = p;
    }
    INFO(branches);
    CHECK(chi_squared(counts, expected).z < 4);
  }
}

TEST_CASE("the same over a thousand tokens", "[watermark]") {
  Table const table{.size = 1203, .scale = 3, .order = 0, .has_eos = false};
  // The same order of tokens, but surer: of its 16 best tokens, some are guessed too often and others too rarely.
  Table const other{.size = 1203, .scale = 12, .order = 0, .has_eos = false};
  TableModel<everything> model(table), draft(other);
  constexpr float temperature = 0.05f;
  std::vector<double> p(1203);
  table.logits(1, {}, p);
  double sum = 0;
  for (auto& x : p) x = std::exp(x / static_cast<double>(temperature)), sum += x;
  for (auto& x : p) x /= sum;
  std::vector<std::int64_t> counts(p.size());
  std::size_t tokens = 0, rounds = 0;
  for (std::size_t k = 0; k < 4000; ++k) {
    acceptance::Rejection const rule{
        .temperature = temperature,
        .watermark = {.scheme = Scheme::gumbel, .key = WatermarkKey(derive(17, k)), .width = 1, .second = 0.5f}};
    Speculated drafted(model, DraftModel(draft, {}, rule));
    std::vector<TableRequest<Blockwise<acceptance::Rejection>>> const requests{{.source = 1, .seed = derive(k, 2)}};
    Blockwise<acceptance::Rejection> const search{.block = 3, .accept = rule, .length = {.max = 4}};
    for (auto const& result : decode(drafted, requests, search)) {
      auto const& h = result.hypotheses.at(0);
      for (auto const token : h.tokens) ++counts.at(static_cast<std::size_t>(token));
      tokens += h.tokens.size(), rounds += h.blocks.size();
    }
  }
  check_distribution(counts, p, 60);
  CHECK(rounds * 10 < tokens * 9);  // some guesses were accepted
}

TEST_CASE("marks survive rejection, and a draft without the key leaves those of what remains", "[watermark]") {
  Table const table{.size = 60, .scale = 4, .has_eos = false};
  Table const other{.size = 60, .scale = 4, .order = 1, .has_eos = false};
  acceptance::Rejection const rule{
      .watermark = {.scheme = Scheme::gumbel, .key = WatermarkKey(5), .width = 2, .second = 0.5f}};
  Blockwise<acceptance::Rejection> const search{.block = 4, .accept = rule, .length = {.max = 200}};
  std::vector<TableRequest<Blockwise<acceptance::Rejection>>> requests(5);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].source = i;
  auto const logs = [&](Table const& drafts, acceptance::Rejection const& its) {
    CheckedGuess model{TableModel<everything>(table)}, draft{TableModel<everything>(drafts)};
    Drafted<acceptance::Rejection> drafted(model, DraftModel(draft, {}, its));
    double sum = 0;
    for (auto const& result : decode(drafted, requests, search)) {
      auto const& text = result.hypotheses.at(0).tokens;
      sum += std::log(detect_watermark(text, rule.watermark).p_value);
      auto another = rule.watermark;
      another.key = WatermarkKey(6);
      CHECK(detect_watermark(text, another).p_value > 1e-4);
      if (its.watermark.on()) continue;
      // Of a draft without the key: nothing is drawn with the first key, what remains with the second.
      Watermark one{.scheme = Scheme::gumbel, .key = detail::derived_key(WatermarkKey(5), 'a'), .width = 2};
      CHECK(detect_watermark(text, one).p_value > 1e-4);
      one.key = detail::derived_key(WatermarkKey(5), 'b');
      CHECK(detect_watermark(text, one).p_value < 1e-4);
    }
    CHECK(model.report() == "");
    return sum / static_cast<double>(requests.size());
  };
  CHECK(logs(table, rule) < std::log(1e-6));
  CHECK(logs(other, rule) < std::log(1e-6));
  auto const rejected = logs(other, {}),
             accepted = logs(table, {});  // without the key; more of the second are accepted
  CHECK(rejected < std::log(1e-6));
  CHECK(accepted > rejected / 2);
}

TEST_CASE("rejection refuses marks that change what guesses are judged by", "[watermark]") {
  auto const says = [](Watermark const& options) -> std::string {
    try {
      acceptance::Rejection{.watermark = options}.check();
    } catch (std::invalid_argument const& e) {
      return e.what();
    }
    return "";
  };
  WatermarkKey const key(3);
  CHECK(says({.scheme = Scheme::gumbel, .key = key, .second = 0.5f}) == "");
  CHECK(
      says({.scheme = Scheme::gumbel, .key = key}) ==
      "sluice: accept.watermark.second = 0.000000: must be above 0: what remains after a guess must not be drawn with "
      "the key that drew the guess");
  CHECK(
      says({.scheme = Scheme::synthid, .key = key}) ==
      "sluice: accept.watermark.scheme = synthid: changes the distribution by which guesses are judged: choose gumbel, "
      "or accept by acceptance::Sampling");
  CHECK(says({.scheme = Scheme::gumbel, .prf = WatermarkPrf::philox, .key = key, .second = 0.5f}) ==
        "sluice: accept.watermark.prf = philox: would need the whole line for what remains of it: choose sluice, or "
        "accept by acceptance::Sampling");
  CHECK_THROWS_AS((acceptance::Sampling{{.watermark = {.scheme = Scheme::gumbel}}}.check()), std::invalid_argument);
}
