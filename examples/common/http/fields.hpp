// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fields of a JSON object, each read by name; errors give the field's name.
#pragma once

#include <text/json.hpp>
#include <text/lines.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <http/member.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace serve {

using Json = nlohmann::json;

/// An invalid request.
struct BadField : std::runtime_error {
  BadField(std::string which, std::string const& what, int its_status = 400)
      : std::runtime_error(what), field(std::move(which)), status(its_status) {}
  std::string field;  ///< empty: the request as a whole
  int status;         ///< the code of the answer
};

class Fields {
 public:
  /// \param body  an object, as text; must outlive this
  /// \throws BadField  if it is not an object, is not UTF-8, or repeats a key
  explicit Fields(std::string const& body) : body_(body), object_(parse(body)) {
    if (!object_.is_object()) throw BadField("", "the body is not a JSON object {...}");
  }

  /// Nothing if it is missing or null.
  Json const* find(std::string const& name) {
    known_.insert(name);
    auto const found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(std::string const& name) const {
    auto const found = object_.find(name);
    return found != object_.end() && !found->is_null();
  }

  std::optional<bool> flag(std::string const& name) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse(name, *value, "true or false");
    return value->get<bool>();
  }
  /// \param low, high  both allowed
  std::optional<std::int64_t> integer(std::string const& name, std::int64_t low, std::int64_t high) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    auto const large = value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    if (!value->is_number_integer() || large || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
      refuse(name, *value, "a whole number in " + std::to_string(low) + " to " + std::to_string(high));
    return value->get<std::int64_t>();
  }
  std::optional<std::uint64_t> natural(std::string const& name) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) refuse(name, *value, "a 64-bit whole number >= 0");
    return value->get<std::uint64_t>();
  }
  /// \param wanted  describes the valid values
  template <class Fits>
  std::optional<double> number(std::string const& name, Fits const& fits, std::string const& wanted) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<float>()) || !fits(value->get<double>()))
      refuse(name, *value, wanted);
    return value->get<double>();
  }
  std::optional<std::string> text(std::string const& name) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse(name, *value, "a string");
    return value->get<std::string>();
  }
  /// A text, or a list of them.
  std::optional<std::vector<std::string>> texts(std::string const& name) {
    auto const* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return std::vector{value->get<std::string>()};
    if (!value->is_array()) refuse(name, *value, "a string or a list of strings");
    std::vector<std::string> texts;
    for (auto const& one : *value) {
      if (!one.is_string()) refuse(name + "[" + std::to_string(texts.size()) + "]", one, "a string");
      texts.push_back(one.get<std::string>());
    }
    return texts;
  }
  template <class Names>
  auto one_of(std::string const& name, Names const& names) {
    std::optional<typename Names::mapped_type> chosen;
    auto const* const value = find(name);
    if (value == nullptr) return chosen;
    std::string all;
    for (auto const& [word, meaning] : names) all += (all.empty() ? "" : ", ") + word;
    auto const found = value->is_string() ? names.find(value->template get<std::string>()) : names.end();
    if (found == names.end()) refuse(name, *value, "one of " + all);
    return chosen = found->second;
  }

  /// A field as JSON, byte for byte as it was sent.
  std::optional<std::string> source(std::string const& name) {
    if (find(name) == nullptr) return std::nullopt;
    return std::string(member_text(body_, name));
  }

  /// \throws BadField  for a field that was never read
  void finish() const {
    for (auto const& [name, value] : object_.items())
      if (!known_.contains(name)) throw BadField(name, "'" + text::shortened(name) + "' is not a known field");
  }

  [[noreturn]] static void refuse(std::string const& name, Json const& value, std::string const& wanted) {
    throw BadField(name, name + " is not " + wanted + ": " + text::shown(value));
  }

 private:
  static Json parse(std::string_view body) {
    if (!text::valid_utf8(body)) throw BadField("", "the body is not valid UTF-8");
    try {
      return text::parse_json(body, deepest);
    } catch (text::InputError const& error) {
      throw BadField("", std::string("the body: ") + error.what());
    }
  }

  static constexpr int deepest = 64;

  std::string const& body_;
  Json object_;
  std::set<std::string> known_;
};

}  // namespace serve
