// SPDX-License-Identifier: Apache-2.0
/// \file
/// What users write: a model, a search, a schedule. A thin shell of types over decode/loop/.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/schedule.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/trace.hpp>
#include <sluice/decode/detail/misfits.hpp>
#include <sluice/decode/loop/check_needs.hpp>
#include <sluice/decode/loop/loop.hpp>
#include <sluice/decode/loop/typed_model.hpp>
#include <sluice/decode/loop/typed_search.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/schedule/intake.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace sluice::inline v0 {

/// Decodes sentences with a model, in one thread:
///
///     Decoder decoder(model, search, schedule);
///     decoder.submit({.source = s});                       // as often as you like, also between steps
///     while (decoder.step())                               // one round; false: nobody alive, nobody waiting
///       while (decoder.poll(result)) use(result);          // in the order in which sentences end
///     while (decoder.poll(result)) use(result);
///
/// A request that fails has its own Failure; the others never notice. Neither batch nor schedule changes a result (given a
/// model whose rows do not depend on each other). More threads = more decoders, over models that share their weights.
///
/// \tparam M  the model; it belongs to this decoder while the decoder lives
/// \tparam E  what turns the model's answer into candidates; LogSoftmaxTopK for models that give scores
/// \tparam T  a trace, see NoTrace
template <Model M, Search S, Schedule P = Batched, detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK,
          class T = NoTrace>
class Decoder {
  static_assert(Expander<E, Answer<M>> || !detail::is_hidden<Answer<M>>,
                "sluice: step() of this model returns hidden vectors, and nothing makes scores of them: pass an "
                "expander, such as sluice::DenseProjection(weights, bias), behind the schedule, or wrap the model in "
                "sluice::Projected");
  static_assert(
      Expander<E, Answer<M>> || detail::is_hidden<Answer<M>>,
      "sluice: step() of this model returns neither sluice::Scores<float> nor anything else that its expander takes: "
      "return sluice::scores(data, lines, columns), or pass an expander (docs/output.md) behind the schedule");

 public:
  using Source = typename M::Source;
  using SearchRequest = Request<Source, S>;

  /// Throws std::invalid_argument for options of search or schedule, or a vocabulary, that make no sense, and where the search
  /// needs what the model cannot do (the compiler refuses it where it knows).
  explicit Decoder(M& model, S search = {}, P schedule = {}, E expander = {}, T trace = {}, Intake const& intake = {})
      : model_(model, std::move(expander)),
        searches_(std::move(search)),
        schedule_(std::move(schedule), model_.abilities),
        trace_(std::move(trace)),
        loop_(model_, searches_, schedule_, std::same_as<T, NoTrace> ? nullptr : &trace_, intake) {
    static_assert(detail::known_needs<M, S>() && detail::search_names<S>());
    model_.vocabulary.check();
    if constexpr (requires { model_.expander.vocabulary_size(); })
      require(model_.expander.vocabulary_size() == model_.vocabulary.size, "projection.vocabulary_size",
              model_.expander.vocabulary_size(),
              "the model's vocabulary has " + std::to_string(model_.vocabulary.size));
    detail::check_search(searches_.search, model_);
  }
  Decoder(M& model, S search, P schedule, Intake const& intake)
      : Decoder(model, std::move(search), std::move(schedule), {}, {}, intake) {}
  ~Decoder() = default;
  Decoder(Decoder const&) = delete;
  Decoder& operator=(Decoder const&) = delete;

  /// Queues a request and returns its id (0, 1, 2 ...). Never throws for what the request says: one that makes no sense
  /// ends with Failure::bad_request, at once or when it would be admitted.
  std::uint64_t submit(SearchRequest request) { return loop_.submit(wrap(std::move(request))); }
  /// What is no such request is refused by the compiler, in a sentence.
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

  /// Admits, chooses, plans, runs, advances: one round. Returns false when nobody is running, and nobody waits whom the
  /// schedule lets in. If the model (or the expander) throws, the sentences of this step end with Failure::model and the
  /// exception goes on to the caller; the decoder stays usable.
  /// \throws std::logic_error  if the schedule chooses nobody although somebody is alive, somebody who is not there, or not in
  ///                           ascending order; nobody has ended then
  /// What a trace throws is thrown again when the step is done, see NoTrace.
  bool step() {
    auto const more = loop_.step();
    if constexpr (!std::same_as<T, NoTrace>)
      if (auto const problem = loop_.take_trace_problem()) std::rethrow_exception(problem);
    return more;
  }

  /// Takes a result that is ready; false if there is none.
  bool poll(Result& result) { return loop_.poll(result); }

  /// Ends a waiting or running request with Failure::cancelled (or another) and what hypotheses there are. False if it
  /// has ended already (or never was). O(waiting + running).
  bool cancel(std::uint64_t id, Failure why = Failure::cancelled) { return loop_.cancel(id, why); }

  /// Ends all that is waiting or running, with what hypotheses there are.
  void end_all(Failure why, std::string const& message, std::exception_ptr const& cause = {}) {
    loop_.end_all(why, message, cause);
  }

  /// Calls f(id, tokens) for every live sentence of the last step of which wanted(id), with what its result will begin
  /// with, as far as that is certain. Whoever's search throws then ends with Failure::search. Both may call submit(), poll(),
  /// cancel() and end_all(): one that is ended so is told of no more. What they throw goes to the caller.
  /// \throws std::logic_error  where one of them calls step() or settled()
  template <class Wanted, class F>
    requires SettlingSearch<S>
  void settled(Wanted&& wanted, F&& f) { loop_.settled(std::forward<Wanted>(wanted), std::forward<F>(f)); }

  std::size_t waiting() const { return loop_.waiting(); }  ///< requests not yet admitted
  std::size_t running() const { return loop_.running(); }  ///< sentences alive
  Statistics const& statistics() const { return loop_.statistics(); }
  E const& expander() const { return model_.expander; }
  T& trace() { return trace_.trace; }

  /// The same without its types, for what is built on it (decode(), Server).
  detail::Loop& loop() { return loop_; }
  std::unique_ptr<detail::AnyRequest> wrap(SearchRequest request) const {
    return std::make_unique<detail::RequestOf<Source, S>>(std::move(request), model_);
  }

 private:
  detail::ModelSideOf<M, E> model_;
  detail::SearchesOf<Source, S> searches_;
  detail::ScheduleOf<P> schedule_;
  detail::TraceOf<T> trace_;
  detail::Loop loop_;
};

}  // namespace sluice::inline v0
