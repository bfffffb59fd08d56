// SPDX-License-Identifier: Apache-2.0
/// \file
/// Words and phrases that must all occur in an output.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/common/phrase.hpp>
#include <sluice/search/constraint/any_of.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Every phrase must occur, in any order; one that is listed m times must occur at m positions. AnyOf with one phrase
/// per item: see there for overlaps, cost and errors. Post and Vilar (2018) call these constraints: fairseq's
/// `--constraints unordered`, Sockeye's `constraints`.
class Phrases : public AnyOf {
 public:
  Phrases() = default;
  template <class = void>
  explicit Phrases(std::vector<Phrase> const& phrases, std::string name = "phrases")
      : AnyOf(items(phrases), std::move(name)) {}
  template <class = void>
  Phrases(std::initializer_list<Phrase> phrases) : Phrases(std::vector<Phrase>(phrases)) {}

 private:
  template <class = void>
  static std::vector<std::vector<Phrase>> items(std::vector<Phrase> const& phrases) {
    std::vector<std::vector<Phrase>> items;
    items.reserve(phrases.size());
    for (auto const& phrase : phrases) items.push_back({phrase});
    return items;
  }
};

}  // namespace sluice::inline v0
