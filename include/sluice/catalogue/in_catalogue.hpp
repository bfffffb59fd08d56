// SPDX-License-Identifier: Apache-2.0
/// \file
/// Outputs that are items of a catalogue, for any search; SwitchedOff: items that a request excludes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

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
  SLUICE_LAZY SwitchedOff(Catalogue const& catalogue, std::span<Item const> items, SwitchedOff const& shared)
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
  SLUICE_LAZY SwitchedOff(Catalogue const& catalogue, std::span<Item const> items)
      : SwitchedOff(catalogue, items, SwitchedOff()) {}

  bool empty() const { return layers_.empty(); }
  SLUICE_LAZY bool contains(Item item) const {
    for (auto const& layer : layers_)
      if (layer->marks.contains(static_cast<std::uint32_t>(item))) return true;
    return false;
  }
  /// The number of its elements below this item.
  SLUICE_LAZY Item before(Item item) const {
    std::uint32_t sum = 0;  // the layers are disjoint
    for (auto const& layer : layers_) sum += layer->marks.rank(static_cast<std::uint32_t>(item));
    return static_cast<Item>(sum);
  }
  /// Whether some item of [first, last) is not in it.
  SLUICE_LAZY bool any_left(Item first, Item last) const {
    return first < last && (layers_.empty() || before(last) - before(first) < last - first);
  }
  /// The number of elements.
  SLUICE_LAZY Item size() const { return before(bound_); }

 private:
  friend class InCatalogue;
  friend class detail::SwitchedOffCursor;

  struct Layer {
    SLUICE_LAZY Layer(std::span<std::uint32_t const> items, std::uint32_t bound) {
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
  SLUICE_LAZY void begin(SwitchedOff const& set) {
    layers_.clear();
    for (auto const& layer : set.layers_) layers_.emplace_back(layer->marks);
  }
  SLUICE_LAZY bool contains(Item item) {
    auto found = false;
    for (auto& layer : layers_) found |= layer.contains(static_cast<std::uint32_t>(item));
    return found;
  }

 private:
  std::vector<Marks::Cursor> layers_;
};

}  // namespace detail

namespace detail {
struct ChildrenLists;
}  // namespace detail

/// Outputs are items of a catalogue, except those that are switched off: a logits processor for any search. An
/// output ends where an item does; without eos, all items must have exactly as many tokens as outputs have. Impossible
/// requests are refused at the start: a forced prefix that no remaining item begins with, or a maximum length below the
/// longest item plus eos (so that no output ends incomplete).
///
/// Catalogue::item_of() tells which item a hypothesis is. Wide beams are much faster with CatalogueBeam. As the potential of a
/// ParticleSample, `Indicator<InCatalogue>`, items are sampled as often as the model has them.
class InCatalogue {
 public:
  struct State {
    enum class At : std::uint8_t { inside, ended, outside };
    Catalogue::Node node{};
    At at = At::inside;
    Vocabulary const* vocabulary = nullptr;
    friend bool operator==(State const&, State const&) = default;
  };

  /// Allows everything.
  InCatalogue() = default;
  /// \param off  for this catalogue
  /// \throws std::invalid_argument  for a set made for another catalogue
  SLUICE_LAZY explicit InCatalogue(Catalogue catalogue, SwitchedOff off = {})
      : catalogue_(std::move(catalogue)), off_(std::move(off)) {
    require(off_.bound_ == 0 || off_.bound_ == catalogue_.size(), "off", std::to_string(off_.bound_) + " items",
            "is of another catalogue than this, of " + std::to_string(catalogue_.size()));
  }

  Catalogue const& catalogue() const { return catalogue_; }
  SwitchedOff const& off() const { return off_; }
  bool trivial() const { return catalogue_.empty(); }

  /// \throws std::invalid_argument  for a catalogue with tokens that the vocabulary lacks or never generates, or with
  ///     eos tokens
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    auto const& vocabulary = *sentence.vocabulary;
    if (trivial()) return {.vocabulary = &vocabulary};
    require(catalogue_.largest_token() < vocabulary.size, "catalogue: token", catalogue_.largest_token(),
            "is outside the vocabulary of " + std::to_string(vocabulary.size));
    for (auto const token : vocabulary.eos)
      require(!catalogue_.holds(token), "catalogue: token", token, "ends a sentence, but an item contains it");
    for (auto const token : vocabulary.never)
      require(!catalogue_.holds(token), "catalogue: token", token, "is never generated, but an item contains it");
    return {.node = catalogue_.root(), .vocabulary = &vocabulary};
  }
  SLUICE_LAZY State next(State state, Token token) const {
    if (trivial()) return state;
    if (state.at != State::At::inside) state.at = State::At::outside;
    else if (state.vocabulary->ends(token)) state.at = may_end(state.node) ? State::At::ended : State::At::outside;
    else {
      state.node = catalogue_.child(state.node, token);
      if (!off_.any_left(state.node.first, state.node.last)) state.at = State::At::outside;
    }
    return state;
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}

  /// The node's children that have items left, and eos where an item ends.
  SLUICE_LAZY std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t) const {
    if (trivial()) return nullptr;
    auto set = std::make_shared<TokenSet>(state.vocabulary->size);
    if (state.at != State::At::inside) return set;
    std::vector<Token> tokens;
    std::vector<Item> first, last;
    detail::SwitchedOffCursor off;
    off.begin(off_);
    list_left(state.node, tokens, first, last, off);
    set->insert(tokens);
    if (may_end(state.node)) set->insert(state.vocabulary->eos);
    return set;
  }

  /// \throws std::invalid_argument  if no output can begin with this
  SLUICE_LAZY void require_possible(State const& state, Output const& output, std::int32_t left) const {
    if (trivial()) return;
    auto const prefix = std::to_string(output.prefix) + " tokens";
    require(off_.any_left(0, catalogue_.size()), "off", std::to_string(off_.size()) + " items", "leaves none");
    require(state.at == State::At::inside, "prefix", prefix, "no remaining item begins with it");
    auto const endless = state.vocabulary->eos.empty();
    auto const longest = std::to_string(catalogue_.longest()) + " tokens";
    if (left < Limits::unlimited) {
      auto const most = left + static_cast<std::int64_t>(output.prefix);
      auto const needed = std::int64_t{catalogue_.longest()} + (endless ? 0 : 1);
      require(most >= needed, "length.max", most, "the longest item has " + longest + (endless ? "" : ", and an end"));
      require(!endless || most == needed, "length.max", most, "there is no eos, and items have " + longest);
    }
    require(!endless || catalogue_.shortest() == catalogue_.longest(), "vocabulary.eos", "none",
            "items have " + std::to_string(catalogue_.shortest()) + " to " + longest);
  }

  /// Whether an item that is left begins with the output, or is it.
  bool alive(State const& state) const { return trivial() || state.at != State::At::outside; }
  /// Whether the output is an item that is left: it has ended, or it may end here.
  SLUICE_LAZY bool complete(State const& state) const {
    return trivial() || state.at == State::At::ended || (state.at == State::At::inside && may_end(state.node));
  }

 private:
  friend struct detail::ChildrenLists;

  /// Whether the output may end here.
  SLUICE_LAZY bool may_end(Catalogue::Node node) const {
    return catalogue_.is_item(node) && !off_.contains(node.first);
  }

  /// Catalogue::list_children, for children with items left.
  /// \param off  started with off(); its position moves
  SLUICE_LAZY void list_left(Catalogue::Node node, std::vector<Token>& tokens, std::vector<Item>& first,
                             std::vector<Item>& last, detail::SwitchedOffCursor& off) const {
    auto const begin = tokens.size();
    catalogue_.list_children(node, tokens, first, last);
    if (off_.empty() || node.empty() || off_.before(node.last) == off_.before(node.first)) return;
    auto kept = begin;
    for (auto i = begin; i < tokens.size(); ++i) {
      // Usually one of the first items is left; if not, they are counted.
      constexpr Item some = 8;
      auto item = first[i];
      auto const end = item + (std::min)(some, last[i] - item);
      while (item < end && off.contains(item)) ++item;
      if (item == end && !off_.any_left(item, last[i])) continue;
      tokens[kept] = tokens[i], first[kept] = first[i], last[kept] = last[i];
      ++kept;
    }
    tokens.resize(kept), first.resize(kept), last.resize(kept);
  }

  Catalogue catalogue_;
  SwitchedOff off_;
};

}  // namespace sluice::inline v0
