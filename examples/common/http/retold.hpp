// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model's own log-probabilities of outputs that a search has found.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace serve {

/// A token's log-probability, and the most probable tokens at its position.
struct Told {
  float log_prob = 0;                     ///< given all tokens before it
  std::vector<sluice::Candidate> best{};  ///< the most probable, best first
};
/// Of all tokens.
struct Notes {
  std::vector<Told> prompt{};                   ///< of Retold::prompt; empty if there was no time
  std::vector<std::vector<Told>> hypotheses{};  ///< as those of the result; empty if there was no time
};

/// A search whose finished hypotheses are fed to the model once more, to get the log-probabilities of their tokens and of the
/// most probable ones at each position, without any rule, temperature or truncation. They are the same for every search, and the
/// search does not change. Costs a slot, a row in the first step, and a few more steps at the end if the model takes rows of
/// several tokens beside rows of one; else as many steps as the hypotheses have tokens.
template <sluice::SettlingSearch S>
  requires(!sluice::takes_prefix<S>())
struct Retold {
  S search{};
  std::int32_t best = 0;                ///< most probable tokens noted at each position
  std::vector<sluice::Token> prompt{};  ///< follows the request's own prompt, and is scored too
  bool ends = false;                    ///< only the prompt is scored
  std::shared_ptr<Notes> notes{};       ///< none: nothing is noted, not even of the prompt

  Retold() = default;
  explicit Retold(S plain) : search(std::move(plain)) {}

  enum class Phase : std::uint8_t { prompt, first, search, telling, over };
  struct State {
    typename S::State inner{};
    Phase phase = Phase::search;
    std::vector<sluice::Token> whole;  // prompt
    sluice::Sentence sentence{};       // as the search sees it
    std::int32_t held = 0;             // tokens in slot 0, or in the slots that are scored
    std::size_t told = 0;              // tokens of the longest hypothesis
    std::size_t in_place = 0;          // the hypothesis that continues in the prompt's slot, the last one fed
    bool searching = false;            // whether the search has planned
    std::vector<sluice::Token> fed;    // of the prompt
    std::vector<float> first;          // [V]: log-probabilities of the first token
    std::vector<sluice::Candidate> best_first;
    sluice::Result result;
    Notes notes;
  };

  sluice::Abilities needs() const { return sluice::needs(search); }
  void check() const { sluice::check(search); }
  std::int32_t slot_count() const { return search.slot_count() + (notes == nullptr ? 0 : 1); }

  void begin(State& s, sluice::Sentence const& sentence) const {
    s.phase = Phase::search, s.searching = false;
    if (notes == nullptr) return search.begin(s.inner, sentence);
    s.phase = prompt.empty() ? Phase::first : Phase::prompt;
    s.whole.assign(sentence.prompt.begin(), sentence.prompt.end());
    s.whole.insert(s.whole.end(), prompt.begin(), prompt.end());
    s.fed.assign(1, sentence.last);
    s.fed.insert(s.fed.end(), prompt.begin(), prompt.end());
    s.held = sentence.held, s.told = 0;
    s.notes = {}, s.result = {};
    s.sentence = sentence;
    s.sentence.prompt = s.whole, s.sentence.last = s.fed.back();
    s.sentence.held += static_cast<std::int32_t>(prompt.size());
    if (!ends) search.begin(s.inner, s.sentence);
  }

  void plan(State& s, sluice::Plan& plan) const {
    switch (s.phase) {
      case Phase::prompt: {
        auto const count = next(s, prompt.size());
        plan.row(0, 0, s.held, std::span(s.fed).subspan(s.told, count), static_cast<std::int32_t>(count));
        for (auto i = s.told; i < s.told + count; ++i) plan.ask(query(prompt[i]));
        break;
      }
      case Phase::first: {
        search.plan(s.inner, plan);
        auto own = plan.part(0);  // besides the search's rows: a fork of the prompt, and its next tokens
        own.row(0, kept(), s.held, {&s.sentence.last, 1});
        own.ask({.best = s.sentence.vocabulary->size});
        break;
      }
      case Phase::search: search.plan(s.inner, plan); break;
      case Phase::telling: plan_telling(s, plan); break;
      case Phase::over: break;
    }
  }

  bool advance(State& s, sluice::Expansion const& answer) const {
    switch (s.phase) {
      case Phase::prompt:
        for (std::size_t i = 0; i < answer.size(); ++i) s.notes.prompt.push_back(told(answer[i]));
        s.told += answer.size(), s.held += static_cast<std::int32_t>(answer.size());
        if (s.told == prompt.size()) s.phase = ends ? Phase::over : Phase::first;
        break;
      case Phase::first:
        note_first(s, answer.back());
        s.phase = Phase::search;
        if (advance_search(s, answer.window(0, answer.size() - 1))) begin_telling(s);
        break;
      case Phase::search:
        if (!advance_search(s, answer)) return false;
        if (notes == nullptr) return true;
        begin_telling(s);
        break;
      case Phase::telling: advance_telling(s, answer); break;
      case Phase::over: break;
    }
    return s.phase == Phase::over;
  }

  sluice::Progress progress(State const& s) const {
    switch (s.phase) {
      case Phase::prompt: return {s.held, 1, static_cast<std::int32_t>(next(s, prompt.size()))};
      case Phase::first: return {s.held, 1, 2};
      case Phase::search: break;
      default: {
        std::size_t rows = 0;
        for (auto const& one : s.result.hypotheses) rows += next(s, fed(one));
        return {s.held, static_cast<std::int32_t>(s.result.hypotheses.size()), static_cast<std::int32_t>(rows)};
      }
    }
    return search.progress(s.inner);
  }

  bool draft(State& s, sluice::Draft& draft) const {
    if constexpr (sluice::DraftingSearch<S>) return s.phase == Phase::search && search.draft(s.inner, draft);
    else return false;
  }

  void settled(State& s, std::vector<sluice::Token>& tokens) const {
    if (s.phase == Phase::search && (notes == nullptr || s.searching)) return search.settled(s.inner, tokens);
    tokens.clear();
    auto const& all = s.result.hypotheses;
    if (!all.empty()) tokens = all[0].tokens;
    for (auto const& one : all) tokens.erase(std::ranges::mismatch(tokens, one.tokens).in1, tokens.end());
  }

  void finish(State& s, sluice::Result& result) const {
    if (notes == nullptr) return search.finish(s.inner, result);
    if (s.phase == Phase::search && s.searching) search.finish(s.inner, result);
    else result.hypotheses = s.result.hypotheses;
    if (ends && s.phase == Phase::over) result.hypotheses.assign(1, {});
    if (!s.result.ok()) result.fail(s.result.failure, s.result.message);
    if (s.phase != Phase::over) s.notes.hypotheses.clear();
    *notes = s.notes;
  }

 private:
  static constexpr std::size_t most = 32;  // tokens in a step: their lines of scores are in memory together

  /// The slot that holds the prompt.
  sluice::Slot kept() const { return search.slot_count(); }
  /// Tokens of a hypothesis that are fed: the last one need not be.
  static std::size_t fed(sluice::Hypothesis const& one) { return one.tokens.empty() ? 0 : one.tokens.size() - 1; }
  /// How many of them go into the next row.
  static std::size_t next(State const& s, std::size_t size) {
    auto const& abilities = s.sentence.abilities;
    auto const share = std::max<std::size_t>(1, most / std::max<std::size_t>(1, s.result.hypotheses.size()));
    return std::min(size - std::min(s.told, size), abilities.blocks && abilities.ragged ? share : 1);
  }

  sluice::Query query(sluice::Token const& token) const { return {.best = best, .probes = {&token, 1}}; }
  static Told told(sluice::Line const& line) { return {line.probes[0], {line.best.begin(), line.best.end()}}; }

  bool advance_search(State& s, sluice::Expansion const& answer) const {
    s.searching = true;
    return search.advance(s.inner, answer);
  }
  void note_first(State& s, sluice::Line const& line) const {
    s.first.assign(static_cast<std::size_t>(s.sentence.vocabulary->size), -std::numeric_limits<float>::infinity());
    for (auto const& one : line.best) s.first[static_cast<std::size_t>(one.token)] = one.log_prob;
    auto const count = std::min(line.best.size(), static_cast<std::size_t>(best));
    s.best_first.assign(line.best.begin(), line.best.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void begin_telling(State& s) const {
    search.finish(s.inner, s.result);
    auto& all = s.result.hypotheses;
    s.notes.hypotheses.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].tokens.empty())
        s.notes.hypotheses[i].push_back({s.first[static_cast<std::size_t>(all[i].tokens[0])], s.best_first});
    s.told = 0, s.held = s.sentence.held + 1;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (fed(all[i]) > 0) s.in_place = i;
    end_if_told(s);
  }
  void end_if_told(State& s) const {
    auto const left = [&](auto const& one) { return fed(one) > s.told; };
    s.phase = s.result.ok() && std::ranges::any_of(s.result.hypotheses, left) ? Phase::telling : Phase::over;
  }
  void plan_telling(State& s, sluice::Plan& plan) const {
    auto const& all = s.result.hypotheses;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const count = next(s, fed(all[i]));
      if (count == 0) continue;
      auto const tokens = std::span(all[i].tokens);
      auto const slot = i == s.in_place ? kept() : static_cast<sluice::Slot>(i);
      plan.row(s.told == 0 ? kept() : slot, slot, s.held, tokens.subspan(s.told, count),
               static_cast<std::int32_t>(count));
      for (auto j = s.told; j < s.told + count; ++j) plan.ask(query(tokens[j + 1]));
    }
  }
  void advance_telling(State& s, sluice::Expansion const& answer) const {
    auto const& all = s.result.hypotheses;
    std::size_t line = 0, longest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const count = next(s, fed(all[i]));
      for (std::size_t j = 0; j < count; ++j) s.notes.hypotheses[i].push_back(told(answer[line++]));
      longest = std::max(longest, count);
    }
    s.told += longest, s.held += static_cast<std::int32_t>(longest);
    end_if_told(s);
  }
};

}  // namespace serve
