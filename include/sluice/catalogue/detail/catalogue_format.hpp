// SPDX-License-Identifier: Apache-2.0
/// \file
/// The layout of a catalogue in memory and in its file.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/detail/file_words.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::inline v0::detail {

// The format, version 1. All numbers are little-endian. Items are sorted, and numbered from 0 in that order. Those that
// begin with the same d tokens form a node of level d; they are contiguous, so the number of the first one identifies
// the node.
//
//   8 bytes   "SLUICECA"
//   uint32    version
//   uint32    levels: tokens of the longest item
//   uint64    bytes of the file, a multiple of 64
//   uint64    items
//   uint32    tokens of the shortest item
//   uint32    largest token
//   uint64    offset of the set of all tokens: bit t % 8 of byte t / 8
//   uint64    hash of everything after the first 64 bytes
//   uint64    hash of the first 56 bytes
//   for each level, 32 bytes:
//     uint64    offset of its marks: the first items of its nodes, see Marks
//     uint64    offset of its tokens: that of each node, minus `lowest`
//     uint32    nodes
//     uint32    lowest: the smallest token of the level
//     uint8     bytes of a token, 1 to 4
//     uint8     marks are 0 = a list, 1 = bits
//     uint16    0
//     uint32    0
//   the set, then marks and tokens of each level. Each begins at a multiple of 64, with zeros before it.

constexpr char catalogue_magic[] = "SLUICECA";
constexpr std::uint32_t catalogue_version = 1;
constexpr std::uint64_t catalogue_head = 64, catalogue_level = 32;
constexpr std::uint32_t catalogue_levels = 1024;  ///< maximum

/// The contents of the first 64 bytes.
struct CatalogueHead {
  std::uint32_t levels = 0;
  std::uint64_t bytes = 0, items = 0;
  std::uint32_t shortest = 0, largest = 0;
  std::uint64_t tokens = 0;
};

/// A row of the table of levels.
struct CatalogueLevel {
  std::uint64_t marks = 0, tokens = 0;  // their offsets
  std::uint32_t nodes = 0, lowest = 0;
  std::uint8_t width = 1;
  bool bits = false;
};

inline std::byte* write_head(std::byte* to, CatalogueHead const& head) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(catalogue_magic[i]);
  store_little(to + 8, catalogue_version);
  store_little(to + 12, head.levels);
  store_little(to + 16, head.bytes);
  store_little(to + 24, head.items);
  store_little(to + 32, head.shortest);
  store_little(to + 36, head.largest);
  store_little(to + 40, head.tokens);
  return to;
}
inline CatalogueHead read_head(std::byte const* from) {
  return {load_little<std::uint32_t>(from + 12), load_little<std::uint64_t>(from + 16),
          load_little<std::uint64_t>(from + 24), load_little<std::uint32_t>(from + 32),
          load_little<std::uint32_t>(from + 36), load_little<std::uint64_t>(from + 40)};
}

inline void write_level(std::byte* to, CatalogueLevel const& level) {
  store_little(to, level.marks);
  store_little(to + 8, level.tokens);
  store_little(to + 16, level.nodes);
  store_little(to + 20, level.lowest);
  store_little(to + 24, level.width);
  store_little(to + 25, static_cast<std::uint8_t>(level.bits ? 1 : 0));
}
inline CatalogueLevel read_level(std::byte const* from) {
  return {load_little<std::uint64_t>(from),      load_little<std::uint64_t>(from + 8),
          load_little<std::uint32_t>(from + 16), load_little<std::uint32_t>(from + 20),
          load_little<std::uint8_t>(from + 24),  load_little<std::uint8_t>(from + 25) != 0};
}

/// Writes both hashes; call it last.
inline void seal(std::span<std::byte> file) {
  store_little(file.data() + 48, hash_words(file.subspan(catalogue_head)));
  store_little(file.data() + 56, hash_words(file.first(56)));
}

}  // namespace sluice::inline v0::detail
