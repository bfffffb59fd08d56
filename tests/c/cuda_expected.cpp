// SPDX-License-Identifier: Apache-2.0
// What C++ makes of cuda_client.c's cases. With an emulated device, the C interface itself is compiled here too.
#if defined(SLUICE_EMULATED_DEVICE)
#include <sluice/cuda/verify/detail/verification_warp.cuh>

#include "../../src/c/cuda/sluice_cuda.cu"
#include <support/emulated_beam.hpp>
#include <support/emulated_launches.hpp>
#endif

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/verify/verify.cuh>
#include <sluice/output/log_softmax_top_k.hpp>

#include "cuda_cases.h"
#include <support/device_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <span>
#include <vector>

using namespace sluice;

#if defined(SLUICE_EMULATED_DEVICE)
namespace sluice::inline v0::cuda::detail {

template <int threads>
void launch_verification(Verification const& task, cudaStream_t) {
  test::HostCuda::get().add([task] {
    constexpr int warps = threads / 32;
    test::run_blocks<threads, test::NoMemory>(
        (task.sentences + warps - 1) / warps,
        [&](auto& block, test::NoMemory&, int number) { verify_block(block, task, number); });
  });
}

}  // namespace sluice::inline v0::cuda::detail
#endif

// ---- the device -------------------------------------------------------------------------------------------------------------------

#if defined(SLUICE_EMULATED_DEVICE)
int device_missing(void) { return 0; }
sluice_cuda_stream device_stream(void) { return nullptr; }
int device_rings(void) { return 1; }
size_t device_allocations(void) { return test::HostCuda::get().use.allocations; }
void device_hurries(int whether) { test::plain_lines = whether != 0; }
#else
int device_missing(void) { return test::no_device() ? 1 : 0; }
sluice_cuda_stream device_stream(void) {
  static cudaStream_t const stream = [] {
    cudaStream_t made = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return made;
  }();
  return stream;
}
int device_rings(void) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major >= 9 ? 1 : 0;
}
size_t device_allocations(void) { return 0; }
void device_hurries(int) {}
#endif

void* device_new(void const* from, size_t bytes) {
  void* memory = nullptr;
  auto const all = bytes / 16 * 16 + 16;  // whole loads may end behind the last number
  cuda::check(cudaMalloc(&memory, all), "cudaMalloc");
  cuda::detail::fill_now(memory, 0xff, all);
  if (from != nullptr) cuda::detail::copy_now(memory, from, bytes);
  return memory;
}
void device_set(void* to, void const* from, size_t bytes) { cuda::detail::copy_now(to, from, bytes); }
void device_get(void const* from, void* to, size_t bytes) {
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  cuda::check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}
void device_delete(void* memory) {
  if (memory != nullptr) cuda::check(cudaFree(memory), "cudaFree");
}

// ---- lines ------------------------------------------------------------------------------------------------------------------------

namespace {

template <class A, class B>
int unequal(A const* a, B const* b, std::size_t count) {
  static_assert(sizeof(A) == sizeof(B));
  return std::memcmp(a, b, count * sizeof(A)) == 0 ? 0 : 1;
}

/// The same lines, by the host's twin: in floats that are added in another order.
template <class Format>
int differs_from_host(lines_case const& lines) {
  auto const& task = lines.task;
  auto const columns = static_cast<std::size_t>(task.columns);
  auto const* const bits = reinterpret_cast<typename Format::Bits const*>(lines.scores);
  auto const stride = static_cast<std::size_t>(task.stride == 0 ? task.columns : task.stride);
  auto differences = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(task.rows); ++row) {
    std::vector<float> line(columns);
    for (std::size_t v = 0; v < columns; ++v)
      line[v] = Format::value(bits[row * stride + v]) + (lines.bias != nullptr ? lines.bias[v] : 0.0f);
    auto const& asked = task.queries != nullptr ? lines.queries[row] : task.query;
    sluice_cuda_select const select = lines.selects != nullptr ? lines.selects[row] : sluice_cuda_select{};
    auto const again = select.room > 0, rounded = select.rounded != 0;
    std::vector<Edit> edits;
    for (std::int32_t i = asked.edits; i < asked.edits + asked.edit_count; ++i) {
      auto const& edit = lines.edits[i];
      edits.push_back({edit.token, edit.add, asked.stage == SLUICE_CUDA_AFTER_SOFTMAX && !rounded ? 1 : edit.penalty});
    }
    TokenSet only, shortlist;
    auto const add = [&](TokenSet& set, std::int32_t first) {
      for (std::size_t v = 0; v < columns; ++v)
        if ((lines.masks[static_cast<std::size_t>(first) + v / 32] >> (v % 32) & 1) != 0)
          set.insert(static_cast<Token>(v));
      return &set;
    };
    Query query{.best = again ? select.best : asked.best,
                .mass = select.mass,
                .within = select.within,
                .typical = select.typical,
                .deviations = select.deviations,
                .at_least = select.at_least,
                .probes = {lines.probes + asked.probes, static_cast<std::size_t>(asked.probe_count)},
                .edits = edits,
                .stage = asked.stage == SLUICE_CUDA_AFTER_SOFTMAX ? Stage::after_softmax : Stage::before_softmax,
                .temperature = asked.temperature,
                .normalise = asked.normalise != 0,
                .entropy = select.entropy != 0,
                .noise = select.noise};
    if (asked.only >= 0) query.only = add(only, asked.only);
    if (asked.shortlist >= 0) query.shortlist = add(shortlist, asked.shortlist);
    LogSoftmaxTopK host;
    auto const answer = host.expand(scores(line.data(), 1, std::ssize(line)), {&query, 1}, {})[0];
    auto const& result = lines.results[row];
    auto const near = [](float a, float b) { return a == b || std::abs(a - b) <= 1e-5f * (2 + std::abs(b)); };
    differences += result.valid != (answer.valid ? 1 : 0) || !near(result.log_sum_exp, answer.log_sum_exp);
    // With tokens of its own, noise is another than that of columns.
    auto const drawn = again && select.noise != 0 && lines.tokens != nullptr;
    auto const* const list = again ? lines.listed + select.first : lines.best + row * static_cast<std::size_t>(task.k);
    auto const listed = static_cast<std::size_t>(again ? lines.selected[row].count : result.count);
    differences += !drawn && listed != answer.best.size();
    if (query.entropy) differences += !(std::abs(lines.selected[row].entropy - answer.entropy) < 1e-4f);
    auto const there = again ? std::min(listed, static_cast<std::size_t>(select.room)) : listed;
    for (std::size_t i = 0; i < std::min(there, answer.best.size()) && !drawn; ++i) {
      auto const& found = list[i];
      differences += !near(found.log_prob, answer.best[i].log_prob);
      auto const token = answer.best[i].token;
      // Rounded edits and temperatures may part equals, or make some.
      if (edits.empty() && query.temperature == 1)
        differences += found.token != (lines.tokens != nullptr ? lines.tokens[token] : token);
    }
    for (std::size_t i = 0; i < query.probes.size(); ++i)
      differences += !near(lines.probe_values[static_cast<std::size_t>(asked.probes) + i], answer.probes[i]);
  }
  return differences;
}

template <class T>
int lines_differ_as(lines_case const& lines) {
  auto const& asked = lines.task;
  auto const rows = static_cast<std::size_t>(asked.rows), k = static_cast<std::size_t>(asked.k);
  cuda::LineTask<T> task;
  task.scores = {static_cast<T const*>(asked.scores), asked.rows, asked.columns,
                 asked.stride == 0 ? asked.columns : asked.stride};
  task.k = asked.k;
  std::vector<cuda::LineQuery> queries;
  for (std::size_t row = 0; row < rows; ++row) {
    auto const& query = asked.queries != nullptr ? lines.queries[row] : asked.query;
    queries.push_back({.best = query.best,
                       .normalise = query.normalise,
                       .temperature = query.temperature,
                       .stage = query.stage == 0 ? Stage::before_softmax : Stage::after_softmax,
                       .edits = query.edits,
                       .edit_count = query.edit_count,
                       .probes = query.probes,
                       .probe_count = query.probe_count,
                       .shortlist = query.shortlist,
                       .only = query.only});
  }
  test::OnDevice<cuda::LineQuery> const queries_there(queries);
  task.queries = queries_there.data();
  task.edits = reinterpret_cast<Edit const*>(asked.edits), task.probes = asked.probes, task.tokens = asked.tokens;
  task.masks = asked.masks;
  test::OnDevice<Candidate> const best(rows * k);
  test::OnDevice<cuda::LineResult> const results(rows);
  test::OnDevice<float> const probe_values(lines.probe_count);
  std::vector<cuda::LineSelect> selects(lines.selects != nullptr ? rows : 0);
  for (std::size_t row = 0; row < selects.size(); ++row) {
    auto const& select = lines.selects[row];
    selects[row] = {.noise = select.noise,
                    .mass = select.mass,
                    .within = select.within,
                    .typical = select.typical,
                    .deviations = select.deviations,
                    .at_least = select.at_least,
                    .best = select.best,
                    .entropy = select.entropy,
                    .rounded = select.rounded,
                    .room = select.room,
                    .first = select.first};
  }
  test::OnDevice<cuda::LineSelect> const selects_there(selects);
  test::OnDevice<cuda::SelectResult> const selected(selects.size());
  test::OnDevice<Candidate> const listed(lines.listed_count);
  if (lines.selects != nullptr) {
    task.selection.queries = selects_there.data();
    task.selection.results = selected.data(), task.selection.best = listed.data();
  }
  task.best = best.data(), task.results = results.data(), task.probe_values = probe_values.data();
  std::vector<float> bias;
  if (lines.bias != nullptr) bias.assign(lines.bias, lines.bias + asked.columns);
  cuda::LogSoftmaxTopK expander(bias);
  expander.enqueue(task, nullptr);
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

  auto const expected = best.get();
  auto const expected_results = results.get();
  auto differences = unequal(lines.results, expected_results.data(), rows);
  differences += unequal(lines.probe_values, probe_values.get().data(), lines.probe_count);
  for (std::size_t row = 0; row < rows; ++row)
    differences +=
        unequal(lines.best + row * k, expected.data() + row * k, static_cast<std::size_t>(expected_results[row].count));
  if (lines.selects != nullptr) {
    auto const expected_lists = listed.get();
    auto const counts = selected.get();
    differences += unequal(lines.selected, counts.data(), rows);
    for (std::size_t row = 0; row < rows; ++row)
      differences += unequal(lines.listed + selects[row].first, expected_lists.data() + selects[row].first,
                             static_cast<std::size_t>(std::min(counts[row].count, selects[row].room)));
  }
  return differences + differs_from_host<cuda::detail::FormatOf<T>>(lines);
}

}  // namespace

int lines_differ(lines_case const* lines) {
  switch (lines->task.type) {
    case SLUICE_CUDA_FLOAT: return lines_differ_as<float>(*lines);
    case SLUICE_CUDA_HALF: return lines_differ_as<__half>(*lines);
    default: return lines_differ_as<__nv_bfloat16>(*lines);
  }
}

// ---- merges -----------------------------------------------------------------------------------------------------------------------

int merge_differs(merge_case const* made) {
  auto const& asked = made->merge;
  test::OnDevice<cuda::Kept> const kept(made->kept_count);
  test::OnDevice<double> const totals(made->kept_count);
  test::OnDevice<std::int32_t> const places(made->kept_count);
  cuda::MergeLaunch launch;
  launch.best = reinterpret_cast<Candidate const*>(asked.best);
  launch.results = reinterpret_cast<cuda::LineResult const*>(asked.results), launch.k = asked.k;
  launch.groups = reinterpret_cast<cuda::MergeGroup const*>(asked.groups), launch.group_count = asked.group_count;
  launch.lines = reinterpret_cast<cuda::MergeLine const*>(asked.lines);
  launch.widest = asked.widest, launch.longest = asked.longest, launch.ends = asked.ends;
  launch.end_count = asked.end_count, launch.kept = kept.data(), launch.totals = totals.data();
  launch.places = places.data();
  cuda::merge_beams(launch, nullptr);
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  auto differences = unequal(made->kept, kept.get().data(), made->kept_count);
  if (asked.totals != nullptr) differences += unequal(made->totals, totals.get().data(), made->kept_count);
  if (asked.places != nullptr) differences += unequal(made->places, places.get().data(), made->kept_count);

  // And by a sort of all.
  for (std::int32_t g = 0; g < asked.group_count; ++g) {
    auto const& group = made->groups[g];
    struct Found {
      double total;
      std::int32_t parent, token;
    };
    std::vector<Found> all;
    for (std::int32_t i = 0; i < group.lines; ++i) {
      auto const& line = made->lines[group.first + i];
      for (std::int32_t c = 0; c < made->results[line.row].count; ++c) {
        auto const& candidate = made->best[line.row * asked.k + c];
        all.push_back({line.base + static_cast<double>(candidate.log_prob), i, candidate.token});
      }
    }
    if (group.keep == 0) continue;
    std::stable_sort(all.begin(), all.end(), [](Found const& a, Found const& b) { return a.total > b.total; });
    std::int32_t on = 0, ended = 0;
    for (std::size_t i = 0; i < all.size() && i < static_cast<std::size_t>(group.keep); ++i) {
      auto const at = static_cast<std::size_t>(group.kept) + i;
      differences += made->kept[at].parent != all[i].parent || made->kept[at].token != all[i].token;
      if (asked.totals != nullptr) differences += made->totals[at] != all[i].total;
      auto const ends =
          std::find(made->ends, made->ends + asked.end_count, all[i].token) != made->ends + asked.end_count;
      auto const place = ends ? ~ended++ : on++;
      if (asked.places != nullptr) differences += made->places[at] != place;
    }
  }
  return differences;
}

// ---- verifications ----------------------------------------------------------------------------------------------------------------

int verification_differs(verification_case const* made) {
  auto const& asked = made->task;
  auto const sentences = static_cast<std::size_t>(asked.sentences);
  test::OnDevice<Candidate> const tokens(made->token_count);
  test::OnDevice<cuda::Verdict> const verdicts(sentences);
  cuda::Verification task;
  task.sentences = asked.sentences, task.block = asked.block, task.k = asked.k;
  task.best = reinterpret_cast<Candidate const*>(asked.best);
  task.results = reinterpret_cast<cuda::LineResult const*>(asked.results);
  task.guess_log_probs = asked.guess_log_probs, task.first_lines = asked.first_lines, task.guesses = asked.guesses;
  task.guess_stride = asked.guess_stride, task.guess_counts = asked.guess_counts;
  task.accept = asked.accept == SLUICE_CUDA_EXACT   ? cuda::Accept::exact
                : asked.accept == SLUICE_CUDA_TOP_K ? cuda::Accept::top_k
                                                    : cuda::Accept::distance;
  task.n = asked.n, task.minimum = std::max(1, asked.minimum), task.eos = asked.eos, task.eos_count = asked.eos_count;
  if (asked.vocabulary > 0) task.vocabulary_size = asked.vocabulary;
  task.tokens = tokens.data(), task.verdicts = verdicts.data();
  cuda::verify(task, nullptr);
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return unequal(made->tokens, tokens.get().data(), made->token_count) +
         unequal(made->verdicts, verdicts.get().data(), sentences);
}
