// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/query.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/shortlist_projection.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/hidden_model.hpp>
#include <support/output_layer.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Expander<ProbeProjection, Hidden<float>>);

constexpr std::int32_t vocabulary = 500;

}  // namespace

TEST_CASE("the probes of ProbeProjection are those of DenseProjection, bit for bit", "[probe_projection]") {
  std::uint64_t few = 0, lines = 0;
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      OutputLayer layer(seed, vocabulary, 24);
      auto dense = layer.dense(precision);
      ProbeProjection probing(layer.view(), layer.bias, dense.weights());
      // Lines with similar probes, or different ones; some of them request something else.
      auto const most = 1 + below(layer.random, seed % 3 == 0 ? 90 : 4);
      std::vector<std::vector<Token>> probes;
      std::vector<Query> queries;
      std::vector<Group> groups;
      auto const range = 1 + below(layer.random, seed % 2 == 0 ? 12 : vocabulary);
      for (auto g = 1 + below(layer.random, 3); g > 0; --g) {
        groups.push_back({.lines = static_cast<std::int32_t>(1 + below(layer.random, 20))});
        for (std::int32_t i = 0; i < groups.back().lines; ++i) {
          auto& tokens = probes.emplace_back();
          for (auto n = below(layer.random, most); n > 0; --n)
            tokens.push_back(static_cast<Token>(below(layer.random, range)));
          if (below(layer.random, 2) == 0) std::ranges::sort(tokens);
        }
      }
      for (auto const& tokens : probes) {
        queries.push_back({.best = 0, .probes = tokens, .normalise = false});
        if (below(layer.random, 9) == 0) queries.back().best = 3;
        if (below(layer.random, 9) == 0) queries.back().normalise = true;
      }
      auto const hidden = normal_numbers(layer.random, std::ssize(queries) * 24);
      auto const rows = sluice::hidden(hidden.data(), std::ssize(queries), 24);
      auto const expected = dense.expand(rows, queries, groups);
      auto const found = probing.expand(rows, queries, groups);
      REQUIRE(found.size() == queries.size());
      for (std::size_t i = 0; i < queries.size(); ++i) {
        CAPTURE(seed, i, queries[i].best, queries[i].normalise);
        REQUIRE(std::ranges::equal(found[i].probes, expected[i].probes));
        REQUIRE(std::ranges::equal(found[i].best, expected[i].best));
      }
      few += probing.logits(), lines += queries.size();
    }
  CHECK(few > 0);
  CHECK(few < lines * vocabulary / 4);
}

TEST_CASE("a line of which a probe is no number is not valid, its neighbours are", "[probe_projection]") {
  OutputLayer layer(3, 4000, 8);
  auto weights = layer.weights;
  weights[7 * 11] = std::numeric_limits<float>::quiet_NaN();
  ProbeProjection probing({weights.data(), 4000, 8, 11});
  std::vector<Token> const with{3, 7}, without{3, 8};
  std::vector<Query> const queries{{.best = 0, .probes = with, .normalise = false},
                                   {.best = 0, .probes = without, .normalise = false},
                                   {.best = 0, .probes = {}, .normalise = false}};
  auto const hidden = normal_numbers(layer.random, 3 * 8);
  auto const found = probing.expand(sluice::hidden(hidden.data(), 3, 8), queries, {});
  CHECK_FALSE(found[0].valid);
  CHECK(found[0].probes.empty());
  CHECK(found[1].valid);
  CHECK(found[1].probes.size() == 2);
  CHECK((found[2].valid && found[2].probes.empty()));
  CHECK_THROWS_AS(probing.expand(sluice::hidden(hidden.data(), 3, 7), queries, {}), std::invalid_argument);
}

TEST_CASE("a beam in a catalogue finds the same with the children's logits alone", "[probe_projection]") {
  std::uint64_t made = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    OutputLayer layer(seed, vocabulary, 16);
    auto const all = random_sequences(layer.random, 400, 4, 3, vocabulary - 1, 2);
    InCatalogue const items(catalogue_of(all));
    ProbeProjection const probing(layer.view(), layer.bias);
    for (auto const among : {Among::children, Among::all_tokens}) {
      CatalogueBeam const search{{.width = 12, .n_best = 12}, items, among};
      std::vector<Request<std::uint64_t, CatalogueBeam>> requests;
      for (std::uint64_t i = 0; i < 6; ++i) requests.push_back({.source = seed * 100 + i});
      HiddenModel<everything> model(vocabulary, 16);
      auto const expected = decode(model, requests, search, Batched{}, layer.dense());
      Decoder decoder(model, search, Streaming{}, probing);
      for (auto const& request : requests) decoder.submit(request);
      while (decoder.step()) {
      }
      Result found;
      std::size_t count = 0;
      while (decoder.poll(found)) {
        ++count;
        REQUIRE(found.ok());
        REQUIRE(found.hypotheses.size() == 12);
        REQUIRE(same_outputs(found, expected[found.id]));
        REQUIRE(same_outputs(found, decode(model, std::vector{requests[found.id]}, search, Batched{}, probing)[0]));
      }
      REQUIRE(count == 6);
      if (among == Among::all_tokens) CHECK(decoder.expander().logits() == 0);
      else made += decoder.expander().logits();
    }
  }
  CHECK(made > 0);
}
