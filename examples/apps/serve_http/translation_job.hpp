// SPDX-License-Identifier: Apache-2.0
/// \file
/// One sentence of a request: from text to a decoder's request, from its result to text.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <translate/constraints.hpp>
#include <translate/masks.hpp>
#include <translate/spelling.hpp>
#include <translate/tokenizer.hpp>
#include <translate/whole_words.hpp>

#include <cstdint>
#include <http/backend.hpp>
#include <http/retold.hpp>
#include <map>
#include <memory>
#include <optional>
#include <serve_http/settings.hpp>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace serve {

using Constrained = sluice::ConstrainedBeamSearch<translate::WholeWords>;
/// Every search of translate. A beam without constraints is a constrained beam with none, decision for decision.
using Plain = sluice::Processed<
    sluice::OneOf<sluice::Greedy, Constrained, sluice::Sample, sluice::Blockwise<sluice::acceptance::Exact>,
                  sluice::Blockwise<sluice::acceptance::TopK>>>;
using Search = Retold<Plain>;

/// What all jobs share.
struct Language {
  explicit Language(translate::Tokenizer const& its_tokenizer);

  translate::Tokenizer const& tokenizer;
  sluice::TokenBytes bytes;
  std::shared_ptr<translate::Spellings const> spellings;
};

/// What all sentences of a request share: automata and prefixes are made once.
class TranslationPreparation final : public Preparation {
 public:
  /// \throws BadField  for an invalid glossary
  TranslationPreparation(Task const& task, Language const& language);
  std::unique_ptr<Job> job(Ask const& ask) override;

 private:
  using Tokens = std::shared_ptr<std::vector<sluice::Token> const>;
  using Entries = std::vector<translate::Glossary::Entry const*>;
  using Key = std::tuple<std::string const*, std::string const*, Entries>;  // constraints, prefix, terms in the source

  Tokens prefix(Ask const& ask);
  translate::WholeWords constraints(Ask const& ask, std::vector<sluice::Token> const& prefix);

  std::shared_ptr<TranslationSettings const> settings_;
  Language const& language_;
  sluice::StopSequences stop_;
  translate::Masks masks_;
  sluice::Bias bias_;
  std::map<std::string const*, std::size_t> lines_;  // of constraints, from 1
  std::optional<translate::Constraints> constraints_;
  std::map<std::string const*, Tokens> prefixes_;
  std::map<Key, translate::WholeWords> words_;
};

class TranslationJob final : public Job {
 public:
  TranslationJob(std::vector<sluice::Token> its_source, std::vector<sluice::Token> its_prefix, std::size_t number,
                 std::shared_ptr<TranslationSettings const> settings, Language const& language,
                 translate::WholeWords constraints, sluice::StopSequences stop, translate::Masks const& masks,
                 sluice::Bias const& bias);

  std::string append(std::span<sluice::Token const> tokens) override;
  std::string rest(Answer const& answer) override;
  Answer answer(sluice::Result const& result) override;
  double answer_work() const override;
  std::size_t rows() const override;
  std::size_t steps() const override;
  std::size_t answer_bytes() const override;

  std::vector<sluice::Token> source, prefix;
  std::uint64_t seed = 0;
  Search search;

  /// As Request::remember.
  bool remember() const { return settings_->remember; }

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
