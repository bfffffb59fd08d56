// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random lines and queries with every field, for code that answers them on a device, emulated or not.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/scores.cuh>

#include <support/line_cases.hpp>
#include <support/line_reference.hpp>
#include <support/random_query.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace sluice::test {

/// The lines of a LineCase, most with queries that one pass cannot answer.
/// \tparam T  of the scores
template <class T>
struct SelectionCase {
  using Format = cuda::detail::FormatOf<T>;
  using Bits = typename Format::Bits;

  SelectionCase(std::uint64_t seed, std::size_t most, std::size_t rows) : lines(seed, most, rows) {
    lines.tokens.clear();
    for (auto& query : lines.queries) {
      if (lines.one_of(4)) continue;  // one pass can answer it
      query = made.emplace_back(std::make_unique<RandomQuery>(lines.random, lines.size))->query;
    }
  }

  /// A copy of the scores' memory, aligned as on a device.
  std::vector<cuda::detail::Words> words() const {
    std::vector<cuda::detail::Words> memory((lines.memory.size() * sizeof(Bits) + 15) / 16);
    std::memcpy(memory.data(), lines.memory.data(), lines.memory.size() * sizeof(Bits));
    return memory;
  }
  /// \param memory  the copy's address
  cuda::Scores<T> scores(void const* memory) const {
    cuda::Scores<T> scores;
    scores.data = reinterpret_cast<T const*>(lines.lines(static_cast<Bits const*>(memory)));
    scores.rows = static_cast<std::ptrdiff_t>(lines.rows), scores.columns = static_cast<std::ptrdiff_t>(lines.size);
    scores.stride = static_cast<std::ptrdiff_t>(lines.stride);
    return scores;
  }

  void check(std::size_t row, Line answer) const {
    auto const x = lines.line(row);
    auto const& query = lines.queries[row];
    check_line(answer, expected_line<float>(x, Kind::logits, query), query);
    if (!query.entropy) CHECK(answer.entropy == 0);
  }

  LineCase<Format> lines;
  std::vector<std::unique_ptr<RandomQuery>> made;
};

}  // namespace sluice::test
