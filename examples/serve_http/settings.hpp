// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a request may say, whichever its shape, and what it may not.
#pragma once

#include <translate/options.hpp>

#include <cstdint>
#include <http/completion.hpp>
#include <http/fields.hpp>
#include <http/task.hpp>
#include <string>
#include <vector>

namespace serve {

/// How all sentences of a request are decoded.
struct TranslationSettings final : Settings {
  translate::Options search{};          ///< of translate's command line, as far as one request may choose
  std::vector<std::string> forbid{};    ///< phrases
  std::vector<std::string> glossary{};  ///< lines: source term, tab, target term
  std::vector<std::string> stop{};      ///< strings
  bool scores = true;                   ///< of greedy search, too, which does not need them
  std::int32_t told = -1;               ///< tokens told of in each place, see Retold; -1: not even the chosen one
};

/// A request to /translate.
/// \param guesses  whether the model proposes tokens: blockwise search
/// \throws BadField  for whatever makes no sense
Task read_task(Fields& fields, Bounds const& bounds, bool guesses);

/// A request to /v1/completions: sampling where it is asked for, the most probable otherwise.
/// \throws BadField  for what a translation cannot have
TranslationSettings completion_settings(Completion const& completion, Fields& fields, Bounds const& bounds);

}  // namespace serve
