// SPDX-License-Identifier: Apache-2.0
/// \file
/// What looks like a call in xgrammar's EBNF.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/gbnf_elements.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/tag_rules.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Regex("..."), Substring("...", ...), Token(1, 2), ExcludeToken(1, 2), TagDispatch(("...", rule), ...) and
/// TokenTagDispatch((1, rule), ...).
class GbnfCalls {
 public:
  using Id = Expressions::Id;
  static bool known(std::string_view name) { return std::ranges::find(names, name) != std::end(names); }

  /// Reads the arguments; returns what the call stands for. \param rule  takes a name and its place; returns a call
  template <class Rule>
  static Id read(std::string_view name, SourceReader& in, Expressions& out, Rule const& rule) {
    GbnfCalls call(name, in, out);
    try {
      return call.made(rule);
    } catch (std::invalid_argument const& e) {
      if (std::string_view(e.what()).starts_with("sluice: grammar, line")) throw;
      constexpr std::string_view ours = "sluice: ";
      in.fail_at(call.place_, std::string(e.what()).substr(ours.size()));
    } catch (std::length_error const& e) {
      in.fail_at(call.place_, e.what());
    }
  }

 private:
  static constexpr std::string_view names[] = {"Regex",        "Substring",   "Token",
                                               "ExcludeToken", "TagDispatch", "TokenTagDispatch"};
  enum class Kind : std::uint8_t { text, number, name, tuple };
  struct Value {
    Kind kind = Kind::text;
    std::size_t place = 0;
    std::string text{};  // text, name; true and false are names
    std::int32_t number = 0;
    std::vector<Value> parts{};
  };

  GbnfCalls(std::string_view name, SourceReader& in, Expressions& out)
      : name_(name), in_(in), out_(out), place_(in.place()) {}

  SLUICE_LAZY Value value(bool nested) {
    Value out{.place = in_.place()};
    if (in_.peek() == '"') {
      out.text = GbnfElements::text(in_);
    } else if (in_.at_digit()) {
      out.kind = Kind::number, out.number = read_token_number(in_);
    } else if (in_.peek() == '(' && !nested) {
      in_.skip();
      out.kind = Kind::tuple;
      for (GbnfElements::space(in_); !in_.take(")");) {
        out.parts.push_back(value(true));
        GbnfElements::space(in_);
        if (in_.take(",")) GbnfElements::space(in_);
        else if (in_.peek() != ')') in_.fail("expected , or ) in a tuple");
      }
    } else {
      out.kind = Kind::name, out.text = in_.take_while(GbnfElements::is_name);
      if (out.text.empty()) in_.fail("expected a text, a number, a name or a tuple");
    }
    return out;
  }
  SLUICE_LAZY void arguments() {
    if (!in_.take("(")) in_.fail("expected ( behind " + name_);
    GbnfElements::space(in_);
    if (in_.take(")")) return;
    do {
      GbnfElements::space(in_);
      auto one = value(false);
      GbnfElements::space(in_);
      if (one.kind == Kind::name && in_.take("=")) {
        GbnfElements::space(in_);
        named_.emplace_back(std::move(one), value(false));
        GbnfElements::space(in_);
      } else {
        all_.push_back(std::move(one));
      }
    } while (in_.take(","));
    if (!in_.take(")")) in_.fail("expected , or )");
  }

  template <class Rule>
  Id made(Rule const& rule) {
    arguments();
    if (name_ == "Regex") return regex();
    if (name_ == "Substring") return substring();
    if (name_ == "Token" || name_ == "ExcludeToken") {
      none_left();
      if (all_.empty()) in_.fail_at(place_, "expected the number of a token");
      return out_.token(tokens(all_, name_ == "ExcludeToken"));
    }
    auto const loop = truth("loop_after_dispatch", true);
    auto const excludes = tuple("excludes");
    none_left();
    std::vector<std::pair<Value const*, Id>> tags;
    auto const by_text = name_ == "TagDispatch";
    for (auto const& one : all_) {
      auto const pair = one.kind == Kind::tuple && one.parts.size() == 2 && one.parts[1].kind == Kind::name &&
                        one.parts[0].kind == (by_text ? Kind::text : Kind::number);
      if (!pair || (by_text && one.parts[0].text.empty()))
        in_.fail_at(one.place, by_text ? "expected a pair of a text, not empty, and the name of a rule"
                                       : "expected a pair of a token's number and the name of a rule");
      tags.emplace_back(one.parts.data(), rule(one.parts[1].text, one.parts[1].place));
    }
    return by_text ? by_texts(tags, excludes, loop) : by_tokens(tags, excludes, loop);
  }
  SLUICE_LAZY Id by_texts(std::vector<std::pair<Value const*, Id>> const& tags, std::vector<Value> const& excludes,
                          bool loop) {
    std::vector<TagRules::Triggered> all;
    std::vector<std::string> never;
    all.reserve(tags.size());
    for (auto const& [tag, rest] : tags) all.push_back({tag->text, rest});
    for (auto const& one : excludes) {
      if (one.kind != Kind::text || one.text.empty()) in_.fail_at(one.place, "expected a text, not empty");
      for (auto const& tag : all)
        if (tag.trigger.starts_with(one.text)) in_.fail_at(one.place, one.text + " begins a tag, " + tag.trigger);
      never.push_back(one.text);
    }
    JsonSchemaOptions const no_schemas{};
    return TagRules(out_, no_schemas).triggered(all, never, !loop);
  }
  /// Other tokens, then one that leads to its rule, again and again.
  SLUICE_LAZY Id by_tokens(std::vector<std::pair<Value const*, Id>> const& tags, std::vector<Value> const& excludes,
                           bool loop) {
    auto taken = excludes;
    std::vector<Id> choices;
    for (auto const& [tag, rest] : tags) {
      for (auto const& one : excludes)
        if (one.number == tag->number) in_.fail_at(one.place, "excludes a token that is a tag");
      taken.push_back(*tag);
      choices.push_back(out_.sequence({out_.token(tokens({*tag}, false)), rest}));
    }
    auto const dispatch = out_.add_rule(name_);
    auto const others = out_.repeat(out_.token(tokens(taken, true)), 0, -1);
    auto const tag = out_.choice(choices);
    auto const whole = out_.sequence({others, out_.optional(loop ? out_.sequence({tag, out_.call(dispatch)}) : tag)});
    out_.rules[static_cast<std::size_t>(dispatch)].expression = whole;
    return out_.call(dispatch);
  }
  SLUICE_LAZY TokenTerminal tokens(std::vector<Value> const& all, bool complement) const {
    TokenTerminal out{.complement = complement};
    for (auto const& one : all) {
      if (one.kind != Kind::number) in_.fail_at(one.place, "expected the number of a token");
      out.ranges.emplace_back(one.number, one.number);
      out.written.append(out.written.empty() ? "<[" : ",").append(std::to_string(one.number));
    }
    out.written = (complement ? "!" : "") + (out.written.empty() ? "<[" : out.written) + "]>";
    return out;
  }
  SLUICE_LAZY Id regex() {
    if (all_.size() != 1 || all_[0].kind != Kind::text) in_.fail_at(place_, "expected one text, a regular expression");
    if (truth("json_string", false)) in_.fail_at(place_, "json_string = true is not supported");
    std::string flags = "s";  // without flags, . is any character
    if (auto const* const given = take("flags"); given != nullptr) {
      flags = given->text;
      std::erase(flags, 'u');  // all are Unicode's
      if (given->kind != Kind::text || flags.find_first_not_of("is") != std::string::npos)
        in_.fail_at(given->place, "expected a text of the flags i, s and u");
    }
    none_left();
    return Regex::parse("Regex", flags.empty() ? all_[0].text : "(?" + flags + ")" + all_[0].text, out_);
  }
  /// Any neighbours: from each text, it may go on with the next.
  SLUICE_LAZY Id substring() {
    none_left();
    std::vector<Id> choices{out_.empty()};
    auto next = out_.empty();
    for (auto i = all_.size(); i-- > 0;) {
      if (all_[i].kind != Kind::text) in_.fail_at(all_[i].place, "expected a text");
      auto const rule = out_.add_rule(name_);
      auto const from = out_.sequence({out_.text(all_[i].text), next});
      out_.rules[static_cast<std::size_t>(rule)].expression = from;
      next = out_.optional(out_.call(rule));
      choices.push_back(out_.call(rule));
    }
    return out_.choice(choices);
  }

  // Arguments with names.
  SLUICE_LAZY Value const* take(std::string_view name) {
    for (auto& [key, its] : named_)
      if (key.text == name) {
        key.text.clear();
        return &its;
      }
    return nullptr;
  }
  SLUICE_LAZY bool truth(std::string_view name, bool otherwise) {
    auto const* const given = take(name);
    if (given == nullptr) return otherwise;
    if (given->kind != Kind::name || (given->text != "true" && given->text != "false"))
      in_.fail_at(given->place, "expected true or false");
    return given->text == "true";
  }
  SLUICE_LAZY std::vector<Value> tuple(std::string_view name) {
    auto const* const given = take(name);
    if (given == nullptr) return {};
    if (given->kind != Kind::tuple) in_.fail_at(given->place, "expected a tuple");
    return given->parts;
  }
  SLUICE_LAZY void none_left() const {
    for (auto const& [key, its] : named_)
      if (!key.text.empty()) in_.fail_at(key.place, key.text + " is no argument of " + name_ + ", or comes twice");
  }

  std::string name_;
  SourceReader& in_;
  Expressions& out_;
  std::size_t place_;
  std::vector<Value> all_{};
  std::vector<std::pair<Value, Value>> named_{};
};

}  // namespace sluice::inline v0::detail
