// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>

#include "frames.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

template <class S>
Result found(MatrixView<float const> const& matrix, S search, Kind kind = Kind::logits) {
  search.width = 12, search.n_best = 3;
  CtcFrames<> model(ctc_size, 0, kind);
  return decode(model, std::vector{matrix}, search).at(0);
}

NGramTable table() {
  std::istringstream text(ctc_arpa);
  return read_arpa(text);
}
Lexicon lexicon() { return Lexicon({{"ab", {1, 2}}, {"a", {1}}, {"cb", {3, 2}}, {"ab", {1, 3}}}, {4}); }
TokenBytes bytes() { return TokenBytes(std::vector<std::string>(ctc_texts, ctc_texts + ctc_size)); }

Result expected(int way, MatrixView<float const> const& matrix) {
  FusionWeights const weights{.weight = 0.5, .bonus = 0.25, .unknown = -1};
  switch (way) {
    case ctc_pruned:
      return found(
          matrix,
          CtcBeamSearch<>{.top_tokens = 3, .token_floor = -9, .threshold = 8, .skip_blank = 0.9, .viterbi = true},
          Kind::log_probs);
    case ctc_biased: {
      std::vector<BiasedPhrase> const phrases{{.spellings = {{1, 3}, {3, 3}}, .whole = 2.5f}};
      return found(matrix, CtcBeamSearch<Bias>{.rule = Bias(phrases)});
    }
    case ctc_lexicon: return found(matrix, CtcBeamSearch<Lexicon>{.rule = lexicon()});
    case ctc_words:
      return found(matrix, CtcBeamSearch<NoRule, LexiconNGrams>{.language_model = {lexicon(), table(), weights}});
    case ctc_any_words:
      return found(matrix, CtcBeamSearch<NoRule, WordModel<>>{.language_model = {table(), bytes(), weights}});
    case ctc_labels: {
      std::vector<Word> words{-1, -1, -1, -1, -1};
      words[1] = *table().find("a"), words[2] = *table().find("ab"), words[4] = *table().find("cb");
      return found(matrix, CtcBeamSearch<NoRule, NGramModel<>>{.language_model = {table(), words, {}}});
    }
    case ctc_grammar: {
      TokenTrie const trie(bytes(), ctc_text_vocabulary(ctc_size, 0));
      return found(matrix, CtcBeamSearch<Structure>{.rule = {Grammar::from_regex(ctc_regex), trie}});
    }
    default: return found(matrix, CtcBeamSearch<>{});
  }
}

struct Parts {
  using Source = std::uint32_t;
  bool lasting = false;  // labels have durations
  std::vector<Source> sources{};
  std::vector<std::pair<Token, Token>> states{};
  std::vector<float> lines{};

  std::int32_t columns() const { return transducer_labels + (lasting ? 3 : 0); }
  TransducerTokens tokens() const {
    TransducerTokens made{.labels = transducer_labels};
    if (lasting) made.durations.assign(std::begin(transducer_durations), std::end(transducer_durations));
    return made;
  }
  std::int32_t frames(Source source) const { return transducer_frames(source); }
  void start(std::span<Source const* const> its, std::span<std::int32_t const> utterances) {
    sources.resize(64);
    for (std::size_t i = 0; i < its.size(); ++i) sources.at(static_cast<std::size_t>(utterances[i])) = *its[i];
  }
  void predict(std::span<PredictorRow const> rows) {
    states.resize(transducer_states);
    for (auto const& row : rows)
      states.at(static_cast<std::size_t>(row.to)) = {
          row.from < 0 ? 0 : states.at(static_cast<std::size_t>(row.from)).second, row.label};
  }
  Scores<float> join(std::span<JoinerRow const> rows) {
    lines.clear();
    for (auto const& row : rows)
      for (std::int32_t column = 0; column < columns(); ++column) {
        auto const& [before, last] = states.at(static_cast<std::size_t>(row.state));
        lines.push_back(
            transducer_logit(sources.at(static_cast<std::size_t>(row.utterance)), row.frame, before, last, column));
      }
    return scores(lines.data(), std::ssize(rows), columns());
  }
};

template <class S>
Result transduced(std::uint32_t source, S const& search, bool lasting = false) {
  Transducer model{Parts{.lasting = lasting}};
  return decode(model, std::vector{source}, search).at(0);
}

Result transduced(int way, std::uint32_t source) {
  switch (way) {
    case of_greedy: return transduced(source, TransducerGreedy<>{.most_symbols = 3});
    case of_alignments:
      return transduced(source, TransducerBeam<>{.width = 5, .n_best = 3, .order = TransducerOrder::alignment});
    case of_durations:
      return transduced(source, TransducerBeam<>{.width = 5, .n_best = 3, .threshold = 6, .within = 5}, true);
    case of_boosted: {
      std::vector<BiasedPhrase> const phrases{{.spellings = {{1, 3}}, .whole = 2.5f}};
      return transduced(source, TransducerBeam<Bias>{.width = 5, .n_best = 3, .rule = Bias(phrases)});
    }
    default: return transduced(source, TransducerBeam<>{.width = 5, .n_best = 3});
  }
}

int differs(Hypothesis const& wanted, sluice_frames_hypothesis const& is) {
  if (is.count != wanted.tokens.size()) return 1;
  int differences = (is.log_prob != wanted.log_prob) + (is.score != wanted.score);
  for (std::size_t i = 0; i < is.count; ++i)
    differences += is.tokens[i] != wanted.tokens[i] || is.log_probs[i] != wanted.log_probs[i] ||
                   is.frames[2 * i] != wanted.frames[i].begin || is.frames[2 * i + 1] != wanted.frames[i].end;
  return differences;
}

int differs(Result const& wanted, sluice_frames_result const* result) {
  if (std::string_view(result->failure) != name(wanted.failure) || result->message != wanted.message) return 1;
  if (result->frames != wanted.frames || result->count != wanted.hypotheses.size()) return 1;
  int differences = 0;
  for (std::size_t i = 0; i < result->count; ++i) differences += differs(wanted.hypotheses[i], result->hypotheses[i]);
  return differences;
}

}  // namespace

extern "C" {

int ctc_differs(int way, float const* scores, size_t frames, sluice_frames_result const* result) {
  return differs(expected(way, {scores, static_cast<std::ptrdiff_t>(frames), ctc_size, ctc_size}), result);
}

int transducer_differs(int way, std::uint32_t source, sluice_frames_result const* result) {
  return differs(transduced(way, source), result);
}
int ctc_alignment_differs(float const* scores, size_t frames, sluice_token const* tokens, size_t count,
                          int32_t const* ranges, double const* log_probs, double log_prob) {
  auto const wanted = ctc_align(sluice::scores(scores, static_cast<std::ptrdiff_t>(frames), ctc_size),
                                std::vector<Token>(tokens, tokens + count));
  int differences = log_prob != wanted.log_prob;
  for (std::size_t i = 0; i < wanted.frames.size(); ++i)
    differences += ranges[2 * i] != wanted.frames[i].begin || ranges[2 * i + 1] != wanted.frames[i].end ||
                   log_probs[i] != wanted.log_probs[i];
  return differences;
}

}  // extern "C"
