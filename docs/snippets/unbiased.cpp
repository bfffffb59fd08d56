// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/unbiased.md.
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

using sluice::Token;

/// Words of five bits: the first is a 0 with probability 0.6, the others are anything. Token 0 is eos, 1 and 2 are the bits.
class Bits {
 public:
  using Source = std::monostate;
  static constexpr sluice::Abilities abilities{};

  static sluice::Vocabulary vocabulary() { return {.size = 3, .bos = 0, .eos = {0}}; }
  static void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    constexpr auto never = -std::numeric_limits<float>::infinity();
    scores_.clear();
    for (auto const& row : rows) {
      if (row.length == 0) scores_.insert(scores_.end(), {never, std::log(0.6f), std::log(0.4f)});
      else if (row.length < 5) scores_.insert(scores_.end(), {never, 0, 0});
      else scores_.insert(scores_.end(), {0, never, never});
    }
    return sluice::scores(scores_.data(), std::ssize(rows), 3);
  }

 private:
  std::vector<float> scores_;
};

std::vector<std::monostate> const source(1);

/// The part of an output among others, by number or by weight.
double part(sluice::Result const& result, std::vector<Token> const& output, bool weighted) {
  double found = 0, all = 0;
  for (auto const& h : result.hypotheses) {
    auto const its = weighted ? h.weight : 1;
    all += its, found += h.tokens == output ? its : 0;
  }
  return found / all;
}

}  // namespace

int main(int argc, char** argv) {
  std::string const wanted = argc > 1 ? argv[1] : "";
  auto const is = [&](char const* name) { return wanted.empty() || wanted == name; };
  Bits model;
  std::vector<Token> const zeros{1, 1, 1, 1, 1, 0};
  sluice::TokenBytes const bytes(std::vector<std::string>{"", "0", "1"});
  sluice::TokenTrie const trie(bytes, Bits::vocabulary());
  // [grammar]
  sluice::Structure const words(sluice::Grammar::from_regex("00000|1[01]{4}"), trie);
  sluice::Sample const sample{.samples = 1000};
  using Particles = sluice::ParticleSample<sluice::Indicator<sluice::Structure>>;
  Particles const particles{.particles = 1000, .potential{words}};

  auto const bent = sluice::decode(model, source, sample, words).at(0);
  auto const straight = sluice::decode(model, source, particles).at(0);
  // [/grammar]
  if (is("grammar")) {
    std::printf("00000 under masks: %.2f\n", part(bent, zeros, false));
    // [result]
    std::printf("00000 among particles: %.2f; it is %.2f\n", part(straight, zeros, true), 0.0375 / 0.4375);
    std::printf("Z: %.2f +- %.2f; it is %.2f\n", std::exp(straight.log_z),
                std::exp(straight.log_z) * straight.log_z_error, 0.4375);
    // [/result]
  }
  // [own]
  auto ones = [](std::span<Token const> tokens, bool over) {  // four times as good for each 1, and at least two
    auto const count = std::count(tokens.begin(), tokens.end(), 2);
    if (over && count < 2) return -std::numeric_limits<double>::infinity();
    return std::log(4) * static_cast<double>(count);
  };
  sluice::ParticleSample<sluice::OutputPotential<decltype(ones)>> const liked{
      .particles = 1000, .potential = sluice::OutputPotential(ones)};
  auto const result = sluice::decode(model, source, liked).at(0);
  // [/own]
  if (is("own")) {
    auto const& best = result.hypotheses.at(0);
    std::printf("%s: %.2f; log Z = %.2f +- %.2f\n", bytes.text(best.tokens).c_str(), best.weight, result.log_z,
                result.log_z_error);
  }
  return 0;
}
