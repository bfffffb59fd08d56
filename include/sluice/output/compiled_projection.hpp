// SPDX-License-Identifier: Apache-2.0
/// \file
/// CompiledProjection: DenseProjection from the compiled library.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/precision.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace sluice::inline v0 {
namespace detail {

struct AnyProjection {
  AnyProjection() = default;
  AnyProjection(AnyProjection const&) = delete;
  AnyProjection& operator=(AnyProjection const&) = delete;
  virtual ~AnyProjection() = default;
  virtual std::unique_ptr<AnyProjection> copy() const = 0;
  virtual Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                           std::span<Group const> groups) = 0;
  virtual Scores<float> logits(Hidden<float> const& hidden) = 0;
  virtual std::ptrdiff_t vocabulary_size() const = 0;
  virtual std::ptrdiff_t hidden_size() const = 0;
  virtual char const* instruction_set() const = 0;
};

/// In the library.
std::unique_ptr<AnyProjection> make_projection(MatrixView<float const> weights, std::span<float const> bias,
                                               Precision precision);

}  // namespace detail

/// DenseProjection for programs that link the compiled library (sluice::compiled): the processor is told apart when the program runs,
/// so a program that is compiled for any x86-64 uses AVX2, AVX-512, VNNI, BF16 or AMX where it finds them. Neither this header
/// nor the program compiles a product.
///
/// A line's answer is that of a DenseProjection which is compiled for the same instructions, bit for bit. One thread per call. Copies
/// share the packed weights, so one projection serves decoders in several threads.
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): its assignment takes a copy
class CompiledProjection {
 public:
  static constexpr bool takes_shared_edits = true;
  static constexpr bool processes_lines = true;

  /// Packs (copies) `weights` [V, d] and `bias` [V] or empty.
  /// \throws std::invalid_argument  if the bias has another size
  explicit CompiledProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                              Precision precision = Precision::float32)
      : projection_(detail::make_projection(weights, bias, precision)) {}
  CompiledProjection(CompiledProjection const& other) : projection_(other.projection_->copy()) {}
  CompiledProjection(CompiledProjection&&) noexcept = default;
  CompiledProjection& operator=(CompiledProjection other) noexcept {
    projection_.swap(other.projection_);
    return *this;
  }
  ~CompiledProjection() = default;

  /// As DenseProjection::expand.
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    return projection_->expand(hidden, queries, groups);
  }
  /// All logits [hidden.rows, V]. Valid until the next call.
  Scores<float> logits(Hidden<float> const& hidden) { return projection_->logits(hidden); }

  std::ptrdiff_t vocabulary_size() const { return projection_->vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_->hidden_size(); }
  /// The instructions that multiply in this precision here, by the names of instruction_set(Precision).
  char const* instruction_set() const { return projection_->instruction_set(); }

 private:
  std::unique_ptr<detail::AnyProjection> projection_;
};

}  // namespace sluice::inline v0
