// SPDX-License-Identifier: Apache-2.0
/// \file
/// CtcPrefixModel: CTC as a model that writes one label after the other.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/ctc_prefix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// CTC under any label-synchronous search, by its prefix scores (Graves 2008; Watanabe et al. 2017): p(label | prefix)
/// is the probability of all texts that begin with prefix and label, over that of all that begin with the prefix; p(eos
/// | prefix) is the probability of the prefix itself over it. So every line is a distribution, the log-probability of
/// an output is exactly that of the text, summed over all alignments, ExactSearch proves the most probable text, and
/// Sample draws texts in proportion. With Fused: joint CTC and attention.
///
/// Hypotheses have no `frames`; ctc_align gives them. Sums are in double precision, lines in float.
///
/// A source is a view of frames, [frames, V], logits or log-probabilities, which must outlive its sentence. Its
/// sentence keeps their probabilities, 8 bytes each. A line costs O(frames * V), a token fed O(frames); each token of a
/// slot keeps 16 bytes a frame, shared by the forks.
/// \tparam T  the type of the frames' numbers
template <class T = float>
class CtcPrefixModel {
 public:
  using Source = Scores<T>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  /// Tokens are the V labels of the frames, and one more, V: eos. Blank is fed first.
  /// \throws std::invalid_argument  for a blank that is not one of them
  explicit CtcPrefixModel(std::int32_t labels, Token blank = 0)
      : CtcPrefixModel({.size = labels + 1, .bos = blank, .eos = {labels}, .never = {blank}}, blank) {
    require(blank >= 0 && blank < labels, "blank", blank, "must be one of the labels");
  }
  /// The vocabulary of another model, as joint CTC and attention have it. Tokens that are no column of the frames are
  /// impossible; blank and eos have no column of their own, whatever is there.
  /// \throws std::invalid_argument  for an invalid vocabulary, a blank outside it, or no eos
  CtcPrefixModel(Vocabulary vocabulary, Token blank) : vocabulary_(std::move(vocabulary)), blank_(blank) {
    vocabulary_.check();
    require(vocabulary_.contains(blank), "blank", blank, "is outside the vocabulary");
    require(!vocabulary_.eos.empty(), "vocabulary.eos", "none", "a text must be able to end");
    require(!vocabulary_.ends(blank), "blank", blank, "ends sentences");
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  std::int32_t source_length(Source const& source) const { return static_cast<std::int32_t>(source.rows); }

  /// \throws std::invalid_argument  naming the frame, if one holds a NaN or +infinity, or only -infinity; if blank is
  ///     no column
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    std::vector<Held> begun;
    for (auto const* source : sources) {
      require(source->rows == 0 || blank_ < source->columns, "blank", blank_, "is no column of the frames");
      auto utterance = std::make_shared<detail::CtcUtterance const>(*source);
      auto empty = detail::ctc_empty(*utterance, blank_);
      begun.push_back({std::move(utterance), std::move(empty), 0});
    }
    for (std::size_t i = 0; i < sources.size(); ++i) at(slot_numbers[i]) = std::move(begun[i]);
  }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) at(slot) = {};
  }

  Scores<float> step(std::span<Row const> rows) {
    for (auto const& row : rows) {
      if (row.from == row.to) continue;
      at((std::max)(row.from, row.to));  // grow first, so that references stay valid
      at(row.to) = at(row.from);
    }
    lines_.clear();
    std::ptrdiff_t count = 0;
    for (auto const& row : rows) {
      auto& held = at(row.to);
      for (; held.length > row.length; --held.length)
        if (held.length > 1) held.prefix = held.prefix->parent;
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        if (held.length++ > 0)
          held.prefix = detail::ctc_extend(*held.utterance, held.prefix, column(row.tokens[i]), blank_);
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size()) answer(held), ++count;
      }
    }
    return scores(lines_.data(), count, vocabulary_.size, Kind::log_probs);
  }

 private:
  struct Held {
    std::shared_ptr<detail::CtcUtterance const> utterance;
    std::shared_ptr<detail::CtcPrefix const> prefix;
    std::int32_t length = 0;  // tokens; the first only begins
  };

  Held& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= slots_.size()) slots_.resize(i + 1);
    return slots_[i];
  }
  /// The column of a token that is a label; -1: it is none.
  Token column(Token token) const { return token == blank_ || vocabulary_.ends(token) ? -1 : token; }

  void answer(Held const& held) {
    auto const& prefix = *held.prefix;
    auto const first = lines_.size();
    lines_.resize(first + static_cast<std::size_t>(vocabulary_.size), -std::numeric_limits<float>::infinity());
    if (!(prefix.total > detail::log_zero)) return;
    auto const put = [&](Token token, double log_prob) {
      lines_[first + static_cast<std::size_t>(token)] = static_cast<float>((std::min)(log_prob - prefix.total, 0.0));
    };
    auto const all = continuations_.of(*held.utterance, prefix);
    auto const columns = (std::min)(static_cast<Token>(all.size()), vocabulary_.size);
    for (Token token = 0; token < columns; ++token)
      if (column(token) >= 0) put(token, all[static_cast<std::size_t>(token)]);
    put(vocabulary_.eos.front(), detail::ctc_whole(prefix));
  }

  Vocabulary vocabulary_;
  Token blank_;
  std::vector<Held> slots_;
  detail::CtcContinuations continuations_;
  std::vector<float> lines_;  // [lines, V]
};

}  // namespace sluice::inline v0
