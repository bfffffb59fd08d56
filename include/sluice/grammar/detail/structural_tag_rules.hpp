// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structural tags as rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/gbnf.hpp>
#include <sluice/grammar/detail/json_schema_rules.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/tag_rules.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Reads structural tags in the JSON of xgrammar's `structural_tag`, which vLLM and SGLang take, and the older one of
/// `structures` and `triggers`.
class StructuralTag {
 public:
  /// \returns  a rule
  SLUICE_LAZY static std::int32_t compile(std::string_view text, JsonSchemaOptions const& options, Expressions& out) {
    return StructuralTag(text, options, out).whole();
  }

 private:
  using Id = Expressions::Id;
  using Kind = JsonValue::Kind;
  /// What ends the tag around a format.
  struct Around {
    bool tag = false;
    std::vector<std::string> ends{};  // strings that are not empty
    JsonValue const* token = nullptr;
  };

  SLUICE_LAZY StructuralTag(std::string_view text, JsonSchemaOptions const& options, Expressions& out)
      : text_(text), in_("structural tag", text, options.limits), out_(out), rules_(out, options) {}

  SLUICE_LAZY [[noreturn]] void fail(JsonValue const& value, std::string const& why) const {
    in_.fail_at(value.place, why);
  }

  SLUICE_LAZY std::int32_t whole() {
    auto const root = JsonReader::parse("structural tag", text_, rules_.options().limits);
    if (!root.is(Kind::object)) fail(root, "must be an object");
    auto const rule = out_.add_rule("structural tag");
    auto const* const type = root.find("type");
    Id all = 0;
    if (root.find("structures") != nullptr || (root.find("triggers") != nullptr && root.find("tags") == nullptr)) {
      all = older(root);
    } else if (type != nullptr && type->is(Kind::string) && type->text != "structural_tag") {
      all = format(root, {});  // without its wrapping
    } else {
      if (string(root, "type") != "structural_tag") fail(*type, "type: must be structural_tag");
      all = format(field(root, "format", Kind::object), {});
    }
    out_.rules[static_cast<std::size_t>(rule)].expression = all;
    return rule;
  }
  SLUICE_LAZY Id older(JsonValue const& root) {
    auto const triggers = strings(root, "triggers", true);
    std::vector<TagRules::Triggered> all;
    for (auto const& one : field(root, "structures", Kind::array).items) {
      auto const begin = string(one, "begin");
      auto const content = rules_.schema(source(field(one, "schema")));
      all.push_back({trigger_of(one, begin, triggers), {}});
      all.back().rest = out_.sequence({rules_.marked(std::string_view(begin).substr(all.back().trigger.size())),
                                       content, rules_.marked(string(one, "end"))});
    }
    try {
      return rules_.triggered(all, {}, false);
    } catch (std::length_error const& e) {
      fail(root, std::string("triggers: lead to ") + e.what());
    }
  }

  // Fields.
  SLUICE_LAZY JsonValue const& field(JsonValue const& of, std::string const& name) const {
    if (!of.is(Kind::object)) fail(of, "must be an object");
    auto const* const value = of.find(name);
    if (value == nullptr) fail(of, name + ": is missing");
    return *value;
  }
  SLUICE_LAZY JsonValue const& field(JsonValue const& of, std::string const& name, Kind kind) const {
    static constexpr std::array<char const*, 6> kinds{"null",     "true or false", "a number",
                                                      "a string", "an array",      "an object"};
    auto const& value = field(of, name);
    if (!value.is(kind)) fail(value, name + ": must be " + kinds[static_cast<std::size_t>(kind)]);
    return value;
  }
  SLUICE_LAZY std::string const& string(JsonValue const& of, std::string const& name) const {
    return field(of, name, Kind::string).text;
  }
  /// \param must  it must be there, and not be empty
  SLUICE_LAZY std::vector<std::string> strings(JsonValue const& of, std::string const& name, bool must) const {
    std::vector<std::string> out;
    if (!must && of.find(name) == nullptr) return out;
    auto const& list = field(of, name, Kind::array);
    if (must && list.items.empty()) fail(list, name + ": must not be empty");
    for (auto const& one : list.items) {
      if (!one.is(Kind::string) || one.text.empty()) fail(one, name + ": must hold strings that are not empty");
      out.push_back(one.text);
    }
    return out;
  }
  SLUICE_LAZY bool flag(JsonValue const& of, std::string const& name, bool usual) const {
    return of.find(name) == nullptr ? usual : field(of, name, Kind::boolean).truth;
  }
  /// \param least  the smallest that may be asked
  SLUICE_LAZY std::int32_t number(JsonValue const& of, std::string const& name, std::int64_t least) const {
    auto const& value = field(of, name, Kind::number);
    auto const digits = std::string_view(value.text).substr(value.text[0] == '-' ? 1 : 0);
    auto const whole = digits.size() < 11 && digits.find_first_not_of("0123456789") == std::string_view::npos;
    auto const n = whole ? std::stoll(value.text) : 0;
    if (!whole || n < least || n > rules_.options().limits.repetition)
      fail(value, name + " = " + value.text + ": must be a whole number from " + std::to_string(least) + " to " +
                      std::to_string(rules_.options().limits.repetition));
    return static_cast<std::int32_t>(n);
  }
  /// A number that may be missing, or null: -1.
  SLUICE_LAZY std::int32_t limit(JsonValue const& of, std::string const& name) const {
    auto const* const value = of.find(name);
    return value == nullptr || value->is(Kind::null) ? -1 : number(of, name, 0);
  }
  SLUICE_LAZY std::vector<JsonValue> const& list(JsonValue const& of, std::string const& name) const {
    auto const& value = field(of, name, Kind::array);
    if (value.items.empty()) fail(value, name + ": must not be empty");
    return value.items;
  }
  /// A value as it was written.
  SLUICE_LAZY std::string_view source(JsonValue const& value) const {
    if (!value.is(Kind::object) && !value.is(Kind::boolean)) fail(value, "a schema must be an object, true or false");
    if (value.is(Kind::boolean)) return value.truth ? "true" : "false";
    return json_source(text_, value);
  }

  // Tokens.
  SLUICE_LAZY void add_token(JsonValue const& value, TokenTerminal& to) const {
    if (value.is(Kind::string)) {
      to.names.push_back(value.text);
    } else {
      auto const whole = value.is(Kind::number) && value.text.size() < 10 &&
                         value.text.find_first_not_of("0123456789") == std::string::npos;
      if (!whole) fail(value, "a token must be a string or a whole number");
      auto const n = static_cast<std::int32_t>(std::stol(value.text));
      to.ranges.emplace_back(n, n);
    }
    to.written += (to.written.empty() ? "" : ", ") + (value.is(Kind::string) ? value.text : "<[" + value.text + "]>");
  }
  SLUICE_LAZY Id token(JsonValue const& value) {
    TokenTerminal out;
    add_token(value, out);
    return out_.token(std::move(out));
  }
  /// Any but those that are listed, and more.
  SLUICE_LAZY Id other_token(JsonValue const& of, std::vector<JsonValue const*> const& more) {
    TokenTerminal out{.complement = true};
    if (of.find("exclude_tokens") != nullptr)
      for (auto const& one : field(of, "exclude_tokens", Kind::array).items) add_token(one, out);
    for (auto const* const one : more) add_token(*one, out);
    out.written = "!(" + out.written + ")";
    return out_.token(std::move(out));
  }

  // Tags.
  SLUICE_LAZY std::string trigger_of(JsonValue const& tag, std::string const& begin,
                                     std::vector<std::string> const& triggers) const {
    std::string found;
    for (auto const& one : triggers)
      if (begin.starts_with(one)) {
        if (!found.empty()) fail(tag, "begin = " + begin + ": more than one trigger fits");
        found = one;
      }
    if (found.empty()) fail(tag, "begin = " + begin + ": no trigger fits");
    return found;
  }
  /// What follows the begin of a tag.
  SLUICE_LAZY Id behind(JsonValue const& tag) {
    auto const& end = field(tag, "end");
    Around inside{.tag = true};
    std::vector<Id> ends;
    if (end.is(Kind::object)) {
      inside.token = &field(end, "token");
      ends.push_back(token(*inside.token));
    } else if (end.is(Kind::string) || (end.is(Kind::array) && !end.items.empty())) {
      for (auto const& one : end.is(Kind::string) ? std::span(&end, 1) : std::span(end.items)) {
        if (!one.is(Kind::string)) fail(one, "end: must be a string, an array of strings, or a token");
        ends.push_back(rules_.marked(one.text));
        if (!one.text.empty()) inside.ends.push_back(one.text);
      }
    } else {
      fail(end, "end: must be a string, an array of strings that is not empty, or a token");
    }
    auto const content = format(field(tag, "content", Kind::object), inside);
    return out_.sequence({content, out_.choice(ends)});
  }
  SLUICE_LAZY Id tag(JsonValue const& one) {
    auto const& begin = field(one, "begin");
    if (begin.is(Kind::object)) return out_.sequence({token(field(begin, "token")), behind(one)});
    return out_.sequence({rules_.marked(string(one, "begin")), behind(one)});
  }
  SLUICE_LAZY static std::vector<std::string> both(std::vector<std::string> a, std::vector<std::string> const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  SLUICE_LAZY Id triggered_tags(JsonValue const& value, Around const& around) {
    auto const triggers = strings(value, "triggers", true);
    auto const excludes = both(strings(value, "excludes", false), around.ends);
    auto const once = flag(value, "stop_after_first", false), must = flag(value, "at_least_one", false);
    std::vector<TagRules::Triggered> all;
    std::vector<Id> firsts;
    for (auto const& one : list(value, "tags")) {
      auto const begin = string(one, "begin");
      auto const trigger = trigger_of(one, begin, triggers);
      auto const rest = new_rule("tag " + begin, behind(one));
      all.push_back({trigger, out_.sequence({rules_.marked(std::string_view(begin).substr(trigger.size())), rest})});
      firsts.push_back(out_.sequence({rules_.marked(begin), rest}));
    }
    if (!must) return rules_.triggered(all, excludes, once);
    if (once) return out_.choice(firsts);
    return out_.sequence({out_.choice(firsts), rules_.triggered(all, excludes, false)});
  }
  SLUICE_LAZY Id dispatch(JsonValue const& value, Around const& around) {
    std::vector<TagRules::Triggered> all;
    for (auto const& one : list(value, "rules")) {
      if (!one.is(Kind::array) || one.items.size() != 2 || !one.items[0].is(Kind::string) || one.items[0].text.empty())
        fail(one, "rules: must hold pairs of a string and a format");
      all.push_back({one.items[0].text, new_rule("behind " + one.items[0].text, format(one.items[1], {}))});
    }
    return rules_.triggered(all, both(strings(value, "excludes", false), around.ends), !flag(value, "loop", true));
  }
  /// Any other tokens, then one that leads to what follows it, again and again.
  SLUICE_LAZY Id by_token(JsonValue const& value, std::vector<std::pair<JsonValue const*, Id>> const& all,
                          Around const& around, bool once) {
    std::vector<JsonValue const*> taken;
    taken.reserve(all.size() + 1);
    for (auto const& one : all) taken.push_back(one.first);
    if (around.token != nullptr) taken.push_back(around.token);
    auto const rule = out_.add_rule("tokens and tags");
    auto const others = out_.repeat(other_token(value, taken), 0, -1);
    std::vector<Id> choices;
    choices.reserve(all.size());
    for (auto const& [first, rest] : all) choices.push_back(out_.sequence({token(*first), rest}));
    auto const next = once ? out_.choice(choices) : out_.sequence({out_.choice(choices), out_.call(rule)});
    out_.rules[static_cast<std::size_t>(rule)].expression = out_.sequence({others, out_.optional(next)});
    return out_.call(rule);
  }
  SLUICE_LAZY Id token_triggered_tags(JsonValue const& value, Around const& around) {
    auto const once = flag(value, "stop_after_first", false), must = flag(value, "at_least_one", false);
    auto const& triggers = list(value, "trigger_tokens");
    std::vector<std::pair<JsonValue const*, Id>> all;
    std::vector<Id> firsts;
    for (auto const& one : list(value, "tags")) {
      auto const& begin = field(field(one, "begin", Kind::object), "token");
      auto const known =
          std::ranges::any_of(triggers, [&](auto const& t) { return t.kind == begin.kind && t.text == begin.text; });
      if (!known) fail(begin, "begin = " + begin.text + ": no trigger fits");
      all.emplace_back(&begin, new_rule("tag " + begin.text, behind(one)));
      firsts.push_back(out_.sequence({token(begin), all.back().second}));
    }
    for (auto const& one : triggers)
      if (std::ranges::none_of(all,
                               [&](auto const& t) { return t.first->kind == one.kind && t.first->text == one.text; }))
        all.emplace_back(&one, out_.nothing());
    if (!must) return by_token(value, all, around, once);
    if (once) return out_.choice(firsts);
    return out_.sequence({out_.choice(firsts), by_token(value, all, around, false)});
  }

  SLUICE_LAZY Id new_rule(std::string name, Id body) {
    auto const rule = out_.add_rule(std::move(name));
    out_.rules[static_cast<std::size_t>(rule)].expression = body;
    return out_.call(rule);
  }
  SLUICE_LAZY Id json(JsonValue const& value, std::string const& style) {
    static std::array<std::pair<std::string_view, XmlArguments>, 3> const styles{
        {{"qwen_xml", {"<parameter=", ">", "", "</parameter>"}},
         {"minimax_xml", {"<parameter name=\"", "\">", "", "</parameter>"}},
         {"glm_xml", {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}}}};
    auto options = rules_.options();
    if (flag(value, "any_order", false)) options.order = JsonOrder::any;
    if (auto const* const most = value.find("max_whitespace_cnt"); most != nullptr && !most->is(Kind::null))
      options.white_space = number(value, "max_whitespace_cnt", 0), options.tidy = false;
    auto const schema = source(field(value, "json_schema"));
    if (style == "json") return rules_.schema(schema, nullptr, options);
    for (auto const& [name, xml] : styles)
      if (style == name) return rules_.schema(schema, &xml, options);
    fail(value, "style = " + style + ": must be json, qwen_xml, minimax_xml or glm_xml");
  }
  SLUICE_LAZY Id any_text(JsonValue const& value, Around const& around) {
    auto const excludes = both(strings(value, "excludes", false), around.ends);
    if (around.tag && around.token == nullptr && excludes.empty())
      fail(value, "any_text: the tag around it has no end by which it could be told");
    return rules_.free(excludes, limit(value, "max_chars"), limit(value, "max_tokens"));
  }

  SLUICE_LAZY Id format(JsonValue const& value, Around const& around) {
    if (!value.is(Kind::object)) fail(value, "a format must be an object");
    auto const& type = string(value, "type");
    auto const parts = [&](std::vector<JsonValue> const& all) {
      std::vector<Id> out;
      out.reserve(all.size());
      for (auto const& one : all) out.push_back(format(one, around));
      return out;
    };
    auto const content = [&] { return new_rule(type, format(field(value, "content", Kind::object), around)); };
    try {
      if (type == "const_string") return rules_.marked(string(value, "value"));
      if (type == "json_schema") return json(value, value.find("style") == nullptr ? "json" : string(value, "style"));
      if (type == "qwen_xml_parameter") return json(value, "qwen_xml");
      if (type == "regex") return Regex::parse("pattern", string(value, "pattern"), out_);
      if (type == "grammar") {
        Expressions own(rules_.options().limits);
        auto const root = Gbnf::parse(string(value, "grammar"), own);
        return out_.call(out_.include(own) + root);
      }
      if (type == "any_text") return any_text(value, around);
      if (type == "sequence") return out_.sequence(parts(list(value, "elements")));
      if (type == "or") return out_.choice(parts(list(value, "elements")));
      if (type == "optional") return out_.optional(content());
      if (type == "star") return out_.repeat(content(), 0, -1);
      if (type == "plus") return out_.repeat(content(), 1, -1);
      if (type == "repeat") {
        auto const least = number(value, "min", 0), most = number(value, "max", -1);
        if (most >= 0 && most < least) fail(value, "max = " + std::to_string(most) + ": is less than min");
        return out_.repeat(content(), least, most);
      }
      if (type == "tag") return tag(value);
      if (type == "triggered_tags") return triggered_tags(value, around);
      if (type == "tags_with_separator") return with_separator(value);
      if (type == "dispatch") return dispatch(value, around);
      if (type == "token") return token(field(value, "token"));
      if (type == "exclude_token" || type == "any_tokens") {
        std::vector<JsonValue const*> more;
        if (around.token != nullptr) more.push_back(around.token);
        auto const one = other_token(value, more);
        return type == "exclude_token" ? one : out_.repeat(one, 0, limit(value, "max_tokens"));
      }
      if (type == "token_triggered_tags") return token_triggered_tags(value, around);
      if (type == "token_dispatch") {
        std::vector<std::pair<JsonValue const*, Id>> all;
        for (auto const& one : list(value, "rules")) {
          if (!one.is(Kind::array) || one.items.size() != 2)
            fail(one, "rules: must hold pairs of a token and a format");
          all.emplace_back(one.items.data(), new_rule("behind " + one.items[0].text, format(one.items[1], {})));
        }
        return by_token(value, all, around, !flag(value, "loop", true));
      }
    } catch (std::length_error const& e) {
      fail(value, type + ": leads to " + e.what());
    }
    fail(value, "type = " + type + ": is no format");
  }
  SLUICE_LAZY Id with_separator(JsonValue const& value) {
    std::vector<Id> tags;
    tags.reserve(list(value, "tags").size());
    for (auto const& one : list(value, "tags")) tags.push_back(tag(one));
    auto const separator = rules_.marked(string(value, "separator"));
    auto const any = new_rule("tags", out_.choice(tags));
    auto const once = flag(value, "stop_after_first", false);
    auto const some = once ? any : out_.sequence({any, out_.repeat(out_.sequence({separator, any}), 0, -1)});
    return flag(value, "at_least_one", false) ? some : out_.optional(some);
  }

  std::string_view text_;
  SourceReader in_;
  Expressions& out_;
  TagRules rules_;
};

}  // namespace sluice::inline v0::detail
