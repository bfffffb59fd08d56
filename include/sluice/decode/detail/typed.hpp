// SPDX-License-Identifier: Apache-2.0
/// \file
/// Implements the interfaces of the loop for types of model, expander, schedule, trace and request.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/own_edits.hpp>

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

/// Throws std::logic_error if the shape is not [lines, vocabulary]: an expander would read out of bounds. `columns` is -1 if the answer
/// holds no scores: other kinds of answer are for their expander to check.
SLUICE_LAZY void check_shape(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t lines, std::int32_t vocabulary) {
  if (rows != static_cast<std::ptrdiff_t>(lines))
    throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and gave " +
                           std::to_string(rows));
  if (columns >= 0 && columns != vocabulary)
    throw std::logic_error("sluice: the model's lines have " + std::to_string(columns) + " scores, its vocabulary " +
                           std::to_string(vocabulary));
}
SLUICE_FUNCTION_IN_LIBRARY(void check_shape<void>(std::ptrdiff_t, std::ptrdiff_t, std::size_t, std::int32_t))

template <class A>
void check_answer(A const& answer, std::size_t lines, std::int32_t vocabulary) {
  if constexpr (requires {
                  answer.rows;
                  answer.kind;
                })
    check_shape(answer.rows, answer.columns, lines, vocabulary);
  else if constexpr (requires { answer.rows; }) check_shape(answer.rows, -1, lines, vocabulary);
}

/// The same for attachments.
SLUICE_LAZY void check_attachments(Attachments const& attached, std::size_t lines) {
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
SLUICE_FUNCTION_IN_LIBRARY(void check_attachments<void>(Attachments const&, std::size_t))

template <Model M, Expander<Answer<M>> E>
struct ModelSideOf final : AnyModelSide {
  using Source = typename M::Source;

  ModelSideOf(M& one, E expanding) : model(one), expander(std::move(expanding)) {
    static_assert(model_names<M>());
    vocabulary = model.vocabulary(), limits = sluice::limits(std::as_const(model));
    abilities = sluice::abilities(std::as_const(model));
    alike = std::is_empty_v<Source> && std::is_default_constructible_v<Source>;
    encodes = sluice::encodes(std::as_const(model)), proposes = sluice::proposes(std::as_const(model));
    attaches = AttachingModel<M>, remembers = RememberingModel<M>, grows = GrowingModel<M>;
    if constexpr (requires { E::answers_entropy; }) answers_entropy = E::answers_entropy;
    if constexpr (requires { E::processes_lines; }) processes_lines = E::processes_lines;
  }
  std::int32_t source_length(void const* source) const override {
    return sluice::source_length(std::as_const(model), *static_cast<Source const*>(source));
  }
  SourceGrowth growth([[maybe_unused]] void const* source) const override {
    if constexpr (GrowingModel<M>) return std::as_const(model).growth(*static_cast<Source const*>(source));
    else return {};
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
                 AnyStopwatch& stopwatch) override {
    auto&& answer = model.step(std::span<Row const>(step.rows));
    stopwatch.book(seconds.model);
    check_answer(answer, step.queries.size(), vocabulary.size);
    if (extra != nullptr) extra->receive(expander.expand(answer, extra->queries, extra->groups));
    auto const expansion = expander.expand(answer, own_edits.of(step.queries, takes_shared_edits<E>()), step.groups);
    stopwatch.book(seconds.output);
    return expansion;
  }
  void propose([[maybe_unused]] std::span<Draft const> drafts) override {
    if constexpr (ProposingModel<M>) model.propose(drafts);
  }
  void remember([[maybe_unused]] Decoded const& decoded) override {
    if constexpr (RememberingModel<M>) {
      try {
        model.remember(decoded);
      } catch (...) {  // no result depends on it
      }
    }
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
      Buffer<Source const*> some;
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
  OwnEdits own_edits;
  Buffer<Source const*> given;
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

template <class Source, class S>
struct RequestOf final : AnyRequest {
  template <class M>
  RequestOf(Request<Source, S>&& request, M const& model)
      : text(std::move(request.source)), own(std::move(request.search)) {
    prompt = std::move(request.prompt), prefix = std::move(request.prefix);
    processors = std::move(request.processors);
    seed = request.seed, shortlist = std::move(request.shortlist), direction = request.direction,
    confidence = request.confidence, traced = request.traced, remember = request.remember;
    if (!own) return;
    try {
      adapt(*own, model);
    } catch (...) {
      problem = std::current_exception();
    }
  }
  void const* source() const override { return &text; }
  void* source() override { return &text; }
  void const* search() const override { return own ? &*own : nullptr; }
  Source text;
  std::optional<S> own;
};

}  // namespace sluice::inline v0::detail
