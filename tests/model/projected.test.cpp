// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/matrix_view.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A table's logits as hidden vectors; it can do everything that a model may.
struct HiddenTable {
  using Source = std::uint64_t;
  using Encoded = std::vector<std::uint64_t>;
  static constexpr Abilities abilities = everything;
  TableModel<everything> table;
  std::int32_t size = 0;
  std::vector<float> vectors{};
  std::size_t released = 0, proposed = 0;

  Vocabulary vocabulary() const { return {.size = size, .bos = bos, .eos = {eos}, .never = {pad, bos}}; }
  Limits limits() const { return {.slot_count = 50, .length = 60}; }
  std::int32_t source_length(Source const& source) const { return static_cast<std::int32_t>(source % 7); }
  Encoded encode(std::span<Source const* const> sources) const {
    Encoded encoded;
    for (auto const* source : sources) encoded.push_back(*source);
    return encoded;
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { table.start(sources, slots); }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    std::vector<Source const*> sources;
    for (auto const item : items) sources.push_back(&encoded[static_cast<std::size_t>(item)]);
    table.start(sources, slots);
  }
  Hidden<float> step(std::span<Row const> rows) {
    auto const answer = table.step(rows);
    vectors.assign(answer.data, answer.data + answer.rows * answer.columns);
    for (auto& x : vectors) x = std::max(x, -30.0f);  // an infinity would make a product NaN
    return hidden(vectors.data(), answer.rows, answer.columns);
  }
  void release(std::span<Slot const> slots) { released += slots.size(); }
  void propose(std::span<Draft const> drafts) { proposed += drafts.size(); }
};

/// A model that has nothing which it need not have.
struct Bare {
  using Source = std::uint64_t;
  HiddenTable table;
  Vocabulary vocabulary() { return table.vocabulary(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { table.start(sources, slots); }
  Hidden<float> step(std::span<Row const> rows) { return table.step(rows); }
};

struct NoProjection {};

using All = Projected<HiddenTable, DenseProjection>;
using Least = Projected<Bare, DenseProjection>;
static_assert(detail::ScoringModel<All> && ReleasingModel<All> && EncodingModel<All> && ProposingModel<All>);
static_assert(sluice::abilities<All>() == everything);
static_assert(detail::ScoringModel<Least> && !ReleasingModel<Least> && !EncodingModel<Least> && !ProposingModel<Least>);
static_assert(sluice::abilities<Least>() == Abilities{});
static_assert(Projection<DenseProjection, Hidden<float>> && !Projection<NoProjection, Hidden<float>>);

HiddenTable hidden_table(std::int32_t size) { return {TableModel<everything>({.size = size, .eos_slope = 0.7}), size}; }

DenseProjection random_projection(std::int32_t outputs, std::int32_t inputs) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> weights(static_cast<std::size_t>(outputs * inputs));
  for (auto& w : weights) w = normal(random);
  return DenseProjection(MatrixView<float const>{weights.data(), outputs, inputs, inputs});
}

}  // namespace

TEST_CASE("a projected model decodes as the model with the projection as expander", "[projected]") {
  auto const size = 37;
  auto projection = random_projection(size, size);
  auto table = hidden_table(size);
  SlotChecker<All> projected(All(table, projection));
  auto other = hidden_table(size);
  std::vector<std::uint64_t> sources(20);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = i;
  auto const compare = [&](auto const& search) {
    auto const results = decode(projected, sources, search);
    auto const expected = decode(other, sources, search, Batched{}, projection);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(expected[i].ok());
      CHECK(identical(results[i], expected[i]));
    }
  };
  compare(BeamSearch{.width = 4, .n_best = 4, .length = {.max = 9}});
  compare(Greedy{.length = {.max = 9}});
  CHECK(projected.report() == "");
}

TEST_CASE("a projected model passes everything on", "[projected]") {
  auto projection = random_projection(10, 10);
  auto table = hidden_table(10);
  All projected(table, projection);
  CHECK(projected.vocabulary().size == 10);
  CHECK(projected.limits().slot_count == 50);
  CHECK(projected.limits().length == 60);
  CHECK(projected.source_length(12) == 5);
  std::vector<Slot> const slots{0, 1};
  projected.release(slots);
  CHECK(table.released == 2);
  projected.propose(std::vector<Draft>(3));
  CHECK(table.proposed == 3);

  std::uint64_t const source = 8;
  auto const* pointer = &source;
  auto const expected = line_after(projected, source, {bos});
  auto encoded = projected.encode(std::span(&pointer, 1));
  std::int32_t const item = 0;
  Slot const slot = 3;
  projected.start(encoded, std::span(&item, 1), std::span(&slot, 1));
  Row const row{3, 3, 0, std::span(&bos, 1)};
  auto const answer = projected.step(std::span(&row, 1))[0];
  CHECK(std::vector<double>(answer.begin(), answer.end()) == expected);
}

TEST_CASE("a projection for another vocabulary is refused", "[projected]") {
  auto projection = random_projection(11, 10);
  auto table = hidden_table(10);
  CHECK(thrown([&] { Projected projected(table, projection); }) ==
        "sluice: Projected: projection.vocabulary_size() = 11: must be that of the model, 10");
  CHECK_THROWS_AS(Projected(table, projection), std::invalid_argument);
}

TEST_CASE("a projected model joins an ensemble", "[projected]") {
  auto projection = random_projection(10, 10);
  auto table = hidden_table(10);
  Projected projected(table, projection);
  TableModel<> scores({.size = 10});
  Ensemble ensemble(projected, scores);
  auto const results =
      decode(ensemble, std::vector<std::uint64_t>{1, 2, 3}, BeamSearch{.width = 2, .length = {.max = 5}});
  for (auto const& result : results) CHECK(result.ok());
}
