// SPDX-License-Identifier: Apache-2.0
// Truncation, draws, entropy and penalties after the softmax on an emulated device: every field of Query.
#include <sluice/core/noise.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/expand/detail/selected_lines.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/line/detail/line_plan.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/block_sort.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>
#include <sluice/cuda/select/detail/noise.cuh>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>
#include <support/device_searches.hpp>
#include <support/emulated_launches.hpp>
#include <support/plain_lines.hpp>
#include <support/random_query.hpp>
#include <support/selection_cases.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("the numbers behind noise are the host's on a device", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto const noise = derive(7, seed);
    auto const token = static_cast<Token>(mix(seed) % 300000);
    CHECK(cuda::detail::derive_bits(noise, seed) == derive(noise, seed));
    auto const host = gumbel(noise, token);  // whose logarithm is another
    CHECK(std::abs(cuda::detail::gumbel_number(noise, token) - host) <= 5e-16 * std::max(1.0, std::abs(host)));
  }
}

TEMPLATE_TEST_CASE("every query is answered as double precision does, on an emulated device", "[cuda]", float, __half,
                   __nv_bfloat16) {
  std::size_t listed = 0, early = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SelectionCase<TestType> lines(seed, seed % 8 == 0 ? 6000 : 300, 4);
    auto const memory = lines.words();
    cuda::LogSoftmaxTopK expander(lines.lines.bias, {}, {.early_starts = true});
    auto const before = HostCuda::get().use;
    auto const answer = expander.expand(lines.scores(memory.data()), lines.lines.queries, {});
    auto const& use = HostCuda::get().use;
    CHECK(use.wrong_starts == before.wrong_starts);
    early += use.early_starts - before.early_starts;
    // Three launches, whatever is asked; once more if a list had no room.
    auto const attempts = std::max<std::size_t>(use.copies_back - before.copies_back, 1);
    CHECK(use.kernels - before.kernels <= 3 * attempts);
    REQUIRE(answer.size() == lines.lines.rows);
    for (std::size_t row = 0; row < lines.lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row << " of " << lines.lines.size);
      lines.check(row, answer[row]);
      listed += answer[row].best.size();
    }
  }
  CHECK(listed > 1000);
  CHECK(early > 90);
}

TEST_CASE("a device compares scores before they become log-probabilities, and lists the host's tokens", "[cuda]") {
  cuda::LogSoftmaxTopK expander;
  LogSoftmaxTopK host;
  std::size_t rounded = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    NearTies ties(seed);
    INFO("seed " << seed << ", V = " << ties.line.size() << ", " << ties.edits.size() << " edits");
    OnDevice<float> const memory(ties.line);
    auto const size = static_cast<std::ptrdiff_t>(ties.line.size());
    auto const answer = [&] {
      return expander.expand(cuda::scores<float>(memory.data(), 1, size), {&ties.query, 1}, {});
    };
    auto const best = answer()[0].best;
    REQUIRE(ties.holds(best));
    rounded += ties.rounded(best);
    if (ties.query.selects()) continue;  // sums of probabilities differ in their last bits
    // Penalties, too: another look, in which the others keep their order.
    ties.edits[0].penalty = 1.5f;
    auto const penalised = answer()[0].best;
    auto const expected = host.expand(scores(ties.line.data(), 1, size), {&ties.query, 1}, {})[0].best;
    CHECK(std::ranges::equal(penalised, expected, {}, &Candidate::token, &Candidate::token));
  }
  CHECK(rounded > 500);
}

TEMPLATE_TEST_CASE("one token of each line is drawn without a sort, and is that of the sort", "[cuda]", float, __half,
                   __nv_bfloat16) {
  std::size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SelectionCase<TestType> lines(seed, seed % 8 == 0 ? 20000 : 300, 4);
    INFO("seed " << seed << ", V = " << lines.lines.size);
    auto& queries = lines.lines.queries;
    for (std::size_t row = 0; row < queries.size(); ++row) {
      auto& query = queries[row];
      query.mass = query.within = query.typical = query.deviations = query.at_least = 0;
      query.noise = derive(seed, row), query.best = 1;
      for (auto const& edit : query.edits)  // penalties after the softmax are a list by scores
        if (edit.penalty != 1 && query.stage == Stage::after_softmax) query.edits = {};
      if (lines.lines.one_of(5)) query.best = 0, query.noise = 0, query.entropy = true;
    }
    auto const memory = lines.words();
    cuda::LogSoftmaxTopK expander(lines.lines.bias, {}, {.early_starts = true});
    auto const before = HostCuda::get().use;
    auto const sorts = emulated_device<few_threads>().met(cuda::detail::Barrier::ordered);
    auto const answer = kept(expander.expand(lines.scores(memory.data()), queries, {}));
    CHECK(emulated_device<few_threads>().met(cuda::detail::Barrier::ordered) == sorts);
    CHECK(HostCuda::get().use.wrong_starts == before.wrong_starts);
    auto const some = std::ranges::any_of(queries, [](Query const& query) { return query.noise != 0; });
    if (some) CHECK(HostCuda::get().use.kernels - before.kernels == 3);
    for (auto& query : queries)
      if (query.noise != 0) query.best = 2;  // sorts
    auto const sorted = expander.expand(lines.scores(memory.data()), queries, {});
    for (std::size_t row = 0; row < queries.size(); ++row) {
      auto const one = answer[row].view();
      auto const two = sorted[row];
      REQUIRE(one.valid == two.valid);
      REQUIRE(one.entropy == two.entropy);
      REQUIRE(one.best.size() == std::min<std::size_t>(two.best.size(), 1));
      if (one.best.empty()) continue;
      ++drawn;
      CHECK(one.best[0] == two.best[0]);
      queries[row].best = 1;
      lines.check(row, one);
    }
  }
  CHECK(drawn > 60);
}

TEST_CASE("searches that draw find the host's tokens over scores on an emulated device", "[cuda]") {
  check_searches_that_draw();
}

TEST_CASE("a line that is looked at again is answered for itself alone, to the last bit", "[cuda]") {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    SelectionCase<float> lines(seed, 700, 5);
    auto const memory = lines.words();
    auto const scores = lines.scores(memory.data());
    cuda::LogSoftmaxTopK together(lines.lines.bias), alone(lines.lines.bias);
    auto const all = kept(together.expand(scores, lines.lines.queries, {}));
    for (std::size_t row = 0; row < lines.lines.rows; ++row) {
      INFO("seed " << seed << ", row " << row);
      auto const at = static_cast<std::ptrdiff_t>(row);
      auto one = scores;
      one.data += at * one.stride, one.rows = 1;
      HostCuda::get().processors = 1 + static_cast<int>(row);
      auto const answer = alone.expand(one, std::span(lines.lines.queries).subspan(row, 1), {});
      CHECK(same_line(answer[0], all[row].view()));
    }
    HostCuda::get().processors = 4;
  }
}

TEST_CASE("lists longer than their room are asked for once more, and never for nothing", "[cuda]") {
  std::size_t const size = 5000;
  std::vector<float> x(2 * size);
  for (std::size_t v = 0; v < x.size(); ++v) x[v] = -static_cast<float>(mix(v + 1) % 1000) / 1000;
  OnDevice<float> const memory(x);
  auto const scores = cuda::scores<float>(memory.data(), 2, static_cast<std::ptrdiff_t>(size));
  cuda::LogSoftmaxTopK expander;
  auto const& use = HostCuda::get().use;
  auto const copies = [&](std::vector<Query> const& queries, std::size_t longest) {
    auto const before = use.copies_back;
    auto const answer = expander.expand(scores, queries, {});
    CHECK(std::max(answer[0].best.size(), answer[1].best.size()) == longest);
    return use.copies_back - before;
  };
  std::vector<Query> const few{{.best = 3}, {.best = 0, .within = 0.99f}}, all{{.best = 3, .mass = 1}, {.best = 2}};
  auto const within = [&] {
    auto const line = std::span(x).subspan(size);
    auto const bar = *std::max_element(line.begin(), line.end()) + std::log(0.99f);
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [&](float y) { return y >= bar; }));
  }();
  CHECK(within > 10);
  CHECK(within < 256);
  CHECK(copies(few, within) == 1);
  CHECK(copies(all, size) == 2);  // no room
  CHECK(copies(few, within) == 1);
  auto const warm = use.allocations;
  CHECK(copies(all, size) == 2);
  CHECK(copies(few, within) == 1);
  CHECK(use.allocations == warm);
  CHECK(copies({{.best = 70}, {.best = 1, .mass = 0.001f}}, 70) == 1);
  CHECK(copies({{.best = 70}, {.best = 70, .noise = 5}}, 70) == 1);
}

TEST_CASE("lines that are looked at again work in the caller's memory, some at a time", "[cuda]") {
  std::size_t const rows = 5, size = 900;
  PlainLines const lines(rows, size, 3);
  std::vector<cuda::LineSelect> asked(rows);
  std::int64_t first = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    auto& ask = asked[row];
    ask.room = 300, ask.first = first, first += ask.room;
    if (row == 1) ask.mass = 0.6f, ask.entropy = 1;
    if (row == 2) ask.best = 4, ask.noise = 77, ask.within = 0.2f;
    if (row == 4) ask.best = 7, ask.noise = 5;
  }
  OnDevice<cuda::LineSelect> const selects(asked);
  OnDevice<cuda::SelectResult> const results(rows);
  OnDevice<Candidate> const lists(static_cast<std::size_t>(first));
  auto const task = [&](std::int32_t k) {
    auto made = lines.task();
    made.k = made.query.best = k;
    // [selection]
    made.selection.queries = selects.data();  // what each line asks
    made.selection.best = lists.data(), made.selection.results = results.data();
    // [/selection]
    return made;
  };
  auto const answer = [&] {
    cuda::check(cudaStreamSynchronize(nullptr), "wait");
    std::vector<std::vector<Candidate>> found;
    auto const all = lists.get();
    auto const counts = results.get();
    for (std::size_t row = 0; row < rows; ++row) {
      auto const at = all.begin() + asked[row].first;
      found.emplace_back(at, at + counts[row].count);
    }
    cuda::detail::fill_now(lists.data(), 0xff, all.size() * sizeof(Candidate));
    return found;
  };
  cuda::LogSoftmaxTopK own, given;
  own.enqueue(task(3), nullptr);
  auto const expected = answer();
  CHECK(expected[0].empty());
  CHECK(expected[1].size() > 1);
  CHECK(expected[2].size() >= 4);
  CHECK(expected[4].size() == 7);
  CHECK(results.get()[1].entropy > 0);
  auto const best = lines.answer();
  {  // longer lists beside them
    PlainLines const wide(rows, size, 80);
    auto both = wide.task();
    both.selection = task(3).selection;
    own.enqueue(both, nullptr);
    CHECK(answer() == expected);
    auto const listed = wide.answer();
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < 3; ++i) CHECK(listed[80 * row + i] == best[3 * row + i]);
  }
  auto const bytes = given.workspace_bytes(task(3));
  OnDevice<std::byte> const memory(bytes + 64);
  auto const before = HostCuda::get().use.allocations;
  given.enqueue(task(3), std::span(memory.data(), bytes), nullptr);
  CHECK(answer() == expected);
  CHECK(lines.answer() == best);
  CHECK(HostCuda::get().use.allocations == before);
  auto const behind = memory.get();
  for (auto at = bytes; at < behind.size(); ++at) REQUIRE(behind[at] == std::byte{0xff});
  CHECK_THROWS_AS(given.enqueue(task(3), std::span(memory.data(), bytes - 1), nullptr), std::invalid_argument);

  // Two lines at a time.
  cuda::detail::SelectedLines<float> const few(task(3), 2 * size);
  OnDevice<std::byte> const less(few.bytes());
  auto const after = cuda::detail::Start::after, early = cuda::detail::Start::early;
  few.enqueue(task(3), less.data(), nullptr, after, early, [&](cuda::LineTask<float> const& some) {
    return cuda::detail::LinePlan<float>(some, 1000, {}).launch(nullptr, nullptr);
  });
  CHECK(answer() == expected);
}

TEST_CASE("only keys that may be listed are sorted, in shared memory if they fit, and no answer shows it", "[cuda]") {
  using Narrow = cuda::detail::NarrowBlock<EmulatedDevice<few_threads>::Block>;
  std::int32_t const room = Narrow::most, size = 5000;
  auto const& device = emulated_device<few_threads>();
  struct Sorts {  // of 512 keys for other memory, and rounds of merges there
    std::size_t tiles, merges;
  };
  for (auto const steps : {0.0f, 4.0f}) {  // of scores: many of them are equal
    std::mt19937_64 random(4);
    auto x = normal_numbers(random, size, 4);
    for (auto& value : x) value = steps > 0 ? std::round(value * steps) / steps : value;
    OnDevice<float> const memory(x);
    auto const scores = cuda::scores<float>(memory.data(), 1, size);
    cuda::LogSoftmaxTopK expander;
    auto const ask = [&](Query const& query) {
      INFO("best " << query.best << ", mass " << query.mass << ", noise " << query.noise);
      expander.expand(scores, std::span(&query, 1), {});  // finds how much room the list needs
      auto const tiles = device.met(cuda::detail::Barrier::stored), merges = device.met(cuda::detail::Barrier::parted);
      auto const kernels = HostCuda::get().use.kernels;
      auto const answer = expander.expand(scores, std::span(&query, 1), {});
      check_line(answer[0], expected_line<float>(x, Kind::logits, query), query);
      auto const launches = HostCuda::get().use.kernels - kernels;
      CHECK((launches == 3 || launches == 6));  // once more, without room for the list
      return Sorts{device.met(cuda::detail::Barrier::stored) - tiles,
                   device.met(cuda::detail::Barrier::parted) - merges};
    };
    // In shared memory: whatever a list can need at most, or turns out to need.
    std::vector<Query> const here{{.best = 100},
                                  {.best = room},
                                  {.best = 2, .noise = 3},
                                  {.best = room, .noise = 9},
                                  {.best = 0, .mass = 0.5f},
                                  {.best = 0, .within = 0.01f},
                                  {.best = 0, .typical = 0.3f},
                                  {.best = 0, .deviations = 1},
                                  {.best = 5, .mass = 0.9f, .within = 0.01f, .at_least = 0.001f}};
    for (auto const& query : here) CHECK(ask(query).tiles == 0);
    // Draws from a line with other lists: one sort of theirs in shared memory, which leaves it for the other's.
    CHECK(ask({.best = 20, .mass = 0.5f, .noise = 9}).tiles == 1);
    // Through the line's memory.
    for (auto const& query : {Query{.best = 0, .mass = 1}, Query{.best = 0, .within = 1e-9f},
                              Query{.best = 0, .deviations = 3}, Query{.best = 700, .noise = 9}}) {
      auto const sorts = ask(query);
      CHECK(sorts.tiles > 1);
      CHECK(sorts.merges >= 1);
    }
  }
}

TEST_CASE("a block sorts any number of keys, and every barrier of that is needed", "[cuda]") {
  using Device = EmulatedDevice<few_threads>;
  using Sort = cuda::detail::BlockSort<Device::Block>;
  using cuda::detail::Barrier;
  Device device;
  device.uneven = true;
  std::mt19937_64 random(6);
  auto const sorts = [&](std::int32_t size, std::uint64_t seed, DeviceFaults faults) {
    std::vector<cuda::detail::Key> keys(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < keys.size(); ++i)
      keys[i] = (seed % 3 == 0 ? i : seed % 3 == 1 ? keys.size() - i : random() >> 20) << 20 | (i + 1);
    auto expected = keys;
    std::ranges::sort(expected, std::ranges::greater());
    std::size_t const apart = 4096;  // where a barrier is missing, no access goes further astray
    std::vector<cuda::detail::Key> memory(2 * keys.size() + 3 * apart);
    auto *const here = memory.data() + apart, *const other = here + keys.size() + apart;
    std::ranges::copy(keys, here);
    struct Memory {
      cuda::detail::Key before[apart];
      Sort::Memory memory;
      cuda::detail::Key after[apart];
    };
    cuda::detail::Key const* sorted = nullptr;
    device.run<Memory>(1, 1, seed, faults, [&](auto& block, Memory& its, int) {
      its.memory.cuts[block.thread()] = 0;
      block.sync(Barrier::told);
      auto const* const end = Sort(block, its.memory).sort(here, other, size);
      if (block.thread() == 0) sorted = end;
    });
    return std::equal(expected.begin(), expected.end(), sorted);
  };
  for (auto const size : {1, 2, 31, 32, 33, 64, 65, 96, 129, 255, 256, 257, 511, 512, 513, 1000, 1024, 5000, 17000})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      INFO(size << " keys, seed " << seed);
      REQUIRE(sorts(size, seed, {}));
    }
  CHECK(device.failure() == "");
  for (auto const barrier :
       {Barrier::sorted, Barrier::placed, Barrier::ordered, Barrier::loaded, Barrier::stored, Barrier::parted}) {
    INFO("without barrier " << static_cast<int>(barrier));
    CHECK(device.has_seen(barrier));
    auto missed = false;
    for (std::uint64_t seed = 0; seed < 200 && !missed; ++seed) missed = !sorts(1500, seed, {.skipped = barrier});
    CHECK(missed);
  }
}

TEST_CASE("a kernel's logarithm errs by less than a unit in the last place", "[cuda]") {
  std::mt19937_64 random(3);
  auto const error = [](double x) {
    auto const exact = std::log(static_cast<long double>(x));
    auto const size = std::abs(static_cast<double>(exact));
    return std::abs(static_cast<long double>(cuda::detail::double_log(x)) - exact) /
           (std::nextafter(size, 1e300) - size);
  };
  long double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    auto const uniform = (static_cast<double>(random() >> 12) + 0.5) * 0x1p-52;
    for (auto const x : {uniform, -std::log(uniform), 1 - uniform * 1e-6, 1 / uniform, std::ldexp(uniform, -900)})
      worst = std::max(worst, error(x));
  }
  CHECK(worst > 0.5L);
  CHECK(worst < 1);
  CHECK(cuda::detail::double_log(1.0) == 0);
}
