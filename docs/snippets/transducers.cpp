// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/transducers.md that are not in examples/transducer.
#include <sluice/frames/transducer_tokens.hpp>
#include <sluice/ngram/arpa.hpp>
#include <sluice/ngram/ngram_labels.hpp>
#include <sluice/search/frames/transducer_beam.hpp>

#include <sstream>
#include <vector>

using namespace sluice;

int main() {
  std::istringstream arpa(
      "\\data\\\nngram 1=5\n\n\\1-grams:\n-1 <unk>\n-99 <s>\n-0.5 </s>\n-0.5 a\n-0.5 b\n\n\\end\\\n");
  TransducerTokens const tokens{.labels = 3, .blank = 2};
  // [ngram]
  NGramTable const table = read_arpa(arpa);
  std::vector<Word> const words{table.word("a"), table.word("b"), -1};  // of each label; nothing asks for that of blank
  TransducerBeam<Rules<>, NGramLabels> search{.tokens = tokens, .width = 8};
  search.language = NGramLabels(table, words);
  search.language_weight = 0.4, search.label_bonus = 0.5;
  // [/ngram]
  search.check();
  return 0;
}
