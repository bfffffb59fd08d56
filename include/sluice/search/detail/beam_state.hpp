// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of a BeamSearch for one sentence.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/history.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

struct BeamState : OutputLimits {
  /// A hypothesis in the beam.
  struct Entry {
    double log_prob = 0;
    double value = 0;  // what the beam ranks by: log_prob, or the final score of a finished hypothesis that stays
    History::Node node = History::root;
    Token token = 0;           // the last token; to be fed
    Slot from = 0, slot = -1;  // the parent's slot, and its own; -1: ended, needs none
    bool ended = false;
    std::int32_t stop = -1;  // that ended it
  };

  /// A candidate.
  struct Pick {
    double value, log_prob;
    std::int32_t parent;  // rank in the beam
    std::int32_t order;   // in which it was found
    Token token;
    float token_log_prob;
    bool ended, carried;     // carried: ended in an earlier step
    std::int32_t stop = -1;  // that it completes
  };

  /// A hypothesis that has left the beam.
  struct Ended {
    History::Node node = History::root;
    double log_prob = 0, score = 0;
    bool finished = false;
    bool alive = false;     // listed only because a result was requested before the end
    std::size_t order = 0;  // breaks ties
    std::int32_t stop = -1;
  };

  History history;
  Buffer<Entry> beam, next;          // best first
  Buffer<Pick> picks;                // candidates, then the best of them in order
  Buffer<Ended> out;                 // in the order in which they ended
  Buffer<double> scores;             // of `out`, when a rule needs them sorted
  std::vector<std::int32_t> line;    // [rank] -> line of the answer
  std::vector<std::int32_t> holder;  // [slot] -> rank, -1 = none
  std::vector<Slot> unused;          // to be released
  std::vector<History::Node> nodes;  // of settled()
  double best_finished = 0;          // its log_prob
  std::int32_t held = 0;             // tokens in the slots
  std::int32_t generated = 0;        // tokens, prefix included
  std::int32_t room = 0;             // remaining width
  bool first = true;                 // no answer yet
  bool top_ended = false, over = false;

  bool last() const { return generated + 1 >= bounds.max; }  // the next token is the last one allowed
  bool is_eos(Token token) const { return vocabulary->ends(token); }
};

}  // namespace sluice::inline v0::detail
