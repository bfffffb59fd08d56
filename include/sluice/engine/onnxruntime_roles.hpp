// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which input of a decoder graph is what: read from names and shapes. Needs onnxruntime_cxx_api.h (component `onnxruntime`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/detail/onnxruntime_batch.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The sessions of a model, as Optimum exports them. Their environment must outlive them; several models may share them.
struct OnnxGraphs {
  /// model.onnx, decoder_model_merged.onnx (which has an input `use_cache_branch`) or decoder_with_past_model.onnx.
  OnnxGraph decoder{};
  OnnxGraph first{};  ///< decoder_model.onnx, which needs no past: for slots that hold no token; if `decoder` needs one
  OnnxGraph encoder{};  ///< encoder_model.onnx
};

/// What a graph does not say.
struct OnnxOptions {
  Token bos = 0;
  std::vector<Token> eos{};
  std::vector<Token> never{};
  std::int32_t size = 0;  ///< of the vocabulary; 0: as wide as the answer
  std::int32_t length =
      Limits::unlimited;  ///< tokens that a slot can hold: the model's table of positions, its context
  std::string tokens{};   ///< the input of tokens; empty: input_ids or decoder_input_ids
  std::string answer{};   ///< the output that answers; empty: logits, or hidden_states or last_hidden_state
  /// An input of the decoder and the output that is its next value. Those named alike need not be listed:
  /// past_key_values.* and present.*, and names that are the same but for words as in, past, out, next.
  std::vector<std::pair<std::string, std::string>> states{};
  /// Claims these instead of what names and shapes say (docs/onnxruntime.md). Less is always true.
  std::optional<Abilities> abilities{};
};

namespace detail {

/// A name without the words that tell a state before a step from the one after it.
inline std::string onnx_stem(std::string_view name) {
  std::string result;
  for (std::size_t begin = 0; begin <= name.size();) {
    auto const end = (std::min)(name.find_first_of("._/-", begin), name.size());
    auto const word = name.substr(begin, end - begin);
    begin = end + 1;
    auto without = false;
    for (auto const* marker :
         {"in", "input", "past", "prev", "previous", "old", "out", "output", "present", "new", "next"})
      without = without || word == marker;
    if (!without) result.append(word).push_back('.');
  }
  return result;
}

/// An input that a step reads and writes, or that comes from the source.
struct OnnxCarried {
  OnnxTensor const* input = nullptr;
  std::string output{};  ///< of the decoder: its next value, or, of memory, its value after the first step; empty: none
  std::string encoder{};  ///< of memory: the encoder's output; empty: the decoder makes it
};

/// The decoder's inputs by what they are, and what it can do.
struct OnnxRoles {
  OnnxSession decoder{}, first{}, encoder{};
  OnnxTensor const* tokens = nullptr;
  OnnxTensor const* mask = nullptr;  ///< of tokens
  OnnxTensor const* source_mask = nullptr;
  OnnxTensor const* positions = nullptr;
  OnnxTensor const* branch = nullptr;  ///< whether there is a past
  OnnxTensor const* keep = nullptr;    ///< how many last lines are wanted
  OnnxTensor const* answer = nullptr;
  OnnxTensor const* source = nullptr;  ///< of the encoder: tokens, or numbers
  OnnxTensor const* encoder_mask = nullptr;
  std::vector<OnnxCarried> states{}, memory{};
  OnnxLayouts layouts{};
  Abilities abilities{};

  /// Slots without a token have a graph, or a branch of one, of their own.
  bool begins_apart() const { return first || branch != nullptr; }

  /// \throws std::invalid_argument  for graphs that are not those of such a model, naming graph and input
  /// \param numbers  whether the encoder takes numbers instead of tokens
  OnnxRoles(OnnxGraphs graphs, OnnxOptions const& options, bool hidden, bool numbers = false)
      : decoder(std::move(graphs.decoder), "decoder"),
        first(std::move(graphs.first), "decoder without a past"),
        encoder(std::move(graphs.encoder), "encoder") {
    require(static_cast<bool>(decoder), "onnxruntime: graphs.decoder", "null", "must be a session");
    auto const what = "onnxruntime: " + decoder.name() + ": ";
    auto const either = [](std::string const& name, std::vector<std::string> otherwise) {
      return name.empty() ? std::move(otherwise) : std::vector{name};
    };
    tokens = decoder.integers(either(options.tokens, {"input_ids", "decoder_input_ids"}));
    require(tokens != nullptr, what + "the input of tokens", options.tokens.empty() ? "input_ids" : options.tokens,
            "is not there: name it in OnnxOptions::tokens");
    require(tokens->rank() == 1 || tokens->rank() == 2, what + tokens->name, "its shape",
            "must be [rows] or [rows, tokens]");
    mask = decoder.integers({"attention_mask", "decoder_attention_mask"});
    source_mask = decoder.integers({"encoder_attention_mask"});
    positions = decoder.integers({"position_ids"});
    branch = decoder.input("use_cache_branch");
    require(branch == nullptr || branch->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, what + "use_cache_branch",
            "its type", "must be bool");
    keep = decoder.integers({"num_logits_to_keep", "logits_to_keep"});
    require_answer(options, hidden);
    if (encoder) numbers ? read_encoder_of_numbers() : read_encoder();
    for (auto const& input : decoder.inputs())
      if (!plain(&input)) carry(input, options);
    require(!states.empty(), what + "states", "none", "a model must hand its past on: export it with past");
    check_first();
    claim(options);
  }
  OnnxRoles(OnnxRoles const&) = delete;  // pointers look at the sessions
  OnnxRoles& operator=(OnnxRoles const&) = delete;
  ~OnnxRoles() = default;

 private:
  bool plain(OnnxTensor const* input) const {
    return input == tokens || input == mask || input == source_mask || input == positions || input == branch ||
           input == keep;
  }

  void require_answer(OnnxOptions const& options, bool hidden) {
    auto names =
        hidden ? std::vector<std::string>{"hidden_states", "last_hidden_state"} : std::vector<std::string>{"logits"};
    if (!options.answer.empty()) names = {options.answer};
    answer = decoder.first_output(names);
    auto const what = "onnxruntime: " + decoder.name() + ": ";
    require(answer != nullptr, what + "the output", names.front(),
            "is not there: name the answer in OnnxOptions::answer (hidden vectors: cut the graph with tools/onnx-cut)");
    require((answer->rank() == 2 || answer->rank() == 3) && onnx_is_float(answer->type), what + answer->name,
            "its shape or type", "must be [rows, tokens, numbers] or [rows, numbers] of float, float16 or bfloat16");
  }

  void read_encoder() {
    auto const what = "onnxruntime: " + encoder.name() + ": ";
    source = encoder.integers({"input_ids"});
    require(source != nullptr && source->rank() == 2, what + "input_ids", "its shape",
            "must be there, [rows, tokens]; an encoder of numbers needs a model with OnnxNumbers");
    encoder_mask = encoder.integers({"attention_mask"});
    for (auto const& input : encoder.inputs())
      require(&input == source || &input == encoder_mask, what + "input", input.name,
              "is neither input_ids nor attention_mask");
  }
  /// One input of float32, [rows, ...].
  void read_encoder_of_numbers() {
    auto const what = "onnxruntime: " + encoder.name() + ": ";
    require(encoder.inputs().size() == 1, what + "inputs", encoder.inputs().size(),
            "must be one: the numbers of the sources");
    source = &encoder.inputs().front();
    require(source->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && source->rank() > 1, what + source->name,
            "its type or shape", "must be float32, [rows, ...]");
    require(std::count(source->shape.begin() + 1, source->shape.end(), -1) <= 1, what + source->name, "its shape",
            "may have one axis of open size beside that of rows");
  }

  /// The encoder's output that is this input of the decoder, or null.
  OnnxTensor const* of_encoder(std::string const& input) const {
    if (!encoder) return nullptr;
    auto const* const same = encoder.output(input);
    return same == nullptr && input == "encoder_hidden_states" ? encoder.output("last_hidden_state") : same;
  }

  /// Finds out whether an input is a state or comes from the source.
  void carry(OnnxTensor const& input, OnnxOptions const& options) {
    auto const& name = input.name;
    auto const what = "onnxruntime: " + decoder.name() + ": input";
    auto const layout = [&] { return onnx_layout(decoder, input, tokens->symbols[0]); };
    auto const next = [&](std::string const& output) {
      auto const* const found = decoder.output(output);
      require(found != nullptr && found->type == input.type && found->rank() == input.rank(), what, name,
              "has no output " + output + " of its type and rank");
      states.push_back({&input, output});
      layouts.states.push_back(layout());
    };
    for (auto const& [from, to] : options.states)
      if (from == name) return next(to);
    std::string const past = "past_key_values";
    auto const cached = name.starts_with(past + ".");
    auto const* const made = of_encoder(name);
    if (made != nullptr || (cached && name.find(".encoder.") != std::string::npos)) {
      auto const from = made == nullptr ? "present" + name.substr(past.size()) : std::string();
      auto const& maker = first ? first : decoder;
      require(made != nullptr || maker.output(from) != nullptr, what, name,
              "is made neither by the encoder nor, as " + from + ", by " + maker.name());
      memory.push_back({&input, from, made == nullptr ? std::string() : made->name});
      return layouts.memory.push_back(layout());
    }
    if (cached) return next("present" + name.substr(past.size()));
    for (auto const& output : decoder.outputs())
      if (&output != answer && output.type == input.type && output.rank() == input.rank() &&
          onnx_stem(output.name) == onnx_stem(name))
        return next(output.name);
    require(false, what, name, "has no output that is its next value: name it in OnnxOptions::states");
  }

  /// The graph for slots without tokens takes what the other takes, without a past, and hands the same on.
  void check_first() {
    if (!first) return;
    auto const what = "onnxruntime: " + first.name() + ": ";
    for (auto const& input : first.inputs()) {
      auto const* const same = decoder.input(input.name);
      if (auto const* const made = of_encoder(input.name); same == nullptr && made != nullptr) {  // read only at first
        memory.push_back({&input, {}, made->name});
        layouts.memory.push_back(onnx_layout(first, input, tokens->symbols[0]));
        continue;
      }
      auto const of_source = source_mask == nullptr && input.name == "encoder_attention_mask";
      if (of_source) source_mask = first.integers({input.name});
      require(of_source || (same != nullptr && same->type == input.type), what + "input", input.name,
              "is none of " + decoder.name() + ", or of another type");
    }
    auto const gives = [&](std::string const& output) {
      require(output.empty() || first.output(output) != nullptr, what + "the output", output, "is not there");
    };
    gives(answer->name);
    for (auto const& state : states) gives(state.output);
    for (auto const& one : memory) gives(one.output);
  }

  void claim(OnnxOptions const& options) {
    auto const positional = [](OnnxLayout const& layout) { return layout.positional(); };
    auto const none = std::ranges::none_of(layouts.states, positional);
    Abilities most{.ragged = none || (mask != nullptr && positions != nullptr),
                   .blocks = tokens->rank() == 2 && tokens->shape[1] < 0 && answer->rank() == 3,
                   .roll_back = std::ranges::all_of(layouts.states, positional)};
    abilities = most;
    // Traced with one token, a decoder of an encoder may have no causal mask: it would not show.
    if (encoder) abilities.blocks = false;
    if (!options.abilities) return;
    require(most.include(*options.abilities), "onnxruntime: options.abilities", "what is claimed",
            "is more than " + decoder.name() + " can do");
    abilities = *options.abilities;
  }
};

}  // namespace detail

}  // namespace sluice::inline v0
