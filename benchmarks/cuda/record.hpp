// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shapes to measure, and the lines of JSON with the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <graph_timer.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

enum class Type { float32, float16, bfloat16 };

constexpr char const* name(Type type) {
  switch (type) {
    case Type::float32: return "float32";
    case Type::float16: return "float16";
    case Type::bfloat16: return "bfloat16";
  }
  return "";
}
constexpr std::size_t bytes_of(Type type) { return type == Type::float32 ? 4 : 2; }

/// One task: the k best of `rows` lines of `columns`, with log-probabilities.
struct Shape {
  std::string_view experiment;  ///< which table it belongs to
  std::int64_t rows = 1;
  std::int32_t columns = 1;
  std::int32_t k = 1;
  Type type = Type::float32;
  std::string_view data = "normal";
  std::int32_t beams = 0;  ///< lines of a sentence, where sentences matter
  bool bias = false;

  std::size_t bytes() const { return static_cast<std::size_t>(rows * columns) * bytes_of(type); }
};

/// One JSON object per line, so that an interrupted run leaves its results.
class Record {
 public:
  Record(std::string_view name, Shape const& shape) : Record(name) {
    add("experiment", shape.experiment).add("rows", shape.rows).add("V", shape.columns).add("k", shape.k);
    add("type", bench::name(shape.type)).add("data", shape.data).add("bytes", shape.bytes());
  }
  explicit Record(std::string_view name) { add("name", name); }

  Record& add(std::string_view key, std::string_view text) {
    start(key) += '"';
    for (auto const c : text) {
      if (c == '"' || c == '\\') line_ += '\\';
      line_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    line_ += '"';
    return *this;
  }
  Record& add(std::string_view key, char const* text) { return add(key, std::string_view(text)); }
  Record& add(std::string_view key, std::string const& text) { return add(key, std::string_view(text)); }
  template <class Number>
  Record& add(std::string_view key, Number number) {
    std::ostringstream text;
    text << number;
    start(key) += text.str();
    return *this;
  }
  Record& add(std::string_view cache, Time const& time) {
    add("cache", cache).add("us", time.median).add("us_low", time.low).add("us_high", time.high);
    return add("pieces", time.pieces).add("replays", time.replays);
  }
  void write(std::ostream& to) const { to << line_ << '}' << std::endl; }

 private:
  std::string& start(std::string_view key) {
    line_ += line_.empty() ? "{\"" : ",\"";
    return line_.append(key).append("\":");
  }
  std::string line_;
};

}  // namespace sluice::bench
