// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a request to either endpoint may contain.
#pragma once

#include <translate/options.hpp>

#include <cstdint>
#include <http/bias_field.hpp>
#include <http/completion.hpp>
#include <http/fields.hpp>
#include <http/offer.hpp>
#include <http/task.hpp>
#include <string>
#include <vector>

namespace serve {

/// How all sentences of a request are decoded.
struct TranslationSettings final : Settings {
  translate::Options search{};          ///< options of translate that a request may choose
  std::vector<std::string> forbid{};    ///< phrases
  BiasField bias{};                     ///< boosted phrases
  std::vector<std::string> glossary{};  ///< lines: source term, tab, target term
  std::vector<std::string> stop{};      ///< strings
  bool scores = true;                   ///< also for greedy search, which does not need them
  bool remember = true;                 ///< takes part in what is remembered of outputs
  sluice::Watermark watermark{};        ///< off: outputs are not marked
  std::int32_t told = -1;  ///< log-probabilities returned at each position, see Retold; -1: not even the chosen token's
};

/// A request to /translate.
/// \throws BadField  for invalid values
Task read_task(Fields& fields, Bounds const& bounds, Offer const& offer);

/// A request to /v1/completions: sampling if requested, else the most probable translation.
/// \throws BadField  for fields that a translation cannot have
TranslationSettings completion_settings(Completion const& completion, Fields& fields, Bounds const& bounds,
                                        Offer const& offer);

/// The fields `watermark` and `remember`, once the search is known.
/// \param search   the field that chooses the search, for messages
/// \param several  the one that asks for several outputs
/// \throws BadField  for what the server, or the search, does not allow
void read_offers(Fields& fields, TranslationSettings& settings, Offer const& offer, std::string const& search,
                 std::string const& several);

}  // namespace serve
