// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a request to either endpoint may contain.
#pragma once

#include <translate/options.hpp>

#include <cstdint>
#include <http/bias_field.hpp>
#include <http/completion.hpp>
#include <http/fields.hpp>
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
  std::int32_t told = -1;  ///< log-probabilities returned at each position, see Retold; -1: not even the chosen token's
};

/// A request to /translate.
/// \param guesses  whether the model proposes tokens: blockwise search
/// \throws BadField  for invalid values
Task read_task(Fields& fields, Bounds const& bounds, bool guesses);

/// A request to /v1/completions: sampling if requested, else the most probable translation.
/// \throws BadField  for fields that a translation cannot have
TranslationSettings completion_settings(Completion const& completion, Fields& fields, Bounds const& bounds);

}  // namespace serve
