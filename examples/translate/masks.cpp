// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/masks.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace translate {

Masks make_masks(Options const& options, Tokenizer const& tokenizer) {
  std::vector<std::vector<sluice::Token>> phrases;
  if (!options.forbid.empty()) {
    for (auto const& line : text::read_lines(options.forbid)) {
      // Both at the beginning of a word and within one: the pieces differ. A character that the model does not know
      // cannot come anyway.
      auto const word = tokenizer.encode(line);
      if (word.empty() || std::ranges::find(word, tokenizer.unk()) != word.end()) continue;
      phrases.push_back(word);
      phrases.push_back(tokenizer.encode_inside(line));
    }
  }
  return Masks({.n = options.no_repeat_ngram}, {.penalty = options.repetition_penalty}, sluice::Forbidden(phrases));
}

}  // namespace translate
