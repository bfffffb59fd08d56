// SPDX-License-Identifier: Apache-2.0
/// \file
/// Validates all bytes of a catalogue.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/catalogue_image.hpp>
#include <sluice/catalogue/detail/marks.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Checks the marks of one level: ascending, as many as stated, with correct counts.
SLUICE_LAZY void check_marks(Marks const& marks, std::uint32_t items, std::string const& place) {
  if (!marks.bits()) {
    std::int64_t last = -1;
    for (std::uint32_t k = 0; k < marks.size(); ++k) {
      std::int64_t const next = marks.number(k);
      if (next <= last || next >= std::int64_t{items})
        fail_catalogue(place + ": node " + std::to_string(k) + " begins with item " + std::to_string(next) +
                       ", that before with item " + std::to_string(last) + ", of " + std::to_string(items));
      last = next;
    }
    return;
  }
  auto const blocks = Marks::blocks(items);
  std::uint64_t sum = 0;
  for (std::uint32_t b = 0; b <= blocks; ++b) {
    if (marks.before(b) != sum)
      fail_catalogue(place + ": " + std::to_string(marks.before(b)) + " nodes before item " +
                     std::to_string(std::uint64_t{b} * Marks::block) + ", where " + std::to_string(sum) +
                     " are marked");
    for (std::uint32_t w = 0; b < blocks && w < Marks::block / 64; ++w) {
      auto const at = b * (Marks::block / 64) + w;
      auto const word = marks.words(at);
      auto const first = std::uint64_t{at} * 64;
      if (word != 0 && first + 64 - static_cast<unsigned>(std::countl_zero(word)) > items)
        fail_catalogue(place + ": a node begins behind the last item");
      sum += static_cast<unsigned>(std::popcount(word));
    }
  }
  if (sum != marks.size())
    fail_catalogue(place + ": " + std::to_string(sum) + " nodes, " + std::to_string(marks.size()) + " announced");
}

/// The position of check_catalogue() in one level.
struct LevelCursor {
  static constexpr auto none = (std::numeric_limits<std::uint32_t>::max)();
  std::uint32_t next = none, node = 0;  // the item with which the next node begins, and that node
  std::uint32_t token = 0;              // of the previous node
};

/// Throws std::runtime_error naming what is wrong, and where. O(tokens).
///
/// An item begins new nodes at depths s to e: s - 1 is the length of its common prefix with the previous item, and e is
/// its own length. So a level's marks are valid if the depths of each item have no gap, those of the first item begin
/// with 1, and no s - 1 exceeds the previous length. The items ascend if, at depth s, the token is larger than the
/// previous one among its siblings.
SLUICE_LAZY void check_catalogue(CatalogueImage const& image) {
  auto const bytes = image.bytes();
  if (load_little<std::uint64_t>(bytes.data() + 48) != hash_words(bytes.subspan(catalogue_head)))
    fail_catalogue("damaged: the checksum is wrong");
  auto const depth = image.depth();
  for (std::uint32_t d = 0; d < depth; ++d)
    check_marks(image.level(d).first, image.items(), "level " + std::to_string(d + 1));

  constexpr auto none = LevelCursor::none;
  std::vector<LevelCursor> at(depth);
  for (std::uint32_t d = 0; d < depth; ++d) at[d].next = image.level(d).first.at(0);
  std::uint32_t before = 0, shortest = none, longest = 0;
  std::vector<bool> seen(std::size_t{image.head().largest} + 1);
  for (std::uint32_t item = 0; item < image.items(); ++item) {
    auto const fail = [&](std::string const& what) { fail_catalogue("item " + std::to_string(item) + ": " + what); };
    std::uint32_t first = none, length = 0;
    // Nodes deeper than the previous item can begin here only below other new nodes.
    for (std::uint32_t d = 0; d < depth && (d <= before || d == length); ++d) {
      auto& cursor = at[d];
      if (cursor.next != item) {
        if (first != none) break;
        continue;
      }
      auto const token = image.level(d).token(cursor.node);
      if (!image.holds(token)) fail("token " + std::to_string(token) + " is not in the set of all");
      seen[token] = true;
      if (first == none) {
        first = d;
        if (item > 0 && d < before && token <= cursor.token)
          fail("token " + std::to_string(token) + " of level " + std::to_string(d + 1) + " follows " +
               std::to_string(cursor.token));
      }
      length = d + 1, cursor.token = token;
      ++cursor.node;
      auto const& marks = image.level(d).first;
      cursor.next = cursor.node < marks.size() ? marks.next(item + 1, cursor.node) : none;
    }
    if (first == none || (item == 0 && first != 0)) fail("is no other than that before, or none");
    before = length, shortest = (std::min)(shortest, length), longest = (std::max)(longest, length);
  }
  for (std::uint32_t d = 0; d < depth; ++d)
    if (at[d].next != none)
      fail_catalogue("level " + std::to_string(d + 1) + ": node " + std::to_string(at[d].node) +
                     " has no parent, at item " + std::to_string(at[d].next));
  if (shortest != image.head().shortest || longest != depth)
    fail_catalogue("items have " + std::to_string(shortest) + " to " + std::to_string(longest) + " tokens, " +
                   std::to_string(image.head().shortest) + " to " + std::to_string(depth) + " announced");
  for (std::uint32_t token = 0; token < seen.size(); ++token)
    if (image.holds(token) != seen[token])
      fail_catalogue("token " + std::to_string(token) + " is in the set of all, and in no item");
  if (!seen.back()) fail_catalogue("the largest token is in no item");
}

}  // namespace sluice::inline v0::detail
