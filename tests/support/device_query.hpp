// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random queries for a device.
#pragma once

#include <sluice/core/query.hpp>

#include <support/random_query.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace sluice::test {

/// A query that a device answers in one pass, with what it points to.
inline std::unique_ptr<RandomQuery> device_query(std::mt19937_64& random, std::size_t size, std::int32_t most) {
  auto made = std::make_unique<RandomQuery>(random, size, QueryFields{.selection = false, .only = false});
  auto& query = made->query;
  query.best = std::min(query.best, most);
  if (query.stage == Stage::after_softmax)
    for (auto& edit : made->edits) edit.penalty = 1;
  return made;
}

struct Queries {
  Queries(std::mt19937_64& random, std::size_t lines, std::size_t size, std::int32_t most) {
    for (std::size_t i = 0; i < lines; ++i) {
      made.push_back(device_query(random, size, most));
      queries.push_back(made.back()->query);
    }
  }
  /// Some queries also take a second pass over their lines.
  Queries(std::mt19937_64& random, std::size_t lines, std::size_t size, QueryFields const& fields) {
    for (std::size_t i = 0; i < lines; ++i)
      queries.push_back(made.emplace_back(std::make_unique<RandomQuery>(random, size, fields))->query);
  }
  std::vector<std::unique_ptr<RandomQuery>> made;
  std::vector<Query> queries;
};

}  // namespace sluice::test
