// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>
#include <sluice/core/request.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/ctranslate2.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>

#include <ctranslate2/decoding.hpp>

namespace translate_ct2 {

namespace {

using Sources = std::vector<std::vector<sluice::Token>>;

template <class Model, class Search, class Expander>
std::vector<sluice::Result> scheduled(Options const& options, Model& model, Sources const& sources,
                                      Search const& search, Expander const& expander) {
  std::vector<sluice::Request<std::vector<sluice::Token>, Search>> requests;
  for (auto const& source : sources)
    requests.push_back({.source = source, .seed = sluice::derive(options.seed, requests.size())});
  if (options.streaming)
    return sluice::decode(model, requests, search, sluice::Streaming{.size = options.batch}, expander);
  return sluice::decode(model, requests, search, sluice::Batched{.size = options.batch}, expander,
                        sluice::Intake{.window = 64 * options.batch});
}

template <class Model, class Expander>
std::vector<sluice::Result> searched(Options const& options, Model& model, Sources const& sources,
                                     Expander const& expander) {
  auto const length = sluice::LengthLimits{.min = 1, .max = options.max_length};
  switch (options.search) {
    case SearchName::greedy: {
      auto search = sluice::presets::ctranslate2_greedy(options.length_penalty);
      search.length = length;
      return scheduled(options, model, sources, search, expander);
    }
    case SearchName::sample:
      return scheduled(options, model, sources,
                       sluice::Sample{.temperature = options.temperature,
                                      .top_k = options.top_k,
                                      .top_p = options.top_p,
                                      .samples = options.n_best,
                                      .length = length},
                       expander);
    case SearchName::beam: break;
  }
  auto search = sluice::presets::ctranslate2(options.width, options.length_penalty);
  search.length = length, search.n_best = options.n_best;
  return scheduled(options, model, sources, search, expander);
}

template <class Model>
Sources tokens_of(Model const& model, std::vector<std::vector<std::string>> const& sentences) {
  Sources sources;
  for (auto const& pieces : sentences) sources.push_back(model.source_tokens(pieces));
  return sources;
}

template <class Model>
std::vector<Output> told(Model const& model, std::vector<sluice::Result> const& results) {
  std::vector<Output> outputs;
  for (auto const& result : results) {
    auto& output = outputs.emplace_back();
    if (!result.ok()) output.problem = std::string(sluice::name(result.failure)) + ": " + result.message;
    for (auto const& hypothesis : result.hypotheses) {
      output.pieces.push_back(model.pieces(hypothesis.tokens));
      output.scores.push_back(hypothesis.score);
    }
  }
  return outputs;
}

}  // namespace

std::vector<Output> decode_all(Options const& options, std::shared_ptr<ctranslate2::models::Model const> const& loaded,
                               std::vector<std::vector<std::string>> const& sentences) {
  if (!options.precision) {
    sluice::CTranslate2Logits model(loaded);
    return told(model, searched(options, model, tokens_of(model, sentences), sluice::LogSoftmaxTopK()));
  }
  // [hidden]
  sluice::CTranslate2 model(loaded);
  auto const layer = model.output();
  sluice::DenseProjection const projection(layer.weights(), layer.bias, *options.precision);
  // [/hidden]
  return told(model, searched(options, model, tokens_of(model, sentences), projection));
}

}  // namespace translate_ct2
