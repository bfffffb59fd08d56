// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Backend that translates.
#pragma once

#include <translate/model.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
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

/// A Backend that can show what it does.
class TracingBackend : public Backend {
 public:
  /// Decodes a job's sentence apart from all others, on a model of its own over the same weights, one at a time: what comes
  /// out is the same. \returns a page of it
  /// \param about    what the page calls it
  /// \param until    for how long to wait for others
  /// \param between  is told the page's bytes so far, between the steps, and may throw
  /// \throws BadField  if it is late
  virtual std::string trace(Job const& job, std::string const& about, std::chrono::steady_clock::time_point until,
                            std::function<void(std::size_t bytes)> const& between) = 0;
};

/// \throws text::InputError, std::invalid_argument  for a model that cannot be had, options that make no sense
std::unique_ptr<TracingBackend> make_translator(TranslatorOptions const& options);

}  // namespace serve
