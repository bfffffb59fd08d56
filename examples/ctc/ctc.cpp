// SPDX-License-Identifier: Apache-2.0
// ctc: the text of a model that scores frames (speech, handwriting): best path, beam, words of a lexicon, a name that is boosted.
#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/processor/hotwords.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

std::string const labels = "-canto";  // the first is the blank

std::string text(std::vector<sluice::Token> const& tokens) {
  std::string out;
  for (auto const token : tokens) out += labels[static_cast<std::size_t>(token)];
  return out;
}
std::vector<sluice::Token> tokens(std::string const& word) {
  std::vector<sluice::Token> out;
  for (auto const letter : word) out.push_back(static_cast<sluice::Token>(labels.find(letter)));
  return out;
}

/// Prints the hypotheses of one utterance, and the frames of the best one's tokens.
void show(char const* what, sluice::Result const& result) {
  std::printf("%s:", what);
  for (auto const& h : result.hypotheses) std::printf(" \"%s\" %.3f", text(h.tokens).c_str(), std::exp(h.log_prob));
  std::printf(" (frames");
  for (auto const& frames : result.hypotheses.at(0).frames) std::printf(" %d-%d", frames.begin, frames.end - 1);
  std::printf(")\n");
}

}  // namespace

int main() {
  std::vector<float> const probabilities{
      // -     c      a      n      t      o
      0.20f, 0.70f, 0.02f, 0.02f, 0.03f, 0.03f,  //
      0.45f, 0.40f, 0.09f, 0.02f, 0.02f, 0.02f,  //
      0.05f, 0.03f, 0.45f, 0.02f, 0.02f, 0.43f,  //
      0.40f, 0.02f, 0.25f, 0.06f, 0.02f, 0.25f,  //
      0.40f, 0.02f, 0.02f, 0.29f, 0.25f, 0.02f,  //
      0.40f, 0.02f, 0.02f, 0.29f, 0.25f, 0.02f,  //
      0.90f, 0.02f, 0.02f, 0.02f, 0.02f, 0.02f,
  };
  std::vector<float> log_probs;
  for (auto const p : probabilities) log_probs.push_back(std::log(p));
  auto const frames = sluice::scores(log_probs.data(), 7, 6, sluice::Kind::log_probs);

  auto const path = sluice::ctc_best_path(frames);
  std::printf("best path: \"%s\" %.3f, one alignment\n", text(path.tokens).c_str(), std::exp(path.log_prob));

  sluice::CtcFrames<> model(6, 0, sluice::Kind::log_probs);
  std::vector<sluice::MatrixView<float const>> const utterances{frames};
  show("beam", sluice::decode(model, utterances, sluice::CtcBeamSearch<>{.n_best = 3}).at(0));

  sluice::Lexicon const lexicon({{"cat", tokens("cat")}, {"cot", tokens("cot")}, {"coat", tokens("coat")}});
  show("lexicon",
       sluice::decode(model, utterances, sluice::CtcBeamSearch<sluice::Lexicon>{.n_best = 3, .rule = lexicon}).at(0));

  sluice::Bias const bias({{.spellings = {tokens("con")}, .whole = 2.0f}});
  show("boosted",
       sluice::decode(model, utterances, sluice::CtcBeamSearch<sluice::Bias>{.n_best = 3, .rule = bias}).at(0));
  return 0;
}
