// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads JSON.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A value with its parts in source order, and its source position.
struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  std::string text{};                                        // string: its contents; number: as it was written
  std::vector<JsonValue> items{};                            // array
  std::vector<std::pair<std::string, JsonValue>> members{};  // object
  std::size_t place = 0;

  bool is(Kind k) const { return kind == k; }
  JsonValue const* find(std::string_view name) const {
    auto const it = std::ranges::find(members, name, &std::pair<std::string, JsonValue>::first);
    return it == members.end() ? nullptr : &it->second;
  }
};

/// A string as JSON, with as few escapes as possible.
inline std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (auto const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    auto const at = std::string_view("\"\\\b\f\n\r\t").find(c);
    if (at != std::string_view::npos) out += {'\\', "\"\\bfnrt"[at]};
    else if (byte < 0x20) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(byte));
      out += hex;
    } else out += c;
  }
  return out + '"';
}

/// An exact JSON number in a normal form that equal numbers share: -1.50e3 is negative, "15", 2.
struct JsonNumber {
  static constexpr std::size_t exponent_digits = 15;  // at most, so that sums with it do not overflow

  bool negative = false;
  std::string digits{};  // neither the first nor the last digit is 0; empty: zero
  std::int64_t exponent = 0;

  /// \param text  in the form that JsonReader accepts
  static JsonNumber of(std::string_view text) {
    JsonNumber out;
    auto const negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    auto const e = text.find_first_of("eE");
    for (auto const c : text.substr(0, e))
      if (c != '.') out.digits += c;
    auto const end = out.digits.find_last_not_of('0') + 1;
    if (end == 0) return {};
    auto const point = (std::min)(text.find('.'), (std::min)(e, text.size()));
    out.negative = negative;
    if (e != std::string_view::npos) out.exponent = std::stoll(std::string(text.substr(e + 1)));
    out.exponent += static_cast<std::int64_t>(point) - static_cast<std::int64_t>(end);
    out.digits.resize(end);
    out.digits.erase(0, out.digits.find_first_not_of('0'));
    return out;
  }
  bool whole() const { return exponent >= 0; }
};

/// Parses RFC 8259 JSON; the names in one object must be distinct.
class JsonReader {
 public:
  /// \throws std::invalid_argument  with line and column
  SLUICE_LAZY static JsonValue parse(std::string_view what, std::string_view text, GrammarLimits const& limits) {
    JsonReader reader(what, text, limits);
    auto out = reader.value(0);
    reader.space();
    if (!reader.in_.end()) reader.in_.fail("something follows the value");
    return out;
  }

 private:
  using Kind = JsonValue::Kind;
  SLUICE_LAZY JsonReader(std::string_view what, std::string_view text, GrammarLimits const& limits)
      : in_(what, text, limits) {}

  SLUICE_LAZY void space() {
    while (in_.peek() == ' ' || in_.peek() == '\t' || in_.peek() == '\n' || in_.peek() == '\r') in_.skip();
  }

  SLUICE_LAZY JsonValue value(std::int32_t nesting) {
    if (nesting > in_.limits().nesting)
      in_.fail("values are nested deeper than limits.nesting = " + std::to_string(in_.limits().nesting));
    space();
    JsonValue out;
    out.place = in_.place();
    if (in_.end()) in_.fail("a value is missing");
    if (in_.take("null")) return out;
    if (in_.at("true") || in_.at("false")) {
      out.kind = Kind::boolean, out.truth = in_.take("true");
      if (!out.truth) in_.skip(5);
    } else if (in_.peek() == '"') out.kind = Kind::string, out.text = string();
    else if (in_.peek() == '-' || in_.at_digit()) out.kind = Kind::number, out.text = number();
    else if (in_.take("[")) array(out, nesting);
    else if (in_.take("{")) object(out, nesting);
    else in_.fail("a value is missing");
    return out;
  }

  SLUICE_LAZY void array(JsonValue& out, std::int32_t nesting) {
    out.kind = Kind::array;
    space();
    if (in_.take("]")) return;
    do {
      out.items.push_back(value(nesting + 1));
      space();
    } while (in_.take(","));
    if (!in_.take("]")) in_.fail(", or ] is missing");
  }

  SLUICE_LAZY void object(JsonValue& out, std::int32_t nesting) {
    out.kind = Kind::object;
    std::set<std::string> names;
    space();
    if (in_.take("}")) return;
    do {
      space();
      auto const place = in_.place();
      if (in_.peek() != '"') in_.fail("a name is missing");
      auto name = string();
      constexpr std::size_t few = 12;
      if (out.members.size() == few)
        for (auto const& one : out.members) names.insert(one.first);
      if (out.members.size() < few ? out.find(name) != nullptr : !names.insert(name).second)
        in_.fail_at(place, "the name " + json_quoted(name) + " comes twice");
      space();
      if (!in_.take(":")) in_.fail(": is missing");
      out.members.emplace_back(std::move(name), value(nesting + 1));
      space();
    } while (in_.take(","));
    if (!in_.take("}")) in_.fail(", or } is missing");
  }

  SLUICE_LAZY std::string string() {
    in_.skip();
    std::string out;
    for (;;) {
      out += in_.take_while([](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
      auto const place = in_.place();
      if (in_.take("\"")) return out;
      auto c = in_.character();
      if (c < 0x20) in_.fail_at(place, "a control character in a string");
      if (c == '\\') c = escape(place);
      append_utf8(out, c);
    }
  }
  SLUICE_LAZY char32_t escape(std::size_t place) {
    auto const c = in_.peek();
    in_.skip();
    if (auto const at = std::string_view("\"\\/bfnrt").find(c); at != std::string_view::npos)
      return static_cast<unsigned char>("\"\\/\b\f\n\r\t"[at]);
    if (c != 'u') in_.fail_at(place, "an unknown escape");
    auto const first = in_.hexadecimal(4);
    if (!is_surrogate(first)) return first;
    if (first >= 0xDC00 || !in_.take("\\u")) in_.fail_at(place, "half a surrogate pair");
    auto const second = in_.hexadecimal(4);
    if (second < 0xDC00 || second > 0xDFFF) in_.fail_at(place, "half a surrogate pair");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  SLUICE_LAZY std::string number() {
    auto const begin = in_.place();
    auto const digits = [&] {
      if (!in_.at_digit()) in_.fail("a digit is missing");
      while (in_.at_digit()) in_.skip();
    };
    in_.take("-");
    if (!in_.take("0")) digits();
    if (in_.take(".")) digits();
    if (in_.take("e") || in_.take("E")) {
      if (!in_.take("+")) in_.take("-");
      auto const from = in_.place();
      digits();
      auto const exponent = in_.from(from);
      if (exponent.size() - (std::min)(exponent.find_first_not_of('0'), exponent.size()) > JsonNumber::exponent_digits)
        in_.fail_at(begin, "a number whose exponent has more than " + std::to_string(JsonNumber::exponent_digits) +
                               " digits is not supported");
    }
    return std::string(in_.from(begin));
  }

  SourceReader in_;
};

/// A number as digits: -1.5e2 is negative, "150", "". False if it has more than a few hundred digits.
struct JsonDecimal {
  bool negative = false;
  std::string whole = "0", fraction{};  // without leading or trailing zeros

  bool zero() const { return whole == "0" && fraction.empty(); }
  static bool parse(std::string_view text, JsonDecimal& out) {
    auto number = JsonNumber::of(text);
    auto const size = static_cast<std::int64_t>(number.digits.size());
    auto const point = size + number.exponent;  // the position of the decimal point among the digits
    out = {};
    if (size > 300 || point > 600 || point < -300) return false;
    if (size == 0) return true;
    out.negative = number.negative;
    if (point > size) number.digits.append(static_cast<std::size_t>(point - size), '0');
    if (point < 0) number.digits.insert(0, static_cast<std::size_t>(-point), '0');
    auto const whole = static_cast<std::size_t>(std::max<std::int64_t>(point, 0));
    if (whole > 0) out.whole = number.digits.substr(0, whole);
    out.fraction = number.digits.substr(whole);
    return true;
  }
  static int compare_size(JsonDecimal const& a, JsonDecimal const& b) {
    if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
    auto const whole = a.whole.compare(b.whole);
    return whole != 0 ? whole : a.fraction.compare(b.fraction);
  }
  static int compare(JsonDecimal const& a, JsonDecimal const& b) {
    if (a.negative != b.negative) return a.negative ? -1 : 1;
    return a.negative ? compare_size(b, a) : compare_size(a, b);
  }
};

/// A key that is the same for equal values, and only for those, by JSON schema's definition: 1.50 and 15e-1 are equal,
/// and the order of members does not count.
inline std::string json_key(JsonValue const& value) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return value.truth ? "true" : "false";
    case Kind::string: return json_quoted(value.text);
    case Kind::number: {
      auto const x = JsonNumber::of(value.text);
      return x.digits.empty() ? "0" : (x.negative ? "-" : "") + x.digits + "e" + std::to_string(x.exponent);
    }
    case Kind::array: {
      std::string key = "[";
      for (auto const& item : value.items) key += json_key(item) + ",";
      return key + "]";
    }
    case Kind::object: break;
  }
  std::vector<std::string> members;
  for (auto const& [name, member] : value.members) members.push_back(json_quoted(name) + ":" + json_key(member));
  std::sort(members.begin(), members.end());
  std::string key = "{";
  for (auto const& member : members) key += member + ",";
  return key + "}";
}

/// Equality by JSON schema's definition: by value.
inline bool json_equal(JsonValue const& a, JsonValue const& b) {
  if (a.kind != b.kind) return false;
  return a.is(JsonValue::Kind::string) ? a.text == b.text : json_key(a) == json_key(b);
}

/// An object or an array as it was written. \param text  from which it was read
inline std::string_view json_source(std::string_view text, JsonValue const& value) {
  std::int32_t open = 0;
  auto in_string = false;
  for (auto i = value.place; i < text.size(); ++i) {
    auto const c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else in_string = c != '"';
    } else if (c == '"') in_string = true;
    else if (c == '{' || c == '[') ++open;
    else if ((c == '}' || c == ']') && --open == 0) return text.substr(value.place, i + 1 - value.place);
  }
  return text.substr(value.place);
}

}  // namespace sluice::inline v0::detail
