// SPDX-License-Identifier: Apache-2.0
#include <text/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <http/member.hpp>
#include <http/memory.hpp>
#include <limits>
#include <optional>
#include <random>
#include <serve_llama/continuation_settings.hpp>
#include <stdexcept>
#include <string>
#include <utility>

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

sluice::Grammar compile(GrammarSource const& source) {
  if (source.field == "grammar") return sluice::Grammar::from_gbnf(source.text, limits);
  if (source.field == "regex") return sluice::Grammar::from_regex(source.text, limits);
  auto options = source.json;
  options.limits = limits;
  return sluice::Grammar::from_json_schema(source.text, options);
}

/// The schema of OpenAI's response_format, as it was sent; nothing: any text.
std::optional<std::string> read_format(Fields& fields) {
  auto const* const format = fields.find("response_format");
  if (format == nullptr) return std::nullopt;
  auto const type = format->is_object() ? format->value("type", Json()) : Json();
  if (type == "text") return std::nullopt;
  if (type == "json_object") return R"({"type":"object"})";
  if (type != "json_schema") Fields::refuse("response_format", *format, "of type text, json_object or json_schema");
  auto const inner = format->value("json_schema", Json());
  if (!inner.is_object() || !inner.contains("schema"))
    throw BadField("response_format", "response_format.json_schema.schema is missing");
  auto const source = *fields.source("response_format");
  return std::string(member_text(member_text(source, "json_schema"), "schema"));
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

std::optional<GrammarSource> read_grammar(Fields& fields, sluice::JsonSchemaOptions const& json) {
  std::optional<GrammarSource> wanted;
  for (auto const* field : {"response_format", "json_schema", "grammar", "regex"}) {
    if (!fields.has(field)) continue;
    if (wanted) throw BadField(field, std::string(field) + " and " + wanted->field + ": give only one grammar");
    if (field == std::string("response_format")) {
      if (auto schema = read_format(fields)) wanted.emplace(GrammarSource{field, std::move(*schema)});
      continue;
    }
    // A schema may be JSON or text. The order of its members matters, and a parsed request does not keep it.
    auto const schema = field == std::string("json_schema") && !fields.find(field)->is_string();
    wanted.emplace(GrammarSource{field, schema ? *fields.source(field) : *fields.text(field)});
  }
  auto options = json;
  auto const schema = wanted && wanted->field != "grammar" && wanted->field != "regex";
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
  auto const key = source.field + ' ' + std::to_string(json.white_space) + ' ' + std::to_string(json.digits) + ' ' +
                   std::to_string(json.characters) + '\n' + source.text;
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
                                           sluice::JsonSchemaOptions const& json) {
  ContinuationSettings settings;
  settings.wants = completion;
  settings.outputs = completion.best_of.value_or(completion.choices);
  settings.grammar = read_grammar(fields, json);
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
