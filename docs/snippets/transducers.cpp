// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/transducers.md that are not in examples/transducer.
#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_prefix_model.hpp>
#include <sluice/frames/transducer_tokens.hpp>
#include <sluice/ngram/arpa.hpp>
#include <sluice/ngram/ngram_labels.hpp>
#include <sluice/search/exact/exact_search.hpp>
#include <sluice/search/frames/transducer_beam.hpp>

#include <cstdio>
#include <span>
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

  // [texts]
  std::vector<float> const logits{3, 0, 1, 0, 2, 1, 2, 1, 0, 0, 0, 3};  // 4 frames of 3 labels; 0 is the blank
  auto const frames = scores(logits.data(), 4, 3);

  CtcPrefixModel<> model(3);
  auto const best = decode(model, std::vector{frames}, ExactSearch{.n_best = 2, .length = {.max = 5}}).at(0);
  for (auto const& h : best.hypotheses) {
    auto const labels = std::span(h.tokens).first(h.tokens.size() - 1);  // without eos
    auto const aligned = ctc_align(frames, labels);
    std::printf("%.4f, computed %.4f:", h.log_prob, ctc_log_prob(frames, labels));
    for (std::size_t i = 0; i < labels.size(); ++i)
      std::printf(" %d at %d-%d", labels[i], aligned.frames[i].begin, aligned.frames[i].end);
    std::printf("\n");
  }
  std::printf("no text has more than %.4f\n", best.bound);
  // [/texts]
  return 0;
}
