// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decoder: a model, a search and a schedule. A thin typed shell around decode/detail/loop.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/detail/check_needs.hpp>
#include <sluice/decode/detail/loop_handle.hpp>
#include <sluice/decode/detail/misfits.hpp>
#include <sluice/decode/detail/searches_of.hpp>
#include <sluice/decode/detail/typed.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace sluice::inline v0 {

/// Decodes sentences with a model, in one thread:
///
///     Decoder decoder(model, search, schedule);
///     decoder.submit({.source = s});                       // as often as you like, also between steps
///     while (decoder.step())                               // one step; false: nothing runs or waits
///       while (decoder.poll(result)) use(result);          // in the order in which sentences end
///     while (decoder.poll(result)) use(result);
///
/// A request that fails has a Failure of its own and does not affect the others. Neither batch nor schedule changes a result (if
/// the model's rows do not depend on each other). For more threads use more decoders, over models that share their weights.
///
/// It refers to the model, which must outlive it; search, schedule, expander and trace are copies of its own. The arguments of decode()
/// have the same order, but for the trace, which only this has, before the intake (it may be left out: an intake may follow the schedule).
///
/// \tparam M  the model; no other decoder may use it while this one lives
/// \tparam E  turns the model's answers into candidates; LogSoftmaxTopK for models that return scores
/// \tparam T  a trace, see NoTrace
template <Model M, Search S, Schedule P = Batched, detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK,
          class T = NoTrace>
class SLUICE_ABI_TAG Decoder {
  static_assert(Expander<E, Answer<M>> || !detail::is_hidden<Answer<M>>,
                "sluice: step() of this model returns hidden vectors, and nothing makes scores of them: pass an "
                "expander, such as sluice::DenseProjection(weights, bias), after the schedule, or wrap the model in "
                "sluice::Projected");
  static_assert(
      Expander<E, Answer<M>> || detail::is_hidden<Answer<M>>,
      "sluice: step() of this model returns neither sluice::Scores<float> nor anything else that its expander takes: "
      "return sluice::scores(data, lines, columns), or pass an expander (docs/output.md) after the schedule");
  static_assert(!std::same_as<T, Intake>,
                "sluice: an Intake is not a trace: pass it after the trace, or right after the schedule");

 public:
  using Source = typename M::Source;
  using SearchRequest = Request<Source, S>;

  /// Throws std::invalid_argument if the options of search or schedule, or the vocabulary, make no sense, or if the search needs
  /// an ability that the model lacks (a compile error if the abilities are known then).
  explicit Decoder(M& model, S search = {}, P schedule = {}, E expander = {}, T trace = {}, Intake const& intake = {})
      : model_(model, std::move(expander)),
        searches_(detail::make_searches<S>(detail::adapted(std::move(search), std::as_const(model)))),
        schedule_(std::move(schedule), model_.abilities),
        trace_(std::move(trace)),
        loop_(model_, *searches_, schedule_, std::same_as<T, NoTrace> ? nullptr : &trace_, intake) {
    static_assert(detail::known_needs<M, S>() && detail::search_names<S>());
    model_.vocabulary.check();
    if constexpr (requires { model_.expander.vocabulary_size(); })
      require(model_.expander.vocabulary_size() == model_.vocabulary.size, "projection.vocabulary_size",
              model_.expander.vocabulary_size(),
              "the model's vocabulary has " + std::to_string(model_.vocabulary.size));
    searches_->check(nullptr, model_);
  }
  Decoder(M& model, S search, P schedule, Intake const& intake)
      : Decoder(model, std::move(search), std::move(schedule), {}, {}, intake) {}
  ~Decoder() = default;
  Decoder(Decoder const&) = delete;
  Decoder& operator=(Decoder const&) = delete;

  /// Queues a request and returns its id (0, 1, 2 ...). Never throws for a bad request: it ends with Failure::bad_request, at
  /// once or when it would be admitted.
  std::uint64_t submit(SearchRequest request) { return loop_.submit(wrap(std::move(request))); }
  /// Anything else is a compile error that says what was expected.
  template <class X>
    requires(!std::convertible_to<X, SearchRequest>)
  std::uint64_t submit(X&&) {
    static_assert(detail::refuse_request<std::remove_cvref_t<X>, SearchRequest>());
    return 0;
  }
  template <class X = detail::Anything>
  std::uint64_t submit(detail::AnyFields const&) {
    static_assert(detail::refuse_request<X, SearchRequest>());
    return 0;
  }

  /// One step: admits, chooses, plans, runs, advances. Returns false if nothing runs (or all that runs waits, see append()) and the
  /// schedule admits nothing. If the
  /// model (or the expander) throws, the sentences of this step end with Failure::model and the exception goes on to the
  /// caller; the decoder stays usable.
  /// \throws std::logic_error  if sentences run and the schedule chooses none, one that does not exist, or not in ascending
  ///                           order; no sentence ends then
  /// An exception of a trace is thrown again when the step is done, see NoTrace.
  bool step() {
    auto const more = loop_.step();
    if constexpr (!std::same_as<T, NoTrace>)
      if (auto const problem = loop_.take_trace_problem()) std::rethrow_exception(problem);
    return more;
  }

  /// Adds to the source of a waiting or running request, by append(source, more...) of the model, see GrowingModel. False if the request
  /// has ended already, or never existed. Throws what append throws; nothing ends then. While all running requests wait for more of
  /// their sources, step() returns false.
  template <class... More>
    requires GrowingModel<M> && requires(M& model, Source& source, More&&... more) {
      model.append(source, std::forward<More>(more)...);
    }
  bool append(std::uint64_t id, More&&... more) {
    auto const add = [&](detail::AnyRequest& request) {
      model_.model.append(*static_cast<Source*>(request.source()), std::forward<More>(more)...);
    };
    return loop_.append(id, std::ref(add));  // which a std::function holds without allocating
  }

  /// Takes the next result; false if none is ready.
  bool poll(Result& result) { return loop_.poll(result); }

  /// Ends a waiting or running request with Failure::cancelled (or another) and the hypotheses so far. False if it has ended
  /// already, or never existed. O(waiting + running).
  bool cancel(std::uint64_t id, Failure why = Failure::cancelled) { return loop_.cancel(id, why); }

  /// Ends all waiting and running requests, with the hypotheses so far.
  void end_all(Failure why, std::string const& message, std::exception_ptr const& cause = {}) {
    loop_.end_all(why, message, cause);
  }

  /// Token streaming: calls f(id, tokens) for every running sentence of the last step for which wanted(id) is true. `tokens` is
  /// the beginning of its result, as far as that is certain. If its search throws, the sentence ends with Failure::search. Both
  /// functions may call submit(), poll(), cancel() and end_all(); f is not called for a sentence that was ended so. Their
  /// exceptions go to the caller.
  /// \throws std::logic_error  if one of them calls step() or settled()
  template <class Wanted, class F>
    requires SettlingSearch<S>
  void settled(Wanted&& wanted, F&& f) { loop_.settled(std::forward<Wanted>(wanted), std::forward<F>(f)); }

  std::size_t waiting() const { return loop_.waiting(); }  ///< requests not yet admitted
  std::size_t running() const { return loop_.running(); }  ///< sentences that are running
  Statistics const& statistics() const { return loop_.statistics(); }
  E const& expander() const { return model_.expander; }
  T& trace() { return trace_.trace; }

  /// The decoder without its types, for what is built on it (decode(), Server).
  detail::LoopHandle& loop() { return loop_; }
  std::unique_ptr<detail::AnyRequest> wrap(SearchRequest request) const {
    return std::unique_ptr<detail::AnyRequest>(
        new detail::RequestOf<Source, S>(std::move(request), std::as_const(model_.model)));
  }

 private:
  detail::ModelSideOf<M, E> model_;
  std::unique_ptr<detail::AnySearches> searches_;
  detail::ScheduleOf<P> schedule_;
  detail::TraceOf<T> trace_;
  detail::LoopHandle loop_;
};

/// The compile error for a class that is no Model.
template <class M, Search S, class... More>
  requires(!Model<M>)
Decoder(M&, S, More&&...)
->Decoder<detail::NoModel<M>, S>;

}  // namespace sluice::inline v0
