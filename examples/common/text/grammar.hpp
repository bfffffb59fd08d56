// SPDX-License-Identifier: Apache-2.0
/// \file
/// The grammar options of a command line.
#pragma once

#include <sluice/grammar/grammar.hpp>

#include <text/lines.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// The grammar that outputs match; at most one is set.
struct GrammarSource {
  std::filesystem::path grammar{};                                                            ///< GBNF; empty: none
  std::filesystem::path json_schema{};                                                        ///< empty: none
  std::optional<std::string> regex{};                                                         ///< nothing: none
  sluice::JsonSchemaOptions json{.order = sluice::JsonOrder::schema, .plain_numbers = true};  ///< of the schema
};

/// For language models, which write JSON with white space and get worse where they must not, and whose numbers and texts must end
/// somewhere: what a schema leaves open.
inline sluice::JsonSchemaOptions json_of_language_models() {
  return {.white_space = 21,
          .tidy = true,
          .order = sluice::JsonOrder::schema,
          .plain_numbers = true,
          .digits = 15,  // a double holds them exactly
          .characters = 1000};
}

/// The flags of these.
/// \param add  (name, value, type, text) -> CLI::Option*
/// \returns those
template <class Option, class Add>
std::vector<Option*> add_json_flags(sluice::JsonSchemaOptions& json, Add const& add) {
  return {add("--white-space", json.white_space, "N",
              "JSON: white space where writers put it, at most a new line and N - 1 blanks; 0: compact; -1: any number "
              "(21)"),
          add("--json-digits", json.digits, "N",
              "JSON: digits, before and behind the point, of numbers that the schema leaves open; 0: any number (15)"),
          add("--json-characters", json.characters, "N",
              "JSON: characters of strings that the schema leaves open; 0: any number (1000)")};
}

/// The compiled grammar; allows any text if none is set.
/// \throws InputError  for a file that cannot be read, or an invalid grammar, with line and column
inline sluice::Grammar read_grammar(GrammarSource const& source) {
  auto const whole = [](std::filesystem::path const& file) -> std::string {
    std::ifstream stream(file, std::ios::binary);
    if (!stream || std::filesystem::is_directory(file)) throw InputError(file.string() + ": cannot be opened");
    return {std::istreambuf_iterator<char>(stream), {}};
  };
  auto where = source.grammar.string();
  try {
    if (!source.grammar.empty()) return sluice::Grammar::from_gbnf(whole(source.grammar));
    where = source.json_schema.string();
    if (!source.json_schema.empty()) return sluice::Grammar::from_json_schema(whole(source.json_schema), source.json);
    where = "--regex";
    if (source.regex) return sluice::Grammar::from_regex(*source.regex);
    return {};
  } catch (std::invalid_argument const& error) {
    std::string_view what = error.what();
    if (what.starts_with("sluice: ")) what.remove_prefix(8);
    throw InputError(where + ": " + std::string(what));
  }
}

}  // namespace text
