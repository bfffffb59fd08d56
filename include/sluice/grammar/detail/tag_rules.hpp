// SPDX-License-Identifier: Apache-2.0
/// \file
/// Free text and tags as rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/free_text.hpp>
#include <sluice/grammar/detail/json_schema_rules.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// Parts of which structural tags and tool calls are made.
class TagRules {
 public:
  using Id = Expressions::Id;
  /// A tag within free text: what follows its trigger.
  struct Triggered {
    std::string trigger;
    Id rest;
  };

  TagRules(Expressions& out, JsonSchemaOptions const& options) : out_(out), options_(options) {}

  Expressions& out() { return out_; }

  /// A text; what looks like the name of a token (<|call|>, [CALL]) may be that token, where it has no bytes.
  SLUICE_LAZY Id marked(std::string_view text, bool tokens_only = false) {
    std::vector<Id> parts;
    while (!text.empty()) {
      auto const size = mark_size(text);
      if (size > 0) {
        std::string const name(text.substr(0, size));
        auto const token = out_.token({.written = name, .names = {name}, .optional = true});
        parts.push_back(tokens_only ? token : out_.choice({out_.text(name), token}));
        text.remove_prefix(size);
        tokens_only = false;  // the first alone must be one
        continue;
      }
      std::size_t plain = 1;
      while (plain < text.size() && mark_size(text.substr(plain)) == 0) ++plain;
      parts.push_back(out_.text(text.substr(0, plain)));
      text.remove_prefix(plain);
    }
    return out_.sequence(parts);
  }
  /// Any text in which these do not occur. \param most  characters; -1: any number \param tokens  likewise
  SLUICE_LAZY Id free(std::vector<std::string> const& excludes, std::int32_t most = -1, std::int32_t tokens = -1) {
    if (most == 0 || tokens == 0) return out_.empty();
    auto const texts = excludes.empty() ? TextAutomaton::anything() : FreeText({}, excludes).without();
    if (tokens < 0) return out_.automaton(TextBytes::utf8(texts, most));
    return out_.automaton(TextBytes::in_tokens(texts, tokens, most, "max_tokens = " + std::to_string(tokens)));
  }
  /// Free text in which triggers lead to what follows them, and free text goes on behind that.
  /// \param once  nothing goes on
  SLUICE_LAZY Id triggered(std::vector<Triggered> const& all, std::vector<std::string> const& excludes, bool once,
                           bool must = false) {
    std::vector<std::string> triggers;
    triggers.reserve(all.size());
    for (auto const& one : all)
      if (std::find(triggers.begin(), triggers.end(), one.trigger) == triggers.end()) triggers.push_back(one.trigger);
    FreeText const text(triggers, excludes);
    auto const rule = out_.add_rule("free text and tags");
    auto const quiet = out_.automaton(TextBytes::utf8(text.without()));
    std::vector<Id> choices;
    if (!must) choices.push_back(quiet);
    for (std::size_t i = 0; i < triggers.size(); ++i) {
      std::vector<Id> rests;
      for (auto const& one : all)
        if (one.trigger == triggers[i]) rests.push_back(one.rest);
      auto const rest = once ? out_.choice(rests) : out_.sequence({out_.choice(rests), out_.call(rule)});
      if (auto const until = text.until(i); !until.empty())
        choices.push_back(out_.sequence({out_.automaton(TextBytes::utf8(until)), rest}));
      if (mark_size(triggers[i]) > 0) choices.push_back(out_.sequence({quiet, marked(triggers[i], true), rest}));
    }
    out_.rules[static_cast<std::size_t>(rule)].expression = out_.choice(choices);
    return out_.call(rule);
  }
  /// \param xml  null: as JSON
  SLUICE_LAZY Id schema(std::string_view schema, XmlArguments const* xml = nullptr) {
    return this->schema(schema, xml, options_);
  }
  SLUICE_LAZY Id schema(std::string_view schema, XmlArguments const* xml, JsonSchemaOptions const& options) {
    Expressions own(options.limits);
    auto const root = JsonSchema::compile(schema, options, own, nullptr, xml);
    return out_.call(out_.include(own) + root);
  }
  JsonSchemaOptions const& options() const { return options_; }

 private:
  /// The size of what a text begins with and looks like the name of a token; 0: none.
  static std::size_t mark_size(std::string_view text) {
    if (text.empty() || (text[0] != '<' && text[0] != '[')) return 0;
    auto const close = text[0] == '<' ? '>' : ']';
    for (std::size_t i = 1; i < text.size(); ++i) {
      auto const c = text[i];
      if (c == close) return i > 1 ? i + 1 : 0;
      auto const upper = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/';
      if (text[0] == '[' ? !upper : static_cast<unsigned char>(c) <= ' ' || c == '<' || c == '=' || c == '"') return 0;
    }
    return 0;
  }

  Expressions& out_;
  JsonSchemaOptions const& options_;
};

}  // namespace sluice::inline v0::detail
