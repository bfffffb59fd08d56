// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <semantic_parser/data.hpp>
#include <semantic_parser/model.hpp>
#include <semantic_parser/weights.hpp>
#include <string>
#include <vector>

using namespace sluice;
using namespace semantic_parser;

TEST_CASE("encoder state and first log-probabilities are those of the authors' program", "[semantic_parser]") {
  auto const shared = std::filesystem::path(SLUICE_SHARED_DIR) / "semantic_parsing";
  if (!std::filesystem::exists(shared)) {
    std::cout << "SKIPPED: " << shared << " is missing\n";
    return;
  }
  for (auto const* const name : {"jobs", "geo"}) {
    INFO(name);
    Data const data(shared / name);
    std::ifstream stream(shared / name / "check.json");
    auto const expected = nlohmann::json::parse(stream);
    auto const difference = [&](char const* key, float const* numbers, double subtract = 0) {
      double largest = 0;
      for (std::size_t i = 0; i < expected[key].size(); ++i)
        largest =
            std::max(largest, std::abs(static_cast<double>(numbers[i]) - subtract - expected[key][i].get<double>()));
      return largest;
    };

    SemanticParser model(Weights::from(data));
    auto const source = expected["src"].get<std::vector<Token>>();
    std::vector<Token> const* const sources[] = {&source};
    Slot const slots[] = {0};
    model.start(sources, slots);
    auto const encoded = model.encode(sources);
    CHECK(encoded.sources[0]->length == std::ssize(source) + 2);
    CHECK(difference("enc_c", encoded.sources[0]->c.data()) < 1e-4);
    CHECK(difference("enc_h", encoded.sources[0]->h.data()) < 1e-5);

    std::vector<Token> const first{0};
    Row const rows[] = {{0, 0, 0, first}};
    auto const answer = model.step(rows);
    REQUIRE(answer.columns == std::ssize(expected["step0_logp"]));
    double sum = 0;
    for (auto const logit : answer[0]) sum += std::exp(static_cast<double>(logit));
    CHECK(difference("step0_logp", answer[0].data(), std::log(sum)) < 1e-4);
  }
}
