// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns JSON schemas into rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/free_text.hpp>
#include <sluice/grammar/detail/json_arrays.hpp>
#include <sluice/grammar/detail/json_indent.hpp>
#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// How a model writes the members of an object as elements: <parameter=NAME>VALUE</parameter>. Strings stand there as they
/// are, other values as JSON.
struct XmlArguments {
  std::string before_name, behind_name;
  std::string before_value;  // behind white space, if it is not empty
  std::string behind_value;
};

/// The texts that a schema accepts.
class JsonSchema : JsonArrays {
 public:
  /// \param ignored  gets what says nothing about values and is no keyword; with options.lenient, keywords, too
  /// \param xml  not null: the schema's object is written like this
  /// \returns  a rule
  SLUICE_LAZY static std::int32_t compile(std::string_view text, JsonSchemaOptions const& options, Expressions& out,
                                          std::vector<std::string>* ignored = nullptr,
                                          XmlArguments const* xml = nullptr) {
    require(options.white_space >= -1, "options.white_space", options.white_space, "must be -1 or more");
    require(options.digits >= 0 && options.digits <= 300, "options.digits", options.digits, "must be in [0, 300]");
    require(options.characters >= 0 && options.characters <= options.limits.repetition, "options.characters",
            options.characters,
            "must be in [0, limits.repetition = " + std::to_string(options.limits.repetition) + "]");
    require(options.indent >= -1 && options.indent <= 16, "options.indent", options.indent, "must be in [-1, 16]");
    require(options.indent < 0 || options.white_space == 0, "options.white_space", options.white_space,
            "must be 0 beside options.indent, which says where all white space is");
    check(options.item_separator, ',', "options.item_separator");
    check(options.key_separator, ':', "options.key_separator");
    auto const key = options.indent >= 0 && options.key_separator == ":" ? std::string_view(": ")
                                                                         : std::string_view(options.key_separator);
    JsonStyle const style{options.white_space,
                          options.item_separator,
                          key,
                          options.order == JsonOrder::any,
                          options.escapes == JsonEscapes::any ? Escapes::any : Escapes::usual,
                          options.plain_numbers,
                          options.tidy,
                          options.digits,
                          options.characters,
                          options.indent};
    std::set<std::size_t> dropped;  // places
    std::set<std::string> names;
    for (;;) {
      auto fresh = Expressions(options.limits);
      JsonSchema schema(text, options.limits, fresh, style);
      for (auto const place : dropped) schema.drop_at(schema.root(), place, names);
      try {
        auto const root = schema.whole(xml);
        if (ignored != nullptr) {
          names.insert(schema.ignored().begin(), schema.ignored().end());
          ignored->assign(names.begin(), names.end());
        }
        if (options.indent < 0) {
          out = std::move(fresh);
          return root;
        }
        out = Expressions(options.limits);
        return JsonIndent(fresh, schema.texts_.line(), schema.texts_.deeper(), options.indent, out).copied(root);
      } catch (Unsupported const& e) {
        if (!options.lenient || !dropped.insert(e.value->place).second) throw std::invalid_argument(e.what());
      }
    }
  }

 private:
  SLUICE_LAZY JsonSchema(std::string_view text, GrammarLimits const& limits, Expressions& out, JsonStyle const& style)
      : JsonArrays(text, limits, out, style) {}

  SLUICE_LAZY static void check(std::string const& separator, char must, char const* name) {
    require(separator.find_first_not_of(std::string(" \t\r\n") + must) == std::string::npos &&
                separator.find(must) == separator.rfind(must) && separator.find(must) != std::string::npos,
            name, separator, "must be one comma or colon, with white space");
  }
  /// Ignores the keyword whose value stands at this place.
  SLUICE_LAZY bool drop_at(JsonValue const& value, std::size_t place, std::set<std::string>& names) {
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

  SLUICE_LAZY std::int32_t whole(XmlArguments const* xml) {
    auto const root = out_.add_rule("schema");
    auto const value = xml == nullptr ? rule_of({{&this->root()}}, 0) : arguments(*xml);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [rule, all_of, nesting] = waiting_[i];
      auto const body = body_of(all_of, nesting);
      out_.rules[at(rule)].expression = body;
    }
    out_.rules[at(root)].expression = xml == nullptr ? out_.sequence({texts_.untidy(), value, texts_.untidy()}) : value;
    return root;
  }

  /// White space around elements: a new line, unless the options say more.
  SLUICE_LAZY Id around() {
    auto const most = texts_.style().space;
    if (most == 0 || texts_.style().tidy) return out_.optional(out_.byte('\n', '\n'));
    return out_.repeat(out_.choice({out_.byte('\t', '\n'), out_.byte('\r', '\r'), out_.byte(' ', ' ')}), 0, most);
  }
  SLUICE_LAZY Id arguments(XmlArguments const& xml) {
    auto const& source = this->root();
    std::vector<Id> choices;
    for (auto const& clause : expand({{&source}}, object)) {
      if (!clause.some.empty() || clause.least > 0 || clause.most >= 0)
        unsupported(source, "counts or conditions of members are not supported where they are written as elements");
      std::vector<std::pair<Path const*, std::string const*>> order;
      order.reserve(clause.members.size());
      for (auto const& [name, member] : clause.members) order.emplace_back(&member.path, &name);
      std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) { return *a.first < *b.first; });
      std::vector<Id> parts;
      for (auto const& [path, name] : order) {
        auto const values = member(clause, *name);
        auto const one = element(xml, out_.text(*name), values);
        parts.push_back(clause.members.at(*name).required ? one : out_.optional(one));
      }
      auto const* const more = source.find("additionalProperties");
      if (more != nullptr ? !more->is(Kind::boolean) || more->truth : order.empty()) {
        auto const letter = out_.characters({{'A', 'Z'}, {'a', 'z'}, {'_', '_'}});
        auto const next = out_.characters({{'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'0', '9'}, {'-', '-'}});
        Literals values;
        if (more != nullptr) values.push_back({more});
        parts.push_back(out_.repeat(element(xml, out_.sequence({letter, out_.repeat(next, 0, -1)}), values), 0, -1));
      }
      parts.push_back(around());
      choices.push_back(out_.sequence(parts));
    }
    return out_.choice(choices);
  }
  SLUICE_LAZY Id element(XmlArguments const& xml, Id name, Literals const& values) {
    auto const value = argument(xml, values);
    auto const between =
        xml.before_value.empty() ? out_.empty() : out_.sequence({around(), out_.text(xml.before_value)});
    return new_rule("an argument",
                    out_.sequence({around(), out_.text(xml.before_name), name, out_.text(xml.behind_name), between,
                                   value, out_.text(xml.behind_value)}));
  }
  SLUICE_LAZY Id argument(XmlArguments const& xml, Literals all_of) {
    std::erase_if(all_of, is_true);
    auto const plain = [&](std::string const& text) { return out_.sequence({around(), out_.text(text), around()}); };
    std::vector<Id> choices;
    if (auto const values = all_of.empty() ? std::nullopt : listed(all_of)) {
      for (auto const* const value : *values)
        choices.push_back(value->is(Kind::string) ? plain(value->text)
                                                  : out_.sequence({around(), texts_.exactly(*value), around()}));
      return out_.choice(choices);
    }
    auto const some = all_of.empty() ? ~std::uint32_t{0} : may_be(all_of);
    if ((some & string) != 0) {
      // What ends the value may begin with white space that belongs to it.
      auto const free = FreeText({}, {xml.behind_value.substr(xml.behind_value.find_first_not_of('\n'))}).without();
      auto const texts = all_of.empty() ? nullptr : strings(all_of);
      auto const raw = out_.automaton(TextBytes::utf8(texts == nullptr ? free : *texts & free));
      // Free text has the new lines around it already.
      choices.push_back(texts == nullptr ? raw : out_.sequence({around(), raw, around()}));
    }
    if ((some & ~string) != 0) {
      static auto const text = JsonReader::parse("schema", R"({"type": "string"})", {});
      auto others = all_of;
      others.push_back({&text, true});
      choices.push_back(out_.sequence({around(), rule_of(others, 1), around()}));
    }
    return out_.choice(choices);
  }

  SLUICE_LAZY Id body_of(Literals const& all_of, std::int32_t nesting) {
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
