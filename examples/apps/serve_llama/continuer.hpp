// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Backend that continues prompts with a model of llama.cpp.
#pragma once

#include <sluice/grammar/tool_calls.hpp>

#include <text/grammar.hpp>

#include <cstddef>
#include <cstdint>
#include <http/backend.hpp>
#include <http/offer.hpp>
#include <llama/options.hpp>
#include <memory>
#include <optional>
#include <string>

namespace serve {

struct ContinuerOptions {
  generate::Options engine{};  ///< how to load the model; `parallel`: sequences of the context
  Offer offer{};
  sluice::JsonSchemaOptions json = text::json_of_language_models();  ///< unless a request says otherwise
  std::optional<sluice::ToolFormat> tool_format{};  ///< none: the chat template's, as far as that is certain
  bool reasons = false;                             ///< chats are answered with what was thought first
  std::int32_t reasoning_budget = -1;               ///< tokens of that, unless a request says otherwise; -1: any number
  std::string name{};
  std::size_t size = 32;  ///< prompts decoded together
  std::size_t queue = 1024;
};

/// \throws text::InputError, std::invalid_argument  for a model that cannot be loaded, or invalid options
std::unique_ptr<Backend> make_continuer(ContinuerOptions const& options);

}  // namespace serve
