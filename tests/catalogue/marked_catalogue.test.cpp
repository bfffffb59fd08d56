// SPDX-License-Identifier: Apache-2.0
// Watermarks, and particles, in a catalogue.
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detail/tails.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Items of six free choices, a token that is certain after each of them.
struct MarkedShop {
  static constexpr std::size_t choices = 6;

  MarkedShop() {
    std::mt19937_64 random(3);
    std::set<std::vector<Token>> all;
    while (all.size() < 3000) {
      std::vector<Token> item;
      for (std::size_t i = 0; i < choices; ++i)
        item.push_back(static_cast<Token>(3 + random() % 8)), item.push_back(11 + static_cast<Token>(i % 2));
      all.insert(item);
    }
    items.assign(all.begin(), all.end());
    catalogue = catalogue_of(items);
    std::vector<Item> some;
    for (Item item = 0; item < catalogue.size(); ++item)
      if (random() % 3 == 0) some.push_back(item);
    off = SwitchedOff(catalogue, some);
  }
  /// The tokens that may follow some others in an item that is left, by looking at each.
  std::set<Token> followers(std::span<Token const> before) const {
    std::set<Token> found;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!off.contains(static_cast<Item>(i)) && items[i].size() >= before.size() &&
          std::equal(before.begin(), before.end(), items[i].begin()))
        found.insert(items[i].size() == before.size() ? eos : items[i][before.size()]);
    return found;
  }
  Table table{.size = 14, .scale = 2, .eos_bias = 0, .eos_slope = 0};
  Sequences items;
  Catalogue catalogue;
  SwitchedOff off;
};

}  // namespace

TEST_CASE("in a catalogue, free tokens are drawn by the key's numbers, and many items show it", "[watermark]") {
  MarkedShop const shop;
  InCatalogue const rule(shop.catalogue, shop.off);
  constexpr std::uint64_t count = 60;
  for (auto const scheme : {WatermarkScheme::gumbel, WatermarkScheme::synthid}) {
    INFO(name(scheme));
    Sample const search{.length = {.max = 13}, .watermark = {.scheme = scheme, .key = WatermarkKey(1)}};
    std::vector<TableRequest<Processed<Sample>>> requests;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto own = search;
      own.watermark.key = WatermarkKey(derive(4, i));
      requests.push_back({.source = i, .search = Processed<Sample>{own, rule}, .seed = i + 3});
    }
    Processed<Sample> const in_catalogue{search, rule};
    auto const results = run<everything>(shop.table, requests, in_catalogue, Batched{.size = 7});
    auto const streamed = run<everything>(shop.table, requests, in_catalogue, Streaming{.size = 5});
    std::int64_t scored = 0;
    double score = 0, others = 0, unmasked = 0;
    std::size_t marked = 0;
    std::vector<double> logits(static_cast<std::size_t>(shop.table.size));
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      CHECK(same_outputs(results[i], streamed[i]));
      CHECK(same_outputs(results[i], run<everything>(shop.table, {requests[i]}, in_catalogue)[0]));
      auto const& tokens = results[i].hypotheses.at(0).tokens;
      auto const item = shop.catalogue.item_of(tokens);
      REQUIRE((item && !shop.off.contains(*item)));
      auto const& own = requests[i].search->search.watermark;
      detail::Marker const marker(own);
      std::vector<std::uint8_t> certain;
      for (std::size_t n = 0; n < tokens.size(); ++n) {
        auto const before = std::span(tokens).first(n);
        auto const may = shop.followers(before);
        REQUIRE(may.contains(tokens[n]));
        certain.push_back(may.size() == 1);
        if (may.size() == 1 || scheme != WatermarkScheme::gumbel || marker.context(before).repeated()) continue;
        shop.table.logits(i, before, logits);
        auto const place = marker.numbers(false).place(marker.context(before));
        Token best = -1;
        auto highest = -std::numeric_limits<double>::infinity();
        for (auto const v : may) {
          auto const value =
              logits[static_cast<std::size_t>(v)] - std::log(-std::log(marker.numbers(false).uniform(place, v)));
          if (value > highest) best = v, highest = value;
        }
        CHECK(tokens[n] == best);
        ++marked;
      }
      auto const free = std::count(certain.begin(), certain.end(), std::uint8_t{0});
      auto const found = detect_watermark(tokens, own, {.mask = certain});
      CHECK(found.scored + found.repeated == static_cast<std::int32_t>(free));
      CHECK(found.masked >= 7);     // the end, and what stands between choices
      CHECK(found.p_value > 1e-7);  // of six choices, nobody can tell
      scored += found.scored, score += found.score;
      auto other = own;
      other.key = WatermarkKey(derive(5, i));
      others += detect_watermark(tokens, other, {.mask = certain}).score;
      auto const all = detect_watermark(tokens, own);
      unmasked += all.score / all.scored;
    }
    // Keys are independent, so the score of all items has the distribution of one long text's.
    auto const p = [&](double sum) {
      return scheme == WatermarkScheme::gumbel
                 ? detail::gamma_tail(scored, sum)
                 : detail::binomial_tail(std::llround(sum), scored * search.watermark.depth, 0.5);
    };
    CHECK(scored > 200);
    CHECK(p(score) < 1e-12);
    CHECK(p(others) > 1e-4);
    CHECK(unmasked / count < score / static_cast<double>(scored));  // what is certain dilutes it
    if (scheme == WatermarkScheme::gumbel) CHECK(marked > 200);
  }
}
