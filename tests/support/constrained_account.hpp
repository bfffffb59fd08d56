// SPDX-License-Identifier: Apache-2.0
/// \file
/// A plain account of how a constrained search chooses: hypotheses are token lists, banks are lists. The unconstrained
/// parts of BeamSearch and the bank sizes are taken from the library.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace sluice::test {

template <class A>
struct ConstrainedAccount {
  using Inner = ConstrainedBeamSearch<A>;
  using Beam = detail::BeamState;

  Inner search{};
  std::function<void(std::size_t)> seen{};  // [kind]: called for each comparison

  /// A candidate, with the account's view of it.
  struct Found {
    Beam::Pick pick;
    std::int32_t bank;  // -1: not allowed
    bool certain = false, taken = false;
  };
  struct State {
    typename Inner::State inner;
    typename A::State start;  // after the prefix
    Beam before;              // as planned
    std::vector<Beam::Ended> stranded;
  };

  typename A::State state_of(State const& s, Beam const& b, History::Node node) const {
    auto state = s.start;
    std::vector<Token> tokens;
    b.history.write(node, tokens);
    for (auto const token : tokens) state = search.constraints.next(state, token);
    return state;
  }
  std::int32_t bank_of(typename A::State const& state) const {
    return std::max(0, std::min<std::int32_t>(search.constraints.progress(state), search.constraints.total()));
  }
  /// Grid beam search: a hypothesis's candidates count, whatever others offer.
  bool grid() const { return search.banks == Banks::equal && search.beam.pruning.max_per_parent < Pruning::unlimited; }

  /// All candidates, in the order in which they are found.
  std::vector<Found> candidates(State const& s, Beam& b, Expansion const& answer) const {
    namespace loop = detail::beam_loop;
    std::vector<Found> all;
    auto const forced = loop::forced(search.beam, b);
    b.picks.clear();
    for (std::size_t r = 0; r < b.beam.size(); ++r) {
      auto const& entry = b.beam[r];
      auto const parent = state_of(s, b, entry.node);
      auto const first = b.picks.size();
      loop::add_candidates(search.beam, b, r, answer);
      std::vector<Token> wanted;
      if (!entry.ended && !forced) {
        search.constraints.wanted(parent, wanted);
        auto const line = answer[static_cast<std::size_t>(b.line[r])];
        auto place = static_cast<double>(line.best.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          auto const known = std::any_of(b.picks.begin() + static_cast<std::ptrdiff_t>(first), b.picks.end(),
                                         [&](Beam::Pick const& pick) { return pick.token == wanted[i]; });
          if (known || line.probes[i] == -std::numeric_limits<float>::infinity()) continue;
          auto const gain = static_cast<double>(line.probes[i]);
          b.picks.push_back({entry.value + gain - search.beam.sibling_penalty * place++, entry.log_prob + gain,
                             static_cast<std::int32_t>(r), static_cast<std::int32_t>(b.picks.size()), wanted[i],
                             line.probes[i], b.is_eos(wanted[i]), false});
          seen(2);
        }
      }
      auto has_best = false;
      for (auto i = first; i < b.picks.size(); ++i) {
        auto const& pick = b.picks[i];
        auto bank = bank_of(parent);
        if (!pick.carried) {
          auto const state = search.constraints.next(parent, pick.token);
          bank = search.constraints.dead(state) || (pick.ended && !search.constraints.complete(state)) ? -1
                                                                                                       : bank_of(state);
        }
        auto certain = std::ranges::find(wanted, pick.token) != wanted.end();
        if (!has_best && (bank >= 0 || !search.replace_impossible)) certain = has_best = true;
        all.push_back({pick, bank, certain});
      }
    }
    return all;
  }

  /// Those that the beam takes, in that order.
  std::vector<Beam::Pick> choose(Beam const& b, std::vector<Found> all) const {
    std::ranges::sort(all, {}, [](Found const& one) { return std::pair(-one.pick.value, one.pick.order); });
    auto const looked_at = detail::beam_loop::looked_at(search.beam, b);
    std::int32_t places = grid() ? std::numeric_limits<std::int32_t>::max() : looked_at;
    std::erase_if(all, [&](Found const& one) {
      if (places <= 0 && !one.certain) return true;
      if (one.bank >= 0 || !search.replace_impossible) --places;
      return one.bank < 0;
    });
    if (auto const threshold = search.beam.pruning.relative_local_threshold; threshold > 0) {
      std::map<std::int32_t, double> best;
      for (auto const& one : all)
        if (!one.pick.carried)
          best[one.bank] =
              std::max(best.try_emplace(one.bank, -1e300).first->second, static_cast<double>(one.pick.token_log_prob));
      std::erase_if(all, [&](Found const& one) {
        return !one.pick.carried &&
               static_cast<double>(one.pick.token_log_prob) <= best[one.bank] + std::log(threshold);
      });
    }
    auto const banks = static_cast<std::size_t>(search.constraints.total()) + 1;
    std::vector<Beam::Pick> chosen;
    if (search.banks == Banks::fairseq) {
      std::vector<std::vector<Beam::Pick>> lists(banks);
      for (auto const& one : all) lists[static_cast<std::size_t>(one.bank)].push_back(one.pick);
      for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (auto bank = banks; bank-- > 0;)
          if (rank < lists[bank].size() && std::ssize(chosen) < looked_at) chosen.push_back(lists[bank][rank]);
      return chosen;
    }
    auto const take = [&](std::int32_t room, bool again) {
      auto const free = [&](Found const& one) { return !one.taken && !(again && one.pick.ended); };
      std::vector<std::int32_t> counts(banks), sizes(banks, search.beam.width / static_cast<std::int32_t>(banks));
      for (auto const& one : all) counts[static_cast<std::size_t>(one.bank)] += free(one);
      if (search.banks == Banks::even) detail::bank_sizes_even(counts, room, sizes);
      if (search.banks == Banks::paper) detail::bank_sizes_paper(counts, room, sizes);
      if (search.banks == Banks::sockeye) detail::bank_sizes_sockeye(counts, room, sizes);
      if (search.banks == Banks::equal && again) {  // as many of each bank as ended there
        sizes.assign(banks, 0);
        for (auto const& one : all) sizes[static_cast<std::size_t>(one.bank)] += one.taken && one.pick.ended;
      } else if (search.banks == Banks::equal) {
        sizes.back() = std::max(0, sizes.back() - (search.beam.width - room));
      }
      for (auto& one : all)
        if (free(one) && sizes[static_cast<std::size_t>(one.bank)]-- > 0) one.taken = true, chosen.push_back(one.pick);
    };
    take(b.room, false);
    auto const ended = std::ranges::count_if(chosen, [](Beam::Pick const& pick) { return pick.ended; });
    if (search.beam.finished == FinishedHypotheses::set_aside && ended > 0)
      take(static_cast<std::int32_t>(ended), true), seen(3);
    return chosen;
  }

  /// Drops hypotheses of the next beam that are too far behind.
  void prune(State const& s, Beam& b) const {
    auto const& pruning = search.beam.pruning;
    if (pruning.by_total()) {
      std::map<std::int32_t, double> best{{search.constraints.total(), b.best_finished}};
      auto const bank = [&](Beam::Entry const& entry) { return bank_of(state_of(s, b, entry.node)); };
      for (auto const& entry : b.next)
        best[bank(entry)] = std::max(best.try_emplace(bank(entry), entry.value).first->second, entry.value);
      erase_if(b.next, [&](Beam::Entry const& entry) { return entry.value <= best[bank(entry)] - pruning.margin(); });
    }
    auto const margin = search.constraints.total() > 0 ? search.prune_finished : Pruning::off;
    detail::beam_loop::drop_below_finished(search.beam, b, std::min(pruning.below_finished, margin));
  }
};

}  // namespace sluice::test
