// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/output.md.
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/precision.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/sluice.hpp>

#include "typist.hpp"

#include <Eigen/Core>

#include <cstddef>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The keyboard as a matrix.
struct Layer {
  std::vector<float> weights, bias;  // [28, 2] and [28]
  Layer() {
    for (sluice::Token token = 0; token < 28; ++token) {
      auto const [x, y] = Typist::key(token);
      weights.insert(weights.end(), {4 * x, 4 * y});
      bias.push_back(-2 * (x * x + y * y));
    }
  }
  sluice::MatrixView<float const> view() const { return {weights.data(), 28, 2, 2}; }
};

void print(std::span<sluice::Result const> results) {
  for (auto const& result : results)
    for (auto const& hypothesis : result.hypotheses)
      std::printf("%s %.3f\n", Typist::text(hypothesis.tokens).c_str(), hypothesis.log_prob);
}

void scores() {
  // [scores]
  std::vector<Eigen::bfloat16> const logits{Eigen::bfloat16(1.5f), Eigen::bfloat16(0.5f), Eigen::bfloat16(-2.0f)};
  std::vector<float> const bias{0, 1, 0};
  std::vector<sluice::Token> const probes{2};
  sluice::Query const query{.best = 2, .probes = probes};

  sluice::LogSoftmaxTopK output(bias);
  auto const answer = output.expand(sluice::scores(logits.data(), 1, 3), {&query, 1}, {});
  for (auto const& candidate : answer[0].best) std::printf("token %d %.3f\n", candidate.token, candidate.log_prob);
  std::printf("token 2 %.3f\n", answer[0].probes[0]);
  // [/scores]
}

void precision() {
  Layer const layer;
  Typist model;
  std::vector<std::string> const sources{"beam"};
  // [precision]
  sluice::DenseProjection const output(layer.view(), layer.bias, sluice::Precision::int8);
  print(sluice::decode(model, sources, sluice::BeamSearch{.width = 3, .n_best = 3}, sluice::Batched{}, output));
  // [/precision]
}

void clustered() {
  Layer const layer;
  Typist model;
  std::vector<std::string> const text{"the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"};
  std::vector<std::string> const sources{"sluice"};
  sluice::BeamSearch const search{.width = 2};
  // [clustered]
  // Once: decode unlabelled text, record, train.
  sluice::DenseProjection const full(layer.view(), layer.bias);
  sluice::ClusterSamples samples({.hidden_size = 2, .vocabulary_size = 28, .likely = 3});
  sluice::decode(model, text, search, sluice::Batched{}, sluice::RecordHidden(full, samples));
  auto const clusters = sluice::train_clusters(samples, {.clusters = 8, .likely = 3});

  // From then on: project onto the tokens in the clusters of a sentence's hypotheses.
  sluice::ClusteredProjection const output(layer.view(), layer.bias, clusters, {.always = {1}});
  sluice::Decoder decoder(model, search, sluice::Batched{}, output);
  decoder.submit({.source = sources[0]});
  while (decoder.step()) {
  }
  sluice::Result result;
  while (decoder.poll(result)) print({&result, 1});
  std::printf("%.0f %% of the keys\n", 100 * decoder.expander().statistics().active_share(28));
  // [/clustered]
}

void shortlist() {
  Layer const layer;
  Typist model;
  // [shortlist]
  // The keys that a letter may become: 4 is c, 20 s, 16 o.
  std::vector<sluice::LexicalEntry> const table{{4, 4, 0.9f}, {4, 20, 0.1f}, {16, 16, 1}};
  sluice::LexicalShortlist const lexicon(table, 28, 28, 2);  // and tokens 0 and 1, always

  sluice::ShortlistProjection const output(layer.view(), layer.bias);
  std::vector<sluice::Token> const letters{4, 16, 4, 16};
  sluice::Decoder decoder(model, sluice::BeamSearch{.width = 2, .n_best = 2}, sluice::Batched{}, output);
  decoder.submit({.source = "coco", .shortlist = lexicon(letters)});
  // [/shortlist]
  while (decoder.step()) {
  }
  sluice::Result result;
  while (decoder.poll(result)) print({&result, 1});
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const only = argc > 1 ? argv[1] : "";
  auto const show = [&](std::string_view name, void (*part)()) {
    if (only.empty() || only == name) part();
  };
  show("scores", scores);
  show("precision", precision);
  show("clustered", clustered);
  show("shortlist", shortlist);
  return 0;
}
