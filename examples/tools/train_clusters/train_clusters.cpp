// SPDX-License-Identifier: Apache-2.0
// train_clusters: text in, the clusters of a clustered vocabulary projection out.

#include <sluice/output/dense_projection.hpp>
#include <sluice/output/train_clusters.hpp>

#include <text/lines.hpp>
#include <transformer/weights.hpp>
#include <translate/tokenizer.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <train_clusters/k_means.hpp>
#include <train_clusters/options.hpp>
#include <train_clusters/record.hpp>
#include <utility>
#include <vector>

namespace train_clusters {

namespace {

enum Code : int { fine = 0, sentence_failed = 1, bad_input = 2 };

std::shared_ptr<sluice::example::Weights const> load_weights(std::filesystem::path const& file) {
  if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
  try {
    return sluice::example::Weights::load(file);
  } catch (std::runtime_error const& error) {
    std::string const what = error.what();
    throw text::InputError(what.find(file.string()) != std::string::npos ? what : file.string() + ": " + what);
  }
}

/// The sentences of a text that have tokens.
std::vector<std::vector<sluice::Token>> read_sources(std::filesystem::path const& file,
                                                     translate::Tokenizer const& tokenizer) {
  auto const lines = file.empty() ? text::read_lines(std::cin, "standard input") : text::read_lines(file);
  std::vector<std::vector<sluice::Token>> sources;
  for (auto const& line : lines)
    if (auto tokens = tokenizer.encode(line); !tokens.empty()) sources.push_back(std::move(tokens));
  if (sources.empty()) throw text::InputError((file.empty() ? "standard input" : file.string()) + ": has no sentences");
  return sources;
}

sluice::ClustersByDirection read(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
  try {
    return sluice::read_clusters(stream);
  } catch (std::runtime_error const& error) {
    throw text::InputError(file.string() + ": " + error.what());
  }
}

/// A file that appears under its name when it is complete; opened at once, so that a wrong name shows before the work.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path file) : file_(std::move(file)), part_(file_.string() + ".part") {
    if (std::filesystem::is_directory(file_)) throw text::InputError(file_.string() + ": is a directory");
    stream_.open(part_, std::ios::binary);
    if (!stream_) throw text::InputError(file_.string() + ": cannot be written");
  }
  NewFile(NewFile const&) = delete;
  NewFile& operator=(NewFile const&) = delete;
  ~NewFile() {
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
  }

  void write(sluice::ClustersByDirection const& directions) {
    std::error_code problem;
    try {
      sluice::write_clusters(stream_, directions);
    } catch (std::runtime_error const&) {
      throw text::InputError(file_.string() + ": cannot be written");
    }
    stream_.close();
    if (stream_) std::filesystem::rename(part_, file_, problem);
    if (!stream_ || problem) throw text::InputError(file_.string() + ": cannot be written");
  }

 private:
  std::filesystem::path file_, part_;
  std::ofstream stream_;
};

void print(sluice::Clusters const& clusters, std::ptrdiff_t wanted) {
  std::ptrdiff_t largest = 0;
  for (std::ptrdiff_t c = 0; c < clusters.size(); ++c) largest = std::max(largest, std::ssize(clusters[c]));
  auto const v = static_cast<double>(clusters.vocabulary_size);
  auto const mean = static_cast<double>(clusters.tokens.size()) / static_cast<double>(clusters.size());
  std::printf("clusters: %td, and %td without vectors\n", clusters.size(), wanted - clusters.size());
  std::printf("tokens of a cluster: %.1f (%.2f %% of %d), at most %td (%.2f %%)\n", mean, 100 * mean / v,
              clusters.vocabulary_size, largest, 100 * static_cast<double>(largest) / v);
}

Code run(Options const& options) {
  Eigen::setNbThreads(1);
  auto const file = std::filesystem::is_directory(options.model) ? options.model / "model.safetensors" : options.model;
  auto const weights = load_weights(file);
  translate::Tokenizer const tokenizer(file.parent_path() / "spm.model");
  auto const vocabulary = weights->vocabulary.size;
  if (tokenizer.size() != vocabulary)
    throw text::InputError("spm.model has " + std::to_string(tokenizer.size()) + " pieces, " + file.string() + " has " +
                           std::to_string(vocabulary));
  sluice::ClustersByDirection directions;
  if (options.append && std::filesystem::exists(options.output)) directions = read(options.output);
  for (auto const& [name, clusters] : directions)
    if (clusters.vocabulary_size != vocabulary || clusters.hidden_size != weights->d)
      throw text::InputError(options.output.string() + ": direction '" + name + "' belongs to another model");
  NewFile output(options.output);
  auto sources = read_sources(options.input, tokenizer);

  sluice::DenseProjection const projection(weights->projection(), weights->bias);
  sluice::ClusterSamples samples({.hidden_size = weights->d,
                                  .vocabulary_size = vocabulary,
                                  .likely = options.likely,
                                  .most = options.samples,
                                  .seed = options.seed});
  auto const recorded = record(weights, projection, std::move(sources), {.width = options.width}, samples);
  std::printf("sentences: %zu, %zu failed\n", recorded.sentences, recorded.failed);
  std::printf("vectors: %lld, %td kept\n", static_cast<long long>(samples.seen()), samples.size());

  sluice::TrainClustersOptions train{.clusters = options.clusters,
                                     .likely = options.likely,
                                     .iterations = options.iterations,
                                     .seed = options.seed,
                                     .points = options.points};
  std::vector<float> storage;
  auto const points = sluice::k_means_points(samples, train, storage);
  auto const means = k_means(options.k_means, points, {options.clusters, options.iterations, options.seed});
  std::printf("mean squared distance of %td vectors:", points.rows);
  for (auto const objective : means.objective) std::printf(" %.4f", objective);
  std::printf("\n");
  train.centroids = means.centroids;
  auto& clusters = directions[options.direction] = sluice::train_clusters(samples, train);
  print(clusters, options.clusters);
  output.write(directions);
  std::printf("%s: %ju bytes, %zu %s\n", options.output.string().c_str(),
              static_cast<std::uintmax_t>(std::filesystem::file_size(options.output)), directions.size(),
              directions.size() == 1 ? "direction" : "directions");
  if (recorded.failed == 0) return fine;
  std::cerr << "train_clusters: " << recorded.failed << " sentences failed: " << recorded.problem << '\n';
  return sentence_failed;
}

}  // namespace

}  // namespace train_clusters

int main(int argc, char** argv) {
  return text::run_program("train_clusters", [&]() -> int {
    auto const options = train_clusters::parse(argc, argv);
    return options ? train_clusters::run(*options) : train_clusters::fine;
  });
}
