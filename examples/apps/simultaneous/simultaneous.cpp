// SPDX-License-Identifier: Apache-2.0
// simultaneous: translates while its input is still coming, word by word, and never takes back what it wrote. With --report it
// measures how far that lags and what it costs.

#include <sluice/result/commitment.hpp>

#include <bleu/bleu.hpp>
#include <simultaneous/sentence.hpp>
#include <simultaneous/translator.hpp>
#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <translate/model.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace {

using simultaneous::most, simultaneous::Translator;

struct Options {
  std::filesystem::path model = translate::default_model(), input, reference, output;
  std::string policy = "local-agreement";
  std::int32_t n = 0, k = 3, beam = 1;
  std::size_t size = 64, first = 0;
  bool steps = false;
};

/// Reads words as they come, and writes what is certain as soon as it is.
template <class P>
int live(Options const& options, P const& policy, std::istream& input) {
  Translator translator(options.model, options.beam, options.size);
  auto failed = false;
  std::size_t number = 1;
  std::string word;
  simultaneous::Sentence sentence(translator.tokenizer(), policy, most);
  auto broken = false;  // the rest of its line is passed over
  auto const write = [&](bool whole) {
    std::string text;
    if (sentence.wants_output(whole))
      text = sentence.take(translator({{.source = sentence.source(), .prefix = sentence.prefix()}}).at(0), whole);
    if (options.steps) std::printf("%3zu |%s\n", sentence.words_read(), text.c_str());
    else std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  auto const read = [&] {
    if (!word.empty() && !broken) try {
        sentence.read(word);
      } catch (text::InputError const& error) {
        std::fprintf(stderr, "simultaneous: line %zu: %s\n", number, error.what());
        failed = broken = true;
      }
    word.clear();
  };
  for (int c = input.get(); c != EOF; c = input.get()) {
    if (c == ' ' || c == '\t' || c == '\r') {
      auto const more = !word.empty();
      read();
      if (more && !broken) write(false);
    } else if (c == '\n') {
      read();
      if (!broken) write(true);
      if (!options.steps) std::putchar('\n'), std::fflush(stdout);
      sentence = {translator.tokenizer(), policy, most};
      broken = false, ++number;
    } else {
      word.push_back(static_cast<char>(c));
    }
  }
  read();
  if (sentence.words_read() > 0 && !broken) {
    write(true);
    if (!options.steps) std::putchar('\n');
  }
  return failed ? 1 : 0;
}

/// Reads all sentences in parallel, one word of each at a time, and reports how far their translations lag.
template <class P>
int report(Options const& options, P const& policy) {
  Translator translator(options.model, options.beam, options.size);
  auto lines = text::read_lines(options.input);
  auto const references = text::read_lines(options.reference);
  if (references.size() != lines.size())
    throw text::InputError(options.reference.string() + ": has " + std::to_string(references.size()) + " lines for " +
                           std::to_string(lines.size()));
  if (options.first > 0 && options.first < lines.size()) lines.resize(options.first);
  std::ofstream output;
  if (!options.output.empty()) output.open(options.output, std::ios::binary);
  if (!output) throw text::InputError(options.output.string() + ": cannot be written");

  std::vector<std::vector<std::string>> words(lines.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::istringstream stream(lines[i]);
    for (std::string word; stream >> word;) words[i].push_back(word);
    longest = std::max(longest, words[i].size());
  }
  std::vector<simultaneous::Sentence<P>> sentences(lines.size(), {translator.tokenizer(), policy, most});
  std::size_t decoded = 0;
  auto const begin = std::chrono::steady_clock::now();
  for (std::size_t n = 0; n < longest; ++n) {
    std::vector<Translator::Request> requests;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (n >= words[i].size()) continue;
      sentences[i].read(words[i][n]);
      if (!sentences[i].wants_output(n + 1 == words[i].size())) continue;
      requests.push_back({.source = sentences[i].source(), .prefix = sentences[i].prefix()});
      who.push_back(i);
    }
    auto const outputs = translator(requests);
    for (std::size_t r = 0; r < who.size(); ++r) sentences[who[r]].take(outputs[r], n + 1 == words[who[r]].size());
    decoded += who.size();
  }
  auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  double al = 0, laal = 0, ap = 0, dal = 0;
  std::size_t measured = 0;
  std::vector<bleu::Counts> counts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    output << sentences[i].text() << '\n';
    counts.push_back(bleu::count(sentences[i].text(), references[i]));
    auto const& delays = sentences[i].delays();
    if (delays.empty()) continue;
    ++measured;
    auto const size = words[i].size();
    al += sluice::average_lagging(delays, size);
    laal += sluice::length_adaptive_average_lagging(delays, size, simultaneous::count_words(references[i]));
    ap += sluice::average_proportion(delays, size);
    dal += sluice::differentiable_average_lagging(delays, size);
  }
  if (!options.output.empty() && !output.flush())
    throw text::InputError(options.output.string() + ": cannot be written");
  auto const score = bleu::score(bleu::sum(counts));
  auto const mean = [&](double sum) { return measured == 0 ? 0 : sum / static_cast<double>(measured); };
  std::printf("%zu sentences, %zu of them empty; decoded %zu times in %.1f s\n", lines.size(), lines.size() - measured,
              decoded, seconds);
  std::printf("%8s%8s%8s%8s%8s%8s\n", "AL", "LAAL", "AP", "DAL", "BLEU", "length");
  std::printf("%8.2f%8.2f%8.3f%8.2f%8.2f%8.3f\n", mean(al), mean(laal), mean(ap), mean(dal), score.bleu, score.ratio);
  return 0;
}

template <class P>
int run(Options const& options, P const& policy) {
  if (!options.reference.empty()) return report(options, policy);
  if (options.input.empty()) return live(options, policy, std::cin);
  std::ifstream file(options.input, std::ios::binary);
  if (!file || std::filesystem::is_directory(options.input))
    throw text::InputError(options.input.string() + ": cannot be opened");
  return live(options, policy, file);
}

int run(Options const& options) {
  if (options.policy == "wait-k") return run(options, sluice::WaitK{.k = options.k});
  if (options.policy == "whole") return run(options, sluice::WaitK{.k = std::numeric_limits<std::int32_t>::max()});
  if (options.policy == "hold") return run(options, sluice::HoldBack{.n = options.n > 0 ? options.n : 4});
  return run(options, sluice::LocalAgreement{.n = options.n > 0 ? options.n : 2});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app("Translates lines from German to English while their words still arrive; written words stay.",
                        "simultaneous");
  app.add_option("INPUT", options.input, "sentences, one per line (standard input)");
  app.add_option("--policy", options.policy,
                 "what to write before the line has ended: local-agreement (the common beginning of the last N "
                 "outputs), hold (all but the last N tokens), wait-k (one word for each word after the first K), "
                 "whole (nothing)")
      ->check(CLI::IsMember({"local-agreement", "wait-k", "hold", "whole"}));
  auto* const outputs = app.add_option("--n", options.n, "outputs that must agree (2), or tokens held back (4)")
                            ->check(CLI::Range(1, 1000000))
                            ->type_name("N");
  auto* const words = app.add_option("--k", options.k, "words that wait-k waits for (3)")
                          ->check(CLI::Range(1, 1000000))
                          ->type_name("K");
  app.add_option("--width,--beam", options.beam, "hypotheses in the beam (1)")
      ->check(CLI::Range(1, 10000))
      ->type_name("W");
  app.add_option("--model", options.model, "folder of model.safetensors and spm.model")->type_name("DIR");
  auto* const steps =
      app.add_flag("--steps", options.steps, "print a line for each word read: its number, and the words written");
  auto* const reference = app.add_option("--report", options.reference,
                                         "print latency, and BLEU against this file, instead of translations")
                              ->type_name("FILE")
                              ->excludes(steps);
  app.add_option("--output", options.output, "with --report: file to write the translations to")
      ->type_name("FILE")
      ->needs(reference);
  app.add_option("--first", options.first, "with --report: only the first N sentences")
      ->check(CLI::Range(1, 1000000000))
      ->type_name("N")
      ->needs(reference);
  app.add_option("--size", options.size, "with --report: sentences decoded together (64)")
      ->check(CLI::Range(1, 100000))
      ->type_name("N")
      ->needs(reference);
  try {
    if (!app.read(argc, argv)) return 0;
    auto const waits = options.policy == "wait-k";
    if (words->count() > 0 && !waits) throw text::InputError("--k: has no effect with --policy " + options.policy);
    if (outputs->count() > 0 && (waits || options.policy == "whole"))
      throw text::InputError("--n: has no effect with --policy " + options.policy);
    if (!options.reference.empty() && options.input.empty()) throw text::InputError("--report: needs INPUT, a file");
    auto const code = run(options);
    text::finish_standard_output();
    return code;
  } catch (text::InputError const& error) {
    std::fprintf(stderr, "simultaneous: %s\n", error.what());
    return 2;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "simultaneous: %s\n", error.what());
    return 1;
  }
}
