// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search that plans what it is given, whatever the answers: for tests of wrappers.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace sluice::test {

/// What a search plans, the answers it gets, and its final result.
struct Script {
  struct Asked {
    Query query{};  // without the spans and sets below
    std::vector<Token> probes{};
    std::vector<Edit> edits{};
    TokenSet only{};
    bool restricted = false;  // to `only`
  };
  struct Planned {
    Slot from = 0, to = 0;
    std::int32_t length = 0;
    std::vector<Token> tokens{};
    std::vector<std::int32_t> depths{};  // empty: a chain
    std::vector<Asked> lines{};
    std::size_t kept() const {
      return Row{from, to, length, tokens, 1, depths.empty() ? nullptr : depths.data()}.kept();
    }
  };
  struct Told {
    std::vector<Candidate> best{};
    std::vector<float> probes{};
    float log_sum_exp = 0, entropy = 0;
    bool valid = true;
    friend bool operator==(Told const&, Told const&) = default;
  };
  std::vector<Planned> rows{};
  std::size_t surplus = 0;  // queries that belong to no row
  std::vector<Told> told{};
  std::vector<Hypothesis> hypotheses{};
  std::vector<Token> settled{};
};

/// The flags set the members of those names.
template <bool Back = false, bool Takes = false, bool Chooses = false>
struct Scripted {
  static constexpr bool goes_back = Back, takes_prefix = Takes, chooses_probes = Chooses;
  Script* script = nullptr;
  LengthLimits length{};

  struct State {};
  std::int32_t slot_count() const { return 4; }
  void begin(State&, Sentence const&) const {}
  void plan(State&, Plan& plan) const {
    for (auto const& row : script->rows) {
      plan.row(row.from, row.to, row.length, row.tokens, static_cast<std::int32_t>(row.lines.size()));
      if (!row.depths.empty()) plan.branch(row.depths);
      for (auto const& line : row.lines) {
        auto query = line.query;
        query.probes = line.probes, query.edits = line.edits;
        if (line.restricted) query.only = &line.only;
        plan.ask(query);
      }
    }
    for (std::size_t i = 0; i < script->surplus; ++i) plan.ask({});
  }
  bool advance(State&, Expansion const& answer) const {
    script->told.clear();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      auto const line = answer[i];
      script->told.push_back({{line.best.begin(), line.best.end()},
                              {line.probes.begin(), line.probes.end()},
                              line.log_sum_exp,
                              line.entropy,
                              line.valid});
    }
    return false;
  }
  Progress progress(State const&) const { return {}; }
  void settled(State&, std::vector<Token>& tokens) const { tokens = script->settled; }
  void finish(State const&, Result& result) const { result.hypotheses = script->hypotheses; }
};

using SlotContents = std::map<Slot, std::vector<Token>>;

/// Random rows that a plan may have, given the slots' contents; a slot is forked only if it is also continued in place.
/// No lines.
inline std::vector<Script::Planned> random_rows(std::mt19937_64& random, SlotContents const& held, bool blocks) {
  std::vector<Slot> in_place;
  for (auto const& [slot, tokens] : held)
    if (random() % 2 == 0) in_place.push_back(slot);
  if (in_place.empty()) in_place.push_back(held.begin()->first);
  std::vector<Script::Planned> rows;
  for (Slot slot = 0; slot < 4; ++slot) {
    auto const stays = std::ranges::find(in_place, slot) != in_place.end();
    if (!stays && random() % 2 == 0) continue;
    auto& row = rows.emplace_back();
    row.from = stays ? slot : in_place[random() % in_place.size()], row.to = slot;
    auto const size = held.at(row.from).size();
    row.length = static_cast<std::int32_t>(random() % 3 != 0 ? size : random() % (size + 1));
    for (auto n = blocks ? 1 + random() % 4 : 1; n > 0; --n) row.tokens.push_back(static_cast<Token>(2 + random() % 6));
    if (row.tokens.size() == 1 || random() % 2 == 0) continue;
    row.depths.push_back(0);
    while (row.depths.size() < row.tokens.size())
      row.depths.push_back(static_cast<std::int32_t>(random() % static_cast<std::size_t>(row.depths.back() + 2)));
  }
  return rows;
}

/// The slots' contents after such rows.
inline SlotContents contents_after(SlotContents const& held, std::vector<Script::Planned> const& rows) {
  auto next = held;
  for (auto const& row : rows) {
    auto tokens = held.at(row.from);
    tokens.resize(static_cast<std::size_t>(row.length));
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.begin() + static_cast<std::ptrdiff_t>(row.kept()));
    next[row.to] = tokens;
  }
  return next;
}

/// The tokens before the line of a row's i-th token, that token included.
inline std::vector<Token> tokens_behind(SlotContents const& held, Script::Planned const& row, std::size_t i) {
  auto tokens = held.at(row.from);
  tokens.resize(static_cast<std::size_t>(row.length));
  std::vector<Token> behind;
  auto depth = row.depths.empty() ? static_cast<std::int32_t>(i) : row.depths[i];
  for (auto j = i + 1; j-- > 0 && depth >= 0;) {
    if ((row.depths.empty() ? static_cast<std::int32_t>(j) : row.depths[j]) != depth) continue;
    behind.push_back(row.tokens[j]), --depth;
  }
  tokens.insert(tokens.end(), behind.rbegin(), behind.rend());
  return tokens;
}

}  // namespace sluice::test
