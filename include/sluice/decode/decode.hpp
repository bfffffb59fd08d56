// SPDX-License-Identifier: Apache-2.0
/// \file
/// decode(), decode_each(): all sentences in, all results out.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_handle.hpp>
#include <sluice/decode/detail/misfits.hpp>
#include <sluice/decode/detail/run_to_end.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#ifndef SLUICE_COMPILED
#include <sluice/decode/detail/run_to_end_definition.hpp>
#endif

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// A range of inputs. Each is read when the queue asks for it.
template <class Decoder, class Iterator, class Sentinel>
class InputSupply final : public Supply {
 public:
  InputSupply(Decoder& decoder, Iterator first, Sentinel last, LogitsProcessorList const& processors)
      : decoder_(decoder), next_(std::move(first)), last_(std::move(last)), processors_(processors) {}

  /// If the range throws, it ends; see problem().
  bool submit_next() override {
    try {
      if (problem_ != nullptr || next_ == last_) return false;
      auto&& input = *next_;
      if constexpr (std::same_as<std::iter_value_t<Iterator>, typename Decoder::SearchRequest>) {
        typename Decoder::SearchRequest request(std::forward<decltype(input)>(input));
        if (!processors_.empty()) {
          auto all = processors_;
          all.append(request.processors), request.processors = std::move(all);
        }
        decoder_.submit(std::move(request));
      } else if constexpr (InputOf<std::iter_reference_t<Iterator>, typename Decoder::SearchRequest>) {
        decoder_.submit({.source = std::forward<decltype(input)>(input), .processors = processors_});
      }
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
  LogitsProcessorList const& processors_;
  std::exception_ptr problem_;
};

}  // namespace detail

/// Decodes every input and calls sink(Result&&) for each, in the calling thread. A contiguous range is read at once; any other
/// as the schedule wants to see more. Results are not kept after they are handed out. So a lazy range of ten million lines is
/// decoded in bounded memory. With ResultOrder::input, a sentence that takes long holds back the results after it.
///
/// \param model     see Model
/// \param inputs    a range of Source, or of Request<Source, S> if inputs have prompts, prefixes or options of their own
/// \param search    e.g. Greedy{}, BeamSearch{.width = 5}
/// \param processors  logits processors of all inputs, which come before a request's own
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
SLUICE_ABI_TAG Statistics decode_each(M& model, Inputs&& inputs, S search, LogitsProcessorList const& processors,
                                      Sink&& sink, P schedule = {}, E expander = {}, Intake const& intake = {},
                                      ResultOrder order = ResultOrder::input) {
  static_assert(detail::accept_input<decltype(*std::begin(inputs)), Request<typename M::Source, S>>());
  Decoder<M, S, P, E> decoder(model, std::move(search), std::move(schedule), std::move(expander), {}, intake);
  processors.check();
  detail::InputSupply supply(decoder, std::begin(inputs), std::end(inputs), processors);
  if constexpr (std::contiguous_iterator<decltype(std::begin(inputs))>) {
    while (supply.submit_next()) {
    }
  } else {
    decoder.loop().draw_from(&supply);
  }
  detail::run_to_end(decoder.loop(), order, std::ref(sink));
  if (supply.problem() != nullptr) std::rethrow_exception(supply.problem());
  return decoder.statistics();
}

/// The same without processors.
template <Model M, class Inputs, Search S, std::invocable<Result&&> Sink, Schedule P = Batched,
          detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK>
SLUICE_ABI_TAG Statistics decode_each(M& model, Inputs&& inputs, S search, Sink&& sink, P schedule = {},
                                      E expander = {}, Intake const& intake = {},
                                      ResultOrder order = ResultOrder::input) {
  return decode_each(model, std::forward<Inputs>(inputs), std::move(search), LogitsProcessorList(),
                     std::forward<Sink>(sink), std::move(schedule), std::move(expander), intake, order);
}

/// Decodes every input and returns one result per input, in input order (Result::id counts from 0). See decode_each(). The order of the
/// arguments is that of Decoder, with the inputs after the model and without a trace. A result that failed may have no hypotheses:
/// look at Result::ok() first.
template <Model M, class Inputs, Search S, Schedule P = Batched,
          detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK>
SLUICE_ABI_TAG std::vector<Result> decode(M& model, Inputs&& inputs, S search, LogitsProcessorList const& processors,
                                          P schedule = {}, E expander = {}, Intake const& intake = {}) {
  std::vector<Result> results;
  decode_each(
      model, std::forward<Inputs>(inputs), std::move(search), processors,
      [&](Result&& result) { results.push_back(std::move(result)); }, std::move(schedule), std::move(expander), intake);
  return results;
}

/// The same without processors.
template <Model M, class Inputs, Search S, Schedule P = Batched,
          detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK>
SLUICE_ABI_TAG std::vector<Result> decode(M& model, Inputs&& inputs, S search, P schedule = {}, E expander = {},
                                          Intake const& intake = {}) {
  return decode(model, std::forward<Inputs>(inputs), std::move(search), LogitsProcessorList(), std::move(schedule),
                std::move(expander), intake);
}

/// The compile error for a class that is no Model, which says what it lacks. Only beside a search: a user's own decode() may take
/// anything else of this namespace.
template <class M, class Inputs, Search S, class... More>
  requires(!Model<M>)
std::vector<Result> decode(M& /*model*/, Inputs&& /*inputs*/, S /*search*/, More&&... /*more*/) {
  static_assert(detail::refuse_model<M>());
  return {};
}
template <class M, class Inputs, Search S, class... More>
  requires(!Model<M>)
Statistics decode_each(M& /*model*/, Inputs&& /*inputs*/, S /*search*/, More&&... /*more*/) {
  static_assert(detail::refuse_model<M>());
  return {};
}

}  // namespace sluice::inline v0
