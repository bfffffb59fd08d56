// SPDX-License-Identifier: Apache-2.0
// The shipped weights on the shipped sample against what PyTorch and plainly written searches find with them:
// examples/apps/translate/model/reference.py made tests/references/sample.json.
#include <sluice/decode/decode.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/reference_trackers.hpp>
#include <transformer/transformer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <oracle_check/constrained.hpp>
#include <span>
#include <utility>
#include <vector>

namespace sluice::test {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<Token>;

/// Of every log-probability and hidden number. Both sides are float32 and add in another order; the reference's
/// log-probabilities differ from double precision by 1.5e-5 at most.
constexpr double tolerance = 5e-5;

Json const& reference() {
  static Json const file = Json::parse(std::ifstream(SLUICE_SOURCE_DIR "/tests/references/sample.json"));
  return file;
}
Json const& sentences() { return reference().at("sentences"); }
std::int32_t longest() { return reference().at("longest").get<std::int32_t>(); }
std::int32_t width() { return reference().at("width").get<std::int32_t>(); }

std::shared_ptr<example::Weights const> const& weights() {
  static auto const loaded =
      example::Weights::load(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors");
  return loaded;
}
DenseProjection const& projection() {
  static DenseProjection const packed(weights()->projection(), weights()->bias);
  return packed;
}

template <class S, class F>
std::vector<Result> decode_all(S const& plain, F const& searching) {
  example::Transformer model(weights());
  std::vector<Request<Tokens, S>> requests;
  for (auto const& one : sentences())
    requests.push_back({.source = one.at("source").get<Tokens>(), .search = searching(one)});
  return decode(model, requests, plain, Batched{.size = 16}, projection());
}
template <class S>
std::vector<Result> decode_all(S const& search) {
  return decode_all(search, [&](Json const&) { return search; });
}

/// The list of sentence `i`: the same tokens, log-probabilities and scores in the same order.
void check_list(std::size_t i, Result const& result, Json const& expected) {
  INFO("sentence " << i);
  REQUIRE(result.ok());
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t h = 0; h < expected.size(); ++h) {
    INFO("hypothesis " << h);
    auto const& found = result.hypotheses[h];
    auto const log_probs = expected[h].at("log_probs").get<std::vector<double>>();
    REQUIRE(found.tokens == expected[h].at("tokens").get<Tokens>());
    CHECK(found.finished == (found.tokens.back() == 2));
    double largest = 0, sum = 0;
    for (std::size_t t = 0; t < log_probs.size(); ++t) {
      largest = std::max(largest, std::abs(static_cast<double>(found.log_probs.at(t)) - log_probs[t]));
      sum += log_probs[t];
    }
    CHECK(largest <= tolerance);
    CHECK(std::abs(found.log_prob - sum) <= tolerance * static_cast<double>(log_probs.size()));
    if (expected[h].contains("score"))
      CHECK(std::abs(found.score - expected[h].at("score").get<double>()) <= tolerance);
  }
}

}  // namespace

TEST_CASE("hidden vectors and log-probabilities of the shipped weights are those of the reference", "[transformer]") {
  example::Transformer model(weights());
  PackedMatrix const output(weights()->projection(), weights()->bias);
  auto const size = model.vocabulary().size;
  double hidden = 0, log_prob = 0;
  REQUIRE(reference().at("checks").size() == 3);
  for (auto const& check : reference().at("checks")) {
    auto const source = sentences().at(check.at("sentence").get<std::size_t>()).at("source").get<Tokens>();
    std::vector<Token> const* const sources[] = {&source};
    Slot const slots[] = {0};
    model.start(sources, slots);
    auto const target = check.at("target").get<Tokens>();
    auto const lines = static_cast<std::int32_t>(target.size());
    Row const rows[] = {{0, 0, 0, target, lines}};
    auto const answer = model.step(rows);
    std::vector<float> logits(target.size() * static_cast<std::size_t>(size));
    output.multiply(answer, {logits.data(), lines, size, size});
    for (std::size_t t = 0; t < target.size(); ++t) {
      auto const vector = answer[static_cast<std::ptrdiff_t>(t)];
      auto const& expected = check.at("hidden").at(t);
      REQUIRE(vector.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        hidden = std::max(hidden, std::abs(static_cast<double>(vector[i]) - expected[i].get<double>()));
      auto const line = std::span(logits).subspan(t * static_cast<std::size_t>(size), static_cast<std::size_t>(size));
      double sum = 0;
      for (auto const logit : line) sum += std::exp(static_cast<double>(logit));
      auto const& best = check.at("top5").at(t);
      CHECK(std::ranges::max_element(line) - line.begin() == best[0][0].get<std::ptrdiff_t>());
      for (auto const& entry : best)
        log_prob = std::max(log_prob, std::abs(static_cast<double>(line[entry[0].get<std::size_t>()]) - std::log(sum) -
                                               entry[1].get<double>()));
    }
  }
  CHECK(hidden < tolerance);
  CHECK(log_prob < tolerance);
}

TEST_CASE("greedy search finds the reference's tokens", "[transformer]") {
  auto const results = decode_all(Greedy{.length = {.max = longest()}});
  REQUIRE(results.size() == 60);
  for (std::size_t i = 0; i < results.size(); ++i)
    check_list(i, results[i], Json::array({sentences()[i].at("greedy")}));
}

TEST_CASE("beam search finds the reference's lists", "[transformer]") {
  auto const results =
      decode_all(BeamSearch{.width = width(), .n_best = width(), .length = {.min = 1, .max = longest()}});
  REQUIRE(results.size() == 60);
  for (std::size_t i = 0; i < results.size(); ++i) check_list(i, results[i], sentences()[i].at("beam"));
}

TEST_CASE("constrained beam search finds the reference's lists under fairseq's automaton", "[transformer]") {
  auto search = presets::fairseq_constrained<FairseqUnordered>(width());
  search.beam.n_best = width(), search.beam.length.max = longest();
  auto const results = decode_all(search, [&](Json const& one) {
    search.constraints = FairseqUnordered(one.at("constraints").get<std::vector<Phrase>>());
    return search;
  });
  REQUIRE(results.size() == 60);
  for (std::size_t i = 0; i < results.size(); ++i) check_list(i, results[i], sentences()[i].at("constrained"));
}

TEST_CASE("every sentence of the sample gets its constraints", "[transformer]") {
  ConstrainedBeamSearch<Phrases> search{.beam = {.width = 5, .n_best = 5, .length = {.max = longest()}}};
  auto const results = decode_all(search, [&](Json const& one) {
    search.constraints = Phrases(one.at("constraints").get<std::vector<Phrase>>());
    return search;
  });
  std::size_t hypotheses = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("sentence " << i);
    REQUIRE(results[i].ok());
    for (auto const& h : results[i].hypotheses) {
      ++hypotheses;
      CHECK(h.finished);
      CHECK(h.constraints_met == h.constraints_total);
      CHECK(oracle_check::has_all(h.tokens, sentences()[i].at("constraints").get<std::vector<Phrase>>()));
    }
  }
  CHECK(hypotheses >= 4 * results.size());
}

}  // namespace sluice::test
