// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checked: a wrapper that holds a model and its callers to the contract.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/check/check_options.hpp>
#include <sluice/model/check/line_judge.hpp>
#include <sluice/model/check/plain_lines.hpp>
#include <sluice/model/check/slot_comparison.hpp>
#include <sluice/model/check/slot_contract.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// What a model has encoded, with copies of the sources, because a comparison starts them again.
template <class M>
struct EncodedWithCopies {
  using Encoded = void;
};
template <EncodingModel M>
struct EncodedWithCopies<M> {
  struct Encoded {
    typename M::Encoded encoded;
    std::vector<std::shared_ptr<typename M::Source const>> sources;
  };
};

template <Model M>
struct PlainModelOf final : PlainModel {
  PlainModelOf(M& one, SlotContract& its_contract) : model(one), contract(its_contract) {}
  void start(void const* source, Slot slot) override {
    auto const* const typed = static_cast<typename M::Source const*>(source);
    model.start(std::span<typename M::Source const* const>(&typed, 1), std::span<Slot const>(&slot, 1));
  }
  void step(std::span<Row const> rows, [[maybe_unused]] PlainLines& lines) override {
    decltype(auto) answer = model.step(rows);
    if constexpr (ReadableAnswer<Answer<M>>) {
      judge_answer(contract, answer, rows, true, "alone in a spare slot, ");
      lines.append(answer, 0, answer.rows);
    }
  }
  void release(Slot slot) override { detail::release(model, std::span<Slot const>(&slot, 1)); }
  M& model;
  SlotContract& contract;
};

}  // namespace detail

/// For tests of models: the same model, which throws std::logic_error, naming the clause of docs/model.md, for
///  - every call that breaks the contract: rows, starts, releases and drafts;
///  - every answer whose number of lines differs from what was asked for, whose lines are not as wide as the vocabulary, or in which a
///    score is NaN or +infinity, with the row that asked for it;
///  - every line that differs by more than a tolerance from the line for the same tokens alone, in another slot or
///    another batch, after a roll-back, or fed as a block (as far as the model claims these), in the steps that
///    CheckOptions::every selects (not of models whose sources grow).
///
/// All violations are kept in violations(). The output is that of the model alone: comparisons run before the step, in
/// two free slots, and release them. If slots are limited, these are the last two, so limits() shows two slots fewer;
/// else they lie above all slots used so far. If tokens are limited, limits() shows a third of them.
///
/// A comparison costs, for each row, up to six times its tokens plus 15, in steps of one or two rows, eight starts of a
/// source (encoder included) and two slots as long as the row's; lines are copied. Answers that cannot be read (without
/// rows, columns and operator[]) are not compared, nor are sentences encoded ahead whose source cannot be copied. The
/// first step is always compared: a short request finds most mistakes.
///
/// Refers to the model, which must outlive it; nothing else may use the model meanwhile. Has the model's thread safety.
template <Model M>
class Checked : public detail::Forwarding<M> {
  using Base = detail::Forwarding<M>;
  static constexpr bool readable = detail::ReadableAnswer<Answer<M>>;

 public:
  using Source = typename M::Source;
  using Encoded = typename detail::EncodedWithCopies<M>::Encoded;  ///< void unless the model encodes

  /// \throws std::invalid_argument  for options that make no sense, or where lines are to be compared and the model has
  ///                                two slots or fewer
  explicit Checked(M& model, CheckOptions const& options = {})
      : Base(model),
        vocabulary_(model.vocabulary()),
        limits_(sluice::limits(std::as_const(model))),
        compares_(readable && !GrowingModel<M> && options.every > 0),  // a source that grows is not read twice
        contract_(
            {.vocabulary = vocabulary_.size, .limits = limits(), .abilities = sluice::abilities(std::as_const(model))}),
        plain_(model, contract_),
        comparison_(plain_, contract_, options, limits_.slot_count, number()) {
    options.check();
    require(!compares_ || limits_.slot_count > detail::SlotComparison::spare, "Checked: limits().slot_count",
            limits_.slot_count, "must be more than 2, which comparisons need; CheckOptions::every = 0 makes none");
  }
  ~Checked() = default;
  Checked(Checked const&) = delete;
  Checked& operator=(Checked const&) = delete;

  Limits limits() const {
    auto shown = limits_;
    if (!compares_) return shown;
    if (shown.slot_count != Limits::unlimited) shown.slot_count -= detail::SlotComparison::spare;
    // Each of the spare slots may hold as much as all others, and two tokens more.
    if (shown.tokens != Limits{}.tokens)
      shown.tokens = std::max<std::int64_t>(1, (shown.tokens - 4) / (detail::SlotComparison::spare + 1));
    return shown;
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    contract_.check_start(sources.size(), "sources", slot_numbers), contract_.check_sources(sources);
    this->model_.start(sources, slot_numbers);
    contract_.started(slot_numbers);
    for (std::size_t i = 0; i < slot_numbers.size(); ++i) comparison_.started(slot_numbers[i], sources[i]);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<M> {
    Encoded result{Base::encode(sources), {}};
    for (auto const* source : sources)
      if constexpr (std::copy_constructible<Source>)
        result.sources.push_back(compares_ ? std::make_shared<Source const>(*source) : nullptr);
      else result.sources.push_back(nullptr);
    return result;
  }
  template <class Batch>
    requires EncodingModel<M>
  void start(Batch& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    contract_.check_start(items.size(), "items", slot_numbers);
    for (auto const item : items)
      if (item < 0 || static_cast<std::size_t>(item) >= encoded.sources.size())
        contract_.refuse("start", "there is no item " + std::to_string(item) + " of " +
                                      std::to_string(encoded.sources.size()) + " that were encoded");
    this->model_.start(encoded.encoded, items, slot_numbers);
    contract_.started(slot_numbers);
    for (std::size_t i = 0; i < slot_numbers.size(); ++i) {
      auto const& source = encoded.sources[static_cast<std::size_t>(items[i])];
      comparison_.started(slot_numbers[i], source.get(), source, true);
    }
  }
  void release(std::span<Slot const> slot_numbers) {
    contract_.release(slot_numbers);
    comparison_.released(slot_numbers);
    detail::release(this->model_, slot_numbers);
  }
  void propose(std::span<Draft const> drafts) requires ProposingModel<M> {
    contract_.check_drafts(drafts);
    this->model_.propose(drafts);
  }

  decltype(auto) step(std::span<Row const> rows) {
    detail::SlotContract::Step step(contract_, rows);
    auto const compared = compares_ && comparison_.before(rows);
    if (compared) constant();
    decltype(auto) answer = this->model_.step(rows);
    if constexpr (readable) detail::judge_answer(contract_, answer, rows, compares_, "");
    if constexpr (requires { static_cast<std::ptrdiff_t>(answer.rows); })
      comparison_.judge().answered(answer.rows, detail::lines(rows));
    if constexpr (readable)
      if (compared)
        comparison_.after(rows, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
          detail::PlainLines some;
          some.append(answer, first, count);
          return some;
        });
    comparison_.stepped(rows);
    step.done();
    return answer;
  }

  /// What was refused, in order.
  std::vector<std::string> const& violations() const { return contract_.violations(); }
  /// That, a line each, and the slots that have not been released; empty if all is well at the end.
  std::string report() const { return contract_.report(); }

 private:
  static constexpr char const* number() {
    if constexpr (requires(Answer<M> const& answer) { answer.kind; }) return "token";
    else return "number";
  }

  /// What may not change over the life of a model.
  void constant() {
    Vocabulary const now = this->model_.vocabulary();
    if (now.size != vocabulary_.size || now.bos != vocabulary_.bos || now.eos != vocabulary_.eos ||
        now.never != vocabulary_.never)
      contract_.refuse("vocabulary", "vocabulary() has changed");
    auto const limited = sluice::limits(std::as_const(this->model_));
    if (limited.slot_count != limits_.slot_count || limited.length != limits_.length ||
        limited.tokens != limits_.tokens || limited.log_prob != limits_.log_prob)
      contract_.refuse("limits", "limits() have changed");
    if (sluice::abilities(std::as_const(this->model_)) != contract_.terms().abilities)
      contract_.refuse("abilities", "abilities() have changed");
  }

  Vocabulary vocabulary_;
  Limits limits_;
  bool compares_;
  detail::SlotContract contract_;
  detail::PlainModelOf<M> plain_;
  detail::SlotComparison comparison_;
};

}  // namespace sluice::inline v0
