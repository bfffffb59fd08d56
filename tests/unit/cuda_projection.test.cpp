// SPDX-License-Identifier: Apache-2.0
// The device's output layers, host code and all, over a runtime in the host's memory and emulated devices.
#include <sluice/cuda/clustered_projection.cuh>
#include <sluice/cuda/dense_projection.cuh>
#include <sluice/cuda/log_softmax_top_k.cuh>

#include <support/catch.hpp>
#include <support/emulated_launches.hpp>
#include <support/line_reference.hpp>
#include <support/output_layer.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Union = cuda::ClusteredOptions::Union;
constexpr float none = -std::numeric_limits<float>::infinity();

static_assert(Expander<cuda::DenseProjection<float>, cuda::Hidden<float>>);
static_assert(Expander<cuda::ClusteredProjection<__nv_bfloat16>, cuda::Hidden<__nv_bfloat16>>);
static_assert(!Expander<cuda::DenseProjection<float>, cuda::Hidden<__nv_bfloat16>>);

/// While it lives, lines are answered without an emulated device.
struct Plain {
  Plain() { plain_lines = true; }
  ~Plain() { plain_lines = false; }
};

/// A query that a device answers, with what it points to.
std::unique_ptr<RandomQuery> device_query(std::mt19937_64& random, std::size_t size, std::int32_t most) {
  auto made = std::make_unique<RandomQuery>(random, size, QueryFields{.selection = false, .only = false});
  auto& query = made->query;
  query.best = std::min(query.best, most);
  if (query.stage == Stage::after_softmax)
    for (auto& edit : made->edits) edit.penalty = 1;
  return made;
}

struct Queries {
  Queries(std::mt19937_64& random, std::size_t lines, std::size_t size, std::int32_t most) {
    for (std::size_t i = 0; i < lines; ++i) {
      made.push_back(device_query(random, size, most));
      queries.push_back(made.back()->query);
    }
  }
  std::vector<std::unique_ptr<RandomQuery>> made;
  std::vector<Query> queries;
};

/// Lines with ties in memory that begins at a multiple of 16 bytes, as a device's.
struct Lines {
  Lines(std::mt19937_64& random, std::size_t rows_, std::size_t size_) : rows(rows_), size(size_), memory(rows * size) {
    std::normal_distribution<float> normal(0, 3);
    for (auto& x : memory) x = normal(random);
    if (below(random, 3) == 0)
      for (auto& x : memory) x = std::round(x);
    if (below(random, 4) == 0)
      for (auto& x : memory)
        if (below(random, 20) != 0) x = none;
    if (below(random, 6) == 0) memory[below(random, memory.size())] = std::numeric_limits<float>::quiet_NaN();
  }
  cuda::Scores<float> scores() const {
    return cuda::scores(memory.data(), static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(size));
  }
  std::span<float const> operator[](std::size_t row) const { return std::span(memory).subspan(row * size, size); }
  std::size_t rows, size;
  std::vector<float> memory;
};

/// Makes its lines tile by tile.
class Tiled {
 public:
  Tiled(Lines const& lines, std::ptrdiff_t width) : lines_(lines), width_(width) {}
  Expansion expand(std::span<Query const> queries) {
    cuda::LineTask<float> task;
    task.scores.columns = static_cast<std::ptrdiff_t>(lines_.size);
    return output.exchange(task, Kind::logits, nullptr, queries, {}, [&](cuda::LineTask<float> const& all) {
      memory_.assign(static_cast<std::size_t>(all.scores.rows * width_ + 4), 0);
      auto* const tile = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 15) / 16 * 16);
      output.enqueue_tiles(all, MatrixView<float>{tile, all.scores.rows, width_, width_}, nullptr,
                           [&](std::ptrdiff_t first, std::ptrdiff_t count) {
                             ++tiles;
                             HostCuda::get().add([=, this] {
                               for (std::size_t row = 0; row < lines_.rows; ++row)
                                 std::copy_n(lines_[row].data() + first, count,
                                             tile + static_cast<std::ptrdiff_t>(row) * width_);
                             });
                           });
    });
  }
  cuda::LogSoftmaxTopK output;
  int tiles = 0;

 private:
  Lines const& lines_;
  std::ptrdiff_t width_;
  std::vector<float> memory_;
};

template <class T>
T rounded(float x) {
  return static_cast<T>(x);
}

/// An output layer whose numbers are exact in T, as the device sees it: rows of d, or of more.
template <class T>
struct DeviceLayer {
  DeviceLayer(std::uint64_t seed, std::ptrdiff_t vocabulary, std::ptrdiff_t depth, std::size_t per_cluster = 12)
      : layer(seed, vocabulary, depth, 1, per_cluster), stride(depth + (seed % 3 == 0 ? 3 : 0)) {
    auto const exact = [](std::vector<float>& numbers) {
      for (auto& x : numbers) x = static_cast<float>(rounded<T>(x));
    };
    exact(layer.weights);
    for (auto& clusters : layer.clusters) exact(clusters.centroids);
    weights = std::vector<T>(static_cast<std::size_t>(vocabulary * stride + 16));
    auto const lead = (16 - reinterpret_cast<std::uintptr_t>(weights.data()) % 16) % 16 / sizeof(T);
    first = weights.data() + lead;
    for (std::ptrdiff_t v = 0; v < vocabulary; ++v)
      for (std::ptrdiff_t k = 0; k < depth; ++k) first[v * stride + k] = rounded<T>(layer.view()[v][k]);
  }
  /// Hidden vectors that are exact in T and clearly nearest to one centroid.
  std::vector<float> vectors(std::size_t count) {
    std::vector<float> all;
    while (all.size() < count * static_cast<std::size_t>(layer.d)) {
      auto h = layer.vectors(1);
      for (auto& x : h) x = static_cast<float>(rounded<T>(x));
      if (OutputLayer::nearest(layer.clusters[0], h)) all.insert(all.end(), h.begin(), h.end());
    }
    return all;
  }
  /// In memory that begins at a multiple of 16 bytes.
  cuda::Hidden<T> hidden(std::vector<float> const& h, std::vector<T>& memory) const {
    memory.assign(h.size() + 16, T{});
    auto* const at = memory.data() + (16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16) % 16 / sizeof(T);
    std::transform(h.begin(), h.end(), at, rounded<T>);
    return cuda::hidden<T>(at, static_cast<std::ptrdiff_t>(h.size()) / layer.d, layer.d);
  }
  MatrixView<T const> view() const { return {first, layer.size, layer.d, stride}; }

  OutputLayer layer;
  std::ptrdiff_t stride;
  std::vector<T> weights;
  T* first;
};

}  // namespace

TEST_CASE("lines made in tiles get the answers of whole lines, bit for bit", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    Lines const lines(random, 1 + below(random, 3), 1 + below(random, 30000));
    Queries const asked(random, lines.rows, lines.size, seed % 4 == 0 ? 1 : 64);
    auto const width = 4096 * (1 + static_cast<std::ptrdiff_t>(below(random, 3)));
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size << ", tiles of " << width);
    HostCuda::get().processors = seed % 2 == 0 ? 1 : 100;  // many chunks a block, or one
    cuda::LogSoftmaxTopK whole;
    auto const expected = kept(whole.expand(lines.scores(), asked.queries, {}));
    Tiled tiled(lines, width);
    auto const got = tiled.expand(asked.queries);
    if (static_cast<std::ptrdiff_t>(lines.size) > width) CHECK(tiled.tiles > 1);
    for (std::size_t row = 0; row < lines.rows; ++row) {
      CHECK(same_line(got[row], expected[row].view()));
      check_line(got[row], expected_line<float>(lines[row], Kind::logits, asked.queries[row]), asked.queries[row]);
    }
  }
  HostCuda::get().processors = 4;
}

TEST_CASE("lists of more than 64 are right, ties too, and begin as shorter ones do", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    Lines const lines(random, 1 + below(random, 4), 70 + below(random, 3000));
    Queries asked(random, lines.rows, lines.size, 4000);
    asked.queries[0].best = 65 + static_cast<std::int32_t>(below(random, seed % 3 == 0 ? 4000 : 200));
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size);
    cuda::LogSoftmaxTopK output, shorter;
    auto const got = kept(output.expand(lines.scores(), asked.queries, {}));
    auto fewer = asked.queries;
    for (auto& query : fewer) query.best = std::min(query.best, 64);
    auto const head = shorter.expand(lines.scores(), fewer, {});
    for (std::size_t row = 0; row < lines.rows; ++row) {
      auto const& query = asked.queries[row];
      auto const expected = expected_line<float>(lines[row], Kind::logits, query);
      auto line = got[row].view();
      check_line(line, expected, query);
      if (query.edits.empty() && query.temperature == 1.0f && expected.valid)
        for (std::size_t i = 0; i < line.best.size(); ++i) REQUIRE(line.best[i].token == expected.list[i]);
      line.best = line.best.first(std::min(line.best.size(), head[row].best.size()));
      CHECK(same_line(line, head[row]));
    }
  }
}

TEMPLATE_TEST_CASE("cuda dense_projection is a softmax over W h + b", "[cuda]", float, __nv_bfloat16) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    DeviceLayer<TestType> model(seed, seed % 4 == 0 ? 10000 + static_cast<std::ptrdiff_t>(seed) : 100,
                                1 + static_cast<std::ptrdiff_t>(seed % 19));
    auto& random = model.layer.random;
    auto const lines = 1 + below(random, 5);
    auto const h = model.vectors(lines);
    std::vector<TestType> memory;
    auto const with_bias = seed % 2 == 0;
    if (!with_bias) std::fill(model.layer.bias.begin(), model.layer.bias.end(), 0.0f);
    // Tiles that are too small for all lines, for all columns, or for neither.
    cuda::DenseProjection<TestType> projection(
        model.view(), with_bias ? model.layer.bias : std::vector<float>{},
        std::vector<std::size_t>{0, 1, 3 * 4096 * sizeof(float)}[below(random, 3)]);
    for (int round = 0; round < 2; ++round) {
      Queries asked(random, lines, static_cast<std::size_t>(model.layer.size), seed % 5 == 0 && round == 1 ? 300 : 64);
      if (seed % 5 == 0 && round == 1) asked.queries[0].best = 90;
      auto const got = projection.expand(model.hidden(h, memory), asked.queries, {});
      for (std::size_t i = 0; i < lines; ++i) {
        INFO("seed " << seed << ", line " << i);
        check_line(got[i],
                   expected_line<double>(model.layer.logits(model.layer.row(h, i), {}), Kind::logits, asked.queries[i]),
                   asked.queries[i], 2e-5);
      }
    }
  }
}

TEMPLATE_TEST_CASE("cuda clustered_projection is a softmax over the active tokens, however it is computed", "[cuda]",
                   float, __nv_bfloat16) {
  std::set<std::string> ways;
  Plain const plain;
  for (std::uint64_t seed = 1; seed <= 48; ++seed) {
    auto const unite = seed % 2 == 0 ? Union::sentence : Union::batch;
    // Depths that can be read in place, and others.
    DeviceLayer<TestType> model(seed, 30 + static_cast<std::ptrdiff_t>(seed) * (seed % 12 == 0 ? 90 : 5),
                                seed % 5 < 3 ? 8 * (1 + static_cast<std::ptrdiff_t>(seed % 2)) : 5);
    auto& layer = model.layer;
    cuda::ClusteredOptions options{.always = {2, 5}, .unite = unite};
    options.full_above = seed % 4 == 0 ? 1.0 : 0.3 + 0.1 * static_cast<double>(seed % 5);
    options.full_below = seed % 7 == 0 ? options.full_below : 0;
    options.token_cost = seed % 9 == 0 ? 5 : 1;
    options.few_lines = seed % 3 == 0 ? 0 : 16;
    options.tile_bytes = seed % 8 == 0 ? 1 : 0;
    sluice::ClusteredOptions const reference{.always = options.always,
                                             .unite = unite == Union::batch ? sluice::ClusteredOptions::Union::batch
                                                                            : sluice::ClusteredOptions::Union::sentence,
                                             .full_above = options.full_above};
    cuda::ClusteredProjection<TestType> projection(model.view(), layer.bias, layer.clusters[0], options);
    cuda::ClusteredStatistics counted;
    for (int round = 0; round < 3; ++round) {
      std::vector<Group> groups;
      std::vector<std::int32_t> directions;
      for (auto g = 1 + below(layer.random, 5); g > 0; --g) {
        auto const lines = static_cast<std::int32_t>(below(layer.random, 5));
        groups.push_back({.lines = lines, .direction = below(layer.random, 9) == 0 ? 1 : 0});
        directions.insert(directions.end(), static_cast<std::size_t>(lines), groups.back().direction);
      }
      Queries const asked(layer.random, directions.size(), static_cast<std::size_t>(layer.size), 64);
      auto const h = model.vectors(directions.size());
      std::vector<TestType> memory;
      auto const before = projection.statistics();
      auto const got = projection.expand(model.hidden(h, memory), asked.queries, groups);
      auto const after = projection.statistics();
      auto const reduced = after.reduced > before.reduced;
      ways.insert(!reduced ? "all" : after.gathered > before.gathered ? "gathered" : "in place");
      counted.lines += asked.queries.size();
      auto const check_lines = [&](std::size_t first, std::size_t count) {
        if (count == 0) return;
        auto const queries = std::span(asked.queries).subspan(first, count);
        auto const active = layer.active(h, first, queries, std::span(directions).subspan(first, count), reference);
        ++counted.unions;
        if (active) counted.active += active->size();
        else ++counted.full;
        for (auto i = first; i < first + count; ++i) {
          INFO("seed " << seed << ", round " << round << ", line " << i << ", active "
                       << (active ? std::ssize(*active) : -1) << " of " << layer.size);
          auto const expected =
              expected_line<double>(layer.logits(layer.row(h, i), active), Kind::logits, asked.queries[i]);
          check_line(got[i], expected, asked.queries[i], 2e-5);
          for (auto const& c : got[i].best) CHECK((!active || active->contains(c.token)));
        }
      };
      std::size_t first = 0;
      if (unite == Union::batch) check_lines(0, asked.queries.size());
      else
        for (auto const& group : groups) {
          check_lines(first, static_cast<std::size_t>(group.lines));
          first += static_cast<std::size_t>(group.lines);
        }
    }
    auto const& seen = projection.statistics();
    CHECK(seen.lines == counted.lines);
    CHECK(seen.unions == counted.unions);
    CHECK(seen.full == counted.full);
    CHECK(seen.active == counted.active);
  }
  CHECK(ways == std::set<std::string>{"all", "gathered", "in place"});
}

TEST_CASE("cuda clustered_projection says what the host's says", "[cuda]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    DeviceLayer<float> model(3 * seed + 1, 400, 16);
    auto& layer = model.layer;
    auto const nearest = std::min<std::int32_t>(2, static_cast<std::int32_t>(layer.clusters[0].size()));
    sluice::ClusteredProjection host(layer.view(), layer.bias, layer.clusters[0], {.always = {2}, .nearest = nearest});
    cuda::ClusteredOptions options{.always = {2}, .nearest = nearest};
    options.full_below = 0;
    cuda::ClusteredProjection<float> device(model.view(), layer.bias, layer.clusters[0], options);
    std::vector<Group> const groups{{.lines = 3, .keep = 4}, {.lines = 1}, {.lines = 2}};
    Queries const asked(layer.random, 6, static_cast<std::size_t>(layer.size), 8);
    auto h = model.vectors(6);
    if (seed % 2 == 0) h[2 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();  // one line fails; its sentence goes on
    std::vector<float> memory;
    auto const expected = host.expand(hidden(h.data(), 6, layer.d), asked.queries, groups);
    auto const got = device.expand(model.hidden(h, memory), asked.queries, groups);
    for (std::size_t i = 0; i < 6; ++i) {
      INFO("seed " << seed << ", line " << i);
      auto const a = got[i], b = expected[i];
      REQUIRE(a.valid == b.valid);
      REQUIRE(a.best.size() == b.best.size());
      for (std::size_t j = 0; j < a.best.size(); ++j) {
        CHECK(a.best[j].token == b.best[j].token);
        CHECK_THAT(a.best[j].log_prob, WithinAbs(static_cast<double>(b.best[j].log_prob), 5e-5));
      }
    }
    CHECK(device.statistics().active == host.statistics().active);
  }
}

TEST_CASE("cuda clustered_projection gathers weights once while the union stays", "[cuda]") {
  DeviceLayer<float> model(4, 300, 16);
  cuda::ClusteredOptions options{.always = {2}};
  options.full_below = 0, options.few_lines = 0;
  cuda::ClusteredProjection<float> projection(model.view(), model.layer.bias, model.layer.clusters[0], options);
  std::vector<float> memory;
  std::vector<Query> queries(6, Query{.best = 1});
  auto const h = model.vectors(6);
  for (int i = 0; i < 3; ++i) projection.expand(model.hidden(h, memory), queries, {});
  CHECK(projection.statistics().reduced == 3);
  CHECK(projection.statistics().gathered == 1);
  std::vector<Token> const probes{299};
  queries[3].probes = probes;  // another union
  projection.expand(model.hidden(h, memory), queries, {});
  CHECK(projection.statistics().gathered == 2);
  queries[3].probes = {};  // and the old one again
  auto const allocations = HostCuda::get().allocations;
  auto const again = kept(projection.expand(model.hidden(h, memory), queries, {}));
  CHECK(projection.statistics().gathered == 3);
  CHECK(HostCuda::get().allocations == allocations);
  cuda::ClusteredProjection<float> other(model.view(), model.layer.bias, model.layer.clusters[0], options);
  auto const expected = other.expand(model.hidden(h, memory), queries, {});
  for (std::size_t i = 0; i < 6; ++i) CHECK(same_line(again[i].view(), expected[i]));
}

TEST_CASE("few lines times gathered weights: sums do not depend on how many lines and tokens there are", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    auto const depth = 8 * (1 + static_cast<std::int32_t>(below(random, 80)));
    constexpr std::int32_t vocabulary = 50;
    std::vector<cuda::Words> weights(static_cast<std::size_t>(vocabulary * depth / 8)), vectors(weights.size());
    auto* const w = reinterpret_cast<std::uint16_t*>(weights.data());
    auto* const h = reinterpret_cast<std::uint16_t*>(vectors.data());
    for (std::int32_t i = 0; i < vocabulary * depth; ++i) {
      w[i] = __nv_bfloat16(normal_numbers(random, 1)[0]).bits;
      h[i] = __nv_bfloat16(normal_numbers(random, 1)[0]).bits;
    }
    std::vector<Token> tokens;
    for (Token t = 0; t < vocabulary; ++t)
      if (below(random, 3) != 0) tokens.push_back(t);
    auto const lines = 1 + static_cast<std::int32_t>(below(random, 16));
    auto const product = [&](std::int32_t some, std::size_t first) {
      std::vector<float> logits(static_cast<std::size_t>(some) * 60, 7);
      cuda::SkinnyLaunch<cuda::BFloat16> launch{w, depth, h, depth, some, depth, tokens.data() + first};
      launch.count = static_cast<std::int32_t>(tokens.size() - first);
      launch.logits = logits.data(), launch.stride = 60;
      cuda::launch_skinny(launch, nullptr);
      HostCuda::get().wait();
      return logits;
    };
    auto const all = product(lines, 0), last = product(1, tokens.size() / 2);
    for (std::size_t i = 0; i < 60 * static_cast<std::size_t>(lines); ++i) {
      auto const line = static_cast<std::int32_t>(i / 60);
      if (i % 60 >= tokens.size()) {
        CHECK(all[i] == 7);  // nobody's
        continue;
      }
      double sum = 0;
      for (std::int32_t k = 0; k < depth; ++k)
        sum += static_cast<double>(cuda::BFloat16::value(w[tokens[i % 60] * depth + k])) *
               static_cast<double>(cuda::BFloat16::value(h[line * depth + k]));
      CHECK_THAT(all[i], WithinAbs(sum, 1e-4));
    }
    for (std::size_t i = tokens.size() / 2; i < tokens.size(); ++i) CHECK(last[i - tokens.size() / 2] == all[i]);
  }
}

TEST_CASE("a union is listed in order, and each of its barriers is missed", "[cuda]") {
  constexpr std::int32_t words = 500, unions = 3, lines = 40;
  struct Answer {
    std::vector<Token> tokens;
    std::vector<cuda::UnionResult> results;
  };
  auto const ask = [&](std::uint64_t seed, Faults faults) {
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> joint(words), own(unions * words), before(words);
    for (std::size_t i = 0; i < joint.size(); ++i) {
      joint[i] = seed % 3 == 0 ? ~0u : below(random, 2) == 0 ? 0 : static_cast<std::uint32_t>(random());
      before[i] = below(random, 300) == 0 ? ~joint[i] : joint[i];
    }
    for (auto& word : own) word = static_cast<std::uint32_t>(random() & random());
    std::vector<std::int32_t> union_of(lines), first{0, 7, 25, lines};
    for (std::int32_t i = 0; i < lines; ++i)
      union_of[static_cast<std::size_t>(i)] = i < 7 ? 0 : i < 25 ? 1 : below(random, 3) == 0 ? -1 : 2;
    std::vector<Edit> edits;
    std::vector<cuda::LineQuery> queries(lines);
    for (auto& query : queries) {
      query.best = static_cast<std::int32_t>(below(random, 20));
      query.edits = static_cast<std::int32_t>(edits.size());
      query.edit_count = static_cast<std::int32_t>(below(random, 20));
      for (std::int32_t i = 0; i < query.edit_count; ++i)
        edits.push_back({static_cast<Token>(below(random, 32 * words)), below(random, 3) == 0 ? 1 : none});
    }
    auto const past = before;
    Answer answer{std::vector<Token>(2 * 32 * words, -1), std::vector<cuda::UnionResult>(1 + unions)};
    cuda::UnionLaunch launch;
    launch.words = words, launch.lines = lines, launch.unions = unions;
    launch.union_of = union_of.data(), launch.first = first.data();
    launch.queries = queries.data(), launch.edits = edits.data();
    launch.joint = joint.data(), launch.own = own.data(), launch.before = before.data();
    launch.tokens = answer.tokens.data(), launch.results = answer.results.data();
    auto& device = emulated_device<few_threads>();
    using Memory = cuda::UnionMemory<few_threads>;
    std::vector<bool> begun(1 + unions);  // no count that nobody has written may lead a mutation astray
    device.run<Memory>(1 + unions, 2, seed, faults, [&](auto& block, Memory& memory, int number) {
      if (!begun[static_cast<std::size_t>(number)]) memory = {};
      begun[static_cast<std::size_t>(number)] = true;
      cuda::UnionBlock<std::remove_reference_t<decltype(block)>>(block, memory, launch).run(number);
    });

    Answer right{{}, {{0, 1, past == joint ? 0 : 1}}};
    for (Token t = 0; t < 32 * words; ++t)
      if (cuda::has_bit(joint.data(), static_cast<std::uint32_t>(t))) right.tokens.push_back(t);
    right.results[0].count = static_cast<std::int32_t>(right.tokens.size());
    right.tokens.resize(2 * 32 * words, -1);
    for (std::int32_t u = 0; u < unions; ++u) {
      cuda::UnionResult result;
      for (std::int32_t i = 0; i < words; ++i) result.count += cuda::bits_of(launch.mask(u)[i]);
      for (std::size_t i = 0; i < lines; ++i) {
        auto wanted = queries[i].best;
        for (std::int32_t e = 0; e < queries[i].edit_count; ++e) {
          auto const& edit = edits[static_cast<std::size_t>(queries[i].edits + e)];
          wanted += edit.add == none && cuda::has_bit(launch.mask(u), static_cast<std::uint32_t>(edit.token));
        }
        if (union_of[i] == u) result.wanted = std::max(result.wanted, wanted);
      }
      right.results.push_back(result);
    }
    auto same = answer.tokens == right.tokens && (faults.skipped != cuda::Barrier::count_ || before == joint);
    for (std::size_t i = 0; i < right.results.size(); ++i)
      same = same && answer.results[i].count == right.results[i].count &&
             answer.results[i].wanted == right.results[i].wanted &&
             answer.results[i].changed == right.results[i].changed;
    return same;
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) CHECK(ask(seed, {}));
  for (auto const barrier : {cuda::Barrier::scanned, cuda::Barrier::united}) {
    auto missed = false;
    for (std::uint64_t seed = 0; seed < 30 && !missed; ++seed) missed = !ask(seed, {.skipped = barrier});
    INFO("barrier " << static_cast<int>(barrier));
    CHECK(missed);
  }
}

TEST_CASE("cuda projections refuse what does not fit", "[cuda]") {
  DeviceLayer<float> model(1, 40, 8);
  auto const& clusters = model.layer.clusters[0];
  std::vector<float> const short_bias(39);
  CHECK_THROWS_AS(cuda::DenseProjection<float>(model.view(), short_bias), std::invalid_argument);
  CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), short_bias, clusters), std::invalid_argument);
  auto const refuses = [&](cuda::ClusteredOptions options) {
    CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), {}, clusters, std::move(options)),
                    std::invalid_argument);
  };
  refuses({.always = {40}});
  refuses({.nearest = 0});
  refuses({.nearest = 1000});
  refuses({.full_above = 1.5});
  refuses({.token_cost = -1});
  refuses({.few_lines = 17});
  auto wrong = clusters;
  wrong.vocabulary_size = 41;
  CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), {}, wrong), std::invalid_argument);

  cuda::ClusteredProjection<float> projection(model.view(), {}, clusters);
  cuda::DenseProjection<float> dense(model.view());
  std::vector<float> const h(40);
  std::vector<Query> const queries(1), unanswered(1, Query{.mass = 0.5f});
  CHECK_THROWS_AS(projection.expand(cuda::hidden(h.data(), 1, 7), queries, {}), std::invalid_argument);
  CHECK_THROWS_AS(dense.expand(cuda::hidden(h.data(), 1, 7), queries, {}), std::invalid_argument);
  CHECK_THROWS_AS(projection.expand(cuda::hidden(h.data(), 1, 8), unanswered, {}), std::invalid_argument);
  CHECK(projection.expand(cuda::hidden(h.data(), 0, 8), {}, {}).size() == 0);
  CHECK(dense.expand(cuda::hidden(h.data(), 0, 8), {}, {}).size() == 0);
}
