// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts that a grammar accepts, and texts that it does not.
#pragma once

#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <string>
#include <vector>

namespace sluice::test {

inline void answers(Grammar const& grammar, std::vector<std::string> const& yes, std::vector<std::string> const& no) {
  for (auto const& text : yes) {
    CAPTURE(text);
    CHECK(grammar.matches(text));
  }
  for (auto const& text : no) {
    CAPTURE(text);
    CHECK_FALSE(grammar.matches(text));
  }
}

}  // namespace sluice::test
