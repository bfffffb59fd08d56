// SPDX-License-Identifier: Apache-2.0
// constraints_study SOURCES REFERENCES: translations under constraints drawn from the references, as in Post and Vilar
// (2018): BLEU, steps, time, how many constraints are met and where. One row of a Markdown table per combination of
// --sets, --widths (and --grid) and --prune. Sets: none, rand1 .. rand9 (random words), phr1 .. phr9 (consecutive
// words), tok1 .. tok99 (random words with so many tokens in total), references (scored unchanged).

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/forced_score.hpp>

#include <bleu/bleu.hpp>
#include <text/lines.hpp>

#include <CLI/CLI.hpp>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <constraint_sets.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <shipped_model.hpp>
#include <simulation/svg.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::Demand, bench::Words, sluice::Token;
using Search = sluice::ConstrainedBeamSearch<sluice::Phrases>;

struct Options {
  std::string sources, references;
  std::vector<std::string> sets{"none", "rand1", "rand2", "rand3", "rand4", "phr4"};
  std::vector<std::int32_t> widths{10};
  std::vector<double> prunes{20};
  std::vector<std::int32_t> grids;  // base beams of grid beam search
  std::string finished = "stay", svg;
  sluice::Banks banks = sluice::Banks::even;
  std::size_t batch = 64, sentences = std::numeric_limits<std::size_t>::max(), join = 0;
  std::uint64_t seed = 1;
  std::int32_t rounds = 1;
  bool histogram = false;
};

/// Sentences, joined until each source has a given number of pieces.
struct Text {
  std::vector<bench::Sentence> sources;
  std::vector<std::string> references;
  std::vector<Words> words;
  std::vector<bleu::Ngrams> ngrams;
};

Text read(Options const& options, translate::Tokenizer const& tokenizer) {
  auto const sources = text::read_lines(std::filesystem::path(options.sources));
  auto const references = text::read_lines(std::filesystem::path(options.references));
  if (sources.size() != references.size())
    throw text::InputError(options.sources + " has " + std::to_string(sources.size()) + " lines, " +
                           options.references + " has " + std::to_string(references.size()));
  Text all;
  std::string source, reference;
  for (std::size_t i = 0; i < sources.size() && all.sources.size() < options.sentences; ++i) {
    source += (source.empty() ? "" : " ") + sources[i];
    reference += (reference.empty() ? "" : " ") + references[i];
    auto tokens = tokenizer.encode(source);
    if (tokens.size() < std::max<std::size_t>(options.join, 1)) continue;
    all.sources.push_back(std::move(tokens));
    all.words.emplace_back(tokenizer, reference);
    all.ngrams.emplace_back(reference);
    all.references.push_back(std::exchange(reference, {}));
    source.clear();
  }
  return all;
}

Demand draw(std::string const& set, Words const& words, std::uint64_t key) {
  if (set == "none") return {};
  auto const count =
      static_cast<std::size_t>(std::stoul(set.substr(set.size() - (set.starts_with("tok") ? set.size() - 3 : 1))));
  if (set.starts_with("rand")) return bench::random_words(words, count, key);
  if (set.starts_with("phr")) return bench::random_phrase(words, count, key);
  if (set.starts_with("tok")) return bench::random_tokens(words, count, key);
  throw text::InputError("--sets: '" + set + "' is not none, randN, phrN, tokN or references");
}

/// Sentence-steps: how often a sentence took part in a step.
struct Steps {
  std::uint64_t* count;
  void planned(sluice::StepPlan const& step) const { *count += step.groups.size(); }
};

struct Outcome {
  std::vector<sluice::Result> results;
  sluice::Statistics statistics;
  std::uint64_t steps = 0;
};

template <class S>
Outcome decode(Text const& text, std::vector<sluice::Request<bench::Sentence, S>> requests, S const& search,
               std::size_t batch) {
  auto const& data = bench::data();
  Outcome outcome;
  sluice::example::Transformer model(data.weights);
  sluice::Decoder decoder(model, search, sluice::Batched{batch}, sluice::DenseProjection(*data.projection),
                          Steps{&outcome.steps});
  std::vector<std::size_t> order(requests.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return text.sources[i].size(); });
  for (auto const i : order) decoder.submit(std::move(requests[i]));
  outcome.results.resize(requests.size());
  sluice::Result result;
  for (auto more = true; more;) {
    more = decoder.step();
    for (; decoder.poll(result); result = {}) {
      if (!result.ok()) throw std::runtime_error("sentence " + std::to_string(result.id) + ": " + result.message);
      auto const place = order[static_cast<std::size_t>(result.id)];
      outcome.results[place] = std::move(result);
    }
  }
  outcome.statistics = decoder.statistics();
  return outcome;
}

/// A beam of fixed width, or a grid of beams.
struct Beam {
  std::int32_t width;
  bool grid;
  std::string name() const { return (grid ? "grid " : "") + std::to_string(width); }
};

Search configured(Options const& options, Beam const& how, double prune, sluice::Phrases phrases) {
  sluice::BeamSearch beam{.width = how.width, .length = {.min = 1, .max_factor = 2, .extra = 2}};
  if (options.finished == "stay")
    beam.finished = sluice::FinishedHypotheses::stay, beam.at_maximum = sluice::AtMaximum::truncate;
  auto const threshold = prune > 0 ? prune : sluice::Pruning::off;
  beam.pruning.below_finished = threshold;
  if (how.grid) {
    auto grid = sluice::grid_beam_search(how.width, std::move(phrases), beam);
    grid.prune_finished = threshold;
    return grid;
  }
  return {.beam = beam, .constraints = std::move(phrases), .banks = options.banks, .prune_finished = threshold};
}

double pearson(std::vector<std::pair<double, double>> const& points) {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  auto const n = static_cast<double>(points.size());
  for (auto const& [a, b] : points) x += a / n, y += b / n;
  for (auto const& [a, b] : points) xx += (a - x) * (a - x), yy += (b - y) * (b - y), xy += (a - x) * (b - y);
  return points.empty() ? 0 : xy / std::sqrt(xx * yy);
}

/// One row of the table, as shown in the charts.
struct Row {
  std::string set;
  Beam beam;
  double tokens, bleu, milliseconds;
};

Row measure(Options const& options, Text const& text, translate::Tokenizer const& tokenizer, std::string const& set,
            Beam const& beam, double prune) {
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < text.sources.size(); ++i)
    demands.push_back(draw(set, text.words[i], sluice::derive(options.seed, i)));
  auto const plain = configured(options, beam, prune, {});
  std::vector<sluice::Request<bench::Sentence, Search>> requests;
  for (std::size_t i = 0; i < text.sources.size(); ++i)
    requests.push_back(
        {.source = text.sources[i], .search = configured(options, beam, prune, sluice::Phrases(demands[i].phrases))});
  std::vector<double> seconds, searching;
  Outcome outcome;
  for (std::int32_t round = 0; round < options.rounds; ++round) {
    outcome = decode(text, requests, plain, options.batch);
    seconds.push_back(outcome.statistics.seconds.total());
    searching.push_back(outcome.statistics.seconds.search);
  }
  std::ranges::sort(seconds), std::ranges::sort(searching);
  auto const time = seconds[seconds.size() / 2], search_time = searching[searching.size() / 2];

  std::vector<bleu::Counts> counts;
  std::vector<std::pair<double, double>> places;
  std::size_t met = 0, ended = 0, tokens = 0;
  double score = 0, log_prob = 0;
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    auto const& h = outcome.results[i].hypotheses.at(0);
    counts.push_back(bleu::count(bleu::Ngrams(tokenizer.decode(h.tokens)), text.ngrams[i]));
    auto const& demand = demands[i];
    auto all = true;
    for (std::size_t p = 0; p < demand.phrases.size(); ++p) {
      auto const at = std::search(h.tokens.begin(), h.tokens.end(), demand.phrases[p].begin(), demand.phrases[p].end());
      all &= at != h.tokens.end();
      if (at == h.tokens.end()) continue;
      places.emplace_back(static_cast<double>(demand.begins[p]) / static_cast<double>(text.words[i].pieces().size()),
                          static_cast<double>(at - h.tokens.begin()) / static_cast<double>(h.tokens.size()));
    }
    met += all, ended += h.finished, tokens += demand.tokens();
    score += h.score, log_prob += h.log_prob;
  }
  auto const n = static_cast<double>(text.sources.size());
  auto const total = bleu::score(bleu::sum(counts));
  auto const interval = bleu::interval_95(bleu::bootstrap(counts, 1000, 1));
  auto const& stats = outcome.statistics;
  auto const rows = static_cast<double>(stats.rows);
  std::printf("| %s | %s | %s | %.2f | %.2f (%.2f to %.2f) | %.1f %% | %.1f %% | %.1f | %.1f | %.2f | %.1f | %.1f %% | "
              "%.3f | %.0f | %.2f |\n",
              set.c_str(), beam.name().c_str(), prune > 0 ? std::to_string(static_cast<int>(prune)).c_str() : "none",
              static_cast<double>(tokens) / n, total.bleu, interval.low, interval.high,
              100 * static_cast<double>(met) / n, 100 * static_cast<double>(ended) / n,
              static_cast<double>(outcome.steps) / n, rows / n, 1e3 * time / n, 1e6 * time / rows,
              100 * search_time / time, score / n, log_prob, pearson(places));
  std::fflush(stdout);
  return {set, beam, static_cast<double>(tokens) / n, total.bleu, 1e3 * time / n};
}

/// BLEU over the width for each set, and time over the number of tokens for each beam.
void draw_svg(std::vector<Row> const& rows, std::string const& path) {
  using simulation::Chart;
  Chart quality{.title = "BLEU by beam", .x_label = "width k", .y_label = "BLEU", .y_least = 1000, .y_most = 0};
  Chart time{.title = "Time by constraints", .x_label = "constraint tokens", .y_label = "ms a sentence", .y_most = 0};
  auto const add = [](Chart& chart, std::string const& name, double x, double y) {
    auto line = std::ranges::find(chart.lines, name, &Chart::Line::name);
    if (line == chart.lines.end()) line = chart.lines.insert(line, {.name = name, .points = {}});
    line->points.emplace_back(x, y);
    chart.x_most = std::max(chart.x_most, x), chart.y_most = std::max(chart.y_most, std::ceil(y / 10) * 10);
    chart.y_least = std::min(chart.y_least, std::floor(y / 10) * 10);
  };
  for (auto const& row : rows) {
    if (!row.beam.grid) add(quality, row.set, row.beam.width, row.bleu);
    add(time, row.beam.grid ? row.beam.name() : "k = " + row.beam.name(), row.tokens, row.milliseconds);
  }
  simulation::Svg svg(2);
  if (quality.x_most > 1) svg.add(quality);
  svg.add(time);
  svg.write(path);
}

/// The numbers of tokens in the sentences' constraints: sentences and tokens by that number (the paper's table 2).
void histogram(Options const& options, Text const& text) {
  std::printf("\n| tokens of a sentence's constraints |");
  std::map<std::size_t, std::vector<std::size_t>> tokens;  // by length, for each set
  std::vector<std::size_t> sums(options.sets.size());
  for (std::size_t set = 0; set < options.sets.size(); ++set) {
    if (options.sets[set] == "references") continue;
    std::printf(" %s |", options.sets[set].c_str());
    for (std::size_t i = 0; i < text.sources.size(); ++i) {
      auto const n = draw(options.sets[set], text.words[i], sluice::derive(options.seed, i)).tokens();
      auto& row = tokens[n];
      row.resize(options.sets.size());
      row[set] += n, sums[set] += n;
    }
  }
  std::printf("\n|---|");
  for (auto const& set : options.sets)
    if (set != "references") std::printf("---|");
  std::printf("\n");
  auto const line = [&](std::string const& name, std::vector<std::size_t> const& row) {
    std::printf("| %s |", name.c_str());
    for (std::size_t set = 0; set < row.size(); ++set)
      if (options.sets[set] != "references") std::printf(" %zu |", row[set]);
    std::printf("\n");
  };
  for (auto const& [n, row] : tokens)
    if (n > 0) line(std::to_string(n), row);
  line("total", sums);
}

/// The model's scores of the references themselves.
void score_references(Options const& options, Text const& text) {
  auto const& data = bench::data();
  std::vector<sluice::Request<bench::Sentence, sluice::ForcedScore>> requests;
  for (std::size_t i = 0; i < text.sources.size(); ++i) {
    auto target = text.words[i].pieces();
    target.push_back(data.weights->vocabulary.eos.front());
    requests.push_back({.source = text.sources[i], .prefix = std::move(target)});
  }
  auto const outcome = decode(text, std::move(requests), sluice::ForcedScore{}, options.batch);
  double score = 0, log_prob = 0;
  for (auto const& result : outcome.results)
    score += result.hypotheses.at(0).score, log_prob += result.hypotheses[0].log_prob;
  std::printf("| references | | | | 100 | | | | | | | | %.3f | %.0f | |\n",
              score / static_cast<double>(text.sources.size()), log_prob);
}

void run(Options const& options) {
  Eigen::setNbThreads(1);
  translate::Tokenizer const tokenizer(SLUICE_SOURCE_DIR "/examples/apps/translate/model/spm.model");
  auto const text = read(options, tokenizer);
  std::printf("%zu sentences%s, batches of %zu, finished hypotheses %s, seed %llu, median of %d.\n\n",
              text.sources.size(),
              options.join > 0 ? (", joined to " + std::to_string(options.join) + " pieces and more").c_str() : "",
              options.batch, options.finished == "stay" ? "stay in the beam" : "are set aside",
              static_cast<unsigned long long>(options.seed), options.rounds);
  std::printf(
      "| constraints | k | prune | tokens | BLEU (95 %%) | all met | ended | steps | rows | ms a sentence | us a row | "
      "search | mean score | log-probability | placement r |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Beam> beams;
  for (auto const width : options.widths) beams.push_back({width, false});
  for (auto const base : options.grids) beams.push_back({base, true});
  std::vector<Row> rows;
  for (auto const& set : options.sets) {
    if (set == "references") {
      score_references(options, text);
      continue;
    }
    for (auto const& beam : beams)
      for (auto const prune : options.prunes) rows.push_back(measure(options, text, tokenizer, set, beam, prune));
  }
  if (!options.svg.empty()) draw_svg(rows, options.svg);
  if (options.histogram) histogram(options, text);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Translations under constraints drawn from their references: a Markdown table.", "constraints_study");
  app.add_option("SOURCES", options.sources, "text to translate, a sentence a line")->required();
  app.add_option("REFERENCES", options.references, "its translations")->required();
  app.add_option("--sets", options.sets, "none, randN, phrN, tokN, references; by commas")->delimiter(',');
  app.add_option("--widths", options.widths, "of the beam, by commas")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--prune", options.prunes, "below the best finished; 0 = none; by commas")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  app.add_option("--grid", options.grids, "grid beam search with these base beams too, by commas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--finished", options.finished, "stay (Sockeye) or aside (fairseq)")
      ->check(CLI::IsMember({"stay", "aside"}));
  std::map<std::string, sluice::Banks> const banks{
      {"paper", sluice::Banks::paper}, {"sockeye", sluice::Banks::sockeye}, {"even", sluice::Banks::even}};
  app.add_option("--banks", options.banks, "even, paper or sockeye")->transform(CLI::CheckedTransformer(banks));
  app.add_option("--batch", options.batch, "sentences at once")->check(CLI::PositiveNumber);
  app.add_option("--sentences", options.sentences, "at most")->check(CLI::PositiveNumber);
  app.add_option("--join", options.join, "join lines until a source has so many pieces");
  app.add_option("--seed", options.seed, "of the constraints");
  app.add_option("--svg", options.svg, "draw BLEU by width and time by tokens into this file");
  app.add_flag("--histogram", options.histogram, "how many tokens the constraints have");
  app.add_option("--rounds", options.rounds, "of which the median time counts")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    run(options);
    return 0;
  } catch (CLI::ParseError const& error) {
    return app.exit(error);
  } catch (std::exception const& error) {
    std::cerr << "constraints_study: " << error.what() << '\n';
    return 2;
  }
}
