// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several decoders, each in a thread of its own; what they search is hidden.
#pragma once

#include <sluice/core/statistics.hpp>
#include <sluice/output/clustered_projection.hpp>

#include <translate/exchange.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/structure.hpp>

#include <memory>

namespace translate {

class Decoders {
 public:
  Decoders() = default;
  Decoders(Decoders const&) = delete;
  Decoders& operator=(Decoders const&) = delete;
  virtual ~Decoders() = default;

  /// Decodes all that the exchange hands out. A result depends on its sentence alone.
  virtual void run(Exchange& exchange) = 0;
  virtual sluice::Statistics statistics() const = 0;
  /// Of --projection clustered.
  virtual sluice::ClusteredStatistics clusters() const = 0;
};

/// As many as the command line asks for, with the search that it names, each over its own model. Every search is
/// compiled in its own file: a new one is another function here and another case in make_decoders.
/// \throws std::invalid_argument  for invalid options of search or schedule
std::unique_ptr<Decoders> make_decoders(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_greedy(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_beam(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_best_first(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_constrained(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_sample(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_blockwise(Options const& options, Models& models, Restrictions const& restrictions);
std::unique_ptr<Decoders> make_score(Options const& options, Models& models, sluice::Structure const& structure);

}  // namespace translate
