// SPDX-License-Identifier: Apache-2.0
/// \file
/// Untrusted JSON, and error messages about it.
#pragma once

#include <text/lines.hpp>
#include <text/words.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace text {

/// For a message: long text is shortened, between characters.
inline std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  auto end = most - 3;
  while (Utf8::continues(text[end])) --end;
  return text.substr(0, end) + "...";
}
inline std::string shown(nlohmann::json const& value) { return shortened(value.dump()); }

/// Finds a key of the outermost object that comes twice. (A callback of nlohmann's parser would find it, too, in a time by the square
/// of the objects in one list.)
template <class Json>
class RepeatedKey final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(typename Json::number_integer_t) override { return true; }
  bool number_unsigned(typename Json::number_unsigned_t) override { return true; }
  bool number_float(typename Json::number_float_t, typename Json::string_t const&) override { return true; }
  bool string(typename Json::string_t&) override { return true; }
  bool binary(typename Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++level_, true; }
  bool end_object() override { return --level_, true; }
  bool start_array(std::size_t) override { return ++level_, true; }
  bool end_array() override { return --level_, true; }
  bool key(typename Json::string_t& name) override {
    if (level_ == 1 && !keys_.insert(name).second)
      throw InputError("key " + shown(nlohmann::json(name)) + " comes twice");
    return true;
  }
  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const&) override { return false; }

 private:
  int level_ = 0;
  std::set<std::string> keys_;
};

/// Parses JSON; refuses repeated keys, numbers too large and deep nesting.
/// \param deepest  maximum number of levels
/// \throws InputError  saying what is wrong with it
template <class Json = nlohmann::json>
Json parse_json(std::string_view source, int deepest) {
  // Parsed values are destroyed and written recursively, so the depth is limited.
  int depth = 0;
  for (bool quoted = false, escaped = false; auto const c : source) {
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > deepest) throw InputError("nested too deeply");
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = c == '\\' && !escaped;
  }
  try {
    auto json = Json::parse(source);
    RepeatedKey<Json> repeated;
    Json::sax_parse(source, &repeated);
    return json;
  } catch (typename Json::parse_error const& error) {
    throw InputError("not JSON, from byte " + std::to_string(error.byte) + " on");
  } catch (typename Json::out_of_range const&) {
    throw InputError("a number is too large");
  }
}

}  // namespace text
