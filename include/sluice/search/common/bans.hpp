// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tokens that may not be chosen.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The tokens that a search must not choose at its next step, as edits: those never generated, and eos while the output
/// is too short.
class Bans {
 public:
  template <class = void>
  void reset(Vocabulary const& vocabulary) {
    edits_.clear();
    auto const& never = vocabulary.never;
    for (auto const token : never) edits_.push_back(Edit::forbid(token));
    never_ = edits_.size();
    for (auto const token : vocabulary.eos)
      if (std::find(never.begin(), never.end(), token) == never.end()) edits_.push_back(Edit::forbid(token));
  }
  template <class = void>
  std::span<Edit const> edits(bool eos_too) const {
    return eos_too ? std::span(edits_) : std::span(edits_).first(never_);
  }

 private:
  std::vector<Edit> edits_;
  std::size_t never_ = 0;
};

}  // namespace sluice::inline v0
