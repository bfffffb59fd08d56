// SPDX-License-Identifier: Apache-2.0
/// \file
/// Catalogue: a set of up to millions of token sequences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/catalogue_check.hpp>
#include <sluice/catalogue/detail/catalogue_image.hpp>
#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The number of a catalogue's item: its position in sorted order, from 0.
using Item = std::int32_t;

/// How much of a catalogue's file is checked when it is opened.
enum class CatalogueCheck : std::uint8_t {
  all,   ///< everything, once: O(its bytes). Answers are right, or there is an error
  head,  ///< only sizes and offsets, in constant time, for files that the process has checked before: if the contents
         ///< are invalid, answers are wrong, but nothing outside the file is read
};

/// A set of 1 to 2^31 - 1 token sequences: the identifiers that a recommender or a retriever may generate. One sequence
/// may be a prefix of another. They are sorted by token, a prefix before its extensions, and numbered in that order.
///
/// A compressed trie in one block of memory, usually a mapped file (format: catalogue_format.hpp). For each level it
/// stores which items begin a node (one bit per item, or a list where these are few), and each node's last token in as
/// few bytes as the level needs. The items below a node are a range, and that range identifies the node; nothing else
/// is stored.
///
/// Copies are cheap, share the memory, and may be used from any number of threads.
class Catalogue {
 public:
  /// All items that begin with certain `depth` tokens: [first, last). Empty if there are none.
  struct Node {
    std::int32_t depth = 0;
    Item first = 0, last = 0;
    bool empty() const { return first >= last; }
    friend bool operator==(Node, Node) = default;
  };

  /// Has no items.
  Catalogue() = default;

  /// Maps a file, so processes share its memory. The file must not be changed while it is open; replace it by renaming.
  /// \throws std::runtime_error  naming the file, what is wrong, and where
  SLUICE_LAZY static Catalogue open(std::string const& path, CatalogueCheck check = CatalogueCheck::all) {
    auto kept = detail::map_file(path);
    try {
      Catalogue made(std::move(kept), check);
      return made;
    } catch (std::runtime_error const& problem) {
      throw std::runtime_error(path + ": " + problem.what());
    }
  }
  /// Copies bytes as returned by bytes().
  /// \throws std::runtime_error  naming what is wrong, and where
  SLUICE_LAZY static Catalogue from_bytes(std::span<std::byte const> bytes,
                                          CatalogueCheck check = CatalogueCheck::all) {
    Catalogue made(detail::copy_bytes(bytes), check);
    return made;
  }

  /// The number of items.
  SLUICE_LAZY Item size() const { return data_ == nullptr ? 0 : static_cast<Item>(data_->image.items()); }
  bool empty() const { return data_ == nullptr; }
  /// The lengths of the shortest and of the longest item, in tokens.
  SLUICE_LAZY std::int32_t shortest() const {
    return data_ == nullptr ? 0 : static_cast<std::int32_t>(data_->image.head().shortest);
  }
  SLUICE_LAZY std::int32_t longest() const {
    return data_ == nullptr ? 0 : static_cast<std::int32_t>(data_->image.depth());
  }
  /// The largest token; -1: there are no items.
  SLUICE_LAZY Token largest_token() const {
    return data_ == nullptr ? -1 : static_cast<Token>(data_->image.head().largest);
  }
  /// Whether some item contains the token.
  SLUICE_LAZY bool holds(Token token) const {
    return data_ != nullptr && token >= 0 && data_->image.holds(static_cast<std::uint32_t>(token));
  }
  /// The number of nodes at all depths, without the root.
  SLUICE_LAZY std::int64_t nodes() const {
    std::int64_t sum = 0;
    for (std::int32_t d = 0; d < longest(); ++d) sum += level(d).first.size();
    return sum;
  }

  /// The node of all items.
  Node root() const { return {0, 0, size()}; }
  /// Whether the node's own tokens are an item; that item is `first`.
  SLUICE_LAZY bool is_item(Node node) const {
    if (node.empty() || node.depth == 0) return false;
    return node.depth >= longest() || !level(node.depth).first.contains(static_cast<std::uint32_t>(node.first));
  }
  /// The node after one more token; empty if there is none. O(log items).
  SLUICE_LAZY Node child(Node node, Token token) const {
    if (node.empty() || node.depth >= longest() || token < 0) return {node.depth + 1, 0, 0};
    auto const& level = this->level(node.depth);
    auto const begin = level.first.rank(static_cast<std::uint32_t>(node.first));
    auto const end = level.first.rank(static_cast<std::uint32_t>(node.last));
    auto low = begin, high = end;
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (level.token(middle) < static_cast<std::uint32_t>(token)) low = middle + 1;
      else high = middle;
    }
    if (low >= end || level.token(low) != static_cast<std::uint32_t>(token)) return {node.depth + 1, 0, 0};
    auto const first = static_cast<Item>(level.first.at(low));
    return {node.depth + 1, first, low + 1 < end ? static_cast<Item>(level.first.at(low + 1)) : node.last};
  }
  /// Calls f(token, first, last) for each child, ascending, with its range of items. O(children), and one search.
  template <class F>
  void for_each_child(Node node, F&& f) const {
    if (node.empty() || node.depth >= longest()) return;
    auto const& level = this->level(node.depth);
    auto const first = static_cast<std::uint32_t>(node.first), last = static_cast<std::uint32_t>(node.last);
    auto k = level.first.rank(first);
    auto const end = level.first.size();
    auto begin = node.last;  // begin and end of the child that waits for the next one
    level.first.for_each(first, last, [&](std::uint32_t mark) {
      auto const item = static_cast<Item>(mark);
      if (begin < item && k < end) f(static_cast<Token>(level.token(k++)), begin, item);
      begin = item;
    });
    if (begin < node.last && k < end) f(static_cast<Token>(level.token(k)), begin, node.last);
  }

  /// Appends the same to lists: per child, its token and its first and last item.
  SLUICE_LAZY void list_children(Node node, std::vector<Token>& tokens, std::vector<Item>& first,
                                 std::vector<Item>& last) const {
    if (node.empty() || node.depth >= longest()) return;
    auto const& level = this->level(node.depth);
    auto const begin = level.first.rank(static_cast<std::uint32_t>(node.first));
    auto const end = level.first.rank(static_cast<std::uint32_t>(node.last));
    auto const at = first.size();
    std::uint32_t count = begin;
    first.resize(at + (end > begin ? end - begin : 0));
    auto* to = first.data() + at;
    level.first.for_each(static_cast<std::uint32_t>(node.first), static_cast<std::uint32_t>(node.last),
                         [&](std::uint32_t item) {
                           if (count < end) *to++ = static_cast<Item>(item), ++count;
                         });
    count -= begin;
    first.resize(at + count), tokens.resize(at + count);
    if (count == 0) return;
    level.copy_tokens(begin, count, tokens.data() + at);
    last.insert(last.end(), first.begin() + static_cast<std::ptrdiff_t>(at) + 1, first.end());
    last.push_back(node.last);
  }

  /// The node of all items with this prefix; empty if there are none.
  SLUICE_LAZY Node find_beginning(std::span<Token const> tokens) const {
    auto node = root();
    for (auto const token : tokens) node = child(node, token);
    return node;
  }
  /// The item with these tokens.
  SLUICE_LAZY std::optional<Item> find(std::span<Token const> tokens) const {
    auto const node = find_beginning(tokens);
    if (!is_item(node)) return std::nullopt;
    return node.first;
  }
  /// The item that a finished output is, with or without eos at its end.
  /// \param tokens  Hypothesis::tokens of a finished hypothesis
  SLUICE_LAZY std::optional<Item> item_of(std::span<Token const> tokens) const {
    if (auto const item = find(tokens)) return item;
    return tokens.empty() ? std::nullopt : find(tokens.first(tokens.size() - 1));
  }
  /// An item's tokens.
  /// \throws std::invalid_argument  if there is no such item
  SLUICE_LAZY std::vector<Token> tokens(Item item) const {
    require(item >= 0 && item < size(), "item", item, "the catalogue has " + std::to_string(size()));
    std::vector<Token> tokens;
    for (auto node = root(); !(is_item(node) && node.first == item) && node.depth < longest();) {
      auto const& level = this->level(node.depth);
      auto const k = level.first.rank(static_cast<std::uint32_t>(item) + 1);
      if (k == 0) break;
      tokens.push_back(static_cast<Token>(level.token(k - 1)));
      node = {node.depth + 1, static_cast<Item>(level.first.at(k - 1)),
              (std::min)(node.last, static_cast<Item>(level.first.at(k)))};
    }
    return tokens;
  }

  /// The contents of its file.
  SLUICE_LAZY std::span<std::byte const> bytes() const {
    return data_ == nullptr ? std::span<std::byte const>{} : data_->image.bytes();
  }
  /// Writes bytes() to a binary stream.
  /// \throws std::invalid_argument  if there are no items
  /// \throws std::runtime_error     if writing to the stream fails
  SLUICE_LAZY void write(std::ostream& stream) const {
    require(!empty(), "catalogue", "empty", "has nothing to write");
    auto const all = bytes();
    stream.write(reinterpret_cast<char const*>(all.data()), static_cast<std::streamsize>(all.size()));
    stream.flush();
    if (!stream) throw std::runtime_error("catalogue: cannot be written");
  }

 private:
  friend class CatalogueBuilder;

  /// Uses bytes without copying them.
  SLUICE_LAZY static Catalogue from_kept(detail::KeptBytes kept, CatalogueCheck check) {
    Catalogue made(std::move(kept), check);
    return made;
  }

  struct Data {
    SLUICE_LAZY explicit Data(detail::KeptBytes bytes) : kept(std::move(bytes)), image(kept.bytes) {}
    detail::KeptBytes kept;
    detail::CatalogueImage image;
  };

  SLUICE_LAZY Catalogue(detail::KeptBytes kept, CatalogueCheck check) : data_(std::make_shared<Data>(std::move(kept))) {
    if (check == CatalogueCheck::all) detail::check_catalogue(data_->image);
  }
  SLUICE_LAZY detail::CatalogueImage::Level const& level(std::int32_t d) const {
    return data_->image.level(static_cast<std::uint32_t>(d));
  }

  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0
