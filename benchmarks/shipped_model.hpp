// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shipped model and sentences for benchmarks. Sentences: the repository's sample, or the file that the environment
/// variable SLUICE_SENTENCES names (one sentence a line); weights: the folder SLUICE_MODEL, or the shipped ones.
#pragma once

#include <sluice/output/dense_projection.hpp>

#include <transformer/transformer.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

namespace example = sluice::example;
using Sentence = std::vector<sluice::Token>;

struct Data {
  std::shared_ptr<example::Weights const> weights;
  std::unique_ptr<sluice::DenseProjection> projection;
  std::vector<Sentence> sentences;  // short ones first
  std::vector<Sentence> unsorted;   // in the order of the file
  double parameters = 0;            // touched by one row of a decoder step
};

inline Data const& data() {
  static auto const all = [] {
    auto const* model = std::getenv("SLUICE_MODEL");
    auto const* text = std::getenv("SLUICE_SENTENCES");
    std::filesystem::path const shipped = SLUICE_SOURCE_DIR "/examples/apps/translate";
    std::filesystem::path const folder = model != nullptr ? model : shipped / "model";
    Data d;
    d.weights = example::Weights::load(folder / "model.safetensors");
    d.projection = std::make_unique<sluice::DenseProjection>(d.weights->projection(), d.weights->bias);
    translate::Tokenizer const tokenizer(folder / "spm.model");
    std::ifstream file(text != nullptr ? text : shipped / "sample.de");
    for (std::string line; std::getline(file, line);)
      if (auto tokens = tokenizer.encode(line); !tokens.empty()) d.sentences.push_back(std::move(tokens));
    d.unsorted = d.sentences;
    std::ranges::stable_sort(d.sentences, {}, &Sentence::size);
    auto const width = static_cast<double>(d.weights->d), inner = 4 * width;
    d.parameters = static_cast<double>(d.weights->decoder.size()) * (6 * width * width + 2 * width * inner) +
                   static_cast<double>(d.weights->vocabulary.size) * width;
    return d;
  }();
  return all;
}

}  // namespace bench
