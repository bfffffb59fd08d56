// SPDX-License-Identifier: Apache-2.0
// The program of docs/search.md: a search that the library does not have.
#include <sluice/core/plan.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

// [options]
/// Tries each of the best first tokens, continues greedily after each, and prefers the output of which the model was
/// surest: chain-of-thought decoding (Wang and Zhou 2024, "Chain-of-Thought Reasoning Without Prompting").
/// Score: the mean, over the tokens after the first, of the best token's probability minus the second best's.
struct BranchOnce {
  std::int32_t branches = 4;      ///< >= 1
  sluice::LengthLimits length{};  ///< as in all searches

  void check() const {
    sluice::require(branches >= 1, "branches", branches, "must be at least 1");
    length.check();
  }
  std::int32_t slot_count() const { return branches; }
  // [/options]

  // [state]
  struct State {
    struct Branch {
      sluice::Hypothesis output{};
      double margins = 0;  // their sum
      sluice::Token last = 0;
      sluice::Slot from = 0, to = 0;
      bool alive = true, lost = false;
    };
    std::vector<Branch> branches;  // live ones, in the order of their slots
    sluice::Bans bans;
    sluice::Vocabulary const* vocabulary = nullptr;
    sluice::LengthLimits::Bounds bounds{};
    std::int32_t held = 0;       // tokens in each slot
    std::int32_t generated = 0;  // tokens, including the forced prefix
    bool begun = false;
  };

  void begin(State& s, sluice::Sentence const& sentence) const {
    s.bounds = length.of(sentence);  // may throw std::invalid_argument: only this request fails
    s.vocabulary = sentence.vocabulary;
    s.held = sentence.held, s.generated = static_cast<std::int32_t>(sentence.prefix.size());
    s.branches.assign(1, {.last = sentence.last});
    s.bans.reset(*sentence.vocabulary), s.begun = false;
  }
  // [/state]

  // [plan]
  void plan(State& s, sluice::Plan& plan) const {
    if (s.bounds.max == 0) return;
    auto const banned = s.bans.edits(s.generated < s.bounds.min);
    for (auto& branch : s.branches) {
      if (!branch.alive) continue;
      plan.row(branch.from, branch.to, s.held, {&branch.last, 1});
      plan.ask({.best = s.begun ? 2 : std::max(branches, 2), .edits = banned, .stage = sluice::Stage::after_softmax});
      branch.from = branch.to;
    }
  }
  // [/plan]

  // [advance]
  bool advance(State& s, sluice::Expansion const& answer) const {
    if (answer.size() == 0) return true;  // nothing was planned
    ++s.held, ++s.generated;
    if (!s.begun) {
      auto const list = answer[0].best;
      auto const count = std::min(list.size(), static_cast<std::size_t>(branches));
      s.branches.assign(count, {});  // in the first step, all come from slot 0
      sluice::Slot free = 0;
      for (std::size_t i = 0; i < count; ++i) {
        take(s, s.branches[i], list[i]);
        if (s.branches[i].alive) s.branches[i].to = free++;
      }
      s.begun = true;
    } else {
      std::size_t line = 0;
      for (auto& branch : s.branches) {
        if (!branch.alive) continue;
        auto const list = answer[line++].best;
        branch.lost = list.empty();
        if (branch.lost) continue;
        auto const second = list.size() > 1 ? std::exp(list[1].log_prob) : 0;
        branch.margins += std::exp(list[0].log_prob) - second;
        take(s, branch, list[0]);
      }
      std::erase_if(s.branches, [](State::Branch const& branch) { return branch.lost; });
    }
    return std::ranges::none_of(s.branches, &State::Branch::alive);
  }
  // [/advance]

  // [finish]
  sluice::Progress progress(State const& s) const {
    auto const alive = std::ranges::count_if(s.branches, &State::Branch::alive);
    return {.length = s.held, .width = static_cast<std::int32_t>(alive)};
  }

  void finish(State const& s, sluice::Result& result) const {
    result.hypotheses.clear();
    if (s.branches.empty()) return result.fail(sluice::Failure::no_token_left, "every token was impossible");
    for (auto const& branch : s.branches) {
      auto& hypothesis = result.hypotheses.emplace_back(branch.output);
      if (hypothesis.tokens.size() > 1)
        hypothesis.score = branch.margins / static_cast<double>(hypothesis.tokens.size() - 1);
    }
    std::ranges::stable_sort(result.hypotheses, std::ranges::greater{}, &sluice::Hypothesis::score);
  }

 private:
  void take(State const& s, State::Branch& branch, sluice::Candidate chosen) const {
    branch.last = chosen.token;
    branch.output.tokens.push_back(chosen.token), branch.output.log_probs.push_back(chosen.log_prob);
    branch.output.log_prob += chosen.log_prob;
    auto const& eos = s.vocabulary->eos;
    auto const full = s.generated >= s.bounds.max;
    branch.output.finished = std::ranges::find(eos, chosen.token) != eos.end() || (full && eos.empty());
    branch.alive = !branch.output.finished && !full;
  }
};
// [/finish]

static_assert(sluice::Search<BranchOnce>);

// "I have 3 apples, my father has 2 more than I. How many have we together?"
std::map<std::string, std::map<std::string, float>> const follows{
    {"<s>", {{"five", 0.5f}, {"father", 0.3f}, {"we", 0.2f}}},
    {"five", {{".", 0.45f}, {"apples", 0.4f}, {"or", 0.15f}}},
    {"apples", {{".", 0.6f}, {"or", 0.4f}}},
    {"or", {{"six", 0.55f}, {"seven", 0.45f}}},
    {"six", {{".", 1}}},
    {"seven", {{".", 1}}},
    {"father", {{"has", 1}}},
    {"has", {{"3+2=5,", 0.9f}, {"five", 0.1f}}},
    {"3+2=5,", {{"so", 0.8f}, {"we", 0.2f}}},
    {"so", {{"we", 1}}},
    {"we", {{"have", 0.95f}, {"or", 0.05f}}},
    {"have", {{"3+5=8", 0.7f}, {"five", 0.3f}}},
    {"3+5=8", {{".", 0.95f}, {"apples", 0.05f}}}};

struct Words {
  using Source = std::monostate;
  std::vector<std::string> words{"<s>", "."};
  std::vector<float> answer;

  Words() {
    for (auto const& [word, next] : follows)
      if (word != "<s>") words.push_back(word);
  }
  sluice::Vocabulary vocabulary() const {
    return {.size = static_cast<std::int32_t>(words.size()), .bos = 0, .eos = {1}, .never = {0}};
  }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}  // no state: the last word is enough
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    answer.clear();
    for (auto const& row : rows) {
      auto const& next = follows.at(words.at(static_cast<std::size_t>(row.tokens.back())));
      for (auto const& word : words) answer.push_back(std::log(next.contains(word) ? next.at(word) : 0));
    }
    return sluice::scores(answer.data(), std::ssize(rows), std::ssize(words), sluice::Kind::log_probs);
  }
};

}  // namespace

int main() {
  // [use]
  Words model;
  auto const show = [&](auto const& search) {
    for (auto const& result : sluice::decode(model, std::vector<std::monostate>(1), search))
      for (auto const& hypothesis : result.hypotheses) {
        std::cout << hypothesis.score << ':';
        for (auto const token : hypothesis.tokens) std::cout << ' ' << model.words.at(static_cast<std::size_t>(token));
        std::cout << '\n';
      }
  };
  show(sluice::Greedy{});
  std::cout << '\n';
  show(BranchOnce{.branches = 3});
  // [/use]
  return 0;
}
