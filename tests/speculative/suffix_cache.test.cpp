// SPDX-License-Identifier: Apache-2.0
#include <sluice/speculative/suffix_cache.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;

/// A text and what precedes it.
struct Inserted {
  Text before, decoded;
};

/// How often the context occurs with a decoded token behind it, token by token.
std::int64_t brute_count(std::vector<Inserted> const& all, Text const& context, std::int32_t longest) {
  auto const m = std::min(context.size(), static_cast<std::size_t>(longest));
  std::int64_t sum = 0;
  for (auto const& one : all) {
    Text text(one.before.end() -
                  static_cast<std::ptrdiff_t>(std::min(one.before.size(), static_cast<std::size_t>(longest))),
              one.before.end());
    auto const first = text.size();
    text.insert(text.end(), one.decoded.begin(), one.decoded.end());
    for (auto p = first; p < text.size(); ++p)
      sum += p >= m && std::equal(context.end() - static_cast<std::ptrdiff_t>(m), context.end(),
                                  text.begin() + static_cast<std::ptrdiff_t>(p - m));
  }
  return sum;
}

Text random_text(std::mt19937_64& random, std::size_t most, Token size) {
  Text text(random() % (most + 1));
  for (auto& token : text) token = static_cast<Token>(random() % static_cast<std::uint64_t>(size));
  return text;
}

/// A piece of an earlier text, or a random one.
Text text_like(std::mt19937_64& random, std::vector<Inserted> const& all, std::size_t most, Token size) {
  auto text = random_text(random, most, size);
  if (all.empty() || random() % 3 == 0) return text;
  auto const& old = all[random() % all.size()].decoded;
  auto const from = random() % (old.size() + 1);
  text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)),
              old.begin() + static_cast<std::ptrdiff_t>(from),
              old.begin() + static_cast<std::ptrdiff_t>(from + random() % (old.size() - from + 1)));
  return text;
}

std::string contents(SuffixCache& cache) {
  std::ostringstream stream;
  cache.write(stream);
  return std::move(stream).str();
}
std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string message(SuffixCache& cache, std::string const& bytes) {
  try {
    cache.load_bytes(bytes_of(bytes));
  } catch (std::runtime_error const& problem) {
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("counts are those of a search through all texts", "[suffix_cache]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    auto const longest = static_cast<std::int32_t>(1 + random() % 9);
    auto const size = static_cast<Token>(1 + random() % 5);
    SuffixCache cache(1 << 20, longest), again(1 << 20, 3);
    std::vector<Inserted> all;
    std::int64_t tokens = 0;
    for (int i = 0; i < 40; ++i) {
      Inserted one{random_text(random, 6, size), text_like(random, all, 25, size)};
      cache.insert(one.before, one.decoded);
      if (one.decoded.empty()) continue;
      tokens += std::ssize(one.decoded) + std::min<std::ptrdiff_t>(longest, std::ssize(one.before));
      all.push_back(std::move(one));
      if (random() % 7 == 0) contents(cache);  // merges all arrays
    }
    CHECK(cache.tokens() == tokens);
    CHECK(cache.texts() == std::ssize(all));
    again.load_bytes(bytes_of(contents(cache)));
    CHECK(again.longest() == longest);
    for (int i = 0; i < 200; ++i) {
      auto const context = text_like(random, all, 4, size);
      auto const expected = brute_count(all, context, longest);
      if (cache.count(context) != expected) CHECK(cache.count(context) == expected);
      if (again.count(context) != expected) CHECK(again.count(context) == expected);
    }
  }
}

TEST_CASE("counts stay right while arrays are merged, and texts forgotten", "[suffix_cache]") {
  std::mt19937_64 random(8);
  SuffixCache cache(4096, 8);
  std::vector<Inserted> all;
  std::int64_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    Inserted one{random_text(random, 3, 4), text_like(random, all, 12, 4)};
    if (one.decoded.size() > 30) one.decoded.resize(30);
    if (one.decoded.empty()) continue;
    cache.insert(one.before, one.decoded);
    all.push_back(std::move(one));
    most = std::max(most, cache.tokens());
    if (i % 37 != 0) continue;
    // Nothing was looked up: the texts that are left are the last ones.
    std::span const left = std::span(all).last(static_cast<std::size_t>(cache.texts()));
    std::vector<Inserted> const rest(left.begin(), left.end());
    for (int j = 0; j < 10; ++j) {
      auto const context = text_like(random, rest, 3, 4);
      auto const expected = brute_count(rest, context, 8);
      if (cache.count(context) != expected) CHECK(cache.count(context) == expected);
    }
  }
  CHECK(std::ssize(all) > cache.texts());
  CHECK(most <= 4096);
  CHECK(most > 4096 / 2);
}

TEST_CASE("the least recently used text is forgotten", "[suffix_cache]") {
  SuffixCache cache(4096, 8);
  auto const text = [](Token first) {
    Text tokens(20);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + static_cast<Token>(i);
    return tokens;
  };
  auto const known = [&](Token first) { return cache.count(std::vector{first, first + 1}) > 0; };
  for (Token i = 0; i < 600; ++i) {
    cache.insert({}, text(100 * i));
    auto const places = cache.places();
    for (auto const& segment : places->segments)  // text 3 is guessed from again and again
      if (auto const first = std::ranges::find(segment->tokens, Token{305}); first != segment->tokens.end())
        segment->touch(static_cast<std::uint32_t>(first - segment->tokens.begin()), places->clock);
  }
  CHECK(known(300));
  CHECK_FALSE(known(200));
  CHECK_FALSE(known(400));
  CHECK(known(59'900));
}

TEST_CASE("what a cache holds depends on its insertions only", "[suffix_cache]") {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    std::mt19937_64 random(9);
    SuffixCache cache(5000, 6);
    std::vector<Inserted> all;
    for (int i = 0; i < 500; ++i) {
      all.push_back({random_text(random, 3, 4), text_like(random, all, 12, 4)});
      cache.insert(all.back().before, all.back().decoded);
    }
    auto const bytes = contents(cache);
    if (round == 0) first = bytes;
    else CHECK(bytes == first);
    CHECK(contents(cache) == first);
    SuffixCache other(5000);
    other.load_bytes(bytes_of(bytes));
    CHECK(other.largest_token() == 3);
    CHECK(contents(other) == first);  // also its times of use
    cache.clear();
    CHECK(cache.tokens() == 0);
    CHECK(cache.count({}) == 0);
    CHECK(cache.largest_token() == -1);
  }
}

TEST_CASE("of a long text the end is kept, and contexts end at negative tokens", "[suffix_cache]") {
  SuffixCache cache(4096, 4);  // 64 tokens a text, with the -1 before it
  Text longer(200, 5);
  longer.back() = 6;
  cache.insert(Text{1, 2}, longer);
  CHECK(cache.tokens() == 63);
  CHECK(cache.count(Text{5, 5, 5, 5}) == 59);
  cache.clear();
  cache.insert(Text{1, -1, 2}, Text{3});
  CHECK(cache.count(Text{2}) == 1);
  CHECK(cache.count(Text{9, -5, 2}) == 1);
  CHECK(cache.count(Text{1, 2}) == 0);
  CHECK_THROWS_WITH(cache.insert({}, Text{4, -1}), Equals("sluice: SuffixCache: token = -1: must not be negative"));
  CHECK_THROWS_WITH(SuffixCache(10), Equals("sluice: SuffixCache: tokens = 10: must be from 4096 to 2147483647"));
  CHECK_THROWS_WITH(SuffixCache(9999, 0), Equals("sluice: SuffixCache: longest = 0: must be from 1 to 256"));
}

TEST_CASE("a file is mapped, replaced, and refused if it is bad", "[suffix_cache]") {
  auto const path = (std::filesystem::temp_directory_path() / "sluice.suffix_cache.test").string();
  SuffixCache cache(1 << 16, 5);
  cache.insert(Text{1}, Text{2, 3, 4, 2});
  cache.insert(Text{1}, Text{2, 3, 5, 2});
  cache.save(path);
  SuffixCache other(1 << 16);
  other.load(path);
  CHECK(other.count(Text{2, 3}) == 2);
  other.insert({}, Text{2, 3, 7});
  other.save(path);  // over the file that it has mapped
  CHECK(other.count(Text{2, 3}) == 3);
  cache.load(path);
  CHECK(cache.count(Text{2, 3}) == 3);
  CHECK(cache.longest() == 5);

  auto const good = contents(cache);
  CHECK(message(cache, good).empty());
  CHECK(message(cache, "") == "suffix cache: there is nothing to read");
  CHECK(message(cache, "SLUICENG, but not quite") == "suffix cache: this is no suffix cache");
  CHECK(message(cache, good.substr(0, 30)) == "suffix cache: cut off after 30 bytes");
  CHECK(message(cache, good.substr(0, good.size() - 64)) ==
        "suffix cache: cut off after " + std::to_string(good.size() - 64) + " bytes");
  CHECK(message(cache, good + "x") == "suffix cache: something follows the end");
  auto newer = good;
  newer[8] = 2;
  CHECK(message(cache, newer) == "suffix cache: version 2 of the format is unknown; only 1 is known");
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    INFO("byte " << i);
    CHECK_FALSE(message(cache, bad).empty());
  }
  CHECK(cache.count(Text{2, 3}) == 3);  // as before
  std::ofstream(path, std::ios::binary) << "nothing";
  CHECK_THROWS_WITH(cache.load(path), Equals(path + ": suffix cache: this is no suffix cache"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(cache.load(path), Equals(path + ": cannot be opened: No such file or directory"));
  CHECK_THROWS(cache.save("/nowhere/at/all"));
}

TEST_CASE("a file with right checksums and wrong contents is refused", "[suffix_cache]") {
  SuffixCache cache(1 << 16, 5);
  cache.insert(Text{1}, Text{2, 3, 4, 2});
  cache.insert(Text{1}, Text{2, 3});
  auto const good = contents(cache);
  auto const changed = [&](std::size_t at, std::uint32_t value) {
    auto bad = good;
    std::vector<std::byte> file(bad.size());
    std::ranges::copy(bytes_of(bad), file.begin());
    detail::store_little(file.data() + at, value);
    detail::store_little(file.data() + 48, detail::hash_words(std::span<std::byte const>(file).subspan(64)));
    detail::store_little(file.data() + 56, detail::hash_words(std::span<std::byte const>(file).first(56)));
    std::ranges::transform(file, bad.begin(), [](std::byte b) { return static_cast<char>(b); });
    return message(cache, bad);
  };
  CHECK(changed(12, 5).empty());
  CHECK(changed(12, 257) == "suffix cache: depth: 257 is not from 1 to 256");
  CHECK(changed(24, 1000) ==
        "suffix cache: " + std::to_string(good.size()) + " bytes are not those of 1000 tokens, 6 places and 2 texts");
  CHECK(changed(36, 9) == "suffix cache: the largest token is 4");
  CHECK(changed(64, 0) == "suffix cache: the texts do not end");
  CHECK(changed(64 + 8, 0xFFFF'FFFEu) == "suffix cache: token 2 is -2");
  CHECK(changed(64 + 8, 0xFFFF'FFFFu) == "suffix cache: text 1 does not begin at 2");
  CHECK(changed(128, 0) == "suffix cache: place 0: there is no token 0");
  CHECK(changed(128, 4'000'000'000u) == "suffix cache: place 0: there is no token 4000000000");
  CHECK(changed(192, 1) == "suffix cache: text 0 does not begin at 0");
}
