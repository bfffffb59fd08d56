// SPDX-License-Identifier: Apache-2.0
/// \file
/// Builds catalogues from token sequences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How to handle a sequence that has already been added.
enum class Duplicates : std::uint8_t {
  refuse,  ///< an error that names both
  count,   ///< merges them into one item; CatalogueBuilder::duplicates() counts them
};

/// Builds a Catalogue from sequences in any order. Memory: their tokens once (4 bytes each), 18 bytes per item, 16 more
/// if they do not arrive sorted, and the catalogue. While items are added, up to three times the first two, since
/// vectors grow.
class CatalogueBuilder {
 public:
  explicit CatalogueBuilder(Duplicates duplicates = Duplicates::refuse) : when_twice_(duplicates) {}

  /// \throws std::invalid_argument  for no tokens or more than 1,024, a negative token, or more than 2^31 - 1 sequences
  SLUICE_LAZY void add(std::span<Token const> tokens) {
    auto const name = "sequence " + std::to_string(added());
    require(!tokens.empty(), name, "[]", "has no tokens");
    require(tokens.size() <= detail::catalogue_levels, name, std::to_string(tokens.size()) + " tokens",
            "must have at most " + std::to_string(detail::catalogue_levels));
    require(added() < (std::numeric_limits<Item>::max)(), name, "one more", "a catalogue has at most 2^31 - 1");
    for (auto const token : tokens) require(token >= 0, name, token, "a token must not be negative");
    largest_ = (std::max)(largest_, *std::max_element(tokens.begin(), tokens.end()));
    auto const before = begins_.size() < 2 ? tokens.first(0) : at(begins_.size() - 2);
    sorted_ = sorted_ && !std::lexicographical_compare(tokens.begin(), tokens.end(), before.begin(), before.end());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    begins_.push_back(tokens_.size());
  }
  /// The number of sequences added.
  std::int64_t added() const { return static_cast<std::int64_t>(begins_.size()) - 1; }

  /// \throws std::invalid_argument  if nothing was added, or for a duplicate under Duplicates::refuse
  SLUICE_LAZY Catalogue build() {
    require(added() > 0, "catalogue", "0 sequences", "must have one");
    order();
    number();
    return Catalogue::from_kept(image(), CatalogueCheck::head);
  }
  /// After build(): the item of each sequence, in the order of adding.
  std::span<Item const> items() const { return items_; }
  /// After build(): the number of duplicates.
  std::int64_t duplicates() const { return added() - static_cast<std::int64_t>(order_.size()); }

 private:
  SLUICE_LAZY std::span<Token const> at(std::size_t i) const {
    return std::span(tokens_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }

  /// Sets order_: the sequences, sorted; equal ones in the order of adding.
  SLUICE_LAZY void order() {
    order_.resize(begins_.size() - 1);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    if (sorted_) return;
    // The first tokens packed into one number decide most comparisons. A missing token is 0.
    auto const bits = static_cast<unsigned>(32 - std::countl_zero(static_cast<std::uint32_t>(largest_) + 1));
    auto const whole = 64 / bits;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keys(order_.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::uint64_t key = 0;
      auto const tokens = at(i);
      for (unsigned t = 0; t < whole; ++t)
        key = (bits < 64 ? key << bits : 0) | (t < tokens.size() ? static_cast<std::uint64_t>(tokens[t]) + 1 : 0);
      keys[i] = {key, static_cast<std::uint32_t>(i)};
    }
    std::sort(keys.begin(), keys.end(), [&](auto const& a, auto const& b) {
      if (a.first != b.first) return a.first < b.first;
      auto const x = at(a.second), y = at(b.second);
      auto const [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
      if (j == y.end()) return i == x.end() && a.second < b.second;
      return i == x.end() || *i < *j;
    });
    for (std::size_t i = 0; i < keys.size(); ++i) order_[i] = keys[i].second;
  }

  SLUICE_LAZY static std::size_t shared(std::span<Token const> a, std::span<Token const> b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  }

  /// Sets items_ and shared_ (the length of each item's common prefix with the one before); removes duplicates from
  /// order_.
  SLUICE_LAZY void number() {
    items_.resize(order_.size()), shared_.clear();
    std::size_t kept = 0;
    for (auto const i : order_) {
      std::size_t common = 0;
      if (kept > 0) {
        auto const before = order_[kept - 1];
        common = shared(at(before), at(i));
        if (common == at(i).size()) {  // sorted, so it is the same sequence
          require(when_twice_ == Duplicates::count, "sequence " + std::to_string(i),
                  "that of sequence " + std::to_string(before), "is there twice");
          items_[i] = static_cast<Item>(kept - 1);
          continue;
        }
      }
      shared_.push_back(static_cast<std::uint16_t>(common));
      items_[i] = static_cast<Item>(kept);
      order_[kept++] = i;
    }
    order_.resize(kept);
  }

  /// Calls f(item, depth, token) for every node.
  template <class F>
  void for_each_node(F&& f) const {
    for (std::size_t item = 0; item < order_.size(); ++item) {
      auto const tokens = at(order_[item]);
      for (std::size_t d = shared_[item]; d < tokens.size(); ++d)
        f(static_cast<std::uint32_t>(item), d, static_cast<std::uint32_t>(tokens[d]));
    }
  }

  SLUICE_LAZY detail::KeptBytes image() const {
    using detail::aligned_64, detail::catalogue_head, detail::catalogue_level, detail::CatalogueHead,
        detail::CatalogueLevel, detail::Marks, detail::store_little;
    auto const count = static_cast<std::uint32_t>(order_.size());
    CatalogueHead head{.items = count,
                       .shortest = (std::numeric_limits<std::uint32_t>::max)(),
                       .largest = static_cast<std::uint32_t>(largest_)};
    for (auto const i : order_) {
      auto const size = static_cast<std::uint32_t>(at(i).size());
      head.shortest = (std::min)(head.shortest, size), head.levels = (std::max)(head.levels, size);
    }
    std::vector<CatalogueLevel> levels(head.levels);
    std::vector<std::uint32_t> highest(head.levels);
    for (auto& level : levels) level.lowest = head.largest;
    for_each_node([&](std::uint32_t, std::size_t d, std::uint32_t token) {
      ++levels[d].nodes;
      levels[d].lowest = (std::min)(levels[d].lowest, token), highest[d] = (std::max)(highest[d], token);
    });
    auto end = aligned_64(catalogue_head + levels.size() * catalogue_level);
    auto const place = [&](std::uint64_t size) { return std::exchange(end, end + aligned_64(size)); };
    head.tokens = place(std::uint64_t{head.largest} / 8 + 1);
    for (std::size_t d = 0; d < levels.size(); ++d) {
      auto& level = levels[d];
      auto const bits = static_cast<unsigned>(32 - std::countl_zero(highest[d] - level.lowest));
      level.width = static_cast<std::uint8_t>((std::max)((bits + 7) / 8, 1u));
      level.bits = Marks::as_bits(count, level.nodes);
      level.marks = place(Marks::bytes(count, level.nodes, level.bits));
      level.tokens = place(std::uint64_t{level.nodes} * level.width);
    }
    head.bytes = end;

    auto made = detail::zeroed_bytes(end);
    auto* const to = made.second;
    detail::write_head(to, head);
    std::vector<std::uint32_t> next(levels.size());
    for_each_node([&](std::uint32_t item, std::size_t d, std::uint32_t token) {
      auto const& level = levels[d];
      to[head.tokens + token / 8] |= std::byte{1} << (token % 8);
      if (level.bits) Marks::set(to + level.marks, item);
      else store_little(to + level.marks + std::size_t{next[d]} * 4, item);
      auto* const place_of = to + level.tokens + std::size_t{next[d]++} * level.width;
      for (unsigned b = 0; b < level.width; ++b)
        place_of[b] = static_cast<std::byte>((token - level.lowest) >> (8 * b) & 0xFF);
    });
    for (std::size_t d = 0; d < levels.size(); ++d) {
      detail::write_level(to + catalogue_head + d * catalogue_level, levels[d]);
      if (levels[d].bits) Marks::count_blocks(to + levels[d].marks, count);
    }
    detail::seal({to, end});
    return {std::move(made.first), {to, end}};
  }

  Duplicates when_twice_;
  bool sorted_ = true;
  Token largest_ = 0;
  std::vector<Token> tokens_;
  std::vector<std::size_t> begins_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint16_t> shared_;
  std::vector<Item> items_;
};

}  // namespace sluice::inline v0
