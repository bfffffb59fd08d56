// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed/packed_matrix.hpp>

#include <support/catch.hpp>
#include <transformer/transformer.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::example;

namespace {

/// The largest difference from what the reference says of three sentences, by another implementation.
struct Difference {
  double hidden = 0, log_prob = 0;
  int sentences = 0, tokens_differ = 0;
};

Difference compare(std::filesystem::path const& weights, nlohmann::json const& reference) {
  Transformer model(Weights::load(weights));
  auto const& w = model.weights();
  PackedMatrix const projection(w.projection(), w.bias);
  Difference result;
  for (auto const& check : reference["checks"]) {
    auto source = reference["dev"][check["sentence"].get<std::size_t>()]["source"].get<std::vector<Token>>();
    if (source.back() == 2) source.pop_back();  // the model adds eos itself
    std::vector<Token> const* const sources[] = {&source};
    Slot const slots[] = {0};
    model.start(sources, slots);

    auto const target = check["target"].get<std::vector<Token>>();
    auto const lines = static_cast<std::int32_t>(target.size());
    Row const rows[] = {{0, 0, 0, target, lines}};
    auto const answer = model.step(rows);
    std::vector<float> logits(target.size() * 8000);
    projection.multiply(answer, {logits.data(), lines, 8000, 8000});
    for (std::size_t t = 0; t < target.size(); ++t) {
      auto const vector = answer[static_cast<std::ptrdiff_t>(t)];
      for (std::size_t i = 0; i < check["hidden"][t].size(); ++i)
        result.hidden = std::max(result.hidden, std::abs(vector[i] - check["hidden"][t][i].get<double>()));
      auto const line = std::span(logits).subspan(t * 8000, 8000);
      double sum = 0;
      for (auto const logit : line) sum += std::exp(static_cast<double>(logit));
      auto const best = std::ranges::max_element(line) - line.begin();
      result.tokens_differ += best != check["top5"][t][0][0].get<std::ptrdiff_t>();
      for (auto const& entry : check["top5"][t])
        result.log_prob = std::max(
            result.log_prob, std::abs(line[entry[0].get<std::size_t>()] - std::log(sum) - entry[1].get<double>()));
    }
    ++result.sentences;
  }
  return result;
}

}  // namespace

TEST_CASE("hidden vectors and log-probabilities are those of the reference", "[transformer]") {
  auto const folder = std::filesystem::path(SLUICE_SHARED_DIR) / "model";
  if (!std::filesystem::exists(folder / "reference.json")) {
    std::cout << "SKIPPED: " << folder << " is missing\n";
    return;
  }
  std::ifstream stream(folder / "reference.json");
  auto const reference = nlohmann::json::parse(stream);

  auto const same = compare(folder / "model.safetensors", reference);
  CHECK(same.sentences == 3);
  CHECK(same.hidden < 1e-4);
  CHECK(same.log_prob < 1e-4);
  CHECK(same.tokens_differ == 0);

  // The model of the repository, rounded to halves.
  auto const half =
      compare(std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/translate/model/model.safetensors", reference);
  std::cout << "float: hidden " << same.hidden << ", log_prob " << same.log_prob << "; half: hidden " << half.hidden
            << ", log_prob " << half.log_prob << "\n";
  CHECK(half.hidden < 0.02);
  CHECK(half.log_prob < 0.02);
  CHECK(half.tokens_differ == 0);
}
