// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model's logprobs and entropy where each token was chosen, for requests that ask.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/attachments.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Asks queries of its own about the lines of one sentence, and keeps the answers as if the model had attached them: entropy,
/// then token and log-probability of each alternative. They follow the rows, so searches need no code for them.
class TokenConfidence {
 public:
  /// See AttachmentTree::begin.
  SLUICE_LAZY void begin(Confidence const& asked, Vocabulary const& vocabulary, Slot base, std::int32_t slot_count,
                         std::size_t prompt) {
    asked_ = asked;
    if (!asked_.asks()) return;
    asked_.alternatives = (std::min)(asked.alternatives, vocabulary.size);  // bounds the memory
    never_.clear();
    for (auto const token : vocabulary.never) never_.push_back(Edit::forbid(token));
    kept_.begin(base, slot_count, prompt);
  }
  SLUICE_LAZY bool asks() const { return asked_.asks(); }

  /// The query for every line.
  SLUICE_LAZY Query query(TokenSet const* shortlist) const {
    return {.best = asked_.alternatives,
            .edits = never_,
            .stage = Stage::after_softmax,
            .shortlist = shortlist,
            .entropy = asked_.entropy};
  }

  /// Takes the sentence's rows of a step, and the answers for their lines.
  SLUICE_LAZY void apply(std::span<Row const> rows, Expansion const& answer) {
    auto const columns = 1 + 2 * std::ptrdiff_t{asked_.alternatives};
    numbers_.assign(answer.size() * static_cast<std::size_t>(columns), 0);
    widths_.clear();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      auto const line = answer[i];
      auto* out = &numbers_[i * static_cast<std::size_t>(columns)];
      *out++ = asked_.entropy ? line.entropy : Choice{}.entropy;
      for (auto const [token, log_prob] : line.best) *out++ = std::bit_cast<float>(token), *out++ = log_prob;
      widths_.push_back(1 + 2 * static_cast<std::int32_t>(line.best.size()));
    }
    kept_.apply(rows, {{numbers_.data(), std::ssize(answer), columns, columns}, widths_}, 0);
  }

  /// Fills in Hypothesis::choices.
  SLUICE_LAZY void complete(std::vector<Hypothesis>& hypotheses) {
    if (!asked_.asks()) return;
    std::vector<Hypothesis> all(hypotheses.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].tokens = hypotheses[i].tokens;
    kept_.complete(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& hypothesis = hypotheses[i];
      all[i].attached.resize(hypothesis.tokens.size());
      hypothesis.choices.clear();
      for (std::size_t t = 0; t < hypothesis.tokens.size(); ++t)
        hypothesis.choices.push_back(choice(all[i].attached[t], hypothesis.tokens[t]));
    }
  }

 private:
  SLUICE_LAZY Choice choice(std::span<float const> numbers, Token taken) const {
    Choice one;
    if (numbers.empty()) return one;
    one.entropy = numbers[0];
    for (std::size_t i = 1; i < numbers.size(); i += 2)
      one.alternatives.push_back({std::bit_cast<Token>(numbers[i]), numbers[i + 1]});
    if (asked_.alternatives == 0) return one;
    auto const found = std::find_if(one.alternatives.begin(), one.alternatives.end(),
                                    [&](Candidate const& candidate) { return candidate.token == taken; });
    one.rank = static_cast<std::int32_t>(found - one.alternatives.begin());
    return one;
  }

  Confidence asked_{};
  std::vector<Edit> never_;  // tokens that are not generated
  AttachmentTree kept_;
  std::vector<float> numbers_;  // [line][column]
  std::vector<std::int32_t> widths_;
};

}  // namespace sluice::inline v0::detail
