// SPDX-License-Identifier: Apache-2.0
/// \file
/// CatalogueBeam: wide beams over the items of a catalogue.
#pragma once

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/beam/beam_state.hpp>
#include <sluice/search/beam/candidates.hpp>
#include <sluice/search/beam/closing.hpp>
#include <sluice/search/beam/survivors.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Which tokens' probabilities add up to one.
enum class Among : std::uint8_t {
  all_tokens,  ///< as the model gives them
  children,  ///< those that may follow alone: needs the scores of no others (ProbeProjection), and a certain token costs
             ///< nothing. Models that were trained with all tokens then prefer nodes with few children
};

/// BeamSearch over the items of a catalogue, with all its options: what Catalogued<BeamSearch> finds, for beams of 50 to 512. A
/// line is asked for its children's scores alone, no set of the vocabulary's size is made, and the best candidates are
/// found in one pass: a step takes O(children + width log width) beside model and output layer. Nothing is allocated once warm.
///
/// What it has not: BeamSearch::sibling_penalty, Pruning::max_per_parent, Pruning::relative_local_threshold, which need a line's
/// children in order. BeamSearch::stage and at_maximum have no effect: no output gets to the maximum length.
template <class = void>
struct LazyCatalogueBeam {
  BeamSearch beam{};
  InCatalogue items{};
  Among among = Among::all_tokens;

  /// What one hypothesis may become.
  struct Listed {
    std::uint32_t begin = 0, children = 0, count = 0;  // of State::tokens; children, then ends
    std::int32_t line = -1;                            // of the answer
    bool certain = false;                              // to end
    bool idle = false;                                 // alive, without a slot
    bool asks() const { return count > 0 && !certain; }
  };
  /// A candidate, as light as can be.
  struct Key {
    double value;
    std::int32_t rank;
    std::uint32_t token;  // index into State::tokens; none: it has ended before
  };
  struct State {
    detail::BeamState inner;
    std::vector<Catalogue::Node> nodes, next_nodes;  // [rank]
    std::vector<Listed> listed;                      // [rank]
    std::vector<Token> tokens;                       // of all of them
    std::vector<Item> first, last;                   // [token]: the items below a child
    std::vector<Key> keys;
    std::vector<double> norms;  // [rank]: log of what the children's probabilities add up to
    std::uint32_t ends = 0;     // of `tokens` that are ends
  };

  void check() const {
    beam.check();
    require(!items.trivial(), "items", "no catalogue", "must have one");
    require(beam.sibling_penalty <= 0, "beam.sibling_penalty", beam.sibling_penalty,
            "a CatalogueBeam has none: use Catalogued<BeamSearch>");
    require(beam.pruning.max_per_parent == Pruning::unlimited, "beam.pruning.max_per_parent",
            beam.pruning.max_per_parent, "a CatalogueBeam has none: use Catalogued<BeamSearch>");
    require(beam.pruning.relative_local_threshold <= 0, "beam.pruning.relative_local_threshold",
            beam.pruning.relative_local_threshold, "a CatalogueBeam has none: use Catalogued<BeamSearch>");
  }
  std::int32_t slots() const { return beam.slots(); }

  void begin(State& s, Sentence const& sentence) const {
    beam.begin(s.inner, sentence);
    auto state = items.initial(sentence);
    for (auto const token : sentence.prefix) state = items.next(state, token);
    auto const prefix = sentence.prefix.size();
    items.require_possible(state, {sentence.prefix, prefix, *sentence.vocabulary},
                           s.inner.bounds.max - static_cast<std::int32_t>(prefix));
    s.nodes.assign(1, state.node);
    list_all(s, s.inner.beam);
  }

  void plan(State& s, Plan& plan) const {
    auto& inner = s.inner;
    for (auto const slot : inner.unused) plan.release(slot);
    inner.unused.clear();
    if (inner.first && !beam.prefix_scored) plan.ignore_prefix_scores();
    std::int32_t lines = 0;
    for (auto const rank : inner.holder) {
      if (rank < 0) continue;
      auto& listed = s.listed[static_cast<std::size_t>(rank)];
      if (!listed.asks()) continue;
      auto const& entry = inner.beam[static_cast<std::size_t>(rank)];
      listed.line = lines++;
      plan.row(entry.from, entry.slot, inner.held, {&entry.token, 1});
      plan.ask({.base = entry.log_prob,
                .rank = rank,
                .best = 0,
                .probes = std::span(s.tokens).subspan(listed.begin, listed.count),
                .normalise = among == Among::all_tokens});
    }
  }

  bool advance(State& s, Expansion const& answer) const {
    namespace loop = detail::beam_loop;
    auto& inner = s.inner;
    loop::receive(beam, inner);
    if (among == Among::children) find_norms(s, answer);
    find_best(s, answer);
    take_best(s, answer);
    loop::choose(beam, inner);
    ++inner.generated;
    loop::prune(beam, inner);
    if (loop::over(beam, inner)) {
      loop::close(beam, inner);
      return inner.over = true;
    }
    follow(s);
    list_all(s, inner.next);
    // Who asks nothing needs no slot.
    for (std::size_t rank = 0; rank < inner.next.size(); ++rank)
      if (!s.listed[rank].asks() && !inner.next[rank].ended) inner.next[rank].ended = s.listed[rank].idle = true;
    loop::go_on(inner);
    for (std::size_t rank = 0; rank < inner.beam.size(); ++rank)
      if (s.listed[rank].idle) inner.beam[rank].ended = false;
    return false;
  }
  Progress progress(State const& s) const { return beam.progress(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const { beam.settled(s.inner, tokens); }
  void finish(State const& s, Result& result) const { beam.finish(s.inner, result); }

 private:
  static constexpr auto none = std::numeric_limits<std::uint32_t>::max();

  /// What each hypothesis of a beam may become.
  void list_all(State& s, std::span<detail::BeamState::Entry const> hypotheses) const {
    auto const& inner = s.inner;
    auto const& eos = inner.vocabulary->eos;
    s.tokens.clear(), s.first.clear(), s.last.clear(), s.ends = 0;
    s.listed.assign(hypotheses.size(), {});
    for (std::size_t rank = 0; rank < hypotheses.size(); ++rank) {
      if (hypotheses[rank].ended) continue;
      auto& listed = s.listed[rank];
      listed.begin = static_cast<std::uint32_t>(s.tokens.size());
      items.for_each_left(s.nodes[rank], [&](Token token, Item first, Item last) {
        s.tokens.push_back(token), s.first.push_back(first), s.last.push_back(last);
      });
      listed.children = static_cast<std::uint32_t>(s.tokens.size()) - listed.begin;
      if ((inner.generated >= inner.bounds.min || inner.last()) && items.may_end(s.nodes[rank])) {
        s.tokens.insert(s.tokens.end(), eos.begin(), eos.end());
        s.first.resize(s.tokens.size()), s.last.resize(s.tokens.size());
        s.ends += static_cast<std::uint32_t>(eos.size());
        listed.certain = among == Among::children && listed.children == 0 && eos.size() == 1;
      }
      listed.count = static_cast<std::uint32_t>(s.tokens.size()) - listed.begin;
    }
  }

  /// What a hypothesis' candidates have been told: one score each; nothing where it is certain.
  static std::span<float const> told(Listed const& listed, Expansion const& answer) {
    return listed.line < 0 ? std::span<float const>{} : answer[static_cast<std::size_t>(listed.line)].probes;
  }
  static void find_norms(State& s, Expansion const& answer) {
    constexpr auto impossible = -std::numeric_limits<float>::infinity();
    s.norms.assign(s.listed.size(), 0);
    for (std::size_t rank = 0; rank < s.listed.size(); ++rank) {
      auto const scores = told(s.listed[rank], answer);
      auto highest = impossible;
      for (auto const x : scores) highest = std::max(highest, x);
      if (highest == impossible) continue;
      double sum = 0;
      for (auto const x : scores) sum += static_cast<double>(std::exp(x - highest));
      s.norms[rank] = static_cast<double>(highest) + std::log(sum);
    }
  }
  /// A token's log-probability.
  float gain(State const& s, std::size_t rank, float score) const {
    return among == Among::all_tokens ? score : static_cast<float>(static_cast<double>(score) - s.norms[rank]);
  }

  /// Candidates that may be among the best, to `keys`: all others are known to be worse.
  void find_best(State& s, Expansion const& answer) const {
    auto const& inner = s.inner;
    // Behind so many there is none that goes on.
    auto const limit = std::min(static_cast<std::size_t>(detail::beam_loop::looked_at(beam, inner)),
                                static_cast<std::size_t>(beam.width) + s.ends);
    auto bar = std::numeric_limits<double>::lowest();
    s.keys.clear();
    auto const add = [&](double value, std::size_t rank, std::uint32_t token) {
      s.keys.push_back({value, static_cast<std::int32_t>(rank), token});
      if (s.keys.size() < 4 * limit) return;
      keep(s, limit);
      bar = std::ranges::min(s.keys, {}, &Key::value).value;
    };
    for (std::size_t rank = 0; rank < inner.beam.size(); ++rank) {
      auto const& entry = inner.beam[rank];
      auto const& listed = s.listed[rank];
      if (entry.ended) add(entry.value, rank, none);
      else if (listed.certain) add(entry.value, rank, listed.begin);
      auto const scores = told(listed, answer);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        auto const value = entry.value + static_cast<double>(gain(s, rank, scores[i]));
        if (value >= bar) add(value, rank, listed.begin + static_cast<std::uint32_t>(i));
      }
    }
    keep(s, limit);
    std::sort(s.keys.begin(), s.keys.end(), order(s));
  }
  /// BeamSearch's order of candidates.
  static auto order(State const& s) {
    return [&s](Key const& a, Key const& b) {
      if (a.value != b.value) return a.value > b.value;
      if (a.rank != b.rank) return a.rank < b.rank;
      return a.token != b.token && s.tokens[a.token] < s.tokens[b.token];
    };
  }
  static void keep(State& s, std::size_t limit) {
    if (s.keys.size() <= limit) return;
    auto const end = s.keys.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(s.keys.begin(), end, s.keys.end(), order(s));
    s.keys.erase(end, s.keys.end());
  }

  /// The same as candidates of a BeamSearch.
  void take_best(State& s, Expansion const& answer) const {
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
      auto const& listed = s.listed[rank];
      auto const i = key.token - listed.begin;
      auto const log_prob = listed.certain ? 0 : gain(s, rank, told(listed, answer)[i]);
      inner.picks.push_back({key.value, entry.log_prob + static_cast<double>(log_prob), key.rank, order,
                             s.tokens[key.token], log_prob, i >= listed.children, false});
    }
  }

  /// The nodes of the next beam, before its slots are given out.
  static void follow(State& s) {
    auto const& inner = s.inner;
    s.next_nodes.assign(inner.next.size(), {});
    for (std::size_t i = 0; i < inner.next.size(); ++i) {
      auto const& entry = inner.next[i];
      if (entry.ended) continue;
      auto const parent = static_cast<std::size_t>(inner.holder[static_cast<std::size_t>(entry.from)]);
      auto const& listed = s.listed[parent];
      auto const begin = s.tokens.begin() + listed.begin;
      auto const at =
          static_cast<std::size_t>(std::lower_bound(begin, begin + listed.children, entry.token) - s.tokens.begin());
      s.next_nodes[i] = {s.nodes[parent].depth + 1, s.first[at], s.last[at]};
    }
    s.nodes.swap(s.next_nodes);
  }
};
using CatalogueBeam = LazyCatalogueBeam<>;

}  // namespace sluice::inline v0
