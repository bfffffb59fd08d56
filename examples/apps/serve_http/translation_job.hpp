// SPDX-License-Identifier: Apache-2.0
/// \file
/// One sentence of a request: from text to a decoder's request, from its result to text.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/search/blockwise/blockwise.hpp>
#include <sluice/search/constraint/constrained_beam_search.hpp>
#include <sluice/search/greedy/greedy.hpp>
#include <sluice/search/rule/ruled.hpp>
#include <sluice/search/rule/stop_sequences.hpp>
#include <sluice/search/rule/text_stream.hpp>
#include <sluice/search/sample/sample.hpp>

#include <translate/masks.hpp>
#include <translate/spelling.hpp>
#include <translate/tokenizer.hpp>
#include <translate/whole_words.hpp>

#include <cstdint>
#include <http/backend.hpp>
#include <http/one_of.hpp>
#include <http/retold.hpp>
#include <memory>
#include <serve_http/settings.hpp>
#include <span>
#include <string>
#include <vector>

namespace serve {

using Constrained = sluice::ConstrainedBeamSearch<translate::WholeWords>;
using Rules = sluice::Rules<sluice::NoRepeatNgram, sluice::RepetitionPenalty, sluice::Forbidden, sluice::StopSequences>;
/// Every search of translate. A beam without constraints is a constrained beam with none, decision for decision.
using Plain =
    sluice::Ruled<OneOf<sluice::Greedy, Constrained, sluice::Sample, sluice::Blockwise<sluice::acceptance::Exact>,
                        sluice::Blockwise<sluice::acceptance::TopK>>,
                  Rules>;
using Search = Retold<Plain>;

/// What all jobs share.
struct Language {
  explicit Language(translate::Tokenizer const& its_tokenizer);

  translate::Tokenizer const& tokenizer;
  sluice::TokenBytes bytes;
  std::shared_ptr<translate::Spellings const> spellings;
};

class TranslationJob final : public Job {
 public:
  /// \throws BadField  for an invalid constraint, glossary or prefix
  TranslationJob(Ask const& ask, std::shared_ptr<TranslationSettings const> settings, Language const& language);

  std::string settle(std::span<sluice::Token const> tokens) override;
  std::string rest(Answer const& answer) override;
  Answer answer(sluice::Result const& result) override;

  std::vector<sluice::Token> source, prefix;
  std::uint64_t seed = 0;
  Search search;

 private:
  Candidate candidate(sluice::Hypothesis const& hypothesis) const;
  /// Its tokens with the model's log-probabilities.
  std::vector<Candidate::Piece> pieces(sluice::Hypothesis const& hypothesis, std::vector<Told> const& told) const;

  std::shared_ptr<TranslationSettings const> settings_;
  Language const& language_;
  translate::WholeWords constraints_;
  sluice::StopSequences stop_;
  sluice::TextStream stream_;
  bool begun_ = false;   // whether a text has been settled
  std::string shown_{};  // all of it
};

}  // namespace serve
