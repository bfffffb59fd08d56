// SPDX-License-Identifier: Apache-2.0
// Whose memory cuda::LogSoftmaxTopK uses, on which device, and when it may: over a runtime in the host's memory.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/dense_projection.cuh>

#include <support/catch.hpp>
#include <support/emulated_launches.hpp>
#include <support/plain_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto none = -std::numeric_limits<float>::infinity();

/// The machine as it was, when a test is done with it.
struct Restore {
  ~Restore() { HostCuda::get().device = 0, HostCuda::get().others_capture = false; }
};

}  // namespace

TEST_CASE("what is copied to the device at the beginning is there, whoever reads it", "[cuda]") {
  std::vector<float> const numbers{1, 2, 3, 4};
  OnDevice<float> const stale(4), fresh(4);
  cuda::check(cudaMemcpy(stale.data(), numbers.data(), 16, cudaMemcpyHostToDevice), "cudaMemcpy");
  CHECK(std::isnan(stale.get()[0]));  // what the runtime may do, and this one does
  cuda::detail::copy_now(fresh.data(), numbers.data(), 16);
  CHECK(fresh.get() == numbers);
}

TEST_CASE("cuda log_softmax_top_k takes memory while others capture, and breaks nothing", "[cuda]") {
  Restore const restore;
  auto& machine = HostCuda::get();
  auto const broken = machine.use.broken_captures;
  machine.others_capture = true;
  CHECK_THROWS_AS(cuda::check(cudaMalloc(std::vector<void*>(1).data(), 16), "an allocation as usual"), cuda::Error);
  CHECK(machine.use.broken_captures == broken + 1);
  machine.others_capture = false;
  {
    PlainLines const lines(3, 5000, 4);
    Query const query{.best = 4};
    machine.others_capture = true;
    cuda::LogSoftmaxTopK expander(std::vector<float>(5000, 0.5f));
    auto const scores = cuda::scores<float>(lines.scores.data(), 1, 5000);
    CHECK(expander.expand(scores, std::span(&query, 1), {})[0].best.size() == 4);
    expander.enqueue(lines.task(), nullptr);
    CHECK(lines.answer()[0].token >= 0);
    machine.others_capture = false;
  }
  machine.others_capture = true;
  { cuda::LogSoftmaxTopK const freed(std::vector<float>(10)); }
  CHECK(machine.use.broken_captures == broken + 1);
  CHECK(machine.mode == cudaStreamCaptureModeGlobal);  // as it was
}

TEST_CASE("cuda log_softmax_top_k refuses a device that is not its own", "[cuda]") {
  Restore const restore;
  PlainLines const lines(2, 100, 3);
  cuda::LogSoftmaxTopK used, with_bias(std::vector<float>(100));
  used.enqueue(lines.task(), nullptr);
  auto const answer = lines.answer();
  HostCuda::get().device = 1;
  Query const query{.best = 3};
  auto const scores = cuda::scores<float>(lines.scores.data(), 1, 100);
  for (auto* const expander : {&used, &with_bias}) {
    CHECK_THROWS_AS(expander->expand(scores, std::span(&query, 1), {}), std::invalid_argument);
    CHECK_THROWS_AS(expander->workspace_bytes(lines.task()), std::invalid_argument);
    CHECK_THROWS_WITH(expander->enqueue(lines.task(), nullptr),
                      "sluice: LogSoftmaxTopK: the current device = 1: must be 0, which was current at its first use");
  }
  cuda::LogSoftmaxTopK fresh;
  fresh.enqueue(lines.task(), nullptr);
  CHECK(lines.answer() == answer);
  HostCuda::get().device = 0;
  CHECK_THROWS_AS(fresh.enqueue(lines.task(), nullptr), std::invalid_argument);
  used.enqueue(lines.task(), nullptr);
  CHECK(lines.answer() == answer);
}

TEST_CASE("cuda log_softmax_top_k works in the caller's memory, and takes none", "[cuda]") {
  for (auto const& [rows, size, k] : {std::tuple<std::size_t, std::size_t, std::int32_t>{2, 30000, 7},
                                      {1, 3000, 1},
                                      {5, 9000, 64},
                                      {3, 700, 90},
                                      {1, 20000, 100}}) {
    INFO(rows << " x " << size << ", k = " << k);
    PlainLines const lines(rows, size, k);
    cuda::LogSoftmaxTopK own, given;
    own.enqueue(lines.task(), nullptr);
    auto const expected = lines.answer();
    CHECK(std::none_of(expected.begin(), expected.end(), [](Candidate const& c) { return c.token < 0; }));

    auto const bytes = given.workspace_bytes(lines.task());
    OnDevice<std::byte> const memory(bytes + 64);  // of ones: its contents do not matter
    auto const before = HostCuda::get().use.allocations;
    given.enqueue(lines.task(), std::span(memory.data(), bytes), nullptr);
    CHECK(lines.answer() == expected);
    given.enqueue(lines.task(), std::span(memory.data(), bytes), nullptr);
    CHECK(lines.answer() == expected);
    CHECK(HostCuda::get().use.allocations == before);
    CHECK(given.workspace() == 0);
    auto const behind = memory.get();
    for (auto at = bytes; at < behind.size(); ++at) REQUIRE(behind[at] == std::byte{0xff});
    if (bytes > 0)
      CHECK_THROWS_AS(given.enqueue(lines.task(), std::span(memory.data(), bytes - 1), nullptr), std::invalid_argument);
  }
}

TEST_CASE("all that comes back from the device has been written", "[cuda]") {
  // Fewer than asked: -infinity is not listed, nor is anything of a line that is not valid.
  std::vector<float> x(3 * 40, none);
  for (std::size_t v = 0; v < 5; ++v) x[v * 7] = static_cast<float>(v);
  x[50] = std::numeric_limits<float>::quiet_NaN();
  OnDevice<float> const memory(x);
  std::vector<Token> const probes{-1, 40, 7, std::numeric_limits<Token>::max(), std::numeric_limits<Token>::min()};
  std::vector<Query> queries(3, Query{.best = 20});
  queries[0].probes = queries[1].probes = probes;
  for (auto const best : {20, 1, 30}) {
    for (auto& query : queries) query.best = best;
    auto const before = HostCuda::get().use.never_written;
    cuda::LogSoftmaxTopK expander({}, {}, {.mapped_answers = false});
    std::vector<Group> const groups{{.lines = 3, .keep = 4}};
    for (auto const& wanted : {std::span<Group const>(), std::span<Group const>(groups)}) {
      auto const answer = expander.expand(cuda::scores<float>(memory.data(), 3, 40), queries, wanted);
      CHECK(answer[0].probes[0] == none);
      CHECK(answer[0].probes[1] == none);
      CHECK(answer[0].probes[2] > none);
      CHECK(answer[0].probes[3] == none);
      CHECK(answer[0].probes[4] == none);
      CHECK_FALSE(answer[1].valid);
    }
    CHECK(HostCuda::get().use.never_written == before);
  }
}

namespace {

/// An allocator that counts.
struct Lender {
  std::size_t lent = 0, back = 0, most = ~std::size_t{0};
  cuda::Allocator allocator() {
    return {[](void* self, std::size_t bytes) -> void* {
              auto& lender = *static_cast<Lender*>(self);
              if (lender.lent + bytes > lender.most) return nullptr;
              lender.lent += bytes;
              return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
            },
            [](void* self, void* memory, std::size_t bytes) {
              static_cast<Lender*>(self)->back += bytes;
              std::free(memory);
            },
            this};
  }
};

}  // namespace

TEST_CASE("all memory of the device comes from the caller's allocator, and goes back there", "[cuda]") {
  Lender lender;
  auto const& use = HostCuda::get().use;
  PlainLines const lines(2, 9000, 5), wide(2, 300, 80);
  auto const expected = [&] {
    cuda::LogSoftmaxTopK own;
    own.enqueue(lines.task(), nullptr);
    return lines.answer();
  }();
  auto const before = use.allocations;
  {
    cuda::LogSoftmaxTopK given({}, lender.allocator());
    given.enqueue(lines.task(), nullptr);
    CHECK(lines.answer() == expected);
    given.enqueue(wide.task(), nullptr);
    CHECK(wide.answer()[0].token >= 0);
    CHECK(use.allocations == before);
    CHECK(lender.lent == given.workspace());
    Query const query{.best = 5};
    auto const answer = given.expand(cuda::scores<float>(lines.scores.data(), 1, 9000), std::span(&query, 1), {});
    CHECK(answer[0].best[0] == expected[0]);
    CHECK(use.allocations == before + 2);  // of the host, for what goes there and what comes back
    CHECK(lender.back == 0);
  }
  CHECK(lender.back == lender.lent);
  lender = {.most = 100};
  CHECK_THROWS_AS(cuda::LogSoftmaxTopK(std::vector<float>(100), lender.allocator()), cuda::Error);
}

TEST_CASE("cuda dense_projection works with the caller's cuBLAS and memory", "[cuda]") {
  std::ptrdiff_t const vocabulary = 3000, depth = 8;
  std::vector<float> numbers(static_cast<std::size_t>((vocabulary + 2) * depth));
  std::mt19937_64 random(5);
  for (auto& x : numbers) x = static_cast<float>(static_cast<int>(random() % 17) - 8);
  OnDevice<float> const memory(numbers);
  MatrixView<float const> const weights{memory.data(), vocabulary, depth, depth};
  PlainLines const lines(2, 3000, 4);  // for its answers
  MatrixView<float const> const hidden{memory.data() + vocabulary * depth, 2, depth, depth};
  cuda::DenseProjection<float> own(weights);
  own.enqueue(lines.task(), hidden, nullptr);
  auto const expected = lines.answer();

  Lender lender;
  cublasContext handle;
  auto const before = HostCuda::get().use.allocations;
  cuda::DenseProjection<float> given(weights, {}, 0, {lender.allocator(), &handle});
  given.enqueue(lines.task(), hidden, nullptr);
  CHECK(lines.answer() == expected);
  CHECK(HostCuda::get().use.allocations == before);
  CHECK(lender.lent == given.workspace());
  CHECK(handle.products > 0);
  CHECK(handle.streams_set == 0);  // it had that stream: its workspace stays
  CHECK(handle.workspaces_set == 0);

  handle.scalars = CUBLAS_POINTER_MODE_DEVICE;  // its owner's affair, and so again afterwards
  given.enqueue(lines.task(), hidden, nullptr);
  CHECK(lines.answer() == expected);
  CHECK(handle.scalars == CUBLAS_POINTER_MODE_DEVICE);
}
