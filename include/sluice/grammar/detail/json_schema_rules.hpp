// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns JSON schemas into rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/json_arrays.hpp>
#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// The texts that a schema accepts.
class JsonSchema : JsonArrays {
 public:
  /// \param ignored  gets what says nothing about values and is no keyword; with options.lenient, keywords, too
  /// \returns  a rule
  template <class = void>
  static std::int32_t compile(std::string_view text, JsonSchemaOptions const& options, Expressions& out,
                              std::vector<std::string>* ignored = nullptr) {
    require(options.white_space >= -1, "options.white_space", options.white_space, "must be -1 or more");
    require(options.digits >= 0 && options.digits <= 300, "options.digits", options.digits, "must be in [0, 300]");
    require(options.characters >= 0 && options.characters <= options.limits.repetition, "options.characters",
            options.characters,
            "must be in [0, limits.repetition = " + std::to_string(options.limits.repetition) + "]");
    check(options.item_separator, ',', "options.item_separator");
    check(options.key_separator, ':', "options.key_separator");
    JsonStyle const style{options.white_space,
                          options.item_separator,
                          options.key_separator,
                          options.order == JsonOrder::any,
                          options.escapes == JsonEscapes::any ? Escapes::any : Escapes::usual,
                          options.plain_numbers,
                          options.tidy,
                          options.digits,
                          options.characters};
    std::set<std::size_t> dropped;  // places
    std::set<std::string> names;
    for (;;) {
      auto fresh = Expressions(options.limits);
      JsonSchema schema(text, options.limits, fresh, style);
      for (auto const place : dropped) schema.drop_at(schema.root(), place, names);
      try {
        auto const root = schema.whole();
        if (ignored != nullptr) {
          names.insert(schema.ignored().begin(), schema.ignored().end());
          ignored->assign(names.begin(), names.end());
        }
        out = std::move(fresh);
        return root;
      } catch (Unsupported const& e) {
        if (!options.lenient || !dropped.insert(e.value->place).second) throw std::invalid_argument(e.what());
      }
    }
  }

 private:
  template <class = void>
  JsonSchema(std::string_view text, GrammarLimits const& limits, Expressions& out, JsonStyle const& style)
      : JsonArrays(text, limits, out, style) {}

  template <class = void>
  static void check(std::string const& separator, char must, char const* name) {
    require(separator.find_first_not_of(std::string(" \t\r\n") + must) == std::string::npos &&
                separator.find(must) == separator.rfind(must) && separator.find(must) != std::string::npos,
            name, separator, "must be one comma or colon, with white space");
  }
  /// Ignores the keyword whose value stands at this place.
  template <class = void>
  bool drop_at(JsonValue const& value, std::size_t place, std::set<std::string>& names) {
    for (auto const& [name, one] : value.members) {
      if (one.place == place && json_keywords().contains(name)) {
        drop(&one), names.insert(name);
        return true;
      }
      if (drop_at(one, place, names)) return true;
    }
    for (auto const& one : value.items)
      if (drop_at(one, place, names)) return true;
    return false;
  }

  template <class = void>
  std::int32_t whole() {
    auto const root = out_.add_rule("schema");
    auto const value = rule_of({{&this->root()}}, 0);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [rule, all_of, nesting] = waiting_[i];
      auto const body = body_of(all_of, nesting);
      out_.rules[at(rule)].expression = body;
    }
    out_.rules[at(root)].expression = out_.sequence({texts_.untidy(), value, texts_.untidy()});
    return root;
  }

  template <class = void>
  Id body_of(Literals const& all_of, std::int32_t nesting) {
    std::vector<Id> choices;
    if (auto const values = listed(all_of)) {
      // Many texts, and many whole numbers, are written as one automaton.
      std::vector<std::u32string> words, integers;
      auto const many = values->size() > 64;
      for (auto const* const value : *values) {
        auto const text = value->is(JsonValue::Kind::string);
        std::string whole, rest;
        auto const x = value->is(JsonValue::Kind::number) ? JsonNumber::of(value->text) : JsonNumber{};
        if (text && values->size() > 1) words.push_back(decoded(value->text));
        else if (many && !x.digits.empty() && x.exponent >= 0 && x.exponent < 100 && JsonNumbers::point(x, whole, rest))
          integers.push_back(decoded((x.negative ? "-" : "") + whole));
        else choices.push_back(texts_.exactly(*value));
      }
      if (!words.empty()) choices.push_back(texts_.string(TextAutomaton::words(std::move(words))));
      if (!integers.empty()) choices.push_back(texts_.integers(std::move(integers)));
      return out_.choice(choices);
    }
    auto const some = may_be(all_of);
    JsonValue simple;
    if ((some & null) != 0 && fits(all_of, simple)) choices.push_back(out_.text("null"));
    simple.kind = JsonValue::Kind::boolean;
    if ((some & boolean) != 0 && fits(all_of, simple)) choices.push_back(out_.text("false"));
    simple.truth = true;
    if ((some & boolean) != 0 && fits(all_of, simple)) choices.push_back(out_.text("true"));
    if ((some & (integer | number)) != 0) choices.push_back(number_of(all_of));
    if ((some & string) != 0) choices.push_back(string_of(all_of));
    if ((some & array) != 0) choices.push_back(array_of(all_of, nesting));
    if ((some & object) != 0) choices.push_back(object_of(all_of, nesting));
    return out_.choice(choices);
  }
};

}  // namespace sluice::inline v0::detail
