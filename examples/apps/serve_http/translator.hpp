// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Backend that translates.
#pragma once

#include <translate/model.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <http/backend.hpp>
#include <memory>
#include <serve_http/settings.hpp>
#include <string>

namespace serve {

struct TranslatorOptions {
  std::filesystem::path model = translate::default_model();
  translate::ModelOptions weights{};
  Offer offer{};
  std::string name = "sluice";
  std::size_t size = 128;    ///< sentences in the batch of each decoder
  std::size_t threads = 1;   ///< decoders
  std::size_t queue = 1024;  ///< sentences that may wait
};

/// A Backend that can trace its decoding.
class TracingBackend : public Backend {
 public:
  /// Decodes a job's sentence alone, on a separate model over the same weights; the result is the same. One call at a time.
  /// \returns the page of its trace
  /// \param about    its title on the page
  /// \param between  is called between the steps with the page's bytes so far, and may throw
  virtual std::string trace(Job const& job, std::string const& about,
                            std::function<void(std::size_t bytes)> const& between) = 0;
};

/// \throws text::InputError, std::invalid_argument  for a model that cannot be loaded, or invalid options
std::unique_ptr<TracingBackend> make_translator(TranslatorOptions const& options);

}  // namespace serve
