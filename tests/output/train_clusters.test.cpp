// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A matrix that owns its numbers.
struct Matrix {
  std::ptrdiff_t rows = 0, columns = 0;
  std::vector<float> numbers{};
  MatrixView<float const> view() const { return {numbers.data(), rows, columns, columns}; }
  MatrixView<float const> operator()() const { return view(); }
};

Matrix random_matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  Matrix matrix{.rows = rows, .columns = columns};
  matrix.numbers.resize(static_cast<std::size_t>(rows * columns));
  for (auto& x : matrix.numbers) x = normal(generator);
  return matrix;
}

MatrixView<float const> rows_of(std::vector<float> const& numbers, std::ptrdiff_t columns) {
  return {numbers.data(), std::ssize(numbers) / columns, columns, columns};
}

double squared_distance(std::span<float const> a, std::span<float const> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (double{a[k]} - b[k]) * (double{a[k]} - b[k]);
  return sum;
}

/// The nearest in float64, the lower among equals.
std::size_t nearest(std::span<float const> h, MatrixView<float const> centroids) {
  std::size_t best = 0;
  for (std::ptrdiff_t c = 1; c < centroids.rows; ++c)
    if (squared_distance(h, centroids[c]) < squared_distance(h, centroids[static_cast<std::ptrdiff_t>(best)]))
      best = static_cast<std::size_t>(c);
  return best;
}

std::vector<std::int32_t> found(MatrixView<float const> hidden, MatrixView<float const> centroids) {
  std::vector<std::int32_t> clusters(static_cast<std::size_t>(hidden.rows), -1);
  NearestCentroid(centroids).find(hidden, clusters);
  return clusters;
}

template <class F>
std::string complaint(F&& f) {
  try {
    f();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

/// Random vectors, every one with K random tokens.
ClusterSamples random_samples(std::ptrdiff_t count, std::ptrdiff_t likely, std::int32_t vocabulary = 50) {
  ClusterSamples samples({.hidden_size = 6, .vocabulary_size = vocabulary, .likely = likely});
  auto const hidden = random_matrix(count, 6, 9);
  std::mt19937 generator(5);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::vector<Token> tokens;
    for (std::ptrdiff_t k = 0; k < likely; ++k)
      tokens.push_back(static_cast<Token>(generator() % static_cast<unsigned>(vocabulary)));
    samples.add(hidden()[i], tokens);
  }
  return samples;
}

/// A model whose hidden vectors are random functions of source and tokens.
class HiddenModel {
 public:
  using Source = std::uint64_t;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  static constexpr std::int32_t d = 8;

  explicit HiddenModel(std::int32_t vocabulary) : vocabulary_{.size = vocabulary, .bos = 1, .eos = {2}, .never = {0}} {}

  Vocabulary const& vocabulary() const { return vocabulary_; }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) held_[slots[i]] = {*sources[i], {}};
  }
  Hidden<float> step(std::span<Row const> rows) {
    auto const before = held_;
    answer_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto [source, tokens] = before.at(row.from);
      tokens.resize(static_cast<std::size_t>(row.length));
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        tokens.push_back(row.tokens[i]);
        if (row.tokens.size() - i > static_cast<std::size_t>(row.lines)) continue;
        auto key = derive(source, tokens.size());
        for (auto const token : tokens) key = derive(key, static_cast<std::uint64_t>(token));
        for (Token k = 0; k < d; ++k) answer_.push_back(static_cast<float>(uniform(key, k) * 4 - 2));
        ++lines;
      }
      held_[row.to] = {source, tokens};
    }
    return hidden<float>(answer_.data(), lines, d);
  }

 private:
  Vocabulary vocabulary_;
  std::map<Slot, std::pair<Source, std::vector<Token>>> held_;
  std::vector<float> answer_;
};

}  // namespace

// ---- NearestCentroid ----------------------------------------------------------------------------------------------------

TEST_CASE("the nearest centroid is the nearest in float64, up to rounding", "[train_clusters]") {
  for (std::ptrdiff_t const clusters : {1, 2, 3, 15, 16, 17, 33, 100})
    for (std::ptrdiff_t const d : {1, 7, 64}) {
      auto const centroids = random_matrix(clusters, d, 1);
      auto const hidden = random_matrix(257, d, 2);
      auto const answer = found(hidden(), centroids());
      for (std::ptrdiff_t i = 0; i < hidden.rows; ++i) {
        auto const c = answer[static_cast<std::size_t>(i)];
        REQUIRE((c >= 0 && c < clusters));
        auto const exact = nearest(hidden()[i], centroids());
        auto const least = squared_distance(hidden()[i], centroids()[static_cast<std::ptrdiff_t>(exact)]);
        REQUIRE(squared_distance(hidden()[i], centroids()[c]) <= least + 1e-4);
        // A vector's cluster is its own affair.
        REQUIRE(found({hidden()[i].data(), 1, d, d}, centroids())[0] == c);
      }
    }
}

TEST_CASE("among equal centroids the lower one is the nearest, and of a NaN the first", "[train_clusters]") {
  for (std::ptrdiff_t const clusters : {2, 16, 40}) {
    Matrix const same{.rows = clusters, .columns = 2, .numbers = std::vector<float>(2 * std::size_t(clusters), 3)};
    CHECK(found(random_matrix(3, 2, 1)(), same()) == std::vector<std::int32_t>(3, 0));
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    Matrix const hidden{.rows = 1, .columns = 2, .numbers = {nan, 1}};
    CHECK(found(hidden(), random_matrix(clusters, 2, 1)()) == std::vector<std::int32_t>{0});
  }
}

TEST_CASE("shapes of centroids that do not fit are refused", "[train_clusters]") {
  auto const centroids = random_matrix(3, 4, 1), hidden = random_matrix(5, 4, 1), other = random_matrix(5, 3, 1);
  NearestCentroid nearest_centroid(centroids.view());
  CHECK(nearest_centroid.size() == 3);
  CHECK(nearest_centroid.hidden_size() == 4);
  std::vector<std::int32_t> five(5), four(4);
  CHECK_THROWS_AS(nearest_centroid.find(hidden(), four), std::invalid_argument);
  CHECK_THROWS_AS(nearest_centroid.find(other(), five), std::invalid_argument);
  CHECK_THROWS_AS(NearestCentroid(MatrixView<float const>{nullptr, 0, 4, 4}), std::invalid_argument);
}

// ---- k_means ------------------------------------------------------------------------------------------------------------

TEST_CASE("k-means finds blobs that are far apart", "[train_clusters]") {
  auto const centres = random_matrix(8, 5, 1, 100);
  auto points = random_matrix(800, 5, 2, 0.1f);
  for (std::size_t i = 0; i < points.numbers.size(); ++i) points.numbers[i] += centres.numbers[(i / 5 % 8) * 5 + i % 5];
  // From a choice that misses a blob Lloyd's iteration may not recover; from one of these it does.
  auto best = std::numeric_limits<double>::infinity();
  std::vector<float> centroids;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    if (auto run = k_means(points(), {.clusters = 8, .iterations = 50, .seed = seed}); run.objective.back() < best)
      best = run.objective.back(), centroids = run.centroids;
  CHECK(best < 5 * 0.1 * 0.1 * 1.1);
  std::set<std::size_t> met;
  for (std::ptrdiff_t c = 0; c < 8; ++c) {
    auto const centroid = rows_of(centroids, 5)[c];
    auto const blob = nearest(centroid, centres());
    met.insert(blob);
    CHECK(squared_distance(centroid, centres()[static_cast<std::ptrdiff_t>(blob)]) < 0.01);
  }
  CHECK(met.size() == 8);
}

TEST_CASE("k-means never makes its objective worse, and ends at a fixed point", "[train_clusters]") {
  for (std::ptrdiff_t const clusters : {1, 2, 10, 60}) {
    auto const points = random_matrix(400, 6, 3);
    auto const result = k_means(points(), {.clusters = clusters, .iterations = 300});
    REQUIRE(result.objective.size() >= 2);
    REQUIRE(result.objective.size() < 300);
    for (std::size_t i = 1; i < result.objective.size(); ++i)
      REQUIRE(result.objective[i] <= result.objective[i - 1] * (1 + 1e-6));

    auto const centroids = rows_of(result.centroids, 6);
    auto const clusters_of = found(points(), centroids);
    double objective = 0;
    std::vector<double> sums(result.centroids.size());
    std::vector<double> counts(static_cast<std::size_t>(clusters));
    for (std::ptrdiff_t i = 0; i < 400; ++i) {
      auto const c = static_cast<std::size_t>(clusters_of[static_cast<std::size_t>(i)]);
      objective += squared_distance(points()[i], centroids[static_cast<std::ptrdiff_t>(c)]) / 400;
      counts[c] += 1;
      for (std::size_t k = 0; k < 6; ++k) sums[c * 6 + k] += points()[i][k];
    }
    CHECK_THAT(result.objective.back(), WithinRel(objective, 1e-9));
    for (std::size_t i = 0; i < sums.size(); ++i)
      REQUIRE(std::abs(sums[i] / counts[i / 6] - result.centroids[i]) < 1e-6);
  }
}

TEST_CASE("k-means is deterministic, and the seed matters", "[train_clusters]") {
  auto const points = random_matrix(300, 4, 3);
  auto const run = [&](std::uint64_t seed) {
    return k_means(points(), {.clusters = 20, .iterations = 3, .seed = seed}).centroids;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
  // A view with a stride is the same points.
  auto wide = random_matrix(300, 7, 5);
  for (std::ptrdiff_t i = 0; i < 300; ++i) std::ranges::copy(points()[i], wide.numbers.begin() + i * 7);
  CHECK(k_means({wide.numbers.data(), 300, 4, 7}, {.clusters = 20, .iterations = 3}).centroids == run(1));
}

TEST_CASE("k-means gives a centroid to every different point where they are few", "[train_clusters]") {
  // Point i % 4, a hundred times.
  Matrix points{.rows = 100, .columns = 2};
  for (int i = 0; i < 100; ++i) points.numbers.insert(points.numbers.end(), {float(i % 4), float(i % 4 * i % 4)});
  std::set<std::pair<float, float>> different;
  for (std::ptrdiff_t i = 0; i < 100; ++i) different.insert({points()[i][0], points()[i][1]});
  for (std::ptrdiff_t const clusters : {4, 5, 30, 100}) {
    auto const result = k_means(points(), {.clusters = clusters, .iterations = 100});
    CHECK(result.centroids.size() == static_cast<std::size_t>(clusters * 2));
    CHECK(result.objective.back() == 0);
    CHECK(result.objective.size() < 10);
    auto const clusters_of = found(points(), rows_of(result.centroids, 2));
    CHECK(std::set(clusters_of.begin(), clusters_of.end()).size() == different.size());
  }
  Matrix const one{.rows = 1, .columns = 3, .numbers = {1, 2, 3}};
  CHECK(k_means(one(), {.clusters = 1}).centroids == one.numbers);
}

TEST_CASE("k-means without iterations gives points", "[train_clusters]") {
  auto const points = random_matrix(30, 2, 3);
  auto const result = k_means(points(), {.clusters = 30, .iterations = 0});
  CHECK(result.centroids == points.numbers);
  CHECK(result.objective.size() == 1);
}

TEST_CASE("k-means refuses what makes no sense", "[train_clusters]") {
  auto points = random_matrix(30, 2, 3);
  auto const run = [&](KMeansOptions const& options) { return complaint([&] { k_means(points(), options); }); };
  CHECK(run({.clusters = 0}) == "sluice: k_means: clusters = 0: must be at least 1");
  CHECK(run({.clusters = 31}) == "sluice: k_means: clusters = 31: is more than there are points, 30");
  CHECK(run({.clusters = 3, .iterations = -1}) == "sluice: k_means: iterations = -1: must be at least 0");
  points.numbers[7] = std::numeric_limits<float>::infinity();
  CHECK(run({.clusters = 3}) == "sluice: k_means: points[3] = inf: must be finite");
}

// ---- ClusterSamples, train_clusters -------------------------------------------------------------------------------------

TEST_CASE("samples are kept with their tokens", "[train_clusters]") {
  ClusterSamples samples({.hidden_size = 2, .vocabulary_size = 10, .likely = 3});
  std::vector<float> const a{1, 2}, b{3, 4};
  std::vector<Token> const four{7, 1, 9, 0}, one{4};
  samples.add(a, four);
  samples.add(a, {});
  samples.add(b, one);
  CHECK(samples.size() == 2);
  CHECK(samples.seen() == 3);
  CHECK(std::vector(samples.tokens(0).begin(), samples.tokens(0).end()) == std::vector<Token>{7, 1, 9});
  CHECK(std::vector(samples.tokens(1).begin(), samples.tokens(1).end()) == std::vector<Token>{4, 4, 4});
  CHECK(std::vector(samples.hidden()[1].begin(), samples.hidden()[1].end()) == b);

  std::vector<Token> const outside{10};
  std::vector<float> const three{1, 2, 3}, nan{1, std::numeric_limits<float>::quiet_NaN()};
  CHECK(complaint([&] { samples.add(a, outside); }) == "sluice: ClusterSamples: token = 10: is outside the vocabulary");
  CHECK(complaint([&] { samples.add(three, one); }) ==
        "sluice: ClusterSamples: hidden.size() = 3: must be hidden_size, 2");
  CHECK(complaint([&] { samples.add(nan, one); }) == "sluice: ClusterSamples: hidden = nan: must be finite");
  CHECK(samples.size() == 2);
  using Options = ClusterSamplesOptions;
  for (auto const& options : {Options{.hidden_size = 0, .vocabulary_size = 1}, Options{.hidden_size = 1},
                              Options{.hidden_size = 1, .vocabulary_size = 1, .likely = 0},
                              Options{.hidden_size = 1, .vocabulary_size = 1, .most = 0}})
    CHECK_THROWS_AS(ClusterSamples(options), std::invalid_argument);
}

TEST_CASE("a bounded number of samples is an even draw", "[train_clusters]") {
  std::vector<int> kept(100);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    ClusterSamples samples({.hidden_size = 1, .vocabulary_size = 100, .most = 10, .seed = seed});
    for (Token i = 0; i < 100; ++i) {
      std::vector<float> const hidden{static_cast<float>(i)};
      std::vector<Token> const token{i};
      auto const before = samples.hidden();
      std::vector<float> const was(before.data, before.data + before.rows);
      auto const may = samples.may_keep();
      samples.add(hidden, token);
      if (!may) REQUIRE(std::ranges::equal(was, std::span(samples.hidden().data, 10)));
    }
    REQUIRE(samples.size() == 10);
    REQUIRE(samples.seen() == 100);
    for (std::ptrdiff_t i = 0; i < 10; ++i) {
      REQUIRE(samples.hidden()[i][0] == static_cast<float>(samples.tokens(i)[0]));
      ++kept[static_cast<std::size_t>(samples.tokens(i)[0])];
    }
  }
  // 200 expected of each; the standard deviation is 13.4.
  CHECK(std::ranges::min(kept) > 140);
  CHECK(std::ranges::max(kept) < 260);
}

TEST_CASE("no sample misses its own tokens in its own cluster, and no cluster has others", "[train_clusters]") {
  auto const samples = random_samples(500, 4);
  for (std::ptrdiff_t const likely : {1, 3, 4})
    for (std::ptrdiff_t const clusters : {1, 7, 80, 500})
      for (auto const half : {true, false}) {
        auto const trained =
            train_clusters(samples, {.clusters = clusters, .likely = likely, .points = 3, .bfloat16 = half});
        check(trained);
        REQUIRE(trained.size() <= clusters);
        REQUIRE(trained.size() > clusters / 2);
        auto const of = found(samples.hidden(), rows_of(trained.centroids, 6));
        std::vector<std::set<Token>> sets(static_cast<std::size_t>(trained.size()));
        for (std::ptrdiff_t i = 0; i < samples.size(); ++i)
          for (auto const token : samples.tokens(i).first(static_cast<std::size_t>(likely)))
            sets[static_cast<std::size_t>(of[static_cast<std::size_t>(i)])].insert(token);
        for (std::ptrdiff_t c = 0; c < trained.size(); ++c)
          REQUIRE(std::ranges::equal(trained[c], sets[static_cast<std::size_t>(c)]));
        if (half)
          for (auto const x : trained.centroids) REQUIRE(detail::round_to_bfloat16(x) == x);
      }
}

TEST_CASE("more likely tokens make larger sets of the same clusters", "[train_clusters]") {
  auto const samples = random_samples(300, 5);
  auto const one = train_clusters(samples, {.clusters = 20, .likely = 1});
  auto const five = train_clusters(samples, {.clusters = 20, .likely = 5});
  CHECK(one.centroids == five.centroids);
  REQUIRE(one.size() == five.size());
  for (std::ptrdiff_t c = 0; c < one.size(); ++c) CHECK(std::ranges::includes(five[c], one[c]));
  CHECK(train_clusters(samples, {.clusters = 20}) == one);
  CHECK(train_clusters(samples, {.clusters = 20, .seed = 2}) != one);
}

TEST_CASE("clusters may have centroids from elsewhere; those without samples are dropped", "[train_clusters]") {
  auto const samples = random_samples(300, 2);
  std::vector<float> storage;
  auto const points = k_means_points(samples, {.clusters = 20}, storage);
  auto centroids = k_means(points, {.clusters = 20}).centroids;
  auto const same = train_clusters(samples, {.clusters = 20});
  CHECK(train_clusters(samples, {.centroids = centroids}) == same);
  centroids.insert(centroids.begin(), 6, 1000.0f);
  CHECK(train_clusters(samples, {.centroids = centroids}) == same);

  CHECK(k_means_points(samples, {.clusters = 20, .points = 15}, storage).data == samples.hidden().data);
  auto const some = k_means_points(samples, {.clusters = 20, .points = 3}, storage);
  CHECK(some.rows == 60);
  for (std::ptrdiff_t i = 0; i < some.rows; ++i) {
    auto const all = samples.hidden();
    auto met = false;
    for (std::ptrdiff_t j = 0; j < all.rows; ++j) met = met || std::ranges::equal(some[i], all[j]);
    REQUIRE(met);
  }
}

TEST_CASE("train_clusters refuses what makes no sense", "[train_clusters]") {
  auto const samples = random_samples(30, 2);
  auto const run = [&](TrainClustersOptions const& options) {
    return complaint([&] { train_clusters(samples, options); });
  };
  CHECK(run({.clusters = 0}) == "sluice: train_clusters: clusters = 0: must be at least 1");
  CHECK(run({.clusters = 31}) == "sluice: train_clusters: clusters = 31: is more than there are samples, 30");
  CHECK(run({.clusters = 3, .likely = 0}) == "sluice: train_clusters: likely = 0: must be at least 1");
  CHECK(run({.clusters = 3, .likely = 3}) == "sluice: train_clusters: likely = 3: is more than were recorded, 2");
  CHECK(run({.clusters = 3, .points = 0}) == "sluice: train_clusters: points = 0: must be at least 1");
  CHECK(run({.clusters = 3, .iterations = -1}) == "sluice: k_means: iterations = -1: must be at least 0");
  std::vector<float> seven(7), infinite(6, std::numeric_limits<float>::infinity()), good(6);
  CHECK(run({.centroids = seven}) ==
        "sluice: train_clusters: centroids.size() = 7: must be a multiple of the hidden size, 6");
  CHECK(run({.centroids = infinite}) == "sluice: train_clusters: centroids[0] = inf: must be finite");
  ClusterSamples const none({.hidden_size = 6, .vocabulary_size = 3});
  CHECK(complaint([&] { train_clusters(none, {.centroids = good}); }) ==
        "sluice: train_clusters: samples.size() = 0: must be at least 1");
}

// ---- RecordHidden -------------------------------------------------------------------------------------------------------

TEST_CASE("a recorder answers as the expander that it wraps", "[train_clusters]") {
  auto const weights = random_matrix(40, HiddenModel::d, 1), hidden = random_matrix(9, HiddenModel::d, 2);
  std::vector<Edit> const edits{{.token = 3, .add = -std::numeric_limits<float>::infinity()}};
  std::vector<Token> const probes{5, 6};
  TokenSet only(40);
  for (Token t = 10; t < 14; ++t) only.insert(t);
  std::vector<Query> const queries{{},
                                   {.best = 0, .probes = probes},
                                   {.best = 7, .edits = edits},
                                   {.best = 2, .only = &only},
                                   {.mass = 0.9f},
                                   {.typical = 0.5f},
                                   {.base = -1, .best = 4},
                                   {.base = -9, .best = 4},
                                   {.best = 5, .noise = 77}};
  std::vector<Group> const groups{{.lines = 6}, {.lines = 2, .keep = 4}, {.lines = 1}};
  auto const view = sluice::hidden(hidden.numbers.data(), 9, HiddenModel::d);
  DenseProjection plain(weights.view());
  for (std::ptrdiff_t const likely : {1, 3, 5, 50})
    for (std::ptrdiff_t const most : {4, 1000}) {
      ClusterSamples samples({.hidden_size = HiddenModel::d, .vocabulary_size = 40, .likely = likely, .most = most});
      RecordHidden recorder(DenseProjection(weights.view()), samples);
      CHECK(recorder.vocabulary_size() == 40);
      CHECK(recorder.hidden_size() == HiddenModel::d);
      for (int run = 0; run < 3; ++run) {
        auto const expected = plain.expand(view, queries, groups), answer = recorder.expand(view, queries, groups);
        REQUIRE(answer.size() == expected.size());
        for (std::size_t i = 0; i < answer.size(); ++i) {
          REQUIRE(std::ranges::equal(answer[i].best, expected[i].best));
          REQUIRE(std::ranges::equal(answer[i].probes, expected[i].probes));
          REQUIRE(answer[i].log_sum_exp == expected[i].log_sum_exp);
        }
      }
      REQUIRE(samples.seen() == 27);
      REQUIRE(samples.size() == std::min<std::ptrdiff_t>(most, 27));
      if (most < 27) continue;
      for (std::ptrdiff_t i = 0; i < 9; ++i) {
        REQUIRE(std::ranges::equal(samples.hidden()[i], hidden()[i]));
        // The K best in float64, after the query's bans.
        auto const& query = queries[static_cast<std::size_t>(i)];
        std::vector<std::pair<double, Token>> ranked;
        for (Token t = 0; t < 40; ++t) {
          double sum = 0;
          for (std::ptrdiff_t k = 0; k < HiddenModel::d; ++k)
            sum += double{hidden()[i][static_cast<std::size_t>(k)]} * weights()[t][static_cast<std::size_t>(k)];
          if ((query.edits.empty() || t != 3) && (query.only == nullptr || only.contains(t)))
            ranked.emplace_back(-sum, t);
        }
        std::ranges::sort(ranked);
        for (std::size_t k = 0; k < static_cast<std::size_t>(likely); ++k)
          REQUIRE(samples.tokens(i)[k] == ranked[std::min(k, ranked.size() - 1)].second);
      }
    }
}

TEST_CASE("a recorder keeps no line that is not valid", "[train_clusters]") {
  auto const weights = random_matrix(5, 2, 1);
  std::vector<float> const lines{1, 2, std::numeric_limits<float>::quiet_NaN(), 0, 3, 4};
  std::vector<Query> const queries(3);
  for (std::ptrdiff_t const likely : {1, 2}) {
    ClusterSamples samples({.hidden_size = 2, .vocabulary_size = 5, .likely = likely});
    RecordHidden recorder(DenseProjection(weights.view()), samples);
    CHECK(!recorder.expand(hidden(lines.data(), 3, 2), queries, {}).valid());
    CHECK(samples.seen() == 3);
    REQUIRE(samples.size() == 2);
    CHECK(samples.hidden()[1][0] == 3);
  }
}

TEST_CASE("a recorder for another vocabulary or other vectors is refused", "[train_clusters]") {
  DenseProjection const projection(random_matrix(5, 2, 1)());
  ClusterSamples vocabulary({.hidden_size = 2, .vocabulary_size = 6}),
      hidden_size({.hidden_size = 3, .vocabulary_size = 5});
  CHECK_THROWS_AS(RecordHidden(projection, vocabulary), std::invalid_argument);
  CHECK_THROWS_AS(RecordHidden(projection, hidden_size), std::invalid_argument);
}

TEST_CASE("a recorded decode is the same decode, and records every line of it", "[train_clusters]") {
  auto const weights = random_matrix(30, HiddenModel::d, 1);
  DenseProjection const projection(weights.view());
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5, 6, 7};
  auto const compare = [&](auto const& search) {
    HiddenModel model(30), same(30);
    ClusterSamples samples({.hidden_size = HiddenModel::d, .vocabulary_size = 30, .likely = 3});
    auto const expected = decode(model, sources, search, Batched{.size = 3}, projection);
    auto const results =
        decode(same, sources, search, Batched{.size = 3}, RecordHidden<DenseProjection>(projection, samples));
    REQUIRE(results.size() == expected.size());
    std::int64_t generated = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
      for (std::size_t h = 0; h < results[i].hypotheses.size(); ++h) {
        CHECK(results[i].hypotheses[h].tokens == expected[i].hypotheses[h].tokens);
        CHECK(results[i].hypotheses[h].score == expected[i].hypotheses[h].score);
      }
      generated += std::ssize(results[i].hypotheses[0].tokens);
    }
    CHECK(samples.seen() == samples.size());
    CHECK(samples.seen() >= generated);
    auto const trained = train_clusters(samples, {.clusters = 5, .likely = 3});
    check(trained);
  };
  compare(Greedy{.length = {.max = 20}});
  compare(BeamSearch{.width = 4, .length = {.max = 20}});
}
