// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/masks.hpp>

#include <algorithm>
#include <utility>

namespace translate {

Masks make_masks(Options const& options, Tokenizer const& tokenizer) {
  return make_masks(options, options.forbid.empty() ? std::vector<std::string>{} : text::read_lines(options.forbid),
                    tokenizer);
}

Masks make_masks(Options const& options, std::vector<std::string> const& forbidden, Tokenizer const& tokenizer) {
  std::vector<std::vector<sluice::Token>> phrases;
  for (auto const& phrase : forbidden) {
    // Both at the beginning of a word and within one: the pieces differ. A character that the model does not know
    // cannot come anyway.
    auto const word = tokenizer.encode(phrase);
    if (word.empty() || std::ranges::find(word, tokenizer.unk()) != word.end()) continue;
    phrases.push_back(word);
    phrases.push_back(tokenizer.encode_inside(phrase));
  }
  return {{.n = options.no_repeat_ngram}, {.penalty = options.repetition_penalty}, sluice::Forbidden(phrases)};
}

sluice::Bias make_bias(std::vector<text::BiasTerm> const& terms, bool once, Tokenizer const& tokenizer) {
  return text::make_bias(terms, once, [&](std::string const& text) {
    std::vector<sluice::Phrase> spellings;
    auto word = tokenizer.encode(text);
    if (word.empty() || std::ranges::find(word, tokenizer.unk()) != word.end()) return spellings;
    auto inside = tokenizer.encode_inside(text);  // after a bracket, say
    if (!inside.empty() && inside != word) spellings.push_back(std::move(inside));
    spellings.push_back(std::move(word));
    return spellings;
  });
}

}  // namespace translate
