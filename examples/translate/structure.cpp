// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/token_trie.hpp>

#include <text/lines.hpp>
#include <translate/structure.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

namespace translate {

namespace {

std::string whole_file(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

sluice::Grammar make_grammar(Options const& options) {
  auto const compiled = [](std::string const& where, auto const& compile) {
    try {
      return compile();
    } catch (std::invalid_argument const& error) {
      std::string_view what = error.what();
      if (what.starts_with("sluice: ")) what.remove_prefix(8);
      throw text::InputError(where + ": " + std::string(what));
    }
  };
  using sluice::Grammar;
  if (!options.grammar.empty())
    return compiled(options.grammar.string(), [&] { return Grammar::from_gbnf(whole_file(options.grammar)); });
  if (!options.json_schema.empty())
    return compiled(options.json_schema.string(),
                    [&] { return Grammar::from_json_schema(whole_file(options.json_schema)); });
  if (options.regex) return compiled("--regex", [&] { return Grammar::from_regex(*options.regex); });
  return {};
}

sluice::Structure make_structure(sluice::Grammar const& grammar, Models const& models) {
  if (grammar.trivial()) return {};
  return {grammar.behind_space(), sluice::TokenTrie(models.tokenizer().bytes(), models.vocabulary())};
}

Restrictions restrictions(Masks const& masks, sluice::Structure const& structure) {
  auto const& [ngrams, repetition, forbidden] = masks.rules;
  return Restrictions(ngrams, repetition, forbidden, structure);
}

}  // namespace translate
