// SPDX-License-Identifier: Apache-2.0
/// \file
/// All prompts through one search.
#pragma once

#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include <text/bias.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <llama/engine.hpp>
#include <llama/options.hpp>
#include <llama/output.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace generate {

/// Prefix caching and chunked prefill.
inline sluice::Intake intake(Options const& options, Engine& engine) {
  sluice::Intake result{.prompt_chunk = options.chunk};
  if (options.share >= 0) result.shared_tokens = options.share;
  else if (!options.system.empty() && engine.model().abilities().roll_back) result.shared_tokens = options.context / 2;
  return result;
}

inline void tell(sluice::Statistics const& s, double seconds) {
  std::fprintf(
      stderr,
      "%llu tokens in %.2f s (%.1f a second), %llu steps, %llu tokens fed, %llu not fed since they were shared, "
      "%llu outputs started again for want of room\n",
      static_cast<unsigned long long>(s.tokens), seconds, static_cast<double>(s.tokens) / seconds,
      static_cast<unsigned long long>(s.model_calls), static_cast<unsigned long long>(s.fed),
      static_cast<unsigned long long>(s.shared), static_cast<unsigned long long>(s.restarted));
}

/// A prompt as tokens, the system prompt before it.
inline std::vector<sluice::Token> tokens_of(Options const& options, Engine& engine, std::string const& prompt,
                                            std::size_t number) {
  auto const& tokenizer = engine.tokenizer();
  if (options.chat) {
    using Json = ChatTemplate::Json;
    auto messages = Json::array();
    if (!options.system.empty()) messages.push_back(Json{{"role", "system"}, {"content", options.system}});
    messages.push_back(Json{{"role", "user"}, {"content", prompt}});
    return tokenizer.tokens(engine.chat_template().write(std::move(messages), nullptr, Json::object()), true, true);
  }
  auto tokens = tokenizer.tokens(options.system + prompt, true, options.special);
  if (!options.special && tokens != tokenizer.tokens(options.system + prompt, true, true))
    std::fprintf(
        stderr,
        "llama_generate: prompt %zu has names of control tokens, which are plain text without --special (--chat "
        "applies the model's chat template)\n",
        number);
  return tokens;
}

/// Prints an output for every prompt. \returns the program's exit code
/// \param grammar   of the text that is printed, stops included
/// \param samplers  that look at the tokens generated so far
template <class Search>
int run(Options const& options, Engine& engine, sluice::Grammar const& grammar, Search search,
        sluice::LogitsProcessorList const& samplers = {}) {
  using Clock = std::chrono::steady_clock;
  auto const& tokenizer = engine.tokenizer();
  auto const bytes = tokenizer.token_bytes();
  sluice::StopSequences const stops({.strings = options.stops, .bytes = bytes});
  sluice::Structure structure;
  if (!grammar.trivial()) structure = {grammar, sluice::TokenTrie(bytes, engine.model().vocabulary())};
  auto const bias = text::make_bias(options.biased, options.bias_once, [&](std::string const& phrase) {
    return text::spellings_within(phrase, [&](std::string const& text) { return tokenizer.tokens(text, false); });
  });
  sluice::LogitsProcessorList processors(stops, structure, bias);
  processors.append(samplers);
  Output output(options, stops);
  auto const begin = Clock::now();
  sluice::Decoder decoder(engine.model(), std::move(search),
                          sluice::Streaming{.size = static_cast<std::size_t>(options.parallel), .refill_below = 1},
                          intake(options, engine));
  std::size_t number = 0;
  for (auto const& prompt : options.prompts) {
    ++number;
    decoder.submit(
        {.prompt = tokens_of(options, engine, prompt, number), .processors = processors, .seed = options.seed});
  }

  sluice::Result result;
  for (auto more = true; more;) {
    try {
      more = decoder.step();
    } catch (std::exception const&) {  // from the model: the results say which prompts failed
    }
    if (options.stream)
      decoder.settled([&](std::uint64_t id) { return output.shown(id); },
                      [&](std::uint64_t, std::span<sluice::Token const> tokens) { output.settle(tokens); });
    while (decoder.poll(result)) output.done(std::exchange(result, {}));
  }
  if (options.statistics) tell(decoder.statistics(), std::chrono::duration<double>(Clock::now() - begin).count());
  return output.failed() > 0 ? 1 : 0;
}

// One search each, in files of their own.
int run_greedy(Options const& options, Engine& engine, sluice::Grammar const& grammar);
int run_sample(Options const& options, Engine& engine, sluice::Grammar const& grammar);
int run_beam(Options const& options, Engine& engine, sluice::Grammar const& grammar);

}  // namespace generate
