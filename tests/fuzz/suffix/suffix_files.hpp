// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files of a SuffixCache with any content. Checksums and what depends on all the rest are made right, else nothing behind them would
/// ever be read.
#pragma once

#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/suffix_file.hpp>
#include <sluice/speculative/detail/suffix_guesses.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <fuzz/demand.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

/// Puts magic, version, size, the largest token and the checksums into what may be a file.
inline void seal_suffixes(std::vector<std::byte>& file) {
  file.resize((std::max<std::size_t>)((file.size() + 63) / 64 * 64, 64));
  auto const put = [&](std::size_t at, auto number) { std::memcpy(file.data() + at, &number, sizeof number); };
  auto const word = [&](std::uint64_t at) {
    std::uint32_t number = 0;
    std::memcpy(&number, file.data() + at, sizeof number);
    return number;
  };
  std::memcpy(file.data(), sluice::detail::suffix_magic, 8);
  put(8, sluice::detail::suffix_version), put(16, static_cast<std::uint64_t>(file.size()));
  sluice::detail::SuffixHead const head{.tokens = word(24), .places = word(28), .texts = word(32)};
  sluice::detail::SuffixSections const sections(head);
  if (sections.bytes == file.size()) {
    std::int32_t largest = -1;
    for (std::uint64_t i = 0; i < head.places; ++i)
      if (auto const place = word(sections.order + 4 * i); place < head.tokens)
        largest = (std::max)(largest, static_cast<std::int32_t>(word(sections.tokens + 4 * std::uint64_t{place})));
    put(36, largest);
  }
  put(48, sluice::detail::hash_words(std::span<std::byte const>(file).subspan(64)));
  put(56, sluice::detail::hash_words(std::span<std::byte const>(file).first(56)));
}

/// Whatever a file says, all that is done with it stays within its bytes.
inline void suffix_file(std::span<std::uint8_t const> content) {
  auto const bytes = std::as_bytes(content);
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  seal_suffixes(file);
  SuffixCache cache(4096, 4);
  std::vector<Token> const known{5, 6, 7, 8};
  cache.insert({}, known);
  try {
    cache.load_bytes(file);
  } catch (std::runtime_error const& e) {
    demand(std::string_view(e.what()).starts_with("suffix cache: "), "a message that does not say of what", e.what());
    demand(cache.count(std::span(known).first(3)) == 1 && cache.texts() == 1,
           "a file that is refused changes something");
    return;
  }
  auto const use = [&] {
    sluice::detail::SuffixGuesses finder;
    sluice::detail::PathGuesses made;
    for (Token token = -1; token < 9; ++token) {
      std::vector<Token> const context{3, token, static_cast<Token>(token / 2), token};
      demand(cache.count(context) >= 0 && cache.count(std::span(context).last(1)) >= 0, "a negative count");
      auto const places = cache.places();
      finder.of_others(*places, context, {}, {.depth = 8, .nodes = 16, .leaves = 3}, made);
      for (auto const guess : made.tokens)
        demand(guess >= 0 && guess <= cache.largest_token(), "a guess that is no token");
    }
  };
  use();
  for (int i = 0; i < 60; ++i) cache.insert(known, known), use();  // merges, and forgets
  std::ostringstream stream;
  cache.write(stream);
  auto const once = std::move(stream).str();
  SuffixCache other(4096);
  other.load_bytes(std::as_bytes(std::span(once.data(), once.size())));
  demand(other.tokens() == cache.tokens() && other.texts() == cache.texts(), "what is read is not what was written");
}

}  // namespace sluice::test
