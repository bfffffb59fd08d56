// SPDX-License-Identifier: Apache-2.0
/// \file
/// Proposers with right, wrong, missing or invalid guesses.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>

#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

enum class Guesses : std::uint8_t {
  as_they_are,  ///< those of the inner model
  corrupted,    ///< some of them changed
  none,
  too_many,  ///< more than were requested
  eos_first,
  out_of_range,  ///< some guesses are not in the vocabulary
  random,        ///< any tokens
};

/// A proposing model whose guesses are wrong in one way, at random, or (`any`) in all ways by turns.
template <ProposingModel M>
class Guessing : public detail::Forwarding<M> {
 public:
  using Source = typename M::Source;

  Guessing(M& model, Guesses kind, std::uint64_t seed) : detail::Forwarding<M>(model), kind_(kind), random_(seed) {}

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    this->model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) { detail::release(this->model_, slots); }
  decltype(auto) step(std::span<Row const> rows) { return this->model_.step(rows); }
  void propose(std::span<Draft const> drafts) {
    calls += 1;
    this->model_.propose(drafts);
    auto const size = this->vocabulary().size;
    auto const any = [&] { return static_cast<Token>(random_() % static_cast<std::uint64_t>(size)); };
    for (auto const& draft : drafts) {
      auto& tokens = *draft.tokens;
      switch (kind_) {
        case Guesses::as_they_are: break;
        case Guesses::corrupted:
          for (auto& token : tokens)
            if (random_() % 4 == 0) token = any();
          break;
        case Guesses::none: tokens.clear(); break;
        case Guesses::too_many:
          for (int i = 0; i < 20; ++i) tokens.push_back(any());
          break;
        case Guesses::eos_first: tokens.insert(tokens.begin(), eos); break;
        case Guesses::out_of_range:
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(random_() % (tokens.size() + 1)),
                        random_() % 2 == 0 ? size + static_cast<Token>(random_() % 9) : -1);
          break;
        case Guesses::random:
          for (auto& token : tokens) token = any();
          break;
      }
    }
  }

  std::size_t calls = 0;

 private:
  Guesses kind_;
  std::mt19937_64 random_;
};

}  // namespace sluice::test
