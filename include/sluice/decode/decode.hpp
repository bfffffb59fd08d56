// SPDX-License-Identifier: Apache-2.0
/// \file
/// decode(), decode_each(): all sentences in, all results out.
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
#include <sluice/core/types.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/detail/misfits.hpp>
#include <sluice/decode/loop/interfaces.hpp>
#include <sluice/decode/loop/loop.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/schedule/intake.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// In which order decode_each() hands out results.
enum class ResultOrder : std::uint8_t {
  input,  ///< that of the inputs: a result waits for those before it
  ended,  ///< as sentences end; Result::id says which input it was
};

namespace detail {

/// A range of inputs. Each is read when the queue asks for it.
template <class Decoder, class Iterator, class Sentinel>
class InputSupply final : public Supply {
 public:
  InputSupply(Decoder& decoder, Iterator first, Sentinel last)
      : decoder_(decoder), next_(std::move(first)), last_(std::move(last)) {}

  /// If the range throws, it ends; see problem().
  bool submit_next() override {
    try {
      if (problem_ != nullptr || next_ == last_) return false;
      auto&& input = *next_;
      if constexpr (std::same_as<std::iter_value_t<Iterator>, typename Decoder::SearchRequest>)
        decoder_.submit(std::forward<decltype(input)>(input));
      else if constexpr (InputOf<std::iter_reference_t<Iterator>, typename Decoder::SearchRequest>)
        decoder_.submit({.source = std::forward<decltype(input)>(input)});
      ++next_;
      return true;
    } catch (...) {
      problem_ = std::current_exception();
      return false;
    }
  }
  std::exception_ptr const& problem() const { return problem_; }

 private:
  Decoder& decoder_;
  Iterator next_;
  Sentinel last_;
  std::exception_ptr problem_;
};

/// Steps until nothing is left and hands out every result. If a step throws and no sentence has failed, ends all.
template <class F>
void run_to_end(Loop& loop, F&& hand_out) {
  auto const collect = [&] {
    auto some = false;
    for (Result result; loop.poll(result); some = true, result = {}) hand_out(std::move(result));
    return some;
  };
  for (auto more = true; more;) {
    std::exception_ptr problem;
    try {
      more = loop.step();
    } catch (...) {
      problem = std::current_exception();
    }
    if (collect() || problem == nullptr) continue;  // the sentences of this step have failed, and their results say why
    loop.end_all(Failure::schedule, describe(problem), problem);
    collect();
  }
  if (loop.waiting() == 0) return;
  loop.end_all(Failure::schedule,
               "sluice: the schedule admits none of the " + std::to_string(loop.waiting()) +
                   " waiting sentences, although none is live",
               {});
  collect();
}

/// Holds back each result until all results before it have come.
class InOrder {
 public:
  template <class = void>
  void add(Result result) {
    auto const at = cast<std::size_t>(result.id - first_);
    if (results_.size() <= at) results_.resize(at + 1);
    results_[at] = std::move(result);
  }
  /// The next result in order, if it has come.
  template <class = void>
  std::optional<Result> take() {
    if (results_.empty() || !results_.front()) return std::nullopt;
    auto result = std::move(results_.front());
    results_.pop_front(), ++first_;
    return result;
  }

 private:
  std::deque<std::optional<Result>> results_;
  std::uint64_t first_ = 0;  // id of the first in results_
};

}  // namespace detail

/// Decodes every input and calls sink(Result&&) for each, in the calling thread. A contiguous range is read at once; any other
/// as the schedule wants to see more. Results are not kept after they are handed out. So a lazy range of ten million lines is
/// decoded in bounded memory. With ResultOrder::input, a sentence that takes long holds back the results after it.
///
/// \param model     see Model
/// \param inputs    a range of Source, or of Request<Source, S> if inputs have prompts, prefixes or options of their own
/// \param search    e.g. Greedy{}, BeamSearch{.width = 5}
/// \param sink      takes a Result; an exception of it ends the decoding and goes to the caller
/// \param schedule  e.g. Batched{.size = 64}; changes speed, never results
/// \param expander  turns the model's answers into candidates; a DenseProjection for models that return hidden vectors
/// \param intake    sorting windows, encoding ahead
/// \returns counts of the work done, and where the time went
/// \throws std::invalid_argument  for options that make no sense, before any work. The failure of a single input, an
///                  exception of the model included, is in its result. An exception of the range is thrown again when all
///                  inputs before it have been decoded and handed out
template <Model M, class Inputs, Search S, std::invocable<Result&&> Sink, Schedule P = Batched,
          detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK>
Statistics decode_each(M& model, Inputs&& inputs, S search, Sink&& sink, P schedule = {}, E expander = {},
                       Intake const& intake = {}, ResultOrder order = ResultOrder::input) {
  static_assert(detail::accept_input<decltype(*std::begin(inputs)), Request<typename M::Source, S>>());
  Decoder<M, S, P, E> decoder(model, std::move(search), std::move(schedule), std::move(expander), {}, intake);
  detail::InputSupply supply(decoder, std::begin(inputs), std::end(inputs));
  if constexpr (std::contiguous_iterator<decltype(std::begin(inputs))>) {
    while (supply.submit_next()) {
    }
  } else {
    decoder.loop().draw_from(&supply);
  }
  detail::InOrder waiting;
  detail::run_to_end(decoder.loop(), [&](Result&& result) {
    if (order == ResultOrder::ended) return static_cast<void>(sink(std::move(result)));
    waiting.add(std::move(result));
    while (auto next = waiting.take()) sink(std::move(*next));
  });
  if (supply.problem() != nullptr) std::rethrow_exception(supply.problem());
  return decoder.statistics();
}

/// Decodes every input and returns one result per input, in input order (Result::id counts from 0). See decode_each().
template <Model M, class Inputs, Search S, Schedule P = Batched,
          detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK>
std::vector<Result> decode(M& model, Inputs&& inputs, S search, P schedule = {}, E expander = {},
                           Intake const& intake = {}) {
  std::vector<Result> results;
  decode_each(
      model, std::forward<Inputs>(inputs), std::move(search),
      [&](Result&& result) { results.push_back(std::move(result)); }, std::move(schedule), std::move(expander), intake);
  return results;
}

}  // namespace sluice::inline v0
