// SPDX-License-Identifier: Apache-2.0
/// \file
/// User input: lengths of sentences, costs of a machine.
#pragma once

#include "cost_model.hpp"
#include "script.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace simulation {

/// Unusable input; what() names the option or file, and the value.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The whole of `text` as a number; throws an InputError that begins with `where`.
inline double to_number(std::string const& text, std::string const& where, double least, double most) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (std::exception const&) {
    end = 0;
  }
  if (end == 0 || end != text.size() || !(value >= least && value <= most)) {
    std::ostringstream message;
    message << where << ": '" << text << "' is not a number from " << least << " to " << most;
    throw InputError(message.str());
  }
  return value;
}

namespace detail {

inline std::vector<std::string> words(std::string const& line) {
  std::istringstream stream(line.substr(0, line.find('#')));
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

/// Calls f(words, "OPTION: FILE:LINE") for every non-empty line.
template <class F>
void for_each_line(std::string const& option, std::string const& path, F&& f) {
  std::ifstream file(path);
  if (!file) throw InputError(option + ": cannot read '" + path + "'");
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number)
    if (auto const all = words(line); !all.empty()) f(all, option + ": " + path + ":" + std::to_string(number));
}

}  // namespace detail

/// Reads sentences, one per line: source tokens, steps until it ended and, optionally, the rows of each of its steps
/// (the last number applies to later steps too). Without rows, `width` rows from the second step on. `#` begins a
/// comment.
inline Scripts read_scripts(std::string const& path, std::int32_t width) {
  Scripts scripts;
  detail::for_each_line("--traffic", path, [&](std::vector<std::string> const& words, std::string const& where) {
    auto const whole = [&](std::size_t i, double most) {
      auto const value = to_number(words[i], where, 1, most);
      if (value != std::floor(value)) throw InputError(where + ": '" + words[i] + "' is not a whole number");
      return static_cast<std::int32_t>(value);
    };
    if (words.size() < 2) throw InputError(where + ": '" + words[0] + "' stands alone: SOURCE OUTPUT [ROWS...]");
    Script s{.source = whole(0, 1e6), .output = whole(1, 1e6), .width = width};
    s.first = static_cast<std::uint32_t>(scripts.widths.size());
    s.count = static_cast<std::uint32_t>(words.size() - 2);
    for (std::size_t i = 2; i < words.size(); ++i) scripts.widths.push_back(whole(i, 1000));
    scripts.all.push_back(s);
  });
  if (scripts.all.empty()) throw InputError("--traffic: '" + path + "' holds no sentences");
  return scripts;
}

/// Reads the members of a Cost, one per line: NAME SECONDS (`padded 0|1`), and `step ROWS SECONDS` for measured steps.
/// Unnamed members are 0. `#` begins a comment.
inline Cost read_cost(std::string const& path) {
  Cost cost;
  detail::for_each_line("--cost", path, [&](std::vector<std::string> const& words, std::string const& where) {
    auto const& name = words[0];
    auto const count = name == "step" ? std::size_t{3} : std::size_t{2};
    if (words.size() != count)
      throw InputError(where + ": '" + name + "' takes " + std::to_string(count - 1) + " values, not " +
                       std::to_string(words.size() - 1));
    auto const value = to_number(words.back(), where, 0, 1e9);
    if (name == "launch") cost.launch = value;
    else if (name == "launch_length") cost.launch_length = value;
    else if (name == "row") cost.row = value;
    else if (name == "row_length") cost.row_length = value;
    else if (name == "encode_call") cost.encode_call = value;
    else if (name == "encode_token") cost.encode_token = value;
    else if (name == "padded") cost.padded = value != 0;
    else if (name == "step") {
      auto const rows = to_number(words[1], where, 1, 1e9);
      if (!cost.measured.empty() && cost.measured.back().rows >= rows)
        throw InputError(where + ": step " + words[1] + ": rows must ascend");
      cost.measured.push_back({rows, value});
    } else
      throw InputError(where + ": '" + name + "' is not one of launch, launch_length, row, row_length, encode_call, " +
                       "encode_token, padded, step");
  });
  return cost;
}

/// `gpu`, `gpu-flat`, LAUNCH,ROW,ROW_LENGTH,ENCODE_TOKEN, or a file.
inline Cost to_cost(std::string const& text) {
  if (text == "gpu") return gpu();
  if (text == "gpu-flat") return flat_gpu();
  if (text.find_first_not_of("0123456789.,eE+-") != std::string::npos) return read_cost(text);
  std::vector<double> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) numbers.push_back(to_number(part, "--cost", 0, 1e9));
  if (numbers.size() != 4)
    throw InputError("--cost: '" + text + "' must be four numbers: LAUNCH,ROW,ROW_LENGTH,ENCODE_TOKEN");
  return {.launch = numbers[0], .row = numbers[1], .row_length = numbers[2], .encode_token = numbers[3]};
}

}  // namespace simulation
