// SPDX-License-Identifier: Apache-2.0
/// \file
/// The examples' Transformer written with torch's operations.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <libtorch/torch_weights.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sluice::example {

/// Options of a TorchTransformer.
struct TorchTransformerOptions {
  std::int32_t length = 512;  ///< most tokens of a source, or in a slot
};

/// Pre-norm, ReLU, sinusoidal positions: what the examples' Transformer computes, on any device of torch. A Model except
/// for `step`, which HostScores and DeviceScores add to any class with `logits`.
///
/// The cache of a decoder layer lies in slots, [slots, heads, length, d / heads], and grows with slots and lengths in
/// use. Forks copy what their parents hold, all layers at once. A source's keys and values are kept once, however many
/// slots look at them. A step sends the host's numbers in one copy and waits for nothing.
///
/// The last bits of a line depend on the other lines, as in torch's matrix products.
///
/// On a GPU everything runs in the stream that is torch's current one when the object is made, in whatever thread.
class TorchTransformer {
 public:
  using Source = std::vector<Token>;  ///< pieces; the model adds TorchWeights::end
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  /// A batch of encoded sources.
  struct Encoded {
    at::Tensor memory;  ///< [layers, 2, sources, heads, longest, d / heads]: keys and values
    std::vector<std::int64_t> lengths;
  };

  /// \throws std::invalid_argument  for no weights, or a length limit below 1
  explicit TorchTransformer(std::shared_ptr<TorchWeights const> weights, TorchTransformerOptions const& options = {});

  Vocabulary const& vocabulary() const { return weights_->vocabulary; }
  Limits limits() const { return {.length = options_.length}; }
  TorchWeights const& weights() const { return *weights_; }
  /// In which all of it runs; none on the CPU.
  std::optional<c10::Stream> stream() const { return stream_; }

  /// Encodes sources, all tokens in one product, without padding outside the attention. Touches no slot.
  /// \throws std::invalid_argument  for a token outside the vocabulary or a source that is too long
  Encoded encode(std::span<Source const* const> sources) const;

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots);
  void start(std::span<Source const* const> sources, std::span<Slot const> slots);
  void release(std::span<Slot const> slots);

  /// Runs the rows. \return the logits [lines, V], of the weights' type, on their device
  /// \throws std::invalid_argument  for a row that breaks the contract
  at::Tensor logits(std::span<Row const> rows);

 private:
  /// A slot.
  struct Held {
    std::int32_t memory = -1;  // index of memories_; -1: not started
    std::int32_t length = 0;   // tokens
    bool stale = false;        // what another sentence left may be no number
  };
  /// A source that slots look at.
  struct Memory {
    std::int64_t length = 0;
    std::int32_t users = 0;
  };

  at::Device device() const { return weights_->embedding.device(); }
  std::int64_t head() const { return weights_->d / weights_->heads; }
  std::int64_t layers() const { return std::ssize(weights_->decoder); }
  void require_token(Token token) const;
  void check(std::span<Row const> rows) const;
  at::Tensor embed(at::Tensor const& tokens, at::Tensor const& positions) const;
  at::Tensor feed_forward(TorchBlock const& block, at::Tensor const& x) const;
  void leave(Held& held);
  std::int32_t free_memory();
  void reserve_cache(std::int64_t slots, std::int64_t length);
  void reserve_memory(std::int64_t sources, std::int64_t length);

  std::shared_ptr<TorchWeights const> weights_;
  TorchTransformerOptions options_;
  std::optional<c10::Stream> stream_;  // of a GPU
  at::Tensor positions_;               // [length, d]
  std::vector<Held> held_;             // by slot
  std::vector<Memory> memories_;
  at::Tensor cache_;   // [layers, 2, slots, heads, length, d / heads]: keys and values
  at::Tensor memory_;  // [layers, 2, sources, heads, length, d / heads]
};

}  // namespace sluice::example
