// SPDX-License-Identifier: Apache-2.0
/// \file
/// How often each of a head's best guesses is right: the input of TreeShape::learn.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/speculative/heads.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bench {

/// A tree that contains each of the `best` guesses for each of `places` places once.
inline sluice::TreeShape all_guesses(std::int32_t places, std::int32_t best) {
  std::vector<std::vector<std::int32_t>> paths;
  for (std::int32_t place = 0; place < places; ++place)
    for (std::int32_t rank = 0; rank < best; ++rank) {
      paths.emplace_back(static_cast<std::size_t>(place), 0);
      paths.back().push_back(rank);
    }
  return sluice::TreeShape::of(paths);
}

/// A model with heads that propose all_guesses(places, best): records the guesses, and proposes none. Sentences are
/// distinguished by Draft::seed.
template <sluice::ProposingModel M>
class Recording : public sluice::detail::Forwarding<M> {
 public:
  using Source = typename M::Source;

  Recording(M& model, std::int32_t places, std::int32_t best)
      : sluice::detail::Forwarding<M>(model), places_(places), best_(best) {}

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    this->model_.start(sources, slots);
  }
  void release(std::span<sluice::Slot const> slots) { sluice::detail::release(this->model_, slots); }
  decltype(auto) step(std::span<sluice::Row const> rows) { return this->model_.step(rows); }
  void propose(std::span<sluice::Draft const> drafts) {
    for (auto const& draft : drafts) {
      Record record{draft.seed, draft.position, {}, {}};
      sluice::DraftTree tree{.nodes = places_ * best_, .leaves = places_ * best_};
      auto asked = draft;
      asked.count = places_, asked.tokens = &record.tokens, asked.tree = &tree;
      this->model_.propose(std::span<sluice::Draft const>(&asked, 1));
      record.parents = std::move(tree.parents);
      records_.push_back(std::move(record));
    }
  }

  /// [place][rank]: how often the guess was the output's token there, among the places that outputs have.
  std::vector<std::vector<double>> accuracy(std::vector<std::vector<sluice::Token>> const& outputs) const {
    auto const size = static_cast<std::size_t>(places_);
    std::vector<std::vector<double>> right(size, std::vector<double>(static_cast<std::size_t>(best_)));
    std::vector<double> all(size);
    for (auto const& one : records_) {
      auto const& output = outputs[static_cast<std::size_t>(one.sentence)];
      std::vector<std::size_t> depths, ranks(size);
      for (std::size_t i = 0; i < one.tokens.size(); ++i) {
        auto const depth = one.parents[i] < 0 ? 0 : depths[static_cast<std::size_t>(one.parents[i])] + 1;
        depths.push_back(depth);
        auto const place = static_cast<std::size_t>(one.position) + depth;
        auto const rank = ranks[depth]++;
        if (place >= output.size()) continue;
        if (rank == 0) ++all[depth];
        right[depth][rank] += output[place] == one.tokens[i];
      }
    }
    for (std::size_t place = 0; place < size; ++place)
      for (auto& x : right[place]) x = all[place] > 0 ? x / all[place] : 0;
    return right;
  }

 private:
  struct Record {
    std::uint64_t sentence;
    std::int32_t position;
    std::vector<sluice::Token> tokens;
    std::vector<std::int32_t> parents;
  };
  std::int32_t places_, best_;
  std::vector<Record> records_;
};

}  // namespace bench
