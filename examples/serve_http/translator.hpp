// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Backend that translates.
#pragma once

#include <translate/model.hpp>

#include <cstddef>
#include <filesystem>
#include <http/backend.hpp>
#include <memory>
#include <string>

namespace serve {

struct TranslatorOptions {
  std::filesystem::path model = translate::default_model();
  translate::ModelOptions weights{};
  std::string name = "sluice";
  std::size_t size = 64;     ///< sentences in the batch of each decoder
  std::size_t threads = 1;   ///< decoders
  std::size_t queue = 1024;  ///< sentences that may wait
};

/// \throws text::InputError, std::invalid_argument  for a model that cannot be had, options that make no sense
std::unique_ptr<Backend> make_translator(TranslatorOptions const& options);

}  // namespace serve
