// SPDX-License-Identifier: Apache-2.0
// On a device; skipped where there is none. Tables and copies are tested without one: unit/cuda_host/indirection,
// unit/cuda_host/paged_cache.
#include <sluice/cuda/cache/cache_indirection.cuh>
#include <sluice/cuda/cache/paged_cache.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/random_steps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Rows of a step as kernels see them: a row's new tokens end at length(row), and follow those of the row before.
struct Fed {
  explicit Fed(std::span<Row const> rows) {
    for (auto const& row : rows) {
      slots.push_back(row.to), lengths.push_back(row.length), first.push_back(static_cast<std::int32_t>(tokens.size()));
      tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    }
    first.push_back(static_cast<std::int32_t>(tokens.size()));
  }
  std::vector<std::int32_t> slots, lengths, first;
  std::vector<Token> tokens;
};

// [write]
/// What a model does with its new keys and values, here its tokens: a block for each row.
__global__ void write(cuda::IndirectionView view, Token* memory, Slot const* slots, std::int32_t const* lengths,
                      std::int32_t const* first, Token const* tokens) {
  auto const row = blockIdx.x;
  for (auto i = first[row] + static_cast<std::int32_t>(threadIdx.x); i < first[row + 1]; i += blockDim.x)
    memory[view.cell(slots[row], lengths[row] + i - first[row])] = tokens[i];
}
// [/write]
/// And what attention does: a block for each slot.
__global__ void read(cuda::IndirectionView view, Token const* memory, std::int32_t const* lengths, Token* to) {
  auto const slot = static_cast<Slot>(blockIdx.x);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < lengths[slot]; i += blockDim.x)
    to[slot * view.positions + i] = memory[view.cell(slot, i)];
}

/// The same in pages, with all elements.
__global__ void write(cuda::PageView<Token> view, std::int32_t const* lengths, std::int32_t const* first,
                      Token const* tokens) {
  auto const row = static_cast<std::int32_t>(blockIdx.x);
  for (auto i = first[row] + static_cast<std::int32_t>(threadIdx.x); i < first[row + 1]; i += blockDim.x)
    for (std::int32_t plane = 0; plane < view.planes; ++plane)
      for (std::int64_t e = 0; e < view.size; ++e)
        view.at(row, lengths[row] + i - first[row], plane)[e] = tokens[i] + plane + static_cast<Token>(e);
}
/// The tokens of a row; -1 where its elements do not agree.
__global__ void read(cuda::PageView<Token> view, std::int32_t size, Token* to) {
  auto const row = static_cast<std::int32_t>(blockIdx.x);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < view.length(row); i += blockDim.x) {
    auto const token = *view.at(row, i);
    auto same = true;
    for (std::int32_t plane = 0; plane < view.planes; ++plane)
      for (std::int64_t e = 0; e < view.size; ++e)
        same = same && view.at(row, i, plane)[e] == token + plane + static_cast<Token>(e);
    to[row * size + i] = same ? token : -1;
  }
}

bool equal(std::vector<Token> const& read, std::size_t first, std::span<Token const> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (read[first + i] != tokens[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("a cache behind cuda's indirection holds what a copied one holds", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (std::uint64_t seed = 0; seed < rounds(30); ++seed) {
    std::int32_t const width = seed % 4 == 0 ? 70 : 1 + static_cast<std::int32_t>(seed % 9);
    std::int32_t const slots = width == 70 ? 70 : 64, positions = seed % 5 == 0 ? 300 : 63;
    INFO("seed " << seed << ", width " << width);
    cuda::CacheIndirection cache({slots, positions, width});
    auto const size = static_cast<std::size_t>(slots * positions);
    OnDevice<Token> const memory(size), to(size);
    RandomSteps steps(seed, slots, width, positions);
    for (std::uint64_t i = 0; i < 10 * rounds(10); ++i) {
      INFO("step " << i);
      steps.next();
      Fed const fed(steps.rows);
      OnDevice<std::int32_t> const rows(fed.slots), lengths(fed.lengths), first(fed.first);
      OnDevice<Token> const tokens(fed.tokens);
      // [indirection]
      cache.release(steps.released);
      cache.step(steps.rows, stream);
      // [/indirection]
      if (!steps.rows.empty())
        write<<<static_cast<unsigned>(steps.rows.size()), 32, 0, stream>>>(cache.view(), memory.data(), rows.data(),
                                                                           lengths.data(), first.data(), tokens.data());
      std::vector<std::int32_t> held;
      for (Slot slot = 0; slot < slots; ++slot) held.push_back(cache.length(slot));
      OnDevice<std::int32_t> const all(held);
      read<<<static_cast<unsigned>(slots), 64, 0, stream>>>(cache.view(), memory.data(), all.data(), to.data());
      cuda::check(cudaStreamSynchronize(stream), "step");
      auto const found = to.get();
      for (Slot slot = 0; slot < slots; ++slot) {
        REQUIRE(cache.length(slot) == steps.tokens.length(slot));
        REQUIRE(equal(found, static_cast<std::size_t>(slot * positions), steps.tokens[slot]));
      }
    }
  }
  cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("a cache in cuda's pages holds what a copied one holds", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (std::uint64_t seed = 0; seed < rounds(30); ++seed) {
    std::int32_t const slots = 1 + static_cast<std::int32_t>(seed % 40), positions = 200;
    std::int32_t const planes = seed % 3 == 0 ? 24 : 1;
    INFO("seed " << seed << ", slots " << slots << ", planes " << planes);
    cuda::PagedCache<Token> cache({.elements_per_position = planes == 1 ? 1000u : 24u,
                                   .positions_per_page = seed % 2 == 0 ? 16 : 4,
                                   .planes = planes,
                                   .max_pages = slots * 60,
                                   .max_rows = slots,
                                   .max_length = positions});
    OnDevice<Token> const to(static_cast<std::size_t>(slots * positions));
    RandomSteps steps(seed, slots, slots, positions);
    for (std::uint64_t i = 0; i < 10 * rounds(10); ++i) {
      INFO("step " << i);
      steps.next();
      Fed const fed(steps.rows);
      OnDevice<std::int32_t> const lengths(fed.lengths), first(fed.first);
      OnDevice<Token> const tokens(fed.tokens);
      cache.release(steps.released);
      cache.step(steps.rows, stream);
      if (steps.rows.empty()) continue;
      auto const blocks = static_cast<unsigned>(steps.rows.size());
      write<<<blocks, 32, 0, stream>>>(cache.view(), lengths.data(), first.data(), tokens.data());
      read<<<blocks, 64, 0, stream>>>(cache.view(), positions, to.data());
      cuda::check(cudaStreamSynchronize(stream), "step");
      auto const found = to.get();
      for (std::size_t row = 0; row < steps.rows.size(); ++row)
        REQUIRE(equal(found, row * static_cast<std::size_t>(positions), steps.tokens[steps.rows[row].to]));
    }
    for (Slot slot = 0; slot < slots; ++slot) cache.release(std::span(&slot, 1));
    CHECK(cache.use().pages == 0);
  }
  cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("cuda's caches are told of steps before a graph, and keep their addresses", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  std::int32_t const slots = 8, positions = 40;
  cuda::CacheIndirection cache({slots, positions, slots});
  RandomSteps steps(3, slots, slots, positions);
  OnDevice<Token> const memory(static_cast<std::size_t>(slots * positions)), to(memory.get());
  OnDevice<std::int32_t> const all(static_cast<std::size_t>(slots));
  auto const capture = [&](auto const& work) {
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    work();
    cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  };
  std::vector<Token> const one{1};
  std::vector<Row> const row{{0, 0, 0, one}};
  capture([&] { CHECK_THROWS_AS(cache.step(row, stream), cuda::Error); });
  CHECK(cache.length(0) == 0);
  cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::CacheIndirection fresh({slots, positions, slots});
  capture([&] {
    read<<<static_cast<unsigned>(slots), 64, 0, stream>>>(fresh.view(), memory.data(), all.data(), to.data());
  });
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  cuda::check(cudaGraphDestroy(graph), "graph");
  // Steps that lie on the device, in a graph of their own.
  OnDevice<cuda::SlotStep> const chosen(static_cast<std::size_t>(slots));
  cudaGraphExec_t update = nullptr;
  capture([&] { fresh.enqueue(chosen.data(), positions, stream); });
  cuda::check(cudaGraphInstantiate(&update, graph, 0), "graph");
  cuda::check(cudaGraphDestroy(graph), "graph");
  for (std::uint64_t i = 0; i < 10 * rounds(5); ++i) {
    steps.next();
    Fed const fed(steps.rows);
    OnDevice<std::int32_t> const rows(fed.slots), lengths(fed.lengths), first(fed.first);
    OnDevice<Token> const tokens(fed.tokens);
    std::vector<cuda::SlotStep> said(static_cast<std::size_t>(slots));
    for (auto const slot : steps.released) said[static_cast<std::size_t>(slot)] = {slot, 0, 0};
    for (auto const& r : steps.rows)
      said[static_cast<std::size_t>(r.to)] = {r.from, r.length, static_cast<std::int32_t>(r.tokens.size())};
    chosen.set(said);
    cuda::check(cudaGraphLaunch(update, stream), "graph");
    std::vector<std::int32_t> held;
    for (Slot slot = 0; slot < slots; ++slot) held.push_back(steps.tokens.length(slot));
    if (!steps.rows.empty())
      write<<<static_cast<unsigned>(steps.rows.size()), 32, 0, stream>>>(fresh.view(), memory.data(), rows.data(),
                                                                         lengths.data(), first.data(), tokens.data());
    cuda::check(cudaStreamSynchronize(stream), "step");
    all.set(held);
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    cuda::check(cudaStreamSynchronize(stream), "graph");
    auto const found = to.get();
    for (Slot slot = 0; slot < slots; ++slot)
      REQUIRE(equal(found, static_cast<std::size_t>(slot * positions), steps.tokens[slot]));
  }
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphExecDestroy(update), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}
