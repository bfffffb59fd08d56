// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks that arrays on the device have the same layout in C as in kernels, byte for byte.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/cuda/verify/verification.cuh>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/length.hpp>

#include <cstddef>
#include <cstdint>
#include <sluice_cuda.h>
#include <type_traits>

namespace sluice::c::device {

template <class A, class B>
inline constexpr bool
    same_size = sizeof(A) == sizeof(B) &&
                alignof(A) == alignof(B) && std::is_trivially_copyable_v<A>&& std::is_trivially_copyable_v<B>;

#define SLUICE_SAME(member)                                                                                            \
  static_assert(offsetof(Ours, member) == offsetof(C, member) && sizeof(Ours::member) == sizeof(C::member) &&          \
                    std::is_floating_point_v<decltype(Ours::member)> == std::is_floating_point_v<decltype(C::member)>, \
                "sluice_cuda.h has another " #member)

struct SameQuery {
  using Ours = cuda::LineQuery;
  using C = sluice_cuda_query;
  static_assert(same_size<Ours, C>, "sluice_cuda_query lacks what LineQuery has");
  SLUICE_SAME(best);
  SLUICE_SAME(normalise);
  SLUICE_SAME(temperature);
  SLUICE_SAME(stage);
  SLUICE_SAME(edits);
  SLUICE_SAME(edit_count);
  SLUICE_SAME(probes);
  SLUICE_SAME(probe_count);
  SLUICE_SAME(shortlist);
  SLUICE_SAME(only);
  static_assert(static_cast<int>(Stage::before_softmax) == SLUICE_CUDA_BEFORE_SOFTMAX &&
                static_cast<int>(Stage::after_softmax) == SLUICE_CUDA_AFTER_SOFTMAX);
};
struct SameSelect {
  using Ours = cuda::LineSelect;
  using C = sluice_cuda_select;
  static_assert(same_size<Ours, C>, "sluice_cuda_select lacks what LineSelect has");
  SLUICE_SAME(noise);
  SLUICE_SAME(mass);
  SLUICE_SAME(within);
  SLUICE_SAME(typical);
  SLUICE_SAME(deviations);
  SLUICE_SAME(at_least);
  SLUICE_SAME(best);
  SLUICE_SAME(entropy);
  SLUICE_SAME(rounded);
  SLUICE_SAME(room);
  SLUICE_SAME(first);
};
struct SameSelected {
  using Ours = cuda::SelectResult;
  using C = sluice_cuda_selected;
  static_assert(same_size<Ours, C>, "sluice_cuda_selected lacks what SelectResult has");
  SLUICE_SAME(count);
  SLUICE_SAME(entropy);
};
struct SameEdit {
  using Ours = Edit;
  using C = sluice_cuda_edit;
  static_assert(same_size<Ours, C>);
  SLUICE_SAME(token);
  SLUICE_SAME(add);
  SLUICE_SAME(penalty);
};
struct SameCandidate {
  using Ours = Candidate;
  using C = sluice_cuda_candidate;
  static_assert(same_size<Ours, C> && std::is_same_v<Token, std::int32_t>);
  SLUICE_SAME(token);
  SLUICE_SAME(log_prob);
};
struct SameLine {
  using Ours = cuda::LineResult;
  using C = sluice_cuda_line;
  static_assert(same_size<Ours, C>, "sluice_cuda_line lacks what LineResult has");
  SLUICE_SAME(count);
  SLUICE_SAME(valid);
  SLUICE_SAME(log_sum_exp);
};
struct SameMergeLine {
  using Ours = cuda::MergeLine;
  using C = sluice_cuda_merge_line;
  static_assert(same_size<Ours, C>);
  SLUICE_SAME(base);
  SLUICE_SAME(row);
};
struct SameMergeGroup {
  using Ours = cuda::MergeGroup;
  using C = sluice_cuda_merge_group;
  static_assert(same_size<Ours, C>);
  SLUICE_SAME(first);
  SLUICE_SAME(lines);
  SLUICE_SAME(keep);
  SLUICE_SAME(kept);
};
struct SameKept {
  using Ours = cuda::Kept;
  using C = sluice_cuda_kept;
  static_assert(same_size<Ours, C>);
  SLUICE_SAME(parent);
  SLUICE_SAME(token);
  SLUICE_SAME(log_prob);
};
struct SameVerdict {
  using Ours = cuda::Verdict;
  using C = sluice_cuda_verdict;
  static_assert(same_size<Ours, C>);
  SLUICE_SAME(kept);
  SLUICE_SAME(count);
  SLUICE_SAME(tried);
  SLUICE_SAME(right);
  SLUICE_SAME(finished);
  SLUICE_SAME(valid);
  static_assert(static_cast<int>(cuda::Accept::exact) == SLUICE_CUDA_EXACT &&
                static_cast<int>(cuda::Accept::top_k) == SLUICE_CUDA_TOP_K &&
                static_cast<int>(cuda::Accept::distance) == SLUICE_CUDA_DISTANCE);
};
struct SameMove {
  using Ours = cuda::SlotStep;
  using C = sluice_cuda_move;
  static_assert(same_size<Ours, C>, "sluice_cuda_move lacks what SlotStep has");
  SLUICE_SAME(from);
  SLUICE_SAME(length);
  SLUICE_SAME(count);
};
#undef SLUICE_SAME

// Options of a beam.
static_assert(static_cast<int>(LengthPenalty::Kind::none) == SLUICE_CUDA_PENALTY_NONE &&
              static_cast<int>(LengthPenalty::Kind::average) == SLUICE_CUDA_PENALTY_AVERAGE &&
              static_cast<int>(LengthPenalty::Kind::gnmt) == SLUICE_CUDA_PENALTY_GNMT);
static_assert(static_cast<int>(EarlyStopping::Rule::count) == SLUICE_CUDA_STOP_COUNT &&
              static_cast<int>(EarlyStopping::Rule::top_ended) == SLUICE_CUDA_STOP_TOP_ENDED &&
              static_cast<int>(EarlyStopping::Rule::exact) == SLUICE_CUDA_STOP_EXACT &&
              static_cast<int>(EarlyStopping::Rule::heuristic) == SLUICE_CUDA_STOP_HEURISTIC &&
              static_cast<int>(EarlyStopping::Rule::never_early) == SLUICE_CUDA_STOP_NEVER_EARLY);
static_assert(static_cast<int>(AtMaximum::force_eos) == SLUICE_CUDA_FORCE_EOS &&
              static_cast<int>(AtMaximum::truncate) == SLUICE_CUDA_TRUNCATE &&
              static_cast<int>(AtMaximum::best_unfinished) == SLUICE_CUDA_BEST_UNFINISHED &&
              static_cast<int>(AtMaximum::drop) == SLUICE_CUDA_DROP);
static_assert(LengthLimits::unlimited == SLUICE_CUDA_UNLIMITED);

/// Reinterprets a C array as the C++ array with the same layout.
template <class Ours, class C>
Ours* as(C* pointer) {
  static_assert(same_size<Ours, C>);
  return reinterpret_cast<Ours*>(pointer);
}

}  // namespace sluice::c::device
