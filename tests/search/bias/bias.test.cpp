// SPDX-License-Identifier: Apache-2.0
// Boosted phrases against a scan of whole outputs. Mutants that these tests notice: a boost counted twice (paid() of the
// suffix too under Matches::longest, or of a second spelling), no refund (bias() returns 0), no refund at the end (no shift
// of lines that a stop ends), edits of the suffixes in place of the deeper state's, no edits of probes.
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/beam/diverse_beam_search.hpp>
#include <sluice/search/bias/bias.hpp>
#include <sluice/search/blockwise/blockwise.hpp>
#include <sluice/search/constraint/constrained_beam_search.hpp>
#include <sluice/search/greedy/greedy.hpp>
#include <sluice/search/rule/forbidden.hpp>
#include <sluice/search/rule/stop_sequences.hpp>
#include <sluice/search/sample/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;

struct Drawn {
  std::vector<BiasedPhrase> phrases;
  ContextOptions options;
};

Drawn draw(std::uint64_t seed, Token kinds) {
  std::mt19937_64 random(seed);
  auto const boost = [&] { return static_cast<float>(static_cast<int>(random() % 25) - 8) / 8; };
  Drawn drawn;
  drawn.options = {.per_token = boost(), .matches = random() % 2 == 0 ? Matches::all : Matches::longest};
  for (auto n = 1 + random() % 5; n > 0; --n) {
    BiasedPhrase phrase;
    auto const length = 1 + random() % 4;
    auto const kind = random() % 4;
    for (auto s = 1 + random() % 2; s > 0; --s) {
      Text text;
      for (auto i = kind == 0 ? length : 1 + random() % 4; i > 0; --i)
        text.push_back(3 + static_cast<Token>(random() % static_cast<std::size_t>(kinds)));
      phrase.spellings.push_back(text);
    }
    if (kind == 0)
      for (std::size_t i = 0; i < length; ++i) phrase.token_boosts.push_back(boost());
    if (kind == 1) phrase.whole = boost();
    if (kind == 2) phrase.per_token = boost();
    drawn.phrases.push_back(phrase);
  }
  return drawn;
}

double boost_of(BiasedPhrase const& phrase, ContextOptions const& options, std::size_t tokens) {
  if (phrase.whole) return *phrase.whole;
  auto sum = 0.0;
  for (std::size_t i = 0; i < tokens; ++i)
    sum += phrase.token_boosts.empty() ? phrase.per_token.value_or(options.per_token) : phrase.token_boosts[i];
  return sum;
}

bool ends_in(Text const& text, std::size_t end, Text const& part) {
  return part.size() <= end &&
         std::equal(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(end - part.size()));
}

/// What a whole output earns.
double earned(Drawn const& drawn, Text const& text) {
  auto sum = 0.0;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (auto const& phrase : drawn.phrases)
      for (auto const& spelling : phrase.spellings)
        if (ends_in(text, end, spelling)) longest = std::max(longest, spelling.size());
    for (auto const& phrase : drawn.phrases) {
      std::size_t its = 0;
      for (auto const& spelling : phrase.spellings)
        if (ends_in(text, end, spelling)) its = std::max(its, spelling.size());
      if (its > 0 && (drawn.options.matches == Matches::all || its == longest))
        sum += boost_of(phrase, drawn.options, its);
    }
  }
  return sum;
}

/// What an output has been given for a phrase that it may be about to contain.
double lent(Drawn const& drawn, Text const& text) {
  auto most = 0.0;
  for (auto const& phrase : drawn.phrases)
    for (auto const& spelling : phrase.spellings)
      for (std::size_t n = 1; n < spelling.size(); ++n)
        if (ends_in(text, text.size(), Text(spelling.begin(), spelling.begin() + static_cast<std::ptrdiff_t>(n))))
          most = std::max(most, phrase.whole
                                    ? *phrase.whole * static_cast<double>(n) / static_cast<double>(spelling.size())
                                    : boost_of(phrase, drawn.options, n));
  return most;
}

/// All outputs of a table, best first.
std::vector<Sequence> best_of(Table const& table, std::uint64_t seed, Drawn const& drawn, std::int32_t maximum) {
  auto all = all_sequences(table, seed, {.maximum = maximum});
  auto const count = all.size();
  return n_best(std::move(all), count, [&](Sequence const& s) { return s.log_prob + earned(drawn, s.tokens); });
}

template <class S, class P = Batched>
std::vector<Result> decoded(Table const& table, S const& search, std::size_t sources, P const& schedule = {}) {
  std::vector<TableRequest<S>> requests;
  for (std::size_t i = 0; i < sources; ++i) requests.push_back({.source = i});
  return run(everything, table, std::move(requests), search, schedule);
}

void compare(Result const& result, std::vector<Sequence> const& expected) {
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    CHECK(h.score == Approx(expected[i].score).margin(2e-5));
    auto const same = h.tokens == expected[i].tokens;
    auto const tie = (i > 0 && expected[i - 1].score - expected[i].score < 2e-5) ||
                     (i + 1 < expected.size() && expected[i].score - expected[i + 1].score < 2e-5);
    CHECK((same || tie));
  }
}

constexpr LengthLimits four{.max = 4};
BeamSearch wide(std::int32_t width) {
  return {.width = width, .n_best = width, .length = four, .penalty = {.kind = LengthPenalty::Kind::none}};
}

}  // namespace

TEST_CASE("a context graph adds up to what a scan of the output finds", "[bias]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto const drawn = draw(seed, 3);
    ContextGraph const graph(drawn.phrases, drawn.options);
    std::mt19937_64 random(seed + 7);
    Text text;
    auto sum = 0.0;
    auto state = ContextGraph::root;
    for (int i = 0; i < 12; ++i) {
      std::vector<Edit> edits{{.token = 99}};
      graph.edit(state, edits);
      REQUIRE(edits.front().token == 99);
      auto const token = 3 + static_cast<Token>(random() % 4);
      REQUIRE(std::count_if(edits.begin(), edits.end(), [&](Edit const& e) { return e.token == token; }) <= 1);
      sum -= static_cast<double>(graph.credit(state));
      for (auto const& edit : edits)
        if (edit.token == token) sum += static_cast<double>(edit.add);
      state = graph.next(state, token), text.push_back(token);
      REQUIRE(static_cast<double>(graph.credit(state)) == Approx(lent(drawn, text)).margin(1e-6));
      REQUIRE(sum == Approx(earned(drawn, text) + lent(drawn, text)).margin(1e-5));
    }
  }
}

TEST_CASE("biased beams that are wide enough find the best of all outputs", "[bias]") {
  Table const table{.size = 6, .scale = 3};
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(ContextGraph(drawn.phrases, drawn.options));
    auto const expected = best_of(table, 1, drawn, 4);
    auto const width = static_cast<std::int32_t>(expected.size());
    auto const results = decoded(table, Biased<BeamSearch>(wide(width), bias), 3);
    compare(results[1], expected);
    auto const streamed = decoded(table, Biased<BeamSearch>(wide(width), bias), 3, Streaming{.size = 2});
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t n = 0; n < results[i].hypotheses.size(); ++n) {
        CHECK(streamed[i].hypotheses[n].tokens == results[i].hypotheses[n].tokens);
        CHECK(streamed[i].hypotheses[n].score == results[i].hypotheses[n].score);
      }
  }
}

TEST_CASE("bias under constraints, bans, stops, groups and narrow beams: scores are those of the outputs", "[bias]") {
  Table const table{.size = 7, .scale = 3};
  for (std::uint64_t seed = 20; seed < 32; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(ContextGraph(drawn.phrases, drawn.options));
    auto const all = best_of(table, 2, drawn, 4);
    auto const known = [&](Result const& result) {
      REQUIRE(!result.hypotheses.empty());
      for (auto const& h : result.hypotheses) {
        auto const same = std::find_if(all.begin(), all.end(), [&](Sequence const& s) { return s.tokens == h.tokens; });
        REQUIRE(same != all.end());
        CHECK(h.log_prob == Approx(same->score).margin(2e-5));
      }
    };
    auto narrow = wide(3);
    known(decoded(table, Biased<BeamSearch>(narrow, bias), 3)[2]);
    DiverseBeamSearch const diverse{.search = narrow, .groups = 2, .penalty = 0};
    known(decoded(table, Biased<DiverseBeamSearch>(diverse, bias), 3)[2]);
    known(decoded(table, Ruled(narrow, Rules(Forbidden(std::vector<Phrase>{{6}}), bias)), 3)[2]);

    using Constrained = ConstrainedBeamSearch<Phrases>;
    Constrained constrained{
        .beam = wide(200), .constraints = Phrases(std::vector<Phrase>{{3, 4}}), .prune_finished = Pruning::off};
    auto const met = decoded(table, Biased<Constrained>(constrained, bias), 3)[2];
    known(met);
    auto wanted = all;
    std::erase_if(wanted, [](Sequence const& s) { return !detail::contains(s.tokens, {3, 4}); });
    CHECK(met.hypotheses.front().score == Approx(wanted.front().score).margin(2e-5));

    // A stop at 5: its output is that without eos, at the log-probability of its tokens, with everything lent taken back.
    auto const stopped = decoded(table, Ruled(narrow, Rules(StopSequences({.tokens = {{5}}}), bias)), 3)[2];
    for (auto const& h : stopped.hypotheses) {
      if (h.stop < 0) continue;
      std::vector<double> line(static_cast<std::size_t>(table.size));
      auto sum = earned(drawn, h.tokens);
      for (std::size_t i = 0; i < h.tokens.size(); ++i) {
        table.log_probs(2, Text(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(i)), line);
        sum += line[static_cast<std::size_t>(h.tokens[i])];
      }
      CHECK(h.log_prob == Approx(sum).margin(2e-5));
    }
  }
}
