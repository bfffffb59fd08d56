// SPDX-License-Identifier: Apache-2.0
// What sluice::BeamSearch makes of the beams of cuda_beams.c.
#if defined(SLUICE_EMULATED_DEVICE)
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <support/emulated_launches.hpp>
#endif

#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/presets.hpp>

#include "cuda_cases.h"
#include <support/device_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

using namespace sluice;

namespace {

/// The model of cuda_engine.c, whose scores are on the device.
class Hashed {
 public:
  using Source = std::uint64_t;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  explicit Hashed(beam_case const& one) : options_(one.options) {
    vocabulary_.size = options_.vocabulary;
    vocabulary_.eos.assign(options_.eos, options_.eos + options_.eos_count);
    vocabulary_.never.assign(options_.never, options_.never + options_.never_count);
  }
  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return options_.slot_length > 0 ? Limits{.length = options_.slot_length} : Limits{}; }
  std::int32_t source_length(Source const& source) const { return beam_source_length(source); }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) slots_[slots[i]] = {*sources[i]};
  }
  cuda::Scores<float> step(std::span<Row const> rows) {
    auto const before = slots_;
    std::vector<float> scores;
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto& states = slots_[row.to] = before.at(row.from);  // [i]: behind i tokens
      states.resize(static_cast<std::size_t>(row.length) + 1);
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        states.push_back(beam_next(states.back(), row.tokens[i]));
        if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
        for (Token v = 0; v < vocabulary_.size; ++v) scores.push_back(beam_score(states.back(), v));
        ++lines;
      }
    }
    memory_ = std::make_unique<test::OnDevice<float>>(scores);
    return cuda::scores<float>(memory_->data(), lines, vocabulary_.size, nullptr,
                               options_.log_probs != 0 ? Kind::log_probs : Kind::logits);
  }

 private:
  sluice_cuda_beam_options options_;
  Vocabulary vocabulary_;
  std::map<Slot, std::vector<std::uint64_t>> slots_;
  std::unique_ptr<test::OnDevice<float>> memory_;
};

/// The preset, and what the case changes of it.
BeamSearch search_of(beam_case const& one) {
  auto const& options = one.options;
  auto search = one.preset == SLUICE_CUDA_FAIRSEQ       ? presets::fairseq(options.width)
                : one.preset == SLUICE_CUDA_CTRANSLATE2 ? presets::ctranslate2(options.width, one.length_penalty)
                                                        : presets::huggingface(options.width, one.length_penalty);
  if (one.preset == SLUICE_CUDA_FAIRSEQ) search.penalty.alpha = one.length_penalty;
  search.n_best = options.n_best, search.candidates = options.candidates;
  search.length = {options.min_length, options.max_length, options.min_factor, options.max_factor, options.extra};
  if (options.penalty == SLUICE_CUDA_PENALTY_GNMT) search.penalty.kind = LengthPenalty::Kind::gnmt;
  search.penalty.beta = options.beta;
  switch (options.stop) {
    case SLUICE_CUDA_STOP_COUNT: search.early_stopping.rule = EarlyStopping::Rule::count; break;
    case SLUICE_CUDA_STOP_EXACT: search.early_stopping.rule = EarlyStopping::Rule::exact; break;
    case SLUICE_CUDA_STOP_NEVER_EARLY: search.early_stopping.rule = EarlyStopping::Rule::never_early; break;
    default: break;  // the preset's
  }
  search.early_stopping.finished = options.stop_finished, search.early_stopping.patience = options.patience;
  if (options.at_maximum == SLUICE_CUDA_BEST_UNFINISHED) search.at_maximum = AtMaximum::best_unfinished;
  if (options.at_maximum == SLUICE_CUDA_DROP) search.at_maximum = AtMaximum::drop;
  search.surplus = options.surplus != 0;
  search.stage = options.stage != 0 ? Stage::after_softmax : Stage::before_softmax;
  return search;
}

std::vector<Result> expected;
beam_yield yields;

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

void beam_expect(beam_case* one) {
  Hashed model(*one);
  std::vector<Request<std::uint64_t, BeamSearch>> requests;
  for (auto const& request : std::span(one->requests, static_cast<std::size_t>(one->request_count)))
    requests.push_back({.source = request.source,
                        .prompt = {request.prompt, request.prompt + request.prompt_count},
                        .prefix = {request.prefix, request.prefix + request.prefix_count}});
  auto const search = search_of(*one);
  expected = decode(model, requests, search, Streaming{.size = 24}, cuda::LogSoftmaxTopK());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto& request = one->requests[i];
    auto const& found = expected[i].hypotheses;
    request.prefix_log_prob = search.prefix_scored ? 0 : -3;  // which does not count then
    for (std::size_t n = 0; !found.empty() && n < static_cast<std::size_t>(request.prefix_count); ++n)
      request.prefix_log_prob += static_cast<double>(found[0].log_probs[n]);
    yields.hypotheses += static_cast<int>(found.size()), yields.failed += expected[i].ok() ? 0 : 1;
    yields.prefixed += request.prefix_count > 0 ? 1 : 0;
    for (auto const& h : found) yields.unfinished += h.finished ? 0 : 1;
  }
}

beam_yield beam_yields(void) { return yields; }

int beam_differs(beam_case const* one, int32_t request, sluice_cuda_result const* result) {
  auto const& want = expected[static_cast<std::size_t>(request)];
  auto const prefix = static_cast<std::size_t>(one->requests[request].prefix_count);
  if (std::string_view(result->failure) != name(want.failure) || result->message != want.message) return 1;
  if (result->count != want.hypotheses.size()) return 1;
  for (std::size_t i = 0; i < result->count; ++i) {
    auto const& h = result->hypotheses[i];
    auto const& w = want.hypotheses[i];
    if (h.count + prefix != w.tokens.size() || h.finished != (w.finished ? 1 : 0)) return 1;
    if (!same_bits(h.log_prob, w.log_prob) || !same_bits(h.score, w.score)) return 1;
    if (h.count == 0) continue;
    if (std::memcmp(h.tokens, w.tokens.data() + prefix, h.count * sizeof(Token)) != 0) return 1;
    if (std::memcmp(h.log_probs, w.log_probs.data() + prefix, h.count * sizeof(float)) != 0) return 1;
  }
  return 0;
}
