// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random searches of random tables for a DeviceBeam, and what BeamSearch finds from the same lists.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/decoding.hpp>
#include <support/device_memory.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

/// A table in which some sentences produce a NaN.
class GoingBad : public TableModel<everything> {
 public:
  /// \param length  number of tokens in a slot from which on every third source produces it; 0: never
  GoingBad(Table const& table, TableOptions const& options, std::int32_t length)
      : TableModel(table, options), length_(length) {}

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    TableModel::start(sources, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) source(slots[i]) = *sources[i];
  }
  Scores<float> step(std::span<Row const> rows) {
    for (auto const& row : rows) {
      auto const from = source(row.from);
      source(row.to) = from;
    }
    auto scores = TableModel::step(rows);
    if (length_ == 0) return scores;
    memory_.assign(scores.data, scores.data + scores.rows * scores.columns);
    std::ptrdiff_t line = 0;
    for (auto const& row : rows) {
      line += row.lines;
      if (row.length >= length_ && source(row.to) % 3 == 0)
        memory_[static_cast<std::size_t>(line * scores.columns - 1)] = std::numeric_limits<float>::quiet_NaN();
    }
    scores.data = memory_.data();
    return scores;
  }

 private:
  Source& source(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1);
    return sources_[i];
  }
  std::int32_t length_;
  std::vector<Source> sources_;
  std::vector<float> memory_;
};

/// The same as a model on the device, for the host's search.
class GoingBadOnDevice : public GoingBad {
 public:
  using GoingBad::GoingBad;
  cuda::Scores<float> step(std::span<Row const> rows) {
    auto const host = GoingBad::step(rows);
    auto const size = static_cast<std::size_t>(host.rows * host.columns);
    memory_ = std::make_unique<OnDevice<float>>(std::vector<float>(host.data, host.data + size));
    return cuda::scores<float>(memory_->data(), host.rows, host.columns, nullptr, host.kind);
  }

 private:
  std::unique_ptr<OnDevice<float>> memory_;
};

/// Sentences to decode, and the options.
struct BeamCase {
  Table table{};
  TableOptions options{};
  BeamSearch search{};
  std::int32_t bad = 0;
  std::vector<TableRequest<BeamSearch>> requests{};

  std::vector<Result> on_host() const {
    GoingBadOnDevice model(table, options, bad);
    return decode(model, requests, search, Streaming{.size = 24}, cuda::LogSoftmaxTopK());
  }
};

/// A case with everything that matters to a beam: ties, ends that come early, late or never, sentences that are forced
/// to end, prefixes, lines with fewer tokens than requested, NaN.
inline BeamCase random_beam_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto const below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  auto const width = 1 + below(8);
  BeamCase one;
  one.table = random_table(random, 5 + below(16));
  one.table.levels = below(3) == 0 ? 0 : 1 + below(4);
  if (below(5) == 0) one.table.second_eos = 4;
  if (below(10) == 0) one.table.has_eos = false;
  if (below(3) == 0) one.options.kind = Kind::log_probs;
  if (below(4) == 0) one.options.impossible = false;
  if (below(3) == 0) one.bad = 4 + below(3);
  auto& search = one.search;
  switch (below(6)) {
    case 0: search = presets::fairseq(width); break;
    case 1: search = presets::ctranslate2(width); break;
    case 2: search = presets::ctranslate2(width, 0); break;
    default:
      search = presets::huggingface(width, below(3) == 0 ? -0.5 : 1 + 0.5 * below(3),
                                    std::array{EarlyStopping::Rule::heuristic, EarlyStopping::Rule::count,
                                               EarlyStopping::Rule::never_early}[static_cast<std::size_t>(below(3))]);
  }
  search.length.max = below(12);
  if (below(2) == 0) search.length.min = below(6);
  search.length.min = std::min(search.length.min, search.length.max);
  search.n_best = 1 + below(width);
  if (below(4) == 0) search.penalty = {.kind = LengthPenalty::Kind::gnmt, .alpha = 0.7};
  if (below(5) == 0) search.early_stopping = {.rule = search.early_stopping.rule, .patience = 0.5 + below(3)};
  if (below(6) == 0) search.early_stopping.rule = EarlyStopping::Rule::exact;
  if (below(6) == 0) search.surplus = !search.surplus;
  if (below(6) == 0) search.candidates = 2 * width + below(4);
  if (below(6) == 0) search.at_maximum = below(2) == 0 ? AtMaximum::best_unfinished : AtMaximum::drop;
  if (below(6) == 0) search.stage = Stage::before_softmax;
  for (auto count = 1 + below(7); count > 0; --count) {
    auto& request = one.requests.emplace_back();
    request.source = random();
    auto const most = std::max(search.length.max - 1, 0);
    for (auto n = below(3) == 0 ? std::min(below(3), most) : 0; n > 0; --n)
      request.prefix.push_back(3 + below(one.table.size - 3));
    std::erase_if(request.prefix, [&](Token token) { return one.table.ends(token); });
    if (request.source % 4 == 0 && !request.prefix.empty()) request.prefix[0] = pad;  // impossible for most tables
    if (below(4) == 0) request.prompt = {bos, 3};
  }
  return one;
}

}  // namespace sluice::test
