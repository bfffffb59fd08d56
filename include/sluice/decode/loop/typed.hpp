// SPDX-License-Identifier: Apache-2.0
/// \file
/// Implements the interfaces of the loop for types of model, expander, search, schedule and trace.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/trace.hpp>
#include <sluice/decode/loop/check_needs.hpp>
#include <sluice/decode/loop/interfaces.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Throws std::logic_error if the shape is not [lines, vocabulary]: an expander would read out of bounds. Checks `rows`,
/// and `columns` if the answer holds scores. Other kinds of answer are for their expander to check.
template <class A>
void check_answer(A const& answer, std::size_t lines, std::int32_t vocabulary) {
  if constexpr (requires { answer.rows; })
    if (answer.rows != static_cast<std::ptrdiff_t>(lines))
      throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and gave " +
                             std::to_string(answer.rows));
  if constexpr (requires { answer.kind; })
    if (answer.columns != vocabulary)
      throw std::logic_error("sluice: the model's lines have " + std::to_string(answer.columns) +
                             " scores, its vocabulary " + std::to_string(vocabulary));
}

/// The same for attachments.
template <class = void>
void check_attachments(Attachments const& attached, std::size_t lines) {
  auto const& [values, widths] = attached;
  if (values.rows != 0 && values.rows != static_cast<std::ptrdiff_t>(lines))
    throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and attaches " +
                           std::to_string(values.rows));
  if (values.rows != 0 && !widths.empty() && widths.size() != lines)
    throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and attaches " +
                           std::to_string(widths.size()) + " widths");
  for (auto const width : widths)
    if (values.rows != 0 && (width < 0 || width > values.columns))
      throw std::logic_error("sluice: the model attaches a width of " + std::to_string(width) + " among " +
                             std::to_string(values.columns) + " columns");
}

template <Model M, Expander<Answer<M>> E>
struct ModelSideOf final : AnyModelSide {
  using Source = typename M::Source;

  ModelSideOf(M& one, E expanding) : model(one), expander(std::move(expanding)) {
    static_assert(model_names<M>());
    vocabulary = model.vocabulary(), limits = sluice::limits(std::as_const(model));
    abilities = sluice::abilities(std::as_const(model));
    alike = std::is_empty_v<Source> && std::is_default_constructible_v<Source>;
    encodes = sluice::encodes(std::as_const(model)), proposes = sluice::proposes(std::as_const(model));
    attaches = AttachingModel<M>;
    if constexpr (requires { E::answers_entropy; }) answers_entropy = E::answers_entropy;
  }
  std::int32_t source_length(void const* source) const override {
    return sluice::source_length(std::as_const(model), *static_cast<Source const*>(source));
  }
  void start(std::span<void const* const> sources, std::span<Slot const> slot_numbers) override {
    given.clear();
    for (auto const* source : sources) given.push_back(static_cast<Source const*>(source));
    model.start(std::span<Source const* const>(given), slot_numbers);
  }
  void release([[maybe_unused]] std::span<Slot const> slot_numbers) override {
    if constexpr (ReleasingModel<M>) {
      try {
        model.release(slot_numbers);
      } catch (...) {  // it must not throw; no result depends on it, and a server's thread must not end
      }
    }
  }
  Expansion step(StepPlan const& step, ExtraQueries const* extra, Statistics::Seconds& seconds,
                 Stopwatch& stopwatch) override {
    auto&& answer = model.step(std::span<Row const>(step.rows));
    stopwatch.book(seconds.model);
    check_answer(answer, step.queries.size(), vocabulary.size);
    if (extra != nullptr) extra->receive(expander.expand(answer, extra->queries, extra->groups));
    auto const expansion = expander.expand(answer, step.queries, step.groups);
    stopwatch.book(seconds.output);
    return expansion;
  }
  void propose([[maybe_unused]] std::span<Draft const> drafts) override {
    if constexpr (ProposingModel<M>) model.propose(drafts);
  }
  Attachments attachments([[maybe_unused]] std::size_t lines) override {
    if constexpr (AttachingModel<M>) {
      Attachments const attached = model.attachments();
      check_attachments(attached, lines);
      return attached;
    } else return {};
  }
  std::shared_ptr<void> encode([[maybe_unused]] std::span<void const* const> sources) const override {
    if constexpr (EncodingModel<M>) {  // may run in another thread: must not write to this object
      std::vector<Source const*> some;
      for (auto const* source : sources) some.push_back(static_cast<Source const*>(source));
      return std::make_shared<typename M::Encoded>(std::as_const(model).encode(std::span<Source const* const>(some)));
    } else return {};
  }
  void start([[maybe_unused]] void* encoded, [[maybe_unused]] std::span<std::int32_t const> items,
             [[maybe_unused]] std::span<Slot const> slot_numbers) override {
    if constexpr (EncodingModel<M>) model.start(*static_cast<typename M::Encoded*>(encoded), items, slot_numbers);
  }

  M& model;
  E expander;
  std::vector<Source const*> given;
};

template <Schedule P>
struct ScheduleOf final : AnySchedule {
  ScheduleOf(P one, Abilities const& abilities) : schedule(std::move(one)) {
    static_assert(schedule_names<P>());
    if constexpr (AdaptingSchedule<P>) schedule.adapt(abilities);
    if constexpr (CheckedSchedule<P>) schedule.check();
  }
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const override {
    return static_cast<std::size_t>(schedule.admit(live, waiting));
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const override {
    schedule.select(live, chosen);
  }
  P schedule;
};

template <class T>
concept TracesBeginnings = requires(T& trace, std::uint64_t id, Sentence const& sentence) {
  trace.began(id, sentence);
};
template <class T>
concept TracesAdmission = requires(T& trace, std::uint64_t id, Slot base, std::int32_t slot_count) {
  trace.admitted(id, base, slot_count);
};
template <class T>
concept TracesPlans = requires(T& trace, StepPlan const& step) {
  trace.planned(step);
};
template <class T>
concept TracesAnswers = requires(T& trace, StepPlan const& step, Expansion const& answer) {
  trace.answered(step, answer);
};
template <class T>
concept TracesEnds = requires(T& trace, Result const& result) {
  trace.ended(result);
};

template <class T>
concept WantsEntropy = requires(T const& trace) {
  { trace.wants_entropy() } -> std::convertible_to<bool>;
};

template <class T>
struct TraceOf final : AnyTrace {
  explicit TraceOf(T one) : trace(std::move(one)) {
    static_assert(TracesBeginnings<T> || !stray_began<T>(),
                  "sluice: a trace's `began` must take (std::uint64_t, Sentence const&)");
    static_assert(TracesAdmission<T> || !stray_admitted<T>(),
                  "sluice: a trace's `admitted` must take (std::uint64_t, Slot, std::int32_t)");
    static_assert(TracesPlans<T> || !stray_planned<T>(), "sluice: a trace's `planned` must take a StepPlan const&");
    static_assert(TracesAnswers<T> || !stray_answered<T>(),
                  "sluice: a trace's `answered` must take (StepPlan const&, Expansion const&)");
    static_assert(WantsEntropy<T> || !stray_wants_entropy<T>(),
                  "sluice: a trace's `wants_entropy` must be const, take nothing and return a bool");
    static_assert(TracesEnds<T> || !stray_ended<T>(), "sluice: a trace's `ended` must take a Result const&");
  }
  void began([[maybe_unused]] std::uint64_t id, [[maybe_unused]] Sentence const& sentence) override {
    if constexpr (TracesBeginnings<T>) trace.began(id, sentence);
  }
  void admitted([[maybe_unused]] std::uint64_t id, [[maybe_unused]] Slot base,
                [[maybe_unused]] std::int32_t slot_count) override {
    if constexpr (TracesAdmission<T>) trace.admitted(id, base, slot_count);
  }
  void planned([[maybe_unused]] StepPlan const& step) override {
    if constexpr (TracesPlans<T>) trace.planned(step);
  }
  void answered([[maybe_unused]] StepPlan const& step, [[maybe_unused]] Expansion const& answer) override {
    if constexpr (TracesAnswers<T>) trace.answered(step, answer);
  }
  void ended([[maybe_unused]] Result const& result) override {
    if constexpr (TracesEnds<T>) trace.ended(result);
  }
  bool wants_entropy() const override {
    if constexpr (WantsEntropy<T>) return trace.wants_entropy();
    else return false;
  }
  T trace;
};

template <class Source, Search S>
struct RequestOf final : AnyRequest {
  RequestOf(Request<Source, S>&& request, AnyModelSide const& side)
      : text(std::move(request.source)), search(std::move(request.search)), model(side) {
    prompt = std::move(request.prompt), prefix = std::move(request.prefix);
    seed = request.seed, shortlist = std::move(request.shortlist), direction = request.direction,
    confidence = request.confidence, traced = request.traced;
  }
  void const* source() const override { return &text; }
  void check() const override {
    if (search) check_search(*search, model);
  }
  Source text;
  std::optional<S> search;
  AnyModelSide const& model;
};

template <class Source, Search S>
struct SearchOf final : AnySearch {
  explicit SearchOf(S const& one) : usual(one) {}
  void take(AnyRequest const& request) override {
    auto const& own = static_cast<RequestOf<Source, S> const&>(request).search;
    search = own ? &*own : &usual;
  }
  std::int32_t slot_count() const override { return static_cast<std::int32_t>(search->slot_count()); }
  void begin(Sentence const& sentence) override { search->begin(state, sentence); }
  bool insert_into([[maybe_unused]] TokenSet& set) const override {
    if constexpr (InsertingSearch<S>) search->insert_into(set);
    return InsertingSearch<S>;
  }
  void plan(Plan& plan) override { search->plan(state, plan); }
  bool advance(Expansion const& answer) override { return search->advance(state, answer); }
  Progress progress() const override { return search->progress(state); }
  bool draft([[maybe_unused]] Draft& draft) override {
    if constexpr (DraftingSearch<S>) return search->draft(state, draft);
    else return false;
  }
  void settled([[maybe_unused]] std::vector<Token>& tokens) override {
    if constexpr (SettlingSearch<S>) search->settled(state, tokens);
  }
  void finish(Result& result) override { search->finish(state, result); }

  S const& usual;
  S const* search = nullptr;
  mutable typename S::State state{};
};

template <class Source, Search S>
struct SearchesOf final : AnySearches {
  explicit SearchesOf(S one) : search(std::move(one)) {
    takes_prefix = sluice::takes_prefix<S>(), drafts = DraftingSearch<S>;
  }
  std::unique_ptr<AnySearch> make() const override { return std::make_unique<SearchOf<Source, S>>(search); }
  S search;
};

}  // namespace sluice::inline v0::detail
