// SPDX-License-Identifier: Apache-2.0
// The Transformer of torch is held against that of Eigen, which has tests of its own.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <libtorch/scores.hpp>
#include <libtorch/torch_transformer.hpp>
#include <support/catch.hpp>
#include <support/slot_checker.hpp>
#include <transformer/transformer.hpp>

#if SLUICE_TORCH_CUDA
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#endif

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::example;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
using TorchModel = HostScores<TorchTransformer>;

static_assert(Model<TorchModel> && ReleasingModel<TorchModel> && EncodingModel<TorchModel>);

auto const file = std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/translate/model/model.safetensors";

std::shared_ptr<Weights const> const& eigen_weights() {
  static auto const weights = Weights::load(file);
  return weights;
}
std::shared_ptr<TorchWeights const> const& torch_weights() {
  static auto const weights = TorchWeights::load(file, at::kFloat);
  return weights;
}

/// What `pieces encode` makes of examples/apps/translate/sample.de.
std::vector<Tokens> const& sample() {
  static auto const sources = [] {
    std::ifstream stream(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/libtorch/sample.tokens");
    std::vector<Tokens> result;
    for (std::string line; std::getline(stream, line);) {
      std::istringstream words(line);
      auto& tokens = result.emplace_back();
      for (Token token = 0; words >> token;) tokens.push_back(token);
    }
    return result;
  }();
  return sources;
}

LengthLimits const length{.min = 1, .max = 100};
Greedy const greedy{.length = length};
BeamSearch const beam{.width = 5, .length = length, .penalty = {.alpha = 1}};

/// What the Transformer of Eigen says.
template <class S>
std::vector<Result> const& reference(S const& search) {
  static auto const results = [&] {
    Transformer model(eigen_weights());
    auto const& w = model.weights();
    return decode(model, sample(), search, Batched{.size = 64}, DenseProjection(w.projection(), w.bias));
  }();
  return results;
}

/// How many sentences are others than expected; in those that are the same, how far the scores are apart.
struct Difference {
  std::size_t sentences = 0;
  double score = 0;
};
Difference difference(std::vector<Result> const& results, std::vector<Result> const& expected) {
  REQUIRE(results.size() == expected.size());
  Difference sum;
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(results[i].message);
    REQUIRE(results[i].hypotheses.size() == 1);
    auto const& own = results[i].hypotheses[0];
    auto const& other = expected[i].hypotheses.at(0);
    if (own.tokens != other.tokens) ++sum.sentences;
    else sum.score = std::max(sum.score, std::abs(own.score - other.score));
  }
  return sum;
}

}  // namespace

TEST_CASE("translations are those of the Transformer of Eigen", "[libtorch]") {
  REQUIRE(sample().size() == 60);
  TorchModel model(torch_weights());
  auto const by_greedy = difference(decode(model, sample(), greedy, Batched{.size = 64}), reference(greedy));
  CHECK(by_greedy.sentences == 0);
  CHECK(by_greedy.score < 1e-4);
  auto const by_beam = difference(decode(model, sample(), beam, Batched{.size = 64}), reference(beam));
  CHECK(by_beam.sentences == 0);
  CHECK(by_beam.score < 1e-4);
}

TEST_CASE("neither batch nor schedule changes a translation", "[libtorch]") {
  std::vector<Tokens> const few(sample().begin(), sample().begin() + 20);
  std::vector<Result> const expected(reference(beam).begin(), reference(beam).begin() + 20);
  auto const check = [&](auto schedule, Intake const& intake) {
    SlotChecker<TorchModel> model(TorchModel{torch_weights()}, {.first_child_in_place = true});
    auto const results = decode(model, few, beam, schedule, LogSoftmaxTopK(), intake);
    CHECK(model.report().empty());
    auto const found = difference(results, expected);
    CHECK(found.sentences == 0);
    CHECK(found.score < 1e-4);
  };
  SECTION("one by one") { check(Batched{.size = 1}, {}); }
  SECTION("few, sorted by length") { check(Batched{.size = 7}, {.window = 20}); }
  SECTION("streaming") { check(Streaming{.size = 8, .refill_below = 1}, {}); }
  SECTION("encoded ahead, in another thread") { check(Streaming{.size = 8}, {.encode_ahead = 16}); }
}

TEST_CASE("weights of another type on the CPU give nearly the same translations", "[libtorch]") {
  TorchModel model(TorchWeights::load(file, at::kBFloat16));
  CHECK(difference(decode(model, sample(), beam, Batched{.size = 64}), reference(beam)).sentences <= 10);
}

namespace {

/// Steps at random: what a decoder may ask of slots, and more forks, blocks and roll-backs than any does.
class Walk {
 public:
  explicit Walk(std::uint32_t seed) : random_(seed) {}

  struct Step {
    std::vector<Row> rows;
    std::vector<Tokens> tokens;  // of the rows
  };

  /// Calls start(source, slot), release(slot) and step(rows).
  template <class Start, class Release, class Make>
  void go(int steps, Start&& start, Release&& release, Make&& step) {
    for (int i = 0; i < steps; ++i) {
      if (below(8) == 0) spread_ = 1 + below(60);
      for (std::size_t n = below(3); n > 0; --n)
        if (auto const slot = Slot(below(spread_)); !held_.contains(slot)) {
          start(random_tokens(1 + below(below(4) == 0 ? 40 : 9)), slot);
          held_[slot] = 0;
        }
      if (below(4) == 0 && !held_.empty()) {
        auto const gone = std::next(held_.begin(), static_cast<std::ptrdiff_t>(below(held_.size())));
        release(gone->first);
        held_.erase(gone);
      }
      if (held_.empty()) continue;
      auto const made = make();
      step(made.rows);
    }
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  Tokens random_tokens(std::size_t size) {
    Tokens tokens(size);
    for (auto& token : tokens) token = static_cast<Token>(3 + below(7997));
    return tokens;
  }
  Step make() {
    std::map<Slot, Row> rows;  // by `to`
    auto const before = held_;
    auto const dense = below(3) != 0;
    for (auto const& [slot, held] : before) {
      if (!dense && below(2) == 0) continue;
      auto const add = [&](Slot to) {
        auto const keeps = below(6) == 0 ? static_cast<std::int32_t>(below(static_cast<std::size_t>(held) + 1)) : held;
        auto const count = static_cast<std::int32_t>(below(4) == 0 ? 1 + below(5) : 1);
        rows[to] = {slot, to, keeps, {}, 1 + static_cast<std::int32_t>(below(static_cast<std::size_t>(count)))};
        counts_[to] = count;
        held_[to] = keeps + count;
      };
      if (below(10) != 0) add(slot);
      for (auto n = below(4) == 0 ? below(4) : 0; n > 0; --n)
        if (auto const to = Slot(below(spread_)); !before.contains(to) && !rows.contains(to)) add(to);
    }
    if (rows.empty()) {
      auto const& [slot, held] = *before.begin();
      rows[slot] = {slot, slot, held, {}, 1};
      counts_[slot] = 1;
      held_[slot] = held + 1;
    }
    Step result;
    result.tokens.reserve(rows.size());
    for (auto [to, row] : rows) {
      row.tokens = result.tokens.emplace_back(random_tokens(static_cast<std::size_t>(counts_[to])));
      result.rows.push_back(row);
    }
    return result;
  }

  std::mt19937 random_;
  std::size_t spread_ = 12;
  std::map<Slot, std::int32_t> held_, counts_;
};

}  // namespace

TEST_CASE("whatever is asked of slots, lines are those of the Transformer of Eigen", "[libtorch]") {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    Transformer expected(eigen_weights());
    TorchModel model(torch_weights());
    auto const& w = expected.weights();
    PackedMatrix const projection(w.projection(), w.bias);
    double worst = 0;
    Walk(seed).go(
        25,
        [&](Tokens const& source, Slot slot) {
          Tokens const* const sources[] = {&source};
          expected.start(sources, std::span(&slot, 1)), model.start(sources, std::span(&slot, 1));
        },
        [&](Slot slot) { expected.release(std::span(&slot, 1)), model.release(std::span(&slot, 1)); },
        [&](std::vector<Row> const& rows) {
          auto const hidden = expected.step(rows);
          std::vector<float> logits(static_cast<std::size_t>(hidden.rows) * 8000);
          projection.multiply(hidden, {logits.data(), hidden.rows, 8000, 8000});
          auto const scores = model.step(rows);
          REQUIRE(scores.rows == hidden.rows);
          REQUIRE(scores.columns == 8000);
          for (std::ptrdiff_t i = 0; i < scores.rows; ++i)
            for (std::ptrdiff_t v = 0; v < 8000; ++v) {
              auto const apart =
                  std::abs(scores[i][static_cast<std::size_t>(v)] - logits[static_cast<std::size_t>(i * 8000 + v)]);
              worst = apart <= worst ? worst : static_cast<double>(apart);  // a NaN sticks
            }
        });
    INFO("seed " << seed << ": " << worst);
    CHECK(worst < 1e-3);
  }
}

TEST_CASE("a sentence that is no number spoils no other, at the same time or later", "[libtorch]") {
  Token const poison = 4000;
  auto weights = *torch_weights();
  weights.embedding = weights.embedding.clone();
  weights.embedding[poison].fill_(std::numeric_limits<float>::quiet_NaN());
  TorchModel model(std::make_shared<TorchWeights const>(weights));
  TorchModel clean(torch_weights());
  Tokens const good{500, 600, 700}, bad{500, poison, 600, 700, 800};
  auto const start = [](TorchModel& m, Tokens const& source, Slot slot) {
    Tokens const* const sources[] = {&source};
    m.start(sources, std::span(&slot, 1));
  };
  auto const some_nan = [](Scores<float> const& scores, std::ptrdiff_t line) {
    // The poisoned row of the embedding is a NaN in every line, as an output.
    for (std::size_t v = 0; v < 8000; ++v)
      if (v != poison && std::isnan(scores[line][v])) return true;
    return false;
  };
  Tokens const bos{1}, next{900}, nan{poison};

  // Encoded together, of different lengths.
  Tokens const* const both[] = {&bad, &good};
  Slot const apart[] = {0, 1};
  model.start(both, apart);
  Row const begin[] = {{0, 0, 0, bos}, {1, 1, 0, bos}};
  auto scores = model.step(begin);
  CHECK(some_nan(scores, 0));
  CHECK_FALSE(some_nan(scores, 1));
  model.release(apart);

  // Sources and slots of which one has a NaN, in one step, forked and not.
  start(model, bad, 0), start(model, good, 1), start(model, good, 3);
  Row const first[] = {{0, 0, 0, bos}, {1, 1, 0, bos}, {3, 3, 0, nan}};
  scores = model.step(first);
  CHECK(some_nan(scores, 0));
  CHECK_FALSE(some_nan(scores, 1));
  CHECK(some_nan(scores, 2));
  Row const second[] = {{1, 1, 1, next}, {1, 2, 1, next}, {3, 3, 1, next}, {3, 4, 1, next}};
  scores = model.step(second);
  CHECK_FALSE(some_nan(scores, 0));
  CHECK_FALSE(some_nan(scores, 1));
  CHECK(some_nan(scores, 2));
  CHECK(some_nan(scores, 3));

  // Slots and places of sources are used again, with fewer tokens than before, beside a longer sentence.
  Slot const all[] = {0, 1, 2, 3, 4};
  model.release(all);
  Tokens const longer{500, 600, 700, 800, 900, 1000, 1100}, five{1, 50, 60, 70, 80};
  for (auto* m : {&model, &clean}) start(*m, good, 0), start(*m, longer, 1), start(*m, good, 3);
  Row const again[] = {{0, 0, 0, bos}, {1, 1, 0, five}, {3, 3, 0, bos}, {3, 4, 0, bos}};
  Row const on[] = {{0, 0, 1, next}, {1, 1, 5, next}, {3, 3, 1, next}, {4, 4, 1, next}};
  for (auto const rows : {std::span<Row const>(again), std::span<Row const>(on)}) {
    scores = model.step(rows);
    auto const expected = clean.step(rows);
    for (std::ptrdiff_t i = 0; i < std::ssize(rows); ++i) {
      CHECK_FALSE(some_nan(scores, i));
      CHECK_THAT(scores[i][42], WithinAbs(static_cast<double>(expected[i][42]), 1e-4));
    }
  }
}

TEST_CASE("rows that break the contract are refused", "[libtorch]") {
  TorchModel model(torch_weights(), TorchTransformerOptions{.length = 8});
  CHECK(model.limits().length == 8);
  Tokens const source{500, 600};
  Tokens const* const sources[] = {&source};
  Slot const slot = 0;
  model.start(sources, std::span(&slot, 1));
  Tokens const one{1}, nine(9, 5), outside{8000}, none;
  auto const message = [&](Row const& row) -> std::string {
    try {
      model.step(std::span(&row, 1));
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(message({1, 1, 0, one}) == "sluice: TorchTransformer: row.from = 1: must be a slot that was started");
  CHECK(message({0, -1, 0, one}) == "sluice: TorchTransformer: row.to = -1: must be >= 0");
  CHECK(message({0, 0, 1, one}) ==
        "sluice: TorchTransformer: row.length = 1: must be in [0, tokens that row.from holds]");
  CHECK(message({0, 0, 0, none}) == "sluice: TorchTransformer: row.tokens.size() = 0: must be > 0");
  CHECK(message({0, 0, 0, nine}) ==
        "sluice: TorchTransformer: row.length + row.tokens.size() = 9: must not exceed the length limit");
  CHECK(message({0, 0, 0, one, 2}) == "sluice: TorchTransformer: row.lines = 2: must be in [1, row.tokens.size()]");
  CHECK(message({0, 0, 0, outside}) == "sluice: TorchTransformer: token = 8000: must be in [0, V)");
  CHECK(message({0, 0, 0, one}).empty());
  model.release(std::span(&slot, 1));
  CHECK(message({0, 0, 0, one}) == "sluice: TorchTransformer: row.from = 0: must be a slot that was started");
  Tokens const long_one(8, 500);
  Tokens const* const too_long[] = {&long_one};
  CHECK_THROWS_AS(model.encode(too_long), std::invalid_argument);
  CHECK_THROWS_AS(TorchModel(nullptr), std::invalid_argument);
  CHECK_THROWS_AS(TorchModel(torch_weights(), TorchTransformerOptions{.length = 0}), std::invalid_argument);
}

TEST_CASE("random weights give outputs of full length, and the same for the same seed", "[libtorch]") {
  TorchShape const shape{.d = 64, .ff = 96, .heads = 2, .encoder_layers = 1, .decoder_layers = 3, .vocabulary = 77};
  auto const translate = [&](std::uint64_t seed) {
    // [random]
    HostScores<TorchTransformer> model(TorchWeights::random(shape, at::kFloat, seed));
    // [/random]
    CHECK(model.vocabulary().size == 77);
    return decode(model, std::vector<Tokens>{{5, 6, 7}, {8}}, BeamSearch{.width = 3, .length = {.max = 12}});
  };
  auto const results = translate(1), same = translate(1), others = translate(2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(results[i].hypotheses.size() == 1);
    CHECK(results[i].hypotheses[0].tokens.size() == 12);
    CHECK(results[i].hypotheses[0].tokens == same[i].hypotheses[0].tokens);
    CHECK(results[i].hypotheses[0].tokens != others[i].hypotheses[0].tokens);
  }
  CHECK_THROWS_AS(TorchWeights::random({.d = 65}, at::kFloat), std::invalid_argument);
}

namespace {

/// Gives one tensor, whatever is asked.
// [least]
struct OneTensor {
  using Source = int;
  at::Tensor tensor;
  Vocabulary vocabulary() const { return {.size = 4}; }
  void start(std::span<int const* const>, std::span<Slot const>) {}
  at::Tensor logits(std::span<Row const>) { return tensor; }
};
// [/least]

}  // namespace

TEST_CASE("scores are the tensor's own memory, copied only from another type", "[libtorch]") {
  HostScores<OneTensor> model;
  static_assert(Model<HostScores<OneTensor>>);
  Tokens const token{1};
  Row const rows[] = {{0, 0, 0, token}, {1, 1, 0, token}};
  auto const wide = at::arange(12, at::kFloat).view({2, 6});
  model.tensor = wide.narrow(1, 1, 4);
  auto scores = model.step(rows);
  CHECK(scores.data == wide.data_ptr<float>() + 1);
  CHECK(scores.stride == 6);
  CHECK(scores[1][3] == 10);
  model.tensor = model.tensor.to(at::kBFloat16);
  scores = model.step(rows);
  CHECK(scores.rows == 2);
  CHECK(scores[1][3] == 10);
  for (auto const& wrong : {wide[0], wide.narrow(0, 0, 1), wide.t().narrow(0, 0, 2)}) {
    model.tensor = wrong;
    CHECK_THROWS_AS(model.step(rows), std::invalid_argument);
  }
}

// ---- on a GPU -------------------------------------------------------------------------------------------------------

namespace {

/// Whether there is no GPU; says so.
bool no_gpu() {
  if (at::globalContext().hasCUDA()) return false;
  std::cout << "SKIPPED: torch has no GPU here\n";
  return true;
}

}  // namespace

TEST_CASE("a GPU translates as the CPU does, with scores copied to the host", "[libtorch-gpu]") {
  if (no_gpu()) return;
  TorchModel model(TorchWeights::load(file, at::TensorOptions(at::kCUDA).dtype(at::kFloat)));
  auto const by_greedy = difference(decode(model, sample(), greedy, Batched{.size = 64}), reference(greedy));
  CHECK(by_greedy.sentences == 0);
  CHECK(by_greedy.score < 1e-4);
  auto const streamed = difference(decode(model, sample(), beam, Streaming{.size = 8}), reference(beam));
  CHECK(streamed.sentences == 0);
  CHECK(streamed.score < 1e-4);
}

#if SLUICE_TORCH_CUDA

TEST_CASE("a GPU translates as the CPU does, with scores that stay there", "[libtorch-gpu]") {
  if (no_gpu()) return;
  DeviceScores<TorchTransformer, float> model(TorchWeights::load(file, at::TensorOptions(at::kCUDA).dtype(at::kFloat)));
  auto const by_greedy =
      difference(decode(model, sample(), greedy, Batched{.size = 64}, cuda::LogSoftmaxTopK()), reference(greedy));
  CHECK(by_greedy.sentences == 0);
  CHECK(by_greedy.score < 1e-4);
  auto const by_beam =
      difference(decode(model, sample(), beam, Streaming{.size = 8}, cuda::LogSoftmaxTopK()), reference(beam));
  CHECK(by_beam.sentences == 0);
  CHECK(by_beam.score < 1e-4);
}

TEST_CASE("half precision on a GPU gives nearly the same translations", "[libtorch-gpu]") {
  if (no_gpu()) return;
  DeviceScores<TorchTransformer, __half> model(TorchWeights::load(file, at::TensorOptions(at::kCUDA).dtype(at::kHalf)));
  auto const results = decode(model, sample(), beam, Batched{.size = 64}, cuda::LogSoftmaxTopK());
  CHECK(difference(results, reference(beam)).sentences <= 6);
}

#endif
