// SPDX-License-Identifier: Apache-2.0
// A transducer reads sound frame by frame and writes letters. Greedy decoding, a beam, a boosted name.
#include <sluice/decode/decode.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/processor/hotwords.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

using namespace sluice;

// [network]
// In place of your network: a frame is what one may hear there, the likeliest letter first; silence is "".
class Hearing {
 public:
  using Source = std::vector<std::string>;
  static constexpr Token blank = 26;  // letters are 0 .. 25

  TransducerTokens tokens() const { return {.labels = 27, .blank = blank}; }
  std::int32_t frames(Source const& sound) const { return static_cast<std::int32_t>(sound.size()); }

  // An encoder would run here, on all sounds that begin.
  void start(std::span<Source const* const> sounds, std::span<std::int32_t const> utterances) {
    for (std::size_t i = 0; i < sounds.size(); ++i) at(sounds_, utterances[i]) = sounds[i];
  }
  // The predictor's state is the last letter. A recurrent one would keep a row of a matrix for each state.
  void predict(std::span<PredictorRow const> rows) {
    for (auto const& row : rows) at(last_, row.to) = row.label;
  }
  // A letter is heard as long as it sounds, and written once.
  Scores<float> join(std::span<JoinerRow const> rows) {
    logits_.assign(rows.size() * 27, -4);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto* const line = &logits_[i * 27];
      auto strength = 2.0f;
      line[blank] = 1;
      for (auto const letter : (*at(sounds_, rows[i].utterance))[static_cast<std::size_t>(rows[i].frame)]) {
        auto const token = letter - 'a';
        line[token == at(last_, rows[i].state) ? blank : token] += 4 + strength;
        strength -= 1.25f;
      }
    }
    return scores(logits_.data(), std::ssize(rows), 27);
  }

 private:
  template <class T>
  static T& at(std::vector<T>& all, std::int32_t number) {
    auto const i = static_cast<std::size_t>(number);
    if (i >= all.size()) all.resize(i + 1);
    return all[i];
  }
  std::vector<Source const*> sounds_;  // [utterance]
  std::vector<Token> last_;            // [state]
  std::vector<float> logits_;
};
// [/network]

namespace {

void show(char const* what, std::vector<Result> const& results) {
  std::printf("%s\n", what);
  for (auto const& result : results)
    for (auto const& h : result.hypotheses) {
      std::printf("  %6.3f ", h.log_prob);
      for (std::size_t i = 0; i < h.tokens.size(); ++i)
        std::printf(" %c:%d-%d", static_cast<char>('a' + h.tokens[i]), h.frames[i].begin, h.frames[i].end);
      std::printf("\n");
    }
}

std::vector<Token> letters(std::string const& text) {
  std::vector<Token> all;
  for (auto const letter : text) all.push_back(letter - 'a');
  return all;
}

}  // namespace

int main() {
  // [use]
  Transducer model{Hearing()};
  std::vector<Hearing::Source> const sounds{{"", "h", "hu", "ui", "it", "t", ""}, {"m", "ma", "a", "yi", "ye"}};

  show("greedy", decode(model, sounds, TransducerGreedy<>{.tokens = model.tokens()}));
  show("beam", decode(model, sounds, TransducerBeam<>{.tokens = model.tokens(), .width = 8, .n_best = 2}));
  // [/use]

  // [bias]
  TransducerBeam<Bias> search{.tokens = model.tokens(), .width = 8};
  search.rule = Bias({{.spellings = {letters("maie")}, .whole = 4}});
  show("beam, a name boosted", decode(model, sounds, search));
  // [/bias]
  return 0;
}
