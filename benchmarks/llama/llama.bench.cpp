// SPDX-License-Identifier: Apache-2.0
// The overhead of sluice's loop over llama.cpp: greedy decoding by a Decoder and by a hand-written loop, in alternating
// steps, each in its own context over the same weights. CPU time of the thread, so that a busy machine does not matter;
// also the cost of the second of two prompts with a common prefix. One thread.
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/search/greedy.hpp>

#include <support/llama_models.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using sluice::Token;
using namespace sluice::test;
using sluice::bench::cpu_seconds;

constexpr std::int32_t prompt_length = 16;

/// About 100 million parameters, or so few that a step is mostly bookkeeping.
llama_model* model(bool large) {
  static std::map<bool, LlamaModel> models;
  auto& made = models[large];
  if (made == nullptr)
    made = draw_llama(large ? LlamaShape{.layers = 12, .width = 768, .heads = 12, .hidden = 2048, .words = 16000}
                            : LlamaShape{.words = 200});
  return made.get();
}

std::vector<Token> prompt(std::int32_t sequence) {
  std::vector<Token> tokens{1};
  while (std::ssize(tokens) < prompt_length)
    tokens.push_back(6 + (sequence * 31 + static_cast<std::int32_t>(tokens.size()) * 7) % 50);
  return tokens;
}

/// As in llama.cpp's own programs: one batch per step, the best token of each line.
class ByHand {
 public:
  ByHand(llama_context* context, std::int32_t sequences)
      : context_(context),
        vocabulary_(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)))),
        batch_(llama_batch_init(sequences * prompt_length, 0, 1)),
        sequences_(sequences) {
    batch_.n_tokens = 0;
    for (std::int32_t s = 0; s < sequences; ++s) {
      auto const tokens = prompt(s);
      for (std::int32_t i = 0; i < prompt_length; ++i)
        add(tokens[static_cast<std::size_t>(i)], i, s, i + 1 == prompt_length);
    }
    position_ = prompt_length;
  }
  ~ByHand() { llama_batch_free(batch_); }
  ByHand(ByHand const&) = delete;
  ByHand& operator=(ByHand const&) = delete;

  void step() {
    if (llama_decode(context_, batch_) != 0) throw std::runtime_error("llama_decode failed");
    next_.clear();
    for (std::int32_t i = 0; i < batch_.n_tokens; ++i)
      if (batch_.logits[i] != 0) {
        auto const* const line = llama_get_logits_ith(context_, i);
        next_.push_back(static_cast<Token>(std::max_element(line, line + vocabulary_) - line));
      }
    batch_.n_tokens = 0;
    for (std::int32_t s = 0; s < sequences_; ++s) add(next_[static_cast<std::size_t>(s)], position_, s, true);
    ++position_;
    outputs_.insert(outputs_.end(), next_.begin(), next_.end());
  }
  /// [step, sequence]
  std::vector<Token> const& outputs() const { return outputs_; }

 private:
  void add(Token token, std::int32_t position, std::int32_t sequence, bool wanted) {
    auto const i = batch_.n_tokens++;
    batch_.token[i] = token, batch_.pos[i] = position, batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence, batch_.logits[i] = wanted;
  }

  llama_context* context_;
  std::int32_t vocabulary_;
  llama_batch batch_;
  std::int32_t sequences_, position_ = 0;
  std::vector<Token> next_, outputs_;
};

double median(std::vector<double> times) {
  auto const middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Without an end, so that both run equally long.
class Endless : public sluice::Llama {
 public:
  explicit Endless(llama_context* context) : Llama(context), vocabulary_(Llama::vocabulary()) {
    vocabulary_.eos.clear(), vocabulary_.never.clear();
  }
  sluice::Vocabulary const& vocabulary() const { return vocabulary_; }

 private:
  sluice::Vocabulary vocabulary_;
};

void loops(benchmark::State& state, bool large, std::int32_t sequences, std::uint32_t cells) {
  auto const steps = large ? 48 : 200;
  std::vector<double> ours, theirs;
  for ([[maybe_unused]] auto const& _ : state) {
    auto const params = exact_params(static_cast<std::uint32_t>(sequences), cells);
    auto const context = make_context(model(large), params), other = make_context(model(large), params);
    Endless adapter(context.get());
    sluice::Decoder decoder(adapter, sluice::Greedy{.length = {.max = steps}},
                            sluice::Batched{.size = static_cast<std::size_t>(sequences)});
    for (std::int32_t s = 0; s < sequences; ++s) decoder.submit({.prompt = prompt(s)});
    ByHand hand(other.get(), sequences);
    double total = 0;
    for (int i = 0; i < steps; ++i) {
      auto const begin = cpu_seconds();
      decoder.step();
      auto const middle = cpu_seconds();
      hand.step();
      auto const end = cpu_seconds();
      total += middle - begin;
      if (i >= 4) ours.push_back(middle - begin), theirs.push_back(end - middle);  // warm, and after the prompts
    }
    state.SetIterationTime(total);

    sluice::Result result;
    while (decoder.poll(result))
      for (std::size_t i = 0; i < result.hypotheses.at(0).tokens.size(); ++i)
        if (result.hypotheses[0].tokens[i] != hand.outputs()[i * static_cast<std::size_t>(sequences) + result.id])
          return state.SkipWithError("the two loops decode different tokens");
  }
  std::vector<double> parts;
  for (std::size_t i = 0; i < ours.size(); ++i) parts.push_back(ours[i] / theirs[i]);
  state.counters["us"] = median(ours) * 1e6;
  state.counters["us by hand"] = median(theirs) * 1e6;
  state.counters["ratio"] = median(parts);
}

/// Requests one after another with prompts that share 1,000 of 1,050 tokens: seconds to two tokens, for all but the
/// first.
void shared_prompts(benchmark::State& state, bool large) {
  std::vector<double> without, with;
  for ([[maybe_unused]] auto const& _ : state) {
    std::vector<std::vector<Token>> expected;
    double total = 0;
    for (bool const sharing : {false, true}) {
      auto const context = make_context(model(large), exact_params(4, 4096));
      Endless adapter(context.get());
      sluice::Decoder decoder(adapter, sluice::Greedy{.length = {.max = 2}}, sluice::Batched{},
                              sluice::Intake{.shared_tokens = sharing ? 4000 : 0});
      for (std::int32_t i = 0; i < 4; ++i) {
        std::vector<Token> asked(1000);
        for (std::size_t t = 0; t < asked.size(); ++t) asked[t] = 6 + static_cast<Token>(t * 7 % 50);
        asked.front() = 1;
        for (std::int32_t t = 0; t < 50; ++t) asked.push_back(6 + (t * 3 + i) % 50);
        auto const begin = cpu_seconds();
        decoder.submit({.prompt = asked});
        while (decoder.step()) {
        }
        auto const time = cpu_seconds() - begin;
        total += time;
        if (i > 0) (sharing ? with : without).push_back(time);
        sluice::Result result;
        if (!decoder.poll(result) || !result.ok()) return state.SkipWithError("a request failed");
        auto& tokens = result.hypotheses.at(0).tokens;
        if (!sharing) expected.push_back(tokens);
        else if (tokens != expected[static_cast<std::size_t>(i)])
          return state.SkipWithError("with a shared prompt other tokens are decoded");
      }
    }
    state.SetIterationTime(total);
  }
  state.counters["ms"] = median(with) * 1e3;
  state.counters["ms fed whole"] = median(without) * 1e3;
  state.counters["ratio"] = median(with) / median(without);
}

}  // namespace

int main(int argc, char** argv) {
  for (bool const large : {false, true})
    for (std::int32_t const sequences : {1, 16})
      for (std::uint32_t const cells : {4096u, 65536u})
        benchmark::RegisterBenchmark((std::string(large ? "100M" : "tiny") + "/sequences:" + std::to_string(sequences) +
                                      "/cells:" + std::to_string(cells))
                                         .c_str(),
                                     loops, large, sequences, cells)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
  for (bool const large : {false, true})
    benchmark::RegisterBenchmark(large ? "100M/shared_prompts" : "tiny/shared_prompts", shared_prompts, large)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
