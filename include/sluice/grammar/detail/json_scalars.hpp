// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers and strings that JSON schemas accept.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_conjunctions.hpp>
#include <sluice/grammar/detail/json_disjoint.hpp>
#include <sluice/grammar/detail/json_formats.hpp>
#include <sluice/grammar/detail/json_numbers.hpp>
#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The numbers and strings that a conjunction of schemas accepts.
class JsonScalars : protected JsonDisjoint {
 protected:
  using Id = Expressions::Id;

  template <class = void>
  JsonScalars(std::string_view text, GrammarLimits const& limits, Expressions& out, std::int32_t white_space)
      : JsonDisjoint(text, limits), out_(out), texts_(out, white_space) {}

  template <class = void>
  Id number_of(Parts const& parts, bool integers) {
    std::optional<JsonBound> low, high;
    auto const bound = [&](JsonValue const* value, bool upper, bool strict) {
      if (value == nullptr) return;
      JsonBound one{.strict = strict};
      if (!value->is(Kind::number) || !JsonDecimal::parse(value->text, one.value))
        fail(*value, "a bound must be a number of moderate size");
      auto& known = upper ? high : low;
      auto const order = known ? JsonDecimal::compare(one.value, known->value) : 0;
      if (!known || (upper ? order < 0 : order > 0) || (order == 0 && strict)) known = one;
    };
    for (auto const& [schema, any_of, one_of] : parts) {
      bound(schema->find("minimum"), false, false), bound(schema->find("maximum"), true, false);
      bound(schema->find("exclusiveMinimum"), false, true), bound(schema->find("exclusiveMaximum"), true, true);
    }
    if (!low && !high) return texts_.number(integers);
    return JsonNumbers(out_).between(low, high, integers);
  }

  template <class = void>
  Id string_of(Parts const& parts) {
    auto const [least, most] = counts(parts, "minLength", "maxLength");
    JsonValue const *pattern = nullptr, *format = nullptr;
    for (auto const& part : parts) {
      for (auto const form : {false, true}) {
        auto const* const value = part.schema->find(form ? "format" : "pattern");
        auto& known = form ? format : pattern;
        if (value == nullptr || (known != nullptr && known->text == value->text)) continue;
        if (!value->is(Kind::string)) fail(*value, "must be a string");
        if (known != nullptr) fail(*value, "two patterns, or formats, of one string are not supported");
        known = value;
      }
    }
    if (most >= 0 && most < least) return out_.nothing();
    if (pattern == nullptr && format == nullptr) return texts_.string(least, most);
    auto const& value = pattern != nullptr ? *pattern : *format;
    if ((pattern != nullptr && format != nullptr) || least > 0 || most >= 0)
      fail(value, "pattern, format, and minLength or maxLength, of one string are not supported together");
    auto const lower = [&](std::vector<CharacterRange> ranges) { return texts_.characters(std::move(ranges)); };
    Id body;
    if (pattern != nullptr) {
      try {
        body = Regex::parse("pattern", pattern->text, out_, true, lower);
      } catch (std::invalid_argument const& e) {
        fail(*pattern, std::string_view(e.what()).substr(std::string_view("sluice: ").size()).data());
      }
    } else {
      auto const known = json_format(format->text);
      if (known.empty()) fail(*format, "the format " + json_quoted(format->text) + " is not supported");
      body = Regex::parse("format", known, out_, false, lower);
    }
    return out_.sequence({out_.text("\""), body, out_.text("\"")});
  }

  Expressions& out_;
  JsonTexts texts_;
};

}  // namespace sluice::inline v0::detail
