// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of a BestFirstBeam for one sentence.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/kept_states.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/history.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::inline v0::detail {

struct BestFirstState : OutputLimits {
  /// A candidate in the queue.
  struct Waiting {
    double value = 0;  // no output that begins like this scores more
    double log_prob = 0;
    std::int32_t length = 0;  // tokens, prefix included
    std::int32_t parent = 0;  // in `expanded`
    std::int32_t order = 0;   // among its parent's children
    Token token = 0;
    float token_log_prob = 0;
    bool ended = false;
    bool taken = false;     // already in the beam of its length, and only waiting to be run
    std::int32_t rank = 0;  // its rank there
  };

  /// A hypothesis whose children are known or have been requested. The first one is the beginning of every output.
  struct Expanded {
    History::Node node = History::root;
    double log_prob = 0;
    std::int32_t length = 0;    // tokens, prefix included
    std::int32_t rank = 0;      // in the beam of its length
    std::int32_t waiting = 0;   // children in the queue that may still enter their beam
    std::int32_t taken = 0;     // children in the queue that are in their beam
    std::int32_t children = 0;  // all children seen
  };

  /// The beam of one length, as far as it is known. Candidates arrive best first.
  struct Level {
    static constexpr auto nothing = -std::numeric_limits<double>::infinity();
    std::int32_t seen = 0;           // candidates seen
    std::int32_t alive = 0;          // of these, the ones that were taken and continue
    std::int32_t room = 0;           // places for hypotheses that continue
    double best_alive = nothing;     // log_prob
    double best_finished = nothing;  // log_prob; an empty output does not count
    bool joined = false;             // AtMaximum::best_unfinished: the best has joined the finished ones
  };

  /// A hypothesis that is out.
  struct Ended {
    History::Node node = History::root;
    double log_prob = 0, score = 0;
    std::int32_t length = 0, rank = 0;
    bool cut = false;  // ended at the maximum length, without eos
    bool finished = false;
  };

  History history;
  Buffer<Waiting> queue;  // a heap
  Buffer<Expanded> expanded;
  Buffer<Level> levels;  // [length - prefix], for the lengths reached so far
  Buffer<Ended> out;     // the n best, best first
  KeptStates kept;
  std::vector<History::Node> nodes;  // of settled()
  std::int32_t width = 0;
  bool first = true, over = false;

  /// The order of the queue: highest possible score first. Among equals the shortest comes first, so that all
  /// candidates that could rank before it are known; then those that cost no row; then the order of a beam.
  struct Later {
    BestFirstState const* s;
    bool operator()(Waiting const& a, Waiting const& b) const {
      if (a.value != b.value) return a.value < b.value;
      if (a.length != b.length) return a.length > b.length;
      if (a.taken != b.taken) return a.taken;
      if (a.log_prob != b.log_prob) return a.log_prob < b.log_prob;
      auto const x = s->at(a.parent).rank, y = s->at(b.parent).rank;
      return x != y ? x > y : a.order > b.order;
    }
  };
  SLUICE_LAZY void push(Waiting const& one) {
    queue.push_back(one);
    std::push_heap(queue.begin(), queue.end(), Later{this});
  }
  SLUICE_LAZY Waiting pop() {
    std::pop_heap(queue.begin(), queue.end(), Later{this});
    auto const next = queue.back();
    queue.pop_back();
    return next;
  }

  SLUICE_LAZY Level& level(std::int32_t length) {
    auto const i = static_cast<std::size_t>(length - prefix.size());
    if (i >= levels.size()) levels.resize(i + 1, {.room = width});
    return levels[i];
  }
  SLUICE_LAZY Level level(std::int32_t length) const {
    auto const i = static_cast<std::size_t>(length - prefix.size());
    return i < levels.size() ? levels[i] : Level{.room = width};
  }
  Expanded& at(std::int32_t i) { return expanded[static_cast<std::size_t>(i)]; }
  Expanded const& at(std::int32_t i) const { return expanded[static_cast<std::size_t>(i)]; }
  bool is_eos(Token token) const { return vocabulary->ends(token); }
  /// Whether a child of this hypothesis may still be expanded.
  SLUICE_LAZY bool useful(Expanded const& one) const {
    if (one.length + 1 >= bounds.max) return false;
    auto const next = level(one.length + 1);
    return one.taken > 0 || (one.waiting > 0 && next.alive < next.room);
  }
};

}  // namespace sluice::inline v0::detail
