// SPDX-License-Identifier: Apache-2.0
// The grammars of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/lark.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace sluice::c;
using sluice::Grammar, sluice::require;

/// The fields of a request that say which tools may be called, and the format of calls.
Grammar from_tools(std::string_view text) {
  using sluice::detail::JsonValue;
  using Kind = JsonValue::Kind;
  sluice::GrammarLimits const limits;
  sluice::detail::SourceReader const in("tool_calls", text, limits);
  auto const root = sluice::detail::JsonReader::parse("tool_calls", text, limits);
  if (!root.is(Kind::object)) in.fail_at(root.place, "must be an object");
  auto const given = [&](std::string_view name) -> JsonValue const* {
    auto const* const found = root.find(name);
    return found == nullptr || found->is(Kind::null) ? nullptr : found;
  };
  for (auto const& [name, value] : root.members)
    if (name != "format" && name != "tools" && name != "tool_choice" && name != "parallel_tool_calls")
      in.fail_at(value.place, name + ": is no field: format, tools, tool_choice and parallel_tool_calls are");
  auto const* const format = given("format");
  if (format == nullptr || !format->is(Kind::string))
    in.fail_at(format == nullptr ? root.place : format->place, "format: must be a string");
  sluice::ToolCallOptions options;
  if (auto const* const choice = given("tool_choice")) {
    using sluice::ToolChoice;
    auto const* const function = choice->find("function");
    auto const* const name = (function == nullptr ? *choice : *function).find("name");
    if (choice->is(Kind::object) && name != nullptr && name->is(Kind::string) && !name->text.empty())
      options.name = name->text;
    else if (choice->text == "required") options.choice = ToolChoice::required;
    else if (choice->text == "none") options.choice = ToolChoice::none;
    else if (choice->text != "auto")
      in.fail_at(
          choice->place,
          "tool_choice: must be auto, required, none or {\"type\": \"function\", \"function\": {\"name\": ...}}");
  }
  if (auto const* const parallel = given("parallel_tool_calls")) {
    if (!parallel->is(Kind::boolean)) in.fail_at(parallel->place, "parallel_tool_calls: must be true or false");
    options.parallel = parallel->truth;
  }
  auto const* const tools = given("tools");
  if (tools != nullptr && !tools->is(Kind::array)) in.fail_at(tools->place, "tools: must be an array");
  auto const list = tools == nullptr ? std::string_view("[]") : sluice::detail::json_source(text, *tools);
  return sluice::tool_calls(sluice::tool_format(format->text), list, options);
}

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

/// Grammars that a text calls by name.
Grammar::Named named(std::string_view kind, sluice_grammar_options const& options) {
  auto const count = options.grammar_count;
  require(count == 0 || kind == "gbnf" || kind == "lark", "grammar_count", count, "must be 0: for gbnf and lark");
  require(count == 0 || options.grammar_names != nullptr, "grammar_names", "null", "must be as many as grammar_count");
  require(count == 0 || options.grammars != nullptr, "grammars", "null", "must be as many as grammar_count");
  Grammar::Named all;
  for (std::size_t i = 0; i < count; ++i) {
    auto const place = [&](char const* of) { return std::string(of) + "[" + std::to_string(i) + "]"; };
    std::string_view const name = &not_null(options.grammar_names[i], place("grammar_names"));
    all.emplace_back(name, not_null(options.grammars[i], place("grammars")).grammar);
  }
  return all;
}

Grammar compile(std::string_view kind, std::string_view text, sluice_grammar_options const& options) {
  auto const json = kind == "json_schema";
  auto const grammars = named(kind, options);
  require(json || options.white_space == 0, "white_space", options.white_space, "is for a json_schema");
  require(json || options.json == nullptr, "json", "not null", "is for a json_schema");
  auto const bytes = options.byte_count;
  require(kind == "compiled" || bytes == 0, "byte_count", bytes, "must be 0: for compiled");
  require(options.bytes != nullptr || bytes == 0, "bytes", "null", "must be as many as it says");
  if (kind == "compiled") return Grammar::from_bytes(std::as_bytes(std::span(options.bytes, bytes)));
  if (kind == "gbnf") return Grammar::from_gbnf(text, {}, grammars);
  if (kind == "regex") return Grammar::from_regex(text);
  if (kind == "lark") return sluice::lark_grammar(text, sluice::tag_json(), grammars);
  if (kind == "structural_tag") return sluice::structural_tag(text);
  if (kind == "tool_calls") return from_tools(text);
  require(json, "kind", kind, "must be gbnf, lark, regex, json_schema, structural_tag, tool_calls or compiled");
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
  auto const given = wanted == "compiled";
  require(!given || text == nullptr, "text", "not null", "must be null for compiled: bytes are in the options");
  std::string_view const source = given ? "" : &not_null(text, "text");
  auto& made = not_null(grammar, "grammar");
  auto const how = options == nullptr ? sluice_grammar_options{} : taken(*options);
  require(how.reserved == 0, "reserved", how.reserved, "must be 0");
  StructureOptions const structure{.certain = flag(how.longest, "longest") ? CertainText::longest : CertainText::any};
  auto const behind_space = flag(how.behind_space, "behind_space");
  auto compiled = compile(wanted, source, how);
  if (behind_space) compiled = compiled.behind_space();
  auto ignored = compiled.ignored();
  auto one = std::make_unique<sluice_grammar>(
      sluice_grammar{compiled, Structure(compiled, tokens, structure), std::move(ignored), {}});
  for (auto const& name : one->ignored) one->names.push_back({name.data(), name.size()});
  made = one.release();
}

struct sluice_tool_parser {
  sluice::ToolCallParser parser;
  std::vector<sluice::ToolCallEvent> events;  // of the last call
  std::vector<sluice_tool_event> seen;        // the same

  void show(std::vector<sluice::ToolCallEvent> news) {
    static constexpr char const* kinds[] = {"content", "reasoning", "begun", "arguments", "ended"};
    events = std::move(news);
    seen.clear();
    for (auto const& one : events)
      seen.push_back({kinds[static_cast<std::size_t>(one.kind)], one.call, 0, one.text.data(), one.text.size()});
  }
};

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

sluice_status sluice_model_set_token_names(sluice_model* model, sluice_token const* tokens, sluice_bytes const* names,
                                           size_t count) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    auto const of = copy(tokens, count, "tokens");
    require(names != nullptr || count == 0, "names", "null", "must be as many as it says");
    require(!its.tokens.empty(), "model", "without bytes", "needs sluice_model_set_bytes before it takes names");
    std::vector<std::pair<std::string, sluice::Token>> all(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i].data == nullptr || names[i].count == 0)
        require(false, "names[" + std::to_string(i) + "]", "none", "must not be empty");
      all[i] = {std::string(names[i].data, names[i].count), of[i]};
    }
    its.tokens = sluice::TokenTrie(its.bytes, its.model.vocabulary(), std::move(all));
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

sluice_status sluice_grammar_to_bytes(sluice_grammar const* grammar, char* bytes, size_t capacity, size_t* size) {
  return guarded([&] {
    auto const& its = not_null(grammar, "grammar");
    auto& needed = not_null(size, "size");
    require(bytes != nullptr || capacity == 0, "bytes", "null", "must have the room that it says");
    auto const all = its.grammar.to_bytes();
    needed = all.size();
    if (capacity >= all.size()) std::memcpy(bytes, all.data(), all.size());
    return SLUICE_OK;
  });
}
sluice_status sluice_grammar_captures(sluice_grammar const* grammar, sluice_token const* tokens, size_t token_count,
                                      sluice_bytes const** names, sluice_bytes const** texts, size_t* count) {
  return guarded([&] {
    thread_local std::vector<std::pair<std::string, std::string>> all;
    thread_local std::vector<sluice_bytes> seen;  // names, then texts
    auto const& its = not_null(grammar, "grammar");
    auto const output = copy(tokens, token_count, "tokens");
    auto &called = not_null(names, "names"), &matched = not_null(texts, "texts");
    auto& number = not_null(count, "count");
    all = its.structure.captures(output);
    seen.clear();
    for (auto const& one : all) seen.push_back({one.first.data(), one.first.size()});
    for (auto const& one : all) seen.push_back({one.second.data(), one.second.size()});
    called = seen.data(), matched = seen.data() + all.size(), number = all.size();
    return SLUICE_OK;
  });
}

sluice_status sluice_search_obey(sluice_search* search, sluice_grammar const* grammar) {
  return guarded([&] {
    not_null(search, "search").options.structure = grammar == nullptr ? sluice::Structure() : grammar->structure;
    return SLUICE_OK;
  });
}

sluice_status sluice_tool_parser_create(char const* format, char const* tools, char const* reasoning_end,
                                        sluice_tool_parser** parser) {
  return guarded([&] {
    auto const reasons = reasoning_end != nullptr;
    auto const known = format == nullptr && reasons ? std::optional<sluice::ToolFormat>{}
                                                    : sluice::tool_format(&not_null(format, "format"));
    auto const thought = reasons ? std::optional(sluice::Reasoning{.end = reasoning_end}) : std::nullopt;
    auto& made = not_null(parser, "parser");
    made = new sluice_tool_parser{sluice::ToolCallParser(known, tools == nullptr ? "" : tools, thought), {}, {}};
    return SLUICE_OK;
  });
}
void sluice_tool_parser_free(sluice_tool_parser* parser) { delete parser; }
sluice_status sluice_tool_parser_append(sluice_tool_parser* parser, char const* text, size_t count,
                                        sluice_tool_event const** events, size_t* event_count) {
  return guarded([&] {
    auto& its = not_null(parser, "parser");
    require(text != nullptr || count == 0, "text", "null", "must be as many bytes as it says");
    auto& seen = not_null(events, "events");
    auto& number = not_null(event_count, "event_count");
    its.show(its.parser.append(count == 0 ? std::string_view() : std::string_view(text, count)));
    seen = its.seen.data(), number = its.seen.size();
    return SLUICE_OK;
  });
}
sluice_status sluice_tool_parser_finish(sluice_tool_parser* parser, sluice_tool_event const** events,
                                        size_t* event_count) {
  return guarded([&] {
    auto& its = not_null(parser, "parser");
    auto& seen = not_null(events, "events");
    auto& number = not_null(event_count, "event_count");
    its.show(its.parser.finish());
    seen = its.seen.data(), number = its.seen.size();
    return SLUICE_OK;
  });
}

}  // extern "C"
