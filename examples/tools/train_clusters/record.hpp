// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hidden vectors of a Transformer that translates.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <transformer/transformer.hpp>
#include <transformer/weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace train_clusters {

/// How sentences are decoded while vectors are recorded.
struct Recording {
  std::int32_t width = 1;         ///< of the beam; 1: greedy
  std::int32_t max_length = 256;  ///< tokens generated
  std::size_t batch = 64;
};

/// The outcome.
struct Recorded {
  std::size_t sentences = 0, failed = 0;
  std::string problem;  ///< of the first that failed
};

namespace detail {

template <class S, class Expander>
Recorded run(sluice::example::Transformer& model, std::vector<std::vector<sluice::Token>> const& sources,
             S const& search, std::size_t batch, Expander expander) {
  sluice::Decoder decoder(model, search, sluice::Batched{batch}, std::move(expander));
  Recorded recorded;
  sluice::Result result;
  auto const collect = [&] {
    for (; decoder.poll(result); result = {}) {
      if (result.ok()) continue;
      if (recorded.failed++ == 0) recorded.problem = result.message;
    }
  };
  for (auto const& source : sources) decoder.submit({.source = source});
  for (auto more = true; more; collect()) {
    auto const failed = recorded.failed;
    try {
      more = decoder.step();
    } catch (...) {
      collect();
      if (recorded.failed == failed) throw;  // else these sentences' results have said it
    }
  }
  recorded.sentences = sources.size();
  return recorded;
}

}  // namespace detail

/// Translates `sources` with any expander, which may record.
template <class Expander>
Recorded translate(std::shared_ptr<sluice::example::Weights const> const& weights,
                   std::vector<std::vector<sluice::Token>> const& sources, Recording const& how, Expander expander) {
  sluice::example::Transformer model(weights);
  sluice::LengthLimits const length{.min = 1, .max = how.max_length};
  if (how.width == 1)
    return detail::run(model, sources, sluice::Greedy{.length = length, .scores = false}, how.batch,
                       std::move(expander));
  return detail::run(model, sources, sluice::BeamSearch{.width = how.width, .length = length}, how.batch,
                     std::move(expander));
}

/// Translates `sources`, in an order in which batches hold sentences of like length, and records to `samples`.
inline Recorded record(std::shared_ptr<sluice::example::Weights const> const& weights,
                       sluice::DenseProjection const& projection, std::vector<std::vector<sluice::Token>> sources,
                       Recording const& how, sluice::ClusterSamples& samples) {
  std::ranges::stable_sort(sources, {}, &std::vector<sluice::Token>::size);
  return translate(weights, sources, how, sluice::RecordHidden(projection, samples));
}

}  // namespace train_clusters
