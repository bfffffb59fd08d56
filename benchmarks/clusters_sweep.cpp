// SPDX-License-Identifier: Apache-2.0
// clusters_sweep TRAINING: finds how many clusters, and how many likely tokens per vector, a clustered projection of
// the shipped model needs. Clusters are trained on the sentences of the file TRAINING. The table is measured on those
// of the variable SLUICE_SENTENCES (see shipped_model.hpp), translated with a beam of 2 in batches of 20, as in the
// paper (Amer et al. 2022). With --file, the clusters are read from a file.

#include <sluice/output/k_means.hpp>
#include <sluice/output/train_clusters.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>
#include <Eigen/Core>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <shipped_model.hpp>
#include <span>
#include <string>
#include <train_clusters/record.hpp>
#include <utility>
#include <vector>

namespace {

using sluice::Clusters, sluice::ClusterSamples, sluice::Token;

struct Options {
  std::string training, file, folder;
  std::size_t sentences = 1000000;
  std::int32_t width = 1;
  std::ptrdiff_t samples = 2000000;
  std::int32_t iterations = 20;
  std::vector<std::ptrdiff_t> likely{1, 3, 5};
  std::vector<std::ptrdiff_t> clusters{50, 100, 200, 400, 700, 1000, 1500, 2000};
};

/// Records which samples came in one step.
struct Steps {
  sluice::RecordHidden<sluice::DenseProjection> inner;
  ClusterSamples const* samples;
  std::vector<std::ptrdiff_t>* ends;

  sluice::Expansion expand(sluice::Hidden<float> const& hidden, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups) {
    auto const answer = inner.expand(hidden, queries, groups);
    ends->push_back(samples->size());
    return answer;
  }
};

/// Shares of V, or of all lines.
struct Row {
  double mean = 0, largest = 0;                ///< tokens of a cluster
  double line = 0;                             ///< tokens of the cluster that a line belongs to, mean
  double step = 0, largest_step = 0;           ///< tokens of all clusters of a step, mean and most
  double best = 0, best_of_step = 0, two = 0;  ///< lines whose best token is in their own cluster; in one of the step;
                                               ///< whose two best are in their own clusters
};

Row measure(Clusters const& clusters, ClusterSamples const& lines, std::vector<std::ptrdiff_t> const& ends) {
  auto const v = static_cast<double>(clusters.vocabulary_size);
  Row row;
  row.mean = static_cast<double>(clusters.tokens.size()) / static_cast<double>(clusters.size()) / v;
  for (std::ptrdiff_t c = 0; c < clusters.size(); ++c)
    row.largest = std::max(row.largest, static_cast<double>(clusters[c].size()) / v);

  std::vector<std::int32_t> nearest(static_cast<std::size_t>(lines.size()));
  auto const d = clusters.hidden_size;
  sluice::NearestCentroid({clusters.centroids.data(), clusters.size(), d, d}).find(lines.hidden(), nearest);
  auto const n = static_cast<double>(lines.size()), steps = static_cast<double>(ends.size());
  std::vector<bool> active;
  std::ptrdiff_t first = 0;
  for (auto const end : ends) {
    active.assign(static_cast<std::size_t>(clusters.vocabulary_size), false);
    for (auto i = first; i < end; ++i) {
      auto const set = clusters[nearest[static_cast<std::size_t>(i)]];
      auto const tokens = lines.tokens(i);
      auto const first_in = std::ranges::binary_search(set, tokens[0]);
      row.line += static_cast<double>(set.size()) / v / n;
      row.best += first_in / n;
      row.two += (first_in && std::ranges::binary_search(set, tokens[1])) / n;
      for (auto const token : set) active[static_cast<std::size_t>(token)] = true;
    }
    for (auto i = first; i < end; ++i) row.best_of_step += active[static_cast<std::size_t>(lines.tokens(i)[0])] / n;
    auto const share = static_cast<double>(std::ranges::count(active, true)) / v;
    row.step += share / steps;
    row.largest_step = std::max(row.largest_step, share);
    first = end;
  }
  return row;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Vectors of the training text.
ClusterSamples record(Options const& options) {
  auto const& data = bench::data();
  std::vector<bench::Sentence> sources;
  translate::Tokenizer const tokenizer(SLUICE_SOURCE_DIR "/examples/apps/translate/model/spm.model");
  for (auto const& line : text::read_lines(std::filesystem::path(options.training))) {
    if (sources.size() == options.sentences) break;
    if (auto tokens = tokenizer.encode(line); !tokens.empty()) sources.push_back(std::move(tokens));
  }
  auto const started = seconds();
  ClusterSamples samples({.hidden_size = data.weights->d,
                          .vocabulary_size = data.weights->vocabulary.size,
                          .likely = std::ranges::max(options.likely),
                          .most = options.samples});
  auto const recorded =
      train_clusters::record(data.weights, *data.projection, std::move(sources), {.width = options.width}, samples);
  std::printf("Training: %zu sentences, %zu failed, beam %d: %lld hidden vectors, %td kept, %.0f s.\n",
              recorded.sentences, recorded.failed, options.width, static_cast<long long>(samples.seen()),
              samples.size(), seconds() - started);
  std::fflush(stdout);
  return samples;
}

void print(std::string const& what, Clusters const& clusters, Row const& row, double took) {
  std::printf("| %s | %td | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.2f %% | %.2f %% | %.2f %% | %.0f |\n",
              what.c_str(), clusters.size(), 100 * row.mean, 100 * row.largest, 100 * row.line, 100 * row.step,
              100 * row.largest_step, 100 * row.best, 100 * row.best_of_step, 100 * row.two, took);
  std::fflush(stdout);
}

void run(Options const& options) {
  Eigen::setNbThreads(1);
  auto const& data = bench::data();
  std::optional<ClusterSamples> samples;
  if (!options.training.empty()) samples = record(options);

  ClusterSamples lines({.hidden_size = data.weights->d, .vocabulary_size = data.weights->vocabulary.size, .likely = 2});
  std::vector<std::ptrdiff_t> ends;
  train_clusters::translate(data.weights, data.unsorted, {.width = 2, .batch = 20},
                            Steps{{*data.projection, lines}, &lines, &ends});
  std::printf("Measured: %zu sentences, beam 2, batch 20: %td hidden vectors in %zu steps. V = %d.\n\n",
              data.unsorted.size(), lines.size(), ends.size(), lines.vocabulary_size());
  std::printf(
      "| K | clusters | tokens of a cluster, mean | most | of a line's cluster | union of a step, mean | most | "
      "best token in own cluster | in union | two best in own | k-means, s |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  if (!options.file.empty()) {
    std::ifstream stream(options.file, std::ios::binary);
    if (!stream) throw text::InputError(options.file + ": cannot be opened");
    for (auto const& [name, clusters] : sluice::read_clusters(stream)) {
      if (clusters.hidden_size != lines.hidden_size() || clusters.vocabulary_size != lines.vocabulary_size())
        throw text::InputError(options.file + ": direction '" + name + "' belongs to another model");
      print(name, clusters, measure(clusters, lines, ends), 0);
    }
  }
  if (!samples) return;
  for (auto const count : options.clusters) {
    auto const started = seconds();
    sluice::TrainClustersOptions train{.clusters = count, .iterations = options.iterations};
    std::vector<float> storage;
    auto const points = sluice::k_means_points(*samples, train, storage);
    auto const centroids = sluice::k_means(points, {count, options.iterations, train.seed}).centroids;
    auto const took = seconds() - started;
    train.centroids = centroids;
    for (auto const likely : options.likely) {
      train.likely = likely;
      auto const clusters = sluice::train_clusters(*samples, train);
      print(std::to_string(likely), clusters, measure(clusters, lines, ends), took);
      if (options.folder.empty()) continue;
      auto const name = std::to_string(likely) + '-' + std::to_string(count) + ".bin";
      std::ofstream stream(std::filesystem::path(options.folder) / name, std::ios::binary);
      sluice::write_clusters(stream, {{"de-en", clusters}});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Clusters of the shipped model's hidden vectors, by their number and by K: a Markdown table.",
               "clusters_sweep");
  auto* const training = app.add_option("TRAINING", options.training, "sentences to train on, one a line");
  auto* const file = app.add_option("--file", options.file, "measure these clusters too");
  app.add_option("--write", options.folder, "folder for the clusters: K-NUMBER.bin");
  app.add_option("--sentences", options.sentences, "of TRAINING, at most");
  app.add_option("--width", options.width, "beam that is recorded; 1 = greedy (1)")->check(CLI::Range(1, 100));
  app.add_option("--samples", options.samples, "hidden vectors kept, at most")->check(CLI::PositiveNumber);
  app.add_option("--iterations", options.iterations, "of k-means")->check(CLI::NonNegativeNumber);
  app.add_option("--likely", options.likely, "values of K, by commas")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--clusters", options.clusters, "numbers of clusters, by commas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    if (training->count() + file->count() == 0) throw text::InputError("TRAINING or --file is required");
    run(options);
    return 0;
  } catch (CLI::Success const& help) {
    return app.exit(help);
  } catch (std::exception const& error) {
    std::cerr << "clusters_sweep: " << error.what() << '\n';
    return 2;
  }
}
