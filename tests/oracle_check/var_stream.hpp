// SPDX-License-Identifier: Apache-2.0
/// \file
/// var_stream.json: n-best lists, expansions and steps of VAR-BATCH and VAR-STREAM, by their authors' code.
#pragma once

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/presets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oracle_check {

/// Source s has the length that the case says.
struct WithLengths {
  using Source = std::uint64_t;
  static constexpr sluice::Abilities abilities{};

  decltype(auto) vocabulary() const { return model.vocabulary(); }
  std::int32_t source_length(std::uint64_t source) const {
    return lengths[static_cast<std::size_t>(std::ranges::find(seeds, source) - seeds.begin())];
  }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    model.start(sources, slots);
  }
  auto step(std::span<sluice::Row const> rows) { return model.step(rows); }
  void release(std::span<sluice::Slot const> slots) { model.release(slots); }

  decltype(oracle_check::model(Json{}))& model;
  std::vector<std::uint64_t> const& seeds;
  std::vector<std::int32_t> lengths;
};

/// Notes every step as the authors do: the tokens that the sentences hold, the rows; and every refill as (0, sentences).
struct Traced {
  using Trace = std::vector<std::pair<std::int32_t, std::int32_t>>;
  sluice::Streaming schedule;
  Trace* trace;

  void check() const { schedule.check(); }
  void adapt(sluice::Abilities const& abilities) { schedule.adapt(abilities); }
  std::size_t admit(std::span<sluice::Live const> live, std::span<std::int32_t const> waiting) const {
    auto const count = schedule.admit(live, waiting);
    if (count > 0) trace->emplace_back(0, static_cast<std::int32_t>(std::min(count, waiting.size())));
    return count;
  }
  void select(std::span<sluice::Live const> live, std::vector<std::int32_t>& chosen) const {
    schedule.select(live, chosen);
    auto const& first = live[static_cast<std::size_t>(chosen.at(0))];
    std::int32_t rows = 0;
    for (auto const i : chosen) rows += live[static_cast<std::size_t>(i)].width;
    trace->emplace_back(first.length, rows);
  }
};

/// All sentences in, all results out, in the order of the sentences.
template <class Decoder>
std::vector<sluice::Result> drain(Decoder& decoder, std::vector<std::uint64_t> const& seeds) {
  for (auto const seed : seeds) decoder.submit({.source = seed});
  std::vector<sluice::Result> results(seeds.size());
  sluice::Result result;
  while (decoder.step()) {
  }
  while (decoder.poll(result)) results.at(result.id) = std::move(result);
  // Empty outputs are left out: the reference scores them -1e8 and does not list them.
  for (auto& one : results) std::erase_if(one.hypotheses, [](auto const& h) { return h.tokens.size() == 1; });
  return results;
}

inline void var_stream(Json const& file, Report& report) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto search = sluice::presets::varstream(one.at("beam").get<std::int32_t>(), one.at("delta").get<double>(),
                                             one.at("M").get<std::int32_t>());
    search.n_best = search.width;
    search.length.max = one.at("max_len").get<std::int32_t>();
    auto const seeds = one.at("seeds").get<std::vector<std::uint64_t>>();
    std::vector<std::string> problems;
    auto const same = [&](char const* what, std::uint64_t found, std::uint64_t wanted) {
      if (found != wanted)
        problems.push_back(std::to_string(wanted) + " " + what + " expected, " + std::to_string(found) + " counted");
    };
    auto const expansions = one.at("expansions").get<std::uint64_t>();

    auto checked = model(one.at("model"));
    sluice::Decoder batch(checked, search, sluice::Batched{.size = seeds.size()});
    auto const results = drain(batch, seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      report.sentence(index, i, compare(results[i], expected(one.at("nbest").at(i))));
    same("expansions", batch.statistics().expansions, expansions);
    same("one_batch_steps", batch.statistics().steps, one.at("one_batch_steps").get<std::uint64_t>());

    auto const& told = one.at("stream");
    WithLengths lengths{checked, seeds, one.at("src_len").get<std::vector<std::int32_t>>()};
    Traced::Trace trace;
    Traced const traced{{.size = seeds.size(),
                         .refill_below = told.at("eps").get<double>(),
                         .order = sluice::Streaming::Order::shortest_only,
                         .drain_after = 0,
                         .refill = {.source_tokens = told.at("max_tokens").get<std::int64_t>()}},
                        &trace};
    sluice::Decoder stream(lengths, search, traced);
    auto const streamed = drain(stream, seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      if (!compare(streamed[i], expected(one.at("nbest").at(i))).empty())
        problems.push_back("streamed sentence " + std::to_string(i) + " has another n-best list");
    same("streamed expansions", stream.statistics().expansions, expansions);
    same("streamed steps", stream.statistics().steps, told.at("steps").get<std::uint64_t>());
    if (trace != told.at("trace").get<Traced::Trace>()) problems.emplace_back("another trace of the stream");

    if (!checked.report().empty()) problems.push_back(checked.report());
    report.whole(index++, problems);
  }
}

}  // namespace oracle_check
