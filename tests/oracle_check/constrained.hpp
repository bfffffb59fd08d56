// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the checks of constrained searches share.
#pragma once

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/phrase.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <oracle_check/common.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace oracle_check {

using sluice::Phrase;

inline std::vector<Phrase> phrases(Json const& one, std::size_t sentence) {
  return one.at("constraints").at(sentence).get<std::vector<Phrase>>();
}

/// All sentences of a case in one batch, each under its own constraints.
/// \param searching  (automaton) -> the search under it
template <class A, class F>
std::vector<sluice::Result> decode_constrained(Json const& one, CheckedTable& checked, F const& searching) {
  auto const seeds = one.at("seeds").get<std::vector<std::uint64_t>>();
  auto const plain = searching(A(std::vector<Phrase>{}));
  std::vector<sluice::Request<std::uint64_t, std::remove_const_t<decltype(plain)>>> requests;
  for (std::size_t i = 0; i < seeds.size(); ++i)
    requests.push_back({.source = seeds[i], .search = searching(A(phrases(one, i)))});
  return sluice::decode(checked, requests, plain, sluice::Batched{.size = seeds.size()});
}

/// Whether every phrase stands in `tokens`, one listed m times at m places.
inline bool has_all(std::vector<Token> const& tokens, std::vector<Phrase> const& phrases) {
  return std::ranges::all_of(phrases, [&](Phrase const& phrase) {
    auto places = -std::ranges::count(phrases, phrase);
    for (auto from = tokens.begin(); from != tokens.end(); ++from, ++places)
      if ((from = std::search(from, tokens.end(), phrase.begin(), phrase.end())) == tokens.end()) break;
    return places >= 0;
  });
}

/// Whether the phrases stand in `tokens` one behind the other.
inline bool has_in_order(std::vector<Token> const& tokens, std::vector<Phrase> const& phrases) {
  auto from = tokens.begin();
  return std::ranges::all_of(phrases, [&](Phrase const& phrase) {
    from = std::search(from, tokens.end(), phrase.begin(), phrase.end());
    if (from == tokens.end()) return false;
    from += std::ssize(phrase);
    return true;
  });
}

/// Hypotheses that are called complete but lack something, by what `holds` sees in them.
template <class Holds>
std::vector<std::string> incomplete(Json const& one, std::vector<sluice::Result> const& results, Holds const& holds) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < results.size(); ++i)
    for (auto const& h : results[i].hypotheses)
      if (h.constraints_met == h.constraints_total && !holds(h.tokens, phrases(one, i)))
        problems.push_back("sentence " + std::to_string(i) + " lacks a constraint: " + text(h.tokens));
  return problems;
}

}  // namespace oracle_check
