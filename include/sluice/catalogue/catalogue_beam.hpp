// SPDX-License-Identifier: Apache-2.0
/// \file
/// CatalogueBeam: wide beams over the items of a catalogue.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/detail/children_lists.hpp>
#include <sluice/catalogue/detail/children_norm.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/detail/beam_state.hpp>
#include <sluice/search/detail/beam_steps.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The tokens over which probabilities are normalised.
enum class Among : std::uint8_t {
  all_tokens,  ///< all, as in the model
  children,    ///< only those that may follow: needs the scores of no others (ProbeProjection), and an end that is
  ///< certain costs nothing. Nodes with few children then cost little, whatever probability the model gives
  ///< them
};

inline namespace SLUICE_ISA {

/// BeamSearch over the items of a catalogue, with its options. It finds what BeamSearch with InCatalogue finds and is meant
/// for beams of 50 to 512. Each line is asked only for the scores of its node's children, no set of the vocabulary's
/// size is built, and the best candidates are found in one pass: a step takes O(children + width log width) on top of
/// model and output layer. Nothing is allocated once warm.
///
/// Not supported: BeamSearch::sibling_penalty, Pruning::max_per_parent and Pruning::relative_local_threshold, which
/// need a line's children in order. BeamSearch::stage and at_maximum have no effect, since no output reaches the
/// maximum length. Processors that edit scores have no effect, since they leave probes alone.
struct CatalogueBeam {
  BeamSearch beam{};
  InCatalogue items{};
  Among among = Among::all_tokens;

  struct State {
    /// A compact candidate.
    struct Key {
      double value;
      std::int32_t rank;
      std::uint32_t token;  // index into ChildrenLists::tokens; none: it ended in an earlier step
    };
    detail::BeamState inner;
    detail::ChildrenLists lists;
    std::vector<Key> keys;
    std::vector<double> norms;  // [rank]: log of the sum of the children's probabilities
  };

  SLUICE_LAZY void check() const {
    auto const need = [](bool has_none, char const* name, auto const& value) {
      require(has_none, name, value, "a CatalogueBeam has none: use BeamSearch with InCatalogue");
    };
    beam.check();
    require(!items.trivial(), "items", "no catalogue", "must have one");
    need(beam.sibling_penalty <= 0, "beam.sibling_penalty", beam.sibling_penalty);
    need(beam.pruning.max_per_parent == Pruning::unlimited, "beam.pruning.max_per_parent", beam.pruning.max_per_parent);
    need(beam.pruning.relative_local_threshold <= 0, "beam.pruning.relative_local_threshold",
         beam.pruning.relative_local_threshold);
  }
  SLUICE_LAZY std::int32_t slot_count() const { return beam.slot_count(); }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    beam.begin(s.inner, sentence);
    auto state = items.initial(sentence);
    for (auto const token : sentence.prefix) state = items.next(state, token);
    auto const prefix = sentence.prefix.size();
    items.require_possible(state, {sentence.prefix, prefix, *sentence.vocabulary},
                           s.inner.bounds.max - static_cast<std::int32_t>(prefix));
    s.lists.nodes.assign(1, state.node);
    // While the prefix is scored, every line must be requested.
    s.lists.list(items, s.inner, s.inner.beam, among == Among::children && !scores_prefix(s.inner));
  }

  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    auto& inner = s.inner;
    for (auto const slot : inner.unused) plan.release(slot);
    inner.unused.clear();
    if (inner.first && !beam.prefix_scored) plan.ignore_prefix_scores();
    std::int32_t lines = 0;
    for (auto const rank : inner.holder) {
      if (rank < 0) continue;
      auto& listed = s.lists.listed[static_cast<std::size_t>(rank)];
      if (!listed.asks()) continue;
      auto const& entry = inner.beam[static_cast<std::size_t>(rank)];
      listed.line = lines++;
      plan.row(entry.from, entry.slot, inner.held, {&entry.token, 1});
      plan.ask({.base = entry.log_prob,
                .rank = rank,
                .best = 0,
                .probes = s.lists.tokens_of(listed),
                .normalise = among == Among::all_tokens || (inner.first && scores_prefix(inner))});
    }
  }

  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    namespace loop = detail::beam_loop;
    auto& inner = s.inner;
    loop::receive(beam, inner);
    find_norms(s, answer);
    find_best(s, answer);
    take_best(s, answer);
    loop::choose(beam, inner);
    ++inner.generated;
    loop::prune(beam, inner);
    if (loop::over(beam, inner)) {
      loop::close(beam, inner);
      return inner.over = true;
    }
    s.lists.follow(inner);
    s.lists.list(items, inner, inner.next, among == Among::children);
    // A hypothesis without a query needs no slot: place() gives none to finished ones.
    auto& listed = s.lists.listed;
    for (std::size_t rank = 0; rank < inner.next.size(); ++rank)
      if (!listed[rank].asks() && !inner.next[rank].ended) inner.next[rank].ended = listed[rank].idle = true;
    loop::go_on(inner);
    for (std::size_t rank = 0; rank < inner.beam.size(); ++rank)
      if (listed[rank].idle) inner.beam[rank].ended = false;
    return false;
  }
  SLUICE_LAZY Progress progress(State const& s) const { return beam.progress(s.inner); }
  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const { beam.settled(s.inner, tokens); }
  SLUICE_LAZY void finish(State const& s, Result& result) const { beam.finish(s.inner, result); }

 private:
  using Key = State::Key;
  /// BeamSearch's order of candidates.
  SLUICE_LAZY static auto order(State const& s) {
    return [&s](Key const& a, Key const& b) {
      if (a.value != b.value) return a.value > b.value;
      if (a.rank != b.rank) return a.rank < b.rank;
      return a.token != b.token && s.lists.tokens[a.token] < s.lists.tokens[b.token];
    };
  }
  using Listed = detail::ChildrenLists::Listed;
  static constexpr auto none = (std::numeric_limits<std::uint32_t>::max)();

  bool scores_prefix(detail::BeamState const& s) const { return beam.prefix_scored && s.prefix.size() > 0; }

  /// The scores of a hypothesis's candidates, one each; empty if there was no query.
  static std::span<float const> told(Listed const& listed, Expansion const& answer) {
    return listed.line < 0 ? std::span<float const>{} : answer[static_cast<std::size_t>(listed.line)].probes;
  }
  SLUICE_LAZY void find_norms(State& s, Expansion const& answer) const {
    s.norms.assign(s.lists.listed.size(), 0);
    if (among == Among::children)
      for (std::size_t rank = 0; rank < s.norms.size(); ++rank)
        s.norms[rank] = detail::log_sum_exp(told(s.lists.listed[rank], answer));
  }
  /// A token's log-probability.
  float gain(State const& s, std::size_t rank, float score) const {
    return among == Among::all_tokens ? score : static_cast<float>(static_cast<double>(score) - s.norms[rank]);
  }

  /// Writes the best candidates to `keys`, in order.
  SLUICE_LAZY void find_best(State& s, Expansion const& answer) const {
    auto const& inner = s.inner;
    // None after the first so many can continue.
    auto const limit = (std::min)(static_cast<std::size_t>(detail::beam_loop::looked_at(beam, inner)),
                                  static_cast<std::size_t>(beam.width) + s.lists.ends);
    auto bar = std::numeric_limits<double>::lowest();  // lower limit of their values
    s.keys.clear();
    auto const add = [&](double value, std::size_t rank, std::uint32_t token) {
      s.keys.push_back({value, static_cast<std::int32_t>(rank), token});
      if (s.keys.size() < 4 * limit) return;
      keep(s, limit);
      bar = std::min_element(s.keys.begin(), s.keys.end(), [](Key const& a, Key const& b) {
              return a.value < b.value;
            })->value;
    };
    for (std::size_t rank = 0; rank < inner.beam.size(); ++rank) {
      auto const& entry = inner.beam[rank];
      auto const& listed = s.lists.listed[rank];
      if (entry.ended) add(entry.value, rank, none);
      else if (listed.certain) add(entry.value, rank, listed.begin);
      auto const scores = told(listed, answer);
      auto low = lowest_score(s, rank, bar);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] < low) continue;
        auto const value = entry.value + static_cast<double>(gain(s, rank, scores[i]));
        if (!(value >= bar)) continue;
        auto const before = bar;
        add(value, rank, listed.begin + static_cast<std::uint32_t>(i));
        if (bar > before) low = lowest_score(s, rank, bar);
      }
    }
    keep(s, limit);
    std::sort(s.keys.begin(), s.keys.end(), order(s));
  }
  /// Any score below this keeps a candidate below the bar, so one comparison rejects most candidates.
  SLUICE_LAZY float lowest_score(State const& s, std::size_t rank, double bar) const {
    auto const score = bar - s.inner.beam[rank].value + s.norms[rank];
    return static_cast<float>(score - 1e-6 * (1 + std::abs(score)));
  }
  SLUICE_LAZY static void keep(State& s, std::size_t limit) {
    if (s.keys.size() <= limit) return;
    auto const end = s.keys.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(s.keys.begin(), end, s.keys.end(), order(s));
    s.keys.erase(end, s.keys.end());
  }

  /// Converts them to candidates of a BeamSearch.
  SLUICE_LAZY void take_best(State& s, Expansion const& answer) const {
    auto& inner = s.inner;
    inner.picks.clear();
    for (auto const& key : s.keys) {
      auto const rank = static_cast<std::size_t>(key.rank);
      auto const& entry = inner.beam[rank];
      auto const order = static_cast<std::int32_t>(inner.picks.size());
      if (key.token == none) {
        inner.picks.push_back({entry.value, entry.log_prob, key.rank, order, entry.token, 0, true, true});
        continue;
      }
      auto const& listed = s.lists.listed[rank];
      auto const i = key.token - listed.begin;
      auto const log_prob = listed.certain ? 0 : gain(s, rank, told(listed, answer)[i]);
      inner.picks.push_back({key.value, entry.log_prob + static_cast<double>(log_prob), key.rank, order,
                             s.lists.tokens[key.token], log_prob, i >= listed.children, false});
    }
  }
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(CatalogueBeam)
