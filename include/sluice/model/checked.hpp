// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checked: a wrapper that holds a model and its callers to the contract, and whether a model gives the same answer in the middle
/// of decoding as for the same tokens alone.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/line_judge.hpp>
#include <sluice/model/detail/plain_lines.hpp>
#include <sluice/model/detail/slot_contract.hpp>
#include <sluice/model/detail/slot_trials.hpp>
#include <sluice/model/detail/trial_slots.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How Checked compares a model with itself.
struct CheckOptions {
  std::int32_t every = 8;   ///< every n-th step, including the first; 0: never
  std::int32_t rows = 1;    ///< rows drawn of such a step; fewer if a row is drawn twice
  double tolerance = 1e-3;  ///< allowed difference, times (1 + expected number); 0: must match bit for bit
  std::uint64_t seed = 1;   ///< for the draws

  void check() const {
    require(every >= 0, "check.every", every, "must not be negative");
    require(rows >= 1, "check.rows", rows, "must be at least 1");
    require(tolerance >= 0 && std::isfinite(tolerance), "check.tolerance", tolerance, "must be a number >= 0");
  }
};

}  // namespace sluice::inline v0

namespace sluice::inline v0::detail {

/// Tracks what each slot holds and how it got there, and compares before and after a step.
class SlotComparison {
 public:
  static constexpr std::int32_t spare = 2;  ///< slots that comparisons need

  /// \param slots   how many the model has
  /// \param number  what the numbers of a line are
  SlotComparison(PlainModel& model, SlotContract& contract, CheckOptions const& options, std::int32_t slot_count,
                 char const* number)
      : model_(model),
        contract_(contract),
        judge_(contract, options.tolerance, number),
        options_(options),
        slots_(slot_count) {}

  /// \param keep  keeps the source alive, if the caller need not
  void started(Slot slot, void const* source, std::shared_ptr<void const> keep = {}, bool encoded = false) {
    origins_[slot] = {.source = source, .keep = std::move(keep), .encoded = encoded};
    highest_ = (std::max)(highest_, slot);
  }
  void released(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) origins_.erase(slot);
  }
  void stepped(std::span<Row const> rows) {
    for (auto& [slot, origin] : origins_) ++origin.sat_out_now;
    for (auto const& row : rows) {
      auto const held = contract_.held().at(row.from).size();
      auto& from = origins_.at(row.from);
      from.cut = from.cut || (row.from == row.to && static_cast<std::size_t>(row.length) < held);
      if (row.from == row.to) continue;
      from.forked = true;
      auto child = from;
      child.from = row.from, child.forked = false;
      child.cut = child.cut || static_cast<std::size_t>(row.length) < held;
      origins_[row.to] = child;
      highest_ = (std::max)(highest_, row.to);
    }
    for (auto const& row : rows) {
      auto& to = origins_.at(row.to);
      to.block = to.block || row.tokens.size() > 1;
      to.sat_out_now = 0;
    }
    for (auto& [slot, origin] : origins_) origin.sat_out = (std::max)(origin.sat_out, origin.sat_out_now);
  }

  /// Whether some rows of the step are to be compared. Does the part of the comparison that must come before the step.
  bool before(std::span<Row const> rows) {
    chosen_.clear();
    if (options_.every == 0 || contract_.steps() % static_cast<std::size_t>(options_.every) != 0) return false;
    auto const key = derive(options_.seed, contract_.steps());
    auto top = highest_;
    for (auto const& row : rows) top = (std::max)(top, row.to);
    auto const first = slots_ == Limits::unlimited ? top + 1 : slots_ - spare;
    TrialSlots trial(model_, judge_, first);
    for (std::int32_t j = 0; j < options_.rows; ++j) {
      auto const i = derive(key, static_cast<std::uint64_t>(j)) % rows.size();
      auto const known = origins_.find(rows[i].from);
      if (known == origins_.end() || known->second.source == nullptr) continue;
      if (std::ranges::any_of(chosen_, [&](Chosen const& one) { return one.row == i; })) continue;
      compare(trial, rows[i], i, known->second, derive(key, static_cast<std::uint64_t>(j) + 1000));
    }
    trial.release();
    return !chosen_.empty();
  }

  /// Calls lines(first, count), which copies those lines of the answer, for the rows that are being compared.
  template <class F>
  void after(std::span<Row const> rows, F&& lines) {
    std::ptrdiff_t line = 0;
    for (std::size_t i = 0; i < rows.size(); line += rows[i++].lines)
      for (auto const& one : chosen_)
        if (one.row == i)
          expect(lines(line, rows[i].lines), one.expected, rows[i], rows[i].to,
                 one.encoded
                     ? "start: what was encoded ahead is another sentence, or clause 11: a line depends on its batch"
                     : "clause 11: a line depends on its batch",
                 " in a step of " + std::to_string(rows.size()) + " rows, compared with alone");
  }

  LineJudge& judge() { return judge_; }

 private:
  struct Origin {
    void const* source = nullptr;
    std::shared_ptr<void const> keep{};
    bool encoded = false, forked = false, cut = false, block = false;
    Slot from = -1;
    std::int32_t sat_out = 0, sat_out_now = 0;
  };
  struct Chosen {
    std::size_t row;
    PlainLines expected;
    bool encoded;  // encoded ahead, and nothing fed since
  };

  void compare(TrialSlots& trial, Row const& row, std::size_t i, Origin const& origin, std::uint64_t key) {
    auto const& held = contract_.held().at(row.from);
    Text text{origin.source, {held.begin(), held.begin() + row.length}};
    auto const kept = row.tokens.first(row.kept());
    text.tokens.insert(text.tokens.end(), kept.begin(), kept.end());
    try_out(trial, text, key);

    auto expected = row.depths == nullptr ? PlainLines{} : paths(trial, row, text);
    trial.start(text.source, 1);
    if (row.depths == nullptr) expected = trial.feed(1, 0, text.tokens, row.lines);
    if (row.length > 0) {  // what the slot holds, without the rest of the batch
      auto alone = row;
      alone.to = trial.numbers[0];
      expect(trial.run(std::span(&alone, 1)), expected, row, row.from,
             "a slot does not hold what was fed to it (clauses 4, 5, 10 and 11)",
             ", forked and continued alone, compared with its tokens fed anew; the slot " + history(origin));
      trial.release(0);
    }
    trial.release(1);
    chosen_.push_back({i, std::move(expected), origin.encoded && row.length == 0});
  }

  /// The lines of a tree's paths, each fed as a chain.
  static PlainLines paths(TrialSlots& trial, Row const& row, Text const& text) {
    PlainLines all;
    auto path = text.tokens;
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      path.resize(static_cast<std::size_t>(row.length) + static_cast<std::size_t>(row.depths[i]));
      path.push_back(row.tokens[i]);
      if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
      trial.start(text.source, 1);
      auto const line = trial.feed(1, 0, path, 1);
      all.columns = line.columns, ++all.rows;
      all.numbers.insert(all.numbers.end(), line.numbers.begin(), line.numbers.end());
    }
    return all;
  }

  void try_out(TrialSlots& trial, Text text, std::uint64_t key) {
    auto const& terms = contract_.terms();
    if (terms.limits.length < 3) return;  // the trials add two tokens
    auto const most = (std::min)(text.tokens.size(), static_cast<std::size_t>(terms.limits.length) - 2);
    text.tokens.resize(1 + derive(key, 0) % most);
    auto const size = static_cast<std::uint64_t>(terms.vocabulary);
    auto y = static_cast<Token>(derive(key, 1) % size);
    if (y == text.tokens.back()) y = static_cast<Token>((static_cast<std::uint64_t>(y) + 1) % size);
    SlotTrials(trial, judge_, terms.abilities, text, beside(text, y), y).run();
  }

  /// A different text: of another source if there is one, else with other tokens.
  Text beside(Text const& text, Token y) const {
    Text other{text.source, {y}};
    for (auto const& [slot, tokens] : contract_.held()) {
      auto const origin = origins_.find(slot);
      if (tokens.empty() || origin == origins_.end() || origin->second.source == nullptr) continue;
      if (origin->second.source != text.source) return {origin->second.source, tokens};
      if (!std::ranges::equal(tokens, text.tokens)) other.tokens = tokens;
    }
    return other;
  }

  void expect(PlainLines const& lines, PlainLines const& expected, Row const& row, Slot slot, std::string const& clause,
              std::string const& how) {
    for (std::ptrdiff_t i = 0; i < expected.rows; ++i)
      judge_.expect(lines[i], expected[i], clause,
                    "slot " + std::to_string(slot) + " after " +
                        std::to_string(row.length + 1 +
                                       row.depth(row.tokens.size() - static_cast<std::size_t>(expected.rows - i))) +
                        " tokens" + (row.depths == nullptr ? "" : " of a tree") + how);
  }

  static std::string history(Origin const& origin) {
    std::string text;
    auto const add = [&](bool did, std::string const& what) {
      if (did) text.append(text.empty() ? "" : ", ").append(what);
    };
    add(origin.encoded, "was encoded ahead");
    add(origin.from >= 0, "came of a fork of slot " + std::to_string(origin.from));
    add(origin.forked, "was forked from");
    add(origin.cut, "was rolled back");
    add(origin.block, "was fed blocks");
    add(origin.sat_out > 0, "sat out " + std::to_string(origin.sat_out) + " steps");
    return text.empty() ? "was fed token by token in every step" : text;
  }

  PlainModel& model_;
  SlotContract& contract_;
  LineJudge judge_;
  CheckOptions options_;
  std::int32_t slots_;
  std::map<Slot, Origin> origins_;
  std::vector<Chosen> chosen_;
  Slot highest_ = -1;
};

}  // namespace sluice::inline v0::detail

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
