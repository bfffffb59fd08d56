// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/token_trie.hpp>

#include <translate/structure.hpp>

namespace translate {

sluice::Structure make_structure(sluice::Grammar const& grammar, Models const& models) {
  if (grammar.trivial()) return {};
  return {grammar.behind_space(), sluice::TokenTrie(models.tokenizer().bytes(), models.vocabulary())};
}

sluice::GreenList make_mark(Options const& options) {
  return options.search == SearchName::sample ? sluice::GreenList{} : sluice::GreenList{options.watermark.read()};
}

Restrictions restrictions(Masks const& masks, sluice::Structure const& structure, sluice::Bias const& bias,
                          sluice::GreenList const& mark) {
  return {{masks.ngrams, masks.repetition, masks.forbidden, structure, bias, mark}, structure};
}

}  // namespace translate
