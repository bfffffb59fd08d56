// SPDX-License-Identifier: Apache-2.0
/// \file
/// A folder with a trained parser and its test set: manifest.json and weights.f32.
#pragma once

#include <sluice/core/types.hpp>

#include <text/json.hpp>
#include <text/lines.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace semantic_parser {

using sluice::Token;

namespace detail {

/// A value of the manifest and the way to it, which every complaint names.
class Field {
 public:
  using Json = nlohmann::json;
  Field(Json const& value, std::string file, std::string path = {})
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  /// A member, which must be there.
  Field operator[](std::string const& key) const {
    Field const member(*value_, file_, path_.empty() ? key : path_ + "." + key);
    if (!value_->is_object()) refuse("must be an object");
    auto const found = value_->find(key);
    if (found == value_->end()) throw text::InputError(file_ + ": " + member.path_ + " is missing");
    return {*found, file_, member.path_};
  }
  /// Its elements.
  std::vector<Field> list() const {
    if (!value_->is_array()) refuse("must be a list");
    std::vector<Field> elements;
    for (std::size_t i = 0; i < value_->size(); ++i)
      elements.emplace_back((*value_)[i], file_, path_ + "[" + std::to_string(i) + "]");
    return elements;
  }
  std::int64_t number(std::int64_t lowest, std::int64_t highest) const {
    if (!value_->is_number_integer() || *value_ < lowest || *value_ > highest)
      refuse("must be a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    return value_->get<std::int64_t>();
  }
  std::vector<std::int64_t> numbers(std::int64_t lowest, std::int64_t highest) const {
    std::vector<std::int64_t> all;
    for (auto const& element : list()) all.push_back(element.number(lowest, highest));
    return all;
  }
  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (auto const& element : list()) {
      if (!element.value_->is_string()) element.refuse("must be a word");
      all.push_back(element.value_->get<std::string>());
    }
    return all;
  }
  [[noreturn]] void refuse(std::string const& rule) const {
    auto shown = value_->dump(-1, ' ', true, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    throw text::InputError(file_ + ": " + (path_.empty() ? "the file" : path_) + " = " + shown + ": " + rule);
  }

 private:
  Json const* value_;
  std::string file_, path_;
};

}  // namespace detail

/// A sentence of the test set and the logical form that it should become.
struct Pair {
  std::vector<Token> source, reference;
};

/// What such a folder holds.
///
/// Every fault of the files is a text::InputError that names the file, the field and its value.
class Data {
 public:
  explicit Data(std::filesystem::path const& folder)
      : manifest_((folder / "manifest.json").string()),
        weights_((folder / "weights.f32").string()),
        json_(parse(manifest_)),
        numbers_(read(weights_)) {
    constexpr std::int64_t most = 1 << 20;
    detail::Field const all(json_, manifest_);
    hidden = static_cast<std::int32_t>(all["rnn_size"].number(1, 1 << 14));
    length = static_cast<std::int32_t>(all["dec_seq_length"].number(1, most));
    source_words = all["src_vocab"].words();
    target_words = all["tgt_vocab"].words();
    for (auto const* const name : {"src_vocab", "tgt_vocab"})
      if (all[name].list().size() < 2) all[name].refuse("needs the start <S> = 0 and the end <E> = 1");
    for (auto const& pair : all["test"].list())
      test.push_back({ids(pair["src"], source_words), ids(pair["ref"], target_words)});
    if (test.empty()) all["test"].refuse("needs a sentence");
  }

  std::int32_t hidden = 0;  ///< of an LSTM state
  std::int32_t length = 0;  ///< tokens of an output at most, the end not counted
  std::vector<std::string> source_words, target_words;
  std::vector<Pair> test;

  /// The numbers of tensor `name`, row-major, whose shape must be `shape`.
  std::vector<float> tensor(std::string const& name, std::vector<std::int64_t> const& shape) const {
    constexpr auto unit = static_cast<std::int64_t>(sizeof(float));
    auto const entry = detail::Field(json_, manifest_)["tensors"][name];
    if (entry["shape"].numbers(0, std::int64_t{1} << 40) != shape)
      entry["shape"].refuse("must be " + nlohmann::json(shape).dump());
    auto const offset = entry["offset"].number(0, std::int64_t{1} << 40);
    auto const count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
    if (offset % unit != 0) entry["offset"].refuse("must be a multiple of " + std::to_string(unit));
    if (offset / unit + count > std::ssize(numbers_))
      entry["offset"].refuse("the tensor has " + std::to_string(count * unit) + " bytes, " + weights_ + " only " +
                             std::to_string(std::ssize(numbers_) * unit));
    auto const first = numbers_.begin() + offset / unit;
    std::vector<float> numbers(first, first + count);
    for (auto const number : numbers)
      if (!std::isfinite(number)) throw text::InputError(weights_ + ": " + name + " holds " + std::to_string(number));
    return numbers;
  }

 private:
  static_assert(std::endian::native == std::endian::little, "weights.f32 is little endian");

  static std::ifstream open(std::string const& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw text::InputError(path + ": is a directory");
    std::ifstream file(path, std::ios::binary);
    if (!file) throw text::InputError(path + ": cannot be opened");
    return file;
  }
  static nlohmann::json parse(std::string const& path) {
    auto file = open(path);
    std::string const content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try {
      return text::parse_json(content, 8);
    } catch (text::InputError const& error) {
      throw text::InputError(path + ": " + error.what());
    }
  }
  static std::vector<float> read(std::string const& path) {
    auto file = open(path);
    auto const size = std::filesystem::file_size(path);
    if (size % sizeof(float) != 0)
      throw text::InputError(path + ": has " + std::to_string(size) + " bytes, no multiple of 4");
    std::vector<float> numbers(size / sizeof(float));
    if (!file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(size)))
      throw text::InputError(path + ": cannot be read");
    return numbers;
  }
  static std::vector<Token> ids(detail::Field const& field, std::vector<std::string> const& words) {
    auto const numbers = field.numbers(0, std::ssize(words) - 1);
    return {numbers.begin(), numbers.end()};
  }

  std::string manifest_, weights_;  // paths
  nlohmann::json json_;
  std::vector<float> numbers_;
};

}  // namespace semantic_parser
