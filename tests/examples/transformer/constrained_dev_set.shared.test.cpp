// SPDX-License-Identifier: Apache-2.0
// The first 200 development sentences under constraints, against what fairseq's LexicallyConstrainedBeamSearch (unordered)
// found with the same float32 weights; and under the library's own automaton and search.
#include <sluice/decode/decode.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <support/catch.hpp>
#include <support/reference_trackers.hpp>
#include <transformer/transformer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <oracle_check/constrained.hpp>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Json = nlohmann::json;
using Tokens = std::vector<Token>;
std::filesystem::path const folder = std::filesystem::path(SLUICE_SHARED_DIR) / "model";

bool missing() {
  if (std::filesystem::exists(folder / "reference.json")) return false;
  std::cout << "SKIPPED: " << folder << " is missing\n";
  return true;
}

/// The sentences that have constraints.
Json const& reference() {
  static Json const sentences = [] {
    auto const all = Json::parse(std::ifstream(folder / "reference.json"));
    auto chosen = Json::array();
    for (auto const& one : all.at("dev"))
      if (one.contains("constrained10")) chosen.push_back(one);
    return chosen;
  }();
  return sentences;
}

template <class A>
std::vector<Result> decode_all(ConstrainedBeamSearch<A> search) {
  auto const weights = example::Weights::load(folder / "model.safetensors");
  DenseProjection const projection(weights->projection(), weights->bias);
  example::Transformer model(weights);
  std::vector<Request<Tokens, ConstrainedBeamSearch<A>>> requests;
  for (auto const& one : reference()) {
    search.constraints = A(one.at("constraints").get<std::vector<Phrase>>());
    requests.push_back({.source = one.at("source").get<Tokens>(), .search = search});
  }
  return decode(model, requests, search, Batched{.size = 16}, projection);
}

}  // namespace

TEST_CASE("the constrained n-best lists come out as the reference says", "[constrained_dev_set]") {
  if (missing()) return;
  auto search = presets::fairseq_constrained<FairseqUnordered>(10);
  search.beam.n_best = 10, search.beam.length.max = 201;
  auto const results = decode_all(search);
  REQUIRE(results.size() == 200);
  std::size_t best = 0, same = 0, scores = 0, all = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& found = results[i].hypotheses;
    auto const& expected = reference()[i].at("constrained10");
    REQUIRE(results[i].ok());
    best += found[0].tokens == expected[0].at("tokens").get<Tokens>();
    all += expected.size();
    for (std::size_t h = 0; h < std::min(expected.size(), found.size()); ++h) {
      if (found[h].tokens != expected[h].at("tokens").get<Tokens>()) continue;
      ++same;
      scores += std::abs(found[h].score - expected[h].at("score").get<double>()) < 1e-3;
    }
  }
  std::cout << "constrained, beam 10: " << best << " of " << results.size() << " best, " << same << " of " << all
            << " of the lists\n";
  CHECK(best * 100 >= 99 * results.size());
  CHECK(same * 100 >= 98 * all);
  CHECK(scores == same);
}

TEST_CASE("every sentence gets its constraints", "[constrained_dev_set]") {
  if (missing()) return;
  ConstrainedBeamSearch<Phrases> search{.beam = {.width = 5, .n_best = 5}};
  std::size_t hypotheses = 0;
  auto const results = decode_all(search);
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const phrases = reference()[i].at("constraints").get<std::vector<Phrase>>();
    REQUIRE(results[i].ok());
    for (auto const& h : results[i].hypotheses) {
      ++hypotheses;
      CHECK(h.finished);
      CHECK(h.constraints_met == h.constraints_total);
      CHECK(oracle_check::has_all(h.tokens, phrases));
    }
  }
  std::cout << "constrained, beam 5: " << hypotheses << " hypotheses\n";
}
