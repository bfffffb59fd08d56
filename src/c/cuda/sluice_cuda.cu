// SPDX-License-Identifier: Apache-2.0
// The C interface to device code: kernels/sluice_cuda.h over the headers of sluice::cuda. The only file that nvcc must
// compile; tests compile it with the host compiler and an emulated device.

#include <sluice/core/noise.hpp>
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/home_device.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/verify/verify.cuh>
#include <sluice/version.hpp>

#include "beams.hpp"
#include "guard.hpp"
#include "layout.hpp"
#include "tasks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sluice_cuda.h>
#include <span>

namespace {

namespace device = sluice::c::device;
using device::guarded, device::not_null, sluice::require;

sluice::cuda::Allocator allocator_of(sluice_cuda_allocator const* allocator) {
  if (allocator == nullptr) return {};
  auto const its = device::taken(*allocator);
  not_null(its.allocate, "allocate"), not_null(its.release, "release");
  return {its.allocate, its.release, its.context};
}

sluice::cuda::StepOptions step_of(sluice_cuda_step_options const* step) {
  if (step == nullptr) return {};
  auto const its = device::taken(*step);
  return {.loads = device::flag(its.ring_loads, "ring_loads") ? sluice::cuda::Loads::ring : sluice::cuda::Loads::direct,
          .early_starts = device::flag(its.early_starts, "early_starts"),
          .merge_behind_lines = device::flag(its.merge_behind_lines, "merge_behind_lines"),
          .clusters = device::flag(its.clusters, "clusters")};
}

/// An expander that gives lists and workspace of a C task.
template <class T>
struct ListsOf {
  sluice::cuda::LogSoftmaxTopK& expander;
  sluice::cuda::LineTask<T> lines;
  std::span<std::byte> workspace;
  /// \param asked  says what may be merged behind the lines
  void enqueue(sluice::cuda::LineTask<T> const& asked, sluice_cuda_stream stream) {
    lines.merge_behind = asked.merge_behind;
    if (workspace.data() == nullptr) expander.enqueue(lines, stream);
    else expander.enqueue(lines, workspace, stream);
  }
};

}  // namespace

struct sluice_cuda_expander {
  sluice::cuda::LogSoftmaxTopK expander;
};
struct sluice_cuda_beam {
  sluice_cuda_beam(sluice_cuda_beam_options const& options, sluice::cuda::Allocator const& from,
                   sluice::cuda::StepOptions const& step)
      : vocabulary(device::vocabulary_of(options)),
        sentences(options.sentences),
        slot_length(options.slot_length),
        kind(device::places_of(options, step).kind),
        beam(device::search_of(options), vocabulary, device::places_of(options, step), from) {
    home.check_current("DeviceBeam");
  }
  /// The next step's task, without scores.
  sluice_cuda_task task() const {
    return device::task_of(beam.task<float>({nullptr, beam.rows().count, vocabulary.size, vocabulary.size}));
  }

  sluice::Vocabulary vocabulary;
  std::int32_t sentences, slot_length;
  sluice::Kind kind;
  sluice::cuda::DeviceBeam beam;
  sluice::cuda::detail::HomeDevice home;
};
struct sluice_cuda_results {
  device::Results results;
};

extern "C" {

char const* sluice_cuda_last_error(void) { return device::last_error().text.c_str(); }
int32_t sluice_cuda_last_code(void) { return device::last_error().code; }

char const* sluice_cuda_version(void) {
#define SLUICE_TEXT_OF(x) #x
#define SLUICE_TEXT(x) SLUICE_TEXT_OF(x)
  return SLUICE_TEXT(SLUICE_VERSION_MAJOR) "." SLUICE_TEXT(SLUICE_VERSION_MINOR) "." SLUICE_TEXT(SLUICE_VERSION_PATCH);
}

void sluice_cuda_query_init(sluice_cuda_query* query) {
  sluice::cuda::LineQuery const best;
  if (query == nullptr) return;
  *query = {};  // what lies between its members, too
  query->best = best.best, query->normalise = best.normalise, query->temperature = best.temperature;
  query->shortlist = best.shortlist, query->only = best.only;
}

uint64_t sluice_cuda_noise(uint64_t key, uint64_t part) { return sluice::derive(key, part); }

sluice_cuda_status sluice_cuda_expander_create(float const* bias, size_t count, sluice_cuda_allocator const* allocator,
                                               sluice_cuda_step_options const* step, sluice_cuda_expander** expander) {
  return guarded([&] {
    auto& made = not_null(expander, "expander");
    require(bias != nullptr || count == 0, "bias", "null", "must be `count` numbers");
    made =
        new sluice_cuda_expander{sluice::cuda::LogSoftmaxTopK({bias, count}, allocator_of(allocator), step_of(step))};
  });
}
void sluice_cuda_expander_free(sluice_cuda_expander* expander) { delete expander; }

sluice_cuda_status sluice_cuda_workspace_bytes(sluice_cuda_expander* expander, sluice_cuda_task const* task,
                                               size_t* bytes) {
  return guarded([&] {
    auto& its = not_null(expander, "expander").expander;
    auto& out = not_null(bytes, "bytes");
    out = device::with_task(device::taken(not_null(task, "task")),
                            [&](auto const& lines) { return its.workspace_bytes(lines); });
  });
}

sluice_cuda_status sluice_cuda_expand(sluice_cuda_expander* expander, sluice_cuda_task const* task, void* workspace,
                                      size_t bytes, sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(expander, "expander").expander;
    auto const lent = device::workspace(workspace, bytes);
    device::with_task(device::taken(not_null(task, "task")), [&]<class T>(sluice::cuda::LineTask<T> const& lines) {
      ListsOf<T>{its, lines, lent}.enqueue({}, stream);
    });
  });
}

sluice_cuda_status sluice_cuda_merge_beams(sluice_cuda_merge const* merge, sluice_cuda_stream stream) {
  return guarded(
      [&] { sluice::cuda::merge_beams(device::merge_launch(device::taken(not_null(merge, "merge"))), stream); });
}

sluice_cuda_status sluice_cuda_beam_options_preset(sluice_cuda_beam_options* options, int32_t preset, int32_t width,
                                                   double length_penalty) {
  return guarded([&] {
    auto& to = not_null(options, "options");
    sluice::c::give(device::options_of(device::preset_search(preset, width, length_penalty)), to,
                    "sluice_cuda_beam_options", device::shortest_options);
  });
}
sluice_cuda_status sluice_cuda_beam_create(sluice_cuda_beam_options const* options,
                                           sluice_cuda_allocator const* allocator, sluice_cuda_step_options const* step,
                                           sluice_cuda_beam** beam) {
  return guarded([&] {
    auto& made = not_null(beam, "beam");
    made = new sluice_cuda_beam(device::taken(not_null(options, "options")), allocator_of(allocator), step_of(step));
  });
}
void sluice_cuda_beam_free(sluice_cuda_beam* beam) { delete beam; }

sluice_cuda_status sluice_cuda_beam_begin(sluice_cuda_beam* beam, int32_t first, int32_t count,
                                          sluice_cuda_sentence const* sentences, sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(beam, "beam");
    device::check_numbers(first, count, its.sentences);
    require(sentences != nullptr || count == 0, "sentences", "null", "must be `count` sentences");
    device::Sentences const made({sentences, static_cast<std::size_t>(count)}, its.vocabulary, its.slot_length);
    its.beam.begin(first, made.all(), stream);
  });
}

sluice_cuda_status sluice_cuda_beam_rows(sluice_cuda_beam const* beam, sluice_cuda_rows* rows) {
  return guarded([&] {
    auto const& its = not_null(beam, "beam").beam;
    auto const next = its.rows();
    auto made = sluice_cuda_rows_init();
    made.count = next.count, made.tokens = next.tokens;
    made.moves = device::as<sluice_cuda_move const>(next.moves), made.remaining = its.remaining();
    sluice::c::give(made, not_null(rows, "rows"), "sluice_cuda_rows", sizeof made);
  });
}
sluice_cuda_status sluice_cuda_beam_task(sluice_cuda_beam const* beam, sluice_cuda_task* task) {
  return guarded([&] {
    auto const& its = not_null(beam, "beam");
    sluice::c::give(its.task(), not_null(task, "task"), "sluice_cuda_task", device::shortest_task);
  });
}
sluice_cuda_status sluice_cuda_beam_advance(sluice_cuda_beam* beam, sluice_cuda_stream stream) {
  return guarded([&] { not_null(beam, "beam").beam.advance(stream); });
}
sluice_cuda_status sluice_cuda_beam_step(sluice_cuda_beam* beam, sluice_cuda_expander* expander,
                                         sluice_cuda_task const* task, void* workspace, size_t bytes,
                                         sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(beam, "beam");
    auto const given = device::taken(not_null(task, "task"));
    device::check_task(given, its.task());
    its.home.check_current("DeviceBeam");  // before anything is enqueued
    auto& lists = not_null(expander, "expander").expander;
    auto const lent = device::workspace(workspace, bytes);
    device::with_task(given, [&]<class T>(sluice::cuda::LineTask<T> const& lines) {
      ListsOf<T> made{lists, lines, lent};
      its.beam.enqueue_step(made, sluice::cuda::Scores<T>{lines.scores, its.kind, stream});
    });
  });
}

sluice_cuda_status sluice_cuda_beam_remaining(sluice_cuda_beam* beam, int32_t* count, sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(beam, "beam").beam;
    auto& out = not_null(count, "count");
    out = its.remaining(stream);
  });
}
sluice_cuda_status sluice_cuda_beam_running(sluice_cuda_beam* beam, int32_t* running, sluice_cuda_stream stream) {
  return guarded([&] {
    auto& its = not_null(beam, "beam");
    not_null(running, "running");
    auto const numbers = its.beam.running(stream);
    std::fill_n(running, its.sentences, 0);
    for (auto const number : numbers) running[number] = 1;
  });
}

sluice_cuda_status sluice_cuda_beam_collect(sluice_cuda_beam* beam, int32_t first, int32_t count,
                                            sluice_cuda_stream stream, sluice_cuda_results** results) {
  return guarded([&] {
    auto& its = not_null(beam, "beam");
    auto& made = not_null(results, "results");
    device::check_numbers(first, count, its.sentences);
    made = new sluice_cuda_results{device::Results(its.beam.collect(first, count, stream))};
  });
}
sluice_cuda_result const* sluice_cuda_results_at(sluice_cuda_results const* results, size_t index) {
  return results == nullptr ? nullptr : results->results.at(index);
}
void sluice_cuda_results_free(sluice_cuda_results* results) { delete results; }

sluice_cuda_status sluice_cuda_verify(sluice_cuda_verification const* verification, sluice_cuda_stream stream) {
  return guarded([&] {
    sluice::cuda::verify(device::verification(device::taken(not_null(verification, "verification"))), stream);
  });
}

}  // extern "C"
