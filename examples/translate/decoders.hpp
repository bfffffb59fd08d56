// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several decoders, each in a thread of its own; what they search is hidden.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/statistics.hpp>

#include <translate/masks.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace translate {

/// What a sentence's request says, whatever the search.
struct Sentence {
  std::vector<sluice::Token> source;
  std::vector<sluice::Token> prefix;
  std::uint64_t seed = 0;
};

class Decoders {
 public:
  Decoders() = default;
  Decoders(Decoders const&) = delete;
  Decoders& operator=(Decoders const&) = delete;
  virtual ~Decoders() = default;

  /// The results in the order of the sentences, which are moved from. A result depends on its sentence alone.
  ///
  /// \param portion  sentences that a worker takes at a time; of similar length, so that batches are even
  virtual std::vector<sluice::Result> decode(std::vector<Sentence>& sentences, std::size_t portion,
                                             Progress& progress) = 0;
  virtual sluice::Statistics statistics() const = 0;
};

/// As many as the command line asks for, with the search that it names, each over a model of its own. Every search is
/// compiled in a file of its own: a new one is another function here and another case in make_decoders.
/// \throws std::invalid_argument  for options of search or schedule that make no sense
std::unique_ptr<Decoders> make_decoders(Options const& options, Models& models, Masks const& masks);
std::unique_ptr<Decoders> make_greedy(Options const& options, Models& models, Masks const& masks);
std::unique_ptr<Decoders> make_beam(Options const& options, Models& models, Masks const& masks);
std::unique_ptr<Decoders> make_sample(Options const& options, Models& models, Masks const& masks);
std::unique_ptr<Decoders> make_score(Options const& options, Models& models);

}  // namespace translate
