// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTranslate2 as a model: its encoder, its decoder and its vocabularies under any search; CTranslate2Loaded, what it has
/// loaded: vocabularies, limits, encoder and output layer. Needs CTranslate2's headers (component `ctranslate2`:
/// `sluice::ctranslate2`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/detail/ctranslate2_batch.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctranslate2/layers/transformer.h>
#include <ctranslate2/models/sequence_to_sequence.h>
#include <ctranslate2/ops/ops.h>
#include <ctranslate2/storage_view.h>
#include <filesystem>
#include <iterator>
#include <list>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

namespace sluice::inline v0 {

namespace detail {

/// The version in the name of a library, such as libctranslate2.so.4.8.1; empty: none.
inline std::string ctranslate2_version_in(std::string const& file) {
  auto const at = file.rfind(".so.");
  if (at == std::string::npos) return {};
  auto version = file.substr(at + 4);
  auto const dots = std::count(version.begin(), version.end(), '.');
  return dots == 2 && version.find_first_not_of("0123456789.") == std::string::npos ? version : std::string();
}

/// Classes change between patch versions of CTranslate2, and a program crashes that was compiled for another one. Its headers
/// have no version and its library no function that says one: what is known is the package's, and the library's name.
/// \throws std::invalid_argument  if they differ
inline void require_same_ctranslate2([[maybe_unused]] ctranslate2::models::Model const& model) {
#if defined(SLUICE_CTRANSLATE2_VERSION) && __has_include(<dlfcn.h>)
  void const* table = nullptr;  // of virtual functions: it lies in the library that made the model
  std::memcpy(&table, static_cast<void const*>(&model), sizeof table);
  Dl_info where{};
  if (dladdr(table, &where) == 0 || where.dli_fname == nullptr) return;
  std::error_code none;
  auto const file = std::filesystem::canonical(where.dli_fname, none);
  auto const version = ctranslate2_version_in(file.filename().string());
  require(none || version.empty() || version == SLUICE_CTRANSLATE2_VERSION, "CTranslate2: library", file.string(),
          "must be version " SLUICE_CTRANSLATE2_VERSION ", for which the program was compiled");
#endif
}

}  // namespace detail

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
    if (model_ != nullptr) detail::require_same_ctranslate2(*model_);
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

/// An encoder-decoder Transformer loaded by CTranslate2, of any compute type, on any of its devices.
///
/// \tparam Answer  `Hidden<float>`: vectors for an expander such as DenseProjection, which wants output(); or
///                 `Scores<float>`: CTranslate2's own logits
///
/// Slots of equal length share one DecoderState. The keys and values of a source are stored once for all hypotheses of
/// its sentence. Claims `blocks` and `roll_back` unless the model's position encodings rule them out. CTranslate2
/// forbids no token, and neither does this class: `Vocabulary::never` is what the constructor is given.
///
/// All adapters of one model share its weights. Use each adapter in one thread; encode() may run in another thread
/// beside it.
template <class Answer>
  requires std::same_as<Answer, Hidden<float>> || std::same_as<Answer, Scores<float>>
class CTranslate2Model : public CTranslate2Loaded {
  static constexpr bool wants_logits = std::same_as<Answer, Scores<float>>;
  using View = ctranslate2::StorageView;
  using Batch = detail::CTranslate2Batch;
  using Origin = detail::CTranslate2Origin;
  using Decoder = detail::CTranslate2Decoder;

 public:
  /// \throws std::invalid_argument  for a model that is not an encoder-decoder Transformer, or has several source
  ///                                vocabularies or flash attention; with Hidden also for one that changes its logits
  ///                                after the product
  explicit CTranslate2Model(std::shared_ptr<ctranslate2::models::Model const> model, std::vector<Token> never = {})
      : CTranslate2Loaded(std::move(model), std::move(never)), decoder_(std::make_unique<Decoder>(*model_, "decoder")) {
    auto const capped = model_->template get_attribute_with_default<float>("decoder/final_logit_softcapping", 0.0f);
    require(wants_logits || capped == 0, "CTranslate2: final_logit_softcapping", capped, "needs Scores, not Hidden");
  }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    auto const scope = model_->get_scoped_device_setter();
    release(slot_numbers);
    Batch batch;
    batch.slot_numbers.assign(slot_numbers.begin(), slot_numbers.end()), batch.alive = slot_numbers.size();
    for (auto const item : items)
      batch.sentences.push_back({sentences_++, encoded.lengths.at(static_cast<std::size_t>(item))});
    batch.state.emplace("memory", detail::rows_of(encoded.memory, {items.begin(), items.end()}, true));
    keep(std::move(batch));
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    auto encoded = encode(sources);
    std::vector<std::int32_t> items(sources.size());
    std::iota(items.begin(), items.end(), 0);
    start(encoded, items, slot_numbers);
  }

  /// Rows of all states: occupied slots, and rows of released slots whose memory is not given back yet.
  std::size_t rows() const {
    return std::accumulate(batches_.begin(), batches_.end(), std::size_t{0},
                           [](std::size_t sum, Batch const& batch) { return sum + batch.slot_numbers.size(); });
  }

  /// Frees memory: a whole state without live slots, and the rows of released slots once they are the majority.
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) vacate(slot);
    std::vector<Batch> smaller;
    for (auto& batch : batches_) {
      if (batch.alive == 0 || 2 * batch.alive > batch.slot_numbers.size()) continue;
      std::vector<Origin> rows;
      std::vector<Slot> to;
      for (std::size_t i = 0; i < batch.slot_numbers.size(); ++i)
        if (batch.slot_numbers[i] != Batch::no_slot) rows.push_back({&batch, i}), to.push_back(batch.slot_numbers[i]);
      auto const scope = model_->get_scoped_device_setter();
      smaller.push_back(detail::assemble(rows, to, batch.length, false, decoder_->initial_state(), model_->device()));
      batch.alive = 0;
    }
    sweep();
    for (auto& batch : smaller) keep(std::move(batch));
  }

  /// \throws std::invalid_argument  for a slot that holds nothing, or fewer tokens than the row says
  Answer step(std::span<Row const> rows) {
    auto const scope = model_->get_scoped_device_setter();
    std::vector<Origin> origins;
    // Rows at length 0, whether new or rolled back to nothing, cannot share a call.
    std::array<std::vector<std::size_t>, 2> parts;
    std::vector<std::ptrdiff_t> first_line;
    std::ptrdiff_t lines = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const from = place(rows[i].from);
      require(from.batch != nullptr, "CTranslate2: slot", rows[i].from, "holds nothing");
      require(rows[i].length <= from.batch->length, "CTranslate2: length", rows[i].length,
              "is more than the slot holds");
      origins.push_back(from), parts[from.batch->fresh() ? 0 : 1].push_back(i);
      first_line.push_back(lines), lines += rows[i].lines;
    }
    for (auto const& row : rows) vacate(row.to);

    View made;
    for (auto const& part : parts) {
      if (part.empty()) continue;
      made = feed(rows, part, origins);
      auto const width = made.dim(-1), block = std::ssize(rows[0].tokens);
      if (part.size() == rows.size() && made.size() == lines * width) break;  // all lines, in order, none repeated
      answer_.resize({lines, width});
      for (auto const i : part) {
        auto const last = static_cast<std::ptrdiff_t>(place(rows[i].to).row + 1) * block;
        std::copy_n(made.data<float>() + (last - rows[i].lines) * width, rows[i].lines * width,
                    answer_.data<float>() + first_line[i] * width);
      }
      made.clear();
    }
    if (!made.empty()) answer_ = std::move(made);
    sweep();
    auto const width = answer_.dim(-1);
    if constexpr (wants_logits) return scores(answer_.data<float>(), lines, vocabulary().size, Kind::logits, width);
    else return hidden(answer_.data<float>(), lines, width);
  }

 private:
  /// Runs these rows in one call. Returns the lines of all their tokens, including padding rows.
  View feed(std::span<Row const> rows, std::vector<std::size_t> const& part, std::vector<Origin> const& all) {
    std::vector<Origin> origins;
    std::vector<Slot> to;
    for (auto const i : part) origins.push_back(all[i]), to.push_back(rows[i].to);
    auto const length = rows[0].length;
    auto const block = rows[0].tokens.size();
    auto batch = detail::assemble(origins, to, length, block > 1, decoder_->initial_state(), model_->device());
    if (length == 0 && !batch.fresh()) {  // the decoder wants a memory at its first step, although it does not read it
      auto const& keys = batch.state.at("memory_keys_0");
      View unread({keys.dim(0), keys.dim(-2), 1}, keys.dtype(), keys.device());
      batch.state.emplace("memory", std::move(unread.zero()));
    }
    std::vector<std::int32_t> tokens;
    auto next = part.begin();
    for (std::size_t i = 0; i < batch.slot_numbers.size(); ++i) {
      auto const repeated = batch.slot_numbers[i] == Batch::no_slot;
      auto const& row = rows[repeated ? *std::prev(next) : *next++];
      tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    }
    ctranslate2::Shape shape{std::ssize(batch.slot_numbers)};
    if (block > 1) shape.push_back(static_cast<ctranslate2::dim_t>(block));
    View const ids(std::move(shape), tokens, model_->device());
    View answer(decoder_->output_type(), model_->device());
    decoder_->decode(ids, nullptr, length, batch.state, &answer, nullptr, wants_logits);
    batch.length += static_cast<std::int32_t>(block);
    keep(std::move(batch));
    answer.move_to(ctranslate2::Device::CPU, ctranslate2::DataType::FLOAT32);
    return answer;
  }

  Origin& place(Slot slot) {
    require(slot >= 0, "CTranslate2: slot", slot, "must not be negative");
    auto const i = static_cast<std::size_t>(slot);
    return places_.size() <= i ? (places_.resize(i + 1), places_[i]) : places_[i];
  }
  void vacate(Slot slot) {
    auto& from = place(slot);
    if (from.batch) from.batch->slot_numbers[from.row] = Batch::no_slot, --from.batch->alive;
    from = {};
  }
  void keep(Batch batch) {
    auto& kept = batches_.emplace_back(std::move(batch));
    for (std::size_t i = 0; i < kept.slot_numbers.size(); ++i)
      if (kept.slot_numbers[i] != Batch::no_slot) place(kept.slot_numbers[i]) = {&kept, i};
  }
  void sweep() {
    std::erase_if(batches_, [](Batch const& batch) { return batch.alive == 0; });
  }

  std::unique_ptr<Decoder> decoder_;
  std::list<Batch> batches_;
  std::vector<Origin> places_;  // of the slots
  View answer_;                 // of the last step, [lines, d or the outputs]
  std::int64_t sentences_ = 0;  // started so far
};

/// Hidden vectors, for expanders such as DenseProjection: much the faster.
using CTranslate2 = CTranslate2Model<Hidden<float>>;
/// CTranslate2's own logits.
using CTranslate2Logits = CTranslate2Model<Scores<float>>;

}  // namespace sluice::inline v0
