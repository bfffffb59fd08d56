// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks and lists the spellings of phrases with boosts.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/bias/biased_phrase.hpp>
#include <sluice/search/common/phrase.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// The spellings of all phrases, sorted, with sums of their boosts. Points to the phrases.
struct BiasedSpellings {
  struct Spelling {
    Phrase const* tokens;
    std::size_t sum;  // its first in the sums
    std::int32_t phrase, number;
  };
  /// A token of phrases, and a spelling that has it.
  struct Used {
    Token token;
    std::int32_t phrase, spelling;
    friend bool operator<(Used const& a, Used const& b) {
      return a.token != b.token     ? a.token < b.token
             : a.phrase != b.phrase ? a.phrase < b.phrase
                                    : a.spelling < b.spelling;
    }
    template <class = void>
    std::string name() const {
      return "phrases[" + std::to_string(phrase) + "].spellings[" + std::to_string(spelling) + "]";
    }
  };
  std::vector<Spelling> all;
  std::vector<double> sums;  // of the boosts, per spelling: up to and including each token

  /// \throws std::invalid_argument  see ContextGraph
  template <class = void>
  BiasedSpellings(std::vector<BiasedPhrase> const& phrases, float usual) {
    for (std::size_t i = 0; i < phrases.size(); ++i) read(phrases[i], i, usual);
    std::sort(all.begin(), all.end(), [](Spelling const& a, Spelling const& b) {
      return *a.tokens != *b.tokens ? *a.tokens < *b.tokens : a.phrase < b.phrase;
    });
  }

  /// Every token once, by number.
  template <class = void>
  std::vector<Used> used() const {
    std::vector<Used> used;
    for (auto const& one : all)
      for (auto const token : *one.tokens) used.push_back({token, one.phrase, one.number});
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end(), [](Used const& a, Used const& b) { return a.token == b.token; }),
               used.end());
    return used;
  }

 private:
  template <class = void>
  void read(BiasedPhrase const& phrase, std::size_t index, float usual) {
    auto const here = [&](char const* member) { return "phrases[" + std::to_string(index) + "]." + member; };
    auto const& boosts = phrase.token_boosts;
    auto const refuse = [&](bool bad, char const* member, auto const& value, char const* rule) {
      if (bad) require(false, here(member), value, rule);
    };
    refuse(phrase.spellings.empty(), "spellings", "[]", "is empty");
    refuse(phrase.whole && phrase.per_token, "whole", phrase.whole.value_or(0), "and per_token exclude each other");
    refuse(!boosts.empty() && (phrase.whole || phrase.per_token), "token_boosts", boosts.size(),
           "excludes whole and per_token");
    auto const each = phrase.per_token.value_or(usual), whole = phrase.whole.value_or(0);
    refuse(!std::isfinite(each), "per_token", each, "must be a number");
    refuse(!std::isfinite(whole), "whole", whole, "must be a number");
    for (auto const boost : boosts) refuse(!std::isfinite(boost), "token_boosts", boost, "must be a number");
    for (std::size_t n = 0; n < phrase.spellings.size(); ++n) {
      auto const& tokens = phrase.spellings[n];
      auto const which = [&] { return here("spellings") + "[" + std::to_string(n) + "]"; };
      if (tokens.empty()) require(false, which(), "[]", "is empty");
      if (*std::min_element(tokens.begin(), tokens.end()) < 0)
        require(false, which(), detail::text(tokens), "has a negative token");
      if (!boosts.empty() && boosts.size() != tokens.size())
        require(false, which(), detail::text(tokens), "needs as many tokens as token_boosts");
      all.push_back({&tokens, sums.size(), static_cast<std::int32_t>(index), static_cast<std::int32_t>(n)});
      auto sum = 0.0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        auto const share = static_cast<double>(i + 1) / static_cast<double>(tokens.size());
        if (phrase.whole) sum = static_cast<double>(whole) * share;
        else sum += static_cast<double>(boosts.empty() ? each : boosts[i]);
        sums.push_back(sum);
      }
      if (std::abs(sum) > 1e30) require(false, which(), sum, "sums up to more than 1e30");
    }
  }
};

}  // namespace sluice::inline v0::detail
