// SPDX-License-Identifier: Apache-2.0
/// \file
/// One prompt of a request: from text to a decoder's request, from its result to text.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <cstddef>
#include <cstdint>
#include <http/backend.hpp>
#include <http/retold.hpp>
#include <memory>
#include <mutex>
#include <serve_llama/continuation_settings.hpp>
#include <span>
#include <string>
#include <vector>

namespace serve {

/// Any of the searches, with structured outputs, stops and biases: inside Retold, whose rows they do not see.
using Continuing = sluice::Processed<
    sluice::OneOf<sluice::Greedy, sluice::Sample, sluice::BeamSearch, sluice::Blockwise<sluice::acceptance::Exact>,
                  sluice::Blockwise<sluice::acceptance::Sampling>>>;
using Continuation = Retold<Continuing>;

/// Of a prompt; no text has more for each token, on average. The tokenizer takes time by the square of a prompt that is all
/// bytes, and does not stop.
inline constexpr std::size_t bytes_of_cell = 16;

/// What all jobs share.
struct Texts {
  sluice::LlamaTokenizer const& tokenizer;
  sluice::TokenBytes bytes;
  sluice::TokenBytes spelled{};         ///< with names of control tokens
  bool special = false;                 ///< parse names of control tokens in prompts
  sluice::SequenceBreakers breakers{};  ///< of DRY: llama.cpp's
  std::size_t longest = 0;              ///< bytes of a prompt
  mutable std::once_flag told{};        ///< of names of control tokens in a prompt without `special`

  std::vector<sluice::Token> tokens(Ask const& ask) const;

  /// \throws BadField  naming the field, for a text that is too long
  void check_length(char const* field, std::string const& text) const;
};

class ContinuationJob final : public Job {
 public:
  /// \param stop, structure, bias  of the request
  ContinuationJob(Ask const& ask, std::shared_ptr<ContinuationSettings const> settings, Texts const& texts,
                  sluice::StopSequences stop, sluice::Structure const& structure, sluice::Bias const& bias);

  std::string append(std::span<sluice::Token const> tokens) override;
  std::string rest(Answer const& answer) override;
  Answer answer(sluice::Result const& result) override;
  std::size_t rows() const override;
  std::size_t steps() const override;
  std::size_t answer_bytes() const override;

  /// Whether there is something for the model to do.
  bool asks() const { return settings_->most > 0 || !search.prompt.empty(); }

  std::vector<sluice::Token> prompt;  // to feed, except what Retold feeds and scores
  std::uint64_t seed = 0;
  Continuation search;

  /// As Request::remember.
  bool remember() const { return settings_->remember; }

 private:
  Candidate::Piece piece(sluice::Token token, Told const& told) const;
  std::vector<Candidate::Piece> prompt_pieces() const;

  std::shared_ptr<ContinuationSettings const> settings_;
  Texts const& texts_;
  sluice::StopSequences stop_;
  sluice::TextStream stream_;
  std::string before_{};  // the prompt, where it is to be repeated
  std::string shown_{};   // all that has been
  std::size_t prompt_size_ = 0;
};

/// What all prompts of a request share.
class ContinuationPreparation final : public Preparation {
 public:
  ContinuationPreparation(Task const& task, Texts const& texts, Grammars& grammars);
  std::unique_ptr<Job> job(Ask const& ask) override;

 private:
  std::shared_ptr<ContinuationSettings const> settings_;
  Texts const& texts_;
  sluice::StopSequences stop_;
  sluice::Structure structure_{};  // none: everything is allowed
  sluice::Bias bias_{};
};

}  // namespace serve
