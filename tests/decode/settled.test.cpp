// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

static_assert(SettlingSearch<Greedy> && SettlingSearch<BeamSearch> && SettlingSearch<DiverseBeamSearch> &&
              SettlingSearch<Sample> && SettlingSearch<StochasticBeam> && SettlingSearch<Processed<Sample>> &&
              !SettlingSearch<ForcedScore> && !SettlingSearch<Processed<ForcedScore>>);

namespace {

using Tokens = std::vector<Token>;

bool begins(Tokens const& whole, std::span<Token const> part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// What all of some outputs begin with; empty for none.
Tokens shared(std::vector<Tokens> const& outputs) {
  if (outputs.empty()) return {};
  auto all = outputs[0];
  for (auto const& one : outputs)
    all.resize(static_cast<std::size_t>(std::ranges::mismatch(all, one).in1 - all.begin()));
  return all;
}

// The outputs that a running search may still return the beginning of, by its finish() called early with room for all.

std::vector<Tokens> tokens_of(Result const& result) {
  std::vector<Tokens> all;
  for (auto const& h : result.hypotheses) all.push_back(h.tokens);
  return all;
}

template <class S, class State>
std::vector<Tokens> possible(S const& search, State const& state) {
  Result result;
  search.finish(state, result);
  return tokens_of(result);
}

std::vector<Tokens> possible(BeamSearch const& search, BeamSearch::State const& state) {
  auto all = search;
  all.n_best = 1 << 20;
  auto outputs =
      possible<BeamSearch, BeamSearch::State>(all, state);  // those that have ended, best first, then the others
  auto const ended = static_cast<std::ptrdiff_t>(state.out.size());
  if (ended > search.n_best) outputs.erase(outputs.begin() + search.n_best, outputs.begin() + ended);
  return outputs;
}

std::vector<Tokens> possible(DiverseBeamSearch const& search, DiverseBeamSearch::State const& state) {
  std::vector<Tokens> all;
  for (auto const& beam : state.beams)
    for (auto& one : possible(search.search, beam.state)) all.push_back(std::move(one));
  return all;
}

template <class S>
std::vector<Tokens> possible(Processed<S> const& search, typename Processed<S>::State const& state) {
  return possible(search.search, state.plain->state);
}

/// What went wrong, and how much there was to see.
struct Seen {
  std::vector<std::string> wrong;
  std::size_t steps = 0, grown = 0, split = 0;  // split: hypotheses had something to disagree about
};

/// A search that looks at its settled beginning after every step.
template <SettlingSearch S>
struct Watched {
  S search{};
  Seen* seen = nullptr;

  static constexpr Abilities needs = sluice::needs<S>();
  struct State {
    typename S::State inner;
    Tokens last, now;
    std::size_t prefix = 0;
    bool early = true;
  };

  void check() const { sluice::check(search); }
  std::int32_t slot_count() const { return search.slot_count(); }
  void begin(State& s, Sentence const& sentence) const {
    s.last.clear(), s.prefix = sentence.prefix.size(), s.early = true;
    search.begin(s.inner, sentence);
    look(s);
  }
  void plan(State& s, Plan& plan) const { search.plan(s.inner, plan); }
  bool advance(State& s, Expansion const& answer) const {
    if (search.advance(s.inner, answer)) return true;
    look(s);
    return false;
  }
  Progress progress(State const& s) const { return search.progress(s.inner); }
  void finish(State& s, Result& result) const {
    search.finish(s.inner, result);
    for (auto const& h : result.hypotheses)
      if (!begins(h.tokens, s.last)) complain("the result " + text(h.tokens) + " does not begin with " + text(s.last));
  }
  void settled(State& s, Tokens& tokens) const { search.settled(s.inner, tokens); }

 private:
  void complain(std::string what) const { seen->wrong.push_back(std::move(what)); }
  void look(State& s) const {
    s.now.assign(3, -7);  // what stood there before must not matter
    search.settled(s.inner, s.now);
    auto const all = possible(search, s.inner);
    auto const expected = shared(all);
    if (s.now != expected) complain("settled " + text(s.now) + " instead of " + text(expected));
    if (!begins(s.now, s.last)) complain("settled " + text(s.last) + ", then " + text(s.now));
    auto again = s.now;
    search.settled(s.inner, again);
    if (again != s.now) complain("asked again, settled " + text(again) + " instead of " + text(s.now));
    ++seen->steps, seen->grown += s.now.size() > s.last.size();
    seen->split += std::ranges::any_of(all, [&](auto const& one) { return one.size() > s.now.size(); });
    s.last = s.now;
  }
};

template <class X>
X pick(std::mt19937_64& random, std::vector<X> const& values) {
  return values[random() % values.size()];
}

Table pick_table(std::mt19937_64& random) {
  auto table = random_table(random, static_cast<std::int32_t>(5 + random() % 8));
  if (random() % 8 == 0) table.has_eos = false;
  if (random() % 6 == 0) table.second_eos = 4;
  if (random() % 4 == 0) table.levels = 3;
  return table;
}

LengthLimits pick_length(std::mt19937_64& random) {
  auto const least = static_cast<std::int32_t>(random() % 4), most = pick<std::int32_t>(random, {0, 1, 5, 9, 16, 30});
  return {.min = (std::min)(least, most), .max = most};
}

/// Any beam search that makes sense.
BeamSearch pick_beam(std::mt19937_64& random) {
  for (;;) {
    BeamSearch s{.width = static_cast<std::int32_t>(1 + random() % 6)};
    s.finished = pick<FinishedHypotheses>(random, {FinishedHypotheses::set_aside, FinishedHypotheses::set_aside,
                                                   FinishedHypotheses::shrink, FinishedHypotheses::stay,
                                                   FinishedHypotheses::leave_first});
    s.early_stopping.rule = pick<EarlyStopping::Rule>(
        random, {EarlyStopping::Rule::count, EarlyStopping::Rule::count, EarlyStopping::Rule::top_ended,
                 EarlyStopping::Rule::exact, EarlyStopping::Rule::heuristic, EarlyStopping::Rule::never_early});
    s.early_stopping.finished = pick<std::int32_t>(random, {0, 0, 1, 4});
    s.early_stopping.patience = pick<double>(random, {1, 1, 0.5, 2});
    s.n_best = static_cast<std::int32_t>(1 + random() % static_cast<std::uint64_t>(2 * s.width));
    s.at_maximum = pick<AtMaximum>(random, {AtMaximum::force_eos, AtMaximum::force_eos_free, AtMaximum::truncate,
                                            AtMaximum::best_unfinished, AtMaximum::drop});
    s.penalty.alpha = pick<double>(random, {1, 0, 0.6, -0.5, 2});
    s.penalty.kind = pick<LengthPenalty::Kind>(
        random, {LengthPenalty::Kind::average, LengthPenalty::Kind::gnmt, LengthPenalty::Kind::none});
    s.penalty.word_penalty = pick<double>(random, {0, 0, -0.5, 1});
    s.pruning.absolute_threshold = pick<double>(random, {Pruning::off, Pruning::off, 0.5, 3});
    s.pruning.relative_local_threshold = pick<double>(random, {0, 0, 0.2});
    s.pruning.max_per_parent = pick<std::int32_t>(random, {Pruning::unlimited, Pruning::unlimited, 1, 2});
    s.candidates = pick<std::int32_t>(random, {0, 0, 2 * s.width});
    s.sibling_penalty = pick<double>(random, {0, 0, 1});
    s.surplus = random() % 2 == 0, s.prefix_scored = random() % 3 > 0, s.guard_prefix = random() % 3 == 0;
    s.stage = pick<Stage>(random, {Stage::after_softmax, Stage::before_softmax});
    s.length = pick_length(random);
    try {
      s.check();
      return s;
    } catch (std::invalid_argument const&) {
    }
  }
}

BeamSearch pick_preset(std::mt19937_64& random) {
  auto const k = static_cast<std::int32_t>(1 + random() % 6);
  auto s = pick<BeamSearch>(random, {presets::fairseq(k), presets::ctranslate2(k), presets::ctranslate2(k, 0),
                                     presets::huggingface(k), presets::huggingface(k, 1, EarlyStopping::Rule::count),
                                     presets::huggingface(k, 0.7, EarlyStopping::Rule::never_early),
                                     presets::sockeye(k), presets::sockeye(k, 0.5, 1), presets::marian(k),
                                     presets::marian(k, 1, 0.2), presets::varstream(k), presets::varstream(k, 4, 2)});
  s.n_best = static_cast<std::int32_t>(1 + random() % static_cast<std::uint64_t>(k));
  s.length = pick_length(random);
  return s;
}

DiverseBeamSearch pick_diverse(std::mt19937_64& random) {
  for (;;) {
    DiverseBeamSearch s{.search = pick_beam(random),
                        .groups = static_cast<std::int32_t>(1 + random() % 4),
                        .penalty = pick<double>(random, {0, 0.5, 5})};
    s.search.n_best = s.search.width;
    s.n_best = static_cast<std::int32_t>(1 + random() % static_cast<std::uint64_t>(s.slot_count()));
    try {
      s.check();
      return s;
    } catch (std::invalid_argument const&) {
    }
  }
}

Sample pick_sample(std::mt19937_64& random) {
  return {.temperature = pick<float>(random, {1, 0.3f, 2}),
          .top_k = pick<std::int32_t>(random, {0, 0, 2}),
          .top_p = pick<float>(random, {1, 0.8f}),
          .samples = static_cast<std::int32_t>(1 + random() % 4),
          .distinct = random() % 2 == 0,
          .length = pick_length(random)};
}

StochasticBeam pick_stochastic(std::mt19937_64& random) {
  return {.width = static_cast<std::int32_t>(1 + random() % 6),
          .temperature = pick<float>(random, {1, 0.2f}),
          .length = pick_length(random)};
}

Greedy pick_greedy(std::mt19937_64& random) { return {.length = pick_length(random), .scores = random() % 2 == 0}; }

/// Rules that get in the way, sometimes of everything.
LogitsProcessorList pick_rules(std::mt19937_64& random) {
  return LogitsProcessorList(ForbidTokens{pick<Tokens>(random, {{}, {3}, {2, 3}})},
                             NoRepeatNgram{pick<std::int32_t>(random, {0, 1, 2, 3})},
                             RepetitionPenalty{pick<float>(random, {1, 1.3f})});
}

/// Four sentences with prompts and prefixes of any kind, each under options of its own.
template <Abilities A, class Pick>
void watch(std::mt19937_64& random, Seen& seen, Pick&& choose) {
  using S = decltype(choose(random));
  using W = Watched<S>;
  auto const table = pick_table(random);
  std::vector<TableRequest<W>> requests(4);
  for (auto& request : requests) {
    request.source = random(), request.seed = random();
    request.search = W{choose(random), &seen};
    auto const token = [&] { return static_cast<Token>(3 + random() % (static_cast<std::uint64_t>(table.size) - 3)); };
    if (random() % 3 == 0) {
      request.prompt.push_back(bos);
      for (auto n = random() % 4; n > 0; --n) request.prompt.push_back(token());
    }
    if (random() % 3 == 0)
      for (auto n = random() % 4; n > 0; --n) request.prefix.push_back(token());
  }
  auto const results = run<A>(table, requests, *requests[0].search, Streaming{.size = 3, .refill_below = 1});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto const& failure = results[i].failure;
    INFO(results[i].message);
    // A prefix that ends, or is too long, is refused. Rules may leave no token.
    if (failure != Failure::none && failure != Failure::no_token_left) CHECK(failure == Failure::bad_request);
    if (results[i].hypotheses.empty()) CHECK_FALSE(results[i].message.empty());
    else CHECK(results[i].message.empty());
  }
  INFO((seen.wrong.empty() ? "" : seen.wrong.front()));
  CHECK(seen.wrong.empty());
  seen.wrong.clear();
}

template <class Pick>
void watch_all(std::uint64_t seed, std::size_t rounds, Pick const& choose) {
  rounds = times(rounds);
  std::mt19937_64 random(seed);
  Seen seen;
  for (std::size_t i = 0; i < rounds; ++i) {
    watch<everything>(random, seen, choose);
    watch<plain>(random, seen, choose);
    watch<everything>(random, seen, [&](auto& r) { return Processed{choose(r), pick_rules(r)}; });
  }
  CHECK(seen.steps > 10 * rounds);
  CHECK(seen.grown > rounds);
  CHECK((seen.split > rounds || seen.grown > 4 * rounds));
}

/// What is settled, how often, and the result of one sentence.
template <Abilities A = everything, class S>
std::pair<std::vector<Tokens>, Result> stream(Table const& table, TableRequest<S> const& request, S const& search) {
  TableModel<A> model(table);
  Decoder decoder(model, search);
  decoder.submit(request);
  std::vector<Tokens> told;
  while (decoder.step())
    decoder.settled(
        [](std::uint64_t) { return true; },
        [&](std::uint64_t, std::span<Token const> tokens) { told.emplace_back(tokens.begin(), tokens.end()); });
  Result result;
  REQUIRE(decoder.poll(result));
  return {told, result};
}

/// At every step of a sentence: what is settled, and what there is if it is withdrawn just then.
template <class S, class Comparable>
void cancel_everywhere(std::uint64_t seed, std::size_t rounds, S (*choose)(std::mt19937_64&), Comparable&& comparable) {
  rounds = times(rounds);
  std::mt19937_64 random(seed);
  std::size_t compared = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    auto const table = pick_table(random);
    auto const search = choose(random);
    TableRequest<S> request{.source = random(), .seed = random()};
    if (random() % 3 == 0) request.prefix = {3, 4, 3};
    for (std::size_t steps = 1;; ++steps) {
      TableModel<everything> model(table);
      Decoder decoder(model, search);
      decoder.submit(request);
      for (std::size_t i = 0; i < steps; ++i) decoder.step();
      if (decoder.running() == 0) break;
      std::optional<Tokens> settled;
      decoder.settled(
          [](std::uint64_t id) { return id == 0; },
          [&](std::uint64_t, std::span<Token const> tokens) { settled.emplace(tokens.begin(), tokens.end()); });
      REQUIRE(settled);
      REQUIRE(decoder.cancel(0));
      Result result;
      REQUIRE(decoder.poll(result));
      CHECK(result.failure == Failure::cancelled);
      for (auto const& h : result.hypotheses) CHECK(begins(h.tokens, *settled));
      if (!comparable(search, result)) continue;
      ++compared;
      CHECK(*settled == shared(tokens_of(result)));
    }
  }
  CHECK(compared > rounds);
}

}  // namespace

TEST_CASE("the settled beginning grows and is what all hypotheses share: greedy", "[settled]") {
  watch_all(1, 150, pick_greedy);
}
TEST_CASE("the settled beginning grows and is what all hypotheses share: any beam", "[settled]") {
  watch_all(2, 500, pick_beam);
}
TEST_CASE("the settled beginning grows and is what all hypotheses share: presets", "[settled]") {
  watch_all(3, 300, pick_preset);
}
TEST_CASE("the settled beginning grows and is what all hypotheses share: diverse beams", "[settled]") {
  watch_all(4, 200, pick_diverse);
}
TEST_CASE("the settled beginning grows and is what all hypotheses share: samples", "[settled]") {
  watch_all(5, 150, pick_sample);
}
TEST_CASE("the settled beginning grows and is what all hypotheses share: stochastic beams", "[settled]") {
  watch_all(6, 150, pick_stochastic);
}

TEST_CASE("the settled beginning is what a sentence withdrawn just then would share", "[settled]") {
  auto const always = [](auto const&, Result const&) { return true; };
  cancel_everywhere<Greedy>(1, 30, pick_greedy, always);
  cancel_everywhere<StochasticBeam>(2, 50, pick_stochastic, always);
  cancel_everywhere<Sample>(3, 50, pick_sample, always);
  // A beam returns n_best; fewer than that are all there are. Those that ended and are not among the n_best may not be
  // returned any more, but then the n_best are full.
  auto const complete = [](BeamSearch const& s, Result const& r) {
    return std::ssize(r.hypotheses) < s.n_best || (s.finished != FinishedHypotheses::set_aside && s.n_best >= s.width);
  };
  cancel_everywhere<BeamSearch>(4, 120, pick_beam, complete);
  auto const all_of_preset = [](std::mt19937_64& random) {
    auto s = pick_preset(random);
    s.n_best = s.width;
    return s;
  };
  cancel_everywhere<BeamSearch>(5, 60, all_of_preset, complete);
  auto const all_of_groups = [](std::mt19937_64& random) {
    auto s = pick_diverse(random);
    s.n_best = s.slot_count();
    return s;
  };
  cancel_everywhere<DiverseBeamSearch>(6, 60, all_of_groups, [](DiverseBeamSearch const& s, Result const& r) {
    return s.search.finished != FinishedHypotheses::set_aside || std::ssize(r.hypotheses) < s.search.width;
  });
}

TEST_CASE("greedy streams everything, token by token", "[settled]") {
  std::mt19937_64 random(8);
  for (int round = 0; round < times(60); ++round) {
    auto const table = pick_table(random);
    auto const search = Greedy{.length = {.min = 3, .max = 25}, .scores = round % 2 == 0};
    TableRequest<Greedy> request{.source = random()};
    if (round % 3 == 0) request.prefix = {3, 3};
    auto const [told, result] = stream(table, request, search);
    if (!result.ok()) continue;
    auto const& tokens = result.hypotheses.at(0).tokens;
    REQUIRE(told.size() + 1 + request.prefix.size() == tokens.size());  // the last comes with the result
    for (std::size_t i = 0; i < told.size(); ++i) {
      CHECK(told[i].size() == request.prefix.size() + i + 1);
      CHECK(begins(tokens, told[i]));
    }
    auto const [slowly, same] = stream<plain>(table, request, search);
    CHECK(same.hypotheses.at(0).tokens == tokens);
    // A prefix that goes in token by token is told once it is all in.
    std::vector<Tokens> expected(request.prefix.size());
    expected.insert(expected.end(), told.begin(), told.end());
    CHECK(slowly == expected);
  }
}

// A hypothesis that has ended holds the beginning back as long as it may be returned, and no longer.
TEST_CASE("ended hypotheses count as long as they are among the n best", "[settled]") {
  std::mt19937_64 random(21);
  std::size_t held_back = 0, dropped = 0;
  for (int round = 0; round < times(400); ++round) {
    BeamSearch search{.width = 4, .n_best = 1, .length = {.max = 16}, .early_stopping = {.finished = 4}};
    auto const table = pick_table(random);
    TableRequest<BeamSearch> const request{.source = random()};
    auto const [narrow, best] = stream(table, request, search);
    search.n_best = 4;
    auto const [wide, all] = stream(table, request, search);
    REQUIRE(narrow.size() == wide.size());  // n_best has no part in the search
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      CHECK(begins(narrow[i], wide[i]));
      for (auto const& h : best.hypotheses) CHECK(begins(h.tokens, narrow[i]));
      for (auto const& h : all.hypotheses) CHECK(begins(h.tokens, wide[i]));
      dropped += narrow[i].size() > wide[i].size();
      held_back += wide[i].empty() && !narrow[i].empty();
    }
  }
  CHECK(dropped > times(10));
  CHECK(held_back > times(10));
}

TEST_CASE("only those that took part in the last step are told of, and only if wanted", "[settled]") {
  Table const table{.size = 8, .has_eos = false};
  TableModel<everything> model(table);
  Decoder decoder(model, Greedy{.length = {.max = 30}},
                  Streaming{.size = 8, .order = Streaming::Order::oldest_first, .max_rows = 3});
  for (std::uint64_t i = 0; i < 8; ++i) decoder.submit({.source = i});
  std::map<std::uint64_t, std::size_t> lengths;
  auto const look = [&](auto const& wanted) {
    std::vector<std::uint64_t> ids;
    decoder.settled(wanted, [&](std::uint64_t id, std::span<Token const> tokens) {
      ids.push_back(id);
      lengths[id] = tokens.size();
    });
    return ids;
  };
  CHECK(look([](std::uint64_t) { return true; }).empty());  // no sentence has stepped
  decoder.step();
  CHECK(look([](std::uint64_t id) { return id != 1; }) == std::vector<std::uint64_t>{0, 2});
  decoder.step();
  CHECK(look([](std::uint64_t) { return true; }) == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(lengths == std::map<std::uint64_t, std::size_t>{{0, 2}, {1, 2}, {2, 2}});
  CHECK(look([](std::uint64_t) { return false; }).empty());
}

TEST_CASE("who is told what is settled may end anybody, submit and poll", "[settled]") {
  Table const table{.size = 10, .scale = 6, .eos_bias = -1};
  auto const search = presets::huggingface(3);
  std::mt19937_64 random(11);
  for (auto round = 0; round < times(150); ++round) {
    CheckedTable<everything> model(TableModel<everything>{table});
    Decoder decoder(model, search, Streaming{.size = 1 + random() % 5, .refill_below = 1});
    std::map<std::uint64_t, Result> results;
    std::map<std::uint64_t, Tokens> told;
    std::map<std::uint64_t, Failure> ended;  // by whom is told
    std::uint64_t sent = 0;
    auto const submit = [&] {
      CHECK(decoder.submit({.source = sent}) == sent);
      ++sent;
    };
    auto const poll = [&] {
      for (Result result; decoder.poll(result);) CHECK(results.emplace(result.id, result).second);
    };
    auto const count = [&] { CHECK(decoder.statistics().sentences + decoder.waiting() + decoder.running() == sent); };
    auto const mischief = [&](std::uint64_t asked) {
      if (random() % 5 == 0 && sent < 14) submit();
      if (random() % 4 == 0) poll();
      for (auto n = random() % 3; n > 0; --n) {
        auto const id = random() % 2 == 0 ? asked : random() % (sent + 1);
        auto const done = decoder.cancel(id, Failure::late);
        if (done) CHECK(ended.emplace(id, Failure::late).second);
        CHECK((!done || id < sent));
        CHECK_FALSE(decoder.cancel(id));
      }
      if (random() % 40 == 0) {
        poll();
        for (std::uint64_t id = 0; id < sent; ++id)
          if (!results.contains(id)) ended.emplace(id, Failure::schedule);
        decoder.end_all(Failure::schedule, "enough");
        CHECK(decoder.running() + decoder.waiting() == 0);
      }
      count();
      if (random() % 8 == 0) {
        CHECK_THROWS_WITH(decoder.step(), "sluice: step() from a function that settled() calls: call it when settled() "
                                          "has returned");
        auto const anybody = [](std::uint64_t) { return true; };
        CHECK_THROWS_AS(decoder.settled(anybody, [](std::uint64_t, std::span<Token const>) {}), std::logic_error);
      }
      if (random() % 20 == 0) throw std::runtime_error("enough of it");
    };
    for (auto i = 0; i < 8; ++i) submit();
    while (decoder.step()) try {
        decoder.settled(
            [&](std::uint64_t id) {
              CHECK_FALSE(ended.contains(id));
              if (random() % 4 == 0) mischief(id);
              return random() % 8 > 0;
            },
            [&](std::uint64_t id, std::span<Token const> tokens) {
              CHECK_FALSE(ended.contains(id));
              Tokens const before(tokens.begin(), tokens.end());
              CHECK(begins(before, told[id]));
              told[id] = before;
              mischief(id);
              CHECK(std::ranges::equal(before, tokens));  // they stay
            });
        count();
      } catch (std::runtime_error const&) {
        count();
      }
    poll();
    REQUIRE(results.size() == sent);
    for (auto const& [id, result] : results) {
      for (auto const& h : result.hypotheses) CHECK(begins(h.tokens, told[id]));
      if (ended.contains(id)) CHECK(result.failure == ended[id]);
      else CHECK(identical(result, run_one(table, id, search)));
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("the common beginning of nodes of a tree", "[settled]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < times(300); ++round) {
    History history;
    std::vector<History::Node> all{History::root};
    for (int i = 0; i < 30; ++i)
      all.push_back(history.add(all[random() % 3 == 0 ? random() % all.size() : all.size() - 1],
                                static_cast<Token>(random() % 3), 0));
    std::vector<History::Node> some;
    std::vector<std::vector<History::Node>> chains;
    for (auto n = 1 + random() % 4; n > 0; --n) {
      some.push_back(all[random() % all.size()]);
      auto& chain = chains.emplace_back();
      for (auto node = some.back(); node != History::root; node = history.parent(node))
        chain.insert(chain.begin(), node);
    }
    auto const expected = shared(chains);
    CHECK(history.common(some) == (expected.empty() ? History::root : expected.back()));
  }
  History history;
  std::vector<History::Node> none;
  CHECK(history.common(none) == History::root);
}
