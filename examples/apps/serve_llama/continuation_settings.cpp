// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/lark.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <text/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <http/member.hpp>
#include <http/memory.hpp>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <serve_llama/continuation_settings.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace serve {

namespace {

std::vector<std::pair<sluice::Token, float>> read_biases(Fields& fields, std::int32_t vocabulary) {
  std::vector<std::pair<sluice::Token, float>> biases;
  auto const* const found = fields.find("logit_bias");
  if (found == nullptr) return biases;
  if (!found->is_object()) Fields::refuse("logit_bias", *found, "an object of tokens");
  for (auto const& [name, bias] : found->items()) {
    auto const field = "logit_bias." + text::shortened(name);
    sluice::Token token = -1;
    auto const* const end = name.data() + name.size();
    auto const read = std::from_chars(name.data(), end, token);
    if (read.ec != std::errc() || read.ptr != end || token < 0 || token >= vocabulary)
      throw BadField(field, field + ": no such token in a vocabulary of " + std::to_string(vocabulary));
    if (!bias.is_number() || !(bias.get<double>() >= -100 && bias.get<double>() <= 100))
      Fields::refuse(field, bias, "a number in [-100, 100]");
    biases.emplace_back(token, bias.get<float>());
  }
  return biases;
}

// Clients are not trusted: each grammar compiles quickly or is refused, and takes a few megabytes at most.
constexpr sluice::GrammarLimits limits{.text = std::size_t{64} << 10, .repetition = 2000, .size = 20'000};
constexpr sluice::StructureOptions kept{.memory = std::size_t{16} << 20, .masks = 256, .ambiguity = 64};

sluice::Grammar compile_answer(GrammarSource const& source) {
  using Kind = GrammarSource::Kind;
  auto options = source.json;
  options.limits = limits;
  switch (source.kind) {
    case Kind::lark: return sluice::lark_grammar(source.text, options);
    case Kind::gbnf: return sluice::Grammar::from_gbnf(source.text, limits);
    case Kind::regex: return sluice::Grammar::from_regex(source.text, limits);
    case Kind::structural_tag: return sluice::structural_tag(source.text, options);
    case Kind::tool_calls: {
      auto const& tools = source.tools;
      using sluice::ToolChoice;
      return sluice::tool_calls(source.format, tools.json,
                                {.choice = tools.never      ? ToolChoice::none
                                           : tools.required ? ToolChoice::required
                                                            : ToolChoice::automatic,
                                 .name = tools.name,
                                 .parallel = tools.parallel,
                                 .schemas = options});
    }
    case Kind::any: return {};
    case Kind::json_schema: break;
  }
  return sluice::Grammar::from_json_schema(source.text, options);
}

/// A line for the operator: clients may think that they asked for more than they did.
void tell_ignored(std::string const& field, std::vector<std::string> const& names) {
  constexpr std::size_t most = 10;
  if (names.empty()) return;
  std::string line = "serve_llama: " + field + ": ignored, as it is no keyword:";
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    line.append(i == 0 ? " " : ", ")
        .append(text::shortened(Json(names[i]).dump(-1, ' ', false, Json::error_handler_t::replace)));
  if (names.size() > most) line.append(" and ").append(std::to_string(names.size() - most)).append(" more");
  std::fprintf(stderr, "%s\n", line.c_str());
}

sluice::Grammar compile(GrammarSource const& source) {
  auto answer = compile_answer(source);
  tell_ignored(source.field, answer.ignored());
  return source.behind ? sluice::after_reasoning(answer, *source.behind) : answer;
}

/// No members but these.
void allow(std::string const& name, Json const& object, std::initializer_list<std::string_view> known) {
  for (auto const& [key, value] : object.items())
    if (std::ranges::find(known, std::string_view(key)) == known.end() && !value.is_null()) {
      auto const field = name + "." + text::shortened(key);
      throw BadField(field, field + " is not a known field");
    }
}

/// OpenAI's response_format, with what is in it as it was sent; nothing: any text.
std::optional<GrammarSource> read_format(Fields& fields) {
  using Kind = GrammarSource::Kind;
  std::string const field = "response_format";
  auto const* const format = fields.find(field);
  if (format == nullptr) return std::nullopt;
  auto const type = format->is_object() ? format->value("type", Json()) : Json();
  if (type == "structural_tag")  // with all of its members, in either of the two forms
    return GrammarSource{Kind::structural_tag, field, *fields.source(field)};
  if (type != "text" && type != "json_object" && type != "json_schema")
    Fields::refuse(field, *format, "of type text, json_object, json_schema or structural_tag");
  if (type != "json_schema") {
    allow(field, *format, {"type"});
    return type == "text" ? std::nullopt
                          : std::optional(GrammarSource{Kind::json_schema, field, R"({"type":"object"})"});
  }
  allow(field, *format, {"type", "json_schema"});
  auto const inner = format->value("json_schema", Json());
  if (!inner.is_object() || !inner.contains("schema"))
    throw BadField(field, "response_format.json_schema.schema is missing");
  allow(field + ".json_schema", inner, {"name", "description", "schema", "strict"});
  auto const may_be = [&](char const* name, bool fits, char const* wanted) {
    if (!fits) Fields::refuse(field + ".json_schema." + name, inner.at(name), wanted);
  };
  auto const is_text = [&](char const* name) { return inner.value(name, Json("")).is_string(); };
  may_be("name", is_text("name"), "a string"), may_be("description", is_text("description"), "a string");
  auto const strict = inner.value("strict", Json());  // a schema always holds
  may_be("strict", strict.is_null() || strict.is_boolean(), "true or false");
  auto const source = *fields.source(field);
  return GrammarSource{Kind::json_schema, field,
                       std::string(member_text(member_text(source, "json_schema"), "schema"))};
}

}  // namespace

std::optional<sluice::Structure> Grammars::find(std::string const& key) {
  std::lock_guard const lock(mutex_);
  auto const found = std::ranges::find(
      known_, key, [](auto const& one) -> auto& { return one.first; });
  if (found == known_.end()) return std::nullopt;
  std::rotate(known_.begin(), found, found + 1);
  return known_.front().second;
}

/// \param tools  of the request
std::optional<GrammarSource> read_grammar(Fields& fields, sluice::JsonSchemaOptions const& json, Tools const& tools,
                                          sluice::ToolFormat format) {
  using Kind = GrammarSource::Kind;
  std::optional<GrammarSource> wanted;
  GrammarSource const calls{.kind = Kind::tool_calls, .field = "tools", .tools = tools, .format = format};
  if (tools.may_be_called()) wanted = calls;
  for (auto const* field : {"response_format", "json_schema", "grammar", "lark", "regex"}) {
    if (!fields.has(field)) continue;
    if (field == std::string("response_format") && wanted && !read_format(fields)) continue;  // of type text
    if (wanted) throw BadField(field, std::string(field) + " and " + wanted->field + ": give only one grammar");
    if (field == std::string("response_format")) {
      wanted = read_format(fields);
      continue;
    }
    // A schema may be JSON or text. The order of its members matters, and a parsed request does not keep it.
    auto const schema = field == std::string("json_schema") && !fields.find(field)->is_string();
    auto const kind = field == std::string("grammar") ? Kind::gbnf
                      : field == std::string("lark")  ? Kind::lark
                      : field == std::string("regex") ? Kind::regex
                                                      : Kind::json_schema;
    wanted.emplace(GrammarSource{kind, field, schema ? *fields.source(field) : *fields.text(field)});
  }
  if (!wanted && tools.any()) wanted = calls;  // the model must not write any
  auto options = json;
  auto const schema = wanted && wanted->kind != Kind::gbnf && wanted->kind != Kind::regex;
  auto const count = [&](char const* name, std::int32_t& to, std::int64_t low, std::int64_t high) {
    auto const found = fields.integer(name, low, high);
    if (found && !schema) throw BadField(name, std::string(name) + " has no effect without json_schema");
    if (found) to = static_cast<std::int32_t>(*found);
  };
  count("white_space", options.white_space, -1, 100), count("json_digits", options.digits, 0, 300);
  count("json_characters", options.characters, 0, limits.repetition);
  if (schema) wanted->json = options;
  return wanted;
}

sluice::Structure Grammars::of(GrammarSource const& source) {
  auto const& json = source.json;
  auto const& tools = source.tools;
  std::string key;
  for (auto const part : {static_cast<int>(source.kind), static_cast<int>(source.format), int{tools.required},
                          int{tools.never}, int{tools.parallel}, json.white_space, json.digits, json.characters,
                          source.behind ? source.behind->budget : -2})
    key += std::to_string(part) + ' ';
  key += source.field + ' ' + Json(tools.name).dump() + '\n' + tools.json + source.text;
  if (auto const known = find(key)) return *known;
  Account::Counting const uncounted(nullptr);  // it is kept, and has limits of its own
  try {
    sluice::Structure const structure(compile(source), tokens_, kept);
    // What takes long, or is too ambiguous, from the start holds up this thread and not the decoder.
    (void)structure.may_follow(structure.start(), std::numeric_limits<std::int32_t>::max());
    std::lock_guard const lock(mutex_);
    known_.emplace_front(key, structure);
    if (known_.size() > most) known_.pop_back();
    return structure;
  } catch (std::invalid_argument const& error) {
    throw BadField(source.field, source.field + ": " + error.what());
  } catch (std::length_error const& error) {
    throw BadField(source.field, source.field + ": " + error.what());
  }
}

ContinuationSettings continuation_settings(Completion const& completion, Fields& fields, Bounds const& bounds,
                                           std::int32_t vocabulary, Offer const& offer,
                                           sluice::JsonSchemaOptions const& json, sluice::ToolFormat format,
                                           sluice::Reasoning const& reasoning) {
  ContinuationSettings settings;
  settings.wants = completion;
  settings.outputs = completion.best_of.value_or(completion.choices);
  settings.grammar = read_grammar(fields, json, completion.tools, format);
  if (completion.reasons) {
    auto behind = reasoning;
    if (completion.thinking >= 0) behind.budget = completion.thinking;
    if (behind.budget >= 0 && !behind.tokens)
      throw BadField("thinking_token_budget", "thinking_token_budget: this model's tokenizer has no token </think>");
    if (!settings.grammar && behind.budget >= 0)
      settings.grammar = GrammarSource{.kind = GrammarSource::Kind::any, .field = "thinking_token_budget"};
    if (settings.grammar) settings.grammar->behind = behind;
  }
  // 16 tokens, OpenAI's default, are too few for what has a form.
  auto const room = completion.chat || settings.grammar;
  settings.most = completion.max_tokens.value_or(room ? bounds.length : std::min(settings.most, bounds.length));
  if (completion.seed) settings.seed = *completion.seed;
  else settings.seed = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  settings.biases = read_biases(fields, vocabulary);
  settings.phrases = BiasField(fields);
  read_samplers(fields, settings);
  auto const& watermarking = offer.watermarking;
  settings.watermark = watermarking.of(fields);
  if (settings.watermark.on()) {
    if (!settings.samples() && watermarking.draws())
      watermarking.refuse("temperature", "temperature: 0 draws nothing that the key could decide");
    if (settings.samples()) watermarking.check_samples(completion.best_of ? "best_of" : "n", settings.outputs);
  }
  settings.remember = offer.remembers(fields), settings.guesses = offer.blockwise();
  return settings;
}

}  // namespace serve
