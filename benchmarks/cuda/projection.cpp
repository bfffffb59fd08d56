// SPDX-License-Identifier: Apache-2.0
// Compares cuda::DenseProjection with whole logits, and cuda::ClusteredProjection with it; one line of JSON per figure.
//
//   sluice.bench.cuda.projection [--shapes usual|all|smoke] [--seconds N] [--list]
//
// Weights are random, logits have a standard deviation of 3. Each way's answers are compared with double precision
// before it is timed. Weights are cold: small ones alternate. The clustered step is timed as a decoder runs it, in
// which the host waits if there are many lines, and statistics are counted: with the host's launches and waits (timed:
// "host"), by events around several steps, and so is the dense step beside it; cache "mixed": as these steps leave it.
// "of limit" is the time to read the weights once, by the bandwidth of a copy, divided by the measured time. "product
// in place": the product alone for 8, 12 and 16 lines, by FMA and on matrix units (see ClusteredOptions::matrix_lines).
// Exit codes: see program.hpp.
#include <sluice/cuda/projection/clustered_projection.cuh>
#include <sluice/cuda/projection/dense_projection.cuh>

#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <device_array.hpp>
#include <device_work.hpp>
#include <functional>
#include <in_place.hpp>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <program.hpp>
#include <random>
#include <record.hpp>
#include <reference.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::bench;

namespace {

/// An output layer, in half precision.
struct Layer {
  std::int32_t rows = 1, columns = 1, depth = 1;
  std::int32_t k = 1;
  std::int32_t beams = 1;        ///< lines of a sentence
  std::vector<double> shares{};  ///< of the vocabulary that the clusters of a step's lines unite to; at most 0.5
  std::vector<std::int32_t>
      in_place{};  ///< only the product of so many lines with weights in place, by FMA and on matrix units

  std::size_t weights() const { return static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth); }
  std::size_t bytes() const { return weights() * sizeof(__half); }
};

std::vector<Layer> layers(std::string_view which) {
  if (which == "smoke")
    return {{.rows = 8, .columns = 5000, .depth = 64, .k = 2, .beams = 2, .shares = {0.1}},
            {.rows = 20, .columns = 9001, .depth = 72, .k = 2, .beams = 2, .shares = {0.1}},
            {.rows = 5, .columns = 4000, .depth = 32, .k = 5, .beams = 5},
            {.rows = 16, .columns = 5000, .depth = 72, .shares = {0.1}, .in_place = {8, 12, 16}}};
  std::vector<Layer> some;
  // The output layers of Amer et al. 2022, table 2: 20 sentences, beams of 2.
  for (auto const columns : {250'000, 128'000})
    some.push_back({.rows = 40, .columns = columns, .depth = 1024, .k = 2, .beams = 2, .shares = {0.06, 0.10, 0.16}});
  some.push_back(
      {.rows = 16, .columns = 250'000, .depth = 1024, .shares = {0.01, 0.06, 0.16}, .in_place = {8, 12, 16}});
  for (auto const rows : {1, 5, 64, 320})
    some.push_back({.rows = rows, .columns = 32'000, .depth = 512, .k = 5, .beams = rows == 1 ? 1 : 5});
  if (which == "all") {
    for (auto const rows : {2, 16, 128, 320})
      some.push_back(
          {.rows = rows, .columns = 250'000, .depth = 1024, .k = 2, .beams = 2, .shares = {0.01, 0.06, 0.16, 0.4}});
    for (auto const rows : {16, 1024}) some.push_back({.rows = rows, .columns = 32'000, .depth = 512, .k = 5});
  }
  return some;
}

Record record(std::string_view name, Layer const& layer, std::string_view experiment = "projection",
              std::string_view data = "normal") {
  Record record(name);
  record.add("experiment", experiment).add("rows", layer.rows).add("V", layer.columns).add("k", layer.k);
  return record.add("type", "float16").add("data", data).add("bytes", layer.bytes()).add("d", layer.depth);
}

/// Microseconds, cold and warm.
using Times = std::map<std::string_view, double>;

/// One way of answering; work(i, stream) uses weights i, and writes the answers to `best_`.
struct Way {
  std::string name;
  std::function<void(int, cudaStream_t)> work;
  std::function<std::size_t()> workspace = [] { return std::size_t{0}; };  ///< bytes, after the work
  double tolerance = 1e-3;  ///< of its log-probabilities; logits of 16 bits are rounded
};

class Bench {
  using Format = cuda::detail::Float16;
  static constexpr int most_sets = 16;

 public:
  Bench(Machine& machine, Layer const& layer)
      : machine_(machine),
        layer_(layer),
        sets_(cold_sets(layer.bytes(), machine.cache)),
        cold_(sets_ <= most_sets),
        queries_(static_cast<std::size_t>(layer.rows), Query{.best = layer.k}) {
    if (!cold_) sets_ = 1;
    make_hidden();
    auto const size = layer.weights();
    weights_ = DeviceArray<Format::Bits>(size * static_cast<std::size_t>(sets_));
    for (int i = 0; i < sets_; ++i)  // all the same: only the first is checked
      fill_scores<Format>(weights_.data() + size * static_cast<std::size_t>(i), static_cast<std::int64_t>(size),
                          layer.depth, 1, Data::normal, 1 / std::sqrt(static_cast<float>(layer.depth)));
    best_ = DeviceArray<Candidate>(static_cast<std::size_t>(layer.rows * layer.k));
    results_ = DeviceArray<cuda::LineResult>(static_cast<std::size_t>(layer.rows));
    for (std::int32_t line = 0; line < layer.rows; line += layer.beams)
      groups_.push_back({.lines = std::min(layer.beams, layer.rows - line)});
    make_logits();
    for (auto const& [line, logits] : logits_) references_.emplace_back(line, Reference(logits, layer.k));
  }

  void run() {
    if (!layer_.in_place.empty()) {
      InPlace product;
      product.columns = layer_.columns, product.depth = layer_.depth, product.logits = logits_;
      product.weights = weights_.data(), product.hidden = reinterpret_cast<Format::Bits const*>(hidden_.data());
      for (auto const lines : layer_.in_place)
        for (auto const share : layer_.shares) product.run(machine_, lines, share);
      return;
    }
    auto const dense = projections<float>({}), turns = projections<float>({.two_tiles = true});
    auto const way = [&]<class Logit>(char const* name, Projections<Logit> const& by) {
      return Way{
          .name = name,
          .work = [&](int i, cudaStream_t s) { by[static_cast<std::size_t>(i)]->enqueue(task<Logit>(), hidden(0), s); },
          .workspace = [&] { return by[0]->workspace(); },
          .tolerance = std::is_same_v<Logit, float> ? 1e-3 : 1e-2};
    };
    auto const ours = time(way("sluice", dense), {});
    time(way("sluice, two tiles by turns", turns), ours);
    time(way("sluice, logits in half precision", projections<__half>({})), ours);
    auto const separate = time_whole_logits(ours);
    if (!layer_.shares.empty()) time_clustered(*dense[0], separate);
  }

 private:
  template <class Logit>
  using Projections = std::vector<std::unique_ptr<cuda::DenseProjection<__half, Logit>>>;
  /// One projection for each set of weights; each has already allocated.
  template <class Logit>
  Projections<Logit> projections(cuda::StepOptions const& step) {
    Projections<Logit> all;
    for (int i = 0; i < sets_; ++i) {
      all.push_back(std::make_unique<cuda::DenseProjection<__half, Logit>>(weights(i), std::span<float const>(), 0,
                                                                           cuda::Resources{}, step));
      all.back()->enqueue(task<Logit>(), hidden(0), machine_.timer.stream());
    }
    return all;
  }
  MatrixView<__half const> weights(int i) const {
    auto const* const data = weights_.data() + layer_.weights() * static_cast<std::size_t>(i);
    return {reinterpret_cast<__half const*>(data), layer_.columns, layer_.depth, layer_.depth};
  }
  /// \param half  which of the two steps' vectors
  MatrixView<__half const> hidden(int half) const {
    auto const* const data = hidden_.data() + static_cast<std::ptrdiff_t>(half) * layer_.rows * layer_.depth;
    return {data, layer_.rows, layer_.depth, layer_.depth};
  }

  /// Vectors of two steps; line i of step s is the centroid of cluster s * rows + i.
  void make_hidden() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<__half> rounded(2 * static_cast<std::size_t>(layer_.rows * layer_.depth));
    for (auto& x : rounded) centroids_.push_back(static_cast<float>(x = static_cast<__half>(normal(random))));
    hidden_ = DeviceArray<__half>(rounded.size());
    hidden_.set(rounded);
  }

  /// Reference logits of some lines of the first step, in double precision.
  void make_logits() {
    for (auto const line : std::set<std::int32_t>{0, layer_.rows / 2, layer_.rows - 1})
      logits_.emplace_back(line, std::vector<float>());
    auto const depth = static_cast<std::size_t>(layer_.depth);
    std::vector<float> row(depth);
    for (std::int32_t first = 0; first < layer_.columns; first += 8192) {
      auto const count = static_cast<std::size_t>(std::min(8192, layer_.columns - first));
      auto const bits = weights_.get(static_cast<std::size_t>(first) * depth, count * depth);
      for (std::size_t v = 0; v < count; ++v) {
        for (std::size_t i = 0; i < depth; ++i) row[i] = Format::value(bits[v * depth + i]);
        for (auto& [line, logits] : logits_) {
          auto const* const h = centroids_.data() + static_cast<std::size_t>(line) * depth;
          std::array<double, 8> sums{};
          for (std::size_t i = 0; i < depth; ++i)
            sums[i % 8] += static_cast<double>(row[i]) * static_cast<double>(h[i]);
          double sum = 0;
          for (auto const x : sums) sum += x;
          logits.push_back(static_cast<float>(sum));
        }
      }
    }
  }

  /// Whether an answer is right; prints an error if not. Logits that differ only in their last bits may swap.
  /// \param answer  answer(line): its list
  template <class Answer>
  bool right(Record const& record, std::span<std::pair<std::int32_t, Reference> const> references, Answer const& answer,
             double tolerance = 1e-3) {
    for (auto const& [line, reference] : references) {
      try {
        std::vector<Candidate> const list = answer(line);
        if (list.size() != static_cast<std::size_t>(layer_.k)) throw std::runtime_error("a list of another length");
        reference.check(list, tolerance, false);
      } catch (std::runtime_error const& error) {
        machine_.wrong = true;
        Record(record).add("error", "line " + std::to_string(line) + ", " + error.what()).write(std::cout);
        return false;
      }
    }
    return true;
  }

  template <class Logit = float>
  cuda::LineTask<Logit> task() const {
    cuda::LineTask<Logit> task;
    task.k = task.query.best = layer_.k;
    task.best = best_.data(), task.results = results_.data();
    return task;
  }

  /// Replays of a graph: cold, and warm if the weights fit into the cache; empty if an answer was wrong.
  /// \param ours  times to compare with; may be empty
  Times time(Way const& way, Times const& ours, bool answers = true) {
    auto line = record(way.name, layer_);
    best_.poison();
    way.work(0, machine_.timer.stream());
    cuda::check(cudaStreamSynchronize(machine_.timer.stream()), way.name.c_str());
    auto const k = static_cast<std::size_t>(layer_.k);
    if (answers && !right(
                       line, references_, [&](std::int32_t i) { return best_.get(static_cast<std::size_t>(i) * k, k); },
                       way.tolerance))
      return {};
    line.add("workspace", way.workspace()).add("timed", "graph");
    Times times;
    auto const one = [&](int sets, std::string_view cache) {
      auto const time = machine_.timer(sets, way.work);
      times[cache] = time.median;
      write(line, time, cache, layer_.bytes(), {{"x sluice", &ours}}, false);
    };
    if (cold_) one(sets_, "cold");
    if (!cold_ || layer_.bytes() <= machine_.cache / 4 * 3) one(1, "warm");
    return times;
  }

  /// \param others   named ratios: this time divided by theirs or, if `inverse`, theirs divided by this
  void write(Record record, Time const& time, std::string_view cache, std::size_t bytes,
             std::vector<std::pair<std::string_view, Times const*>> const& others, bool inverse) const {
    for (auto const& [name, times] : others) {
      auto const other = times->find(cache);
      if (other == times->end()) continue;
      record.add(name, inverse ? other->second / time.median : time.median / other->second);
    }
    record.add("of limit", machine_.reading(bytes) / time.median).add(cache, time).write(std::cout);
  }

  /// Logits of all lines in memory: the product, then the kernel of LogSoftmaxTopK; and then softmax and search as
  /// separate passes. Returns the times of the last.
  Times time_whole_logits(Times const& ours) {
    DeviceArray<float> logits(static_cast<std::size_t>(layer_.rows) * static_cast<std::size_t>(layer_.columns));
    MatrixView<float> const all{logits.data(), layer_.rows, layer_.columns, layer_.columns};
    cuda::detail::Gemm gemm;
    cuda::LogSoftmaxTopK output;
    auto const product = [&](int i, cudaStream_t stream) { gemm.enqueue<__half>(hidden(0), weights(i), all, stream); };
    auto const memory = [&] { return logits.bytes() + gemm.workspace() + output.workspace(); };
    time({"cuBLAS alone", product, memory}, ours, false);
    time({"cuBLAS, whole logits, LogSoftmaxTopK",
          [&](int i, cudaStream_t stream) {
            product(i, stream);
            auto task = this->task();
            task.scores = {all.data, all.rows, all.columns, all.stride};
            output.enqueue(task, stream);
          },
          memory},
         ours);
    return time({"cuBLAS, softmax, search",
                 [&](int i, cudaStream_t stream) {
                   product(i, stream);
                   launch_softmax_pass(logits.data(), layer_.rows, layer_.columns, stream);
                   launch_search_pass(logits.data(), layer_.rows, layer_.columns, layer_.k, best_.data(), stream);
                 },
                 memory},
                ours);
  }

  // ---- clusters

  /// The number of active tokens, for a given share.
  std::int32_t active(double share) const {
    return static_cast<std::int32_t>(std::lround(share * static_cast<double>(layer_.columns)));
  }
  /// The tokens of each step are neighbours of the other step's tokens.
  Token token(int step, std::int32_t i, std::int32_t active) const {
    return static_cast<Token>(std::int64_t{i} * layer_.columns / active) + step;
  }
  /// Whether the cluster of a line has the i-th of the active tokens: a quarter is in all clusters, the others in one
  /// each.
  bool has(std::int32_t line, std::int32_t i) const { return i % 4 == 0 || i % layer_.rows == line; }

  Clusters clusters(double share) const {
    Clusters clusters;
    clusters.hidden_size = layer_.depth, clusters.vocabulary_size = layer_.columns, clusters.centroids = centroids_;
    for (int step = 0; step < 2; ++step)
      for (std::int32_t line = 0; line < layer_.rows; ++line) {
        for (std::int32_t i = 0; i < active(share); ++i)
          if (has(line, i)) clusters.tokens.push_back(token(step, i, active(share)));
        clusters.begin.push_back(std::ssize(clusters.tokens));
      }
    return clusters;
  }

  /// References for the lines of the first step, over the tokens that are active for them.
  std::vector<std::pair<std::int32_t, Reference>> active_references(double share, bool batch) const {
    std::vector<std::pair<std::int32_t, Reference>> references;
    for (auto const& [line, logits] : logits_) {
      std::vector<float> some(logits.size(), -std::numeric_limits<float>::infinity());
      auto const first = batch ? 0 : line / layer_.beams * layer_.beams;
      auto const last = batch ? layer_.rows : std::min(first + layer_.beams, layer_.rows);
      for (std::int32_t i = 0; i < active(share); ++i)
        for (auto of = first; of < last; ++of)
          if (has(of, i)) {
            auto const at = static_cast<std::size_t>(token(0, i, active(share)));
            some[at] = logits[at];
            break;
          }
      references.emplace_back(line, Reference(some, layer_.k));
    }
    return references;
  }

  static std::vector<Candidate> list(Expansion const& answers, std::int32_t line) {
    auto const best = answers[static_cast<std::size_t>(line)].best;
    return {best.begin(), best.end()};
  }

  /// expand() called from the host: the dense one, then the clustered one with unions of every size. Steps alternate
  /// between two that unite different clusters, so that weights are gathered each time, or are repeated unchanged.
  /// \param separate  times of whole logits in separate passes, by graphs
  void time_clustered(cuda::DenseProjection<__half>& dense, Times const& separate) {
    auto const hidden_of = [&](int step, cudaStream_t stream) {
      auto const h = hidden(step);
      return cuda::hidden<__half>(h.data, h.rows, h.columns, stream);
    };
    auto const full = [&](int step, cudaStream_t stream) {
      return dense.expand(hidden_of(step, stream), queries_, groups_);
    };
    auto line = record("dense, by the host", layer_, "clustered", "all tokens");
    auto const answers = full(0, machine_.timer.stream());
    if (!right(line, references_, [&](std::int32_t i) { return list(answers, i); })) return;
    auto const time = machine_.timer(2, full, false);
    line.add("timed", "host");
    Times const base{{"mixed", time.median}};
    write(line, time, "mixed", layer_.bytes(), {}, true);
    Times whole;
    if (!separate.empty()) whole["mixed"] = separate.begin()->second;  // cold, unless there is only a warm time

    using Union = cuda::ClusteredOptions::Union;
    for (auto const share : layer_.shares)
      for (auto const unite : {Union::sentence, Union::batch}) {
        time_clustered(share, unite, hidden_of, base, whole);
        if (layer_.rows <= cuda::ClusteredOptions{}.few_lines)
          time_clustered(share, unite, hidden_of, base, whole, true);
      }
  }

  /// \param early  StepOptions::early_starts; the result is compared with the other setting
  template <class HiddenOf>
  void time_clustered(double share, cuda::ClusteredOptions::Union unite, HiddenOf const& hidden_of, Times const& base,
                      Times const& whole, bool early = false) {
    auto const batch = unite == cuda::ClusteredOptions::Union::batch;
    cuda::ClusteredOptions options{.unite = unite};
    options.full_below = 0, options.step.early_starts = early;
    cuda::ClusteredProjection<__half> projection(weights(0), {}, clusters(share), options);
    auto const& seen = projection.statistics();
    auto const references = active_references(share, batch);
    for (auto const steps : {2, 1}) {
      auto const percent = std::to_string(std::lround(100 * share)) + " % active, ";
      std::string const name = batch ? "clustered, union of the batch" : "clustered, unions of sentences";
      auto line = record(early ? name + ", kernels started early" : name, layer_, "clustered",
                         percent + (steps == 2 ? "another union each step" : "the same union"));
      line.add("active", active(share)).add("clusters", 2 * layer_.rows);
      auto const work = [&](int step, cudaStream_t stream) {
        return projection.expand(hidden_of(step, stream), queries_, groups_);
      };
      auto const answers = work(0, machine_.timer.stream());
      if (!right(line, references, [&](std::int32_t i) { return list(answers, i); })) return;
      if (batch && (seen.full > 0 || seen.active != seen.unions * static_cast<std::uint64_t>(active(share)))) {
        machine_.wrong = true;
        line.add("error", "the union has another size").write(std::cout);
        return;
      }
      auto const before = seen;
      auto const time = machine_.timer(steps, work, false);
      auto const all = static_cast<double>(seen.steps - before.steps);
      line.add("reduced", static_cast<double>(seen.reduced - before.reduced) / all);
      line.add("gathered", static_cast<double>(seen.gathered - before.gathered) / all);
      line.add("workspace", projection.workspace()).add("timed", "host");
      auto const bytes =
          static_cast<std::size_t>(active(share)) * static_cast<std::size_t>(layer_.depth) * sizeof(__half);
      if (early) write(line, time, "mixed", bytes, {}, true);
      else write(line, time, "mixed", bytes, {{"dense / this", &base}, {"separate passes / this", &whole}}, true);
    }
  }

  Machine& machine_;
  Layer layer_;
  int sets_;
  bool cold_;  ///< weights are, in turns
  DeviceArray<Format::Bits> weights_;
  std::vector<float> centroids_;
  DeviceArray<__half> hidden_;
  DeviceArray<Candidate> best_;
  DeviceArray<cuda::LineResult> results_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
  std::vector<std::pair<std::int32_t, std::vector<float>>> logits_;
  std::vector<std::pair<std::int32_t, Reference>> references_;
};

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      "sluice.bench.cuda.projection", argc, argv, layers,
      [](char const* name, Layer const& layer) { return record(name, layer); },
      [](Machine& machine, Layer const& layer) { Bench(machine, layer).run(); });
}
