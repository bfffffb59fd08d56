// SPDX-License-Identifier: Apache-2.0
/// \file
/// The strings that fit patterns and formats of JSON schemas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_document.hpp>
#include <sluice/grammar/detail/json_formats.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/regex_automaton.hpp>
#include <sluice/grammar/detail/regex_tree.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::inline v0::detail {

/// Each pattern and format is made once.
class JsonPatterns : public JsonDocument {
 public:
  using JsonDocument::JsonDocument;
  /// A set of texts; null: all.
  using Texts = std::shared_ptr<TextAutomaton const>;

 protected:
  SLUICE_LAZY Texts pattern(JsonValue const& value) {
    if (!value.is(Kind::string)) fail(value, "must be a string");
    return pattern(value, value.text);
  }
  SLUICE_LAZY Texts pattern(JsonValue const& value, std::string const& text) {
    auto const [it, fresh] = patterns_.try_emplace(text);
    if (!fresh) return it->second;
    try {
      it->second = share(RegexAutomaton::of(read_pattern(value, text), true));
      return it->second;
    } catch (std::length_error const& e) {
      patterns_.erase(text);
      unsupported(value, "the pattern beside other keywords leads to " + std::string(e.what()));
    }
  }
  SLUICE_LAZY RegexTree read_pattern(JsonValue const& value, std::string const& text) const {
    try {
      return Regex::tree("pattern", text, limits(), true);
    } catch (std::invalid_argument const& e) {
      unsupported(value, std::string(e.what()).substr(std::string_view("sluice: ").size()));
    }
  }
  /// Those that many schemas use, and that take long to make, are made once.
  SLUICE_LAZY static Texts known_format(std::string const& name) {
    auto const make = [](char const* format) {
      return share(RegexAutomaton::of(Regex::tree("format", json_format(format), GrammarLimits{}), false));
    };
    if (name == "date-time") {
      static Texts const once = make("date-time");
      return once;
    }
    if (name == "uri") {
      static Texts const once = make("uri");
      return once;
    }
    if (name == "email") {
      static Texts const once = make("email");
      return once;
    }
    if (name == "hostname") {
      static Texts const once = make("hostname");
      return once;
    }
    return make(name.c_str());
  }
  /// The most characters of a format, where its texts do not say it themselves; -1: any number.
  static std::int32_t most_characters(JsonValue const& format) {
    return format.text == "hostname" || format.text == "idn-hostname" ? 253 : -1;
  }
  /// But for the number of characters. Null: all texts, also for an unknown format.
  SLUICE_LAZY Texts format(JsonValue const& value) {
    if (!value.is(Kind::string)) fail(value, "must be a string");
    auto const [it, fresh] = formats_.try_emplace(value.text);
    if (!fresh) return it->second;
    if (json_format(value.text).empty()) {
      if (value.text == "regex") unsupported(value, "the format \"regex\" is not supported beside other keywords");
      ignore("format " + json_quoted(value.text));
      return nullptr;
    }
    return it->second = known_format(value.text);
  }
  SLUICE_LAZY static Texts share(TextAutomaton texts) {
    if (texts.full()) return nullptr;
    return std::make_shared<TextAutomaton const>(std::move(texts));
  }

 private:
  std::map<std::string, Texts> patterns_, formats_;
};

}  // namespace sluice::inline v0::detail
