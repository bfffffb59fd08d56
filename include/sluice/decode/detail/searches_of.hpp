// SPDX-License-Identifier: Apache-2.0
/// \file
/// Implements the interfaces of the loop for a type of search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/detail/search_of.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/check_needs.hpp>
#include <sluice/decode/detail/interfaces.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

template <Search S>
struct SearchesOf final : AnySearches {
  explicit SearchesOf(S one) : search(std::move(one)) {
    takes_prefix = sluice::takes_prefix<S>(), drafts = DraftingSearch<S>, waits = WaitingSearch<S>;
  }
  std::unique_ptr<AnySearch> make() const override { return std::unique_ptr<AnySearch>(new SearchOf<S>(search)); }
  void check(void const* own, AnyModelSide const& model) const override {
    check_search(own != nullptr ? *static_cast<S const*>(own) : search, model);
  }
  S search;
};

/// The searches of a decoder. Not by make_unique, here and in Decoder: a pointer to each type is 60 functions to compile.
template <class S>
std::unique_ptr<AnySearches> make_searches(S search) {
  return std::unique_ptr<AnySearches>(new SearchesOf<S>(std::move(search)));
}

}  // namespace sluice::inline v0::detail
