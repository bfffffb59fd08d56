// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a node of a grammar can read, whatever is below it on the stack.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The context-independent part of a node's mask (Dong et al. 2024, XGrammar), shared by nodes that are alike.
struct NodeTokens {
  static constexpr std::int32_t most_depth = 20;  // bytes that alike nodes read alike; few tokens are longer

  /// Nodes of a trie, with children.
  struct Ends {
    std::vector<std::int32_t> leaving;  // at which the rule's text may have ended
    std::vector<std::int32_t> deep;     // at a depth where the nodes need no longer be alike
  };
  std::shared_ptr<TokenSet const> all;  // that can be read within the rule
  Ends ends;                            // in the whole trie
  Ends rest;                            // in the trie of tokens that are not plain
  bool counted = false;  // tokens of more than most_depth plain characters must be added, up to the node's number
  bool alike() const { return ends.deep.empty() && rest.deep.empty(); }
  bool whole() const { return alike() && ends.leaving.empty() && rest.leaving.empty() && !counted; }
};

/// The tokens of nodes, for all grammars of a vocabulary. A node is described by all that it can read. Thread-safe.
class NodeTokenCache {
 public:
  using Key = std::vector<std::int32_t>;
  SLUICE_LAZY std::shared_ptr<NodeTokens const> find(Key const& key) const {
    auto const lock = std::scoped_lock(mutex_);
    auto const it = all_.find(key);
    return it == all_.end() ? nullptr : it->second;
  }
  SLUICE_LAZY void add(Key key, std::shared_ptr<NodeTokens const> tokens) {
    auto const lock = std::scoped_lock(mutex_);
    if (all_.size() >= most) all_.clear();
    all_.emplace(std::move(key), std::move(tokens));
  }

  struct Hash {
    SLUICE_LAZY std::size_t operator()(Key const& key) const {
      std::uint64_t h = key.size();
      for (auto const one : key) h = (h ^ static_cast<std::uint32_t>(one)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
      return cast<std::size_t>(h);
    }
  };

 private:
  static constexpr std::size_t most = 512;  // of V / 8 bytes each
  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<NodeTokens const>, Hash> all_;
};

}  // namespace sluice::inline v0::detail
