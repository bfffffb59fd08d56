// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arrays on the device mean to C what they mean to kernels: their elements are the same, byte for byte.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/cuda/verify/verification.cuh>

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
#undef SLUICE_SAME

/// An array of C's as the array that it is.
template <class Ours, class C>
Ours* as(C* pointer) {
  static_assert(same_size<Ours, C>);
  return reinterpret_cast<Ours*>(pointer);
}

}  // namespace sluice::c::device
