// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a value fits a JSON schema.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_document.hpp>
#include <sluice/grammar/detail/json_patterns.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Judges the values of enum and const, which other keywords may exclude; and reads what keywords say.
class JsonValidator : public JsonPatterns {
 public:
  using JsonPatterns::JsonPatterns;
  enum Type : std::uint32_t {
    null = 1,
    boolean = 2,
    integer = 4,
    number = 8,
    string = 16,
    array = 32,
    object = 64,
    all = 127
  };

  SLUICE_LAZY bool fits(Literals const& all_of, JsonValue const& x) {
    return std::all_of(all_of.begin(), all_of.end(),
                       [&](Literal const& one) { return fits(*one.schema, one.scope, x) != one.negated; });
  }

 protected:
  static std::uint32_t type_of(JsonValue const& value) {
    switch (value.kind) {
      case Kind::null: return null;
      case Kind::boolean: return boolean;
      case Kind::string: return string;
      case Kind::array: return array;
      case Kind::object: return object;
      case Kind::number: break;
    }
    return JsonNumber::of(value.text).whole() ? integer | number : number;
  }
  /// What `type` allows. An integer is a number.
  SLUICE_LAZY std::uint32_t types(JsonValue const& type) const {
    std::uint32_t out = 0;
    static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 7> names{{{"null", null},
                                                                                      {"boolean", boolean},
                                                                                      {"integer", integer},
                                                                                      {"number", integer | number},
                                                                                      {"string", string},
                                                                                      {"array", array},
                                                                                      {"object", object}}};
    for (auto const& one : type.is(Kind::array) ? std::span(type.items) : std::span(&type, 1)) {
      // NOLINTNEXTLINE(readability-qualified-auto): an iterator, which need not be a pointer
      auto const it = std::ranges::find(names, one.text, &std::pair<std::string_view, std::uint32_t>::first);
      if (!one.is(Kind::string) || it == names.end()) fail(one, "is no type of JSON");
      out |= it->second;
    }
    return out;
  }
  /// A number of characters, items or members.
  SLUICE_LAZY std::int64_t count(JsonValue const& value) const {
    auto const x = value.is(Kind::number) ? JsonNumber::of(value.text) : JsonNumber{.negative = true};
    if (x.negative || !x.whole()) fail(value, "must be a whole number, 0 or more");
    JsonDecimal digits;
    if (!JsonDecimal::parse(value.text, digits) || digits.whole.size() > 17) return std::int64_t{1} << 56;
    return std::stoll(digits.whole);
  }
  SLUICE_LAZY JsonNumber number_in(JsonValue const& value) const {
    if (!value.is(Kind::number)) fail(value, "must be a number");
    return JsonNumber::of(value.text);
  }
  static bool less(JsonNumber const& a, JsonNumber const& b) {
    auto const sign = [](JsonNumber const& x) { return x.digits.empty() ? 0 : x.negative ? -1 : 1; };
    if (sign(a) != sign(b)) return sign(a) < sign(b);
    if (sign(a) == 0) return false;
    auto const& [x, y] = sign(a) > 0 ? std::pair(&a, &b) : std::pair(&b, &a);
    auto const top = [](JsonNumber const* n) { return n->exponent + static_cast<std::int64_t>(n->digits.size()); };
    return top(x) != top(y) ? top(x) < top(y) : x->digits < y->digits;
  }

 private:
  SLUICE_LAZY bool fits(JsonValue const& schema, std::int32_t scope, JsonValue const& x) {
    if (schema.is(Kind::boolean)) return schema.truth;
    auto const pair = std::pair(&schema, &x);
    if (std::find(judging_.begin(), judging_.end(), pair) != judging_.end()) return true;  // it says nothing of itself
    if (judging_.size() > 1000) unsupported(schema, "references lead too deep, which is not supported");
    struct Now {  // NOLINT(cppcoreguidelines-special-member-functions): of this function alone
      std::vector<std::pair<JsonValue const*, JsonValue const*>>& judging;
      ~Now() { judging.pop_back(); }
    };
    auto const& of = this->schema(schema);
    scope = enter(scope, of);
    judging_.push_back(pair);
    Now const now{judging_};
    return std::all_of(of.parts.begin(), of.parts.end(), [&](Part const& part) { return obeys(of, part, scope, x); });
  }

  SLUICE_LAZY bool obeys(Schema const& of, Part const& part, std::int32_t scope, JsonValue const& x) {
    auto const& value = *part.value;
    auto const sub = [&](JsonValue const& one) { return fits(one, scope, x); };
    auto const equal = [&](JsonValue const& one) { return json_equal(one, x); };
    switch (part.word) {
      case Word::ref:
      case Word::dynamic_ref:
      case Word::recursive_ref: return sub(target(of, part, scope));
      case Word::all_of: return std::ranges::all_of(list(value), sub);
      case Word::any_of: return std::ranges::any_of(list(value), sub);
      case Word::one_of: return std::ranges::count_if(list(value), sub) == 1;
      case Word::no: return !sub(value);
      case Word::condition: {
        auto const* const then = own(of, sub(value) ? "then" : "else");
        return then == nullptr || sub(*then);
      }
      case Word::type:
        return (types(value) & type_of(x)) != 0 &&
               !(draft(of) == 4 && !any_draft() && x.is(Kind::number) && (types(value) & number) == 0 &&
                 x.text.find_first_of(".eE") != std::string::npos);
      case Word::values:
        return value.is(Kind::array) && (among(value.items, x) || std::ranges::any_of(value.items, equal));
      case Word::constant: return equal(value);
      default: break;
    }
    if (x.is(Kind::number)) return number_obeys(of, part, JsonNumber::of(x.text));
    if (x.is(Kind::string)) return string_obeys(part, x.text);
    if (x.is(Kind::array)) return array_obeys(of, part, scope, x);
    return !x.is(Kind::object) || object_obeys(of, part, scope, x);
  }

  /// Whether it is one of these themselves.
  static bool among(std::vector<JsonValue> const& items, JsonValue const& x) {
    auto const before = std::less<>();
    return !before(&x, items.data()) && before(&x, items.data() + items.size());
  }

  SLUICE_LAZY bool number_obeys(Schema const& of, Part const& part, JsonNumber const& x) {
    auto const& value = *part.value;
    auto const excluded = [&](char const* name) {
      auto const* const flag = own(of, name);
      return flag != nullptr && flag->is(Kind::boolean) && flag->truth;
    };
    switch (part.word) {
      case Word::least: return excluded("exclusiveMinimum") ? less(number_in(value), x) : !less(x, number_in(value));
      case Word::most: return excluded("exclusiveMaximum") ? less(x, number_in(value)) : !less(number_in(value), x);
      case Word::above: return value.is(Kind::boolean) || less(number_in(value), x);
      case Word::below: return value.is(Kind::boolean) || less(x, number_in(value));
      case Word::multiple: {
        auto const by = number_in(value);
        if (x.digits.empty()) return true;
        auto const shift = x.exponent - by.exponent;
        if (shift < 0) return false;  // by is not divisible by 10
        if (by.digits.size() > 9 || shift > 10'000)
          unsupported(value, "a divisor of more than 9 digits is not supported");
        std::int64_t rest = 0;
        auto const divisor = std::stoll(by.digits);
        for (auto const c : x.digits) rest = (rest * 10 + (c - '0')) % divisor;
        for (std::int64_t i = 0; i < shift; ++i) rest = rest * 10 % divisor;
        return rest == 0;
      }
      default: return true;
    }
  }
  SLUICE_LAZY bool string_obeys(Part const& part, std::string const& x) {
    auto const& value = *part.value;
    auto const text = decoded(x);
    auto const in = [&](Texts const& texts) { return texts == nullptr || texts->matches(text); };
    switch (part.word) {
      case Word::least_length: return static_cast<std::int64_t>(text.size()) >= count(value);
      case Word::most_length: return static_cast<std::int64_t>(text.size()) <= count(value);
      case Word::pattern: return in(pattern(value));
      case Word::format: return in(format(value));
      default: return true;
    }
  }
  SLUICE_LAZY bool array_obeys(Schema const& of, Part const& part, std::int32_t scope, JsonValue const& x) {
    auto const& value = *part.value;
    auto const size = static_cast<std::int64_t>(x.items.size());
    switch (part.word) {
      case Word::least_items: return size >= count(value);
      case Word::most_items: return size <= count(value);
      case Word::unique: {
        std::set<std::string> keys;
        for (auto const& one : x.items) keys.insert(json_key(one));
        return !value.truth || static_cast<std::int64_t>(keys.size()) == size;
      }
      case Word::items: {
        auto const [first, rest] = items(of);
        for (std::size_t i = 0; i < x.items.size(); ++i) {
          auto const* const one = first != nullptr && i < first->items.size() ? &first->items[i] : rest;
          if (one != nullptr && !fits(*one, scope, x.items[i])) return false;
        }
        return true;
      }
      case Word::contains: {
        auto const [least, most] = contains(of);
        auto const found =
            std::ranges::count_if(x.items, [&](JsonValue const& item) { return fits(value, scope, item); });
        return found >= least && (most < 0 || found <= most);
      }
      case Word::other_items: unsupported(value, "unevaluatedItems beside enum or const is not supported");
      default: return true;
    }
  }
  SLUICE_LAZY bool object_obeys(Schema const& of, Part const& part, std::int32_t scope, JsonValue const& x) {
    auto const& value = *part.value;
    auto const size = static_cast<std::int64_t>(x.members.size());
    switch (part.word) {
      case Word::least_properties: return size >= count(value);
      case Word::most_properties: return size <= count(value);
      case Word::required:
        return std::ranges::all_of(value.items, [&](JsonValue const& name) { return x.find(name.text) != nullptr; });
      case Word::property_names:
        return std::ranges::all_of(x.members, [&](auto const& member) {
          JsonValue name;
          name.kind = Kind::string, name.text = member.first;
          return fits(value, scope, name);
        });
      case Word::dependencies:
        return std::ranges::all_of(map(value), [&](auto const& one) {
          if (x.find(one.first) == nullptr) return true;
          if (!one.second.is(Kind::array)) return fits(one.second, scope, x);
          return std::ranges::all_of(one.second.items,
                                     [&](JsonValue const& name) { return x.find(name.text) != nullptr; });
        });
      case Word::properties: {
        auto const *named = own(of, "properties"), *patterns = own(of, "patternProperties"),
                   *others = own(of, "additionalProperties");
        return std::ranges::all_of(x.members, [&](auto const& member) {
          auto known = false;
          auto const* const one = named == nullptr ? nullptr : named->find(member.first);
          if (one != nullptr && (known = true) && !fits(*one, scope, member.second)) return false;
          if (patterns != nullptr)
            for (auto const& [text, schema] : map(*patterns)) {
              auto const in = pattern(schema, text);
              if (in != nullptr && !in->matches(decoded(member.first))) continue;
              known = true;
              if (!fits(schema, scope, member.second)) return false;
            }
          return known || others == nullptr || fits(*others, scope, member.second);
        });
      }
      case Word::other_properties: unsupported(value, "unevaluatedProperties beside enum or const is not supported");
      default: return true;
    }
  }

 protected:
  /// The schemas of the first items, as an array, and of the rest; null: there is none.
  SLUICE_LAZY std::pair<JsonValue const*, JsonValue const*> items(Schema const& of) {
    auto const *first = own(of, "prefixItems"), *rest = own(of, "items");
    if (rest != nullptr && rest->is(Kind::array)) {
      if (first != nullptr)
        fail(*first, "prefixItems beside an array of items is not supported: both say what comes first");
      if (draft(of) == 2020 && !any_draft()) fail(*rest, "items must be a schema: prefixItems says what comes first");
      first = rest, rest = own(of, "additionalItems");
    }
    if (first != nullptr && !first->is(Kind::array)) fail(*first, "prefixItems must be an array");
    return {first, rest};
  }
  /// How many items must fit; -1: any number.
  SLUICE_LAZY std::pair<std::int64_t, std::int64_t> contains(Schema const& of) const {
    auto const *least = own(of, "minContains"), *most = own(of, "maxContains");
    return {least == nullptr ? 1 : count(*least), most == nullptr ? -1 : count(*most)};
  }

 private:
  std::vector<std::pair<JsonValue const*, JsonValue const*>> judging_;
};

}  // namespace sluice::inline v0::detail
