// SPDX-License-Identifier: Apache-2.0
/// \file
/// llama.cpp as a model without a KV cache: every line comes from a context that reads all its tokens again.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <support/llama_models.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::test {

class SlowLlama {
 public:
  using Source = std::monostate;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  SlowLlama(llama_model* model, Vocabulary vocabulary)
      : context_(make_context(model, exact_params(1, 1024))), vocabulary_(std::move(vocabulary)) {}

  Vocabulary const& vocabulary() const { return vocabulary_; }
  void start(std::span<Source const* const>, std::span<Slot const> slots) {
    for (auto const slot : slots) held_[slot].clear();
  }

  Scores<float> step(std::span<Row const> rows) {
    auto const before = held_;
    lines_.clear();
    for (auto const& row : rows) {
      auto& held = held_[row.to] = before.at(row.from);
      held.resize(static_cast<std::size_t>(row.length));
      held.insert(held.end(), row.tokens.begin(), row.tokens.end());
      for (auto i = held.size() - static_cast<std::size_t>(row.lines); i < held.size(); ++i)
        read(std::span(held).first(i + 1));
    }
    return scores(lines_.data(), std::ssize(lines_) / vocabulary_.size, vocabulary_.size);
  }

 private:
  void read(std::span<Token> tokens) {
    llama_memory_clear(llama_get_memory(context_.get()), true);
    for (auto& token : tokens)
      if (llama_decode(context_.get(), llama_batch_get_one(&token, 1)) != 0) throw std::runtime_error("llama_decode");
    auto const* const line = llama_get_logits_ith(context_.get(), -1);
    lines_.insert(lines_.end(), line, line + vocabulary_.size);
  }

  LlamaContext context_;
  Vocabulary vocabulary_;
  std::map<Slot, std::vector<Token>> held_;
  std::vector<float> lines_;
};

}  // namespace sluice::test
