// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/ctc.md.
#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Five labels: blank, a, b, c, space.
std::vector<float> const scores_of_frames{
    0, 3, 2, 0, 0,  //
    2, 1, 1, 0, 0,  //
    0, 1, 3, 1, 0,  //
    1, 0, 2, 1, 2,  //
    1, 0, 0, 0, 3,  //
    0, 2, 2, 0, 0,  //
    2, 0, 1, 1, 0,
};
std::vector<std::string> const letters{"", "a", "b", "c", " "};

void show(sluice::Result const& result) {
  std::cout << std::fixed << std::setprecision(3);
  for (auto const& h : result.hypotheses) {
    for (auto const token : h.tokens) std::cout << letters[static_cast<std::size_t>(token)];
    std::cout << "  " << h.log_prob << "  " << h.score << '\n';
  }
}

}  // namespace

int main() {
  // [use]
  auto const frames = sluice::scores(scores_of_frames.data(), 7, 5);  // 7 frames, 5 labels; logits
  sluice::CtcFrames<> model(5, 0);                                    // label 0 is the blank
  std::vector<sluice::MatrixView<float const>> const utterances{frames};
  auto const results = sluice::decode(model, utterances, sluice::CtcBeamSearch<>{.width = 16, .n_best = 2});
  show(results[0]);
  // [/use]
  // [path]
  sluice::Hypothesis const path = sluice::ctc_best_path(frames);
  // [/path]
  // [options]
  sluice::CtcBeamSearch<> const fast{
      .width = 64,
      .top_tokens = 32,     // labels that may stand on a frame, beside the blank
      .token_floor = -5,    // none below this log-probability, except for the best
      .threshold = 15,      // prefixes that score so much less than the best are dropped
      .skip_blank = 0.999,  // frames that are blank for certain cost next to nothing
  };
  // [/options]
  show(sluice::decode(model, utterances, fast)[0]);
  // [stream]
  sluice::CtcStream microphone(5, 0);
  sluice::Decoder decoder(microphone,
                          sluice::CtcBeamSearch<>{.width = 16, .endpoint = {.silence = 40, .longest = 2000}});
  auto const id = decoder.submit({.source = sluice::FrameStream()});
  decoder.append(id, sluice::MatrixView<float const>{frames.data, 4, 5, 5});
  while (decoder.step()) {  // until it waits for more
  }
  decoder.append(id, sluice::MatrixView<float const>{frames.data + 4 * 5, 3, 5, 5}, true);  // the last ones
  while (decoder.step()) {
  }
  sluice::Result text;
  decoder.poll(text);
  show(text);
  // [/stream]
  // [rules]
  sluice::CtcBeamSearch<sluice::Bias> const biased{.rule =
                                                       sluice::Bias({{.spellings = {{1, 3}}, .whole = 4.0f}})};  // "ac"

  sluice::TokenTrie const trie(sluice::TokenBytes(letters), sluice::ctc_text_vocabulary(5, 0));
  sluice::CtcBeamSearch<sluice::Structure> const structured{
      .rule = sluice::Structure(sluice::Grammar::from_regex("[a-c]{2} [a-c]{2}"), trie)};
  // [/rules]
  show(sluice::decode(model, utterances, biased)[0]);
  show(sluice::decode(model, utterances, structured)[0]);
  std::istringstream arpa(
      "\\data\\\nngram 1=6\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-2\t<unk>\n-0.3\tab\n-0.6\tb\n-0.9\tac\n\n\\end\\\n");
  // [lexicon]
  sluice::Lexicon const lexicon({{"ab", {1, 2}}, {"b", {2}}, {"ac", {1, 3}}, {"ac", {1, 3, 3}}}, {4});
  sluice::CtcBeamSearch<sluice::Lexicon> const words_alone{.rule = lexicon};

  sluice::NGramTable const table = sluice::read_arpa(arpa);
  sluice::CtcBeamSearch<sluice::NoRule, sluice::LexiconNGrams> const with_ngrams{
      .language_model = sluice::LexiconNGrams(lexicon, table, {.weight = 0.8, .bonus = 1})};
  // [/lexicon]
  show(sluice::decode(model, utterances, words_alone)[0]);
  show(sluice::decode(model, utterances, with_ngrams)[0]);
  sluice::NGramModel<> language(table, {.size = 5, .bos = 0, .eos = {1}, .never = {0, 2}}, {0, 1, 2, 3, 4});
  // [model]
  sluice::WithLanguageModel both(model, language, {-1, 3, 4, -1, 2});  // its tokens for blank, a, b, c, space
  sluice::CtcBeamSearch<sluice::NoRule, sluice::FusionWeights> const fused{
      .language_model = {.weight = 0.5, .bonus = 0.3}};
  show(sluice::decode(both, utterances, fused)[0]);
  // [/model]
  std::vector<float> const transition_scores(25, -0.5f);
  // [asg]
  sluice::MatrixView<float const> const transitions{transition_scores.data(), 5, 5, 5};  // [to, from]
  sluice::AsgFrames<> asg(transitions);
  sluice::CtcBeamSearch<sluice::AsgTransitions> const no_blank{.viterbi = true,
                                                               .rule = sluice::AsgTransitions(transitions)};
  show(sluice::decode(asg, utterances, no_blank)[0]);
  std::vector<sluice::Token> const spelling{3, 2, 2, 1};                            // "cbba"
  std::vector<sluice::Token> const packed = sluice::pack_repetitions(spelling, 4);  // 3 2 4 1: label 4 is "once more"
  // [/asg]
  return path.tokens.empty() || packed.size() != 4 ? 1 : 0;
}
