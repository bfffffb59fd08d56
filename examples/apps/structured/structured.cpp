// SPDX-License-Identifier: Apache-2.0
// structured: fills a form from sentences. The form is a JSON schema whose values are words. The shipped model writes only
// sentences, so a grammar allows only sentences from which the form can be read.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/search/beam_search.hpp>

#include <text/command_line.hpp>
#include <text/grammar.hpp>
#include <text/lines.hpp>
#include <translate/model.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

/// A sentence with {places} for the values of a schema's properties.
class Form {
 public:
  /// \throws text::InputError  for an invalid schema, one whose values are not words, or places that it does not have
  Form(std::filesystem::path const& schema, std::string_view sentence)
      : grammar_(text::read_grammar({.json_schema = schema})) {
    std::ifstream stream(schema);
    auto const properties = Json::parse(stream).value("properties", Json::object());
    while (!sentence.empty()) {
      auto const begin = sentence.find('{'), end = sentence.find('}', begin == sentence.npos ? 0 : begin);
      expression_ += quoted(sentence.substr(0, begin));
      if (begin == sentence.npos) break;
      if (end == sentence.npos) throw text::InputError("--sentence: { without }");
      auto const name = std::string(sentence.substr(begin + 1, end - begin - 1));
      auto const values = properties.value(name, Json::object()).value("enum", Json::array());
      std::string choices;
      for (auto const& value : values)
        if (value.is_string()) choices += (choices.empty() ? "" : "|") + quoted(value.get<std::string>());
      if (choices.empty())
        throw text::InputError(schema.string() + ": has no property \"" + name + "\" with an enum of texts");
      names_.push_back(name), expression_.append("(").append(choices).append(")");
      sentence.remove_prefix(end + 1);
    }
  }

  sluice::Grammar sentences() const { return sluice::Grammar::from_regex(expression_); }
  /// Filled from one of the sentences.
  std::string read(std::string const& sentence) const {
    std::smatch found;
    if (!std::regex_match(sentence, found, std::regex(expression_)))
      throw std::logic_error("a sentence that no form is read from: " + sentence);
    Json form = Json::object();
    for (std::size_t i = 0; i < names_.size(); ++i) form[names_[i]] = found[i + 1].str();
    auto const out = form.dump();
    if (!grammar_.matches(out)) throw std::logic_error("a form that the schema does not accept: " + out);
    return out;
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string out;
    for (auto const c : text) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    return out;
  }

  sluice::Grammar grammar_;  // of the form
  std::string expression_;   // of the sentences, a group for each place
  std::vector<std::string> names_;
};

struct Options {
  std::string model, schema, input, sentence = "{who} {quantity} {item} {day}.";
  std::int32_t width = 8;
  bool sentences = false;
};

int run(Options const& options) {
  Form const form(options.schema, options.sentence);
  auto const lines = text::read_lines(options.input);
  translate::Models models({options.model.empty() ? translate::default_model() : std::filesystem::path(options.model)});
  auto const& tokenizer = models.tokenizer();
  sluice::TokenTrie const trie(tokenizer.bytes(), models.vocabulary());
  sluice::BeamSearch const beam{.width = options.width, .length = {.max = 64}};
  sluice::Structure const structure(form.sentences().behind_space(), trie);

  std::vector<std::vector<sluice::Token>> sources;
  for (auto const& line : lines) sources.push_back(tokenizer.encode(line));
  auto model = models.make();
  auto const results = sluice::decode(model, sources, beam, structure, sluice::Batched{}, models.output());
  for (auto const& result : results) {
    if (!result.ok()) throw std::runtime_error(result.message);
    auto tokens = result.hypotheses.front().tokens;
    if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens.pop_back();
    auto const sentence = tokenizer.decode(tokens);
    if (options.sentences) std::cout << sentence << '\n';
    std::cout << form.read(sentence) << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app("Fills a form, a JSON schema whose values are words, from German sentences, one per line.",
                        "structured");
  app.add_option("--model", options.model, "folder of model.safetensors and spm.model");
  app.add_option("--schema", options.schema, "the form")->required();
  app.add_option("--sentence", options.sentence,
                 "pattern of the sentence, with {places} for the values (that of order.json)");
  app.add_option("--width", options.width, "width of the beam (8)");
  app.add_flag("--sentences", options.sentences, "print the sentences too");
  app.add_option("input", options.input, "sentences")->required();
  try {
    return app.read(argc, argv) ? run(options) : 0;
  } catch (text::InputError const& error) {
    std::cerr << "structured: " << error.what() << '\n';
    return 2;
  } catch (std::exception const& error) {
    std::cerr << "structured: " << error.what() << '\n';
    return 1;
  }
}
