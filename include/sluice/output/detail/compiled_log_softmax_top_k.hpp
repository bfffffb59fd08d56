// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK in the compiled library.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::inline v0 {
namespace detail {

struct AnyExpander {
  AnyExpander() = default;
  AnyExpander(AnyExpander const&) = delete;
  AnyExpander& operator=(AnyExpander const&) = delete;
  virtual ~AnyExpander() = default;
  virtual Expansion expand(Scores<float> const& scores, std::span<Query const> queries,
                           std::span<Group const> groups) = 0;
};

/// In the library.
std::unique_ptr<AnyExpander> make_log_softmax_top_k(std::span<float const> bias);

}  // namespace detail

#ifdef SLUICE_COMPILED  // a file that includes this and the class itself would have the name twice
inline namespace compiled {

/// See output/log_softmax_top_k.hpp without SLUICE_COMPILED. The library uses the instructions of the machine.
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): its assignment takes a copy
class LogSoftmaxTopK {
 public:
  static constexpr bool takes_shared_edits = true;
  static constexpr bool processes_lines = true;

  LogSoftmaxTopK() : LogSoftmaxTopK(std::span<float const>{}) {}
  explicit LogSoftmaxTopK(std::span<float const> bias)
      : bias_(bias.begin(), bias.end()), expander_(detail::make_log_softmax_top_k(bias)) {}
  LogSoftmaxTopK(LogSoftmaxTopK const& other) : LogSoftmaxTopK(std::span<float const>(other.bias_)) {}
  LogSoftmaxTopK(LogSoftmaxTopK&&) noexcept = default;
  LogSoftmaxTopK& operator=(LogSoftmaxTopK other) noexcept {
    bias_.swap(other.bias_), expander_.swap(other.expander_);
    return *this;
  }
  ~LogSoftmaxTopK() = default;

  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    if constexpr (std::is_same_v<T, float>) return expander_->expand(scores, queries, groups);
    else {
      converted_.resize(queries.size() * static_cast<std::size_t>(scores.columns));
      auto* to = converted_.data();
      for (std::size_t i = 0; i < queries.size(); ++i)
        for (auto const& x : scores[static_cast<std::ptrdiff_t>(i)]) *to++ = static_cast<float>(x);
      return expander_->expand(sluice::scores(converted_.data(), scores.rows, scores.columns, scores.kind), queries,
                               groups);
    }
  }

 private:
  std::vector<float> bias_, converted_;
  std::unique_ptr<detail::AnyExpander> expander_;
};

}  // namespace compiled
#endif
}  // namespace sluice::inline v0
