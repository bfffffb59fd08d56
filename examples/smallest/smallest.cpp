// SPDX-License-Identifier: Apache-2.0
// A model of a dozen words, decoded greedily and by beam search.

// [readme]
#include <sluice/sluice.hpp>

#include <cmath>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

// The probability that a word follows another; a full stop begins and ends a sentence.
std::map<std::string, std::map<std::string, float>> const follows{
    {".", {{"time", 0.6f}, {"fruit", 0.4f}}},
    {"time", {{"flies", 0.6f}, {"waits", 0.3f}, {"passes", 0.1f}}},
    {"fruit", {{"flies", 1}}},
    {"flies", {{"like", 1}}},
    {"like", {{"a", 0.6f}, {"an", 0.4f}}},
    {"waits", {{"for", 1}}},
    {"for", {{"nobody", 1}}},
    {"a", {{"banana", 1}}},
    {"an", {{"arrow", 1}}},
    {"banana", {{".", 1}}},
    {"arrow", {{".", 1}}},
    {"nobody", {{".", 1}}},
    {"passes", {{".", 1}}}};

struct Bigrams {
  using Source = std::monostate;  // no input: it just generates text
  std::vector<std::string> words;
  std::vector<float> answer;

  Bigrams() {
    for (auto const& [word, next] : follows) words.push_back(word);
  }
  sluice::Vocabulary vocabulary() const { return {.size = int(words.size()), .bos = 0, .eos = {0}}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}  // no state: the last word is enough

  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    answer.clear();
    for (auto const& row : rows) {
      auto const& next = follows.at(words.at(std::size_t(row.tokens.back())));
      for (auto const& word : words) answer.push_back(std::log(next.contains(word) ? next.at(word) : 0));
    }
    return sluice::scores(answer.data(), std::ssize(rows), std::ssize(words), sluice::Kind::log_probs);
  }
};

int main() {
  Bigrams model;
  auto const say = [&](auto const& search) {
    auto const results = sluice::decode(model, std::vector<std::monostate>(1), search);
    for (auto const& hypothesis : results[0].hypotheses) {
      std::cout << std::exp(hypothesis.log_prob);
      for (auto const token : hypothesis.tokens) std::cout << ' ' << model.words.at(std::size_t(token));
      std::cout << '\n';
    }
  };
  say(sluice::Greedy{});
  std::cout << '\n';
  say(sluice::BeamSearch{.width = 3, .n_best = 3});
}
// [/readme]
