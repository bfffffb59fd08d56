// SPDX-License-Identifier: Apache-2.0
/// \file
/// decode(): all sentences in, all results out.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/schedule/intake.hpp>

#include <concepts>
#include <ranges>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Decodes every input and returns one result per input, in input order (Result::id counts from 0).
///
/// \param model     see Model
/// \param inputs    a range of Source, or of Request<Source, S> where inputs bring prompts, prefixes, options of their own
/// \param search    e.g. Greedy{}, BeamSearch{.width = 5}
/// \param schedule  e.g. Batched{.size = 64}; changes speed, never results
/// \param expander  what makes candidates of the model's answers; a DenseProjection for models that give hidden vectors
/// \param intake    sorting windows, encoding ahead
/// \throws std::invalid_argument  for options that make no sense, before any work. What happens to single inputs, an
///                  exception from the model included, is in their results.
template <Model M, std::ranges::input_range Inputs, Search S, Schedule P = Batched,
          Expander<Answer<M>> E = LogSoftmaxTopK>
std::vector<Result> decode(M& model, Inputs&& inputs, S search, P schedule = {}, E expander = {},
                           Intake const& intake = {}) {
  Decoder<M, S, P, E> decoder(model, std::move(search), std::move(schedule), std::move(expander), {}, intake);
  for (auto&& input : inputs) {
    if constexpr (std::same_as<std::ranges::range_value_t<Inputs>, Request<typename M::Source, S>>)
      decoder.submit(std::forward<decltype(input)>(input));
    else decoder.submit({.source = std::forward<decltype(input)>(input)});
  }
  std::vector<Result> results;
  auto const collect = [&] {
    auto some = false;
    for (Result result; decoder.poll(result); some = true, result = {}) {
      auto const at = static_cast<std::size_t>(result.id);
      if (results.size() <= at) results.resize(at + 1);
      results[at] = std::move(result);
    }
    return some;
  };
  for (auto more = true; more; collect()) {
    try {
      more = decoder.step();
    } catch (...) {
      if (!collect()) throw;  // else the sentences of this step have failed, and their results say why: go on
    }
  }
  return results;
}

}  // namespace sluice::inline v0
