// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks every plan, step and result of a constrained search against a plain account.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/constrained_account.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::test {

template <class A>
struct WatchedConstrained : ConstrainedAccount<A> {
  using Account = ConstrainedAccount<A>;
  using Account::search, Account::seen, Account::state_of;
  using typename Account::Beam;
  using typename Account::State;

  std::int32_t slot_count() const { return search.slot_count(); }
  Progress progress(State const& s) const { return search.progress(s.inner); }

  void begin(State& s, Sentence const& sentence) const {
    search.begin(s.inner, sentence);
    s.start = search.constraints.initial(sentence);
    for (auto const token : sentence.prefix) s.start = search.constraints.next(s.start, token);
    s.stranded.clear();
  }

  void plan(State& s, Plan& plan) const {
    StepPlan step, wants;
    Plan expected(step, plan.base()), real(wants, plan.base());
    s.before = s.inner.inner;
    search.beam.plan(s.before, expected);
    search.plan(s.inner, real);
    REQUIRE((step.rows.size() == wants.rows.size() && step.queries.size() == wants.queries.size()));
    CHECK(step.released == wants.released);
    if (!wants.queries.empty()) CHECK(wants.groups.at(0).keep == 0);
    auto const ends = static_cast<std::int32_t>(s.before.vocabulary->eos.size());
    for (std::size_t i = 0; i < step.queries.size(); ++i) {
      auto const &q = step.queries[i], &found = wants.queries[i];
      auto const& entry = s.before.beam[static_cast<std::size_t>(q.rank)];
      auto const state = state_of(s, s.before, entry.node);
      CHECK((found.rank == q.rank && found.base == q.base && found.stage == q.stage));
      CHECK(found.label == this->bank_of(state));
      auto const forced = detail::beam_loop::forced(search.beam, s.before);
      std::vector<Token> probes(q.probes.begin(), q.probes.end()), edits;
      for (auto const& edit : q.edits) edits.push_back(edit.token);
      auto best = q.best;
      TokenSet const* only = nullptr;
      if (!forced) {
        best = std::min(ends + (this->grid() ? search.beam.width : detail::beam_loop::looked_at(search.beam, s.before)),
                        search.beam.pruning.max_per_parent);
        probes.clear(), search.constraints.wanted(state, probes);
        if constexpr (requires { search.constraints.forbidden(state, edits); })
          search.constraints.forbidden(state, edits);
        if constexpr (requires { search.constraints.allowed(state); }) only = search.constraints.allowed(state);
      }
      CHECK((found.best == best && found.only == only && std::ranges::equal(found.probes, probes)));
      CHECK(std::ranges::equal(found.edits, edits, {}, &Edit::token));
      seen(forced ? 0 : 1);
    }
    for (auto const& released : wants.released) plan.release(released - plan.base());
    for (auto const& row : wants.rows) plan.row(row.from - plan.base(), row.to - plan.base(), row.length, row.tokens);
    if (!real.prefix_scored()) plan.ignore_prefix_scores();
    for (auto const& query : wants.queries) plan.ask(query);
    plan.keep(0);
  }

  bool advance(State& s, Expansion const& answer) const {
    namespace loop = detail::beam_loop;
    auto b = s.before;
    auto over = b.bounds.max == 0;
    if (!over) {
      loop::receive(search.beam, b);
      b.picks.assign(this->choose(b, this->candidates(s, b, answer)));
      loop::choose(search.beam, b);
      std::ranges::sort(b.next, [](auto const& x, auto const& y) {
        return x.value != y.value ? x.value > y.value : x.node < y.node;
      });
      ++b.generated;
      this->prune(s, b);
      over = loop::over(search.beam, b);
      if (over && (b.out.empty() || search.list_incomplete))
        for (auto const& one : b.next.empty() ? b.beam : b.next)
          s.stranded.push_back({one.node, one.log_prob, loop::score(search.beam, b, one), one.ended, !b.out.empty()});
      if (over) {
        if (search.beam.at_maximum == AtMaximum::best_unfinished && !b.vocabulary->eos.empty())
          erase_if(b.next, [&](auto const& one) {
            return !one.ended && !search.constraints.complete(state_of(s, b, one.node));
          });
        loop::close(search.beam, b);
      } else {
        loop::go_on(b);
      }
    }
    auto const found = search.advance(s.inner, answer);
    auto const& real = s.inner.inner;
    CHECK((found == over && real.over == over));
    CHECK(std::ranges::equal(real.beam, b.beam, [](auto const& x, auto const& y) {
      return x.node == y.node && x.value == y.value && x.log_prob == y.log_prob && x.ended == y.ended &&
             x.slot == y.slot;
    }));
    CHECK(std::ranges::equal(real.out, b.out, [](auto const& x, auto const& y) {
      return x.node == y.node && x.score == y.score && x.log_prob == y.log_prob && x.finished == y.finished;
    }));
    Result result;
    finish(s, result);
    return found;
  }

  void finish(State const& s, Result& result) const {
    struct Listed {
      Beam::Ended ended;
      std::int32_t met;
      bool complete;
    };
    auto const& b = s.inner.inner;
    std::vector<Listed> list;
    auto const add = [&](Beam::Ended const& ended) {
      auto const state = state_of(s, b, ended.node);
      list.push_back({ended, detail::constraints_met(search.constraints, state), search.constraints.complete(state)});
      list.back().ended.order = list.size();
    };
    detail::beam_loop::for_each_told(search.beam, b, add);
    auto const told = list.size();
    if ((told == 0 || search.list_incomplete) && search.beam.at_maximum != AtMaximum::drop)
      for (auto const& ended : s.stranded)
        if (std::ranges::none_of(b.out, [&](auto const& one) { return one.node == ended.node; })) add(ended), seen(4);
    std::ranges::sort(list, [](Listed const& x, Listed const& y) {
      if (x.complete != y.complete) return x.complete;
      if (x.ended.alive != y.ended.alive) return y.ended.alive;
      if (!x.complete && x.met != y.met) return x.met > y.met;
      return x.ended.score != y.ended.score ? x.ended.score > y.ended.score : x.ended.order < y.ended.order;
    });
    auto const whole = std::ranges::count_if(list, &Listed::complete);
    auto count = search.list_incomplete ? std::ssize(list) : std::max<std::ptrdiff_t>(1, whole);
    count = std::min({count, std::ssize(list), static_cast<std::ptrdiff_t>(search.beam.n_best)});
    search.finish(s.inner, result);
    CHECK(result.ok() == (count > 0 || !b.over || search.beam.at_maximum == AtMaximum::drop));
    REQUIRE(std::ssize(result.hypotheses) == count);
    for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
      auto const& h = result.hypotheses[i];
      std::vector<Token> tokens;
      b.history.write(list[i].ended.node, tokens);
      CHECK((h.tokens == tokens && h.score == list[i].ended.score && h.finished == list[i].ended.finished));
      CHECK((h.constraints_met == list[i].met && h.constraints_total == detail::constraints_total(search.constraints)));
      seen(list[i].complete ? 5 : 6);
    }
  }
};

}  // namespace sluice::test
