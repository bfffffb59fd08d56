// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of onnx_generate.
#pragma once

#include <sluice/engine/onnxruntime_roles.hpp>

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace onnx_generate {

struct Options {
  std::filesystem::path decoder, first, encoder, layer, pieces, input;
  sluice::OnnxOptions model{};
  std::int32_t width = 1, n_best = 1, max_length = 64, threads = 1;
  bool sample = false, streaming = false, scores = false;
  float temperature = 1, top_p = 1;
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
  std::size_t batch = 16;
};

/// Nothing where help was asked for and given.
/// \throws text::InputError  for invalid options
inline std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options o;
  std::vector<std::string> states;
  text::CommandLine app("Continues prompts, or translates sources, with ONNX graphs.", "onnx_generate");
  auto const add = [&](char const* name, auto& value, char const* type, char const* what) {
    return app.add(name, value, type, what);
  };
  auto const count = [&](char const* name, auto& value, std::int32_t lowest, char const* what) {
    return add(name, value, "N", what)->check(text::whole(static_cast<std::uint64_t>(lowest), many));
  };
  add("DECODER", o.decoder, "FILE", "model.onnx, decoder_model_merged.onnx or decoder_with_past_model.onnx")
      ->required();
  add("--first", o.first, "FILE", "decoder_model.onnx: the decoder without a past, if DECODER needs one");
  add("--encoder", o.encoder, "FILE", "encoder_model.onnx: lines are sources then, else prompts");
  add("--layer", o.layer, "FILE", "the last product, if tools/onnx-cut has cut it off DECODER");
  add("--input", o.input, "FILE", "lines (standard input)");
  add("--pieces", o.pieces, "FILE", "SentencePiece model: lines are text then, else numbers of tokens");
  count("--bos", o.model.bos, 0, "fed before an output, or a prompt (0)");
  add("--eos", o.model.eos, "N", "ends an output, and a source; may be repeated");
  add("--never", o.model.never, "N", "never generated; may be repeated");
  count("--size", o.model.size, 1, "tokens of the vocabulary (as many as the graph's answer has numbers)");
  count("--context", o.model.length, 1, "tokens that the decoder can hold");
  add("--tokens", o.model.tokens, "NAME", "input of tokens (input_ids)");
  add("--answer", o.model.answer, "NAME", "output that answers (logits; with --layer hidden_states)");
  add("--state", states, "IN=OUT", "an input and the output that is its next value; may be repeated");
  count("--width", o.width, 1, "hypotheses in the beam; 1: greedy (1)");
  count("--n-best", o.n_best, 1, "number of outputs of a line (1)");
  count("--max-length", o.max_length, 1, "maximum number of tokens of an output (64)");
  app.add_flag("--sample", o.sample, "draw outputs instead");
  add("--temperature", o.temperature, "X", "of samples (1)")
      ->check(text::number<float>([](float x) { return x > 0; }, " > 0"));
  count("--top-k", o.top_k, 0, "draw from the N most probable tokens; 0: from all (0)");
  add("--top-p", o.top_p, "X", "draw from the most probable tokens that hold X (1)")
      ->check(text::number<float>([](float x) { return x >= 0 && x <= 1; }, " in [0, 1]"));
  add("--seed", o.seed, "N", "of samples (0)");
  count("--batch", o.batch, 1, "lines decoded together (16)");
  app.add_flag("--streaming", o.streaming, "continuous batching: admit lines as others end");
  count("--threads", o.threads, 1, "of ONNX Runtime (1)");
  app.add_flag("--scores", o.scores, "print scores before outputs");
  if (!app.read(argc, argv)) return std::nullopt;
  for (auto const& state : states) {
    auto const at = state.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == state.size())
      throw text::InputError("--state: '" + state + "' is not IN=OUT");
    o.model.states.emplace_back(state.substr(0, at), state.substr(at + 1));
  }
  if (!o.sample && o.n_best > o.width)
    throw text::InputError("--n-best = " + std::to_string(o.n_best) + ": must be at most --width, " +
                           std::to_string(o.width) + ", or needs --sample");
  if (o.sample && o.width > 1) throw text::InputError("--width and --sample: one of them");
  return o;
}

}  // namespace onnx_generate
