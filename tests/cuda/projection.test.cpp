// SPDX-License-Identifier: Apache-2.0
// The projections on a device; skipped where there is none. Without one: unit/cuda_host/projection.runtime.
#include <support/device_memory.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <tuple>

namespace sluice::test {

using ProjectionTypes = std::tuple<float, __half, __nv_bfloat16>;
inline std::uint64_t const projection_rounds = rounds(4);

}  // namespace sluice::test

#include <support/matrix_product_cases.hpp>
#include <support/projection_cases.hpp>

namespace sluice::test {

TEST_CASE("cuda dense_projection in a graph sees new data", "[cuda]") {
  if (no_device()) return;
  constexpr std::int32_t k = 10;
  constexpr std::size_t lines = 3;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  DeviceLayer<__half> model(1, 40000, 64);
  cuda::StepOptions const step{.two_tiles = GENERATE(false, true)};  // a capture forks, too
  cuda::DenseProjection<__half> projection(model.view(), model.layer.bias, std::size_t{1} << 17, {},
                                           step);  // many tiles
  OnDevice<Candidate> const best(lines * k);
  OnDevice<cuda::LineResult> const results(lines);
  cuda::LineTask<float> task;
  task.k = task.query.best = k;
  task.best = best.data(), task.results = results.data();
  auto h = model.vectors(lines);
  auto const vectors = model.hidden(h);
  projection.enqueue(task, vectors, stream);
  cuda::check(cudaStreamSynchronize(stream), "warm");

  cudaGraph_t graph = nullptr;
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  projection.enqueue(task, vectors, stream);
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  for (int round = 0; round < 5; ++round) {
    h = model.vectors(lines);
    std::vector<__half> numbers(h.begin(), h.end());
    model.vectors_->set(numbers);
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    cuda::check(cudaStreamSynchronize(stream), "graph");
    auto const listed = best.get();
    auto const result = results.get();
    for (std::size_t i = 0; i < lines; ++i) {
      Query const query{.best = k};
      Line const line{std::span(listed).subspan(i * k, static_cast<std::size_t>(result[i].count)),
                      {},
                      result[i].log_sum_exp,
                      0,
                      result[i].valid != 0};
      check_line(line, expected_line<double>(model.layer.logits(model.layer.row(h, i), {}), Kind::logits, query), query,
                 1e-4);
    }
  }
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("a clustered step in a graph chooses anew what it reads", "[cuda]") {
  if (no_device()) return;
  constexpr std::int32_t k = 6, each = 2;
  constexpr std::size_t lines = 6;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (std::size_t const full_below : {std::size_t{0}, std::size_t{1} << 30}) {
    DeviceLayer<__half> model(1, 5000, 64);
    auto const& clusters = model.layer.clusters[0];
    cuda::ClusteredOptions options{.always = {2}};
    options.full_below = full_below;
    cuda::ClusteredProjection<__half> captured(model.view(), model.layer.bias, clusters, options);
    cuda::ClusteredProjection<__half> stepped(model.view(), model.layer.bias, clusters, options);
    OnDevice<Candidate> const best(lines * k);
    OnDevice<cuda::LineResult> const results(lines);
    cuda::LineTask<float> task;
    task.k = task.query.best = k;
    task.best = best.data(), task.results = results.data();
    auto h = model.vectors(lines);
    auto const vectors = model.hidden(h);
    captured.enqueue(task, vectors, each, stream);
    cuda::check(cudaStreamSynchronize(stream), "warm");

    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    captured.enqueue(task, vectors, each, stream);
    cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
    cudaGraphExec_t runnable = nullptr;
    cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
    std::vector<Query> const queries(lines, Query{.best = k});
    std::vector<Group> const groups(lines / each, Group{.lines = each});
    for (int round = 0; round < 5; ++round) {
      h = model.vectors(lines);
      model.vectors_->set(std::vector<__half>(h.begin(), h.end()));
      cuda::check(cudaGraphLaunch(runnable, stream), "graph");
      cuda::check(cudaStreamSynchronize(stream), "graph");
      auto const expected = stepped.expand(vectors, queries, groups);
      auto const listed = best.get();
      auto const told = results.get();
      for (std::size_t i = 0; i < lines; ++i) {
        REQUIRE(static_cast<std::size_t>(told[i].count) == expected[i].best.size());
        CHECK(std::equal(expected[i].best.begin(), expected[i].best.end(), listed.begin() + static_cast<int>(i) * k));
      }
    }
    cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  }
  cuda::check(cudaStreamDestroy(stream), "stream");
}

}  // namespace sluice::test
