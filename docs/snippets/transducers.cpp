// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/transducers.md that are not in examples/transducer.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_prefix_model.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/search/exact_search.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <sstream>
#include <vector>

using namespace sluice;

namespace {

/// Logits that have come, [frames, 3].
struct Sound {
  std::vector<float> logits;
  bool over = false;
};

/// Hears what the logits of a frame say, once.
class Sounds {
 public:
  using Source = Sound;
  TransducerTokens tokens() const { return {.labels = 3, .blank = 2}; }
  std::int32_t frames(Sound const& sound) const { return static_cast<std::int32_t>(sound.logits.size() / 3); }
  SourceGrowth growth(Sound const& sound) const { return {frames(sound), sound.over}; }
  void append(Sound& sound, std::vector<float> const& logits, bool last) {
    sound.logits.insert(sound.logits.end(), logits.begin(), logits.end()), sound.over = last;
  }
  void start(std::span<Sound const* const> sounds, std::span<std::int32_t const> utterances) {
    for (std::size_t i = 0; i < sounds.size(); ++i) at(sounds_, utterances[i]) = sounds[i];
  }
  void predict(std::span<PredictorRow const> rows) {
    for (auto const& row : rows) at(last_, row.to) = row.label;
  }
  Scores<float> join(std::span<JoinerRow const> rows) {
    lines_.clear();
    for (auto const& row : rows) {
      auto const& logits = at(sounds_, row.utterance)->logits;
      lines_.insert(lines_.end(), logits.begin() + row.frame * 3, logits.begin() + row.frame * 3 + 3);
      if (auto const last = at(last_, row.state); last != 2)
        lines_[lines_.size() - 3 + static_cast<std::size_t>(last)] = -4;
    }
    return scores(lines_.data(), std::ssize(rows), 3);
  }

 private:
  template <class T>
  static T& at(std::vector<T>& all, std::int32_t number) {
    auto const i = static_cast<std::size_t>(number);
    if (i >= all.size()) all.resize(i + 1);
    return all[i];
  }
  std::vector<Sound const*> sounds_;  // [utterance]
  std::vector<Token> last_;           // [state]
  std::vector<float> lines_;
};

void texts() {
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
}

}  // namespace

int main() {
  std::istringstream arpa(
      "\\data\\\nngram 1=5\n\n\\1-grams:\n-1 <unk>\n-99 <s>\n-0.5 </s>\n-0.5 a\n-0.5 b\n\n\\end\\\n");
  TransducerTokens const tokens{.labels = 3, .blank = 2};
  // [ngram]
  NGramTable const table = read_arpa(arpa);
  std::vector<Word> const words{table.word("a"), table.word("b"), -1};  // of each label; nothing asks for that of blank
  TransducerBeam<NoRule, NGramModel<>> search{.tokens = tokens, .width = 8};
  search.language_model = NGramModel<>(table, words, {.weight = 0.4, .bonus = 0.5});
  // [/ngram]
  search.check();

  Transducer model{Sounds()};
  NGramModel<> language(table, {.size = 5, .bos = 1, .eos = {2}, .never = {0, 1}}, {0, 1, 2, 3, 4});
  // [model]
  WithLanguageModel both(model, language, {3, 4, -1});  // its tokens for labels 0 and 1, and for blank
  TransducerBeam<NoRule, FusionWeights> const fused{
      .tokens = model.tokens(), .width = 8, .language_model = {.weight = 0.5, .bonus = 0.3}};
  // [/model]
  // [stream]
  Decoder decoder(model, TransducerBeam<>{.tokens = model.tokens(), .width = 8, .endpoint = {.silence = 40}});
  auto const id = decoder.submit({.source = Sound()});
  decoder.append(id, std::vector<float>{4, 0, 1, 0, 0, 2}, false);  // 2 frames of 3 labels
  while (decoder.step()) {                                          // until it waits for more
  }
  decoder.append(id, std::vector<float>{0, 3, 0, 0, 0, 2}, true);  // the last ones
  while (decoder.step()) {
  }
  // [/stream]
  Result streamed;
  Sound whole;
  whole.logits = {4, 0, 1, 0, 0, 2, 0, 3, 0, 0, 0, 2}, whole.over = true;
  auto const at_once = decode(both, std::vector{whole}, fused).at(0);
  if (!decoder.poll(streamed) || streamed.hypotheses.at(0).tokens != std::vector<Token>{0, 1} ||
      at_once.hypotheses.at(0).tokens != std::vector<Token>{0, 1})
    return 1;

  texts();
  return 0;
}
