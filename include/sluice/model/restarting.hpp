// SPDX-License-Identifier: Apache-2.0
/// \file
/// Restarting: roll-back for models that do not support it. TokenByToken: gives any model blocks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
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

#define SLUICE_ROLLS_BACK "sluice: this model can roll back by itself and does not need sluice::Restarting"

namespace sluice::inline v0 {

namespace detail {
constexpr Abilities with_roll_back(Abilities able) {
  able.roll_back = true, able.trees = false;
  return able;
}
}  // namespace detail

/// Counts the restarts of a Restarting.
struct Restarts {
  std::uint64_t slot_count = 0;  ///< slots started again
  std::uint64_t tokens = 0;      ///< tokens fed again
};

/// Gives any model roll-back: a slot that is cut is started again and fed the tokens that stay. For models whose state
/// cannot be cut (recurrent ones), if roll-backs are rare or the sentences short.
///
/// Refers to the model, which must outlive it. A step that cuts costs one call of Model::start for all slots cut, and
/// feeds their kept tokens again: in the step's own call if the model is ragged and takes blocks; in one earlier call
/// if it only takes blocks; else in one call per token, for all slots together. Other steps cost no further call. A
/// fork of a slot that is cut in the same step is started again too, since the model no longer holds what the fork
/// would copy. Encoding ahead is not passed on, since a sentence may have to be encoded again.
template <Model M>
class Restarting
    : public detail::Claim<detail::KnownAbilities<M>, detail::with_roll_back(detail::known_abilities<M>())> {
  static_assert(!detail::known_abilities<M>().roll_back, SLUICE_ROLLS_BACK);
  static_assert(!GrowingModel<M>, "sluice: Restarting: sources that grow are not passed on");

 public:
  using Source = typename M::Source;
  using Wrapped = M;  ///< see core/named.hpp

  /// \throws std::invalid_argument  if the model itself supports roll-back
  explicit Restarting(M& model)
      : Restarting::Claim(detail::with_roll_back(sluice::abilities(std::as_const(model)))),
        model_(model),
        able_(sluice::abilities(std::as_const(model))) {
    if (able_.roll_back) throw std::invalid_argument(SLUICE_ROLLS_BACK);
  }

  bool proposes() const { return sluice::proposes(std::as_const(model_)); }

  decltype(auto) vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return sluice::limits(std::as_const(model_)); }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }
  Restarts const& restarts() const { return restarts_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    for (std::size_t i = 0; i < slot_numbers.size(); ++i) {
      tokens_.clear(slot_numbers[i]);
      at(slot_numbers[i]) = {.source = sources[i]};
    }
    model_.start(sources, slot_numbers);
    for (auto const slot : slot_numbers) at(slot).held = true;
  }

  void release(std::span<Slot const> slot_numbers) {
    held_.clear();
    for (auto const slot : slot_numbers)
      if (std::exchange(at(slot).held, false)) held_.push_back(slot);
    if (!held_.empty()) detail::release(model_, held_);
  }

  /// Throws what the model's step and start throw; the slots of the rows must then be released.
  Answer<M> step(std::span<Row const> rows) {
    find_cuts(rows);
    for (auto const& row : rows)
      if (row.from != row.to) at((std::max)(row.from, row.to)), at(row.to).source = at(row.from).source;
    tokens_.apply(rows);
    if (!cut_.empty()) rows = restart(rows);
    for (auto const& row : rows) at(row.to).held = true;
    return model_.step(rows);
  }

  void propose(std::span<Draft const> drafts) requires ProposingModel<M> { model_.propose(drafts); }
  void remember(Decoded const& decoded) requires RememberingModel<M> { model_.remember(decoded); }
  Attachments attachments() requires AttachingModel<M> { return model_.attachments(); }

 private:
  struct State {
    Source const* source = nullptr;
    bool held = false;  // the model holds something there
    bool cut = false;   // in this step
  };

  State& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= states_.size()) states_.resize(i + 1);
    return states_[i];
  }

  /// Finds the rows whose slots must be started again, and puts them into cut_.
  void find_cuts(std::span<Row const> rows) {
    cut_.clear();
    for (auto const& row : rows)
      if (row.length < tokens_.length(row.from)) at(row.to).cut = true;
    for (auto const& row : rows)
      if (row.from != row.to && at(row.from).cut) at(row.to).cut = true;
    for (auto const& row : rows)
      if (std::exchange(at(row.to).cut, false)) cut_.push_back({row.to, row.to, row.length, row.tokens, row.lines});
  }

  /// Starts the slots of cut_ again and feeds the tokens that stay. Returns the rows that are left to run.
  std::span<Row const> restart(std::span<Row const> rows) {
    slots_.clear(), sources_.clear();
    for (auto const& row : cut_) slots_.push_back(row.to), sources_.push_back(at(row.to).source);
    release(slots_);
    model_.start(std::span<Source const* const>(sources_), std::span<Slot const>(slots_));
    for (auto& row : cut_) {
      at(row.to).held = true;
      ++restarts_.slot_count, restarts_.tokens += static_cast<std::uint64_t>(row.length);
    }
    if (able_.ragged && able_.blocks)
      for (auto& row : cut_) row.length = 0, row.tokens = tokens_[row.to];
    else feed_again();

    rows_.assign(rows.begin(), rows.end());
    auto next = rows_.begin();
    for (auto const& row : cut_) {  // both ascend
      while (next->to != row.to) ++next;
      *next = row;
    }
    return rows_;
  }

  void feed_again() {
    std::int32_t longest = 0;
    for (auto const& row : cut_) longest = (std::max)(longest, row.length);
    auto const chunk = able_.blocks ? longest : 1;  // a model with blocks that is not ragged needs rows of one length
    for (std::int32_t fed = 0; fed < longest; fed += chunk) {
      rows_.clear();
      for (auto const& row : cut_)
        if (fed < row.length)
          rows_.push_back({row.to, row.to, fed,
                           tokens_[row.to].subspan(static_cast<std::size_t>(fed), static_cast<std::size_t>(chunk))});
      static_cast<void>(model_.step(std::span<Row const>(rows_)));
    }
  }

  M& model_;
  Abilities able_;
  detail::SlotTokens tokens_;
  std::vector<State> states_;  // [slot]
  std::vector<Row> cut_, rows_;
  std::vector<Slot> slots_, held_;
  std::vector<Source const*> sources_;
  Restarts restarts_;
};

}  // namespace sluice::inline v0

#undef SLUICE_ROLLS_BACK
#undef SLUICE_TAKES_BLOCKS
