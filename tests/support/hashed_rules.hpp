// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules that act differently after every output, by a hash, and that check the output they are given.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>

#include <support/catch.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::test {

/// A rule whose state is a hash of all output tokens.
struct Following {
  using State = std::uint64_t;
  static State of(std::span<Token const> tokens) {
    State state = 5;
    for (auto const token : tokens) state = derive(state, static_cast<std::uint64_t>(token));
    return state;
  }
  State initial(Sentence const&) const { return of({}); }
  State next(State state, Token token) const { return derive(state, static_cast<std::uint64_t>(token)); }
  static void look(State state, Output const& output) { CHECK(state == of(output.tokens)); }
};
template <std::uint64_t Salt>
struct Editing : Following {
  void edit(State state, Output const& output, std::vector<Edit>& edits) const {
    look(state, output);
    for (auto x = derive(state, Salt) % 512; x > 1; x /= 8)
      edits.push_back({static_cast<Token>(x % 8), -static_cast<float>(Salt)});
  }
};
template <std::uint64_t Salt>
struct Stopping : Following {
  void edit(State, Output const&, std::vector<Edit>&) const {}
  std::int32_t stop(State state, Output const& output) const {
    look(state, output);
    auto const x = derive(state, Salt) % 12;
    return x < 3 ? static_cast<std::int32_t>(Salt - 30 + x) : -1;
  }
};
template <std::uint64_t Salt>
struct Restricting : Following {
  void edit(State, Output const&, std::vector<Edit>&) const {}
  std::shared_ptr<TokenSet const> may_follow(State state, std::int32_t left) const {
    auto const x = derive(state, Salt + static_cast<std::uint64_t>(left) * 64);
    if (x % 3 == 0) return nullptr;
    auto set = std::make_shared<TokenSet>(9);
    for (Token token = 0; token < 9; ++token)
      if ((x >> (8 + 2 * token)) % 4 != 0) set->insert(token);
    return set;
  }
  void require_possible(State state, Output const& output, std::int32_t left) const {
    look(state, output);
    require(!impossible_prefix(state, left), "prefix", "it", "is impossible");
  }
  static bool impossible_prefix(State state, std::int32_t left) {
    return derive(state, Salt + static_cast<std::uint64_t>(left)) % 8 == 0;
  }
};

/// The stop that Stopping<30>, and then Stopping<40>, report for an output.
inline std::int32_t hashed_stop(std::vector<Token> const& output) {
  Vocabulary const any{};
  auto const state = Following::of(output);
  auto const first = Stopping<30>{}.stop(state, {output, 0, any});
  return first >= 0 ? first : Stopping<40>{}.stop(state, {output, 0, any});
}

}  // namespace sluice::test
