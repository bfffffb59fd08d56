// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the checks of all reference files share.
#pragma once

#include <sluice/core/result.hpp>

#include <support/slot_checker.hpp>
#include <support/table_model.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <oracle_check/report.hpp>
#include <string>
#include <vector>

namespace oracle_check {

using sluice::Token;
using Json = nlohmann::json;

/// The scores of the references are doubles, ours are sums of floats.
inline constexpr double tolerance = 1e-4;

inline sluice::test::Table table(Json const& model) {
  return {.size = model.at("V").get<std::int32_t>(),
          .scale = model.at("scale").get<double>(),
          .eos_bias = model.at("eos_bias").get<double>(),
          .eos_slope = model.at("eos_slope").get<double>(),
          .order = model.at("order").get<std::int32_t>()};
}

/// A table that refuses any row that breaks the contract of slots.
using CheckedTable = sluice::test::SlotChecker<sluice::test::TableModel<>>;

inline CheckedTable model(Json const& parameters, sluice::test::TableOptions const& options = {}) {
  return CheckedTable(sluice::test::TableModel<>(table(parameters), options));
}

inline std::string text(std::vector<Token> const& tokens) {
  std::string result = "[";
  for (auto t : tokens) result.append(result.size() > 1 ? " " : "").append(std::to_string(t));
  return result + "]";
}
inline std::string text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6f", x);
  return buffer;
}

/// One expected hypothesis of an n-best list.
struct Expected {
  std::vector<Token> tokens;
  double score;
};

inline std::vector<Expected> expected(Json const& list) {
  std::vector<Expected> result;
  for (auto const& h : list) result.push_back({h.at("tokens").get<std::vector<Token>>(), h.at("score").get<double>()});
  return result;
}

/// What differs between a result and an expected n-best list.
inline std::vector<std::string> compare(sluice::Result const& result, std::vector<Expected> const& expected) {
  std::vector<std::string> problems;
  if (!result.ok()) problems.push_back(std::string("failure ") + name(result.failure) + ": " + result.message);
  if (result.hypotheses.size() != expected.size())
    problems.push_back(std::to_string(expected.size()) + " hypotheses expected, " +
                       std::to_string(result.hypotheses.size()) + " found");
  for (std::size_t i = 0; i < expected.size() && i < result.hypotheses.size(); ++i) {
    auto const& e = expected[i];
    auto const& h = result.hypotheses[i];
    if (h.tokens == e.tokens && std::abs(h.score - e.score) <= tolerance) continue;
    problems.push_back("hypothesis " + std::to_string(i) + ": expected " + text(e.tokens) + " " + text(e.score) +
                       ", found " + text(h.tokens) + " " + text(h.score));
  }
  return problems;
}

}  // namespace oracle_check
