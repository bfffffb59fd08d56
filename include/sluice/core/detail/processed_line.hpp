// SPDX-License-Identifier: Apache-2.0
/// \file
/// The processors of a list that need the scores of a whole line, for one line of a step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_processor.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/followed.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Keeps what the processors see until the scores are there: the hypothesis may have moved on by then (blocks, trees).
class ProcessedLine final : public LineProcessor {
 public:
  /// \param spared  tokens that keep their scores
  SLUICE_LAZY void begin(ProcessorPointers const& list, Followed const& followed, Output const& seen,
                         std::span<Token const> spared) {
    tokens_.assign(seen.tokens.begin(), seen.tokens.end());
    prefix_ = seen.prefix, vocabulary_ = &seen.vocabulary, list_ = &list, spared_ = spared, problem_ = nullptr;
    states_.resize(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i]->processes) continue;
      states_[i] = followed[i].another(std::move(states_[i]));
      states_[i]->copy_last(followed[i]);
    }
  }
  /// Frees what the states hold, not their memory.
  SLUICE_LAZY void clear() {
    for (auto const& one : states_)
      if (one != nullptr) one->clear();
  }

  /// An exception is kept for rethrow(): that of one sentence must not end the others in the step.
  void process(std::span<float> scores) override {
    kept_.clear();
    for (auto const token : spared_) kept_.push_back(token < 0 ? 0 : scores[static_cast<std::size_t>(token)]);
    try {
      for (std::size_t i = 0; i < list_->size(); ++i)
        if ((*list_)[i]->processes) process(i, scores);
    } catch (...) {
      problem_ = std::current_exception();
      std::fill(scores.begin(), scores.end(), 0.0f);
    }
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (spared_[i] >= 0) scores[static_cast<std::size_t>(spared_[i])] = kept_[i];
  }
  SLUICE_LAZY void rethrow() const {
    if (problem_ != nullptr) std::rethrow_exception(problem_);
  }

 private:
  SLUICE_LAZY void process(std::size_t i, std::span<float> scores) const {
    states_[i]->process({tokens_, prefix_, *vocabulary_}, scores);
    // NaN and +infinity
    auto const bad = std::find_if_not(scores.begin(), scores.end(),
                                      [](float x) { return x <= (std::numeric_limits<float>::max)(); });
    require(bad == scores.end(), "processors[" + std::to_string(i) + "], " + std::string((*list_)[i]->name),
            bad == scores.end() ? 0 : *bad,
            "is the score that it gives token " + std::to_string(bad - scores.begin()) +
                ": must be finite or -infinity");
  }

  ProcessorPointers const* list_ = nullptr;
  Buffer<std::unique_ptr<AnyFollower>> states_;  // [processor]: after the last token; null: it needs no scores
  std::vector<Token> tokens_;
  std::size_t prefix_ = 0;
  Vocabulary const* vocabulary_ = nullptr;
  std::span<Token const> spared_;
  std::vector<float> kept_;
  std::exception_ptr problem_;
};

}  // namespace sluice::inline v0::detail
