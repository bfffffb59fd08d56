// SPDX-License-Identifier: Apache-2.0
// search_errors: how often a beam misses the most probable translation, and whether that translation is any good (Stahlberg
// and Byrne 2019). Any other Model would do in place of the shipped one.

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/exact_search.hpp>

#include <bleu/bleu.hpp>
#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <translate/model.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Options {
  std::filesystem::path model = translate::default_model(), input, reference;
  std::vector<std::int32_t> widths{1, 2, 5, 10, 50};
  double alpha = 0;
  std::int64_t steps = 20000;
  std::size_t size = 64, first = 0;
  bool rows = false;
};

using Source = std::vector<sluice::Token>;
constexpr double tolerance = 1e-4;  // of scores: two searches add the same numbers in different order

/// The results of one search over all sentences.
class Row {
 public:
  Row(translate::Tokenizer const& tokenizer, std::vector<std::string> const& references)
      : tokenizer_(tokenizer), references_(references) {}

  void add(std::size_t i, std::span<sluice::Token const> tokens) {
    if (!tokens.empty() && tokens.back() == tokenizer_.eos()) tokens = tokens.first(tokens.size() - 1);
    empty_ += tokens.empty();
    if (!references_.empty()) counts_.push_back(bleu::count(tokenizer_.decode(tokens), references_.at(i)));
  }
  /// \param errors  sentences whose best translation was missed, of `proved`
  void print(std::string const& name, std::size_t sentences, std::size_t errors, std::size_t proved, bool exact) const {
    auto const percent = [](std::size_t n, std::size_t of) {
      return 100.0 * static_cast<double>(n) / static_cast<double>(std::max<std::size_t>(of, 1));
    };
    std::printf("%-8s", name.c_str());
    if (!counts_.empty()) {
      auto const score = bleu::score(bleu::sum(counts_));
      std::printf("%8.2f%8.3f", score.bleu, score.ratio);
    }
    if (exact) std::printf("%10s", "");
    else std::printf("%9.1f%%", percent(errors, proved));
    std::printf("%9.1f%%\n", percent(empty_, sentences));
    std::fflush(stdout);
  }

 private:
  translate::Tokenizer const& tokenizer_;
  std::vector<std::string> const& references_;
  std::vector<bleu::Counts> counts_;
  std::size_t empty_ = 0;
};

/// The work of a search.
struct Work {
  double rows = 0, fed = 0;  // of a sentence
  double seconds = 0;        // of all
};

/// The work of three searches that find the best: beams with two stopping rules, and best first.
void print_rows(Options const& options, auto& model, std::vector<Source> const& sources,
                sluice::LengthLimits const& length, sluice::LengthPenalty const& penalty, auto const& output) {
  auto const run = [&](auto const& search, std::vector<sluice::Hypothesis>* hypotheses) {
    auto const statistics = sluice::decode_each(
        model, sources, search,
        [&](sluice::Result&& result) {
          if (hypotheses != nullptr) hypotheses->push_back(std::move(result.hypotheses.at(0)));
        },
        sluice::Streaming{.size = options.size, .refill_below = 1}, output);
    auto const count = static_cast<double>(std::max<std::size_t>(sources.size(), 1));
    return Work{static_cast<double>(statistics.rows) / count, static_cast<double>(statistics.fed) / count,
                statistics.seconds.total()};
  };
  std::printf("%-8s%14s%26s%34s\n", "", "width ended", "nothing can be better", "best first");
  std::printf("%-8s%8s%6s%18s%8s%18s%8s%8s%10s\n", "beam", "rows", "s", "rows", "s", "rows", "fed", "s", "differ");
  for (auto const width : options.widths) {
    sluice::BeamSearch beam{.width = width, .length = length, .penalty = penalty};
    auto const counted = run(beam, nullptr);
    beam.early_stopping.rule = sluice::EarlyStopping::Rule::exact;
    std::vector<sluice::Hypothesis> expected, found;
    auto const proved = run(beam, &expected);
    auto const first = run(sluice::BestFirstBeam::as_beam(beam), &found);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < found.size(); ++i) differ += found[i].tokens != expected[i].tokens;
    std::printf("%-8d%8.1f%6.0f%18.1f%8.0f%18.1f%8.1f%8.0f%10zu\n", width, counted.rows, counted.seconds, proved.rows,
                proved.seconds, first.rows, first.fed, first.seconds, differ);
    std::fflush(stdout);
  }
}

void run(Options const& options) {
  translate::Models models({options.model});
  auto const& tokenizer = models.tokenizer();
  auto model = models.make();

  auto lines = text::read_lines(options.input);
  std::vector<std::string> references;
  if (!options.reference.empty()) references = text::read_lines(options.reference);
  if (!options.reference.empty() && references.size() != lines.size())
    throw text::InputError(options.reference.string() + ": has " + std::to_string(references.size()) + " lines for " +
                           std::to_string(lines.size()));
  if (options.first > 0 && options.first < lines.size()) lines.resize(options.first);
  std::vector<Source> sources;
  for (auto const& line : lines) sources.push_back(tokenizer.encode(line));

  sluice::LengthLimits const length{.max = 256};
  sluice::LengthPenalty const penalty{.alpha = options.alpha};
  sluice::Streaming const schedule{.size = options.size, .refill_below = 1};

  if (options.rows) return print_rows(options, model, sources, length, penalty, models.output());

  // The best that any beam has found: nothing that scores less needs to be looked at.
  std::vector<std::vector<sluice::Hypothesis>> found;
  std::vector<double> floors(sources.size(), -std::numeric_limits<double>::infinity());
  for (auto const width : options.widths) {
    auto& hypotheses = found.emplace_back();
    sluice::decode_each(
        model, sources, sluice::BeamSearch{.width = width, .length = length, .penalty = penalty},
        [&](sluice::Result&& result) {
          if (!result.ok()) throw std::runtime_error("line " + std::to_string(result.id + 1) + ": " + result.message);
          auto& best = hypotheses.emplace_back(std::move(result.hypotheses.at(0)));
          if (best.finished) floors[result.id] = std::max(floors[result.id], best.score);
        },
        schedule, models.output());
  }

  using Request = sluice::Request<Source, sluice::ExactSearch>;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < sources.size(); ++i)
    requests.push_back(
        {.source = sources[i],
         .search = sluice::ExactSearch{
             .penalty = penalty, .floor = floors[i] - tolerance, .steps = options.steps, .length = length}});
  std::vector<sluice::Result> exact;
  auto const statistics = sluice::decode_each(
      model, requests, sluice::ExactSearch{}, [&](sluice::Result&& result) { exact.push_back(std::move(result)); },
      schedule, models.output());

  std::vector<bool> proved(sources.size());
  std::size_t all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    auto const& result = exact[i];
    if (!result.ok()) throw std::runtime_error("line " + std::to_string(i + 1) + ": " + result.message);
    proved[i] =
        !result.hypotheses.empty() && result.hypotheses[0].finished && result.bound <= result.hypotheses[0].score;
    all += proved[i];
  }

  std::printf("%zu sentences; the best translation proved for %zu; %.0f steps each on average\n", sources.size(), all,
              static_cast<double>(statistics.rows) / static_cast<double>(std::max<std::size_t>(sources.size(), 1)));
  std::printf("%-8s%s%10s%10s\n", "beam", references.empty() ? "" : "    BLEU  length", "errors", "empty");
  for (std::size_t w = 0; w < options.widths.size(); ++w) {
    Row row(tokenizer, references);
    std::size_t errors = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      row.add(i, found[w][i].tokens);
      errors += proved[i] && found[w][i].score < exact[i].hypotheses[0].score - tolerance;
    }
    row.print(std::to_string(options.widths[w]), sources.size(), errors, all, false);
  }
  Row row(tokenizer, references);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    // What has not been proved is still the best that is known.
    auto const& best =
        exact[i].hypotheses.empty() || !exact[i].hypotheses[0].finished ? found.back()[i] : exact[i].hypotheses[0];
    row.add(i, best.tokens);
  }
  row.print("exact", sources.size(), 0, all, true);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app(
      "How often a beam misses the most probable translation, and how that affects BLEU: for each width BLEU, length "
      "(divided by the reference's), sentences whose most probable translation was missed, and empty ones.",
      "search_errors");
  app.add_option("INPUT", options.input, "sentences, one per line")->required();
  app.add_option("REFERENCE", options.reference, "their translations");
  app.add_option("--model", options.model, "folder of model.safetensors and spm.model")->type_name("DIR");
  app.add_option("--width", options.widths, "beams (1 2 5 10 50)")->check(CLI::Range(1, 10000))->type_name("K...");
  app.add_option("--alpha", options.alpha, "scores are divided by length^A (0: the most probable)")->type_name("A");
  app.add_option("--steps", options.steps,
                 "maximum number of steps of the exact search per sentence (20000); 0: until proved")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--size", options.size, "sentences decoded together (64)")
      ->check(CLI::Range(1, 100000))
      ->type_name("N");
  app.add_flag(
      "--rows", options.rows,
      "print instead the rows per sentence and seconds of three searches: beams with two rules, and best first");
  app.add_option("--first", options.first, "only the first N sentences")->check(CLI::NonNegativeNumber)->type_name("N");
  try {
    if (app.read(argc, argv)) run(options);
    return 0;
  } catch (text::InputError const& error) {
    std::cerr << "search_errors: " << error.what() << '\n';
    return 2;
  } catch (std::exception const& error) {
    std::cerr << "search_errors: " << error.what() << '\n';
    return 1;
  }
}
