// SPDX-License-Identifier: Apache-2.0
// The device's program of LogSoftmaxTopK, run on an emulated device.
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/expand/detail/token_masks.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_ring_block.cuh>
#include <sluice/cuda/line/detail/selection.cuh>
#include <sluice/cuda/line/edit_order.cuh>

#include <support/catch.hpp>
#include <support/emulated_device.hpp>
#include <support/line_cases.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using cuda::detail::Barrier;
using cuda::detail::BFloat16;
using cuda::detail::Float16;
using cuda::detail::Float32;

namespace {

/// What the device tells of a case.
struct Answers {
  std::vector<Candidate> best;
  std::vector<float> probes;
  std::vector<cuda::LineResult> results;
  std::vector<cuda::LineQuery> queries;
  std::int32_t k = 1;

  Line operator[](std::size_t row) const {
    auto const& result = results[row];
    auto const valid = result.valid != 0;
    std::span<float const> values(probes);
    auto const& query = queries[row];
    return {std::span(best).subspan(row * static_cast<std::size_t>(k), static_cast<std::size_t>(result.count)),
            valid ? values.subspan(static_cast<std::size_t>(query.probes), static_cast<std::size_t>(query.probe_count))
                  : values.first(0),
            result.log_sum_exp, 0, valid};
  }
  bool operator==(Answers const& other) const {
    for (std::size_t row = 0; row < results.size(); ++row) {
      auto const &mine = results[row], &its = other.results[row];
      if (mine.valid != its.valid || mine.count != its.count || mine.log_sum_exp != its.log_sum_exp) return false;
      auto const a = (*this)[row], b = other[row];
      if (!std::equal(a.best.begin(), a.best.end(), b.best.begin())) return false;
      if (!std::equal(a.probes.begin(), a.probes.end(), b.probes.begin())) return false;
    }
    return true;
  }
};

/// An emulated device and the memory of one launch.
template <class Format, int threads>
class Launcher {
 public:
  /// \param places  blocks that run at once: how far lines are split
  Answers run(LineCase<Format> const& lines, std::int64_t places, std::uint64_t seed, DeviceFaults faults = {}) {
    std::mt19937_64 random(seed);
    auto const size = static_cast<std::int64_t>(lines.size);
    auto const chunks = cuda::LineShape::chunks<Format>(size, threads);
    // Not the shape that would be fastest, which seldom splits lines as short as these.
    auto const each = (chunks * static_cast<std::int64_t>(lines.rows) + places - 1) / places;
    auto const shape =
        cuda::LineShape{static_cast<std::int32_t>(std::clamp<std::int64_t>(each, 1, cuda::LineShape::most_chunks))}
            .over(chunks, lines.k, threads);
    REQUIRE(cuda::LineShape::fits(shape.splits, lines.k, threads));

    // A copy that ends where the last line does, at an address that is a multiple of 16.
    auto const used = lines.first(lines.rows - 1) + lines.size;
    scores_.resize((used * sizeof(typename Format::Bits) + 15) / 16);
    std::memcpy(scores_.data(), lines.memory.data(), used * sizeof(typename Format::Bits));
    bias_.assign(lines.bias.size() / 4 + 3, {});
    if (!lines.bias.empty()) std::memcpy(bias_.data(), lines.bias.data(), lines.bias.size() * sizeof(float));

    Answers answers;
    answers.k = lines.k;
    std::vector<Edit> edits;
    std::vector<Token> probes;
    cuda::detail::TokenMasks masks;
    masks.collect(lines.queries, static_cast<std::ptrdiff_t>(lines.size));
    std::vector<std::uint32_t> words(masks.words());
    masks.write(words.data());
    for (auto const& query : lines.queries) {
      answers.queries.push_back(
          {query.best, query.normalise, query.temperature, query.stage, static_cast<std::int32_t>(edits.size()),
           static_cast<std::int32_t>(query.edits.size()), static_cast<std::int32_t>(probes.size()),
           static_cast<std::int32_t>(query.probes.size()), masks.first(query.shortlist), masks.first(query.only)});
      edits.insert(edits.end(), query.edits.begin(), query.edits.end());
      if (ascending) cuda::EditOrder().copy(query.edits, edits.data() + edits.size() - query.edits.size());
      probes.insert(probes.end(), query.probes.begin(), query.probes.end());
    }
    for (std::size_t row = 0; row < unread.size(); ++row) {
      if (!unread[row]) continue;
      answers.queries[row].best = cuda::unread, answers.queries[row].normalise = 0,
      answers.queries[row].probe_count = 0;
      auto* const scores = reinterpret_cast<typename Format::Bits*>(scores_.data()) + lines.first(row);
      std::fill(scores, scores + lines.size, encode<Format>(std::numeric_limits<float>::quiet_NaN()));
    }
    auto const k = static_cast<std::size_t>(lines.k);
    answers.best.assign(lines.rows * k, {-1, 0});
    answers.probes.assign(probes.size(), -1);
    answers.results.assign(lines.rows, {-1, -1, -1});

    // The workspace holds what earlier launches left; tickets are zero.
    keys_.resize(lines.rows * k * static_cast<std::size_t>(shape.splits));
    for (auto& key : keys_) key = random() << 32 | 0xffffffffu;
    sums_.assign(lines.rows * static_cast<std::size_t>(chunks) * (threads / 32), {100, 7});
    tickets_.assign(lines.rows, 0);

    cuda::detail::LineLaunch<Format> launch;
    launch.scores = lines.lines(reinterpret_cast<typename Format::Bits const*>(scores_.data()));
    launch.stride = static_cast<std::int64_t>(lines.stride);
    launch.size = static_cast<std::int32_t>(size), launch.rows = static_cast<std::int32_t>(lines.rows);
    launch.k = lines.k, launch.chunks = shape.chunks_of_block, launch.splits = shape.splits;
    launch.queries = answers.queries.data();
    launch.bias = lines.bias.empty() ? nullptr : reinterpret_cast<float const*>(bias_.data());
    launch.tokens = lines.tokens.empty() ? nullptr : lines.tokens.data();
    launch.edits = edits.data(), launch.probes = probes.data(), launch.ascending = ascending ? 1 : 0;
    launch.masks = words.empty() ? nullptr : words.data();
    launch.keys = keys_.data(), launch.sums = sums_.data(), launch.tickets = tickets_.data();
    launch.best = answers.best.data(), launch.probe_values = answers.probes.data();
    launch.results = answers.results.data();
    if (ring > 0 && launch.masks == nullptr) {
      run_ring(launch, random, faults);
    } else if (clusters && cuda::detail::suits_clusters(launch)) {
      run_clusters(launch, random, faults);
    } else {
      run_direct(launch, random, faults);
    }
    if (faults.nothing()) {
      REQUIRE(failure() == "");
      CHECK(std::all_of(tickets_.begin(), tickets_.end(), [](unsigned ticket) { return ticket == 0; }));
    }
    return answers;
  }

  /// An error that no answer shows.
  std::string const& failure() const { return device.failure() != "" ? device.failure() : ringed.failure(); }

  EmulatedDevice<threads> device;
  EmulatedDevice<threads, 32> ringed;  ///< with a producer warp
  bool ascending = false;              ///< edits are put in order first
  std::vector<bool> unread;            ///< lines that are NaN and not read; empty: none
  bool clusters = false;               ///< a line's blocks are a cluster where they can be
  std::size_t clustered = 0;           ///< launches so far whose blocks were
  std::int32_t blocks = 0;             ///< of a cluster, the last time
  int ring = 0;                        ///< blocks that stay and read through rings, but for lines with masks

 private:
  void run_direct(cuda::detail::LineLaunch<Format> const& launch, std::mt19937_64& random, DeviceFaults faults) {
    using Block = typename EmulatedDevice<threads>::Block;
    using Memory = cuda::detail::LineMemory<threads>;
    auto const residents = 1 + static_cast<int>(random() % 4);
    // No range of edits that nobody has written may lead a mutation astray.
    std::vector<bool> begun(static_cast<std::size_t>(launch.rows * launch.splits));
    device.template run<Memory>(
        launch.rows * launch.splits, residents, random(), faults, [&](Block& block, Memory& memory, int number) {
          auto const row = number / launch.splits, split = number % launch.splits;
          if (!begun[static_cast<std::size_t>(number)]) memory.edits = {};
          begun[static_cast<std::size_t>(number)] = true;
          launch.with_variant([&]<bool many, bool masked> {
            cuda::detail::LineBlock<Format, many, masked, Block>(block, memory, launch, row, split).run();
          });
        });
  }

  void run_clusters(cuda::detail::LineLaunch<Format> const& launch, std::mt19937_64& random, DeviceFaults faults) {
    using Block = typename EmulatedDevice<threads>::Block;
    using Memory = cuda::detail::ClusterMemory<threads>;
    ++clustered, blocks = launch.splits;
    device.of_cluster = blocks;
    std::vector<bool> begun(static_cast<std::size_t>(launch.rows * launch.splits));
    device.template run<Memory>(
        launch.rows * launch.splits, 1 + static_cast<int>(random() % 10), random(), faults,
        [&](Block& block, Memory& memory, int number) {
          auto const row = number / launch.splits, split = number % launch.splits;
          if (!begun[static_cast<std::size_t>(number)]) memory.edits = {};
          begun[static_cast<std::size_t>(number)] = true;
          launch.with_variant([&]<bool many, bool masked> {
            if constexpr (!masked)
              cuda::detail::LineBlock<Format, many, masked, Block, cuda::detail::DirectLoads, false, true>(
                  block, memory, launch, row, split)
                  .run();
          });
        });
    device.of_cluster = 1;
  }

  /// The same parts by fewer blocks; copies stay within the memory of all lines.
  void run_ring(cuda::detail::LineLaunch<Format> const& launch, std::mt19937_64& random, DeviceFaults faults) {
    using Block = typename EmulatedDevice<threads, 32>::Block;
    using Memory = cuda::detail::RingBlockMemory<threads>;
    auto const* const first = reinterpret_cast<std::byte const*>(launch.scores);
    auto const last = (launch.rows - 1) * launch.stride + launch.size;
    ringed.readable = {first, static_cast<std::size_t>(last) * sizeof(typename Format::Bits)};
    auto const residents = 1 + static_cast<int>(random() % 4);
    std::vector<bool> begun(static_cast<std::size_t>(ring));
    ringed.template run<Memory>(ring, residents, random(), faults, [&](Block& block, Memory& memory, int number) {
      if (!begun[static_cast<std::size_t>(number)]) memory.line.edits = {}, memory.ring.now = {number, 0, 0};
      begun[static_cast<std::size_t>(number)] = true;
      if (launch.k > 1) cuda::detail::run_parts<true>(block, memory, launch, number, ring);
      else cuda::detail::run_parts<false>(block, memory, launch, number, ring);
    });
  }

  std::vector<cuda::detail::Words> scores_, bias_;
  std::vector<cuda::detail::Key> keys_;
  std::vector<cuda::detail::PartialSum> sums_;
  std::vector<unsigned> tickets_;
};

/// Random cases against double precision; the same bits wherever lines lie, however they are split and blocks interleaved.
template <class Format, int threads>
void check_cases(std::uint64_t first, std::uint64_t count, std::size_t most) {
  Launcher<Format, threads> launcher;
  for (auto seed = first; seed < first + count; ++seed) {
    LineCase<Format> lines(seed, most, 3);
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size << ", stride " << lines.stride << ", offset "
                 << lines.offset << ", k = " << lines.k << ", bias " << !lines.bias.empty() << ", tokens "
                 << !lines.tokens.empty());
    launcher.ascending = seed % 2 == 0;
    auto const answers = launcher.run(lines, 1000, seed);
    for (std::size_t row = 0; row < lines.rows; ++row) {
      INFO("row " << row << ", best " << lines.queries[row].best << ", " << lines.queries[row].edits.size()
                  << " edits");
      lines.check(row, answers[row]);
    }
    launcher.ascending = !launcher.ascending;
    CHECK(launcher.run(lines, 8, seed + 1000) == answers);
    launcher.ring = 1 + static_cast<int>(seed % 5);  // more than there are parts, too
    CHECK(launcher.run(lines, 1000, seed) == answers);
    CHECK(launcher.run(lines, 2, seed) == answers);
    lines.move(lines.below(8), lines.size + lines.below(8));
    CHECK(launcher.run(lines, 8, seed) == answers);
    launcher.ring = 0;
    CHECK(launcher.run(lines, 1, seed + 2000) == answers);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("the device's log_softmax_top_k answers as double precision does", "[cuda]", Float32, Float16,
                   BFloat16) {
  check_cases<TestType, 64>(0, 100, 5000);
  check_cases<TestType, 96>(1000, 30, 5000);
  check_cases<TestType, 256>(2000, 10, 20000);
  check_cases<TestType, 64>(3000, 5, 20000);  // the lists of all blocks are too many, unless these are larger
}

TEST_CASE("the threshold of few is the k-th best of the threads' keys, as that of many", "[cuda]") {
  using Device = EmulatedDevice<128>;
  using Memory = cuda::detail::ThresholdMemory<128>;
  using cuda::detail::Key, cuda::detail::no_key;
  Device device;
  std::mt19937_64 random(8);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::array<Key, 128> keys;
    auto const some = 1 + seed % 40, values = std::uint64_t{1} << (seed % 3 * 10);  // equal scores, in other places
    for (std::uint64_t i = 0; i < keys.size(); ++i)
      keys[i] = random() % 40 < some ? (1 + random() % values) << 32 | (~i & 0xffffffff) : no_key;
    auto sorted = keys;
    std::ranges::sort(sorted, std::ranges::greater());
    for (int k = 1; k <= cuda::detail::few_listed + 3; ++k) {
      std::array<Key, 128> found{};
      device.run<Memory>(1, 1, seed, {}, [&](auto& block, Memory& memory, int) {
        auto const thread = static_cast<std::size_t>(block.thread());
        found[thread] = cuda::detail::threshold(block, memory, keys[thread], k);
      });
      auto const expected = sorted[static_cast<std::size_t>(k - 1)];
      INFO("seed " << seed << ", k = " << k);
      REQUIRE(std::ranges::count(found, expected != no_key ? expected : no_key + 1) == 128);
    }
  }
}

TEST_CASE("lines that nothing is asked of are not read by the device's log_softmax_top_k", "[cuda]") {
  Launcher<Float32, 64> launcher;
  std::size_t skipped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    LineCase<Float32> lines(seed, 5000, 5);
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size);
    launcher.unread.clear(), launcher.ring = 0;
    auto const all = launcher.run(lines, 1000, seed);
    for (std::size_t row = 0; row < lines.rows; ++row) launcher.unread.push_back(lines.one_of(2));
    auto const few = launcher.unread;
    for (auto const& [ring, places] : {std::pair(0, 1000), {0, 1}, {1, 1000}, {2, 8}, {7, 1}, {0, 1000}}) {
      launcher.ring = ring, launcher.clusters = !launcher.clusters;
      auto const answers = launcher.run(lines, places, seed + 1);
      for (std::size_t row = 0; row < lines.rows; ++row) {
        auto const &line = answers[row], &other = all[row];
        REQUIRE(line.valid == (few[row] || other.valid));
        REQUIRE(line.best.size() == (few[row] ? 0 : other.best.size()));
        if (few[row]) ++skipped;
        else REQUIRE(std::equal(line.best.begin(), line.best.end(), other.best.begin()));
        REQUIRE(line.log_sum_exp == (few[row] ? 0 : other.log_sum_exp));
      }
    }
  }
  CHECK(skipped > 200);
  CHECK(launcher.clustered > 0);
}

TEST_CASE("every barrier, fence and ticket of the device's log_softmax_top_k is missed", "[cuda]") {
  Launcher<BFloat16, 64> launcher;
  // Whether somebody notices, for some case and some order of the threads.
  auto const missed = [&](DeviceFaults faults) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      // Only lines of more chunks than a block may read have their sums added by a whole block.
      LineCase<BFloat16> const lines(seed, faults.skipped == Barrier::summed ? 28000 : 14000, 2);
      launcher.ascending = seed / 2 % 2 == 0;
      launcher.device.uneven = launcher.device.racing = false;
      auto const right = launcher.run(lines, 1000, seed);
      launcher.device.uneven = seed % 2 != 0, launcher.device.racing = seed % 3 == 0;
      if (launcher.run(lines, 1000, seed, faults) != right || launcher.device.failure() != "") return true;
    }
    return false;
  };
  for (int barrier = 0; barrier <= static_cast<int>(cuda::detail::Barrier::ticket); ++barrier) {
    INFO("barrier " << barrier);
    launcher = {};
    CHECK(missed({.skipped = static_cast<cuda::detail::Barrier>(barrier)}));
    CHECK(launcher.device.has_seen(static_cast<cuda::detail::Barrier>(barrier)));
  }
  launcher = {};
  CHECK(missed({.no_fence = true}));
  launcher = {};
  CHECK(missed({.no_ticket = true}));
}

TEMPLATE_TEST_CASE("a cluster of the device answers as blocks with tickets do, bit for bit", "[cuda]", Float32, Float16,
                   BFloat16) {
  Launcher<TestType, 64> launcher;
  std::set<std::int32_t> sizes;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    LineCase<TestType> lines(seed, 5000 * TestType::wide, 3);
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size << ", k = " << lines.k);
    launcher.ascending = seed % 2 == 0;
    for (auto const places : {4, 8, 1000}) {
      launcher.clusters = false;
      auto const answers = launcher.run(lines, places, seed);
      launcher.clusters = true;
      CHECK(launcher.run(lines, places, seed + 1) == answers);
      if (launcher.clustered > 0) sizes.insert(launcher.blocks);
      launcher.clustered = 0;
    }
  }
  CHECK(sizes == std::set<std::int32_t>{2, 4, 8, 16});
}

TEST_CASE("both barriers of the device's clusters are missed", "[cuda]") {
  Launcher<BFloat16, 64> launcher;
  auto const missed = [&](DeviceFaults faults) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      LineCase<BFloat16> const lines(seed, 14000, 2);
      launcher.clusters = false;
      auto const right = launcher.run(lines, 1000, seed);
      launcher.clusters = true;
      if (launcher.run(lines, 1000, seed, faults) != right || launcher.device.failure() != "") return true;
    }
    return false;
  };
  for (auto barrier : {Barrier::begun, Barrier::met}) {
    INFO("barrier " << static_cast<int>(barrier));
    launcher = {};
    CHECK(missed({.skipped = barrier}));
    CHECK(launcher.device.has_seen(barrier));
  }
}

TEST_CASE("every wait, arrival and fence of the device's ring is missed", "[cuda]") {
  Launcher<BFloat16, 64> launcher;
  auto const missed = [&](DeviceFaults faults) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      LineCase<BFloat16> const lines(seed, 14000, 2);
      launcher.ring = 1 + static_cast<int>(seed % 2);
      auto const places = seed % 4 < 2 ? 1 : 1000;
      launcher.ringed.uneven = launcher.ringed.racing = false;
      auto const right = launcher.run(lines, places, seed);
      launcher.ringed.uneven = seed % 2 != 0, launcher.ringed.racing = seed % 3 == 0;
      if (launcher.run(lines, places, seed, faults) != right || launcher.ringed.failure() != "") return true;
    }
    return false;
  };
  for (auto barrier : {Barrier::ring, Barrier::filled, Barrier::lifted, Barrier::emptied, Barrier::answered}) {
    INFO("barrier " << static_cast<int>(barrier));
    launcher = {};
    CHECK(missed({.skipped = barrier}));
    CHECK(launcher.ringed.has_seen(barrier));
  }
  for (auto const& faults : {DeviceFaults{.no_init_fence = true}, DeviceFaults{.no_arrival = true},
                             DeviceFaults{.no_bytes = true}, DeviceFaults{.no_proxy_fence = true}}) {
    launcher = {};
    CHECK(missed(faults));
  }
  CHECK(launcher.ringed.bulk_copies > 0);
}

TEST_CASE("the groups that a ring copies are those that can be loaded whole", "[cuda]") {
  std::vector<cuda::detail::Words> memory(8);
  cuda::detail::LineLaunch<Float16> launch;
  launch.rows = 1;
  for (std::uint32_t lead = 0; lead < 8; ++lead)
    for (std::int32_t size = 1; size < 50; ++size) {
      launch.scores = reinterpret_cast<std::uint16_t const*>(memory.data()) + lead, launch.size = size;
      cuda::detail::LineReader<Float16, false> const reader(launch, 0);
      auto const whole = reader.whole();
      for (std::uint32_t group = 0; group < 9; ++group)
        REQUIRE((group >= whole.begin && group < whole.end) == reader.inside(group, group));
    }
}

TEST_CASE("float16 bits become floats", "[cuda]") {
  CHECK(Float16::value(0x3c00) == 1.0f);
  CHECK(Float16::value(0xc500) == -5.0f);
  CHECK(Float16::value(0x0001) == 0x1p-24f);
  CHECK(Float16::value(0x83ff) == -0x3ffp-24f);
  CHECK(Float16::value(0x0400) == 0x1p-14f);
  CHECK(Float16::value(0x7bff) == 65504.0f);
  CHECK(Float16::value(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(Float16::value(0x7e00)));
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits)
    REQUIRE(encode<Float16>(Float16::value(static_cast<std::uint16_t>(bits))) == bits);
}
