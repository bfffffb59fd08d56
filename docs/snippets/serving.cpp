// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/serving.md.
#include <sluice/decode/server.hpp>
#include <sluice/decode/server_options.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include "typist.hpp"

#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

namespace {

// [encoding]
/// A Typist whose encoder can run in another thread.
class EncodingTypist : public Typist {
 public:
  struct Encoded {
    std::vector<std::string> words;  // does not refer to the sources
  };
  Encoded encode(std::span<std::string const* const> sources) const {
    Encoded encoded;
    for (auto const* const source : sources) encoded.words.push_back(*source);
    return encoded;
  }

  using Typist::start;
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      words_[slots[i]] = encoded.words[static_cast<std::size_t>(items[i])];
      auto const* const word = &words_[slots[i]];
      Typist::start({&word, 1}, slots.subspan(i, 1));
    }
  }

 private:
  std::map<sluice::Slot, std::string> words_;
};
// [/encoding]

void streaming() {
  // [streaming]
  Typist model;
  auto const keyboard = Typist::keyboard();
  std::vector<std::string> words;
  for (auto i = 0; i < 200; ++i) words.emplace_back(i % 20 == 0 ? "incomprehensibilities" : "short");

  auto const steps = [&](auto const& schedule) {
    sluice::Decoder decoder(model, sluice::Greedy{}, schedule, keyboard);
    for (auto const& word : words) decoder.submit({.source = word});
    while (decoder.step()) {
    }
    auto const& s = decoder.statistics();
    std::cout << s.steps << " steps, " << s.rows << " rows\n";
  };
  steps(sluice::Batched{.size = 20});
  steps(sluice::Streaming{.size = 20, .refill_below = 0.5});
  steps(sluice::Streaming{.size = 20, .refill_below = 1});
  // [/streaming]
}

void ahead() {
  auto const keyboard = EncodingTypist::keyboard();
  std::vector<std::string> const words{"one", "two", "three", "four", "five", "six", "seven"};
  // [ahead]
  EncodingTypist model;
  auto const results = sluice::decode(model, words, sluice::Greedy{}, sluice::Streaming{.size = 2, .refill_below = 1},
                                      keyboard, sluice::Intake{.window = 4, .encode_ahead = 4});
  for (auto const& result : results) std::cout << Typist::text(result.hypotheses.at(0).tokens) << ' ';
  std::cout << '\n';
  // [/ahead]
}

void futures() {
  // [futures]
  Typist model;
  sluice::Server server(model, sluice::BeamSearch{.width = 3}, sluice::Streaming{.size = 8, .refill_below = 1},
                        {.queue = 100}, Typist::keyboard());
  std::vector<std::jthread> writers;
  std::vector<std::future<sluice::Result>> answers(4);
  for (std::size_t i = 0; i < 4; ++i)
    writers.emplace_back([&, i] { answers[i] = server.submit({.source = "writer"}); });
  writers.clear();  // joins
  for (auto& answer : answers) std::cout << Typist::text(answer.get().hypotheses.at(0).tokens) << '\n';
  // [/futures]
}

void callbacks() {
  // [callbacks]
  using namespace std::chrono_literals;
  Typist model;
  sluice::Server server(model, sluice::Greedy{}, sluice::Streaming{.size = 8, .refill_below = 1}, {},
                        Typist::keyboard());
  auto const done = [](sluice::Result const& result) {
    std::cout << name(result.failure) << ": ";  // failed, or late before its first step: no hypotheses
    if (!result.hypotheses.empty()) std::cout << Typist::text(result.hypotheses.front().tokens);
    std::cout << '\n';
  };
  auto const delta = [](std::uint64_t, auto tokens) { std::cout << Typist::text(tokens) << '\n'; };
  server.submit({.source = "stream"}, {.done = done, .delta = delta, .deadline = sluice::ServerClock::now() + 60s});
  server.drain();  // waits until all are answered
  // [/callbacks]
}

/// A language model of 64 tokens whose slots share 4,000 cells. Its input is the prompt; its source is empty.
class Chat {
 public:
  struct Source {};
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  sluice::Vocabulary vocabulary() const { return {.size = 64, .bos = 0, .eos = {1}, .never = {0}}; }
  sluice::Limits limits() const { return {.slot_count = 64, .tokens = 4000}; }

  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    lines_.clear();
    for (auto const& row : rows)
      for (auto i = std::ssize(row.tokens) - row.lines; i < std::ssize(row.tokens); ++i) {
        auto const next = (row.tokens[static_cast<std::size_t>(i)] * 5 + row.length + i) % 62 + 2;
        for (auto token = 0; token < 64; ++token) lines_.push_back(token == next ? 1.0f : 0.0f);
      }
    return sluice::scores(lines_.data(), std::ssize(lines_) / 64, 64);
  }

 private:
  std::vector<float> lines_;
};

void prompts() {
  // [prompts]
  Chat model;  // limits(): 64 slots, 4,000 tokens in all of them together
  std::vector<sluice::Token> const instructions(1000, 7);
  std::vector<sluice::Request<Chat::Source, sluice::Greedy>> requests(50);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = instructions;
    for (std::size_t j = 0; j < 50; ++j) requests[i].prompt.push_back(static_cast<sluice::Token>(2 + (i * 7 + j) % 60));
  }
  auto const fed = [&](sluice::Intake const& intake) {
    std::size_t finished = 0;
    auto const statistics = sluice::decode_each(
        model, requests, sluice::Greedy{.length = {.max = 100}},
        [&](sluice::Result const& result) { finished += result.ok(); },
        sluice::Streaming{.size = 16, .refill_below = 1}, sluice::LogSoftmaxTopK{}, intake);
    std::cout << finished << " of 50; " << statistics.fed << " tokens fed, " << statistics.shared << " shared\n";
  };
  fed({});
  fed({.prompt_chunk = 128});
  fed({.prompt_chunk = 128, .shared_tokens = 2000});
  // [/prompts]
}

void text() {
  std::vector<std::string> letters(28);
  for (auto c = 'a'; c <= 'z'; ++c) letters[static_cast<std::size_t>(c - 'a' + 2)] = c;
  // [text]
  Typist model;
  sluice::StopSequences const stop({.strings = {"am"}, .bytes = sluice::TokenBytes(letters)});
  sluice::Server server(model, sluice::Greedy{}, sluice::Streaming{.size = 8, .refill_below = 1}, {},
                        Typist::keyboard());

  auto const stream = std::make_shared<sluice::TextStream>(stop);  // one per request
  auto const delta = [=](std::uint64_t, auto tokens) { std::cout << '[' << stream->append(tokens) << ']'; };
  auto const done = [=](sluice::Result const& result) {
    if (!result.hypotheses.empty()) std::cout << '[' << stream->end(result.hypotheses.front()) << "]\n";
  };
  server.submit({.source = "alabama", .processors = stop}, {.done = done, .delta = delta});
  server.drain();
  // [/text]
}

}  // namespace

/// Runs the snippet that is named, or all of them.
int main(int argc, char** argv) {
  std::string const only = argc > 1 ? argv[1] : "";
  auto const run = [&](char const* name, void (*snippet)()) {
    if (only.empty() || only == name) snippet();
  };
  run("streaming", streaming);
  run("ahead", ahead);
  run("futures", futures);
  run("callbacks", callbacks);
  run("prompts", prompts);
  run("text", text);
  return 0;
}
