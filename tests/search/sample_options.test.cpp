// SPDX-License-Identifier: Apache-2.0
// Sampler options: defaults, bounds, order; and what a chain requests from a line.
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto infinity = std::numeric_limits<float>::infinity();

void refused(auto const& options, std::string const& name) {
  try {
    options.check();
  } catch (std::invalid_argument const& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).starts_with("sluice: " + name + " = "));
    return;
  }
  FAIL("accepted: " << name);
}

/// A chain's query with noise, for a vocabulary of 9.
Query asked(Sample const& options, std::uint64_t noise) {
  auto const chain = options.chain();
  Query query{.best = 7};
  chain.ask(query, 9, chain.begin(), noise);
  CHECK((query.normalise && !query.entropy && query.probes.empty()));
  return query;
}
bool same(Query const& a, Query const& b) {
  return a.best == b.best && a.mass == b.mass && a.within == b.within && a.typical == b.typical &&
         a.deviations == b.deviations && a.at_least == b.at_least && a.temperature == b.temperature &&
         a.noise == b.noise;
}

}  // namespace

TEST_CASE("samplers do nothing by default", "[sample]") {
  Sample const sample;
  CHECK((sample.temperature == 1 && sample.top_n_sigma == 0 && sample.min_keep == 1 && sample.samples == 1));
  CHECK((Xtc{}.threshold == 0.10f && DynamicTemperature{}.exponent == 1 && Mirostat{}.eta == 0.10f));
  CHECK((AdaptiveP{}.decay == 0.90f && StochasticBeam{}.width == 5 && StochasticBeam{}.temperature == 1));
  detail::Truncation const truncation;
  CHECK((truncation.off() && truncation.top_k == 0 && truncation.top_p == 1));
  CHECK((truncation.min_p == 0 && truncation.typical == 1));
  CHECK((sample.top_k == 0 && sample.top_p == 1 && sample.min_p == 0 && sample.typical == 1));
  auto const chain = sample.chain();
  CHECK(chain.plain());
  CHECK_NOTHROW(chain.check());
  for (auto const sampler : SamplerOrder::hugging_face().samplers()) CHECK_FALSE(chain.on(sampler));
  CHECK_FALSE(chain.on(static_cast<Sampler>(99)));
  CHECK(std::string(name(static_cast<Sampler>(99))) == "unknown");
}

TEST_CASE("a truncation is off where none of its cuts is on", "[sample]") {
  for (auto const& on : {detail::Truncation{.top_k = 1}, detail::Truncation{.top_p = 0.99f},
                         detail::Truncation{.min_p = 0.01f}, detail::Truncation{.typical = 0.99f}})
    CHECK_FALSE(on.off());
}

TEST_CASE("sample is plain where it is a temperature and then a truncation", "[sample]") {
  for (auto const& plain :
       {Sample{.temperature = 0.5f}, Sample{.top_k = 3},
        Sample{.temperature = 2, .top_k = 3, .top_p = 0.5f, .min_p = 0.1f, .typical = 0.9f},
        Sample{.top_p = 0.5f, .typical = 0.5f}, Sample{.xtc = {.probability = 1, .threshold = 0.6f}, .min_keep = 0}})
    CHECK(plain.chain().plain());
  for (auto const& other :
       {Sample{.top_n_sigma = 0.5f}, Sample{.xtc = {.probability = 0.1f}},
        Sample{.dynamic_temperature = {.range = 0.5f}}, Sample{.mirostat = {.tau = 0.5f}},
        Sample{.adaptive_p = {.target = 0}}, Sample{.adaptive_p = {.target = 0.5f}}, Sample{.min_keep = 2},
        Sample{.temperature = 2, .top_k = 3, .order = SamplerOrder::llama_cpp()},
        Sample{.top_k = 3, .top_p = 0.5f, .order = {Sampler::top_p, Sampler::top_k}},
        Sample{.min_p = 0.5f, .typical = 0.5f, .order = {Sampler::typical, Sampler::min_p}}})
    CHECK_FALSE(other.chain().plain());
}

TEST_CASE("options just within their bounds are taken, those beyond are refused", "[sample]") {
  for (auto const& good : {Sample{.top_k = 1}, Sample{.top_p = 0.001f}, Sample{.min_p = 1}, Sample{.typical = 0.001f}})
    CHECK_NOTHROW(good.check());
  refused(Sample{.top_k = -1}, "top_k");
  for (auto const wrong : {-0.5f, 0.0f, 1.5f, infinity}) {
    refused(Sample{.top_p = wrong}, "top_p");
    refused(Sample{.typical = wrong}, "typical");
    if (wrong != 0) refused(Sample{.min_p = wrong}, "min_p");
  }
  for (auto const& good :
       {Sample{.xtc = {.probability = 1, .threshold = 1}}, Sample{.xtc = {.probability = 0.5f, .threshold = 0}},
        Sample{.mirostat = {.tau = 0.5f}}, Sample{.adaptive_p = {.target = 1, .decay = 0.99f}},
        Sample{.adaptive_p = {.target = 0, .decay = 0}}, Sample{.min_keep = 0}, Sample{.top_k = 3, .min_keep = 3},
        Sample{.temperature = 0.01f}})
    CHECK_NOTHROW(good.check());
  for (auto const wrong : {-0.5f, infinity}) {
    refused(Sample{.temperature = wrong}, "temperature");
    refused(Sample{.top_n_sigma = wrong}, "top_n_sigma");
    refused(Sample{.xtc = {.probability = wrong}}, "xtc.probability");
    refused(Sample{.xtc = {.threshold = wrong}}, "xtc.threshold");
    refused(Sample{.dynamic_temperature = {.range = wrong}}, "dynamic_temperature.range");
    refused(Sample{.dynamic_temperature = {.exponent = wrong}}, "dynamic_temperature.exponent");
    refused(Sample{.mirostat = {.tau = wrong}}, "mirostat.tau");
    refused(Sample{.mirostat = {.eta = wrong}}, "mirostat.eta");
    refused(Sample{.adaptive_p = {.decay = wrong}}, "adaptive_p.decay");
  }
  refused(Sample{.adaptive_p = {.target = 1.01f}}, "adaptive_p.target");
  refused(Sample{.adaptive_p = {.decay = 0.995f}}, "adaptive_p.decay");
  for (auto const target : {0.0f, 0.5f})
    refused(Sample{.mirostat = {.tau = 0.5f}, .adaptive_p = {.target = target}}, "adaptive_p.target");
  refused(Sample{.min_keep = -1}, "min_keep");
  refused(Sample{.top_k = 1, .min_keep = 2}, "min_keep");
  CHECK_NOTHROW(StochasticBeam{.width = 1}.check());
  refused(StochasticBeam{.width = 0}, "width");
  refused(StochasticBeam{.width = -1}, "width");
  refused(StochasticBeam{.temperature = -0.5f}, "temperature");
  refused(StochasticBeam{.temperature = infinity}, "temperature");
}

TEST_CASE("an order holds each sampler once", "[sample]") {
  using enum Sampler;
  SamplerOrder order{};
  CHECK((order.samplers().empty() && !order.contains(temperature)));
  std::vector<Sampler> expected;
  for (auto const sampler : {xtc, top_k, temperature, min_p, typical, top_p, top_n_sigma}) {
    CHECK_FALSE(order.contains(sampler));
    order.push_back(sampler), expected.push_back(sampler);
    CHECK((order.contains(sampler) && std::ranges::equal(order.samplers(), expected)));
    CHECK_NOTHROW(order.check());
  }
  CHECK_THROWS_WITH(order.push_back(xtc), "sluice: order = 8: lists more samplers than there are");
  CHECK_THROWS_WITH(SamplerOrder({xtc, xtc, xtc, xtc, xtc, xtc, xtc, xtc}),
                    "sluice: order = 8: lists more samplers than there are");
  CHECK_THROWS_AS(SamplerOrder({xtc, top_k, xtc}).check(), std::invalid_argument);
}

TEST_CASE("a truncation asks for the list that its first cut leaves", "[sample]") {
  auto const list_of = [](detail::Truncation const& truncation) {
    Query query{.best = 7};
    truncation.ask(query, 9);
    return query;
  };
  CHECK(same(list_of({}), {.best = 9}));
  CHECK(same(list_of({.top_k = 1}), {.best = 1}));
  CHECK(same(list_of({3, 0.5f, 0.25f, 0.75f}), {.best = 3}));
  CHECK(same(list_of({0, 0.5f, 0.25f, 0.75f}), {.best = 0, .mass = 0.5f}));
  CHECK(same(list_of({0, 1, 0.25f, 0.75f}), {.best = 0, .within = 0.25f}));
  CHECK(same(list_of({0, 1, 0, 0.75f}), {.best = 0, .typical = 0.75f}));
}

TEST_CASE("a chain asks a line for no more than it needs", "[sample][chain]") {
  for (std::uint64_t const noise : {0u, 5u}) {  // 0: several samples draw from the line
    INFO("noise " << noise);
    auto const drawn = noise == 0 ? Query{.best = 9} : Query{.best = 1, .noise = noise};
    auto hot = drawn;
    hot.temperature = 2;
    CHECK(same(asked({}, noise), drawn));
    CHECK(same(asked({.temperature = 2}, noise), hot));
    CHECK(same(asked({.temperature = 2, .dynamic_temperature = {.range = 1}}, noise), {.best = 9}));
    CHECK(same(asked({.top_n_sigma = 2}, noise), {.best = 1, .deviations = 2}));
    for (std::int32_t const keep : {0, 1, 3}) {
      auto const least = std::max(keep, 1);
      INFO("min_keep " << keep);
      CHECK(same(asked({.top_k = 4, .min_keep = keep}, noise), {.best = 4}));
      CHECK(same(asked({.top_p = 0.5f, .min_keep = keep}, noise), {.best = least, .mass = 0.5f}));
      CHECK(same(asked({.min_p = 0.5f, .min_keep = keep}, noise), {.best = least, .within = 0.5f}));
      auto const typical = keep > 1 ? Query{.best = 9} : Query{.best = 0, .typical = 0.5f};  // the best may not stay
      CHECK(same(asked({.typical = 0.5f, .min_keep = keep}, noise), typical));
    }
    // The first cut is made by the line, except for what the line cannot do.
    CHECK(same(asked({.temperature = 2, .top_p = 0.5f, .typical = 0.5f}, noise),
               {.best = 1, .mass = 0.5f, .temperature = 2}));
    CHECK(same(asked({.temperature = 2, .top_p = 0.5f, .order = SamplerOrder::llama_cpp()}, noise),
               {.best = 1, .mass = 0.5f}));
    auto const certain = Xtc{.probability = 1}, never = Xtc{.probability = 1e-9f};
    CHECK(same(asked({.temperature = 2, .xtc = certain}, noise), {.best = 9, .temperature = 2}));
    CHECK(same(asked({.temperature = 2, .xtc = never}, noise), hot));
    CHECK(same(asked({.xtc = never, .adaptive_p = {.target = 0}}, noise), {.best = 9}));
    CHECK(same(asked({.adaptive_p = {.target = 0}}, noise), {.best = 9}));
    CHECK(same(asked({.temperature = 2, .mirostat = {.tau = 0.5f}}, noise),
               {.best = 1, .at_least = 0.5f, .temperature = 2}));
    CHECK(same(asked({.top_k = 3, .mirostat = {.tau = 0.5f}}, noise), {.best = 3}));
    CHECK(same(asked({.mirostat = {.tau = 100}}, noise), {.best = 1, .at_least = std::numeric_limits<float>::min()}));
  }
}
