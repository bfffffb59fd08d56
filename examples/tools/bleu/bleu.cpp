// SPDX-License-Identifier: Apache-2.0
// bleu REF < HYP: the BLEU of a translation, and how sure it is.

#include <bleu/bleu.hpp>
#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string reference, against;
  std::size_t resamples = 1000;
  std::uint64_t seed = 1;
  bool json = false;
};

std::vector<bleu::Counts> count(std::vector<std::string> const& hypotheses, std::string const& name,
                                std::vector<bleu::Ngrams> const& references, std::string const& reference_name) {
  if (hypotheses.size() != references.size())
    throw text::InputError(name + " has " + std::to_string(hypotheses.size()) + " lines, " + reference_name + " has " +
                           std::to_string(references.size()));
  std::vector<bleu::Counts> counts;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    counts.push_back(bleu::count(bleu::Ngrams(hypotheses[i]), references[i]));
  return counts;
}

void run(Options const& options) {
  std::vector<bleu::Ngrams> references;
  for (auto const& line : text::read_lines(std::filesystem::path(options.reference))) references.emplace_back(line);
  if (references.empty()) throw text::InputError(options.reference + ": is empty");
  std::vector<bleu::Counts> other;
  if (!options.against.empty())
    other =
        count(text::read_lines(std::filesystem::path(options.against)), options.against, references, options.reference);
  auto const counts =
      count(text::read_lines(std::cin, "standard input"), "standard input", references, options.reference);

  auto const total = bleu::sum(counts);
  auto const score = bleu::score(total);
  auto const interval = bleu::interval_95(bleu::bootstrap(counts, options.resamples, options.seed));
  auto const comparison =
      other.empty() ? bleu::Comparison{} : bleu::compare(counts, other, options.resamples, options.seed);

  if (options.json) {
    nlohmann::ordered_json json{{"bleu", score.bleu},
                                {"low", interval.low},
                                {"high", interval.high},
                                {"precisions", score.precisions},
                                {"brevity_penalty", score.brevity_penalty},
                                {"ratio", score.ratio},
                                {"hypothesis_length", total.hypothesis_length},
                                {"reference_length", total.reference_length},
                                {"sentences", counts.size()},
                                {"resamples", options.resamples},
                                {"seed", options.seed}};
    if (!other.empty())
      json["against"] = {{"bleu", bleu::score(bleu::sum(other)).bleu},
                         {"difference", comparison.difference},
                         {"low", comparison.interval.low},
                         {"high", comparison.interval.high},
                         {"p", comparison.p}};
    std::cout << json.dump(2) << '\n';
    return;
  }
  auto const& p = score.precisions;
  std::printf("BLEU %.2f  precisions %.1f/%.1f/%.1f/%.1f  brevity penalty %.3f  ratio %.3f (%lld/%lld words)\n",
              score.bleu, p[0], p[1], p[2], p[3], score.brevity_penalty, score.ratio,
              static_cast<long long>(total.hypothesis_length), static_cast<long long>(total.reference_length));
  std::printf("95 %% interval %.2f .. %.2f  (%zu sentences, %zu resamples)\n", interval.low, interval.high,
              counts.size(), options.resamples);
  if (!other.empty())
    std::printf("against %s: %.2f  difference %+.2f  95 %% interval %+.2f .. %+.2f  p %.3f\n", options.against.c_str(),
                bleu::score(bleu::sum(other)).bleu, comparison.difference, comparison.interval.low,
                comparison.interval.high, comparison.p);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app(
      "Corpus BLEU of the hypotheses on standard input: tokenisation 13a, n-grams up to 4, exponential smoothing.",
      "bleu");
  app.add("REF", options.reference, "FILE", "references, one line per line of the hypotheses")->required();
  app.add("--against", options.against, "FILE", "another system's hypotheses: the difference by paired bootstrap");
  app.add("--resamples", options.resamples, "N", "number of bootstrap resamples")
      ->check(text::whole(1, 1000000))
      ->capture_default_str();
  app.add("--seed", options.seed, "N", "seed of the resamples")->check(text::whole(0))->capture_default_str();
  app.add_flag("--json", options.json, "print JSON");
  try {
    if (app.read(argc, argv)) run(options);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "bleu: " << error.what() << '\n';
    return 2;
  }
}
