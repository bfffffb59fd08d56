// SPDX-License-Identifier: Apache-2.0
// Chains of samplers against the same formulas over whole lines, and the tokens drawn from them.
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>
#include <support/sampler_reference.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using ChainRequest = TableRequest<Sample>;

/// All orders of stateless samplers in which no cut occurs twice.
std::vector<Sample> const& chains() {
  static std::vector<Sample> const all{
      {.top_n_sigma = 0.8f},
      {.temperature = 1.5f, .top_n_sigma = 1, .order = SamplerOrder::llama_cpp()},
      {.xtc = {.probability = 0.5f}},
      {.temperature = 2, .xtc = {.probability = 0.4f}, .order = SamplerOrder::llama_cpp()},
      {.top_k = 7, .xtc = {.probability = 0.5f, .threshold = 0.05f}, .min_keep = 4},
      {.dynamic_temperature = {.range = 0.8f, .exponent = 1.5f}},
      {.temperature = 2, .top_k = 6, .dynamic_temperature = {.range = 1}, .order = SamplerOrder::llama_cpp()},
      {.temperature = 2, .top_p = 0.6f, .order = SamplerOrder::llama_cpp()},
      {.temperature = 2, .min_p = 0.2f, .min_keep = 3, .order = SamplerOrder::llama_cpp()},
      {.typical = 0.3f, .min_keep = 4},
      {.temperature = 0.7f, .top_p = 0.9f, .typical = 0.6f, .order = SamplerOrder::llama_cpp()},
  };
  return all;
}

std::vector<double> line_of(Table const& table, std::uint64_t seed) {
  std::vector<double> line(static_cast<std::size_t>(table.size));
  table.logits(seed, {}, line);
  return line;
}

std::size_t place(Token token) { return static_cast<std::size_t>(token); }

}  // namespace

TEST_CASE("a chain leaves the candidates that its formulas leave, with their probabilities", "[sample][chain]") {
  LogSoftmaxTopK expander;
  detail::SamplerScratch scratch;
  std::mt19937_64 random(1);
  std::size_t checked = 0, doubtful = 0, drawn = 0;
  for (int round = 0; round < 3000; ++round) {
    auto const options = random_sampler(random);
    options.check();
    auto const chain = options.chain();
    ReferenceSampler reference(options);
    auto state = chain.begin();
    auto const size = 2 + random() % (round % 20 == 0 ? 3000 : 120);
    std::vector<float> line(size);
    for (int step = 0; step < 4; ++step) {
      std::normal_distribution<float> normal(0, static_cast<float>(1 + random() % 4));
      for (auto& x : line) x = normal(random);
      if (random() % 4 == 0)
        for (auto i = random() % (size / 2); i > 0; --i)
          line[random() % size] = -std::numeric_limits<float>::infinity();
      auto const noise = random();
      auto const expected = reference.probabilities({line.begin(), line.end()}, chain.strikes(noise));
      if (reference.doubtful) {
        ++doubtful;
        break;  // the remembered state may differ from here on
      }
      Query query, shared;  // that of one sample, and of several
      chain.ask(query, static_cast<std::int32_t>(size), state, noise);
      chain.ask(shared, static_cast<std::int32_t>(size), state, 0);
      Query const both[] = {query, shared};  // NOLINT(modernize-avoid-c-arrays)
      std::vector<float> twice(line);
      twice.insert(twice.end(), line.begin(), line.end());
      auto const answer = expander.expand(scores(twice.data(), 2, static_cast<std::ptrdiff_t>(size)), both, {});
      INFO("round " << round << ", step " << step << ", " << size << " tokens");
      chain.apply(answer[0].best, static_cast<std::int32_t>(size), state, noise, scratch);
      auto const own = draw(chain.candidates(scratch), noise).token;
      chain.apply(answer[1].best, static_cast<std::int32_t>(size), state, noise, scratch);
      auto const candidates = chain.candidates(scratch);
      CHECK(draw(candidates, noise).token == own);
      drawn += query.noise != 0;
      double sum = 0;
      std::size_t possible = 0;
      for (auto const c : candidates) sum += std::exp(static_cast<double>(c.log_prob));
      for (auto const p : expected) possible += p > 1e-12;
      std::size_t seen = 0;
      for (auto const c : candidates) {
        auto const p = std::exp(static_cast<double>(c.log_prob)) / sum;
        seen += expected[place(c.token)] > 1e-12;
        if (std::abs(p - expected[place(c.token)]) > 1e-5) CHECK(p == expected[place(c.token)]);
      }
      CHECK(seen == possible);
      CHECK(candidates.size() >= possible);
      chain.took(own, answer[1].best, state, scratch), reference.take(own);
      ++checked;
    }
  }
  CHECK(checked > 9000);
  CHECK(doubtful < 300);
  CHECK(drawn > 100);
}

TEST_CASE("samples of a chain follow its distribution", "[sample][chain]") {
  Table const table{.size = 13, .scale = 4, .order = 0, .has_eos = false};
  for (std::size_t i = 0; i < chains().size(); ++i) {
    auto search = chains()[i];
    auto const line = line_of(table, i);
    auto const share = search.xtc.probability > 0 ? static_cast<double>(search.xtc.probability) : 0;
    ReferenceSampler reference(search);
    auto p = reference.probabilities(line, false);
    auto const struck = reference.probabilities(line, true);
    for (std::size_t v = 0; v < p.size(); ++v) p[v] = (1 - share) * p[v] + share * struck[v];
    for (auto const& [samples, length] : {std::pair{20000, 1}, std::pair{1, 20000}}) {
      INFO("chain " << i << ", " << samples << " samples");
      search.samples = samples, search.length.max = length;
      std::vector<std::int64_t> counts(13);
      for (auto const& h : run_one(table, i, search).hypotheses)
        for (auto const token : h.tokens) ++counts[place(token)];
      check_distribution(counts, p);
    }
  }
}

TEST_CASE("mirostat and adaptive-p remember what each sample drew", "[sample][chain]") {
  Table const table{.size = 15, .scale = 3, .order = 0, .has_eos = false};
  for (Sample search : {Sample{.mirostat = {.tau = 2, .eta = 0.9f}},
                        Sample{.temperature = 1.5f, .top_k = 5, .mirostat = {.tau = 1.6f, .eta = 1.5f}},
                        Sample{.adaptive_p = {.target = 0.2f, .decay = 0.5f}},
                        Sample{.min_p = 0.1f, .adaptive_p = {.target = 0.6f, .decay = 0.9f}}}) {
    auto const line = line_of(table, 2);
    std::vector<double> p(225);
    ReferenceSampler const fresh(search);
    auto first = fresh;
    auto const one = first.probabilities(line, false);
    for (Token a = 0; a < 15; ++a) {
      if (one[place(a)] <= 0) continue;
      auto second = first;
      second.take(a);
      auto const two = second.probabilities(line, false);
      for (std::size_t b = 0; b < 15; ++b) p[place(a) * 15 + b] = one[place(a)] * two[b];
    }
    search.samples = 40000, search.length.max = 2;
    std::vector<std::int64_t> counts(225);
    for (auto const& h : run_one(table, 2, search).hypotheses)
      ++counts[place(h.tokens.at(0)) * 15 + place(h.tokens.at(1))];
    check_distribution(counts, p, 5);
  }
}

TEST_CASE("a chain gives the same text in any batch, order and schedule", "[sample][chain]") {
  Table const table{.size = 20, .scale = 4, .eos_bias = 1, .eos_slope = 0.2};
  std::mt19937_64 random(3);
  std::vector<ChainRequest> requests;
  std::vector<Result> alone;
  for (std::uint64_t i = 0; i < 60; ++i) {
    ChainRequest request{.source = 100 + i % 7, .seed = 7 * i};
    if (i % 3 == 1) request.prompt = {bos, static_cast<Token>(3 + i % 5), 4};
    request.search = random_sampler(random);
    request.search->samples = static_cast<std::int32_t>(1 + i % 4);
    request.search->length = {.min = static_cast<std::int32_t>(i % 3), .max = static_cast<std::int32_t>(3 + i % 9)};
    requests.push_back(request);
    alone.push_back(run(plain, table, std::vector{request}, Sample{}).at(0));
    REQUIRE(alone.back().ok());
  }
  for (auto const& abilities : {plain, everything}) {
    for (std::size_t const batch : {std::size_t{7}, std::size_t{64}}) {
      auto const results = run(abilities, table, requests, Sample{}, Batched{batch});
      for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], alone[i]));
    }
  }
  auto const streamed = run(everything, table, requests, Sample{}, Streaming{.size = 5});
  for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(streamed[i], alone[i]));
}

TEST_CASE("a chain's sample i is the same however many there are, and goes on from its own beginning",
          "[sample][chain]") {
  Table const table{.size = 12, .scale = 4, .eos_bias = 0, .eos_slope = 0.1};
  std::mt19937_64 random(4);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto search = random_sampler(random, false);
    search.length.max = 12;
    INFO("seed " << seed);
    auto const with = [&](std::int32_t samples, std::vector<Token> const& prefix) {
      search.samples = samples;
      return run(table, std::vector<ChainRequest>{{.source = seed, .prefix = prefix, .seed = 9 * seed}}, search)
          .at(0)
          .hypotheses;
    };
    auto const one = with(1, {}), three = with(3, {});
    CHECK(three.at(0).tokens == one.at(0).tokens);
    CHECK(three.at(0).log_prob == one.at(0).log_prob);
    auto const& tokens = one[0].tokens;
    auto const part = static_cast<std::ptrdiff_t>(tokens.size() / 2);
    CHECK(with(1, {tokens.begin(), tokens.begin() + part}).at(0).tokens == tokens);
  }
}

TEST_CASE("an order says nothing about samplers that are off", "[sample][chain]") {
  Table const table{.size = 30, .scale = 4, .eos_bias = 0, .eos_slope = 0.1};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Sample const usual{.temperature = 0.8f, .samples = 3, .length = {.max = 20}};
    auto other = usual;
    other.order = {Sampler::xtc, Sampler::temperature, Sampler::top_k};
    CHECK(identical(run_one(table, seed, usual), run_one(table, seed, other)));
    // A temperature after top_k draws the same as one before it; its log-probabilities are those of temperature 1.
    Sample before{.temperature = 0.8f, .top_k = 5, .length = {.max = 20}}, behind = before;
    behind.order = SamplerOrder::llama_cpp();
    CHECK(run_one(table, seed, before).hypotheses.at(0).tokens == run_one(table, seed, behind).hypotheses.at(0).tokens);
    CHECK(run_one(table, seed, before).hypotheses.at(0).log_prob !=
          run_one(table, seed, behind).hypotheses.at(0).log_prob);
  }
}

TEST_CASE("presets are what the engines have", "[sample][chain]") {
  // llama.cpp's common_params_sampling, Hugging Face's GenerationConfig.
  auto const llama = presets::llama_cpp_sample();
  CHECK(llama.top_k == 40);
  CHECK(llama.top_p == 0.95f);
  CHECK(llama.min_p == 0.05f);
  CHECK(llama.temperature == 0.8f);
  CHECK_FALSE(llama.chain().plain());
  using enum Sampler;
  CHECK(std::ranges::equal(llama.order.samplers(),
                           std::array{top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature}));
  auto const hugging_face = presets::huggingface_sample();
  CHECK(hugging_face.top_k == 50);
  CHECK(hugging_face.top_p == 1);
  CHECK(hugging_face.temperature == 1);
  CHECK(hugging_face.chain().plain());
  CHECK(hugging_face.order.samplers().front() == temperature);
}

TEST_CASE("samplers refuse options that make no sense", "[sample][chain]") {
  auto const refused = [](Sample const& s, std::string const& name) {
    try {
      s.check();
    } catch (std::invalid_argument const& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(name) != std::string::npos);
      return;
    }
    FAIL("accepted: " << name);
  };
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  refused({.top_n_sigma = -1}, "top_n_sigma");
  refused({.xtc = {.probability = 1.1f}}, "xtc.probability");
  refused({.xtc = {.threshold = nan}}, "xtc.threshold");
  refused({.dynamic_temperature = {.range = -1}}, "dynamic_temperature.range");
  refused({.dynamic_temperature = {.exponent = 0}}, "dynamic_temperature.exponent");
  refused({.mirostat = {.tau = nan}}, "mirostat.tau");
  refused({.mirostat = {.eta = 0}}, "mirostat.eta");
  refused({.adaptive_p = {.target = 2}}, "adaptive_p.target");
  refused({.adaptive_p = {.decay = 1}}, "adaptive_p.decay");
  refused({.mirostat = {.tau = 5}, .adaptive_p = {.target = 0.5f}}, "mirostat");
  refused({.min_keep = -1}, "min_keep");
  refused({.top_k = 3, .min_keep = 4}, "min_keep");
  refused({.order = {Sampler::top_k, Sampler::top_k}}, "order");
  refused({.top_p = 0.5f, .order = {Sampler::top_k}}, "order");
  CHECK_NOTHROW(Sample{.order = {Sampler::top_k}}.check());
}
