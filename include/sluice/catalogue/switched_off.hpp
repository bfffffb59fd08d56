// SPDX-License-Identifier: Apache-2.0
/// \file
/// Items of a catalogue that a request excludes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {
class SwitchedOffCursor;
}  // namespace detail

/// A set of items that must not be generated: sold out, or already seen. Built from a list in the time that sorting
/// takes; a request's own set can be layered on a shared one. Counts how many of a range are in it in O(1) for large
/// sets and O(log set) for small ones, so that a search never enters a node without remaining items. Copies are cheap.
class SwitchedOff {
 public:
  /// Empty.
  SwitchedOff() = default;
  /// \param items   in any order; duplicates count once
  /// \param shared  a set to include
  /// \throws std::invalid_argument  for a number that is not an item, or a `shared` made for another catalogue
  template <class = void>
  SwitchedOff(Catalogue const& catalogue, std::span<Item const> items, SwitchedOff const& shared)
      : bound_(catalogue.size()), layers_(shared.layers_) {
    require(shared.bound_ == 0 || shared.bound_ == bound_, "shared", std::to_string(shared.bound_) + " items",
            "is of another catalogue than this, of " + std::to_string(bound_));
    std::vector<std::uint32_t> sorted;
    sorted.reserve(items.size());
    for (auto const item : items) {
      require(item >= 0 && item < bound_, "item", item, "the catalogue has " + std::to_string(bound_));
      if (!shared.contains(item)) sorted.push_back(static_cast<std::uint32_t>(item));
    }
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    if (!sorted.empty()) layers_.push_back(std::make_shared<Layer const>(sorted, static_cast<std::uint32_t>(bound_)));
  }
  template <class = void>
  SwitchedOff(Catalogue const& catalogue, std::span<Item const> items) : SwitchedOff(catalogue, items, SwitchedOff()) {}

  /// The size of the catalogue it was made for; 0: the empty set, for any catalogue.
  Item catalogue_size() const { return bound_; }
  bool empty() const { return layers_.empty(); }
  template <class = void>
  bool contains(Item item) const {
    for (auto const& layer : layers_)
      if (layer->marks.contains(static_cast<std::uint32_t>(item))) return true;
    return false;
  }
  /// The number of its elements below this item.
  template <class = void>
  Item before(Item item) const {
    std::uint32_t sum = 0;  // the layers are disjoint
    for (auto const& layer : layers_) sum += layer->marks.rank(static_cast<std::uint32_t>(item));
    return static_cast<Item>(sum);
  }
  /// Whether some item of [first, last) is not in it.
  template <class = void>
  bool any_left(Item first, Item last) const {
    return first < last && (layers_.empty() || before(last) - before(first) < last - first);
  }
  /// The number of elements.
  template <class = void>
  Item size() const {
    return before(bound_);
  }

 private:
  friend class detail::SwitchedOffCursor;

  struct Layer {
    template <class = void>
    Layer(std::span<std::uint32_t const> items, std::uint32_t bound) {
      auto const count = static_cast<std::uint32_t>(items.size());
      auto const bits = detail::Marks::as_bits(bound, count);
      auto made = detail::zeroed_bytes(detail::Marks::bytes(bound, count, bits));
      detail::Marks::write(items, bound, bits, made.second);
      keeper = std::move(made.first);
      marks = detail::Marks(made.second, bound, count, bits);
    }
    std::shared_ptr<void const> keeper;
    detail::Marks marks;
  };

  Item bound_ = 0;
  std::vector<std::shared_ptr<Layer const>> layers_;
};

namespace detail {

/// SwitchedOff::contains for mostly ascending items; continues from the last lookup.
class SwitchedOffCursor {
 public:
  /// The set must live as long as this is used.
  template <class = void>
  void begin(SwitchedOff const& set) {
    layers_.clear();
    for (auto const& layer : set.layers_) layers_.emplace_back(layer->marks);
  }
  template <class = void>
  bool contains(Item item) {
    auto found = false;
    for (auto& layer : layers_) found |= layer.contains(static_cast<std::uint32_t>(item));
    return found;
  }

 private:
  std::vector<Marks::Cursor> layers_;
};

}  // namespace detail

}  // namespace sluice::inline v0
