// SPDX-License-Identifier: Apache-2.0
// Eigen's matrices as views: the same memory, and answers that are those over raw pointers, bit for bit.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/eigen.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>

#include <Eigen/Core>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Rows = RowMajorMatrix<float>;
using Strided = Eigen::Map<Rows, Eigen::Unaligned, Eigen::OuterStride<>>;
using FullyStrided = Eigen::Map<Rows, Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

/// Whether a view shows the numbers of a matrix, where they lie.
template <class T, class M>
bool shows(MatrixView<T> const& view, M const& matrix) {
  if (view.rows != matrix.rows() || view.columns != matrix.cols() || view.stride < view.columns) return false;
  for (std::ptrdiff_t i = 0; i < view.rows; ++i)
    for (std::ptrdiff_t j = 0; j < view.columns; ++j)
      if (&view[i][static_cast<std::size_t>(j)] != &matrix.coeffRef(i, j)) return false;
  return true;
}

/// A matrix whose numbers are all different.
template <class M = Rows>
M numbered(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  M matrix(rows, columns);
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    for (std::ptrdiff_t j = 0; j < columns; ++j)
      matrix(i, j) = static_cast<typename M::Scalar>(static_cast<float>(i * columns + j) / 8);
  return matrix;
}

Rows random_matrix(std::mt19937_64& random, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  std::normal_distribution<float> normal;
  return Rows::NullaryExpr(rows, columns, [&](Eigen::Index, Eigen::Index) { return normal(random); });
}

/// The numbers of a matrix, row after row.
std::vector<float> dense(Rows const& matrix) {
  std::vector<float> all;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i)
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) all.push_back(matrix(i, j));
  return all;
}

std::vector<std::uint32_t> bits(std::span<float const> numbers) {
  std::vector<std::uint32_t> result;
  for (auto const x : numbers) result.push_back(std::bit_cast<std::uint32_t>(x));
  return result;
}

/// All that an expander says of some lines, with the bits of its numbers.
std::vector<std::vector<std::uint32_t>> said(Expansion const& expansion, std::size_t lines) {
  std::vector<std::vector<std::uint32_t>> result;
  for (std::size_t i = 0; i < lines; ++i) {
    auto const line = expansion[i];
    result.push_back(bits(line.probes));
    for (auto const& candidate : line.best) {
      result.back().push_back(static_cast<std::uint32_t>(candidate.token));
      result.back().push_back(std::bit_cast<std::uint32_t>(candidate.log_prob));
    }
    result.back().push_back(std::bit_cast<std::uint32_t>(line.log_sum_exp));
  }
  return result;
}

std::string complaint(auto&& make) {
  try {
    make();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("matrices, maps and blocks are looked at where they lie") {
  auto rows = numbered(6, 5);
  CHECK(shows(view(rows), rows));
  STATIC_REQUIRE(std::is_same_v<decltype(view(rows)), MatrixView<float>>);
  STATIC_REQUIRE(std::is_same_v<decltype(view(std::as_const(rows))), MatrixView<float const>>);
  view(rows)[2][3] = 7;
  CHECK(rows(2, 3) == 7);

  SECTION("blocks, whose rows lie further apart") {
    CHECK(shows(view(rows.topRows(2)), rows.topRows(2)));
    CHECK(shows(view(rows.leftCols(3)), rows.leftCols(3)));
    auto const middle = rows.block(1, 2, 4, 2);
    auto const seen = view(middle);
    CHECK(shows(seen, middle));
    CHECK(seen.stride == 5);
    CHECK(shows(view(rows.row(3)), rows.row(3)));
    CHECK(shows(view(rows.middleRows<2>(3)), rows.middleRows<2>(3)));
    CHECK(shows(view(rows.block(0, 1, 6, 3).bottomRows(2)), rows.block(0, 1, 6, 3).bottomRows(2)));
    CHECK(view(rows.topRows(0)).rows == 0);
  }
  SECTION("the transpose of a column-major matrix, all of it or some columns") {
    auto columns = numbered<Eigen::MatrixXf>(5, 6);
    CHECK(shows(view(columns.transpose()), columns.transpose()));
    CHECK(shows(view(columns.leftCols(2).transpose()), columns.leftCols(2).transpose()));
    CHECK(shows(view(columns.topRows(3).transpose()), columns.topRows(3).transpose()));
    CHECK(shows(view(columns.col(4).transpose()), columns.col(4).transpose()));
    Eigen::VectorXf const vector = columns.col(1);
    CHECK(shows(view(vector.transpose()), vector.transpose()));
  }
  SECTION("maps, references, arrays, fixed sizes, vectors") {
    std::vector<float> numbers(40);
    Eigen::Map<Rows const> const map(numbers.data(), 5, 8);
    CHECK(shows(view(map), map));
    STATIC_REQUIRE(std::is_same_v<decltype(view(map)), MatrixView<float const>>);
    Strided const strided(numbers.data() + 1, 5, 6, Eigen::OuterStride<>(8));
    CHECK(shows(view(strided), strided));
    CHECK(view(strided).stride == 8);
    CHECK(shows(view(FullyStrided(numbers.data() + 1, 5, 6, {8, 1})), strided));
    Eigen::Ref<Rows> reference = rows;
    CHECK(shows(view(reference), rows));
    Eigen::Ref<Rows const> const constant = rows.leftCols(2);
    CHECK(shows(view(constant), rows.leftCols(2)));
    Eigen::Array<float, 3, 4, Eigen::RowMajor> array = numbered(3, 4);
    CHECK(shows(view(array), array));
    CHECK(shows(view(rows.array()), rows));
    Eigen::RowVectorXf vector = rows.row(1);
    CHECK(shows(view(vector), vector));
    RowMajorMatrix<std::int8_t> bytes(2, 3);
    CHECK(shows(view(bytes), bytes));
  }
  SECTION("scores, hidden vectors, weights and biases are views too") {
    CHECK(shows(static_cast<MatrixView<float const> const&>(scores(rows)), rows));
    CHECK(scores(rows).kind == Kind::logits);
    CHECK(scores(rows.topRows(1), Kind::log_probs).kind == Kind::log_probs);
    CHECK(shows(static_cast<MatrixView<float const> const&>(hidden(rows.middleCols(1, 3))), rows.middleCols(1, 3)));
    CHECK(shows(weights(rows.bottomRows(3)), rows.bottomRows(3)));

    Eigen::VectorXf const column = rows.col(0);
    CHECK(bias(column).data() == column.data());
    CHECK(bias(column).size() == 6);
    CHECK(bias(column.segment(2, 3)).data() == column.data() + 2);
    CHECK(bias(rows.row(2)).data() == &rows(2, 0));
    CHECK(bias(rows.row(2)).size() == 5);
    Eigen::ArrayXf const array = column;
    CHECK(bias(array).data() == array.data());
    CHECK(bias(Eigen::VectorXf::Map(column.data(), 4)).size() == 4);
    Eigen::VectorXf const nothing(0);
    CHECK(bias(nothing).empty());
  }
}

TEST_CASE("what owns its numbers is known by its type") {
  STATIC_REQUIRE(detail::eigen_owns<Rows>);
  STATIC_REQUIRE(detail::eigen_owns<Eigen::ArrayXf>);
  STATIC_REQUIRE(detail::eigen_owns<Eigen::Ref<Rows const>>);
  STATIC_REQUIRE(detail::eigen_owns<Eigen::Ref<Rows const, Eigen::Unaligned, Eigen::OuterStride<>>>);
  STATIC_REQUIRE(!detail::eigen_owns<Eigen::Ref<Rows>>);
  STATIC_REQUIRE(!detail::eigen_owns<Strided>);
  STATIC_REQUIRE(!detail::eigen_owns<Eigen::Block<Rows>>);
  STATIC_REQUIRE(!detail::eigen_owns<Eigen::Transpose<Eigen::MatrixXf>>);
}

TEST_CASE("what only shows when the program runs is refused by name and value") {
  auto columns = numbered<Eigen::MatrixXf>(5, 6);
  auto rows = numbered(5, 6);
  CHECK(complaint([&] { (void)view(columns.row(1)); }) ==
        "sluice: view: matrix.innerStride() = 5: must be 1: the numbers of a line lie side by side");
  CHECK(complaint([&] { (void)scores(columns.row(1)); }).starts_with("sluice: scores: matrix.innerStride() = 5: must"));
  CHECK(complaint([&] { (void)bias(rows.col(1)); }) ==
        "sluice: bias: vector.innerStride() = 6: must be 1: its numbers lie side by side");
  std::vector<float> numbers(40);
  auto const overlapping = Strided(numbers.data(), 5, 6, Eigen::OuterStride<>(3));
  CHECK(complaint([&] { (void)hidden(overlapping); }) ==
        "sluice: hidden: matrix.outerStride() = 3: must be at least the number of columns");
  CHECK(complaint([&] {
          (void)weights(FullyStrided(numbers.data(), 5, 3, {8, 2}));
        }).starts_with("sluice: weights: matrix.innerStride() = 2: must be 1"));
  CHECK(complaint([&] {
          (void)weights(FullyStrided(numbers.data(), 5, 3, {-8, 1}));
        }).starts_with("sluice: weights: matrix.outerStride() = -8: must be"));

  // One number has no stride, one row has no next.
  CHECK(complaint([&] { CHECK(view(columns.block<1, Eigen::Dynamic>(1, 2, 1, 1)).columns == 1); }) == "none");
  CHECK(complaint([&] { CHECK(bias(rows.col(1).head(1)).size() == 1); }) == "none");
  CHECK(complaint([&] { CHECK(view(Strided(numbers.data(), 1, 6, Eigen::OuterStride<>(3))).stride == 6); }) == "none");
}

TEMPLATE_TEST_CASE("scores are answered as over raw pointers, bit for bit", "", float, double, Eigen::half,
                   Eigen::bfloat16) {
  std::mt19937_64 random(1);
  Rows const logits = random_matrix(random, 7, 200);
  RowMajorMatrix<TestType> const converted = logits.cast<TestType>();
  std::vector<Query> queries;
  std::vector<Token> const probes{3, 150};
  for (int i = 0; i < 7; ++i) queries.push_back({.best = 4 + i, .probes = probes});
  LogSoftmaxTopK expander;
  std::vector<TestType> raw;
  for (auto const x : dense(logits.middleCols(20, 160))) raw.push_back(static_cast<TestType>(x));
  for (auto const kind : {Kind::logits, Kind::log_probs}) {
    auto const expected = said(expander.expand(scores(raw.data(), 7, 160, kind), queries, {}), 7);
    CHECK(said(expander.expand(scores(converted.middleCols(20, 160), kind), queries, {}), 7) == expected);
    // As a model computes them that has a column for each line.
    Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> const columns = converted.transpose();
    CHECK(said(expander.expand(scores(columns.middleRows(20, 160).transpose(), kind), queries, {}), 7) == expected);
  }
}

TEST_CASE("weights and biases make the same layers as raw pointers, bit for bit") {
  std::mt19937_64 random(2);
  std::ptrdiff_t const vocabulary = 150, d = 24, lines = 9;
  Rows const all = random_matrix(random, vocabulary + 2, d + 5);
  auto const layer = all.block(1, 3, vocabulary, d);
  Eigen::VectorXf const b = random_matrix(random, vocabulary, 1);
  Rows const vectors = random_matrix(random, lines, d + 1);
  auto const raw_weights = dense(layer), raw_vectors = dense(vectors.leftCols(d));
  std::vector<float> const raw_bias(b.data(), b.data() + b.size());
  MatrixView<float const> const raw{raw_weights.data(), vocabulary, d, d};
  auto const raw_hidden = hidden(raw_vectors.data(), lines, d);
  std::vector<Query> const queries(static_cast<std::size_t>(lines), Query{.best = 6});

  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    PackedMatrix const expected(raw, raw_bias, precision), packed(weights(layer), bias(b), precision);
    Rows wanted(lines, vocabulary), found(lines, vocabulary + 3);
    expected.multiply(raw_hidden, {wanted.data(), lines, vocabulary, vocabulary});
    packed.multiply(hidden(vectors.leftCols(d)), view(found.rightCols(vocabulary)));
    CHECK(bits(dense(found.rightCols(vocabulary))) == bits(dense(wanted)));

    DenseProjection one(raw, raw_bias, precision), other(weights(layer), bias(b), precision);
    CHECK(said(other.expand(hidden(vectors.leftCols(d)), queries, {}), 9) ==
          said(one.expand(raw_hidden, queries, {}), 9));
  }
  // Weights that are kept as [d, n], column-major, are rows of their transpose.
  Eigen::MatrixXf const columns = layer.transpose();
  DenseProjection one(raw), other(weights(columns.transpose()));
  CHECK(said(other.expand(raw_hidden, queries, {}), 9) == said(one.expand(raw_hidden, queries, {}), 9));

  Clusters clusters{.hidden_size = d, .vocabulary_size = static_cast<std::int32_t>(vocabulary)};
  for (Token c = 0; c < 4; ++c) {
    for (std::ptrdiff_t k = 0; k < d; ++k) clusters.centroids.push_back(vectors(c, k));
    for (Token token = c; token < vocabulary; token += 5) clusters.tokens.push_back(token);
    clusters.begin.push_back(std::ssize(clusters.tokens));
  }
  ClusteredProjection some(raw, raw_bias, clusters), same(weights(layer), bias(b), clusters);
  CHECK(said(same.expand(hidden(vectors.leftCols(d)), queries, {}), 9) ==
        said(some.expand(raw_hidden, queries, {}), 9));
  CHECK(same.statistics().full == 0);
}

namespace {

/// The next token depends on the last one, by a table of logits [V, V] with a column for each; answers with pointers or with a matrix.
class Table {
 public:
  using Source = int;
  static constexpr Abilities abilities{.ragged = true};

  Table(Eigen::MatrixXf const& table, bool matrix) : table_(table), matrix_(matrix) {}
  Vocabulary vocabulary() const { return {.size = static_cast<std::int32_t>(table_.rows()), .bos = 0, .eos = {1}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const> rows) {
    auto const lines = std::ssize(rows);
    if (answer_.cols() < lines) answer_.resize(table_.rows(), lines);
    for (std::ptrdiff_t i = 0; i < lines; ++i) answer_.col(i) = table_.col(rows[static_cast<std::size_t>(i)].tokens[0]);
    if (matrix_) return scores(answer_.leftCols(lines).transpose());
    return scores(answer_.data(), lines, answer_.rows());
  }

 private:
  Eigen::MatrixXf table_, answer_;
  bool matrix_;
};

}  // namespace

TEST_CASE("a model that answers with a matrix decodes as one that answers with pointers") {
  std::mt19937_64 random(3);
  Eigen::MatrixXf const table = 2 * random_matrix(random, 40, 40);
  Table with(table, true), without(table, false);
  std::vector<int> const sources(20);
  BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 12}};
  auto const expected = decode(without, sources, search);
  for (auto const& results : {decode(with, sources, search, Batched{.size = 1}),
                              decode(with, sources, search, Streaming{.size = 7, .refill_below = 1})}) {
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].hypotheses.size() == 4);
      for (std::size_t j = 0; j < 4; ++j) {
        CHECK(results[i].hypotheses[j].tokens == expected[i].hypotheses[j].tokens);
        CHECK(bits(results[i].hypotheses[j].log_probs) == bits(expected[i].hypotheses[j].log_probs));
      }
    }
  }
}
