// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks that a model can do what a search needs: at compile time if the abilities are known, else when a decoder is made.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/falling.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

// Macros: static_assert takes literals only, and the run-time check uses the same text.
#define SLUICE_LACKS_ROLL_BACK                                                                                         \
  "sluice: this search rolls the model back, and the model does not say that it can (Abilities::roll_back); "          \
  "wrap it in sluice::Restarting, or choose another search"
#define SLUICE_LACKS_BLOCKS                                                                                            \
  "sluice: this search feeds several tokens of a sentence at once, and the model does not say that it takes them "     \
  "(Abilities::blocks); wrap it in sluice::TokenByToken, or choose another search"
#define SLUICE_LACKS_ABILITIES                                                                                         \
  "sluice: this search needs abilities (S::needs) that the model does not claim (M::abilities)"

namespace sluice::inline v0::detail {

/// The check at compile time.
template <Model M, Search S>
consteval bool known_needs() {
  if constexpr (detail::KnownAbilities<M> && detail::KnownNeeds<S>) {
    static_assert(abilities<M>().roll_back || !needs<S>().roll_back, SLUICE_LACKS_ROLL_BACK);
    static_assert(abilities<M>().blocks || !needs<S>().blocks, SLUICE_LACKS_BLOCKS);
    static_assert(abilities<M>().include(needs<S>()), SLUICE_LACKS_ABILITIES);
  }
  return true;
}

/// The check when a decoder is made or a request is submitted. Throws std::invalid_argument.
SLUICE_LAZY void check_needs(std::int32_t slot_count, Abilities needed, AnyModelSide const& model) {
  auto const& able = model.abilities;
  require(slot_count >= 1, "slot_count", slot_count, "a search needs at least 1");
  require(slot_count <= model.limits.slot_count, "slot_count", slot_count,
          "the search needs more than the model's limit of " + std::to_string(model.limits.slot_count));
  if (needed.roll_back && !able.roll_back) throw std::invalid_argument(SLUICE_LACKS_ROLL_BACK);
  if (needed.blocks && !able.blocks) throw std::invalid_argument(SLUICE_LACKS_BLOCKS);
  if (!able.include(needed)) throw std::invalid_argument(SLUICE_LACKS_ABILITIES);
}

/// Throws std::invalid_argument for a model whose outputs may score more than their beginnings.
SLUICE_LAZY void check_falling(AnyModelSide const& model) {
  require(model.limits.log_prob <= 0, "limits().log_prob", model.limits.log_prob,
          "scores of this model may rise (Fused with weight < 0 or word_bonus > 0, "
          "WordModel), and this "
          "search, or its stop rule exact, proves its result by scores that only fall: choose another");
}

/// Checks options, slots and needs of a search.
template <Search S>
void check_search(S const& search, AnyModelSide const& model) {
  sluice::check(search);
  check_needs(static_cast<std::int32_t>(search.slot_count()), sluice::needs(search), model);
  if (assumes_falling<S>() || stops_by_proof(search)) check_falling(model);
}

}  // namespace sluice::inline v0::detail
