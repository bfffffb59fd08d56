// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which contexts of a text have occurred before.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/watermark/detail/green.hpp>
#include <sluice/watermark/detail/mark_numbers.hpp>
#include <sluice/watermark/watermark.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The contexts of a text so far.
class RepeatedContexts {
 public:
  /// \returns whether the context is new
  SLUICE_LAZY bool add(MarkContext const& context) {
    std::vector<Token> tokens(context.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = context[i];
    return contexts_.insert(std::move(tokens)).second;
  }
  /// \returns whether no token before had the same seed and was the same: sbw
  SLUICE_LAZY bool add_seed(MarkContext const& context, Watermark const& options, Token token) {
    return seeds_.insert({sbw_seed(options.key.words()[0], context, token), token}).second;
  }

 private:
  std::set<std::vector<Token>> contexts_;
  std::set<std::pair<std::uint64_t, Token>> seeds_;
};

}  // namespace sluice::inline v0::detail
