// SPDX-License-Identifier: Apache-2.0
// LogSoftmaxTopK (bias, log-softmax and the k best of a line) and its alternatives, alternating over the same lines,
// one thread. Before the clock starts, all must give the same tokens, and log-probabilities within 1e-4.
//
// Counters (medians over the rounds):
//   ns         of ours, a line
//   of_eigen   Eigen's time / ours: bias, maxCoeff, exp().sum(), log-probabilities, selection by a heap
//   of_naive   the time of the same passes in plain loops / ours
//   of_sort    the time of Eigen's passes with a std::partial_sort of the indices / ours
//   of_read    our time / the time to read the scores once (vectors, the maximum only): the limit
//
// The peers take a line through all their passes before the next one, so that it stays in the cache: faster for them
// than a pass over all lines. A call has `rows` lines, and the calls go round at least 64 lines: with fewer, the
// processor's branch predictor would learn them. `argmax` asks for only the best token, without a softmax.
//
// `near`: few lines, which stay in the L2 cache, whereas others come from L3 or memory; `no bias`: only the scores are
// read. `tiles`: what DenseProjection does after its product, with tiles in the L2 cache; ns is per line, of_read as
// above.
//
// SLUICE_BENCH_ALL: all rows x V x k, up to 320 x 250,000.

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include "separate_passes.hpp"
#include "yardstick.hpp"
#include <transformer/transformer.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::bench;

enum class Data { normal, peaked, ascending, equal, masked };

constexpr char const* name(Data data) {
  switch (data) {
    case Data::normal: return "normal";        // deviation 3
    case Data::peaked: return "peaked";        // of the shipped model
    case Data::ascending: return "ascending";  // the best come last
    case Data::equal: return "equal";          // all ties
    case Data::masked: return "masked";        // normal, 90 % -infinity
  }
  return "";
}

/// 16 lines of logits of the shipped model, [16, 8000]: two sentences, eight greedy steps.
std::vector<float> const& model_lines() {
  static auto const all = [] {
    auto const weights =
        example::Weights::load(std::string(SLUICE_SOURCE_DIR) + "/examples/apps/translate/model/model.safetensors");
    example::Transformer model(weights);
    DenseProjection projection(weights->projection(), weights->bias);
    std::vector<std::vector<Token>> const sources{{408, 459, 2615, 613, 4099, 1435, 264},
                                                  {518, 424, 280, 420, 2258, 784, 2990, 264}};
    std::vector<std::vector<Token> const*> const pointers{sources.data(), sources.data() + 1};
    model.start(pointers, std::vector<Slot>{0, 1});
    std::vector<Token> last(2, weights->vocabulary.bos);
    std::vector<float> lines;
    for (std::int32_t length = 0; length < 8; ++length) {
      std::vector<Row> const rows{{0, 0, length, std::span(last).first(1)}, {1, 1, length, std::span(last).last(1)}};
      auto const scores = projection.logits(model.step(rows));
      for (std::ptrdiff_t i = 0; i < 2; ++i) {
        auto const line = scores[i];
        lines.insert(lines.end(), line.begin(), line.end());
        last[static_cast<std::size_t>(i)] = static_cast<Token>(std::ranges::max_element(line) - line.begin());
      }
    }
    return lines;
  }();
  return all;
}

/// A line of another length: its head once, and random samples of the rest.
void resample(std::span<float const> line, std::span<float> to, std::mt19937& random) {
  std::vector<float> sorted(line.begin(), line.end());
  std::ranges::sort(sorted, std::greater{});
  std::uniform_int_distribution<std::size_t> rest(20, sorted.size() - 1);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = i < sorted.size() ? sorted[i] : sorted[rest(random)];
  std::ranges::shuffle(to, random);
}

constexpr std::ptrdiff_t lines_at_least = 80;  // a multiple of 1, 5, 40

/// Lines of one kind and their bias; the last ones asked for are kept.
struct Lines {
  Data data;
  std::ptrdiff_t vocabulary, count;
  AlignedVector<float> scores;
  std::vector<float> bias;

  static Lines const& of(Data data, std::ptrdiff_t vocabulary, std::ptrdiff_t count) {
    static std::unique_ptr<Lines> kept;
    if (kept == nullptr || kept->data != data || kept->vocabulary != vocabulary || kept->count < count) {
      kept.reset();
      kept = std::make_unique<Lines>(data, vocabulary, count);
    }
    return *kept;
  }

  Lines(Data kind, std::ptrdiff_t v, std::ptrdiff_t n)
      : data(kind),
        vocabulary(v),
        count(n),
        scores(static_cast<std::size_t>(n * v)),
        bias(static_cast<std::size_t>(v)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    // No bias if the order or the ties matter: zeros are added instead.
    if (data != Data::ascending && data != Data::equal)
      for (auto& b : bias) b = 0.1f * normal(random);
    auto const width = static_cast<std::size_t>(v);
    for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) {
      auto const line = std::span(scores).subspan(r * width, width);
      if (data == Data::peaked) {
        resample(std::span(model_lines()).subspan(r % 16 * 8000, 8000), line, random);
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) {
        auto& x = line[i];
        if (data == Data::ascending) x = 20 * static_cast<float>(i) / static_cast<float>(width) - 10;
        else if (data == Data::equal) x = 1;
        else if (data == Data::masked && random() % 10 != 0) x = -std::numeric_limits<float>::infinity();
        else x = 3 * normal(random);
      }
    }
  }
};

struct Shape {
  std::ptrdiff_t rows, vocabulary;
  std::int32_t k;
  bool softmax = true;
  bool bias = true;
  bool near = false;
};

/// All ways to answer, over the same lines.
template <class T>
class Contest {
 public:
  Contest(Data data, Shape const& shape)
      : shape_(shape),
        lines_(Lines::of(data, shape.vocabulary, std::max(lines_at_least, shape.rows))),
        query_(static_cast<std::size_t>(shape.rows), Query{.best = shape.k, .normalise = shape.softmax}),
        ours_(shape.bias ? LogSoftmaxTopK(lines_.bias) : LogSoftmaxTopK()),
        bias_(shape.bias ? lines_.bias : std::vector<float>(lines_.bias.size())),
        out_(static_cast<std::size_t>(shape.vocabulary)) {
    if constexpr (!std::is_same_v<T, float>) {
      copy_.resize(static_cast<std::size_t>(calls() * shape_.rows * shape_.vocabulary));
      for (std::size_t i = 0; i < copy_.size(); ++i) copy_[i] = static_cast<T>(lines_.scores[i]);
    }
  }

  /// Calls in a block, each with its own lines.
  std::ptrdiff_t calls() const {
    auto const count = shape_.near ? 128 * 1024 / shape_.vocabulary : 64;
    return std::max<std::ptrdiff_t>(1, (count + shape_.rows - 1) / shape_.rows);
  }
  double lines_in_block() const { return static_cast<double>(calls() * shape_.rows); }

  void ours() {
    for (std::ptrdiff_t call = 0; call < calls(); ++call) benchmark::DoNotOptimize(ours(call)[0].best.data());
  }
  void naive() {
    each([this](auto line) { this->naive(line); });
  }
  void eigen() {
    each([this](auto line) { this->eigen(line); });
  }
  void sorted() {
    each([this](auto line) { this->sorted(line); });
  }
  void read_only() {
    auto const bytes = static_cast<std::size_t>(calls() * shape_.rows * shape_.vocabulary) * sizeof(T);
    read({reinterpret_cast<float const*>(scores()), bytes / sizeof(float)});  // the type does not affect the memory
  }

  /// The errors in the answers to the first lines; empty if there are none.
  std::string differences() {
    for (std::ptrdiff_t call = 0; call < std::min<std::ptrdiff_t>(calls(), 8); ++call) {
      auto const answer = ours(call);
      for (std::ptrdiff_t i = 0; i < std::min<std::ptrdiff_t>(shape_.rows, 8); ++i) {
        auto const best = answer[static_cast<std::size_t>(i)].best;
        auto const line = this->line(call * shape_.rows + i);
        naive(line);
        if (!same(best)) return "differs from the naive one";
        eigen(line);
        if (!same(best)) return "differs from Eigen's";
        if (!shape_.softmax) continue;
        sorted(line);
        if (!same(best)) return "differs from the sorted one";
      }
    }
    return {};
  }

 private:
  T const* scores() const {
    if constexpr (std::is_same_v<T, float>) return lines_.scores.data();
    else return copy_.data();
  }
  std::span<T const> line(std::ptrdiff_t i) const {
    return {scores() + i * shape_.vocabulary, static_cast<std::size_t>(shape_.vocabulary)};
  }
  template <class F>
  void each(F const& f) {
    for (std::ptrdiff_t i = 0; i < calls() * shape_.rows; ++i) f(line(i));
    benchmark::DoNotOptimize(found_.data());
  }

  Expansion ours(std::ptrdiff_t call) {
    auto const first = call * shape_.rows;
    return ours_.expand(sluice::scores(line(first).data(), shape_.rows, shape_.vocabulary), query_, {});
  }
  void naive(std::span<T const> line) {
    if (shape_.softmax) {
      naive_log_softmax(line, bias_, out_);
      return heap_top_k(out_, static_cast<std::size_t>(shape_.k), found_);
    }
    Candidate best{-1, -std::numeric_limits<float>::infinity()};
    for (std::size_t i = 0; i < line.size(); ++i) {
      auto const x = static_cast<float>(line[i]) + bias_[i];
      if (x > best.log_prob) best = {static_cast<Token>(i), x};
    }
    found_.assign(1, best);
  }
  void eigen(std::span<T const> line) {
    if (shape_.softmax) {
      eigen_log_softmax(line, bias_, out_);
      return heap_top_k(out_, static_cast<std::size_t>(shape_.k), found_);
    }
    Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1> const> const x(line.data(), static_cast<Eigen::Index>(line.size()));
    Eigen::Index best = 0;
    auto const top = (x.template cast<float>() + array(ConstRow(bias_))).maxCoeff(&best);
    found_.assign(1, {static_cast<Token>(best), top});
  }
  void sorted(std::span<T const> line) {
    eigen_log_softmax(line, bias_, out_);
    sort_top_k(out_, static_cast<std::size_t>(shape_.k), indices_, found_);
  }

  /// Whether the list equals the last one found. Tokens may swap only if rounding made them tie.
  bool same(std::span<Candidate const> best) const {
    return std::ranges::equal(best, found_, [](Candidate a, Candidate b) {
      auto const difference = std::abs(a.log_prob - b.log_prob);
      return difference <= 1e-4f && (a.token == b.token || difference <= 4e-6f);
    });
  }

  Shape shape_;
  Lines const& lines_;
  std::vector<Query> query_;
  LogSoftmaxTopK ours_;
  std::vector<float> bias_;
  std::vector<float> out_;
  std::vector<Candidate> found_;
  std::vector<Token> indices_;
  AlignedVector<T> copy_;
};

template <class T>
void compare(benchmark::State& state, Data data, Shape const& shape) {
  one_thread();
  Contest<T> contest(data, shape);
  if (auto const problem = contest.differences(); !problem.empty()) return state.SkipWithError(problem.c_str());
  Turns turns;
  auto const ours = turns.add([&] { contest.ours(); });
  auto const read = turns.add([&] { contest.read_only(); });
  auto const eigen = turns.add([&] { contest.eigen(); });
  auto const naive = turns.add([&] { contest.naive(); });
  auto const sorted = shape.softmax ? turns.add([&] { contest.sorted(); }) : eigen;
  for (auto _ : state) turns.round();
  state.counters["ns"] = 1e9 * turns.seconds(ours) / contest.lines_in_block();
  state.counters["of_eigen"] = turns.ratio(eigen, ours);
  state.counters["of_naive"] = turns.ratio(naive, ours);
  if (shape.softmax) state.counters["of_sort"] = turns.ratio(sorted, ours);
  state.counters["of_read"] = turns.ratio(ours, read);
}

template <class T = float>
void add(char const* type, Data data, Shape const& shape) {
  auto const full = std::string(shape.softmax ? "log_softmax_top_k/" : "argmax/") + name(data) + "/" + type +
                    "/V:" + std::to_string(shape.vocabulary) + "/rows:" + std::to_string(shape.rows) +
                    (shape.softmax ? "/k:" + std::to_string(shape.k) : "") + (shape.bias ? "" : "/no bias") +
                    (shape.near ? "/near" : "");
  benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& state) {
    compare<T>(state, data, shape);
  })->Unit(benchmark::kMicrosecond);
}

/// 64 rows that each ask for the k best, from tiles as a product writes them.
void tiles(benchmark::State& state, std::ptrdiff_t vocabulary, std::int32_t k) {
  one_thread();
  constexpr std::ptrdiff_t rows = 64;
  std::vector<Query> const queries(rows, Query{.best = k});
  auto const width = ProjectionPass::tile_width(rows);
  ProjectionPass pass;
  LineLists lists;
  MatrixView<float> tile;
  auto filled = false;
  auto const answer = [&] {
    lists.clear();
    pass.run(
        queries, vocabulary, {},
        [&](std::ptrdiff_t, MatrixView<float> where) {
          tile = where;
          if (std::exchange(filled, true)) return;  // all tiles are alike: reuse what is there
          std::mt19937 random(1);
          std::normal_distribution<float> normal(0, 3);
          std::generate_n(where.data, rows * width, [&] { return normal(random); });
        },
        lists);
  };
  answer();
  Turns turns;
  auto const ours = turns.add(answer);
  auto const pure = turns.add([&] {
    for (std::ptrdiff_t first = 0; first < vocabulary; first += width)
      read({tile.data, static_cast<std::size_t>(rows * std::min(width, vocabulary - first))});
  });
  for (auto _ : state) turns.round();
  state.counters["ns"] = 1e9 * turns.seconds(ours) / rows;
  state.counters["of_read"] = turns.ratio(ours, pure);
}

// In an order that makes each set of lines only once.
bool const registered = [] {
  auto const all = all_shapes();
  auto const sizes = all ? std::vector<std::ptrdiff_t>{8000, 32000, 128000, 250000, 250001}
                         : std::vector<std::ptrdiff_t>{8000, 32000, 250001};
  for (auto const v : sizes) {
    for (std::ptrdiff_t const rows : {1, 5, 40, 64, 320}) {
      if (rows > 64 && !all) continue;
      if (rows == 40 && !all) continue;
      for (std::int32_t const k : {1, 5, 10, 50}) add("float", Data::normal, {rows, v, k});
      add("float", Data::normal, {rows, v, 1, false});
    }
    if (v <= 32000) {
      for (auto const bias : {true, false})
        for (auto const near : {true, false})
          if (near || !bias) add("float", Data::normal, {1, v, 5, true, bias, near});
      for (std::int32_t const k : {5, 50}) {
        auto const full = "log_softmax_top_k/tiles/V:" + std::to_string(v) + "/rows:64/k:" + std::to_string(k);
        benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& state) {
          tiles(state, v, k);
        })->Unit(benchmark::kMicrosecond);
      }
    }
    for (std::ptrdiff_t const rows : {1, 64}) {
      if (!all && (v != 32000 || rows > 1)) continue;
      for (std::int32_t const k : {5, 50}) {
        add<Eigen::bfloat16>("bfloat16", Data::normal, {rows, v, k});
        add<Eigen::half>("half", Data::normal, {rows, v, k});
      }
      add<Eigen::bfloat16>("bfloat16", Data::normal, {rows, v, 1, false});
    }
  }
  for (auto const data : {Data::peaked, Data::ascending, Data::equal, Data::masked})
    for (auto const v : sizes)
      for (std::ptrdiff_t const rows : {1, 64, 320}) {
        if (!all && (v != 32000 || rows > 64)) continue;
        for (std::int32_t const k : {5, 50}) add("float", data, {rows, v, k});
      }
  return true;
}();

}  // namespace
