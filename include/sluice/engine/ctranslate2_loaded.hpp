// SPDX-License-Identifier: Apache-2.0
/// \file
/// What CTranslate2 has loaded: vocabularies, limits, encoder and output layer. Needs CTranslate2's headers.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <ctranslate2/layers/transformer.h>
#include <ctranslate2/models/sequence_to_sequence.h>
#include <ctranslate2/ops/ops.h>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The output layer of a loaded model: logits = weights h + bias.
struct CTranslate2Output {
  std::vector<float> numbers;  ///< [V, d]
  std::vector<float> bias;     ///< [V], or empty
  std::ptrdiff_t size = 0;     ///< d

  MatrixView<float const> weights() const { return {numbers.data(), std::ssize(numbers) / size, size, size}; }
};

/// The part of CTranslate2Model that does not depend on slots.
class CTranslate2Loaded {
 public:
  /// Tokens of the source vocabulary. The tokens that the model's configuration asks for (bos, eos) are added around
  /// them.
  using Source = std::vector<Token>;
  /// What the encoder makes of a batch of sources.
  struct Encoded {
    ctranslate2::StorageView memory;  ///< [sentences, positions, d]
    std::vector<std::int32_t> lengths;
  };

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Abilities abilities() const { return abilities_; }
  Limits limits() const { return limits_; }

  /// Turns pieces into tokens; a piece outside the vocabulary becomes the unknown token.
  Source source_tokens(std::span<std::string const> pieces) const {
    return ids(model_->get_source_vocabulary(), pieces);
  }
  std::vector<Token> target_tokens(std::span<std::string const> pieces) const {
    return ids(model_->get_target_vocabulary(), pieces);
  }
  /// Pieces of an output, without eos. \throws std::invalid_argument  for a number that is not a token
  std::vector<std::string> pieces(std::span<Token const> tokens) const {
    std::vector<std::string> result;
    for (auto const token : tokens)
      if (token != vocabulary_.eos.front())
        result.push_back(model_->get_target_vocabulary().to_token(static_cast<std::size_t>(token)));
    return result;
  }

  /// The output layer in float32, whatever its stored type.
  CTranslate2Output output() const {
    using ctranslate2::StorageView, ctranslate2::Device;
    auto const scope = model_->get_scoped_device_setter();
    StorageView numbers;
    auto const& weights = model_->get_variable("decoder/projection/weight");
    if (auto const* scale = model_->get_variable_if_exists("decoder/projection/weight_scale"))
      ctranslate2::ops::Dequantize()(weights.to(Device::CPU), scale->to(Device::CPU), numbers);
    else numbers = weights.to_float32().to(Device::CPU);
    auto const size = numbers.dim(1);
    CTranslate2Output result{{numbers.data<float>(), numbers.data<float>() + vocabulary_.size * size}, {}, size};
    if (auto const* bias = model_->get_variable_if_exists("decoder/projection/bias")) {
      result.bias = bias->to_float32().to_vector<float>();
      result.bias.resize(static_cast<std::size_t>(vocabulary_.size));
    }
    return result;
  }

  /// \throws std::invalid_argument  for tokens outside the source vocabulary, too many tokens, or none
  Encoded encode(std::span<Source const* const> sources) const {
    auto const scope = model_->get_scoped_device_setter();
    auto const& words = model_->get_source_vocabulary();
    std::vector<std::vector<std::size_t>> inputs;
    Encoded result{ctranslate2::StorageView(encoder_->output_type(), model_->device()), {}};
    for (auto const* source : sources) {
      auto& input = inputs.emplace_back();
      if (model_->with_source_bos()) input.push_back(words.bos_id());
      for (auto const token : *source) {
        require(token >= 0 && static_cast<std::size_t>(token) < words.size(), "CTranslate2: token of the source", token,
                "is outside the source's vocabulary");
        input.push_back(static_cast<std::size_t>(token));
      }
      if (model_->with_source_eos()) input.push_back(words.eos_id());
      require(!input.empty() && std::ssize(input) <= source_limit_, "CTranslate2: tokens of the source", input.size(),
              "must be in [1, " + std::to_string(source_limit_) + "]");
      result.lengths.push_back(static_cast<std::int32_t>(input.size()));
    }
    ctranslate2::StorageView lengths(ctranslate2::DataType::INT32, model_->device());
    auto const input = ctranslate2::layers::make_sequence_inputs(inputs, model_->device(), 1, &lengths);
    static_cast<ctranslate2::layers::Encoder&> (*encoder_)(input, lengths, result.memory);
    return result;
  }

 protected:
  /// \throws std::invalid_argument  for a model that is not an encoder-decoder Transformer, or has several source
  ///                                vocabularies or flash attention
  CTranslate2Loaded(std::shared_ptr<ctranslate2::models::Model const> model, std::vector<Token> never)
      : model_(std::dynamic_pointer_cast<ctranslate2::models::SequenceToSequenceModel const>(std::move(model))) {
    require(model_ && model_->layer_exists("encoder") && model_->layer_exists("decoder/projection"),
            "CTranslate2: model", "what was loaded", "must be an encoder-decoder Transformer");
    require(model_->num_source_vocabularies() == 1, "CTranslate2: source vocabularies",
            model_->num_source_vocabularies(), "must be 1");
    require(!model_->use_flash_attention(), "CTranslate2: use_flash_attention", "true", "must be false");
    encoder_ = std::make_unique<ctranslate2::layers::TransformerEncoder>(*model_, "encoder");
    auto const& target = model_->get_target_vocabulary();
    auto const* const begin = model_->decoder_start_token();
    vocabulary_ = {static_cast<Token>(target.size()),
                   static_cast<Token>(begin ? target.to_id(*begin) : target.bos_id()),
                   {static_cast<Token>(target.eos_id())},
                   std::move(never)};
    vocabulary_.check();
    auto const outputs = model_->get_variable("decoder/projection/weight").dim(0);
    require(outputs >= vocabulary_.size, "CTranslate2: outputs", outputs, "are fewer than the vocabulary has tokens");
    auto const has = [&](std::string const& name) { return model_->get_variable_if_exists(name) != nullptr; };
    std::string const attention = "decoder/layer_0/self_attention/";
    // A sliding window forgets tokens that a roll-back may need. The other encodings give all tokens of one call the
    // same position.
    auto const window = model_->get_attribute_with_default<std::int32_t>("decoder/sliding_window", 0) > 0;
    abilities_.roll_back = !window;
    abilities_.blocks = !window && !has(attention + "relative_attention_bias") &&
                        !has(attention + "memory_kv/weight") &&
                        !model_->get_flag_with_default("decoder/start_from_zero_embedding", false) &&
                        !model_->get_flag_with_default("decoder/alibi", false);
    limits_.length = positions("decoder");
    source_limit_ = positions("encoder");
  }
  ~CTranslate2Loaded() = default;

  std::shared_ptr<ctranslate2::models::SequenceToSequenceModel const> model_;

 private:
  /// The most tokens: the size of the table of positions, if there is one.
  std::int32_t positions(std::string const& scope) const {
    auto const* const table = model_->get_variable_if_exists(scope + "/position_encodings/encodings");
    return table ? static_cast<std::int32_t>(table->dim(0)) : Limits::unlimited;
  }
  static std::vector<Token> ids(ctranslate2::Vocabulary const& words, std::span<std::string const> pieces) {
    std::vector<Token> tokens;
    for (auto const& piece : pieces) tokens.push_back(static_cast<Token>(words.to_id(piece)));
    return tokens;
  }

  std::unique_ptr<ctranslate2::layers::TransformerEncoder> encoder_;
  Vocabulary vocabulary_;
  Abilities abilities_;
  Limits limits_;
  std::int32_t source_limit_ = Limits::unlimited;
};

}  // namespace sluice::inline v0
