// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTranslate2's own loop in its best setting: sentences of similar length together, no scores, in the calling thread.
#pragma once

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctranslate2/models/sequence_to_sequence.h>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace bench {

class OwnLoop {
 public:
  OwnLoop(ctranslate2::models::Model const& model, std::vector<std::vector<std::string>> sources)
      : replica_(model.as_sequence_to_sequence()), sources_(std::move(sources)), order_(sources_.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return sources_[i].size(); });
  }

  /// The best output of each sentence.
  std::vector<std::vector<std::string>> translate(std::size_t beam, std::size_t batch) {
    ctranslate2::TranslationOptions options;
    options.beam_size = beam;
    std::vector<std::vector<std::string>> outputs(sources_.size());
    for (std::size_t first = 0; first < order_.size(); first += batch) {
      auto const last = std::min(order_.size(), first + batch);
      std::vector<std::vector<std::string>> some;
      for (auto i = first; i < last; ++i) some.push_back(sources_[order_[i]]);
      auto results = replica_->translate(some, {}, options);
      for (auto i = first; i < last; ++i) outputs[order_[i]] = std::move(results[i - first].hypotheses.at(0));
    }
    return outputs;
  }

 private:
  std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
  std::vector<std::vector<std::string>> sources_;
  std::vector<std::size_t> order_;
};

}  // namespace bench
