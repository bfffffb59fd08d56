// SPDX-License-Identifier: Apache-2.0
// Simultaneous decoding of random tables: a source's seed changes now and then while it grows.
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/result/commitment.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
using Growth = std::vector<std::uint64_t>;  // the seed of each beginning of a source, the whole last

std::vector<Growth> draw_sources(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Growth> sources(count);
  for (auto& source : sources) {
    std::uint64_t const one = random(), other = random();
    for (auto size = 1 + random() % 8; source.size() < size;) source.push_back(random() % 4 == 0 ? other : one);
  }
  return sources;
}

constexpr std::int32_t most = 12;  // tokens of an output
LengthLimits const length{.max = most};

/// What had been committed of each source after each unit of it.
using Transcript = std::vector<Tokens>;

/// Decodes all sources together, unit by unit. Checks that nothing is taken back.
template <class S, class P, class Schedule>
std::vector<Transcript> translate(Table const& table, std::vector<Growth> const& sources, S const& search,
                                  P const& policy, Schedule const& schedule) {
  std::vector<Commitment<P>> commitments(sources.size(), Commitment(policy, {eos}));
  std::vector<Transcript> transcripts(sources.size());
  for (std::size_t read = 1; read <= 8; ++read) {
    std::vector<TableRequest<S>> requests;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (read <= sources[i].size() && commitments[i].tokens().size() < static_cast<std::size_t>(most)) {
        requests.push_back({.source = sources[i][read - 1], .prefix = commitments[i].tokens(), .seed = sources[i][0]});
        who.push_back(i);
      }
    auto const results = run<everything>(table, requests, search, schedule);
    for (std::size_t r = 0; r < who.size(); ++r) {
      auto& commitment = commitments[who[r]];
      auto const& source = sources[who[r]];
      REQUIRE(results[r].ok());
      auto const& output = results[r].hypotheses.at(0).tokens;
      auto const before = commitment.tokens();
      if (read < source.size()) commitment.update(output, read);
      else commitment.finish(output);
      auto const& now = commitment.tokens();
      REQUIRE(now.size() >= before.size());
      CHECK(std::equal(before.begin(), before.end(), now.begin()));
      if (read < source.size()) CHECK(std::count(now.begin(), now.end(), eos) == 0);
      else CHECK(now == output);
      transcripts[who[r]].push_back(now);
    }
  }
  return transcripts;
}

template <class S>
void check_search(S const& search) {
  Table const table{.size = 7, .scale = 6};
  auto const sources = draw_sources(7, 12);
  Streaming const streaming{.size = 5, .refill_below = 1};
  auto const check = [&](auto const& policy) {
    auto const together = translate(table, sources, search, policy, streaming);
    for (std::size_t i = 0; i < sources.size(); ++i)
      CHECK(translate(table, {sources[i]}, search, policy, Batched{.size = 1}).at(0) == together[i]);
    return together;
  };
  auto some = false;
  for (auto const& transcript : check(LocalAgreement{.n = 2}))
    for (std::size_t read = 0; read + 1 < transcript.size(); ++read) some |= !transcript[read].empty();
  CHECK(some);
  check(LocalAgreement{.n = 3});
  check(HoldBack{.n = 2});
  check(WaitK{.k = 2});

  // Nothing is committed before the end: what comes then is what decoding the whole source gives.
  constexpr auto forever = std::numeric_limits<std::int32_t>::max();
  auto const waited = check(WaitK{.k = forever}), disagreed = check(LocalAgreement{.n = 100}),
             held = check(HoldBack{.n = forever});
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const whole =
        run<everything>(table, std::vector<TableRequest<S>>{{.source = sources[i].back(), .seed = sources[i][0]}},
                        search)
            .at(0);
    auto const& tokens = whole.hypotheses.at(0).tokens;
    CHECK(waited[i].back() == tokens);
    CHECK(disagreed[i].back() == tokens);
    CHECK(held[i].back() == tokens);
  }
}

// ---- written out, over the table alone ----

Token best_token(Table const& table, std::uint64_t seed, Tokens const& tokens) {
  std::vector<double> line(static_cast<std::size_t>(table.size));
  table.logits(seed, tokens, line);
  return static_cast<Token>(std::max_element(line.begin(), line.end()) - line.begin());
}

Tokens greedy(Table const& table, std::uint64_t seed, Tokens tokens) {
  while (static_cast<std::int32_t>(tokens.size()) < most && (tokens.empty() || tokens.back() != eos))
    tokens.push_back(best_token(table, seed, tokens));
  return tokens;
}

}  // namespace

TEST_CASE("greedy wait-k is the loop of reads and writes", "[simultaneous]") {
  Table const table{.size = 7, .scale = 6};
  auto const sources = draw_sources(1, 200);
  for (std::int32_t k = 1; k <= 5; ++k) {
    auto const transcripts = translate(table, sources, Greedy{.length = length}, WaitK{.k = k}, Batched{.size = 50});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Tokens written;
      for (std::size_t read = 1; read < sources[i].size(); ++read) {
        while (static_cast<std::int64_t>(written.size()) < static_cast<std::int64_t>(read) - k + 1) {
          auto const token = best_token(table, sources[i][read - 1], written);
          if (token == eos) break;  // not before the source has ended
          written.push_back(token);
        }
        CHECK(transcripts[i][read - 1] == written);
      }
      CHECK(transcripts[i].back() == greedy(table, sources[i].back(), written));
    }
  }
}

TEST_CASE("greedy local agreement is what outputs begin with", "[simultaneous]") {
  Table const table{.size = 7, .scale = 6};
  auto const sources = draw_sources(2, 200);
  auto const transcripts = translate(table, sources, Greedy{.length = length}, LocalAgreement{.n = 2}, Streaming{});
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Tokens written, before;
    for (std::size_t read = 1; read < sources[i].size(); ++read) {
      auto const output = greedy(table, sources[i][read - 1], written);
      for (auto at = written.size(); at < std::min(output.size(), before.size()); ++at) {
        if (output[at] != before[at] || output[at] == eos) break;
        written.push_back(output[at]);
      }
      before = output;
      CHECK(transcripts[i][read - 1] == written);
    }
    CHECK(transcripts[i].back() == greedy(table, sources[i].back(), written));
  }
}

TEST_CASE("every search can be simultaneous, alone and in any batch", "[simultaneous]") {
  check_search(Greedy{.length = length});
  check_search(BeamSearch{.width = 3, .length = length});
  check_search(DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = length}, .groups = 2});
  check_search(Sample{.length = length});
  check_search(StochasticBeam{.width = 3, .length = length});
  check_search(Blockwise{.length = length});
  check_search(ConstrainedBeamSearch{.beam = {.width = 4, .length = length}});
  check_search(Processed{BeamSearch{.width = 3, .length = length}, LogitsProcessorList(NoRepeatNgram{.n = 3})});
}
