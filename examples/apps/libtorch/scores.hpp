// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns a class that returns its scores as a torch tensor into a Model.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <ATen/core/Tensor.h>

#include <span>

#if SLUICE_TORCH_CUDA
#include <sluice/cuda/device/scores.cuh>

#include <c10/cuda/CUDAStream.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#endif

namespace sluice::example {

namespace detail {

inline void require_lines(at::Tensor const& tensor, std::span<Row const> rows) {
  std::int64_t lines = 0;
  for (auto const& row : rows) lines += row.lines;
  require(tensor.dim() == 2, "logits(rows).dim()", tensor.dim(), "must be 2, [lines, V]");
  require(tensor.size(0) == lines, "logits(rows).size(0)", tensor.size(0), "must be the number of lines asked");
  require(tensor.stride(1) == 1 || tensor.size(1) == 1, "logits(rows).stride(1)", tensor.stride(1), "must be 1");
}

}  // namespace detail

/// A model whose `logits(rows)` gives a tensor [lines, V], with scores in the host's memory, for every search and
/// expander there is. Looks at the tensor where it is; a tensor of another type or device is copied first.
///
/// \tparam M  all of a Model but `step`; all else that it has stays
template <class M, Kind K = Kind::logits>
class HostScores : public M {
 public:
  using M::M;

  /// \throws std::invalid_argument  if the tensor has another shape
  Scores<float> step(std::span<Row const> rows) {
    scores_ = M::logits(rows).to(at::TensorOptions(at::kCPU).dtype(at::kFloat));
    detail::require_lines(scores_, rows);
    return {{scores_.template data_ptr<float>(), scores_.size(0), scores_.size(1), scores_.stride(0)}, K};
  }

 private:
  at::Tensor scores_;  // until the next step
};

#if SLUICE_TORCH_CUDA

namespace detail {
template <class T>
struct TorchType;
template <>
struct TorchType<float> {
  using Type = float;
};
template <>
struct TorchType<__half> {
  using Type = at::Half;
};
template <>
struct TorchType<__nv_bfloat16> {
  using Type = at::BFloat16;
};
}  // namespace detail

/// As HostScores, with scores that stay on the GPU, for the expanders of sluice::cuda: the tensor's own memory, and the
/// stream that is torch's current one when `logits` has returned, or the model's `stream()` if it has such a thing.
/// \tparam T  float, __half or __nv_bfloat16: what the tensor holds
template <class M, class T, Kind K = Kind::logits>
class DeviceScores : public M {
 public:
  using M::M;

  /// \throws std::invalid_argument  if the tensor has another shape, or is not on a GPU
  cuda::Scores<T> step(std::span<Row const> rows) {
    using Type = typename detail::TorchType<T>::Type;
    scores_ = M::logits(rows);
    require(scores_.is_cuda(), "logits(rows).device()", scores_.device().str(), "must be a GPU");
    detail::require_lines(scores_, rows);
    auto const* const data = scores_.template data_ptr<Type>();  // throws c10::Error for another type
    return {{reinterpret_cast<T const*>(data), scores_.size(0), scores_.size(1), scores_.stride(0)}, K, stream()};
  }

 private:
  cudaStream_t stream() const {
    if constexpr (requires { M::stream(); }) return c10::cuda::CUDAStream(M::stream().value()).stream();
    else return c10::cuda::getCurrentCUDAStream(scores_.device().index()).stream();
  }

  at::Tensor scores_;  // until the next step
};

#endif

}  // namespace sluice::example
