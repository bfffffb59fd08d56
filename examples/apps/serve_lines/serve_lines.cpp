// SPDX-License-Identifier: Apache-2.0
// serve_lines: translates lines as they arrive, and prints the time each took. An example of serving with sluice.

#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/search/beam_search.hpp>

#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <translate/model.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = sluice::ServerClock;

struct Options {
  std::filesystem::path model = translate::default_model();
  std::int32_t width = 5;
  std::size_t size = 16;     // sentences in the batch
  std::size_t queue = 1000;  // maximum number of waiting lines; then reading waits too
  double deadline = 0;       // milliseconds; 0 = none
  bool partial = false;      // print the settled beginning while it grows
};

/// Prints one line at a time: its number in the input, milliseconds since it was read, text.
class Printer {
 public:
  explicit Printer(translate::Tokenizer const& tokenizer) : tokenizer_(tokenizer) {}

  void settled(std::size_t line, Clock::time_point begin, std::span<sluice::Token const> tokens) {
    print(line, begin, "... ", tokens);
  }
  void done(std::size_t line, Clock::time_point begin, sluice::Result const& result) {
    auto const late = result.failure == sluice::Failure::late;
    if (!result.ok() && !late) {
      std::lock_guard const lock(mutex_);
      std::fprintf(stderr, "serve_lines: line %zu: %s: %s\n", line, sluice::name(result.failure),
                   result.message.c_str());
      ++failed_;
      return;
    }
    std::span<sluice::Token const> tokens;
    if (!result.hypotheses.empty()) tokens = result.hypotheses.front().tokens;
    print(line, begin, late ? "late " : "", tokens);
  }
  std::size_t failed() const { return failed_; }

 private:
  void print(std::size_t line, Clock::time_point begin, char const* mark, std::span<sluice::Token const> tokens) {
    if (!tokens.empty() && tokens.back() == tokenizer_.eos()) tokens = tokens.first(tokens.size() - 1);
    auto const text = tokenizer_.decode(tokens);
    auto const took = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    std::lock_guard const lock(mutex_);
    std::printf("%zu\t%.1f ms\t%s%s\n", line, took, mark, text.c_str());
    std::fflush(stdout);
  }

  translate::Tokenizer const& tokenizer_;
  std::mutex mutex_;
  std::size_t failed_ = 0;
};

int serve(Options const& options) {
  translate::Models models({options.model});
  auto const& tokenizer = models.tokenizer();
  auto model = models.make();
  Printer printer(tokenizer);
  {
    sluice::Server server(model, sluice::BeamSearch{.width = options.width, .length = {.min = 1, .max = 256}},
                          sluice::Streaming{.size = options.size, .refill_below = 1}, {.queue = options.queue},
                          models.output());
    text::LineReader lines(std::cin);
    for (std::string text; lines.next(text);) {
      auto const number = lines.number();
      auto const begin = Clock::now();
      auto source = text::valid_utf8(text) ? tokenizer.encode(text) : std::vector<sluice::Token>{};
      if (source.empty()) {
        sluice::Result nothing;
        if (!text::valid_utf8(text)) nothing.fail(sluice::Failure::bad_request, "not valid UTF-8");
        printer.done(number, begin, nothing);
        continue;
      }
      sluice::Delivery delivery{
          .done = [&printer, number, begin](sluice::Result const& result) { printer.done(number, begin, result); }};
      if (options.partial)
        delivery.delta = [&printer, number, begin, all = std::vector<sluice::Token>()](
                             std::uint64_t, std::span<sluice::Token const> tokens) mutable {
          all.insert(all.end(), tokens.begin(), tokens.end());
          printer.settled(number, begin, all);
        };
      if (options.deadline > 0)
        delivery.deadline = begin + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double, std::milli>(options.deadline));
      server.submit({.source = std::move(source)}, std::move(delivery));
    }
    server.close();
    server.drain();
  }
  text::finish_standard_output();
  return printer.failed() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app(
      "Translates lines from German to English as they arrive: prints number, milliseconds and translation.",
      "serve_lines");
  app.add_option("--model", options.model, "folder of model.safetensors and spm.model")->type_name("DIR");
  app.add_option("--width", options.width, "hypotheses in the beam (5)")->check(CLI::Range(1, 10000))->type_name("K");
  app.add_option("--size", options.size, "sentences decoded together (16)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app.add_option("--queue", options.queue, "lines that may wait (1000)")->check(CLI::Range(1, 1000000))->type_name("N");
  app.add_option("--deadline", options.deadline, "print the translation found so far after this time")
      ->check(CLI::PositiveNumber)
      ->type_name("MS");
  app.add_flag("--partial", options.partial, "print settled beginnings as soon as they are certain");
  try {
    return app.read(argc, argv) ? serve(options) : 0;
  } catch (text::InputError const& error) {
    std::fprintf(stderr, "serve_lines: %s\n", error.what());
    return 2;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "serve_lines: %s\n", error.what());
    return 1;
  }
}
