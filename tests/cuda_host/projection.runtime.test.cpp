// SPDX-License-Identifier: Apache-2.0
// The device's output layers, host code and all, over a runtime in the host's memory and emulated devices.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <support/catch.hpp>
#include <support/device_query.hpp>
#include <support/emulated_launches.hpp>
#include <support/line_reference.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sluice::test {

/// The device is an emulated one; lines are answered plainly, since other tests emulate these.
inline bool no_device() {
  plain_lines = true;
  return false;
}
using ProjectionTypes = std::tuple<float, __nv_bfloat16>;
inline constexpr std::uint64_t projection_rounds = 1;

}  // namespace sluice::test

#define SLUICE_EMULATED_DEVICE  // no_device() is ours
#include <support/projection_cases.hpp>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

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
                             if (++tiles == failing) throw std::runtime_error("a product fails");
                             HostCuda::get().add([=, this] {
                               for (std::size_t row = 0; row < lines_.rows; ++row)
                                 std::copy_n(lines_[row].data() + first, count,
                                             tile + static_cast<std::ptrdiff_t>(row) * width_);
                             });
                           });
    });
  }
  cuda::LogSoftmaxTopK output;
  int tiles = 0, failing = 0;

 private:
  Lines const& lines_;
  std::ptrdiff_t width_;
  std::vector<float> memory_;
};

}  // namespace

TEST_CASE("lines made in tiles get the answers of whole lines, bit for bit", "[cuda]") {
  plain_lines = false;
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
    if (static_cast<std::ptrdiff_t>(lines.size) > width) {  // half a line leaves nothing behind
      tiled.failing = 2;
      CHECK_THROWS_AS(tiled.expand(asked.queries), std::runtime_error);
      HostCuda::get().wait();
      tiled.tiles = 0, tiled.failing = 0;
    }
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
  plain_lines = false;
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
        edits.push_back({below(random, 9) == 0 ? -1 : static_cast<Token>(below(random, 32 * words)),
                         below(random, 3) == 0 ? 1 : none});
    }
    auto const past = before;
    Answer answer{std::vector<Token>(2 * 32 * words, -1), std::vector<cuda::UnionResult>(1 + unions)};
    cuda::UnionLaunch launch;
    launch.words = words, launch.size = 32 * words, launch.lines = lines, launch.unions = unions;
    launch.union_of = union_of.data(), launch.first = first.data();
    launch.queries = queries.data(), launch.edits = edits.data();
    launch.joint = joint.data(), launch.own = own.data(), launch.before = before.data();
    launch.tokens = answer.tokens.data(), launch.results = answer.results.data();
    auto& device = emulated_device<few_threads>();
    device.uneven = true;
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
      for (std::int32_t i = 0; i < words; ++i) result.count += cuda::count_bits(launch.mask(u)[i]);
      for (std::size_t i = 0; i < lines; ++i) {
        auto wanted = queries[i].best;
        for (std::int32_t e = 0; e < queries[i].edit_count; ++e) {
          auto const& edit = edits[static_cast<std::size_t>(queries[i].edits + e)];
          wanted += edit.token >= 0 && edit.add == none &&
                    cuda::has_bit(launch.mask(u), static_cast<std::uint32_t>(edit.token));
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
