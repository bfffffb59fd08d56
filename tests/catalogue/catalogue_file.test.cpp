// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(Catalogue const& catalogue) { return {catalogue.bytes().begin(), catalogue.bytes().end()}; }

/// Lists, bits, tokens of one and of two bytes, items that are prefixes of others.
Catalogue small() {
  std::mt19937_64 random(5);
  auto all = random_sequences(random, 90, 3, 0, 40);
  all.push_back({900});
  all.push_back({900, 7, 7, 7, 7});
  return catalogue_of(all);
}

std::string problem(Bytes const& bytes, CatalogueCheck check = CatalogueCheck::all) {
  try {
    (void)Catalogue::from_bytes(bytes, check);
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return "";
}

/// Calls every query. Answers may be wrong; the sanitizers check that reads stay within bounds.
std::size_t ask(Catalogue const& catalogue) {
  std::size_t answers = 0;
  auto inside = true;
  std::vector<Catalogue::Node> nodes{catalogue.root()};
  for (std::size_t i = 0; i < nodes.size() && nodes.size() < 300; ++i) {
    auto const node = nodes[i];
    answers += catalogue.is_item(node) ? 1u : 0u;
    catalogue.for_each_child(node, [&](Token token, Item first, Item last) {
      nodes.push_back({node.depth + 1, first, last});
      answers += catalogue.child(node, token).empty() ? 0u : 1u;
      inside = inside && token >= 0 && token <= catalogue.largest_token() && first >= 0 && first < last &&
               last <= catalogue.size();
    });
  }
  for (Item item = 0; item < std::min(catalogue.size(), 200); ++item)
    answers += catalogue.find(catalogue.tokens(item)).has_value() ? 1u : 0u;
  REQUIRE(inside);
  return answers;
}

/// Checks that items ascend and can be found.
void is_a_catalogue(Catalogue const& catalogue) {
  std::vector<Token> before;
  auto right = true;
  for (Item item = 0; item < catalogue.size(); ++item) {
    auto const tokens = catalogue.tokens(item);
    right = right && std::ranges::lexicographical_compare(before, tokens) && catalogue.find(tokens) == item;
    before = tokens;
  }
  REQUIRE(right);
}

void reseal(Bytes& bytes) { sluice::detail::seal(bytes); }

}  // namespace

TEST_CASE("a catalogue's file gives it back, mapped by any number", "[catalogue]") {
  auto const path =
      std::filesystem::temp_directory_path() / ("sluice-catalogue-test." + std::to_string(::getpid()) + ".cat");
  auto const catalogue = small();
  {
    std::ofstream stream(path, std::ios::binary);
    catalogue.write(stream);
  }
  auto const one = Catalogue::open(path.string()), two = Catalogue::open(path.string(), CatalogueCheck::head);
  CHECK(std::ranges::equal(one.bytes(), catalogue.bytes()));
  CHECK(one.bytes().data() != two.bytes().data());
  is_a_catalogue(one), is_a_catalogue(two);
  std::filesystem::remove(path);  // processes that have it mapped keep it
  CHECK(one.tokens(90) == catalogue.tokens(90));

  auto const open = [&](std::string const& what) {
    try {
      (void)Catalogue::open(what);
    } catch (std::runtime_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(open(path.string()).starts_with(path.string() + ": cannot be opened"));
  CHECK(open("/").starts_with("/: is no regular file"));
  std::ofstream(path, std::ios::binary)
      << "SLUICECL, and so on, for more than sixty-four bytes in all, so it goes on and on";
  CHECK(open(path.string()) == path.string() + ": catalogue: this is no catalogue");
  std::ofstream(path, std::ios::binary | std::ios::trunc).flush();
  CHECK(open(path.string()) == path.string() + ": catalogue: there is nothing to read");
  std::filesystem::remove(path);
}

TEST_CASE("a catalogue that is cut off or damaged is refused", "[catalogue]") {
  auto const whole = bytes_of(small());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes const cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(problem(cut) != "");
    REQUIRE(problem(cut, CatalogueCheck::head) != "");
  }
  auto longer = whole;
  longer.resize(longer.size() + 64);
  CHECK(problem(longer) == "catalogue: something follows the end");
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (auto const flip : {1, 128, 255}) {
      auto changed = whole;
      changed[i] ^= static_cast<std::byte>(flip);
      REQUIRE(problem(changed) != "");
      if (problem(changed, CatalogueCheck::head).empty())  // the rest is not checked
        REQUIRE(ask(Catalogue::from_bytes(changed, CatalogueCheck::head)) < 10'000);
    }
  auto newer = whole;
  newer[8] = std::byte{2};
  CHECK(problem(newer) == "catalogue: version 2 of the format is unknown; only 1 is known");
}

TEST_CASE("a catalogue made to harm is refused, or is one", "[catalogue]") {
  auto const whole = bytes_of(small());
  std::mt19937_64 random(6);
  std::size_t refused = 0, taken = 0, unseen = 0;
  auto const look = [&](Bytes changed) {
    reseal(changed);
    if (problem(changed, CatalogueCheck::head).empty())
      ask(Catalogue::from_bytes(changed, CatalogueCheck::head)), ++unseen;
    if (!problem(changed).empty()) ++refused;
    else is_a_catalogue(Catalogue::from_bytes(changed)), ++taken;
  };
  for (std::size_t i = 8; i < whole.size(); ++i)  // each byte, with correct hashes
    for (auto const value : {0, 77, 255}) {
      auto changed = whole;
      changed[i] = static_cast<std::byte>(value);
      look(changed);
    }
  for (int round = 0; round < 3000; ++round) {  // some bytes, or numbers of the level table
    auto changed = whole;
    for (auto n = 1 + random() % 4; n > 0; --n) {
      auto const table = random() % 2 == 0;
      auto const at = table ? 8 + random() % 216 : random() % (whole.size() - 8);
      if (random() % 2 == 0) changed[at] = static_cast<std::byte>(random());
      else sluice::detail::store_little(changed.data() + at / 8 * 8, random() >> (random() % 64));
    }
    look(changed);
  }
  CAPTURE(refused, taken, unseen);
  CHECK(refused > 3000);
  CHECK(taken > 0);  // a changed token that still lies between its siblings
  CHECK(unseen > 3000);
}

TEST_CASE("errors name the place", "[catalogue]") {
  auto const whole = bytes_of(catalogue_of({{1, 5}, {1, 6}, {2}}));
  auto const with = [&](std::size_t at, auto value) {
    auto changed = whole;
    sluice::detail::store_little(changed.data() + at, value);
    reseal(changed);
    return problem(changed);
  };
  CHECK(with(64 + 16, std::uint32_t{4}) == "catalogue: level 1: nodes: 4 is not from 1 to 3");
  CHECK(with(64 + 24, std::uint8_t{5}) == "catalogue: level 1: bytes of a token: 5 is not from 1 to 4");
  CHECK(with(96 + 8, std::uint64_t{1} << 40) ==
        "catalogue: level 2: tokens: 2 bytes at 1099511627776 of " + std::to_string(whole.size()));
  CHECK(with(96, std::uint64_t{65}) == "catalogue: level 2: marks: at 65, which is no multiple of 64");
  CHECK(with(24, std::uint64_t{0}) == "catalogue: items: 0 is not from 1 to 2147483647");
  auto const tokens = static_cast<std::size_t>(sluice::detail::load_little<std::uint64_t>(whole.data() + 96 + 8));
  CHECK(with(tokens + 1, std::uint8_t{0}) == "catalogue: item 1: token 5 of level 2 follows 5");
}
