// SPDX-License-Identifier: Apache-2.0
// The grammars of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace sluice::c;
using sluice::Grammar, sluice::require;

/// Reads JsonSchemaOptions from a JSON object, beside what they are already.
void read_options(std::string_view text, sluice::JsonSchemaOptions& options) {
  using Value = sluice::detail::JsonValue;
  auto const all = sluice::detail::JsonReader::parse("options", text, {});
  require(all.is(Value::Kind::object), "json", text, "must be a JSON object");
  auto const refuse = [&](std::string const& name, char const* must) {
    require(false, "json: " + name, "of another kind", must);
  };
  for (auto const& member : all.members) {
    auto const& name = member.first;
    auto const& value = member.second;
    auto const integer = [&](std::int32_t& to) {
      auto const whole = value.is(Value::Kind::number) && value.text.size() < 10 &&
                         value.text.find_first_not_of("-0123456789") == std::string::npos;
      if (whole) to = static_cast<std::int32_t>(std::stol(value.text));
      else refuse(name, "must be an integer of less than ten digits");
    };
    auto const truth = [&](bool& to) {
      if (value.is(Value::Kind::boolean)) to = value.truth;
      else refuse(name, "must be true or false");
    };
    auto const string = [&](std::string& to) {
      if (value.is(Value::Kind::string)) to = value.text;
      else refuse(name, "must be a string");
    };
    std::string word;
    if (name == "white_space") integer(options.white_space);
    else if (name == "indent") integer(options.indent);
    else if (name == "digits") integer(options.digits);
    else if (name == "characters") integer(options.characters);
    else if (name == "tidy") truth(options.tidy);
    else if (name == "plain_numbers") truth(options.plain_numbers);
    else if (name == "lenient") truth(options.lenient);
    else if (name == "item_separator") string(options.item_separator);
    else if (name == "key_separator") string(options.key_separator);
    else if (name == "order") {
      string(word);
      require(word == "any" || word == "schema", "json: order", word, "must be any or schema");
      options.order = word == "any" ? sluice::JsonOrder::any : sluice::JsonOrder::schema;
    } else if (name == "escapes") {
      string(word);
      require(word == "any" || word == "usual", "json: escapes", word, "must be any or usual");
      options.escapes = word == "any" ? sluice::JsonEscapes::any : sluice::JsonEscapes::usual;
    } else {
      require(false, "json", name, "must have members of JsonSchemaOptions only");
    }
  }
}

Grammar compile(std::string_view kind, std::string_view text, sluice_grammar_options const& options) {
  auto const json = kind == "json_schema";
  require(json || options.white_space == 0, "white_space", options.white_space, "is for a json_schema");
  require(json || options.json == nullptr, "json", "not null", "is for a json_schema");
  if (kind == "gbnf") return Grammar::from_gbnf(text);
  if (kind == "regex") return Grammar::from_regex(text);
  if (kind == "structural_tag") return sluice::structural_tag(text);
  require(json, "kind", kind, "must be gbnf, regex, json_schema or structural_tag");
  sluice::JsonSchemaOptions how{
      .white_space = options.white_space, .order = sluice::JsonOrder::schema, .plain_numbers = true};
  if (options.json != nullptr) read_options(options.json, how);
  return Grammar::from_json_schema(text, how);
}

bool flag(std::int32_t value, std::string_view name) {
  require(value == 0 || value == 1, name, value, "must be 0 or 1");
  return value == 1;
}

}  // namespace

void sluice::c::make_grammar(TokenTrie const& tokens, char const* kind, char const* text,
                             sluice_grammar_options const* options, sluice_grammar** grammar) {
  std::string_view const wanted = &not_null(kind, "kind");
  std::string_view const source = &not_null(text, "text");
  auto& made = not_null(grammar, "grammar");
  auto const how = options == nullptr ? sluice_grammar_options{} : taken(*options);
  require(how.reserved == 0, "reserved", how.reserved, "must be 0");
  StructureOptions const structure{.certain = flag(how.longest, "longest") ? CertainText::longest : CertainText::any};
  auto const behind_space = flag(how.behind_space, "behind_space");
  auto compiled = compile(wanted, source, how);
  if (behind_space) compiled = compiled.behind_space();
  auto ignored = compiled.ignored();
  auto one = std::make_unique<sluice_grammar>(
      sluice_grammar{Structure(std::move(compiled), tokens, structure), std::move(ignored), {}});
  for (auto const& name : one->ignored) one->names.push_back({name.data(), name.size()});
  made = one.release();
}

extern "C" {

sluice_status sluice_model_set_bytes(sluice_model* model, sluice_bytes const* tokens, size_t count) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    require(tokens != nullptr || count == 0, "tokens", "null", "must be as many as it says");
    std::vector<std::string> texts(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto const& token = tokens[i];
      if (token.data == nullptr && token.count != 0)
        require(false, "tokens[" + std::to_string(i) + "].data", "null", "must be as many bytes as it says");
      if (token.count != 0) texts[i].assign(token.data, token.count);
    }
    sluice::TokenBytes bytes(texts);
    its.tokens = sluice::TokenTrie(bytes, its.model.vocabulary());
    its.bytes = std::move(bytes);
    return SLUICE_OK;
  });
}

sluice_status sluice_grammar_create(sluice_model const* model, char const* kind, char const* text,
                                    sluice_grammar_options const* options, sluice_grammar** grammar) {
  return guarded([&] {
    auto const& its = not_null(model, "model");
    if (options != nullptr) static_cast<void>(taken(*options));  // a struct of another size first of all
    require(!its.tokens.empty(), "model", "without bytes", "needs sluice_model_set_bytes before it takes a grammar");
    make_grammar(its.tokens, kind, text, options, grammar);
    return SLUICE_OK;
  });
}
void sluice_grammar_free(sluice_grammar* grammar) { delete grammar; }
sluice_status sluice_grammar_ignored(sluice_grammar const* grammar, sluice_bytes const** names, size_t* count) {
  return guarded([&] {
    auto const& its = not_null(grammar, "grammar");
    not_null(names, "names") = its.names.data(), not_null(count, "count") = its.names.size();
    return SLUICE_OK;
  });
}

sluice_status sluice_search_obey(sluice_search* search, sluice_grammar const* grammar) {
  return guarded([&] {
    not_null(search, "search").options.structure = grammar == nullptr ? sluice::Structure() : grammar->structure;
    return SLUICE_OK;
  });
}

}  // extern "C"
