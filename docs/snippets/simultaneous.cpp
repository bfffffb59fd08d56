// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/simultaneous.md.
#include <sluice/result/commitment.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace {

using sluice::Token;
using Words = std::vector<std::string>;

Words const english{"<s>", "</s>", "i", "have", "the", "dog", "seen", "in", "garden"};

/// Translates one sentence word for word, except for the participle, which comes last in German. It continues what has been
/// written.
class Interpreter {
 public:
  using Source = Words;
  sluice::Vocabulary vocabulary() const { return {.size = int(english.size()), .bos = 0, .eos = {1}, .never = {0}}; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) at(slots[i]) = {meaning(*sources[i]), {}};
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        auto const parent = at(row.from);
        at(row.to) = parent;
      }
    scores_.clear();
    for (auto const& row : rows) {
      auto& [meaning, written] = at(row.to);
      written.push_back(row.tokens.back());
      auto const next = std::find_if(meaning.begin(), meaning.end(), [&](Token t) {
        return std::find(written.begin(), written.end(), t) == written.end();
      });
      for (Token t = 0; t < int(english.size()); ++t) scores_.push_back(t == *next ? 5.0f : 0.0f);
    }
    return sluice::scores(scores_.data(), std::ssize(rows), std::ssize(english));
  }

 private:
  struct State {
    std::vector<Token> meaning, written;
  };
  static std::vector<Token> meaning(Words const& words) {
    std::vector<Token> tokens;
    auto const say = [&](std::string const& word, Token token) {
      if (std::find(words.begin(), words.end(), word) != words.end()) tokens.push_back(token);
    };
    say("ich", 2), say("habe", 3), say("gesehen", 6), say("den", 4), say("hund", 5), say("im", 7), say("garten", 8);
    tokens.push_back(1);
    return tokens;
  }
  State& at(sluice::Slot slot) {
    if (states_.size() <= std::size_t(slot)) states_.resize(std::size_t(slot) + 1);
    return states_[std::size_t(slot)];
  }
  std::vector<State> states_;
  std::vector<float> scores_;
};

template <class Policy>
void interpret(Policy const& policy) {
  Interpreter model;
  Words const words{"ich", "habe", "den", "hund", "im", "garten", "gesehen"};
  std::vector<std::size_t> delays;  // for each word written: the number of words read before
  // [loop]
  sluice::BeamSearch const search{.width = 4, .length{.max = 20}};
  using Request = sluice::Request<Words, sluice::BeamSearch>;

  sluice::Commitment commitment(policy, model.vocabulary().eos);
  for (std::size_t read = 1; read <= words.size(); ++read) {
    Request request{.source = Words(words.begin(), words.begin() + std::ptrdiff_t(read)),
                    .prefix = commitment.tokens()};  // written words stay
    auto const output = sluice::decode(model, std::vector{request}, search).at(0).hypotheses.at(0).tokens;

    auto const written = read < words.size() ? commitment.update(output, read) : commitment.finish(output);
    std::cout << words[read - 1] << ":";
    for (auto const token : written) std::cout << ' ' << english.at(std::size_t(token));
    std::cout << '\n';
    delays.resize(commitment.tokens().size(), read);
  }
  delays.pop_back();  // the delay of eos
  std::cout << "lags by " << sluice::average_lagging(delays, words.size()) << " words\n";
  // [/loop]
}

}  // namespace

int main(int argc, char** argv) {
  auto const only = std::string(argc > 1 ? argv[1] : "");
  if (only.empty() || only == "agreement") interpret(sluice::LocalAgreement{.n = 2});
  if (only.empty() || only == "wait-k") interpret(sluice::WaitK{.k = 3});
  return 0;
}
