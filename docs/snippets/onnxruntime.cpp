// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/onnxruntime.md and docs/whisper.md: onnxruntime FOLDER [WHISPER], which tools/onnx_models.py and
// tools/fetch-whisper have written. Prints tokens.
// [include]
#include <sluice/engine/onnxruntime.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/sluice.hpp>
// [/include]
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/whisper.hpp>
#include <sluice/search/presets.hpp>

#include <filesystem>
#include <iostream>
#include <variant>
#include <vector>

namespace {

void print(std::vector<sluice::Result> const& results) {
  for (auto const& result : results) {
    if (!result.ok()) std::cout << result.message;
    else
      for (auto const token : result.hypotheses[0].tokens) std::cout << token << ' ';
    std::cout << '\n';
  }
}

void translate(Ort::Env const& environment, std::filesystem::path const& folder) {
  // [translate]
  Ort::SessionOptions settings;  // threads, CUDA: as ONNX Runtime has them
  settings.SetIntraOpNumThreads(1);
  auto const load = [&](char const* file) { return sluice::load_onnx(environment, folder / file, settings); };
  sluice::OnnxEncoderDecoder model(
      {.decoder = load("decoder_model_merged.onnx"), .encoder = load("encoder_model.onnx")},
      {.bos = 1, .eos = {2}, .never = {0, 1}, .length = 512});
  std::vector<std::vector<sluice::Token>> const sources{{408, 459, 2615, 613, 4099, 1435, 2}};  // with its eos
  print(sluice::decode(model, sources, sluice::BeamSearch{.width = 5, .length = {.max = 100}}));
  // [/translate]
}

void cut(Ort::Env const& environment, std::filesystem::path const& folder) {
  Ort::SessionOptions const settings;
  auto const load = [&](char const* file) { return sluice::load_onnx(environment, folder / file, settings); };
  // [cut]
  auto const layer = sluice::onnx_output(load("layer.onnx"));
  sluice::DenseProjection const projection(layer.weights(), layer.bias);
  sluice::OnnxEncoderDecoder<sluice::Hidden<float>> model(
      {.decoder = load("hidden.onnx"), .encoder = load("encoder_model.onnx")},
      {.bos = 1, .eos = {2}, .never = {0, 1}, .size = 8000, .length = 512});
  std::vector<std::vector<sluice::Token>> const sources{{408, 459, 2615, 613, 4099, 1435, 2}};
  print(sluice::decode(model, sources, sluice::Greedy{.length = {.max = 100}}, sluice::Batched{}, projection));
  // [/cut]
}

void prompts(Ort::Env const& environment, std::filesystem::path const& file) {
  // [prompts]
  sluice::OnnxDecoder model({.decoder = sluice::load_onnx(environment, file)}, {.bos = 0, .never = {0, 1}});
  std::vector<sluice::Request<std::monostate, sluice::Sample>> requests{{.prompt = {0, 5, 9}}, {.prompt = {0, 7}}};
  print(sluice::decode(model, requests, sluice::Sample{.top_p = 0.9f, .length = {.max = 8}}));
  // [/prompts]
}

void whisper(Ort::Env const& environment, std::filesystem::path const& folder) {
  Ort::SessionOptions const settings;
  auto const load = [&](char const* file) { return sluice::load_onnx(environment, folder / file, settings); };
  sluice::OnnxNumbers const features(80 * 3000);
  std::vector<sluice::Token> const suppressed{1, 2, 7, 50258, 50358, 50359, 50360, 50361, 50362};
  // [whisper]
  sluice::OnnxEncoderDecoder<sluice::Scores<float>, sluice::OnnxNumbers> model(
      {.decoder = load("decoder_model.onnx"), .encoder = load("encoder_model.onnx")},
      {.bos = 50258,
       .eos = {50257},
       .length = 448,
       .abilities = sluice::Abilities{.ragged = true, .blocks = true, .roll_back = true}});
  auto search = sluice::presets::ctranslate2(5);
  search.length = {.max = 224};
  std::vector<sluice::Request<sluice::OnnxNumbers, sluice::BeamSearch>> requests{
      {.source = features,               // [80, 3000]
       .prompt = {50258, 50259, 50359},  // <|startoftranscript|>, <|en|>, <|transcribe|>
       .processors = {sluice::ForbidTokens{suppressed}, sluice::ForbidFirst{{220, 50257}},
                      sluice::WhisperTimestamps{.no_timestamps = 50363}}}};
  print(sluice::decode(model, requests, search));
  // [/whisper]
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: onnxruntime FOLDER [WHISPER]\n";
    return 2;
  }
  std::filesystem::path const folder = argv[1];
  Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);
  translate(environment, folder / "transformer");
  cut(environment, folder / "transformer");
  prompts(environment, folder / "tiny/model.onnx");
  prompts(environment, folder / "gru/model.onnx");
  if (argc == 3) whisper(environment, argv[2]);
}
