// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/guessing.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A table, and a catalogue over its tokens.
struct Shop {
  explicit Shop(std::uint64_t seed, bool has_eos = true, std::size_t shortest = 1)
      : random(seed), table{.size = 9, .eos_bias = 2, .has_eos = has_eos} {
    auto const longest = 1 + random() % 4;
    sequences = random_sequences(random, 1 + random() % 40, longest, 3, 8, has_eos ? shortest : longest);
    catalogue = catalogue_of(sequences);
  }
  /// Some of the items, layered on a shared set; never all.
  SwitchedOff off() {
    auto const kept = static_cast<Item>(random() % sequences.size());
    auto const some = [&](std::uint64_t one_in) {
      std::vector<Item> items;
      for (Item item = 0; item < catalogue.size(); ++item)
        if (item != kept && random() % one_in == 0) items.push_back(item);
      return items;
    };
    SwitchedOff const shared(catalogue, some(1 + random() % 4));
    return {catalogue, some(3), random() % 2 == 0 ? shared : SwitchedOff{}};
  }

  std::mt19937_64 random;
  Table table;
  Sequences sequences;
  Catalogue catalogue;
};

/// An item, with the log-probability of its tokens and eos.
struct Scored {
  double score;
  std::vector<Token> tokens;
};

/// All remaining items with this prefix, best first: the sums of their tokens' log-probabilities, normalised over all
/// tokens or over those that may follow in a catalogue.
std::vector<Scored> enumerate(Shop const& shop, SwitchedOff const& off, std::uint64_t source, Among among,
                              std::vector<Token> const& prefix = {}, bool prefix_scored = false) {
  auto const size = static_cast<std::size_t>(shop.table.size);
  std::set<std::vector<Token>> beginnings;
  Sequences items;
  for (std::size_t i = 0; i < shop.sequences.size(); ++i) {
    if (off.contains(static_cast<Item>(i))) continue;
    auto tokens = shop.sequences[i];
    if (tokens.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), tokens.begin())) continue;
    if (shop.table.has_eos) tokens.push_back(eos);
    for (std::size_t n = 1; n <= tokens.size(); ++n)
      beginnings.insert({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)});
    items.push_back(std::move(tokens));
  }
  std::vector<Scored> all;
  std::vector<double> line(size);
  for (auto const& tokens : items) {
    double sum = 0;
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      std::vector<Token> so_far(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
      shop.table.log_probs(source, so_far, line);
      double among_all = 0;
      for (Token t = 0; t < shop.table.size; ++t) {
        so_far.push_back(t);
        if (beginnings.contains(so_far)) among_all += std::exp(line[static_cast<std::size_t>(t)]);
        so_far.pop_back();
      }
      if (n < prefix.size()) {
        if (prefix_scored) sum += line[static_cast<std::size_t>(tokens[n])];
        continue;
      }
      sum += line[static_cast<std::size_t>(tokens[n])] - (among == Among::children ? std::log(among_all) : 0);
    }
    all.push_back({sum, tokens});
  }
  std::ranges::sort(all, [](auto const& a, auto const& b) { return a.score > b.score; });
  return all;
}

BeamSearch wide(Shop const& shop, std::int32_t n_best = 64) {
  return {.width = 64,
          .n_best = n_best,
          .length = {.max = shop.catalogue.longest() + (shop.table.has_eos ? 1 : 0)},
          .penalty = {.kind = LengthPenalty::Kind::none},
          .prefix_scored = false,
          .stage = Stage::after_softmax};
}

void ranks(Result const& result, std::vector<Scored> const& expected) {
  INFO(result.message);
  REQUIRE(result.failure == Failure::none);
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    REQUIRE(h.tokens == expected[i].tokens);
    REQUIRE(h.finished);
    REQUIRE_THAT(h.score, WithinAbs(expected[i].score, 1e-4));
    REQUIRE(h.log_probs.size() == h.tokens.size());
  }
}

template <class S>
std::vector<TableRequest<S>> sources(std::uint64_t count, std::vector<Token> const& prefix = {}) {
  std::vector<TableRequest<S>> requests;
  for (std::uint64_t source = 0; source < count; ++source)
    requests.push_back({.source = source, .prefix = prefix, .seed = source + 3});
  return requests;
}

bool same(Result const& a, Result const& b) {
  return a.failure == b.failure && std::ranges::equal(a.hypotheses, b.hypotheses, [](auto const& x, auto const& y) {
           return x.tokens == y.tokens && x.score == y.score && x.finished == y.finished;
         });
}

}  // namespace

TEST_CASE("a beam wide enough gives all items in the order of their scores", "[catalogued]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Shop shop(seed, seed % 4 != 3);
    for (auto const& off : {SwitchedOff{}, shop.off()}) {
      auto beam = wide(shop);
      InCatalogue const items(shop.catalogue, off);
      std::vector<Token> prefix;
      if (seed % 3 == 1) {
        auto const left = enumerate(shop, off, seed, Among::all_tokens);
        prefix = left[shop.random() % left.size()].tokens;
        prefix.resize(shop.random() % prefix.size());
        if (static_cast<std::int32_t>(prefix.size()) >= beam.length.max) prefix.pop_back();
      }
      for (auto const among : {Among::all_tokens, Among::children}) {
        auto const scored = seed % 2 == 0;
        auto const expected = enumerate(shop, off, seed, among, prefix, scored);
        beam.prefix_scored = scored;
        auto under = beam;
        if (among == Among::children) under.stage = Stage::before_softmax;
        ranks(run<everything>(shop.table, {{.source = seed, .prefix = prefix}}, Processed<BeamSearch>{under, items})[0],
              expected);
        ranks(run<everything>(shop.table, {{.source = seed, .prefix = prefix}}, CatalogueBeam{beam, items, among})[0],
              expected);
      }
    }
  }
}

TEST_CASE("CatalogueBeam finds, bit for bit, what BeamSearch finds under the rule", "[catalogued]") {
  std::vector<BeamSearch> searches{
      {.width = 3, .n_best = 3},
      {.width = 5, .n_best = 2, .pruning = {.absolute_threshold = 1.5}},
      {.width = 4, .n_best = 4, .length = {.min = 2}},
      {.width = 2, .n_best = 2, .candidates = 2},
      {.width = 3, .n_best = 3, .finished = FinishedHypotheses::leave_first},
      {.width = 3, .n_best = 3, .penalty = {.alpha = 0}, .early_stopping = {.rule = EarlyStopping::Rule::exact}},
      presets::fairseq(4),
      presets::ctranslate2(4),
      presets::huggingface(3),
      presets::marian(5),
      presets::sockeye(3)};
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (auto beam : searches)
      for (auto const levels : {0, 3}) {  // ties
        Shop shop(seed);
        shop.table.levels = levels;
        beam.stage = Stage::after_softmax;
        InCatalogue const items(shop.catalogue, shop.off());
        auto const under =
            run<everything>(shop.table, sources<Processed<BeamSearch>>(5), Processed<BeamSearch>{beam, items});
        auto const own = run<everything>(shop.table, sources<CatalogueBeam>(5), CatalogueBeam{beam, items});
        for (std::size_t i = 0; i < own.size(); ++i) {
          CAPTURE(seed, levels, own[i].message, under[i].message);
          REQUIRE(same_outputs(own[i], under[i]));
          compared += own[i].hypotheses.size();
        }
      }
  CHECK(compared > 5000);
}

namespace {

/// Every output is a finished item that is not switched off; batching changes nothing.
template <class S>
std::size_t obeys(S const& plain, std::uint64_t shops = 12) {
  std::size_t outputs = 0;
  for (std::uint64_t seed = 0; seed < shops; ++seed) {
    Shop shop(seed + 100);
    auto const off = shop.off();
    auto const search = [&] {
      if constexpr (std::is_same_v<S, CatalogueBeam>) {
        auto one = plain;
        one.items = InCatalogue(shop.catalogue, off);
        return one;
      } else return Processed<S>{plain, InCatalogue(shop.catalogue, off)};
    }();
    auto const requests = sources<std::remove_const_t<decltype(search)>>(20);
    auto const together = run<everything>(shop.table, requests, search, Batched{.size = 5});
    auto const streamed = run<everything>(shop.table, requests, search, Streaming{});
    for (std::size_t i = 0; i < together.size(); ++i) {
      auto const& result = together[i];
      INFO(result.message);
      REQUIRE(result.failure == Failure::none);
      REQUIRE_FALSE(result.hypotheses.empty());
      for (auto const& h : result.hypotheses) {
        ++outputs;
        auto const item = shop.catalogue.item_of(h.tokens);
        REQUIRE((h.finished && h.tokens.back() == eos && item));
        REQUIRE(std::ranges::equal(shop.sequences[static_cast<std::size_t>(*item)],
                                   std::span(h.tokens).first(h.tokens.size() - 1)));
        REQUIRE_FALSE(off.contains(*item));
      }
      REQUIRE(same(result, streamed[i]));
      REQUIRE(same(result, run<everything>(shop.table, {requests[i]}, search)[0]));
    }
  }
  return outputs;
}

}  // namespace

TEST_CASE("no output is anything but an item, under every search, alone as in a batch", "[catalogued]") {
  std::size_t outputs = 0;
  SECTION("greedy") { outputs = obeys(Greedy{}); }
  SECTION("beams") {
    outputs = obeys(BeamSearch{.width = 6, .n_best = 6}) + obeys(presets::fairseq(3)) + obeys(presets::ctranslate2(3)) +
              obeys(presets::huggingface(3)) + obeys(presets::marian(3)) + obeys(presets::sockeye(3));
    CHECK(outputs > 2000);
  }
  SECTION("diverse") {
    outputs = obeys(DiverseBeamSearch{.search = {.width = 2, .n_best = 2}, .groups = 2, .n_best = 3});
  }
  SECTION("sample") { outputs = obeys(Sample{.samples = 40}, 14); }
  SECTION("stochastic") { outputs = obeys(StochasticBeam{}); }
  SECTION("catalogue beam") {
    outputs = obeys(CatalogueBeam{.beam = {.width = 20, .n_best = 20}}) +
              obeys(CatalogueBeam{.beam = {.width = 20, .n_best = 20}, .among = Among::children});
    CHECK(outputs > 2000);
  }
  CHECK(outputs >= 240);
}

TEST_CASE("blockwise decoding in a catalogue gives what greedy decoding does", "[catalogued]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (auto const kind : {Guesses::as_they_are, Guesses::corrupted, Guesses::eos_first, Guesses::random}) {
      Shop shop(seed + 300);
      InCatalogue const items(shop.catalogue, shop.off());
      auto const expected =
          run<everything>(shop.table, sources<Processed<Greedy>>(10), Processed<Greedy>{Greedy{}, items});
      CheckedTable<everything> model{TableModel<everything>(shop.table)};
      TableModel<everything> itself(shop.table);
      Speculated drafted(model, DraftModel(itself));
      Guessing guessing(drafted, kind, 5);
      auto const found =
          decode(guessing, sources<Processed<Blockwise<>>>(10), Processed<Blockwise<>>{Blockwise<>{.block = 3}, items});
      CHECK(model.report() == "");
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO(found[i].message);
        REQUIRE(found[i].failure == Failure::none);
        REQUIRE(found[i].hypotheses[0].tokens == expected[i].hypotheses[0].tokens);
      }
    }
}

TEST_CASE("what no item can be is refused at the start", "[catalogued]") {
  auto const catalogue = catalogue_of({{3, 4}, {3, 5, 6}, {7}});
  auto const refused = [&](auto search, std::vector<Token> prefix, Table const& its_table = {.size = 9}) {
    auto const result = run<everything>(its_table, {{.source = 1, .prefix = std::move(prefix)}}, search)[0];
    CHECK(result.failure == Failure::bad_request);
    return result.message;
  };
  auto const both = [&](std::int32_t most, InCatalogue const& items, std::vector<Token> prefix,
                        Table const& its_table = {.size = 9}) {
    BeamSearch const beam{.width = 2, .length = {.max = most}};
    auto const own = refused(CatalogueBeam{beam, items}, prefix, its_table);
    CHECK(own == refused(Processed<BeamSearch>{beam, items}, prefix, its_table));
    return own;
  };
  InCatalogue const items(catalogue);
  CHECK(both(3, items, {}) == "sluice: length.max = 3: the longest item has 3 tokens, and an end");
  CHECK(both(9, items, {4}) == "sluice: prefix = 1 tokens: no remaining item begins with it");
  CHECK(both(9, InCatalogue(catalogue, SwitchedOff(catalogue, std::vector<Item>{0})), {3, 4}) ==
        "sluice: prefix = 2 tokens: no remaining item begins with it");
  CHECK(both(9, InCatalogue(catalogue, SwitchedOff(catalogue, std::vector<Item>{0, 1, 2})), {}) ==
        "sluice: off = 3 items: leaves none");
  CHECK(both(9, items, {}, {.size = 7}) == "sluice: catalogue: token = 7: is outside the vocabulary of 7");
  CHECK(both(9, InCatalogue(catalogue_of({{3, eos}})), {}) ==
        "sluice: catalogue: token = 2: ends a sentence, but an item contains it");
  CHECK(both(9, InCatalogue(catalogue_of({{3, bos}})), {}) ==
        "sluice: catalogue: token = 1: is never generated, but an item contains it");
  CHECK(both(3, items, {}, {.size = 9, .has_eos = false}) == "sluice: vocabulary.eos = none: items have 1 to 3 tokens");
  CHECK(both(4, items, {}, {.size = 9, .has_eos = false}) ==
        "sluice: length.max = 4: there is no eos, and items have 3 tokens");
  CHECK_THROWS_AS(InCatalogue(catalogue, SwitchedOff(catalogue_of({{1}}), {})), std::invalid_argument);

  auto const wrong = [&](CatalogueBeam const& search) {
    try {
      sluice::check(search);
    } catch (std::invalid_argument const& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK(wrong({}) == "sluice: items = no catalogue: must have one");
  CHECK(wrong({.beam = {.sibling_penalty = 1}, .items = items}).starts_with("sluice: beam.sibling_penalty = 1"));
  CHECK(wrong({.beam = {.pruning = {.max_per_parent = 2}}, .items = items}).starts_with("sluice: beam.pruning.max"));
  CHECK(wrong({.beam = {.width = 4, .n_best = 4}, .items = items}) == "");
}
