// SPDX-License-Identifier: Apache-2.0
// Particles under grammars and phrases, against all outputs of a table and the standard library's regular expressions.
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/particle_means.hpp>
#include <support/posterior.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Proposal proposals[]{Proposal::model, Proposal::rejection, Proposal::product};

/// Tokens of a table: pad, bos, eos, then these.
struct Language {
  Table table{.size = 8, .scale = 4, .eos_bias = 0, .eos_slope = 0.5};
  TokenBytes bytes{std::vector<std::string>{"", "", "", "a", "b", "c", "ab", "ca"}};
  TokenTrie trie{bytes, {.size = 8, .bos = bos, .eos = {eos}, .never = {pad, bos}}};
};

}  // namespace

TEST_CASE("structured particles: the model's distribution over texts that match") {
  Language const language;
  Structure const structure(Grammar::from_regex("(ab|ca|b)*ac?"), language.trie);
  std::regex const expression("(ab|ca|b)*ac?");
  auto const exact = accepted(language.table, 3, 5, [&](std::vector<Token> const& tokens) {
    return std::regex_match(language.bytes.text(tokens), expression);
  });
  REQUIRE(exact.size() > 30);
  for (auto const proposal : proposals) {
    INFO(name(proposal));
    check_means(
        language.table, 3,
        ParticleSample<Indicator<Structure>>{
            .particles = 4, .proposal = proposal, .length{.max = 5}, .potential = Indicator<Structure>{structure}},
        exact);
  }
  // Under masks the outputs are the same and the model another: Z is 1, and the distance stays.
  using Masked = Processed<ParticleSample<Indicator<Structure>>>;
  Masked const masked(ParticleSample<Indicator<Structure>>{.particles = 4, .length{.max = 5}, .potential{structure}},
                      structure);
  auto const bent = run_one(language.table, 3, masked);
  REQUIRE(bent.ok());
  CHECK_THAT(bent.log_z, WithinAbs(0, 1e-5));
}

TEST_CASE("structured particles: what cannot be completed is refused, a prefix that breaks the grammar too") {
  Language const language;
  Structure const structure(Grammar::from_regex("abcab"), language.trie);
  using Of = ParticleSample<Indicator<Structure>>;
  Of const search{.particles = 4, .length{.max = 3}, .potential{structure}};
  auto const result = run_one(language.table, 1, search);
  CHECK(result.failure == Failure::bad_request);
  CHECK(result.message.find("length.max = 3") != std::string::npos);
  auto longer = search;
  longer.length.max = 6;
  CHECK(run_one(language.table, 1, longer).ok());
  std::vector<TableRequest<Of>> requests(1);
  requests[0].prefix = {5};
  CHECK(run(language.table, requests, longer).at(0).failure == Failure::bad_request);
}

TEST_CASE("structured particles: phrases that must and must not occur") {
  Language const language;
  Constraints const constraints({.all = {{3, 4}}, .none = {{5}, {4, eos}}});
  auto const exact = accepted(language.table, 8, 6, [](std::vector<Token> const& tokens) {
    std::vector<Token> const wanted{3, 4}, bad{4, eos};
    auto const has = [&](std::vector<Token> const& phrase) {
      return std::search(tokens.begin(), tokens.end(), phrase.begin(), phrase.end()) != tokens.end();
    };
    return has(wanted) && !has(bad) && !has({5});
  });
  REQUIRE(exact.size() > 30);
  for (auto const proposal : proposals) {
    INFO(name(proposal));
    check_means(language.table, 8,
                ParticleSample<Indicator<Constraints>>{
                    .particles = 8, .proposal = proposal, .length{.max = 6}, .potential{constraints}},
                exact);
  }
}
