// SPDX-License-Identifier: Apache-2.0
/// \file
/// ONNX Runtime as a model: decoders with a KV cache, with or without an encoder, and recurrent ones, under any search. Needs
/// onnxruntime_cxx_api.h (component `onnxruntime`: `sluice::onnxruntime`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/detail/onnxruntime_batch.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>
#include <sluice/engine/onnxruntime_roles.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <onnxruntime_cxx_api.h>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::inline v0 {

/// A decoder-only or recurrent graph: tokens and states in, an answer and the next states out. The whole source is in the
/// request's prompt.
///
/// \tparam Answer  `Scores<float>`: the graph's logits; or `Hidden<float>`: vectors for an expander such as DenseProjection,
///                 of a graph that tools/onnx-cut has cut
///
/// Slots that step together share the tensors of their states: a step gathers the rows that it continues, which is fork and
/// cut at once, and keeps what the graph hands on. Rows that stay as they were are not copied, nor are answers of float32, if
/// all rows of a step have equally many tokens.
///
/// Claims `blocks` if the graph takes several tokens a row; `roll_back` if all states have positions; `ragged` if none has, or
/// if there are both `attention_mask` and `position_ids`: states of unlike length then get zeros on the left, which the mask
/// hides. OnnxOptions::abilities corrects this.
///
/// All models of one session share its weights. Use each in one thread. States are kept in the processor's memory. A step
/// that fails throws std::runtime_error with ONNX Runtime's message and leaves all other slots unchanged.
template <class Answer = Scores<float>>
  requires std::same_as<Answer, Hidden<float>> || std::same_as<Answer, Scores<float>>
class OnnxDecoder {
  static constexpr bool wants_scores = std::same_as<Answer, Scores<float>>;
  using Batch = detail::OnnxBatch;
  using Origin = detail::OnnxOrigin;

 public:
  using Source = std::monostate;

  /// \throws std::invalid_argument  for graphs that do not do this, naming graph and input, and options out of range
  explicit OnnxDecoder(OnnxGraphs graphs, OnnxOptions const& options = {})
      : OnnxDecoder(std::make_unique<detail::OnnxRoles>(std::move(graphs), options, !wants_scores), options) {
    require(!roles_->encoder, "onnxruntime: graphs.encoder", roles_->encoder.name(), "needs OnnxEncoderDecoder");
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Abilities abilities() const { return roles_->abilities; }
  Limits limits() const { return {.length = length_}; }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) {
    begin(slot_numbers, std::vector<std::int32_t>(slot_numbers.size()), 0, {});
  }

  /// Rows of all states: occupied slots, and rows of released slots whose memory is not given back yet.
  std::size_t rows() const {
    return std::accumulate(batches_.begin(), batches_.end(), std::size_t{0},
                           [](std::size_t sum, Batch const& batch) { return sum + batch.slot_numbers.size(); });
  }

  /// Frees memory: tensors without live slots, and the rows of released slots once they are the majority.
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) vacate(slot);
    std::vector<Batch> smaller;
    for (auto& batch : batches_) {
      if (batch.alive == 0 || 2 * batch.alive > batch.slot_numbers.size()) continue;
      std::vector<Origin> origins;
      std::vector<std::int32_t> lengths;
      std::vector<Slot> to;
      for (std::size_t i = 0; i < batch.slot_numbers.size(); ++i)
        if (batch.slot_numbers[i] != Batch::no_slot)
          origins.push_back({&batch, i}), lengths.push_back(batch.lengths[i]), to.push_back(batch.slot_numbers[i]);
      smaller.push_back(detail::onnx_assemble(roles_->layouts, origins, lengths, to));
      batch.alive = 0;
    }
    sweep();
    for (auto& batch : smaller) keep(std::move(batch));
  }

  /// \throws std::invalid_argument  for a slot that holds nothing, or fewer tokens than the row says
  /// \throws std::runtime_error     for an error of ONNX Runtime
  Answer step(std::span<Row const> rows) {
    std::vector<Origin> origins;
    // What runs together: with a past or without, equally many tokens; without a mask of sources, sources of one length.
    std::map<std::tuple<bool, std::size_t, std::int32_t>, std::vector<std::size_t>> parts;
    std::vector<std::ptrdiff_t> first_line;
    std::ptrdiff_t lines = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const from = place(rows[i].from);
      require(from.batch != nullptr, "onnxruntime: slot", rows[i].from, "holds nothing");
      require(rows[i].length <= from.batch->lengths[from.row], "onnxruntime: length", rows[i].length,
              "is more than the slot holds");
      origins.push_back(from);
      auto const source = roles_->source_mask == nullptr ? from.batch->sentences[from.row].length : 0;
      parts[{roles_->begins_apart() && rows[i].length == 0, rows[i].tokens.size(), source}].push_back(i);
      first_line.push_back(lines), lines += rows[i].lines;
    }
    for (auto const& row : rows) vacate(row.to);

    answer_.reset();
    for (auto const& [key, part] : parts) {
      answer_ = std::make_shared<Ort::Value>(feed(rows, part, origins, std::get<0>(key)));
      auto const shape = answer_->GetTensorTypeAndShapeInfo().GetShape();
      auto const each = shape.size() == 3 ? shape[1] : 1, width = shape.back();
      auto const plain = roles_->answer->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
      auto const alike = lines == std::ssize(rows) || (lines == std::ssize(rows) * each);
      if (plain && parts.size() == 1 && alike) {  // read where it lies
        sweep();
        auto const last = lines == std::ssize(rows) ? each - 1 : 0;
        return view(answer_->GetTensorData<float>() + last * width, lines, width,
                    lines == std::ssize(rows) ? each * width : width);
      }
      numbers_.resize(static_cast<std::size_t>(lines * width));
      for (std::size_t r = 0; r < part.size(); ++r) {
        auto const& row = rows[part[r]];
        detail::onnx_floats(*answer_, roles_->answer->type,
                            ((static_cast<std::int64_t>(r) + 1) * each - row.lines) * width, row.lines * width,
                            numbers_.data() + first_line[part[r]] * width);
      }
    }
    answer_.reset();
    sweep();
    return view(numbers_.data(), lines, static_cast<std::ptrdiff_t>(numbers_.size()) / lines, 0);
  }

 protected:
  OnnxDecoder(std::unique_ptr<detail::OnnxRoles> roles, OnnxOptions const& options)
      : roles_(std::move(roles)), length_(options.length) {
    auto const width = roles_->answer->shape.back();
    auto const what = "onnxruntime: " + roles_->decoder.name() + ": " + roles_->answer->name;
    if constexpr (wants_scores) {
      require(width > 0 || options.size > 0, what, "its width", "is open: set OnnxOptions::size");
      require(width < 0 || options.size <= width, "onnxruntime: options.size", options.size,
              "is more than " + what + " has numbers");
    } else require(options.size > 0, "onnxruntime: options.size", options.size, "must be that of the vocabulary");
    require(options.length > 0, "onnxruntime: options.length", options.length, "must be at least 1");
    vocabulary_ = {options.size > 0 ? options.size : static_cast<Token>(width), options.bos, options.eos,
                   options.never};
    vocabulary_.check();
  }

  /// Slots without tokens, of sources of these lengths, whose memory is [slots, width].
  void begin(std::span<Slot const> slot_numbers, std::vector<std::int32_t> const& lengths, std::int64_t width,
             std::vector<std::shared_ptr<Ort::Value>> memory) {
    release(slot_numbers);
    Batch batch{.states = std::vector<std::shared_ptr<Ort::Value>>(roles_->states.size()), .memory = std::move(memory)};
    batch.memory.resize(roles_->memory.size());
    batch.slot_numbers.assign(slot_numbers.begin(), slot_numbers.end()), batch.alive = slot_numbers.size();
    batch.lengths.resize(slot_numbers.size()), batch.source_width = width;
    for (auto const length : lengths) batch.sentences.push_back({sentences_++, length});
    keep(std::move(batch));
  }

  std::unique_ptr<detail::OnnxRoles> roles_;

 private:
  static Answer view(float const* data, std::ptrdiff_t lines, std::ptrdiff_t width, std::ptrdiff_t stride, Token size) {
    if constexpr (wants_scores) return scores(data, lines, size, Kind::logits, stride > 0 ? stride : width);
    else return hidden(data, lines, width, stride);
  }
  Answer view(float const* data, std::ptrdiff_t lines, std::ptrdiff_t width, std::ptrdiff_t stride) const {
    return view(data, lines, width, stride, vocabulary_.size);
  }

  /// Runs these rows in one call: gathers, runs, keeps. Returns the answer.
  Ort::Value feed(std::span<Row const> rows, std::vector<std::size_t> const& part, std::vector<Origin> const& all,
                  bool apart) {
    std::vector<Origin> origins;
    std::vector<Slot> to;
    std::vector<std::int32_t> lengths;
    for (auto const i : part) origins.push_back(all[i]), to.push_back(rows[i].to), lengths.push_back(rows[i].length);
    auto batch = detail::onnx_assemble(roles_->layouts, origins, lengths, to);
    auto const& graph = apart && roles_->first ? roles_->first : roles_->decoder;

    std::vector<Ort::Value> made;
    made.reserve(6);
    detail::OnnxSession::Feeds feeds;
    auto const count = std::ssize(part);
    auto const block = std::ssize(rows[part.front()].tokens);
    auto const width = batch.width;
    auto const give = [&](detail::OnnxTensor const* input, std::vector<std::int64_t> const& shape, auto&& number) {
      if (input == nullptr || (input = graph.input(input->name)) == nullptr) return;
      made.push_back(detail::onnx_integers(*input, shape, number));
      feeds.emplace_back(input, &made.back());
    };
    auto const row = [&](std::int64_t i, std::int64_t of) { return static_cast<std::size_t>(i / of); };
    give(roles_->tokens, roles_->tokens->rank() == 1 ? std::vector{count} : std::vector{count, block},
         [&](std::int64_t i) { return rows[part[row(i, block)]].tokens[static_cast<std::size_t>(i % block)]; });
    give(roles_->mask, {count, width + block},
         [&](std::int64_t i) { return i % (width + block) >= width - lengths[row(i, width + block)] ? 1 : 0; });
    give(roles_->positions, {count, block}, [&](std::int64_t i) { return lengths[row(i, block)] + i % block; });
    give(roles_->source_mask, {count, batch.source_width}, [&](std::int64_t i) {
      return i % batch.source_width < batch.sentences[row(i, batch.source_width)].length ? 1 : 0;
    });
    auto each = block;  // lines of a row's answer
    if (roles_->keep != nullptr) {
      each = 1;
      for (auto const i : part) each = (std::max)(each, detail::cast<std::ptrdiff_t>(rows[i].lines));
      give(roles_->keep, std::vector<std::int64_t>(roles_->keep->rank(), 1), [&](std::int64_t) { return each; });
    }
    if (roles_->branch != nullptr) {
      auto& value = made.emplace_back(detail::onnx_value({1}, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL));
      *value.template GetTensorMutableData<bool>() = !apart;
      feeds.emplace_back(roles_->branch, &value);
    }

    std::vector<detail::OnnxPiece> const none(part.size());
    std::vector<std::shared_ptr<Ort::Value>> empty;  // in place of what there is not yet
    auto const carry = [&](auto const& carried, auto const& layouts, auto const& values, bool right) {
      for (std::size_t k = 0; k < carried.size(); ++k) {
        auto const* const input = graph.input(carried[k].input->name);
        if (input == nullptr) continue;
        if (values[k] == nullptr) empty.push_back(detail::onnx_gather(layouts[k], none, 0, right));
        feeds.emplace_back(input, values[k] == nullptr ? empty.back().get() : values[k].get());
      }
    };
    carry(roles_->states, roles_->layouts.states, batch.states, true);
    carry(roles_->memory, roles_->layouts.memory, batch.memory, false);

    std::vector<std::string> wanted{roles_->answer->name};
    for (auto const& state : roles_->states) wanted.push_back(state.output);
    if (apart)
      for (auto const& one : roles_->memory)
        if (!one.output.empty()) wanted.push_back(one.output);
    auto outputs = graph.run(feeds, wanted);
    auto shape = outputs.front().GetTensorTypeAndShapeInfo().GetShape();
    if (shape.size() != roles_->answer->rank()) shape = roles_->answer->shape;
    shape.front() = count;
    if (shape.size() == 3) shape[1] = each;
    if (wants_scores) shape.back() = (std::max)(shape.back(), std::int64_t{vocabulary_.size});
    graph.expect(roles_->answer->name, outputs.front(), roles_->answer->type, shape);
    auto next = outputs.begin() + 1;
    auto const take = [&](std::string const& output, detail::OnnxLayout const& layout, std::int64_t positions) {
      graph.expect(output, *next, layout.type, layout.of(count, positions));
      return std::make_shared<Ort::Value>(std::move(*next++));
    };
    for (std::size_t k = 0; k < batch.states.size(); ++k)
      batch.states[k] = take(roles_->states[k].output, roles_->layouts.states[k], width + block);
    if (apart)
      for (std::size_t k = 0; k < roles_->memory.size(); ++k)
        if (auto const& output = roles_->memory[k].output; !output.empty())
          batch.memory[k] = take(output, roles_->layouts.memory[k], batch.source_width);
    for (auto& length : batch.lengths) length += static_cast<std::int32_t>(block);
    batch.width += block;
    keep(std::move(batch));
    return std::move(outputs.front());
  }

  Origin& place(Slot slot) {
    require(slot >= 0, "onnxruntime: slot", slot, "must not be negative");
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

  Vocabulary vocabulary_;
  std::int32_t length_;
  std::list<Batch> batches_;
  std::vector<Origin> places_;          // of the slots
  std::shared_ptr<Ort::Value> answer_;  // of the last step, where it is read
  std::vector<float> numbers_;          // or what was copied of it
  std::int64_t sentences_ = 0;          // started so far
};

/// A source that is no list of tokens: the numbers of one row of an encoder's input, in their order in memory (log-mel features
/// [mel, frames] of Whisper, samples, pixels).
using OnnxNumbers = std::vector<float>;

/// An encoder and a decoder, as Optimum exports them. What was computed of a source is repeated for each of its slots, as such
/// graphs demand, but gathered only when the slots' sentences change.
///
/// \tparam SourceType  what the encoder takes: `std::vector<Token>`, its tokens, with the eos that most models want at the end;
///                     or OnnxNumbers, for an encoder whose only input is float32. Of its shape one axis beside the rows may be
///                     open: a source says its size by how many numbers it has. Sources of unlike size are encoded one by one
///
/// encode() may run in another thread. Never claims `blocks` by itself, since a graph does not show whether its decoder has a
/// causal mask; OnnxOptions::abilities does.
template <class Answer = Scores<float>, class SourceType = std::vector<Token>>
  requires std::same_as<SourceType, std::vector<Token>> || std::same_as<SourceType, OnnxNumbers>
class OnnxEncoderDecoder : public OnnxDecoder<Answer> {
  static constexpr bool wants_tokens = std::same_as<SourceType, std::vector<Token>>;
  using Base = OnnxDecoder<Answer>;
  using Base::roles_;

 public:
  using Source = SourceType;
  /// What the encoder makes of a batch of sources.
  struct Encoded {
    std::vector<std::shared_ptr<Ort::Value>> memory{};  ///< by input of the decoder; null: the decoder makes it
    std::vector<std::int32_t> lengths{};
    std::int64_t width = 0;  ///< positions of `memory`
  };

  /// \throws std::invalid_argument  for graphs that do not do this, naming graph and input, and options out of range
  explicit OnnxEncoderDecoder(OnnxGraphs graphs, OnnxOptions const& options = {})
      : Base(std::make_unique<detail::OnnxRoles>(std::move(graphs), options, std::same_as<Answer, Hidden<float>>,
                                                 !wants_tokens),
             options) {
    require(static_cast<bool>(roles_->encoder), "onnxruntime: graphs.encoder", "null", "must be a session");
    require(!roles_->memory.empty(), "onnxruntime: " + roles_->decoder.name(), "its inputs",
            "take nothing that the encoder makes");
  }

  /// \throws std::invalid_argument  for an empty source, for a negative token, and for as many numbers as the encoder's input does
  ///                                not have
  /// \throws std::runtime_error     for an error of ONNX Runtime, such as a token outside the encoder's vocabulary
  Encoded encode(std::span<Source const* const> sources) const {
    for (auto const* const source : sources) check(*source);
    auto const alike = std::ranges::all_of(sources, [&](auto const* one) { return one->size() == sources[0]->size(); });
    if (sources.size() == 1 || (wants_tokens ? roles_->encoder_mask != nullptr : alike)) return run(sources);
    std::vector<Encoded> alone;  // nothing tells the encoder what is padding
    alone.reserve(sources.size());
    Encoded result;
    for (auto const& source : sources) {
      auto const& one = alone.emplace_back(run({&source, 1}));
      result.lengths.push_back(one.lengths.front());
      result.width = (std::max)(result.width, one.width);
    }
    result.memory.resize(roles_->memory.size());
    for (std::size_t k = 0; k < result.memory.size(); ++k) {
      if (roles_->memory[k].encoder.empty()) continue;
      std::vector<detail::OnnxPiece> pieces;
      pieces.reserve(alone.size());
      for (auto const& one : alone) pieces.push_back({one.memory[k].get(), 1, one.width, 0, 0, one.width});
      result.memory[k] = detail::onnx_gather(roles_->layouts.memory[k], pieces, result.width, false);
    }
    return result;
  }

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    std::vector<std::int32_t> lengths;
    for (auto const item : items) lengths.push_back(encoded.lengths.at(static_cast<std::size_t>(item)));
    auto const width = std::int64_t{*std::ranges::max_element(lengths)};
    std::vector<std::shared_ptr<Ort::Value>> memory(encoded.memory.size());
    for (std::size_t k = 0; k < memory.size(); ++k) {
      if (encoded.memory[k] == nullptr) continue;
      std::vector<detail::OnnxPiece> pieces;
      for (std::size_t i = 0; i < items.size(); ++i)
        pieces.push_back(
            {encoded.memory[k].get(), std::ssize(encoded.lengths), encoded.width, items[i], 0, lengths[i]});
      memory[k] = detail::onnx_gather(roles_->layouts.memory[k], pieces, width, false);
    }
    this->begin(slot_numbers, lengths, width, std::move(memory));
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    this->release(slot_numbers);
    auto encoded = encode(sources);
    this->begin(slot_numbers, encoded.lengths, encoded.width, std::move(encoded.memory));
  }

 private:
  void check(Source const& source) const {
    if constexpr (wants_tokens) {
      require(!source.empty(), "onnxruntime: tokens of the source", 0, "must be at least 1");
      for (auto const token : source)
        require(token >= 0, "onnxruntime: token of the source", token, "must not be negative");
    } else {
      auto const shape = shape_of(source);
      auto const numbers = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
      require(numbers > 0 && numbers == std::ssize(source), "onnxruntime: numbers of the source", source.size(),
              "do not fill " + roles_->source->name + " of " + roles_->encoder.name());
    }
  }
  /// Of the encoder's input for one source.
  std::vector<std::int64_t> shape_of(Source const& source) const {
    auto shape = roles_->source->shape;
    shape.front() = 1;
    std::int64_t fixed = 1;
    for (auto const size : shape) fixed *= size > 0 ? size : 1;
    std::ranges::replace(shape, std::int64_t{-1}, std::ssize(source) / fixed);
    return shape;
  }

  /// Sources of one size, or tokens with a mask.
  Encoded run(std::span<Source const* const> sources) const {
    Encoded result;
    Ort::Value input{nullptr}, mask{nullptr};
    detail::OnnxSession::Feeds feeds{{roles_->source, &input}};
    if constexpr (wants_tokens) {
      for (auto const* const source : sources) {
        result.lengths.push_back(static_cast<std::int32_t>(source->size()));
        result.width = (std::max)(result.width, std::int64_t{result.lengths.back()});
      }
      auto const width = result.width;
      std::vector<std::int64_t> const shape{std::ssize(sources), width};
      auto const row = [&](std::int64_t i) -> Source const& { return *sources[static_cast<std::size_t>(i / width)]; };
      input = detail::onnx_integers(*roles_->source, shape, [&](std::int64_t i) {
        return i % width < std::ssize(row(i)) ? row(i)[static_cast<std::size_t>(i % width)] : 0;
      });
      if (roles_->encoder_mask != nullptr) {
        mask = detail::onnx_integers(*roles_->encoder_mask, shape,
                                     [&](std::int64_t i) { return i % width < std::ssize(row(i)) ? 1 : 0; });
        feeds.emplace_back(roles_->encoder_mask, &mask);
      }
    } else {
      auto shape = shape_of(*sources.front());
      shape.front() = std::ssize(sources);
      input = detail::onnx_value(shape, roles_->source->type);
      auto* to = input.GetTensorMutableData<float>();
      for (auto const* const source : sources) to = std::copy(source->begin(), source->end(), to);
    }
    std::vector<std::string> wanted;
    for (auto const& one : roles_->memory)
      if (!one.encoder.empty()) wanted.push_back(one.encoder);
    auto outputs = roles_->encoder.run(feeds, wanted);
    result.memory.resize(roles_->memory.size());
    auto next = outputs.begin();
    for (std::size_t k = 0; k < result.memory.size(); ++k) {
      auto const& layout = roles_->layouts.memory[k];
      if (roles_->memory[k].encoder.empty()) continue;
      if (result.width == 0) {  // of numbers: the encoder says how many positions it makes of them
        auto const shape = next->GetTensorTypeAndShapeInfo().GetShape();
        result.width = layout.positional() && shape.size() == layout.shape.size() ? shape[layout.position_axis] : 1;
        result.lengths.assign(sources.size(), static_cast<std::int32_t>(result.width));
      }
      roles_->encoder.expect(roles_->memory[k].encoder, *next, layout.type,
                             layout.of(std::ssize(sources), result.width));
      result.memory[k] = std::make_shared<Ort::Value>(std::move(*next++));
    }
    return result;
  }
};

}  // namespace sluice::inline v0
