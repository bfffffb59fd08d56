// SPDX-License-Identifier: Apache-2.0
/// \file
/// Drives a search without a decoder: slots are token lists, lines are random.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <tuple>
#include <vector>

namespace sluice::test {

/// The log-probabilities of all tokens after a context: multiples of 1/8, so that sums are exact and many are equal;
/// some are -infinity.
struct DrawnLines {
  std::uint64_t seed = 0;
  std::int32_t size = 0;
  std::uint64_t levels = 24;

  std::vector<float> operator()(std::span<Token const> context, std::span<Edit const> edits = {}) const {
    auto key = hash_mix(seed + 1);
    for (auto const token : context) key = hash_mix(key ^ (static_cast<std::uint64_t>(token + 1) << 20));
    std::vector<float> line;
    for (std::int32_t v = 0; v < size; ++v) {
      auto const bits = hash_mix(key + static_cast<std::uint64_t>(v + 1)) >> 20;
      line.push_back(bits % 16 == 0 ? -std::numeric_limits<float>::infinity()
                                    : -static_cast<float>(bits / 16 % levels) / 8);
    }
    for (auto const& edit : edits) line[static_cast<std::size_t>(edit.token)] += edit.add;
    return line;
  }

  /// All tokens that may be chosen, best first.
  std::vector<Candidate> list(std::span<Token const> context, std::span<Edit const> edits,
                              TokenSet const* only = nullptr) const {
    auto const line = (*this)(context, edits);
    std::vector<Candidate> all;
    for (Token v = 0; v < size; ++v)
      if (auto const x = line[static_cast<std::size_t>(v)];
          x > -std::numeric_limits<float>::infinity() && (only == nullptr || only->contains(v)))
        all.push_back({v, x});
    std::ranges::stable_sort(all, [](Candidate a, Candidate b) { return a.log_prob > b.log_prob; });
    return all;
  }
};

/// A sentence and everything it refers to.
struct DrawnSentence {
  Vocabulary vocabulary{.size = 7, .bos = 0, .never = {0}};
  std::vector<Token> prompt{0}, prefix{};
  double before = 0;  ///< log-probability of the prefix
  DrawnLines lines{};

  explicit DrawnSentence(std::mt19937_64& random) {
    for (Token token = 1; token < 3; ++token)
      if (random() % 3 > 0) vocabulary.eos.push_back(token);
    if (random() % 3 == 0) vocabulary.never.push_back(random() % 2 == 0 ? 1 : 6);
    while (random() % 3 == 0) prompt.push_back(static_cast<Token>(3 + random() % 4));
    while (random() % 2 == 0) prefix.push_back(static_cast<Token>(3 + random() % 4));
    before = -static_cast<double>(random() % 16) / 4;
    lines = {.seed = random(), .size = vocabulary.size, .levels = 1 + random() % (random() % 4 == 0 ? 3 : 30)};
  }
  /// The prompt, the prefix and an output.
  std::vector<Token> context(std::vector<Token> const& output = {}) const {
    auto all = prompt;
    all.insert(all.end(), prefix.begin(), prefix.end()), all.insert(all.end(), output.begin(), output.end());
    return all;
  }
  /// The initial tokens of slot 0.
  std::vector<Token> held() const {
    auto all = context();
    all.pop_back();
    return all;
  }
  Sentence told(Abilities abilities = {}) const {
    return {.vocabulary = &vocabulary,
            .prompt = prompt,
            .prefix = prefix,
            .last = context().back(),
            .held = static_cast<std::int32_t>(held().size()),
            .prefix_log_prob = &before,
            .abilities = abilities};
  }
  /// Bans for tokens that are forbidden always, or for now.
  std::vector<Edit> edits(bool eos_too_early) const {
    std::vector<Edit> all;
    for (auto const token : vocabulary.never) all.push_back(Edit::forbid(token));
    if (eos_too_early)
      for (auto const token : vocabulary.eos) all.push_back(Edit::forbid(token));
    return all;
  }
};

/// Executes plans.
class DrivenSlots {
 public:
  DrivenSlots(DrawnLines lines, std::vector<Token> const& first, Abilities abilities = {})
      : lines_(lines), abilities_(abilities), held_{{0, first}} {}

  /// The answer to a plan, without anything that the plan's groups do not need.
  Expansion run(StepPlan const& plan) {
    for (auto const slot : plan.released) CHECK(held_.erase(slot) == 1);
    auto const before = held_;
    contexts.clear(), entries_.clear(), best_.clear(), probes_.clear();
    for (auto const& row : plan.rows) {
      REQUIRE(before.contains(row.from));
      auto tokens = before.at(row.from);
      auto const length = static_cast<std::size_t>(row.length);
      REQUIRE((abilities_.roll_back ? length <= tokens.size() : length == tokens.size()));
      REQUIRE((row.lines == 1 && (abilities_.blocks ? !row.tokens.empty() : row.tokens.size() == 1)));
      tokens.resize(length), tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
      held_[row.to] = tokens, contexts.push_back(tokens);
    }
    REQUIRE(std::ranges::adjacent_find(plan.rows, std::ranges::greater_equal(), &Row::to) == plan.rows.end());
    REQUIRE(plan.queries.size() == plan.rows.size());
    std::size_t at = 0;
    for (auto const& group : plan.groups) {
      answer(std::span(plan.queries).subspan(at, static_cast<std::size_t>(group.lines)), at, group.keep);
      at += static_cast<std::size_t>(group.lines);
    }
    return {entries_, best_, probes_};
  }

  std::vector<std::vector<Token>> contexts{};  ///< of the last plan's rows: all tokens in their slots
  std::map<Slot, std::vector<Token>> const& held() const { return held_; }

 private:
  void answer(std::span<Query const> queries, std::size_t first, std::int32_t keep) {
    std::vector<std::vector<Candidate>> lists;
    std::vector<std::tuple<double, std::int32_t, std::size_t, std::size_t>> ranked;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto& list = lists.emplace_back(lines_.list(contexts[first + i], queries[i].edits, queries[i].only));
      REQUIRE(queries[i].best >= 0);
      list.resize(std::min(list.size(), static_cast<std::size_t>(queries[i].best)));
      for (std::size_t j = 0; j < list.size(); ++j)
        ranked.emplace_back(-queries[i].base - static_cast<double>(list[j].log_prob), queries[i].rank, i, j);
    }
    std::ranges::sort(ranked);
    if (keep > 0 && ranked.size() > static_cast<std::size_t>(keep)) {
      for (auto const& [value, rank, line, place] : std::span(ranked).subspan(static_cast<std::size_t>(keep)))
        lists[line].resize(std::min(lists[line].size(), place));
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const line = lines_(contexts[first + i], queries[i].edits);
      entries_.push_back({best_.size(), probes_.size(), lists[i].size(), queries[i].probes.size()});
      best_.insert(best_.end(), lists[i].begin(), lists[i].end());
      for (auto const token : queries[i].probes) probes_.push_back(line[static_cast<std::size_t>(token)]);
    }
  }

  DrawnLines lines_;
  Abilities abilities_;
  std::map<Slot, std::vector<Token>> held_;
  std::vector<Expansion::Entry> entries_;
  std::vector<Candidate> best_;
  std::vector<float> probes_;
};

}  // namespace sluice::test
