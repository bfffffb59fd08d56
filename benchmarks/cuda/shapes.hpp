// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shapes to measure, the most informative first.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <record.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sluice::bench {

/// \param which  "usual"; "all": then also every combination of the axes; "smoke": a few small ones
inline std::vector<Shape> shapes(std::string_view which) {
  using enum Type;
  if (which == "smoke")
    return {{.experiment = "peers", .rows = 5, .columns = 3001, .k = 5, .beams = 5},
            {.experiment = "peers", .rows = 8, .columns = 3000, .k = 8, .type = bfloat16, .beams = 4},
            {.experiment = "fused", .rows = 10, .columns = 3001, .k = 5, .beams = 5, .bias = true},
            {.experiment = "share", .rows = 3, .columns = 3001, .k = 64, .type = float16},
            {.experiment = "data", .rows = 3, .columns = 3001, .k = 50, .data = "masked"}};
  if (which != "usual" && which != "all")
    throw std::invalid_argument("--shapes: smoke, usual or all, not " + std::string(which));

  std::vector<Shape> some{
      {.experiment = "peers", .rows = 1, .columns = 128256, .k = 1, .type = bfloat16, .beams = 1},
      {.experiment = "peers", .rows = 1, .columns = 128256, .k = 5, .type = bfloat16, .beams = 1},
      {.experiment = "peers", .rows = 5, .columns = 32000, .k = 5, .beams = 5},
      {.experiment = "peers", .rows = 64, .columns = 128256, .k = 8, .type = bfloat16, .beams = 8},
      {.experiment = "peers", .rows = 320, .columns = 32000, .k = 5, .beams = 5},
      {.experiment = "peers", .rows = 320, .columns = 32000, .k = 50, .beams = 32},
      {.experiment = "peers", .rows = 320, .columns = 250000, .k = 5, .beams = 5},
      {.experiment = "peers", .rows = 320, .columns = 250000, .k = 50, .beams = 32},
      {.experiment = "peers", .rows = 4096, .columns = 32000, .k = 4, .type = bfloat16, .beams = 4},
      // "Faster Neural Machine Translation Inference", tables 2 and 3: V = 85,000, 128 sentences.
      {.experiment = "fused", .rows = 128, .columns = 85000, .k = 1, .beams = 1, .bias = true},
      {.experiment = "fused", .rows = 640, .columns = 85000, .k = 5, .beams = 5, .bias = true},
  };
  // More than 100 MB: measures the share of the copy's bandwidth, for any k and type.
  for (auto const type : {float32, float16, bfloat16})
    for (auto const k : {1, 5, 10, 32, 50, 64})
      some.push_back({.experiment = "share", .rows = 320, .columns = 250000, .k = k, .type = type});
  for (auto const type : {float32, float16, bfloat16})  // 41 MB: where that share begins to count
    some.push_back(
        {.experiment = "share", .rows = type == float32 ? 320 : 640, .columns = 32000, .k = 10, .type = type});
  for (auto const type : {float32, float16, bfloat16})  // unaligned lines
    for (auto const k : {1, 5, 64})
      some.push_back({.experiment = "share", .rows = 1024, .columns = 50257, .k = k, .type = type});
  for (auto const k : {5, 50})
    for (auto const* const data : {"normal", "ascending", "equal", "masked"})
      some.push_back({.experiment = "data", .rows = 320, .columns = 32000, .k = k, .data = data});
  if (which == "all")
    for (auto const rows : {1, 5, 40, 64, 320, 1024, 4096})
      for (auto const columns : {8000, 32000, 50257, 128256, 250001})
        for (auto const type : {float32, float16, bfloat16})
          for (auto const k : {1, 5, 10, 32, 50, 64})
            some.push_back({.experiment = "all", .rows = rows, .columns = columns, .k = k, .type = type});
  return some;
}

/// A single shape, for a profiler: takes --rows, --columns, --k and --type out of a program's arguments.
/// \throws std::invalid_argument  if some of them are missing or invalid
inline std::optional<Shape> take_shape(std::vector<char*>& arguments) {
  using enum Type;
  Shape shape{.experiment = "all", .rows = 0, .columns = 0, .k = 0};
  auto found = false;
  for (std::size_t i = 1; i < arguments.size();) {
    std::string const argument = arguments[i];
    if (argument != "--rows" && argument != "--columns" && argument != "--k" && argument != "--type") {
      ++i;
      continue;
    }
    if (i + 1 == arguments.size()) throw std::invalid_argument(argument + ": a value is missing");
    std::string const value = arguments[i + 1];
    auto const number = [&](auto& to) {
      std::int32_t n = 0;
      auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
      if (error != std::errc() || end != value.data() + value.size() || n < 1)
        throw std::invalid_argument(argument + ": a number from 1 on, not " + value);
      to = n;
    };
    if (argument == "--rows") number(shape.rows);
    else if (argument == "--columns") number(shape.columns);
    else if (argument == "--k") number(shape.k);
    else if (value == "float32") shape.type = float32;
    else if (value == "float16") shape.type = float16;
    else if (value == "bfloat16") shape.type = bfloat16;
    else throw std::invalid_argument("--type: float32, float16 or bfloat16, not " + value);
    found = true;
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.begin() + static_cast<std::ptrdiff_t>(i) + 2);
  }
  if (!found) return {};
  if (shape.rows == 0 || shape.columns == 0 || shape.k == 0)
    throw std::invalid_argument("--rows, --columns and --k make a shape together");
  if (shape.k > shape.columns) throw std::invalid_argument("--k: more than --columns");
  return shape;
}

}  // namespace sluice::bench
