// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared edits for expanders that know only a query's own.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Whether an expander takes Query::shared.
template <class E>
consteval bool takes_shared_edits() {
  if constexpr (requires { E::takes_shared_edits; }) return E::takes_shared_edits;
  else return false;
}

/// Copies Query::shared into Query::edits, where an expander does not take it.
class OwnEdits {
 public:
  /// The queries as the expander takes them. Valid until the next call.
  SLUICE_LAZY std::span<Query const> of(std::span<Query const> queries, bool takes_shared) {
    auto const stays = [=](Query const& query) { return query.shared == nullptr || (takes_shared && query.plain()); };
    if (std::all_of(queries.begin(), queries.end(), stays)) return queries;
    queries_.assign(queries);
    if (edits_.size() < queries.size()) edits_.resize(queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i)
      if (!stays(queries[i])) copy(queries_[i], edits_[i]);
    return queries_;
  }

 private:
  SLUICE_LAZY void copy(Query& query, std::vector<Edit>& edits) {
    named_.clear();
    for (auto const& own : query.edits) named_.push_back(own.token);
    std::sort(named_.begin(), named_.end());
    edits.clear();
    for (auto const& one : query.shared->edits)
      if (!std::binary_search(named_.begin(), named_.end(), one.token)) edits.push_back(one);
    edits.insert(edits.end(), query.edits.begin(), query.edits.end());
    query.edits = edits, query.sorted = {}, query.shared = nullptr;
  }

  Buffer<Query> queries_;
  Buffer<std::vector<Edit>> edits_;
  std::vector<Token> named_;
};

}  // namespace sluice::inline v0::detail
