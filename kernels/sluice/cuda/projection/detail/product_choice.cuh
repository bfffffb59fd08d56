// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chooses the cheapest product of a clustered projection.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/projection/clustered_options.cuh>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Which logits are computed, and from which weights.
enum class Product : std::uint8_t {
  all,       ///< all tokens'
  in_place,  ///< the active tokens', few lines: from where they are
  gathered,  ///< the active tokens', from a copy side by side
};

/// Chooses by the options' estimates. No choice changes which tokens a line may give.
template <class T>
class ProductChoice {
 public:
  ProductChoice(ClusteredOptions const& options, MatrixView<T const> weights)
      : token_cost_(options.token_cost),
        full_below_(options.full_below),
        few_lines_(options.few_lines),
        weights_(weights) {}

  /// The choice before the number of active tokens is known; `gathered` needs that number.
  Product operator()(MatrixView<T const> hidden) const {
    auto const bytes =
        static_cast<double>(weights_.rows) * static_cast<double>(weights_.columns) * static_cast<double>(sizeof(T));
    if (bytes <= static_cast<double>(full_below_)) return Product::all;
    return in_place(hidden) ? Product::in_place : Product::gathered;
  }
  /// Refines `gathered` with that number.
  /// \param count   active tokens
  /// \param cached  their weights are already gathered
  Product of(std::int32_t count, bool cached) const {
    auto const all = static_cast<double>(weights_.rows);
    return count * (cached ? 1.0 : token_cost_) < all ? Product::gathered : Product::all;
  }

 private:
  /// Whether weights are read in place.
  bool in_place(MatrixView<T const> hidden) const {
    auto const aligned = [](MatrixView<T const> x) {
      return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 &&
             x.stride * static_cast<std::ptrdiff_t>(sizeof(T)) % 16 == 0;
    };
    return hidden.rows <= few_lines_ && weights_.columns % FormatOf<T>::wide == 0 && aligned(weights_) &&
           aligned(hidden);
  }

  double token_cost_;
  std::size_t full_below_;
  std::int32_t few_lines_;
  MatrixView<T const> weights_;
};

}  // namespace sluice::inline v0::cuda::detail
