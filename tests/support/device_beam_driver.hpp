// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a DeviceBeam over a case, on a device or on the runtime in the host's memory.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_beam_cases.hpp>
#include <support/device_memory.hpp>
#include <support/slot_checker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// Copies numbers from the device, once the default stream has come this far.
template <class T>
std::vector<T> read_back(T const* from, std::int32_t count) {
  std::vector<T> to(static_cast<std::size_t>(count));
  cuda::check(cudaMemcpy(to.data(), from, to.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return to;
}

/// A table as a model whose rows and scores are on the device: it computes all rows, and NaN for unused ones. It
/// refuses rows that break the contract of slots.
class BeamTable {
 public:
  explicit BeamTable(BeamCase const& one) : model_(GoingBad(one.table, one.options, one.bad), everything) {}

  Vocabulary vocabulary() const { return model_.vocabulary(); }
  std::string report() const { return model_.report(); }

  /// Starts a sentence and feeds its first tokens.
  void start(Slot slot, std::uint64_t const& source, std::span<Token const> tokens) {
    auto const* const sources = &source;
    model_.start({&sources, 1}, {&slot, 1});
    holds(slot) = 1;
    Row const row{slot, slot, 0, tokens};
    if (!tokens.empty()) model_.step({&row, 1});
  }
  void release(Slot slot) {
    if (holds(slot) != 0) model_.release({&slot, 1});
    holds(slot) = 0;
  }

  cuda::Scores<float> step(cuda::BeamRows const& all) {
    auto const tokens = read_back(all.tokens, all.count);
    auto const moves = read_back(all.moves, all.count);
    std::vector<Row> rows;
    for (std::size_t row = 0; row < moves.size(); ++row) {
      auto const slot = static_cast<Slot>(row);
      if (!model_.vocabulary().contains(tokens[row])) throw std::logic_error("a row feeds what is no token");
      if (moves[row].count == 0) release(slot);
      else rows.push_back({moves[row].from, slot, moves[row].length, {&tokens[row], 1}});
    }
    auto const lines = model_.step(rows);
    auto const size = static_cast<std::size_t>(lines.columns);
    host_.assign(moves.size() * size, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      holds(rows[i].to) = 1;
      std::copy_n(lines.data + i * size, size, host_.data() + static_cast<std::size_t>(rows[i].to) * size);
    }
    if (scores_ == nullptr) scores_ = std::make_unique<OnDevice<float>>(host_.size());
    scores_->set(host_);
    return cuda::scores<float>(scores_->data(), all.count, lines.columns, nullptr, lines.kind);
  }

 private:
  std::uint8_t& holds(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= holds_.size()) holds_.resize(i + 1);
    return holds_[i];
  }
  CheckedModel<GoingBad> model_;
  std::vector<std::uint8_t> holds_;
  std::vector<float> host_;
  std::unique_ptr<OnDevice<float>> scores_;
};

/// Runs a DeviceBeam over a case, as an engine does.
class BeamDriver {
 public:
  /// \param places    number of sentences at once
  /// \param expected  the host's results; only the prefixes' log-probabilities are used
  BeamDriver(BeamCase const& one, std::int32_t places, std::vector<Result> const& expected,
             cuda::StepOptions const& step = {.early_starts = true})
      : case_(one),
        expected_(expected),
        model_(one),
        vocabulary_(model_.vocabulary()),
        beam_(one.search, vocabulary_, {.sentences = places, .kind = one.options.kind, .step = step}),
        who_(static_cast<std::size_t>(places), nobody) {}

  /// \param step  step(beam, expander, scores): adds a step
  /// \throws std::logic_error  if a step has gone wrong in a way that no result shows
  template <class Step>
  std::vector<Result> run(Step const& step) {
    results_.resize(case_.requests.size());
    for (; settle(); ++steps) {
      if (steps > 1000) throw std::logic_error("there is no end to it");
      step(beam_, expander_, model_.step(beam_.rows()));
    }
    if (model_.report() != "") throw std::logic_error(model_.report());
    return std::move(results_);
  }
  std::vector<Result> run() {
    return run([](cuda::DeviceBeam& beam, cuda::LogSoftmaxTopK& expander, cuda::Scores<float> const& scores) {
      beam.enqueue_step(expander, scores);
    });
  }

  std::size_t steps = 0;

 private:
  static constexpr auto nobody = std::numeric_limits<std::size_t>::max();

  /// Collects sentences that have ended and starts others where there is room; returns whether any are left.
  bool settle() {
    for (auto again = true; again;) {
      again = false;
      auto const running = beam_.running(nullptr);
      if (beam_.remaining(nullptr) != static_cast<std::int32_t>(running.size()))
        throw std::logic_error("remaining() does not count those that are running");
      for (std::int32_t number = 0; number < std::ssize(who_); ++number) {
        auto& who = who_[static_cast<std::size_t>(number)];
        if (std::ranges::find(running, number) != running.end()) continue;
        if (who != nobody) collect(number, std::exchange(who, nobody));
        if (next_ == case_.requests.size()) continue;
        begin(number, who = next_++);
        again = true;
      }
    }
    return std::ranges::any_of(who_, [](auto who) { return who != nobody; });
  }

  void begin(std::int32_t number, std::size_t who) {
    auto const& request = case_.requests[who];
    auto fed = request.prompt.empty() ? std::vector<Token>{vocabulary_.bos} : request.prompt;
    auto const prompt = fed;
    fed.insert(fed.end(), request.prefix.begin(), request.prefix.end());
    auto const held = fed.size() - 1;
    auto log_prob = 0.0;
    if (!expected_[who].hypotheses.empty())
      for (std::size_t i = 0; i < request.prefix.size(); ++i)
        log_prob += static_cast<double>(expected_[who].hypotheses[0].log_probs[i]);
    beam_.begin(number,
                {.vocabulary = &vocabulary_,
                 .prompt = prompt,
                 .prefix = request.prefix,
                 .last = fed.back(),
                 .held = static_cast<std::int32_t>(held),
                 .prefix_log_prob = &log_prob},
                nullptr);
    model_.start(number * case_.search.width, request.source, std::span(fed).first(held));
  }

  void collect(std::int32_t number, std::size_t who) {
    results_[who] = beam_.collect(number, nullptr);
    auto const width = case_.search.width;
    for (Slot slot = number * width; slot < (number + 1) * width; ++slot) model_.release(slot);
  }

  BeamCase const& case_;
  std::vector<Result> const& expected_;
  BeamTable model_;
  Vocabulary vocabulary_;
  cuda::DeviceBeam beam_;
  cuda::LogSoftmaxTopK expander_;
  std::vector<std::size_t> who_;
  std::size_t next_ = 0;
  std::vector<Result> results_;
};

/// All sentences of a case at once.
inline std::vector<Result> decode_at_once(BeamCase const& one) {
  BeamTable model(one);
  auto const& search = one.search;
  auto const vocabulary = model.vocabulary();
  auto const count = static_cast<std::int32_t>(one.requests.size());
  for (std::int32_t i = 0; i < count; ++i)
    model.start(i * search.width, one.requests[static_cast<std::size_t>(i)].source, {});
  cudaStream_t const stream = nullptr;
  // [beam]
  cuda::DeviceBeam beam(search, vocabulary, {.sentences = count});
  cuda::LogSoftmaxTopK lists;
  Token const start = vocabulary.bos;
  std::vector<Sentence> const sentences(static_cast<std::size_t>(count),
                                        {.vocabulary = &vocabulary, .prompt = {&start, 1}, .last = start});
  beam.begin(0, sentences, stream);
  // [/beam]
  // [steps]
  while (beam.remaining(stream) > 0) {                           // a copy of 4 bytes; every few steps will do
    cuda::Scores<float> const scores = model.step(beam.rows());  // tokens and moves that lie on the device
    beam.enqueue_step(lists, scores);                            // three launches
  }
  auto const results = beam.collect(0, count, stream);
  // [/steps]
  for (Slot slot = 0; slot < count * search.width; ++slot) model.release(slot);
  if (model.report() != "") throw std::logic_error(model.report());
  return results;
}

/// Whether a DeviceBeam has found what the host's search found, except for the prefix.
inline bool same_beam(Result const& found, Result expected, std::size_t prefix) {
  for (auto& h : expected.hypotheses) {
    h.tokens.erase(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(prefix));
    h.log_probs.erase(h.log_probs.begin(), h.log_probs.begin() + static_cast<std::ptrdiff_t>(prefix));
  }
  return same_outputs(found, expected);
}

/// Compares results with the expected ones, sentence by sentence.
inline void check_beams(BeamCase const& one, std::vector<Result> const& found, std::vector<Result> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("sentence " << i << " of " << found.size());
    CHECK(same_beam(found[i], expected[i], one.requests[i].prefix.size()));
  }
}

}  // namespace sluice::test
