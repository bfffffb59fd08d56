// SPDX-License-Identifier: Apache-2.0
/// \file
/// The weights of the examples' Transformer as torch tensors.
#pragma once

#include <sluice/core/types.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace sluice::example {

/// A linear layer ([out, in] and [out]), or scale and shift of a layer norm (both [d]).
struct TorchLayer {
  at::Tensor weight, bias;
};

/// Self-attention and feed-forward part, pre-norm.
struct TorchBlock {
  TorchLayer n1;
  TorchLayer qkv;  ///< [3 d, d]: query (divided by the square root of the head's size), key, value
  TorchLayer o;    ///< [d, d]
  TorchLayer nf;   ///< norm before the feed-forward part
  TorchLayer fi;   ///< [ff, d]
  TorchLayer fo;   ///< [d, ff]
};

/// A block that also looks at the source.
struct TorchDecoderBlock : TorchBlock {
  TorchLayer n2;
  TorchLayer cq;  ///< [d, d], divided likewise
  TorchLayer co;  ///< [d, d]
};

/// The size of a model with random weights.
struct TorchShape {
  std::int64_t d = 512;
  std::int64_t ff = 2048;
  std::int64_t heads = 8;
  std::int64_t encoder_layers = 6;
  std::int64_t decoder_layers = 6;
  std::int64_t vocabulary = 32000;
};

/// All weights, on one device and of one type: read only, shared by all models that use them.
struct TorchWeights {
  std::int64_t d = 0, ff = 0, heads = 0;
  Vocabulary vocabulary;
  at::Tensor embedding;  ///< [V, d]; of source, target and output
  at::Tensor bias;       ///< [V]; of the output
  std::vector<TorchBlock> encoder;
  std::vector<TorchDecoderBlock> decoder;
  TorchLayer en, dn;  ///< after the encoder, after the decoder
  TorchLayer source;  ///< [layers * 2 d, d]: key and value of every decoder layer, from the encoder's output

  /// The token after a source: eos, or bos if there is none.
  Token end() const { return vocabulary.eos.empty() ? vocabulary.bos : vocabulary.eos.front(); }
  at::TensorOptions options() const { return embedding.options(); }

  /// Reads the file that Weights::load reads.
  /// \param options  where to, and as what: at::kFloat, at::kHalf (on a GPU), at::kBFloat16
  /// \throws std::runtime_error  for a file that is not what it should be, naming tensor and value
  static std::shared_ptr<TorchWeights const> load(std::filesystem::path const& file, at::TensorOptions const& options);
  /// Random weights, to measure speed with: bos 1, eos 2, and a bias that makes eos as good as impossible, so that
  /// every output has the length it is allowed.
  /// \throws std::invalid_argument  for an invalid shape
  static std::shared_ptr<TorchWeights const> random(TorchShape const& shape, at::TensorOptions const& options,
                                                    std::uint64_t seed = 1);
};

}  // namespace sluice::example
