// SPDX-License-Identifier: Apache-2.0
/// \file
/// The graphs that tools/onnx_models.py writes, loaded by ONNX Runtime.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/engine/onnxruntime.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <onnxruntime_cxx_api.h>
#include <string>
#include <vector>

namespace sluice::test {

inline std::filesystem::path onnx_folder() { return SLUICE_ONNX_MODELS; }

/// Whether there are no graphs; says so.
inline bool no_onnx() {
  if (!onnx_folder().empty()) return false;
  std::cout << "\nSKIPPED: no graphs for ONNX Runtime: python3-onnx was not there to write them\n";
  return true;
}

inline Ort::Env const& onnx_environment() {
  static Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);  // errors are thrown, too
  return environment;
}

/// A graph below the folder, loaded once, for one thread.
inline OnnxGraph const& onnx_graph(std::string const& file) {
  static std::map<std::string, OnnxGraph> graphs;
  auto& graph = graphs[file];
  if (!graph.session) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    graph = load_onnx(onnx_environment(), onnx_folder() / file, options);
    graph.name = file;
  }
  return graph;
}

/// The shipped Transformer. \param merged  as one graph with two branches, else as two
inline OnnxGraphs onnx_transformer(bool merged = true, std::string const& folder = "transformer") {
  auto const encoder = onnx_graph(folder + "/encoder_model.onnx");
  if (merged) return {.decoder = onnx_graph(folder + "/decoder_model_merged.onnx"), .encoder = encoder};
  return {.decoder = onnx_graph(folder + "/decoder_with_past_model.onnx"),
          .first = onnx_graph(folder + "/decoder_model.onnx"),
          .encoder = encoder};
}
inline OnnxOptions onnx_transformer_options() {
  return {.bos = 1, .eos = {2}, .never = {0, 1}, .size = 8000, .length = 512};
}

/// The options of tiny and gru: bos and eos are never generated, so that all outputs are of one length.
inline OnnxOptions onnx_drawn_options() { return {.bos = 0, .never = {0, 1}}; }

/// What numpy has computed in float64, for all variants of tiny, too.
inline nlohmann::json onnx_expected(std::string const& model) {
  auto const name = model.substr(0, model.find('_'));
  return nlohmann::json::parse(std::ifstream(onnx_folder() / "expected.json")).at(name);
}

/// The sources of tests/references/sample.json, 60 German sentences, without eos.
inline std::vector<std::vector<Token>> onnx_sources() {
  auto const file = nlohmann::json::parse(std::ifstream(SLUICE_SOURCE_DIR "/tests/references/sample.json"));
  std::vector<std::vector<Token>> sources;
  for (auto const& sentence : file.at("sentences")) sources.push_back(sentence.at("source").get<std::vector<Token>>());
  return sources;
}
inline std::vector<std::vector<Token>> with_eos(std::vector<std::vector<Token>> sources) {
  for (auto& source : sources) source.push_back(2);
  return sources;
}

}  // namespace sluice::test
