// SPDX-License-Identifier: Apache-2.0
/// \file
/// The test set through a decoder, by one of the searches.
#pragma once

#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <semantic_parser/accuracy.hpp>
#include <semantic_parser/data.hpp>
#include <semantic_parser/model.hpp>
#include <semantic_parser/options.hpp>
#include <semantic_parser/weights.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace semantic_parser {

/// What came out of the test set, and what it cost.
struct Outcome {
  Lists lists;
  sluice::Statistics statistics;
  double seconds = 0;
};

/// \throws std::runtime_error  naming the sentence that has failed
Outcome decode_greedy(Data const& data, std::shared_ptr<Weights const> const& weights, Options const& options);
Outcome decode_beam(Data const& data, std::shared_ptr<Weights const> const& weights, Options const& options);

/// Tokens that a search may generate. At the maximum length the authors' programs take one step more and drop what it
/// chose, and so do we; an output that ends takes that step for its <E>.
inline std::int32_t longest(Data const& data) { return data.length + 1; }

namespace detail {

/// The search's list as the authors write theirs. Variable beams also drop what has ended below an output that was cut.
inline std::vector<std::vector<Token>> n_best(sluice::Result const& result, SearchName search) {
  std::vector<std::vector<Token>> list;
  for (auto const& hypothesis : result.hypotheses) {
    list.emplace_back(hypothesis.tokens.begin(), hypothesis.tokens.end() - 1);
    if (search == SearchName::variable && !hypothesis.finished) break;
  }
  return list;
}

template <class Search, class Schedule>
Outcome decode(Data const& data, SemanticParser model, SearchName name, Search const& search,
               Schedule const& schedule) {
  sluice::Decoder decoder(model, search, schedule);
  auto const start = std::chrono::steady_clock::now();
  for (auto const& pair : data.test) decoder.submit({.source = pair.source});
  Outcome outcome;
  outcome.lists.resize(data.test.size());
  for (auto more = true; more;) {
    more = decoder.step();
    for (sluice::Result result; decoder.poll(result);) {
      if (!result.ok()) throw std::runtime_error("test[" + std::to_string(result.id) + "]: " + result.message);
      outcome.lists[static_cast<std::size_t>(result.id)] = n_best(result, name);
    }
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.statistics = decoder.statistics();
  return outcome;
}

}  // namespace detail

/// Decodes with the schedule of the options. When streaming, all sentences are in flight, and the schedule chooses which step.
template <class Search>
Outcome decode(Data const& data, SemanticParser model, Options const& options, Search const& search) {
  using sluice::Streaming;
  if (options.schedule == ScheduleName::batched)
    return detail::decode(data, std::move(model), options.search, search, sluice::Batched{options.size});
  auto const fifo = options.schedule == ScheduleName::fifo;
  return detail::decode(data, std::move(model), options.search, search,
                        Streaming{.size = data.test.size(),
                                  .order = fifo ? Streaming::Order::oldest_first : Streaming::Order::shortest_only,
                                  .max_rows = options.max_rows,
                                  .drain_after = 0});
}

}  // namespace semantic_parser
