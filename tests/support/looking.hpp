// SPDX-License-Identifier: Apache-2.0
/// \file
/// Observes the guesses of another model.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <utility>

namespace sluice::test {

/// A proposing model that reports its guesses: calls f(draft, text, source) for each draft after it was filled in;
/// `text` is the contents of the draft's slot, starting with the start symbol.
template <ProposingModel M, class F>
class Looking : public detail::Forwarding<M> {
 public:
  using Source = typename M::Source;
  Looking(M& model, F f) : detail::Forwarding<M>(model), look_(std::move(f)) {}

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) held_.clear(slots[i]), sources_[slots[i]] = *sources[i];
    this->model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) { detail::release(this->model_, slots); }
  decltype(auto) step(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) sources_[row.to] = sources_[row.from];
    held_.apply(rows);
    return this->model_.step(rows);
  }
  void propose(std::span<Draft const> drafts) {
    this->model_.propose(drafts);
    for (auto const& draft : drafts) look_(draft, held_[draft.slot], std::as_const(sources_[draft.slot]));
  }

 private:
  F look_;
  detail::SlotTokens held_;
  std::map<Slot, Source> sources_;
};

}  // namespace sluice::test
