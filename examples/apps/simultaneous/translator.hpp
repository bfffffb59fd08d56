// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shipped model, which decodes growing sources again and again.
#pragma once

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>

#include <translate/model.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

namespace simultaneous {

constexpr std::int32_t most = 256;  ///< tokens of a translation

/// Continues the written part of translations.
class Translator {
 public:
  /// \param beam  hypotheses
  /// \param size  sentences decoded together
  Translator(std::filesystem::path const& model, std::int32_t beam, std::size_t size)
      : models_({model}), model_(models_.make()), search_{.width = beam}, size_(size) {
    search_.length = {.min = 1, .max = most};  // as translate has it
  }

  using Request = sluice::Request<std::vector<sluice::Token>, sluice::BeamSearch>;
  translate::Tokenizer const& tokenizer() const { return models_.tokenizer(); }
  /// The best output of each.
  std::vector<std::vector<sluice::Token>> operator()(std::vector<Request> const& requests) {
    std::vector<std::vector<sluice::Token>> outputs;
    sluice::decode_each(
        model_, requests, search_,
        [&](sluice::Result&& result) {
          if (!result.ok()) throw std::runtime_error(result.message);
          outputs.push_back(std::move(result.hypotheses.at(0).tokens));
        },
        sluice::Streaming{.size = size_, .refill_below = 1}, models_.output());
    return outputs;
  }

 private:
  translate::Models models_;
  translate::Model model_;
  sluice::BeamSearch search_;
  std::size_t size_;
};

}  // namespace simultaneous
