// SPDX-License-Identifier: Apache-2.0
/// \file
/// A TorchScript module as a model.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <c10/core/InferenceMode.h>
#include <torch/script.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::example {

/// A module (torch.jit.script or .trace, torch::jit::load) with two methods:
///
///     start(sources: Tensor, lengths: Tensor) -> List[Tensor]
///         sources: int64 [n, longest], each followed by zeros; lengths: int64 [n], on the module's device
///         -> the states of n sentences before any token: tensors [n, ...], whose other dimensions never change
///     step(tokens: Tensor, positions: Tensor, states: List[Tensor]) -> Tuple[Tensor, List[Tensor]]
///         tokens, positions: int64 [rows], the next token of each row, and how many came before it
///         -> scores [rows, V], and the states after that token
///
/// Its states live in slots: tensors [slots, ...], from which a step takes its rows, and to which it puts them back:
/// two copies of every state, which is right for recurrent networks and small caches. An attention cache of any size
/// needs what TorchTransformer does. A source with a length of its own in a state (an encoder's output) is padded by
/// `start` to one that never changes.
///
/// A Model but for `step`: HostScores and DeviceScores add it.
class ScriptedModel {
 public:
  using Source = std::vector<Token>;
  static constexpr Abilities abilities{.ragged = true};

  /// \param module  in evaluation mode
  /// \param device  where its weights are
  ScriptedModel(torch::jit::Module module, Vocabulary vocabulary, at::Device device = at::kCPU,
                sluice::Limits const& limits = {})
      : module_(std::move(module)), vocabulary_(std::move(vocabulary)), device_(device), limits_(limits) {}

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return limits_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    if (sources.empty()) return;
    c10::InferenceMode const inference;
    std::int64_t longest = 0;
    for (auto const* const source : sources) longest = std::max(longest, std::ssize(*source));
    std::vector<std::int64_t> tokens, lengths, to(slots.begin(), slots.end());
    for (auto const* const source : sources) {
      tokens.insert(tokens.end(), source->begin(), source->end());
      lengths.push_back(std::ssize(*source));
      tokens.resize(lengths.size() * static_cast<std::size_t>(longest));
    }
    auto const begun =
        module_.get_method("start")({numbers(tokens).view({std::ssize(lengths), longest}), numbers(lengths)});
    put(begun.toTensorVector(), to);
    for (auto const slot : slots) hold(slot, 0);
  }

  /// \return scores [rows, V]
  /// \throws std::invalid_argument  for a row that breaks the contract, or states of another shape
  at::Tensor logits(std::span<Row const> rows) {
    c10::InferenceMode const inference;
    std::vector<std::int64_t> from, to, tokens, positions;
    for (auto const& row : rows) {
      auto const started =
          row.from >= 0 && row.from < std::ssize(held_) && held_[static_cast<std::size_t>(row.from)] >= 0;
      require(started, "ScriptedModel: row.from", row.from, "must be a slot that was started");
      require(row.length == held_[static_cast<std::size_t>(row.from)], "ScriptedModel: row.length", row.length,
              "must be the tokens that row.from holds");
      require(row.tokens.size() == 1, "ScriptedModel: row.tokens.size()", row.tokens.size(), "must be 1");
      from.push_back(row.from), to.push_back(row.to);
      tokens.push_back(row.tokens.front()), positions.push_back(row.length);
    }
    auto const rows_from = numbers(from);
    std::vector<at::Tensor> states;
    for (auto const& state : states_) states.push_back(state.index_select(0, rows_from));
    auto const answer = module_.get_method("step")({numbers(tokens), numbers(positions), states}).toTuple();
    put(answer->elements().at(1).toTensorVector(), to);
    for (auto const& row : rows) hold(row.to, row.length + 1);
    return answer->elements().at(0).toTensor();
  }

 private:
  at::Tensor numbers(std::vector<std::int64_t> const& values) const {
    auto const host = at::empty({std::ssize(values)}, at::kLong);
    std::ranges::copy(values, host.data_ptr<std::int64_t>());
    return host.to(device_);
  }

  void hold(Slot slot, std::int32_t tokens) {
    if (slot >= std::ssize(held_)) held_.resize(static_cast<std::size_t>(slot) + 1, -1);
    held_[static_cast<std::size_t>(slot)] = tokens;
  }

  /// states [n, ...] to their slots.
  void put(std::vector<at::Tensor> const& states, std::vector<std::int64_t> const& slots) {
    require(states_.empty() || states.size() == states_.size(), "ScriptedModel: states", states.size(),
            "must be as many as at first");
    require(!states.empty(), "ScriptedModel: states", states.size(), "must be at least 1");
    states_.resize(states.size());
    auto const most = *std::ranges::max_element(slots) + 1;
    auto const at = numbers(slots);
    for (std::size_t i = 0; i < states.size(); ++i) {
      auto& all = states_[i];
      auto shape = states[i].sizes().vec();
      require(!shape.empty() && shape[0] == std::ssize(slots), "ScriptedModel: state.size(0)",
              shape.empty() ? 0 : shape[0], "must be the number of rows");
      shape[0] = all.defined() ? all.size(0) : 0;
      require(!all.defined() || all.sizes() == at::IntArrayRef(shape), "ScriptedModel: state", i,
              "has other dimensions than at first");
      if (shape[0] < most) {
        shape[0] = std::max(most, 2 * shape[0]);
        auto const larger = at::zeros(shape, states[i].options());
        if (all.defined()) larger.narrow(0, 0, all.size(0)).copy_(all);
        all = larger;
      }
      all.index_copy_(0, at, states[i]);
    }
  }

  torch::jit::Module module_;
  Vocabulary vocabulary_;
  at::Device device_;
  sluice::Limits limits_;
  std::vector<at::Tensor> states_;  // [slots, ...]
  std::vector<std::int32_t> held_;  // tokens of each slot; -1: not started
};

}  // namespace sluice::example
