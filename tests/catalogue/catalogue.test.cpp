// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string what(auto const& call) {
  try {
    call();
  } catch (std::invalid_argument const& problem) {
    return problem.what();
  }
  return "nothing was thrown";
}

/// Compares all answers of a catalogue with the sorted sequences.
void says_what_it_holds(Catalogue const& catalogue, Sequences const& all) {
  REQUIRE(catalogue.size() == static_cast<Item>(all.size()));
  auto const by_size = [](auto const& a, auto const& b) { return a.size() < b.size(); };
  CHECK(catalogue.longest() == static_cast<std::int32_t>(std::ranges::max_element(all, by_size)->size()));
  CHECK(catalogue.shortest() == static_cast<std::int32_t>(std::ranges::min_element(all, by_size)->size()));
  std::map<std::vector<Token>, std::pair<Item, Item>> beginnings;
  std::set<Token> tokens;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const item = static_cast<Item>(i);
    REQUIRE(catalogue.find(all[i]) == item);
    REQUIRE(catalogue.tokens(item) == all[i]);
    for (std::size_t n = 0; n <= all[i].size(); ++n) {
      auto& range =
          beginnings.try_emplace({all[i].begin(), all[i].begin() + static_cast<std::ptrdiff_t>(n)}, item, item)
              .first->second;
      range.second = item + 1;
    }
    tokens.insert(all[i].begin(), all[i].end());
  }
  std::map<std::vector<Token>, std::vector<Token>> children;
  for (auto const& [beginning, range] : beginnings)
    if (!beginning.empty()) children[{beginning.begin(), beginning.end() - 1}].push_back(beginning.back());
  CHECK(catalogue.nodes() == static_cast<std::int64_t>(beginnings.size()) - 1);
  CHECK(catalogue.largest_token() == *tokens.rbegin());
  for (Token t = 0; t <= std::min(*tokens.rbegin() + 9, 1000); ++t) REQUIRE(catalogue.holds(t) == tokens.contains(t));
  for (auto const& [beginning, range] : beginnings) {
    auto const node = catalogue.find_beginning(beginning);
    REQUIRE((node.first == range.first && node.last == range.second));
    REQUIRE(catalogue.is_item(node) == (!beginning.empty() && all[static_cast<std::size_t>(range.first)] == beginning));
    // The children are the prefixes that are one token longer.
    auto longer = beginning;
    std::vector<Token> found;
    auto const& expected = children[beginning];
    catalogue.for_each_child(node, [&](Token token, Item first, Item last) {
      found.push_back(token);
      REQUIRE(catalogue.child(node, token) == Catalogue::Node{node.depth + 1, first, last});
      longer.push_back(token);
      REQUIRE(beginnings.at(longer) == std::pair(first, last));
      longer.pop_back();
    });
    REQUIRE(found == expected);
    for (auto const token : {-1, 0, 1, 2, 77, catalogue.largest_token(), catalogue.largest_token() + 1})
      if (!std::ranges::binary_search(expected, token)) REQUIRE(catalogue.child(node, token).empty());
  }
}

}  // namespace

TEST_CASE("a catalogue holds the sequences that it was made of, and no others", "[catalogue]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    auto const all =
        random_sequences(random, 1 + random() % 60, 1 + random() % 6, 0, 1 + static_cast<Token>(random() % 9));
    CAPTURE(round);
    says_what_it_holds(catalogue_of(all), all);
  }
  // Tokens of one to four bytes; marks as lists and as bits, over several blocks.
  for (auto const& [lowest, highest] :
       {std::pair(0, 200), {30'000, 30'300}, {0, 40'000}, {5, 1'000'000}, {7, 200'000'000}}) {
    auto const all = random_sequences(random, 1500, 4, lowest, highest);
    CAPTURE(lowest, highest);
    auto const catalogue = catalogue_of(all);
    says_what_it_holds(catalogue, all);
    CHECK(catalogue.find(std::vector<Token>{}) == std::nullopt);
    CHECK(catalogue.find(std::vector<Token>{-1}) == std::nullopt);
  }
  auto const narrow = random_sequences(random, 3000, 12, 3, 5);
  says_what_it_holds(catalogue_of(narrow), narrow);
}

TEST_CASE("one large child among siblings is found across blocks that hold no other", "[catalogue]") {
  Sequences all{{1}, {2, 1}};
  for (Token t = 0; t < 3000; ++t) all.push_back({2, 2, t, t % 7});
  for (Token t = 0; t < 40; ++t) all.push_back({2, 3 + t});
  all.push_back({3});
  says_what_it_holds(catalogue_of(all), all);
}

TEST_CASE("the order of adding does not matter, and each sequence is told its item", "[catalogue]") {
  std::mt19937_64 random(2);
  for (auto const highest : {5, 70'000, 100'000'000}) {
    auto const sorted = random_sequences(random, 700, 7, 1, highest);
    auto mixed = sorted;
    std::ranges::shuffle(mixed, random);
    CatalogueBuilder builder;
    for (auto const& tokens : mixed) builder.add(tokens);
    auto const catalogue = builder.build();
    CHECK(std::ranges::equal(catalogue.bytes(), catalogue_of(sorted).bytes()));
    REQUIRE(builder.items().size() == mixed.size());
    for (std::size_t i = 0; i < mixed.size(); ++i)
      REQUIRE(sorted[static_cast<std::size_t>(builder.items()[i])] == mixed[i]);
    CHECK(builder.duplicates() == 0);
  }
}

TEST_CASE("what is added twice is refused, or counted", "[catalogue]") {
  Sequences const some{{3, 4}, {3}, {5, 1}, {3, 4}, {3}, {3, 4}};
  for (auto const sorted : {false, true}) {
    auto all = some;
    if (sorted) std::ranges::sort(all);
    CatalogueBuilder strict, counting(Duplicates::count);
    for (auto const& tokens : all) strict.add(tokens), counting.add(tokens);
    CHECK(what([&] { (void)strict.build(); }) == (sorted ? "sluice: sequence 1 = that of sequence 0: is there twice"
                                                         : "sluice: sequence 4 = that of sequence 1: is there twice"));
    auto const catalogue = counting.build();
    CHECK(counting.duplicates() == 3);
    says_what_it_holds(catalogue, {{3}, {3, 4}, {5, 1}});
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(catalogue.find(all[i]) == counting.items()[i]);
  }
}

TEST_CASE("a builder refuses what is no sequence", "[catalogue]") {
  CatalogueBuilder builder;
  CHECK(what([&] { (void)builder.build(); }) == "sluice: catalogue = 0 sequences: must have one");
  CHECK(what([&] { builder.add({}); }) == "sluice: sequence 0 = []: has no tokens");
  builder.add(std::vector<Token>{1});
  CHECK(what([&] {
          builder.add(std::vector<Token>{1, -2});
        }) == "sluice: sequence 1 = -2: a token must not be negative");
  CHECK(what([&] { builder.add(std::vector<Token>(1025, 1)); }) ==
        "sluice: sequence 1 = 1025 tokens: must have at most 1024");
  builder.add(std::vector<Token>(1024, 1));
  auto const catalogue = builder.build();
  CHECK(catalogue.longest() == 1024);
  CHECK(catalogue.tokens(1) == std::vector<Token>(1024, 1));
  CHECK(what([&] { (void)catalogue.tokens(2); }) == "sluice: item = 2: the catalogue has 2");
}

TEST_CASE("items are found with and without the end behind them", "[catalogue]") {
  auto const catalogue = catalogue_of({{3}, {3, 4}, {5}});
  CHECK(catalogue.item_of(std::vector<Token>{3}) == 0);
  CHECK(catalogue.item_of(std::vector<Token>{3, 2}) == 0);
  CHECK(catalogue.item_of(std::vector<Token>{3, 4, 2}) == 1);
  CHECK(catalogue.item_of(std::vector<Token>{}) == std::nullopt);
  CHECK(catalogue.item_of(std::vector<Token>{4, 3}) == std::nullopt);
  CHECK(Catalogue{}.empty());
  CHECK(Catalogue{}.find(std::vector<Token>{3}) == std::nullopt);
}

TEST_CASE("a set of items that are switched off counts those of any range", "[catalogue]") {
  std::mt19937_64 random(3);
  Sequences all;
  for (Token t = 0; t < 1700; ++t) all.push_back({t});
  auto const catalogue = catalogue_of(all);
  auto const draw = [&](std::size_t count) {
    std::vector<Item> items;
    while (items.size() < count) items.push_back(static_cast<Item>(random() % all.size()));
    return items;
  };
  for (auto const& [mine, common] :
       {std::pair<std::size_t, std::size_t>(0, 0), {3, 0}, {0, 5}, {20, 20}, {900, 10}, {8, 1500}, {1000, 1200}}) {
    auto const shared = draw(common), own = draw(mine);
    SwitchedOff const base(catalogue, shared);
    SwitchedOff const off(catalogue, own, base);
    std::set<Item> expected(shared.begin(), shared.end());
    expected.insert(own.begin(), own.end());
    CHECK(off.size() == static_cast<Item>(expected.size()));
    CHECK(off.empty() == expected.empty());
    for (Item item = 0; item < catalogue.size(); ++item) REQUIRE(off.contains(item) == expected.contains(item));
    for (int round = 0; round < 400; ++round) {
      auto const a = static_cast<Item>(random() % 1701), b = static_cast<Item>(random() % 1701);
      auto left = false;
      for (auto item = a; item < b; ++item) left = left || !expected.contains(item);
      REQUIRE(off.any_left(a, b) == left);
    }
  }
  CHECK(what([&] { SwitchedOff(catalogue, std::vector<Item>{1700}); }) ==
        "sluice: item = 1700: the catalogue has 1700");
  CHECK(what([&] { SwitchedOff(catalogue_of({{1}}), {}, SwitchedOff(catalogue, {})); }) ==
        "sluice: shared = 1700 items: is of another catalogue than this, of 1");
}

TEST_CASE("a cursor finds what a set holds, wherever it goes", "[catalogue]") {
  std::mt19937_64 random(4);
  Sequences all;
  for (Token t = 0; t < 1700; ++t) all.push_back({t});
  auto const catalogue = catalogue_of(all);
  for (auto const count : {0, 1, 12, 50, 1400}) {
    std::vector<Item> items;
    for (int i = 0; i < count; ++i) items.push_back(static_cast<Item>(random() % all.size()));
    if (count == 12) items.push_back(0), items.push_back(1699);
    SwitchedOff const off(catalogue, items);
    detail::SwitchedOffCursor cursor;
    cursor.begin(off);
    for (int round = 0; round < 300; ++round) {
      auto item = static_cast<Item>(random() % 1700);
      for (auto n = random() % 40; n > 0 && item < 1700; --n, item += static_cast<Item>(random() % 30))
        REQUIRE(cursor.contains(item) == off.contains(item));
    }
  }
}
