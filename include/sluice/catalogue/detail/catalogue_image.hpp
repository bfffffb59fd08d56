// SPDX-License-Identifier: Apache-2.0
/// \file
/// A view of a catalogue's bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

[[noreturn]] inline void fail_catalogue(std::string const& what) { throw std::runtime_error("catalogue: " + what); }

/// A view of a catalogue's bytes. Header and level table are validated; the rest is valid only if check() has
/// succeeded. Otherwise answers may be wrong, but reads stay within bounds.
class CatalogueImage {
 public:
  /// The nodes of one depth.
  class Level {
   public:
    SLUICE_LAZY Level(std::byte const* tokens, CatalogueLevel const& row, std::uint32_t items, std::uint32_t largest,
                      std::byte const* marks)
        : first(marks, items, row.nodes, row.bits),
          tokens_(tokens),
          width_(row.width),
          lowest_(row.lowest),
          largest_(largest) {}
    Marks first;  ///< each node's first item

    /// \param node  < first.size()
    SLUICE_LAZY std::uint32_t token(std::uint32_t node) const {
      Token token = 0;
      copy_tokens(node, 1, &token);
      return static_cast<std::uint32_t>(token);
    }
    /// Copies the tokens of nodes begin .. begin + count - 1, which must exist.
    SLUICE_LAZY void copy_tokens(std::uint32_t begin, std::uint32_t count, Token* to) const {
      auto const* const from = tokens_ + std::size_t{begin} * width_;
      switch (width_) {
        case 1: return copy(count, to, [&](std::size_t i) { return load_little<std::uint8_t>(from + i); });
        case 2: return copy(count, to, [&](std::size_t i) { return load_little<std::uint16_t>(from + 2 * i); });
        case 3:
          return copy(count, to, [&](std::size_t i) {
            return load_little<std::uint16_t>(from + 3 * i) | std::to_integer<std::uint32_t>(from[3 * i + 2]) << 16;
          });
        default: return copy(count, to, [&](std::size_t i) { return load_little<std::uint32_t>(from + 4 * i); });
      }
    }

   private:
    template <class Offset>
    void copy(std::uint32_t count, Token* to, Offset&& offset) const {
      for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<Token>(std::min<std::uint32_t>(largest_ - lowest_, offset(i)) + lowest_);
    }

    std::byte const* tokens_;
    std::uint8_t width_;
    std::uint32_t lowest_, largest_;
  };

  /// \param bytes  must live as long as this
  /// \throws std::runtime_error  naming what is wrong, for bytes that are not a catalogue, truncated, or of another
  ///     version
  SLUICE_LAZY explicit CatalogueImage(std::span<std::byte const> bytes) : bytes_(bytes) {
    if (bytes.empty()) fail_catalogue("there is nothing to read");
    auto const size = std::min<std::size_t>(bytes.size(), 8);
    if (std::memcmp(bytes.data(), catalogue_magic, size) != 0) fail_catalogue("this is no catalogue");
    auto const cut = [&] { fail_catalogue("cut off after " + std::to_string(bytes.size()) + " bytes"); };
    if (bytes.size() < catalogue_head) cut();
    if (auto const version = load_little<std::uint32_t>(bytes.data() + 8); version != catalogue_version)
      fail_catalogue("version " + std::to_string(version) + " of the format is unknown; only 1 is known");
    if (load_little<std::uint64_t>(bytes.data() + 56) != hash_words(bytes.first(56)))
      fail_catalogue("damaged: the checksum of the head is wrong");
    head_ = read_head(bytes.data());
    if (head_.bytes > bytes.size()) cut();
    if (head_.bytes < bytes.size()) fail_catalogue("something follows the end");
    if (head_.bytes % 64 != 0) fail_catalogue(std::to_string(head_.bytes) + " bytes are no multiple of 64");
    within("items", head_.items, 1, (std::numeric_limits<std::int32_t>::max)());
    within("levels", head_.levels, 1, catalogue_levels);
    within("shortest item", head_.shortest, 1, head_.levels);
    within("largest token", head_.largest, 0, (std::numeric_limits<std::int32_t>::max)());
    section("tokens", head_.tokens, std::uint64_t{head_.largest} / 8 + 1);
    if (head_.bytes < catalogue_head + head_.levels * catalogue_level) cut();
    for (std::uint32_t d = 0; d < head_.levels; ++d) add_level(d);
  }

  CatalogueHead const& head() const { return head_; }
  std::uint32_t items() const { return static_cast<std::uint32_t>(head_.items); }
  std::uint32_t depth() const { return head_.levels; }
  /// The nodes of d + 1 tokens.
  Level const& level(std::uint32_t d) const { return levels_[d]; }
  std::span<std::byte const> bytes() const { return bytes_; }
  /// Whether some item contains it.
  bool holds(std::uint32_t token) const {
    return token <= head_.largest && (bytes_[head_.tokens + token / 8] >> (token % 8) & std::byte{1}) != std::byte{0};
  }

 private:
  SLUICE_LAZY static std::string place(std::uint32_t d, char const* what) {
    return "level " + std::to_string(d + 1) + ": " + what;
  }
  SLUICE_LAZY static void within(std::string const& what, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    if (value < low || value > high)
      fail_catalogue(what + ": " + std::to_string(value) + " is not from " + std::to_string(low) + " to " +
                     std::to_string(high));
  }
  SLUICE_LAZY void section(std::string const& what, std::uint64_t at, std::uint64_t size) const {
    if (at % 64 != 0) fail_catalogue(what + ": at " + std::to_string(at) + ", which is no multiple of 64");
    if (at < catalogue_head || at > bytes_.size() || size > bytes_.size() - at)
      fail_catalogue(what + ": " + std::to_string(size) + " bytes at " + std::to_string(at) + " of " +
                     std::to_string(bytes_.size()));
  }
  SLUICE_LAZY void add_level(std::uint32_t d) {
    auto const* const from = bytes_.data() + catalogue_head + d * catalogue_level;
    auto const row = read_level(from);
    within(place(d, "nodes"), row.nodes, 1, head_.items);
    within(place(d, "lowest token"), row.lowest, 0, head_.largest);
    within(place(d, "bytes of a token"), row.width, 1, 4);
    within(place(d, "kind of marks"), load_little<std::uint8_t>(from + 25), 0, 1);
    section(place(d, "marks"), row.marks, Marks::bytes(items(), row.nodes, row.bits));
    section(place(d, "tokens"), row.tokens, std::uint64_t{row.nodes} * row.width);
    levels_.emplace_back(bytes_.data() + row.tokens, row, items(), head_.largest, bytes_.data() + row.marks);
  }

  std::span<std::byte const> bytes_;
  CatalogueHead head_;
  std::vector<Level> levels_;
};

}  // namespace sluice::inline v0::detail
