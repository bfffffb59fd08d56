// SPDX-License-Identifier: Apache-2.0
// onnx_generate: prompts in, continuations out, or sources in and translations out, by graphs of ONNX Runtime.
#include <sluice/engine/onnxruntime.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/sluice.hpp>

#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <memory>
#include <onnxruntime/options.hpp>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace onnx_generate {

namespace {

using sluice::Token;

/// Lines as tokens and back: text, or numbers with spaces between.
class Spelling {
 public:
  explicit Spelling(std::filesystem::path const& pieces) {
    if (!pieces.empty()) tokenizer_ = std::make_unique<translate::Tokenizer>(pieces);
  }
  std::vector<Token> tokens(std::string const& line, std::string const& where) const {
    if (tokenizer_) return tokenizer_->encode(line);
    std::vector<Token> result;
    auto const* const end = line.data() + line.size();
    for (auto const* at = line.data(); at != end;) {
      if (*at == ' ') {
        ++at;
        continue;
      }
      Token token = 0;
      auto const [rest, error] = std::from_chars(at, end, token);
      if (error != std::errc() || token < 0 || (rest != end && *rest != ' '))
        throw text::InputError(where + ": is not numbers of tokens, with spaces between");
      result.push_back(token), at = rest;
    }
    return result;
  }
  std::string text(std::span<Token const> tokens) const {
    if (tokenizer_) return tokenizer_->decode(tokens);
    std::string result;
    for (auto const token : tokens) result.append(result.empty() ? "" : " ").append(std::to_string(token));
    return result;
  }

 private:
  std::unique_ptr<translate::Tokenizer> tokenizer_;
};

/// What a line asks for: a source, or a prompt.
template <class Model, class Search>
sluice::Request<typename Model::Source, Search> request(Options const& options, std::vector<Token> tokens) {
  if constexpr (std::is_same_v<typename Model::Source, std::vector<Token>>) {
    if (!options.model.eos.empty()) tokens.push_back(options.model.eos.front());
    return {.source = std::move(tokens)};
  } else {
    tokens.insert(tokens.begin(), options.model.bos);
    return {.prompt = std::move(tokens)};
  }
}

template <class Model, class Search, class... Expander>
int run(Options const& options, Model& model, Search const& search, Expander const&... expander) {
  Spelling const spelling(options.pieces);
  auto const name = options.input.empty() ? "standard input" : options.input.string();
  auto const lines = options.input.empty() ? text::read_lines(std::cin, name) : text::read_lines(options.input);
  std::vector<sluice::Request<typename Model::Source, Search>> requests;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    requests.push_back(request<Model, Search>(options, spelling.tokens(lines[i], name + ":" + std::to_string(i + 1))));
    requests.back().seed = options.seed + i;
  }
  auto const results =
      options.streaming ? sluice::decode(model, requests, search,
                                         sluice::Streaming{.size = options.batch, .refill_below = 1}, expander...)
                        : sluice::decode(model, requests, search, sluice::Batched{.size = options.batch}, expander...);
  auto failed = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      std::fprintf(stderr, "onnx_generate: line %zu: %s\n", i + 1, results[i].message.c_str());
      std::printf("\n");
      failed = true;
      continue;
    }
    for (auto const& hypothesis : results[i].hypotheses) {
      std::span<Token const> tokens(hypothesis.tokens);
      if (!tokens.empty() && model.vocabulary().ends(tokens.back())) tokens = tokens.first(tokens.size() - 1);
      if (options.scores) std::printf("%.6f\t", hypothesis.score);
      std::printf("%s\n", spelling.text(tokens).c_str());
    }
  }
  return failed ? 1 : 0;
}

template <class Model, class... Expander>
int search(Options const& options, Model& model, Expander const&... expander) {
  if (options.sample)
    return run(options, model,
               sluice::Sample{.temperature = options.temperature,
                              .top_k = options.top_k,
                              .top_p = options.top_p,
                              .samples = options.n_best,
                              .length = {.max = options.max_length}},
               expander...);
  return run(
      options, model,
      sluice::BeamSearch{.width = options.width, .n_best = options.n_best, .length = {.max = options.max_length}},
      expander...);
}

int generate(Options options) {
  Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);  // errors are thrown, too
  Ort::SessionOptions settings;
  settings.SetIntraOpNumThreads(options.threads);
  auto const load = [&](std::filesystem::path const& file) {
    return file.empty() ? sluice::OnnxGraph{} : sluice::load_onnx(environment, file, settings);
  };
  sluice::OnnxGraphs const graphs{
      .decoder = load(options.decoder), .first = load(options.first), .encoder = load(options.encoder)};
  if (options.layer.empty()) {
    if (graphs.encoder.session) {
      sluice::OnnxEncoderDecoder model(graphs, options.model);
      return search(options, model);
    }
    sluice::OnnxDecoder model(graphs, options.model);
    return search(options, model);
  }
  auto const layer = sluice::onnx_output(load(options.layer));
  if (options.model.size == 0) options.model.size = static_cast<Token>(layer.weights().rows);
  sluice::DenseProjection const projection(layer.weights(), layer.bias);
  if (graphs.encoder.session) {
    sluice::OnnxEncoderDecoder<sluice::Hidden<float>> model(graphs, options.model);
    return search(options, model, projection);
  }
  sluice::OnnxDecoder<sluice::Hidden<float>> model(graphs, options.model);
  return search(options, model, projection);
}

}  // namespace

}  // namespace onnx_generate

int main(int argc, char** argv) {
  return text::run_program("onnx_generate", [&]() -> int {
    auto const options = onnx_generate::parse(argc, argv);
    return options ? onnx_generate::generate(*options) : 0;
  });
}
