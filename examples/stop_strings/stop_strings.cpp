// SPDX-License-Identifier: Apache-2.0
// stop_strings: ends an output at a string, and streams its text while it grows, without ever showing a part of the stop.
#include <sluice/decode/server.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include "../bigrams.hpp"

#include <iostream>
#include <memory>

int main() {
  Bigrams model("User: how are you Assistant: fine thanks User: how are you Assistant: fine thanks User: bye .");
  std::vector<std::string> pieces;  // what the tokeniser puts into a text for each token
  for (auto const& word : model.words()) pieces.push_back(' ' + word);
  sluice::StopSequences const stop({.strings = {"\nHuman", " User:"}, .bytes = sluice::TokenBytes(pieces)});

  sluice::Server server(model, sluice::Greedy{.length = {.max = 20}}, sluice::Streaming{.size = 8, .refill_below = 1});

  auto const stream = std::make_shared<sluice::TextStream>(stop);  // one per request
  auto const delta = [=](std::uint64_t, auto tokens) { std::cout << '[' << stream->append(tokens) << "] "; };
  auto const done = [=](sluice::Result const& result) {
    auto const& best = result.hypotheses.front();
    std::cout << '[' << stream->end(best) << "]\nall: \"" << stop.text(best) << "\", ended by stop " << best.stop
              << '\n';
  };
  server.submit({.prompt = model.tokens("User: how are you Assistant:"), .processors = stop},
                {.done = done, .delta = delta});
  server.drain();  // waits until all are answered
  return 0;
}
