// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/constraints.md.
#include <sluice/core/search.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using sluice::Token;

/// A language model of a dozen words: which word follows which. Pairs that are not listed are improbable.
class Talker {
 public:
  using Source = std::monostate;

  static sluice::Vocabulary vocabulary() { return {.size = 12, .bos = 0, .eos = {1}, .never = {0}}; }
  static void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    static std::map<std::string, std::map<std::string, float>> const follows{
        {"<s>", {{"we", 1}}},
        {"we", {{"ran", 6}, {"drove", 4}}},
        {"ran", {{"far", 5}, {"today", 3}, {"five", 1}, {"ten", 1}}},
        {"drove", {{"far", 5}, {"ten", 3}, {"today", 2}}},
        {"far", {{".", 6}, {"today", 4}}},
        {"five", {{"miles", 6}, {"kilometres", 3}, {"far", 1}}},
        {"ten", {{"miles", 5}, {"kilometres", 5}}},
        {"miles", {{"today", 4}, {".", 6}}},
        {"kilometres", {{".", 6}, {"today", 4}}},
        {"today", {{".", 1}}}};
    answer_.clear();
    for (auto const& row : rows) {
      auto const found = follows.find(words()[static_cast<std::size_t>(row.tokens.back())]);
      for (auto const& word : words()) {
        auto const known = found != follows.end() && found->second.contains(word);
        answer_.push_back(std::log(known ? found->second.at(word) : 0.01f));
      }
    }
    return sluice::scores(answer_.data(), std::ssize(rows), 12);
  }

  static std::vector<std::string> const& words() {
    static std::vector<std::string> const all{"<s>",  ".",   "we",    "ran",        "drove", "far",
                                              "five", "ten", "miles", "kilometres", "today", "slowly"};
    return all;
  }
  static Token token(std::string const& word) {
    return static_cast<Token>(std::find(words().begin(), words().end(), word) - words().begin());
  }

 private:
  std::vector<float> answer_;
};

std::string only;  // the snippet to show; empty: all

void show(std::string const& what, std::span<sluice::Result const> results) {
  if (!only.empty() && only != what) return;
  for (auto const& result : results) {
    if (!result.ok()) std::cout << result.message;
    for (auto const& hypothesis : result.hypotheses) {
      for (auto const token : hypothesis.tokens) std::cout << Talker::words()[static_cast<std::size_t>(token)] << ' ';
      std::cout << hypothesis.score << ", " << hypothesis.constraints_met << " of " << hypothesis.constraints_total;
    }
    std::cout << '\n';
  }
}

void requests() {
  Talker model;
  auto const token = Talker::token;
  // [requests]
  using Search = sluice::ConstrainedBeamSearch<>;
  auto const must = [](sluice::PhraseLists lists) {
    return Search{.beam = {.width = 10, .length = {.max = 8}}, .constraints = sluice::Constraints(std::move(lists))};
  };
  sluice::Phrase const five_miles{token("five"), token("miles")}, slowly{token("slowly")}, far{token("far")};

  std::vector<sluice::Request<std::monostate, Search>> requests;
  requests.push_back({.search = must({})});                                 // no constraint: BeamSearch
  requests.push_back({.search = must({.all = {five_miles, slowly}})});      // both, in any order
  requests.push_back({.search = must({.ordered = {slowly, five_miles}})});  // in this order
  requests.push_back({.search = must({.any = {{far, slowly}}, .none = {{token("ran")}}})});  // one of two; never "ran"
  requests.push_back({.search = must({.all = {{token("ran"), 99}}})});  // an invalid one fails alone
  auto const results = sluice::decode(model, requests, Search{});
  // [/requests]
  show("requests", results);
}

// [own]
/// A number directly followed by a unit: a regular expression of two classes, written as its states.
struct Measurement {
  std::vector<Token> numbers, units;

  enum class State { nothing, number, done };
  State initial(sluice::Sentence const&) const { return State::nothing; }
  State next(State state, Token token) const {
    if (state == State::done || (state == State::number && has(units, token))) return State::done;
    return has(numbers, token) ? State::number : State::nothing;
  }
  std::int32_t progress(State state) const { return static_cast<std::int32_t>(state); }
  std::int32_t total() const { return 2; }
  void wanted(State state, std::vector<Token>& tokens) const {
    if (state == State::done) return;
    auto const& next = state == State::nothing ? numbers : units;
    tokens.insert(tokens.end(), next.begin(), next.end());
  }
  bool complete(State state) const { return state == State::done; }
  bool dead(State) const { return false; }

 private:
  static bool has(std::vector<Token> const& list, Token token) {
    return std::find(list.begin(), list.end(), token) != list.end();
  }
};
// [/own]

void own() {
  Talker model;
  auto const token = Talker::token;
  std::vector<std::monostate> const sources(1);
  // [own-used]
  Measurement const measurement{.numbers = {token("five"), token("ten")},
                                .units = {token("miles"), token("kilometres")}};
  sluice::ConstrainedBeamSearch<Measurement> const search{.beam = {.width = 10}, .constraints = measurement};
  auto const results = sluice::decode(model, sources, search);

  using Both = sluice::Product<Measurement, sluice::Forbidden>;  // and not in miles
  Both const both(measurement, sluice::Forbidden({{token("miles")}}));
  auto const metric = sluice::decode(model, sources, sluice::ConstrainedBeamSearch<Both>{.constraints = both});
  // [/own-used]
  show("own", results);
  show("own", metric);
}

void others() {
  Talker model;
  std::vector<std::monostate> const sources(1);
  sluice::Phrases const phrases({{Talker::token("slowly")}, {Talker::token("ten")}});
  // [others]
  auto const fairseq = sluice::presets::fairseq_constrained(5, phrases);
  auto const sockeye = sluice::presets::sockeye_constrained(5, phrases);
  auto const grid = sluice::grid_beam_search(2, phrases);  // 2 hypotheses per number of tokens met
  // [/others]
  show("others", sluice::decode(model, sources, fairseq));
  show("others", sluice::decode(model, sources, sockeye));
  show("others", sluice::decode(model, sources, grid));
}

void by_hand() {
  auto const token = Talker::token;
  // [by-hand]
  sluice::Vocabulary const vocabulary = Talker::vocabulary();
  sluice::Constraints const constraints({.all = {{token("five"), token("miles")}}, .none = {{token("today")}}});
  auto state = constraints.initial({.vocabulary = &vocabulary});  // checks the phrases; throws if invalid
  state = constraints.next(state, token("we"));                   // one state per hypothesis: copied with it
  std::vector<Token> wanted, forbidden;
  constraints.wanted(state, wanted);                 // try these besides your best tokens: five
  constraints.forbidden(state, forbidden);           // mask these: today
  auto const bank = constraints.progress(state);     // compare only hypotheses of the same bank: 0 of total()
  auto const may_end = constraints.complete(state);  // if false, mask eos: false
  // [/by-hand]
  if (!only.empty() && only != "by-hand") return;
  for (auto const t : wanted) std::cout << "wanted " << Talker::words()[static_cast<std::size_t>(t)] << '\n';
  for (auto const t : forbidden) std::cout << "forbidden " << Talker::words()[static_cast<std::size_t>(t)] << '\n';
  std::cout << "bank " << bank << " of " << constraints.total() << (may_end ? ", may end" : ", may not end") << '\n';
}

}  // namespace

/// constraints [WHAT]
int main(int argc, char** argv) {
  if (argc > 1) only = argv[1];
  requests(), own(), by_hand(), others();
  return 0;
}
