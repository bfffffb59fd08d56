// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nodes of a TokenTrie, for what walks through them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A trie of tokens in preorder. A walk from 0 to size() - 1 visits every prefix that tokens share once; after an
/// impossible prefix it can skip all nodes that begin with it. Tokens without bytes, eos tokens and tokens never
/// generated are left out.
///
/// Immutable and shared: a copy costs a reference count. About 14 bytes per node, and about three nodes per token.
class TokenNodes {
 public:
  /// Has no tokens.
  TokenNodes() = default;
  /// \param names  of tokens without bytes (control tokens), for grammars that name them: <|im_end|> and the like
  /// \throws std::invalid_argument  for an invalid vocabulary or one without eos, if `bytes` has another number of
  ///     tokens, or for a name of a token that the vocabulary does not have
  SLUICE_LAZY TokenNodes(TokenBytes const& bytes, Vocabulary const& vocabulary,
                         std::vector<std::pair<std::string, Token>> names = {}) {
    vocabulary.check();
    require(bytes.size() == vocabulary.size, "bytes.size", bytes.size(),
            "the vocabulary has " + std::to_string(vocabulary.size) + " tokens");
    require(!vocabulary.eos.empty(), "vocabulary.eos", "none", "an output could not end where it is complete");
    auto data = std::make_shared<Data>();
    for (auto const& [name, token] : names)
      require(vocabulary.contains(token), "names: " + name, token, "is outside the vocabulary");
    std::sort(names.begin(), names.end());
    data->vocabulary = vocabulary, data->bytes = bytes, data->names = std::move(names);
    std::vector<std::uint8_t> left_out(static_cast<std::size_t>(vocabulary.size));
    for (auto const token : vocabulary.eos) left_out[at(token)] = 1;
    for (auto const token : vocabulary.never) left_out[at(token)] = 1;
    std::vector<Token> sorted;
    for (Token token = 0; token < vocabulary.size; ++token)
      if (left_out[at(token)] == 0 && !bytes.bytes(token).empty()) sorted.push_back(token);
    std::stable_sort(sorted.begin(), sorted.end(), [&](Token a, Token b) { return bytes.bytes(a) < bytes.bytes(b); });
    data->build(sorted);
    data_ = std::move(data);
  }

  /// The number of nodes, the root (0) included.
  std::int32_t size() const { return data_ == nullptr ? 0 : data_->nodes.size(); }
  bool empty() const { return size() == 0; }

  std::uint8_t byte(std::int32_t node) const { return data_->nodes.byte(node); }
  /// Bytes from the root; the root's is 0.
  std::int32_t depth(std::int32_t node) const { return data_->nodes.depth(node); }
  /// The next node that does not begin with this one's bytes; the nodes in between do.
  std::int32_t end(std::int32_t node) const { return data_->nodes.end(node); }
  /// The tokens whose bytes end here; ascending.
  SLUICE_LAZY std::span<Token const> tokens(std::int32_t node) const { return data_->nodes.tokens(node); }
  /// The bytes from the root to a node that has tokens at or below it. Valid as long as the trie.
  SLUICE_LAZY std::string_view text(std::int32_t node) const {
    return bytes(data_->nodes.below(node)[0]).substr(0, at(depth(node)));
  }
  /// The length of the longest token in bytes.
  std::int32_t depth() const { return data_ == nullptr ? 0 : data_->nodes.depth(); }

  /// A node's child for a byte; -1: none. For single steps; a walk is cheaper.
  SLUICE_LAZY std::int32_t child(std::int32_t node, std::uint8_t byte) const { return data_->nodes.child(node, byte); }

  /// The number of nodes with children.
  std::int32_t inner() const { return data_ == nullptr ? 0 : data_->inner; }
  /// Whether this byte is a token.
  bool single(std::uint8_t byte) const { return data_ != nullptr && data_->singles[byte]; }
  /// Whether every byte is one.
  bool spells_all() const { return data_ != nullptr && std::ranges::all_of(data_->singles, std::identity()); }
  /// Nodes with tokens, in order of length: all of them, or those of tokens with a byte that is no token.
  std::vector<std::int32_t> const& by_length(bool all) const { return all ? data_->ends : data_->unspelled; }

  /// What all grammars share.
  TrieNodes const& nodes() const { return data_->nodes; }
  PlainText const& plain_text() const { return data_->plain; }
  NodeTokenCache& node_tokens() const { return data_->node_tokens; }

  /// A token's bytes, as given.
  SLUICE_LAZY std::string_view bytes(Token token) const {
    return data_ == nullptr || token < 0 || token >= data_->bytes.size() ? std::string_view()
                                                                         : data_->bytes.bytes(token);
  }
  /// The tokens that have this name, or are spelt like it.
  SLUICE_LAZY std::vector<Token> named(std::string_view name) const {
    std::vector<Token> out;
    if (data_ == nullptr) return out;
    auto i = std::ranges::lower_bound(data_->names, name, {}, &std::pair<std::string, Token>::first);
    for (; i != data_->names.end() && i->first == name; ++i) out.push_back(i->second);
    std::int32_t node = 0;
    for (auto const c : name)
      if (node >= 0) node = child(node, static_cast<std::uint8_t>(c));
    if (node > 0) out.insert(out.end(), tokens(node).begin(), tokens(node).end());
    return out;
  }
  /// The bytes of a token, or the name of one without: for readers of texts that control tokens mark.
  SLUICE_LAZY std::string_view spelling(Token token) const {
    auto const own = bytes(token);
    if (!own.empty() || data_ == nullptr) return own;
    auto const i = std::ranges::find(data_->names, token, &std::pair<std::string, Token>::second);
    return i == data_->names.end() ? own : std::string_view(i->first);
  }
  /// What was made of this trie before for a key, else what make() makes; the last few are kept. For grammars that name tokens.
  template <class Make>
  std::shared_ptr<void const> kept(std::vector<std::int32_t> const& key, Make const& make) const {
    auto const find = [&]() -> std::shared_ptr<void const> {
      for (auto const& one : data_->kept)
        if (one.first == key) return one.second;
      return nullptr;
    };
    {
      auto const lock = std::scoped_lock(data_->mutex);
      if (auto known = find(); known != nullptr) return known;
    }
    auto made = make();
    auto const lock = std::scoped_lock(data_->mutex);
    if (auto known = find(); known != nullptr) return known;
    if (data_->kept.size() >= 8) data_->kept.erase(data_->kept.begin());
    data_->kept.emplace_back(key, made);
    return made;
  }
  /// The vocabulary for which it was built.
  SLUICE_LAZY Vocabulary const& vocabulary() const {
    static Vocabulary const none;
    return data_ == nullptr ? none : data_->vocabulary;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  struct Data {
    Vocabulary vocabulary;
    TokenBytes bytes;
    TrieNodes nodes;
    PlainText plain;
    std::int32_t inner = 0;
    std::vector<std::pair<std::string, Token>> names;  // sorted
    mutable NodeTokenCache node_tokens;
    mutable std::mutex mutex;  // guards `kept`
    mutable std::vector<std::pair<std::vector<std::int32_t>, std::shared_ptr<void const>>> kept;
    std::array<bool, 256> singles{};
    std::vector<std::int32_t> ends;       // nodes with tokens, by depth
    std::vector<std::int32_t> unspelled;  // those of them on whose way is a byte that is no token

    SLUICE_LAZY void build(std::vector<Token> const& sorted) {
      nodes.build(sorted, bytes);
      plain.build(sorted, bytes, nodes, vocabulary.size);
      sort_by_length();
    }
    SLUICE_LAZY void sort_by_length() {
      std::vector<std::uint8_t> whole(at(nodes.size()), 1);  // the bytes up to here are tokens
      for (auto node = 1; node < nodes.size(); node = nodes.end(node))
        if (!nodes.tokens(node).empty()) singles[nodes.byte(node)] = true;
      std::vector<std::int32_t> way(at(nodes.depth()) + 1);
      for (std::int32_t node = 0; node < nodes.size(); ++node) {
        inner += nodes.end(node) > node + 1 ? 1 : 0;
        way[at(nodes.depth(node))] = node;
        if (node == 0) continue;
        whole[at(node)] = singles[nodes.byte(node)] && whole[at(way[at(nodes.depth(node) - 1)])] != 0 ? 1 : 0;
        if (!nodes.tokens(node).empty()) ends.push_back(node);
      }
      std::ranges::stable_sort(ends, {}, [&](std::int32_t node) { return nodes.depth(node); });
      for (auto const node : ends)
        if (whole[at(node)] == 0) unspelled.push_back(node);
    }
  };
  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0::detail
