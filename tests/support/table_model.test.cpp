// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>

#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("the table is the one that the reference cases were made with", "[table_model]") {
  std::ifstream stream(SLUICE_SOURCE_DIR "/tests/oracles/check_values.json");
  auto const values = nlohmann::json::parse(stream);

  for (auto const& [key, value] : values["mix"].items()) {
    auto const expected = std::stoull(value.get<std::string>(), nullptr, 16);
    CHECK(hash_mix(std::stoull(key)) == expected);
    CHECK(sluice::mix(std::stoull(key)) == expected);
  }

  auto const& model = values["model"];
  Table const table{.size = model["V"].get<std::int32_t>(),
                    .scale = model["scale"].get<double>(),
                    .eos_bias = model["eos_bias"].get<double>(),
                    .eos_slope = model["eos_slope"].get<double>(),
                    .order = model["order"].get<std::int32_t>()};
  std::vector<double> line(static_cast<std::size_t>(table.size));
  for (auto const& row : values["rows"]) {
    auto const seed = row["seed"].get<std::uint64_t>();
    auto const prefix = row["prefix"].get<std::vector<Token>>();
    auto const& expected = row["logp"];
    REQUIRE(expected.size() == line.size());
    table.log_probs(seed, prefix, line);
    for (std::size_t v = 0; v < line.size(); ++v)
      if (expected[v].is_null()) CHECK(line[v] == -std::numeric_limits<double>::infinity());
      else CHECK_THAT(line[v], WithinAbs(expected[v].get<double>(), 1e-12));  // the same doubles, summed in one order

    // The model gives the same numbers, rounded to float, whichever way the tokens come.
    TableModel<Abilities{.blocks = true}> whole(table, {.kind = Kind::log_probs});
    std::vector<Token> tokens{bos};
    tokens.insert(tokens.end(), prefix.begin(), prefix.end());
    std::vector<std::uint64_t const*> const sources{&seed};
    std::vector<Slot> const slots{3};
    whole.start(sources, slots);
    std::vector<Row> const rows{{3, 3, 0, tokens, 1}};
    auto const answer = whole.step(rows);
    REQUIRE(answer.rows == 1);
    for (std::size_t v = 0; v < line.size(); ++v) CHECK(answer[0][v] == static_cast<float>(line[v]));
  }
}
