// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared edits of tokens that other edits name.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

inline bool names(std::span<Edit const> some, Token token) {
  return std::any_of(some.begin(), some.end(), [=](Edit const& edit) { return edit.token == token; });
}

/// Edits that name a token replace its shared one, so a token of both needs that written down. Appends to a rule's edits what is shared
/// for tokens of the query's own.
SLUICE_LAZY void name_shared_of_query(SharedEdits const& shared, std::span<Edit const> of_query,
                                      std::vector<Edit>& edits) {
  for (auto const& one : of_query)
    if (auto const add = shared[one.token]; add != 0 && !names(edits, one.token)) edits.push_back({one.token, add});
}
/// The same for tokens of the rule's edits, where those of the query already regard what is shared.
SLUICE_LAZY void name_shared_of_rule(SharedEdits const& shared, std::span<Edit const> of_query,
                                     std::vector<Edit>& edits) {
  auto const own = edits.size();
  for (std::size_t i = 0; i < own; ++i) {
    auto const token = edits[i].token;
    if (auto const add = shared[token];
        add != 0 && !names(of_query, token) && !names(std::span(edits).subspan(own), token))
      edits.push_back({token, add});
  }
}

}  // namespace sluice::inline v0::detail
