// SPDX-License-Identifier: Apache-2.0
/// \file
/// TokenByToken: gives any model blocks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#define SLUICE_TAKES_BLOCKS "sluice: this model takes blocks by itself and does not need sluice::TokenByToken"

namespace sluice::inline v0 {

namespace detail {
constexpr Abilities with_blocks(Abilities able) {
  able.blocks = true;
  return able;
}
}  // namespace detail

/// Lets any model take blocks: rows of several tokens are fed one token per call, all rows together. For searches that
/// need blocks (Blockwise) over models that take only single steps: correct, but not fast. A step costs as many calls
/// as its longest row has tokens. TokenByToken over Restarting lets a recurrent model serve any search.
///
/// Refers to the model, which must outlive it. Throws what the model throws; the slots of the rows must then be released.
template <Model M>
class TokenByToken : public detail::Forwarding<M, detail::with_blocks(detail::known_abilities<M>())> {
  using Base = detail::Forwarding<M, detail::with_blocks(detail::known_abilities<M>())>;
  static_assert(!detail::known_abilities<M>().blocks, SLUICE_TAKES_BLOCKS);
  using Number = typename Answer<M>::Value;

 public:
  using Source = typename M::Source;

  /// \throws std::invalid_argument  if the model itself takes blocks
  explicit TokenByToken(M& model) : Base(model, detail::with_blocks(sluice::abilities(std::as_const(model)))) {
    if (sluice::abilities(std::as_const(model)).blocks) throw std::invalid_argument(SLUICE_TAKES_BLOCKS);
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    this->model_.start(sources, slot_numbers);
  }
  template <class Encoded>
    requires EncodingModel<M>
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    this->model_.start(encoded, items, slot_numbers);
  }
  void release(std::span<Slot const> slot_numbers) { detail::release(this->model_, slot_numbers); }
  void propose(std::span<Draft const> drafts) requires ProposingModel<M> { this->model_.propose(drafts); }

  Attachments attachments() requires AttachingModel<M> {
    if (longest_ <= 1) return this->model_.attachments();
    std::size_t widest = 0;
    for (auto const& line : attached_) widest = (std::max)(widest, line.size());
    if (widest == 0) return {};
    joined_.assign(attached_.size() * widest, 0), widths_.clear();
    for (std::size_t i = 0; i < attached_.size(); ++i) {
      std::ranges::copy(attached_[i], joined_.begin() + static_cast<std::ptrdiff_t>(i * widest));
      widths_.push_back(static_cast<std::int32_t>(attached_[i].size()));
    }
    auto const columns = static_cast<std::ptrdiff_t>(widest);
    return {{joined_.data(), std::ssize(attached_), columns, columns}, widths_};
  }

  Answer<M> step(std::span<Row const> rows) {
    std::size_t longest = 0, lines = 0;
    for (auto const& row : rows)
      longest = (std::max)(longest, row.tokens.size()), lines += static_cast<std::size_t>(row.lines);
    longest_ = longest;
    if (longest <= 1) return this->model_.step(rows);
    Answer<M> whole{};
    attached_.assign(lines, {});
    for (std::size_t fed = 0; fed < longest; ++fed) {
      feed(rows, fed);
      auto const part = this->model_.step(std::span<Row const>(rows_));
      if (fed == 0) {
        whole = part;
        numbers_.resize(lines * static_cast<std::size_t>(part.columns));
      }
      for (std::size_t i = 0; i < rows_.size(); ++i)
        if (places_[i] >= 0)
          std::ranges::copy(part[static_cast<std::ptrdiff_t>(i)], numbers_.begin() + places_[i] * part.columns);
      if constexpr (AttachingModel<M>) gather();
    }
    whole.data = numbers_.data(), whole.rows = static_cast<std::ptrdiff_t>(lines), whole.stride = whole.columns;
    return whole;
  }

 private:
  /// Makes the rows of one call, and the line of the whole answer that each gives (-1: none).
  void feed(std::span<Row const> rows, std::size_t fed) {
    rows_.clear(), places_.clear();
    std::ptrdiff_t end = 0;  // one past the row's lines
    for (auto const& row : rows) {
      end += row.lines;
      if (fed >= row.tokens.size()) continue;
      auto const left = static_cast<std::ptrdiff_t>(row.tokens.size() - fed);
      rows_.push_back({fed == 0 ? row.from : row.to, row.to, row.length + static_cast<std::int32_t>(fed),
                       row.tokens.subspan(fed, 1)});
      places_.push_back(left <= row.lines ? end - left : -1);
    }
  }

  /// Collects what one call attached.
  void gather() {
    Attachments const part = this->model_.attachments();
    if (part.values.rows == 0) return;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (places_[i] < 0) continue;
      auto line = part.values[static_cast<std::ptrdiff_t>(i)];
      if (!part.widths.empty()) line = line.first(static_cast<std::size_t>(part.widths[i]));
      attached_[static_cast<std::size_t>(places_[i])].assign(line.begin(), line.end());
    }
  }

  std::vector<Row> rows_;
  std::vector<std::ptrdiff_t> places_;  // [row of the call]
  std::vector<Number> numbers_;
  std::size_t longest_ = 0;                   // length of the longest row of the last step
  std::vector<std::vector<float>> attached_;  // [line]
  std::vector<float> joined_;
  std::vector<std::int32_t> widths_;
};

}  // namespace sluice::inline v0
