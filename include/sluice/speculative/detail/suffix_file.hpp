// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of a SuffixCache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/suffix_segment.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

// The format, version 1. All numbers are little-endian.
//
//   8 bytes   "SLUICESX"
//   uint32    version
//   uint32    depth: by how many tokens places are sorted, 1 to 256
//   uint64    bytes of the file, a multiple of 64
//   uint32    tokens, those of -1 included
//   uint32    places
//   uint32    texts
//   int32     largest token that was decoded; -1: none
//   uint32    clock
//   4 bytes   0
//   uint64    hash of everything after the first 64 bytes
//   uint64    hash of the first 56 bytes
//   sections, each of which begins at a multiple of 64, with zeros before it:
//     tokens  int32 [tokens]: -1 before each text, and after the last one
//     order   uint32 [places]: see SuffixSegment
//     texts   uint32 [texts]: where each text's -1 is
//     used    uint32 [texts]: the clock when each was last used

constexpr char suffix_magic[] = "SLUICESX";
constexpr std::uint32_t suffix_version = 1, suffix_depth = 256;
constexpr std::uint64_t suffix_head = 64;

/// The contents of the first 64 bytes.
struct SuffixHead {
  std::uint32_t depth = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tokens = 0, places = 0, texts = 0;
  std::int32_t largest = -1;
  std::uint32_t clock = 0;
};

/// Where the sections begin.
struct SuffixSections {
  std::uint64_t tokens, order, texts, used, bytes;

  explicit SuffixSections(SuffixHead const& head) {
    auto at = suffix_head;
    auto const section = [&](std::uint64_t count) {
      auto const begin = at;
      at = aligned_64(at + 4 * count);
      return begin;
    };
    tokens = section(head.tokens), order = section(head.places);
    texts = section(head.texts), used = section(head.texts);
    bytes = at;
  }
};

[[noreturn]] inline void fail_suffixes(std::string const& what) { throw std::runtime_error("suffix cache: " + what); }

/// Writes a segment.
SLUICE_LAZY void write_suffixes(std::ostream& stream, SuffixSegment const& segment, SuffixHead head) {
  head.tokens = static_cast<std::uint32_t>(segment.tokens.size());
  head.places = static_cast<std::uint32_t>(segment.order.size());
  head.texts = static_cast<std::uint32_t>(segment.texts.size());
  SuffixSections const sections(head);
  std::vector<std::byte> file(static_cast<std::size_t>(sections.bytes));
  auto* const to = file.data();
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(suffix_magic[i]);
  store_little(to + 8, suffix_version), store_little(to + 12, head.depth);
  store_little(to + 16, sections.bytes);
  store_little(to + 24, head.tokens), store_little(to + 28, head.places), store_little(to + 32, head.texts);
  store_little(to + 36, static_cast<std::uint32_t>(head.largest)), store_little(to + 40, head.clock);
  auto const put = [&](std::uint64_t at, std::size_t count, auto&& number) {
    for (std::size_t i = 0; i < count; ++i) store_little(to + at + 4 * i, static_cast<std::uint32_t>(number(i)));
  };
  put(sections.tokens, head.tokens, [&](std::size_t i) { return segment.tokens[i]; });
  put(sections.order, head.places, [&](std::size_t i) { return segment.order[i]; });
  put(sections.texts, head.texts, [&](std::size_t i) { return segment.texts[i]; });
  put(sections.used, head.texts, [&](std::size_t i) { return segment.used[i].load(std::memory_order_relaxed); });
  std::span<std::byte> const all(file);
  store_little(to + 48, hash_words(all.subspan(suffix_head)));
  store_little(to + 56, hash_words(all.first(56)));
  stream.write(reinterpret_cast<char const*>(to), static_cast<std::streamsize>(file.size()));
  stream.flush();
  if (!stream) throw std::runtime_error("suffix cache: cannot be written");
}

/// Checks all bytes, and shows them as a segment: places lie within texts, so that no look-up leaves the file. O(bytes).
SLUICE_LAZY std::pair<SuffixHead, std::shared_ptr<SuffixSegment const>> read_suffixes(KeptBytes kept) {
  auto const bytes = kept.bytes;
  auto const* const from = bytes.data();
  if (bytes.empty()) fail_suffixes("there is nothing to read");
  if (std::memcmp(from, suffix_magic, (std::min<std::size_t>)(bytes.size(), 8)) != 0)
    fail_suffixes("this is no suffix cache");
  auto const cut = [&] { fail_suffixes("cut off after " + std::to_string(bytes.size()) + " bytes"); };
  if (bytes.size() < suffix_head) cut();
  auto const number = [&](std::size_t at) { return load_little<std::uint32_t>(from + at); };
  if (number(8) != suffix_version)
    fail_suffixes("version " + std::to_string(number(8)) + " of the format is unknown; only 1 is known");
  if (load_little<std::uint64_t>(from + 56) != hash_words(bytes.first(56)))
    fail_suffixes("damaged: the checksum of the head is wrong");
  SuffixHead const head{.depth = number(12),
                        .bytes = load_little<std::uint64_t>(from + 16),
                        .tokens = number(24),
                        .places = number(28),
                        .texts = number(32),
                        .largest = static_cast<std::int32_t>(number(36)),
                        .clock = number(40)};
  if (head.bytes > bytes.size()) cut();
  if (head.bytes < bytes.size()) fail_suffixes("something follows the end");
  if (head.depth < 1 || head.depth > suffix_depth)
    fail_suffixes("depth: " + std::to_string(head.depth) + " is not from 1 to " + std::to_string(suffix_depth));
  SuffixSections const sections(head);
  if (sections.bytes != head.bytes)
    fail_suffixes(std::to_string(head.bytes) + " bytes are not those of " + std::to_string(head.tokens) + " tokens, " +
                  std::to_string(head.places) + " places and " + std::to_string(head.texts) + " texts");
  if (load_little<std::uint64_t>(from + 48) != hash_words(bytes.subspan(suffix_head)))
    fail_suffixes("damaged: the checksum is wrong");

  auto made = std::make_shared<SuffixSegment>();
  auto const read = [&](std::uint64_t at, std::uint32_t count, auto& own, auto& shown) {
    if constexpr (std::endian::native == std::endian::little) {
      shown = {reinterpret_cast<decltype(own.data())>(const_cast<std::byte*>(from + at)), count};  // not written to
    } else {
      own.resize(count);
      for (std::uint32_t i = 0; i < count; ++i)
        own[i] = static_cast<std::decay_t<decltype(own[0])>>(number(at + 4 * std::uint64_t{i}));
      shown = own;
    }
  };
  read(sections.tokens, head.tokens, made->own_tokens, made->tokens);
  read(sections.order, head.places, made->own_order, made->order);
  read(sections.texts, head.texts, made->own_texts, made->texts);
  made->used = std::make_unique<std::atomic<std::uint32_t>[]>(head.texts);
  for (std::uint32_t t = 0; t < head.texts; ++t)
    made->used[t].store(number(sections.used + 4 * std::uint64_t{t}), std::memory_order_relaxed);

  auto const& tokens = made->tokens;
  if (tokens.empty() || tokens.front() != -1 || tokens.back() != -1) fail_suffixes("the texts do not end");
  std::size_t text = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < -1) fail_suffixes("token " + std::to_string(i) + " is " + std::to_string(tokens[i]));
    if (tokens[i] != -1 || i + 1 == tokens.size()) continue;
    if (text >= made->texts.size() || made->texts[text] != i)
      fail_suffixes("text " + std::to_string(text) + " does not begin at " + std::to_string(i));
    ++text;
  }
  if (text != made->texts.size()) fail_suffixes("there are " + std::to_string(text) + " texts");
  std::int32_t largest = -1;
  for (std::size_t i = 0; i < made->order.size(); ++i) {
    auto const place = made->order[i];
    if (place >= tokens.size() || tokens[place] < 0)
      fail_suffixes("place " + std::to_string(i) + ": there is no token " + std::to_string(place));
    largest = (std::max)(largest, tokens[place]);
    if (i % SuffixSegment::every == 0) made->add_key(i, made->key(place));
  }
  if (largest != head.largest) fail_suffixes("the largest token is " + std::to_string(largest));
  made->keeper = std::move(kept.keeper);
  return {head, std::move(made)};
}

}  // namespace sluice::inline v0::detail
