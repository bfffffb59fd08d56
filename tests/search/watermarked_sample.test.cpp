// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/sample.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/watermark.hpp>

#include <support/catch.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using detail::Marker;

namespace {

using Scheme = WatermarkScheme;
using SampleRequest = TableRequest<Sample>;

Watermark marking(WatermarkScheme scheme, WatermarkPrf prf, std::uint64_t key, std::int32_t width = 4) {
  if (prf == WatermarkPrf::synthid_text) {
    std::vector<std::uint64_t> words(8);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = derive(key, i) >> 1;
    return {scheme, prf, WatermarkKey(words), width};
  }
  return {scheme, prf, WatermarkKey(key), width};
}

std::vector<double> probabilities(Table const& table, std::uint64_t source, std::span<Token const> context,
                                  double temperature = 1) {
  std::vector<double> p(static_cast<std::size_t>(table.size));
  table.logits(source, context, p);
  double sum = 0;
  for (auto& x : p) x = std::exp(x / temperature), sum += x;
  for (auto& x : p) x /= sum;
  return p;
}

/// The outputs of one source under many keys, each alone with its own search.
std::vector<std::vector<Token>> outputs(Table const& table, std::vector<Sample> const& searches, std::uint64_t seed) {
  std::vector<SampleRequest> requests;
  for (std::size_t i = 0; i < searches.size(); ++i)
    requests.push_back({.source = 1, .search = searches[i], .seed = derive(seed, i)});
  std::vector<std::vector<Token>> texts;
  for (auto const& result : run(table, requests, searches[0]))
    for (auto const& h : result.hypotheses) texts.push_back(h.tokens);
  return texts;
}

struct Way {
  WatermarkScheme scheme;
  WatermarkPrf prf;
};
constexpr Way exact[] = {{Scheme::gumbel, WatermarkPrf::sluice},      {Scheme::gumbel, WatermarkPrf::philox},
                         {Scheme::gumbel, WatermarkPrf::hmac_sha256}, {Scheme::synthid, WatermarkPrf::sluice},
                         {Scheme::synthid, WatermarkPrf::philox},     {Scheme::synthid, WatermarkPrf::synthid_text}};

}  // namespace

TEST_CASE("averaged over keys, marked texts are distributed as the model", "[watermark]") {
  Table const table{.size = 6, .scale = 2, .order = 1, .has_eos = false};
  constexpr std::size_t texts = 6000, length = 4;
  for (auto const [scheme, prf] : exact)
    for (int options = 0; options < (prf == WatermarkPrf::hmac_sha256 ? 1 : 4); ++options) {
      std::vector<Sample> searches;
      for (std::size_t i = 0; i < texts; ++i) {
        Sample search{.length = {.max = static_cast<std::int32_t>(length)},
                      .watermark = marking(scheme, prf, derive(derive(5, static_cast<std::uint64_t>(options)), i), 1)};
        if (options == 1) search.top_k = 2;
        if (options == 2) search.temperature = 0.5f, search.order = SamplerOrder::llama_cpp(), search.min_p = 0.1f;
        if (options == 3 && scheme == Scheme::gumbel) search.watermark.second = 0.3f;
        searches.push_back(search);
      }
      // Of 3^4 outputs: width 1, so that most of them have a context twice.
      std::vector<std::int64_t> counts(81);
      std::vector<double> expected(81);
      auto const found = outputs(table, searches, 1);
      for (auto const& text : found) {
        std::size_t cell = 0;
        for (auto const token : text) cell = cell * 3 + static_cast<std::size_t>(token - 3);
        ++counts[cell];
      }
      for (std::size_t cell = 0; cell < 81; ++cell) {
        std::vector<Token> text;
        for (std::size_t n = 0, rest = cell; n < length; ++n, rest /= 3)
          text.insert(text.begin(), static_cast<Token>(3 + rest % 3));
        expected[cell] = 1;
        for (std::size_t n = 0; n < length; ++n) {
          auto p = probabilities(table, 1, std::span(text).first(n));
          auto const best = *std::max_element(p.begin(), p.end());
          auto const worst = *std::min_element(p.begin() + 3, p.end());
          double sum = 0;
          for (auto& x : p) {
            if (options == 1 && x == worst) x = 0;
            if (options == 2) x = x < 0.1 * best ? 0 : x * x;
            sum += x;
          }
          expected[cell] *= p[static_cast<std::size_t>(text[n])] / sum;
        }
      }
      INFO(name(scheme) << " " << name(prf) << " " << options);
      CHECK(chi_squared(counts, expected).z < 4);
    }
}

TEST_CASE("averaged over keys, the mixture of two has the model's distribution over a thousand tokens", "[watermark]") {
  // A line does not depend on the text before it, so all tokens of all texts are draws from one distribution.
  Table const table{.size = 1203, .scale = 3, .order = 0, .has_eos = false};
  constexpr std::size_t texts = 10000;
  auto const p = probabilities(table, 1, {});
  for (auto const second : {0.1f, 0.5f}) {
    INFO(second);
    std::vector<Sample> searches;
    for (std::size_t i = 0; i < texts; ++i) {
      Sample search{.length = {.max = 3},
                    .watermark = marking(Scheme::gumbel, WatermarkPrf::sluice, derive(derive(31, i), 4), 1)};
      search.watermark.second = second;
      searches.push_back(search);
    }
    std::vector<std::int64_t> counts(p.size());
    for (auto const& text : outputs(table, searches, 9))
      for (auto const token : text) ++counts.at(static_cast<std::size_t>(token));
    check_distribution(counts, p, 700);  // so many tokens are expected at least 10 times
  }
}

TEST_CASE("a token is the argmax by the key's numbers; after a repeated context, the one of an unmarked draw",
          "[watermark]") {
  std::mt19937_64 random(2);
  std::size_t marked = 0, repeated = 0;
  for (int round = 0; round < 60; ++round) {
    Table const table{.size = 7, .scale = 3, .eos_slope = 0, .order = 2};
    auto const prf = random() % 2 == 0 ? WatermarkPrf::sluice : WatermarkPrf::philox;
    Sample const search{.temperature = 0.5f + static_cast<float>(random() % 4) * 0.25f,
                        .length = {.max = 30},
                        .watermark =
                            marking(Scheme::gumbel, prf, random(), static_cast<std::int32_t>(1 + random() % 3))};
    auto plain = search;
    plain.watermark = {};
    auto const seed = random();
    std::vector<Token> prefix;
    if (random() % 2 == 0) prefix = {3, 4, 3};
    auto const result = run(table, std::vector<SampleRequest>{{.source = 3, .prefix = prefix, .seed = seed}}, search);
    auto const& text = result[0].hypotheses.at(0).tokens;
    Marker const marker(search.watermark);
    for (auto n = prefix.size(); n < text.size(); ++n) {
      auto const before = std::span(text).first(n);
      auto const context = marker.context(before);
      if (context.repeated()) {
        ++repeated;
        std::vector<SampleRequest> request{{.source = 3, .prefix = {before.begin(), before.end()}, .seed = seed}};
        CHECK(run(table, request, plain)[0].hypotheses.at(0).tokens[n] == text[n]);
        continue;
      }
      ++marked;
      auto const p = probabilities(table, 3, before, static_cast<double>(search.temperature));
      auto const& numbers = marker.numbers(false);
      auto const place = numbers.place(context);
      Token best = -1;
      double most = -std::numeric_limits<double>::infinity();
      for (Token v = 0; v < table.size; ++v) {
        auto const value = std::log(p[static_cast<std::size_t>(v)]) - std::log(-std::log(numbers.uniform(place, v)));
        if (value > most) best = v, most = value;
      }
      CHECK(text[n] == best);
    }
  }
  CHECK(marked > 300);
  CHECK(repeated > 100);
}

TEST_CASE("a tournament of probabilities is one of players", "[watermark]") {
  Table const table{.size = 9, .scale = 2, .has_eos = false};
  std::mt19937_64 random(3);
  for (auto const prf : {WatermarkPrf::sluice, WatermarkPrf::philox, WatermarkPrf::synthid_text}) {
    auto options = marking(Scheme::synthid, prf, random());
    options.depth = 3;
    if (prf == WatermarkPrf::synthid_text) options.key = WatermarkKey(options.key.words().first(3));
    Marker const marker(options);
    auto const p = probabilities(table, 1, {});
    std::discrete_distribution<Token> draw(p.begin(), p.end());
    auto const& numbers = marker.numbers(false);
    auto const place = numbers.place(marker.context({}));
    std::vector<std::int64_t> players(p.size()), texts(p.size());
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      std::vector<Token> left(8);
      for (auto& token : left) token = draw(random);
      for (int round = 0; left.size() > 1; ++round) {
        std::vector<Token> winners;
        for (std::size_t k = 0; k < left.size(); k += 2) {
          auto const a = (numbers.bits(place, left[k]) >> round) & 1,
                     b = (numbers.bits(place, left[k + 1]) >> round) & 1;
          winners.push_back(a > b || (a == b && random() % 2 == 0) ? left[k] : left[k + 1]);
        }
        left = winners;
      }
      ++players[static_cast<std::size_t>(left[0])];
    }
    for (auto const& text :
         outputs(table, std::vector<Sample>(draws, Sample{.length = {.max = 1}, .watermark = options}), random()))
      ++texts[static_cast<std::size_t>(text[0])];
    // Two samples of one distribution: its estimate is their mean, which halves the statistic's variance twice.
    double statistic = 0, cells = 0;
    for (std::size_t v = 0; v < p.size(); ++v) {
      auto const both = static_cast<double>(players[v] + texts[v]);
      if (both < 20) continue;
      statistic += std::pow(static_cast<double>(players[v] - texts[v]), 2) / both, ++cells;
    }
    CHECK(statistic < cells + 5 * std::sqrt(2 * cells));
  }
}

TEST_CASE("green tokens are as much more probable as delta says", "[watermark]") {
  Table const table{.size = 9, .scale = 2, .has_eos = false};
  for (auto const& [scheme, prf] : {Way{Scheme::red_green, WatermarkPrf::sluice},
                                    {Scheme::red_green, WatermarkPrf::philox},
                                    {Scheme::red_green, WatermarkPrf::hmac_sha256},
                                    {Scheme::sbw, WatermarkPrf::philox}}) {
    auto options = marking(scheme, prf, 17);
    options.gamma = 0.5f, options.delta = 1.5f;
    Marker const marker(options);
    auto const mark = marker.mark_with({}, false);
    auto p = probabilities(table, 1, {});
    double sum = 0;
    for (std::size_t v = 0; v < p.size(); ++v)
      sum += p[v] *= marker.is_green(mark, static_cast<Token>(v)) ? std::exp(1.5) : 1;
    for (auto& x : p) x /= sum;
    std::vector<std::int64_t> counts(p.size());
    for (auto const& text :
         outputs(table, std::vector<Sample>(20000, Sample{.length = {.max = 1}, .watermark = options}), 5))
      ++counts[static_cast<std::size_t>(text[0])];
    CHECK(chi_squared(counts, p).z < 4);
  }
}

TEST_CASE("marks are found with their key only, in any batch the same text", "[watermark]") {
  Table const table{.size = 60, .scale = 4, .has_eos = false};
  std::vector<Way> kinds(std::begin(exact), std::end(exact));
  kinds.insert(kinds.end(), {{Scheme::red_green, WatermarkPrf::sluice},
                             {Scheme::red_green, WatermarkPrf::philox},
                             {Scheme::sbw, WatermarkPrf::philox}});
  for (auto const [scheme, prf] : kinds) {
    INFO(name(scheme) << " " << name(prf));
    std::vector<SampleRequest> requests;
    for (std::uint64_t i = 0; i < 4; ++i) {
      Sample search{.length = {.max = 150}, .watermark = marking(scheme, prf, 7 + i)};
      if (i == 1) search.top_p = 0.95f;
      if (i == 2) search.mirostat.tau = 5;
      if (i == 3 && scheme == Scheme::gumbel) search.watermark.second = 0.5f;
      requests.push_back({.source = i, .search = search});
    }
    auto const together = run(table, requests, Sample{});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto const& text = together[i].hypotheses.at(0).tokens;
      auto const& own = requests[i].search->watermark;
      auto alone = requests[i];
      alone.seed = i;
      CHECK(run(table, std::vector{alone}, Sample{})[0].hypotheses.at(0).tokens == text);
      auto other = own;
      other.key = prf == WatermarkPrf::synthid_text ? marking(scheme, prf, 99).key : WatermarkKey(99);
      CHECK(detect_watermark(text, own).p_value < 1e-6);
      CHECK(detect_watermark(text, other).p_value > 1e-4);
    }
  }
}

TEST_CASE("samples of one sentence vary with a second key, or by the scheme, and one key alone is refused",
          "[watermark]") {
  Table const table{.size = 60, .scale = 4, .has_eos = false};
  for (auto options :
       {marking(Scheme::gumbel, WatermarkPrf::sluice, 3), marking(Scheme::synthid, WatermarkPrf::sluice, 3)}) {
    if (options.scheme == Scheme::gumbel) options.second = 0.2f;
    Sample const search{.samples = 3, .length = {.max = 100}, .watermark = options};
    auto const found = run(table, std::vector<SampleRequest>{{.source = 1}}, search)[0].hypotheses;
    REQUIRE(found.size() == 3);
    CHECK(found[0].tokens != found[1].tokens);
    CHECK(found[1].tokens != found[2].tokens);
    for (auto const& h : found) CHECK(detect_watermark(h.tokens, options).p_value < 1e-4);
  }
  Sample const alike{.samples = 2, .watermark = marking(Scheme::gumbel, WatermarkPrf::sluice, 3)};
  CHECK_THROWS_MATCHES(alike.check(), std::invalid_argument,
                       Message("sluice: samples = 2: would all be the same: the watermark's key draws each of them "
                               "alike. Set watermark.second, or choose the scheme synthid"));
  CHECK_THROWS_AS((Sample{.watermark = {.scheme = Scheme::gumbel}}.check()), std::invalid_argument);
}
