// SPDX-License-Identifier: Apache-2.0
// Particles in a catalogue, against all outputs of a table: those that are items, with the model's own probabilities.
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/search/particle_sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/particle_means.hpp>
#include <support/posterior.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cstddef>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

using Itemised = ParticleSample<Indicator<InCatalogue>>;

TEST_CASE("particles in a catalogue: the model's distribution over the items that are left", "[catalogued]") {
  std::mt19937_64 random(6);
  for (auto const has_eos : {true, false}) {
    Table const table{.size = 9, .scale = 3, .eos_bias = 1, .has_eos = has_eos};
    auto const items = random_sequences(random, 40, 3, 3, 8, has_eos ? 1 : 3);
    auto const catalogue = catalogue_of(items);
    std::vector<Item> some;
    for (Item item = 0; item < catalogue.size(); ++item)
      if (item % 4 == 1) some.push_back(item);
    auto const most = has_eos ? 4 : 3;
    for (auto const& off : {SwitchedOff{}, SwitchedOff(catalogue, some)}) {
      auto const exact = accepted(table, 5, most, [&](std::vector<Token> tokens) {
        if (has_eos) tokens.pop_back();
        auto const found = std::lower_bound(items.begin(), items.end(), tokens);
        return found != items.end() && *found == tokens && !off.contains(static_cast<Item>(found - items.begin()));
      });
      CHECK(exact.size() == items.size() - static_cast<std::size_t>(off.size()));
      for (auto const proposal : {Proposal::model, Proposal::rejection, Proposal::product}) {
        INFO(name(proposal) << " " << has_eos << " " << off.size());
        check_means(table, 5,
                    Itemised{.particles = 6,
                             .proposal = proposal,
                             .length{.max = most},
                             .potential = Indicator<InCatalogue>{InCatalogue(catalogue, off)}},
                    exact);
      }
    }
  }
}

TEST_CASE("particles in a catalogue: a prefix is a condition, and one of no item is refused", "[catalogued]") {
  Table const table{.size = 9, .scale = 3, .eos_bias = 1};
  InCatalogue const rule(catalogue_of({{3, 4}, {3, 5, 6}, {3, 5, 7}, {8}}));
  Itemised const search{.particles = 64, .length{.max = 4}, .potential = Indicator<InCatalogue>{rule}};
  std::vector<TableRequest<Itemised>> requests(2);
  requests[0].prefix = {3, 5}, requests[1].prefix = {4};
  auto const results = run(table, requests, search);
  REQUIRE(results[0].ok());
  for (auto const& h : results[0].hypotheses) CHECK((rule.catalogue().item_of(h.tokens) && h.tokens[1] == 5));
  CHECK(results[1].failure == Failure::bad_request);
}
