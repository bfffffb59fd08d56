// SPDX-License-Identifier: Apache-2.0
/// \file
/// Words and phrases of which an output has to have all.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/common/phrase.hpp>
#include <sluice/search/constraint/any_of.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Every phrase must come, in any order; one that is listed m times at m places. AnyOf with one phrase an item: see there
/// for overlaps, cost and errors. This is what Post and Vilar (2018) call constraints: fairseq's
/// `--constraints unordered`, Sockeye's `constraints`.
class Phrases : public AnyOf {
 public:
  Phrases() = default;
  explicit Phrases(std::vector<Phrase> const& phrases, std::string name = "phrases")
      : AnyOf(items(phrases), std::move(name)) {}
  Phrases(std::initializer_list<Phrase> phrases) : Phrases(std::vector<Phrase>(phrases)) {}

 private:
  static std::vector<std::vector<Phrase>> items(std::vector<Phrase> const& phrases) {
    std::vector<std::vector<Phrase>> items;
    items.reserve(phrases.size());
    for (auto const& phrase : phrases) items.push_back({phrase});
    return items;
  }
};

}  // namespace sluice::inline v0
