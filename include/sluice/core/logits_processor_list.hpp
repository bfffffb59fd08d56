// SPDX-License-Identifier: Apache-2.0
/// \file
/// The list of logits processors that a request carries.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_processor.hpp>
#include <sluice/core/detail/processed_search.hpp>
#include <sluice/core/logits_processor.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace sluice::inline v0 {

/// The logits processors of a request (Request::processors), applied in order, as Hugging Face's LogitsProcessorList and vLLM's
/// logits_processors are. The search does not know about them: the loop follows the rows that it plans (forks, blocks, roll-back) and
/// adds the processors' edits to its queries. They apply where a token is chosen, not where one is forced or probed: a token that is a
/// probe is never edited, so a forced prefix and constraints take precedence over a ban.
///
/// Where a processor's stop() ends an output, the output is over in any search; of several, the first one's stop is reported. One step
/// later the search is told that the end is certain, at log-probability 0, without a model call (a length penalty counts it, as it
/// counts eos; where the search `goes_back`, the row is run anyway). This does not apply while the search allows no end (length.min).
/// Results and settled tokens do not include that end. Outputs given to ForcedScore and similar searches are not ended.
///
/// The tokens that may follow are those that all processors allow, whatever is requested from a line. Guesses (Blockwise) that they
/// forbid are not verified, nor are those after them; drawn trees are verified, but without effect. Where they allow only one token,
/// that token becomes a guess, with or without a draft model. They know how many tokens may still come if the search has a LengthLimits
/// called `length`.
///
/// A request whose processors its search cannot bear ends with Failure::bad_request: one that adds to scores beside a search that proves
/// its result by log-probabilities that only fall (BestFirstBeam; EarlyStopping::Rule::exact; ExactSearch bears Bias).
///
/// Copies are cheap and share the processors. A step costs a copy of the tokens and states per fork, and a few virtual calls a row and
/// processor.
class LogitsProcessorList {
 public:
  LogitsProcessorList() = default;
  /// \param processors  copied
  template <LogitsProcessor... R>
    requires(sizeof...(R) > 0)
  LogitsProcessorList(R... processors) {  // NOLINT(google-explicit-constructor): a list of one is that processor
    all_.reserve(sizeof...(R));
    (push_back(std::move(processors)), ...);
  }

  /// Appends one, if it does anything: one whose trivial() says otherwise is left out.
  template <LogitsProcessor R>
  void push_back(R processor) {
    if constexpr (requires { processor.trivial(); })
      if (processor.trivial()) return;
    all_.push_back(std::make_shared<detail::ProcessorOf<R> const>(std::move(processor)));
  }
  /// Appends those of another list.
  SLUICE_LAZY void append(LogitsProcessorList const& other) {
    for (std::size_t i = 0, count = other.size(); i < count; ++i) all_.push_back(other.all_[i]);  // it may be this list
  }
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }

  /// Throws std::invalid_argument for invalid options of a processor, naming the option and its value.
  SLUICE_LAZY void check() const {
    for (auto const& one : all_) one->check();
  }

  /// For the loop.
  detail::ProcessorPointers const& all() const { return all_; }

 private:
  detail::ProcessorPointers all_;
};

}  // namespace sluice::inline v0
